"""Render the recipe for conda-forge, and compare it with pyproject.toml: needs py-rattler-build."""

import re
import tomllib
from pathlib import Path

from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

ROOT = Path(__file__).parents[1]
VARIANTS = VariantConfig({"c_compiler": ["gcc"], "c_stdlib": ["sysroot"]})  # conda-forge has its own

project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
version = re.search(r'__version__ = "(.+)"', (ROOT / "daskclust" / "__init__.py").read_text())[1]
wanted = {f"python {project['requires-python']}"}
for requirement in project["dependencies"]:
    name, bound = re.fullmatch(r"([\w-]+)(?:\[.*\])?(>=.+)", requirement).groups()
    wanted.add(f"{name.replace('lazy-loader', 'lazy_loader')} {bound}")

for platform in ("linux-64", "linux-aarch64"):
    config = RenderConfig(PlatformConfig(target_platform=platform))
    for variant in Stage0Recipe.from_file(ROOT / "docs" / "conda" / "recipe.yaml").render(VARIANTS, config):
        rendered = variant.recipe.to_dict()
        needs = rendered["requirements"]
        assert rendered["package"]["version"] == version, rendered["package"]
        assert set(needs["run"]) == wanted, set(needs["run"]) ^ wanted
        assert set(needs["host"]) >= wanted, wanted - set(needs["host"])
        print(f"{platform}: {rendered['package']['name']} {version} {rendered['build']['string']}")
