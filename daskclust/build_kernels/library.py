"""From numba's intermediate code of kernels to a library that needs neither numba nor Python."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from daskclust.build_kernels.uses import use_everything
from daskclust.core.device import shipped
from daskclust.core.device.arguments import HEADER
from daskclust.core.device.kernels import Compiled, compiled_here


def build(level: str) -> str:
    """Compile kernels in this process, write the library of a level, and say what it holds."""
    import llvmlite.binding as llvm

    use_everything()
    kernels = {
        shipped.symbol(each.kernel.full_name, each.kinds): each for each in compiled_here if each.kernel.cacheable
    }
    processor = llvm.Target.from_default_triple().create_target_machine(
        cpu=level, opt=3, reloc="pic", codemodel="small"
    )
    shipped.FOLDER.mkdir(exist_ok=True)
    library = shipped.FOLDER / f"{level}.so"
    with tempfile.TemporaryDirectory(dir=shipped.FOLDER) as folder:
        for name, each in kernels.items():
            Path(folder, f"{name}.o").write_bytes(processor.emit_object(_module(each, name, processor)))
        Path(folder, "objects").write_text("\n".join(f"{name}.o" for name in kernels))
        subprocess.run(["cc", "-shared", "-s", "-o", "library", "@objects", "-lm"], check=True, cwd=folder)
        Path(folder, "library").replace(library)
    sources = {file for each in kernels.values() for file in each.kernel.sources}
    made = {
        "kernels": len(kernels),
        "header": HEADER,
        "library": shipped.digest(str(library)),
        "sources": {shipped.name_in_package(file): shipped.digest(file) for file in sorted(sources)},
    }
    library.with_suffix(".json").write_text(json.dumps(made, indent=1) + "\n")
    return f"{library}: {len(kernels)} kernels, {library.stat().st_size / 1e6:.1f} MB"


def _module(compiled: Compiled, name: str, processor: Any) -> Any:
    """Return a kernel's intermediate code as a module that has one function, `name`."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(compiled.library.get_llvm_str())
    module.get_function(compiled.name).name = name
    for each in [*module.functions, *module.global_variables]:
        if not each.is_declaration and each.name != name:
            each.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(processor, llvm.create_pipeline_tuning_options(speed_level=3)))
    return module
