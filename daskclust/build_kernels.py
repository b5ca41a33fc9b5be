"""Compile kernels beforehand: ``python -m daskclust.build_kernels [LEVEL ...]``, see `core/device/shipped.py`.

numba compiles what the systems, readers and tables use on a few points, for a processor of the level; each kernel's
intermediate code, with a function around it that takes its arguments from one array, becomes an object file, and all of
them a library. It needs a C compiler, for linking.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from daskclust.core.device import shipped
from daskclust.core.device.arguments import HEADER
from daskclust.core.device.kernels import Compiled, compiled_here


def main() -> None:
    """Build libraries for levels of processors, by default for the best that this one has."""
    parser = argparse.ArgumentParser(prog="python -m daskclust.build_kernels", description=__doc__.splitlines()[0])
    parser.add_argument("levels", nargs="*", help=f"{', '.join(shipped.LEVELS)}, aarch64; default: the best one here")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    levels = given.levels or shipped.levels_here()[:1]
    if given.inside:
        build(*levels)
        return
    if shutil.which("cc") is None:
        raise SystemExit("a C compiler is needed to link kernels: no cc here; install gcc or clang")
    with tempfile.TemporaryDirectory() as cache:
        for level in levels:
            numba = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": cache}
            environment = os.environ | numba | {shipped.SWITCH: "0", "NUMBA_DISABLE_CACHING": "1"}
            subprocess.run(
                [sys.executable, "-m", "daskclust.build_kernels", level, "--inside"], env=environment, check=True
            )


def build(level: str) -> None:
    """Compile all kernels in this process, which numba compiles for `level`, and write the library."""
    use_everything()
    import llvmlite.binding as llvm

    target = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=level, opt=3, reloc="pic", codemodel="small"
    )
    shipped.FOLDER.mkdir(exist_ok=True)
    kernels = {shipped.symbol(each.kernel.full_name, each.kinds): each for each in compiled_here if each.kernel.cacheable}
    with tempfile.TemporaryDirectory(dir=shipped.FOLDER) as folder:
        for name, each in kernels.items():
            Path(folder, f"{name}.o").write_bytes(target.emit_object(module_of(each, name, target)))
        Path(folder, "objects").write_text("\n".join(f"{name}.o" for name in kernels))
        subprocess.run(["cc", "-shared", "-s", "-o", "library.so", "@objects", "-lm"], check=True, cwd=folder)
        library = Path(folder, "library.so").replace(shipped.FOLDER / f"{level}.so")
    sources = {file for each in kernels.values() for file in each.kernel.sources}
    made = {
        "kernels": len(kernels),
        "header": HEADER,
        "library": shipped.digest(str(library)),
        "sources": {shipped.name_in_package(file): shipped.digest(file) for file in sorted(sources)},
    }
    library.with_suffix(".json").write_text(json.dumps(made, indent=1))
    print(f"{library}: {len(kernels)} kernels, {library.stat().st_size / 1e6:.1f} MB")


def use_everything() -> None:
    """Call all systems, readers and tables for the usual dimensions and types, so that numba compiles their kernels."""
    import dask

    from daskclust import systems

    with dask.config.set(scheduler="synchronous"):
        for system in systems.SYSTEMS.values():
            for fitted in systems.run_all(system, np.asarray):
                dask.compute(fitted.labels_)


def module_of(compiled: Compiled, name: str, target: object) -> object:
    """Return a kernel's intermediate code as a module with one function, `name`."""
    import llvmlite.binding as llvm

    code = compiled.kernel.loop.overloads[compiled.types]
    inner = code.fndesc.llvm_func_name
    module = llvm.parse_assembly(code.library.get_llvm_str())
    signature = str(module.get_function(inner).global_value_type)
    module = llvm.parse_assembly(f"{module}\n{entry(name, inner, signature, compiled.kinds)}")
    for each in [*module.functions, *module.global_variables]:
        if not each.is_declaration and each.name != name:
            each.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=3)))
    return module


def entry(name: str, inner: str, signature: str, kinds: tuple[str, ...]) -> str:
    """Return LLVM's text of the function that takes arguments from an array and calls the kernel's loop."""
    types = signature[signature.index("(") + 1 : -1].split(", ")[4:]  # behind result, error, first and last
    lines: list[str] = []
    given: list[str] = []
    for kind, slot in zip((k for k in kinds if k[-1] not in "()"), range(len(kinds)), strict=False):
        lines.append(f"%slot{slot} = getelementptr i64, ptr %arguments, i64 {slot}")
        found = re.fullmatch(r"\w(\d+)\[(\d+),\w\]r?u?", kind)
        given += array_values(slot, *map(int, found.groups()), lines) if found else [number(slot, types[len(given)], lines)]
    call = "".join(f", {type_} {value}" for type_, value in zip(types, given, strict=True))
    body = "\n  ".join(lines)
    return f"""
define i32 @{name}(i64 %first, i64 %last, ptr %arguments) {{
  %result = alloca ptr
  %error = alloca ptr
  {body}
  %status = call i32 @"{inner}"(ptr %result, ptr %error, i64 %first, i64 %last{call})
  ret i32 %status
}}
"""


def number(slot: int, type_: str, lines: list[str]) -> str:
    """Add lines that read a number; return its name."""
    if type_ == "float":
        lines += [f"%wide{slot} = load double, ptr %slot{slot}", f"%value{slot} = fptrunc double %wide{slot} to float"]
    elif type_ in ("double", "i64"):
        lines.append(f"%value{slot} = load {type_}, ptr %slot{slot}")
    else:
        lines += [f"%wide{slot} = load i64, ptr %slot{slot}", f"%value{slot} = trunc i64 %wide{slot} to {type_}"]
    return f"%value{slot}"


def array_values(slot: int, itemsize: int, dimensions: int, lines: list[str]) -> list[str]:
    """Add lines that read a NumPy array's fields; return numba's values: owner, size, data, shape, strides."""
    lines.append(f"%array{slot} = load ptr, ptr %slot{slot}")
    for field, offset in (("data", 0), ("shape", 16), ("strides", 24)):
        lines += [
            f"%{field}_at{slot} = getelementptr i8, ptr %array{slot}, i64 {HEADER + offset}",
            f"%{field}{slot} = load ptr, ptr %{field}_at{slot}",
        ]
    values = []
    size = "1"
    for field in ("shape", "strides"):
        for k in range(dimensions):
            value = f"%{field}{slot}_{k}"
            lines += [f"{value}_at = getelementptr i64, ptr %{field}{slot}, i64 {k}", f"{value} = load i64, ptr {value}_at"]
            values.append(value)
    for k in range(dimensions):
        lines.append(f"%size{slot}_{k} = mul i64 {size}, {values[k]}")
        size = f"%size{slot}_{k}"
    return ["null", "null", size, str(itemsize), f"%data{slot}", *values]


if __name__ == "__main__":
    main()
