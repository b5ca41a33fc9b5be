"""A wheel with machine code: `DASKCLUST_BUILD_KERNELS="x86-64-v3 x86-64-v4" python -m build`, a level or several."""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LEVELS = os.environ.get("DASKCLUST_BUILD_KERNELS", "").split()


class CustomBuildHook(BuildHookInterface):
    """Compile kernels for the levels of processors that are asked for, and put them into the wheel."""

    def dependencies(self) -> list[str]:
        """Return what compiling needs: all that the package itself does."""
        return self.metadata.core.dependencies if LEVELS else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; the wheel is for machines with the newest glibc that the code asks for, whatever Python."""
        if not LEVELS or version == "editable":
            return
        subprocess.run([sys.executable, ".ci/kernels", *LEVELS], cwd=self.root, check=True)
        files = [f"daskclust/machine_code/{level}.{kind}" for level in LEVELS for kind in ("so", "json")]
        build_data["artifacts"] += files
        code = b"".join(Path(self.root, file).read_bytes() for file in files[::2])
        glibc = max([(2, 17), *((int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\d+)\.(\d+)", code))])
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{glibc[0]}_{glibc[1]}_{platform.machine()}"
