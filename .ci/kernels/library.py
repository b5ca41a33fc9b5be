"""From numba's intermediate code of kernels to a library that needs neither numba nor Python."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

from daskclust import systems
from daskclust.core.device.kernels import Compiled, compiled_here
from daskclust.core.device.machine_code import shipped
from daskclust.core.device.machine_code.arguments import HEADER, plain


def compile_part(level: str, part: int, parts: int, folder: str) -> None:
    """Compile one of so many parts of the kernels in this process, and write their objects and source files."""
    from uses import use_everything

    use_everything(part, parts)
    sources = set()
    for each in compiled_here:
        if each.kernel.cacheable:
            name = shipped.symbol(each.kernel.full_name, plain(each.kinds))
            Path(folder, f"{name}.{part}.o").write_bytes(object_code(each, name, level))
            sources |= set(each.kernel.sources)
    Path(folder, f"sources.{part}").write_text("\n".join(sources))


def link(level: str, folder: str) -> str:
    """Make the library of a level from objects of all parts, and say what it holds."""
    objects = {file.name.partition(".")[0]: file.name for file in sorted(Path(folder).glob("*.o"))}
    Path(folder, "objects").write_text("\n".join(objects.values()))
    subprocess.run([linker_of(level), "-shared", "-s", "-o", "library", "@objects"], check=True, cwd=folder)
    library = shipped.FOLDER / f"{level}.so"
    Path(folder, "library").replace(library)
    sources = {file for part in Path(folder).glob("sources.*") for file in part.read_text().splitlines()}
    made = {
        "kernels": len(objects),
        "header": HEADER,
        "library": shipped.digest(str(library)),
        "maker": maker(),
        "sources": {shipped.name_in_package(file): shipped.digest(file) for file in sorted(sources)},
    }
    library.with_suffix(".json").write_text(json.dumps(made, indent=1) + "\n")
    return f"{library}: {len(objects)} kernels, {library.stat().st_size / 1e6:.1f} MB"


def is_whole(level: str) -> bool:
    """Whether there is a library for a level, and neither its sources nor what made it have changed since."""
    try:
        library = shipped.Library(level)
        made = json.loads((shipped.FOLDER / f"{level}.json").read_text())
    except (OSError, ValueError):
        return False
    return made["maker"] == maker() and not library.changed()


def maker() -> list[str]:
    """Return digests of the files that say what is compiled, and how."""
    return [shipped.digest(str(file)) for file in (*sorted(Path(__file__).parent.glob("*.py")), systems.__file__)]


def cpu_of(level: str) -> str:
    """Return LLVM's name of the processor that stands for a level."""
    return "generic" if level == shipped.ARM else level


def linker_of(level: str) -> str:
    """Return the C compiler that links for a level."""
    is_foreign = level == shipped.ARM and platform.machine() != shipped.ARM
    return "aarch64-linux-gnu-gcc" if is_foreign else "cc"


def object_code(compiled: Compiled, name: str, level: str) -> bytes:
    """Return a kernel's machine code for a level, an object file with one function, `name`."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(compiled.library.get_llvm_str())
    module.get_function(compiled.name).name = name
    for each in [*module.functions, *module.global_variables]:
        if not each.is_declaration and each.name != name:
            each.linkage = "internal"
    if level == shipped.ARM:  # intermediate code is the same on all machines
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        target = llvm.Target.from_triple("aarch64-unknown-linux-gnu")
    else:
        target = llvm.Target.from_default_triple()
    processor = target.create_target_machine(cpu=cpu_of(level), opt=3, reloc="pic", codemodel="small")
    module.triple, module.data_layout = target.triple, str(processor.target_data)
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(processor, llvm.create_pipeline_tuning_options(speed_level=3)))
    code: bytes = processor.emit_object(module)
    return code
