"""From numba's intermediate code of kernels to a library that needs neither numba nor Python."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from daskclust.core.device import shipped
from daskclust.core.device.arguments import HEADER
from daskclust.core.device.kernels import Compiled, compiled_here

_ARRAY = re.compile(r"\w(\d+)\[(\d+),\w\]r?u?")
"""An array as `core/device/arguments.py` names it: bytes of an item, dimensions."""


def compile_part(level: str, part: int, parts: int, folder: str) -> None:
    """Compile one of so many parts of the kernels in this process, and write their objects and source files."""
    from daskclust.build_kernels.uses import use_everything

    use_everything(part, parts)
    sources = {str(file) for file in Path(__file__).parent.glob("*.py")}
    for each in compiled_here:
        if each.kernel.cacheable:
            name = shipped.symbol(each.kernel.full_name, each.kinds)
            Path(folder, f"{name}.{part}.o").write_bytes(object_code(each, name, level))
            sources |= set(each.kernel.sources)
    Path(folder, f"sources.{part}").write_text("\n".join(sources))


def link(level: str, folder: str) -> str:
    """Make the library of a level from objects of all parts, and say what it holds."""
    objects = {file.name.partition(".")[0]: file.name for file in sorted(Path(folder).glob("*.o"))}
    Path(folder, "objects").write_text("\n".join(objects.values()))
    subprocess.run(["cc", "-shared", "-s", "-o", "library", "@objects", "-lm"], check=True, cwd=folder)
    library = shipped.FOLDER / f"{level}.so"
    Path(folder, "library").replace(library)
    sources = {file for part in Path(folder).glob("sources.*") for file in part.read_text().splitlines()}
    made = {
        "kernels": len(objects),
        "header": HEADER,
        "library": shipped.digest(str(library)),
        "sources": {shipped.name_in_package(file): shipped.digest(file) for file in sorted(sources)},
    }
    library.with_suffix(".json").write_text(json.dumps(made, indent=1) + "\n")
    return f"{library}: {len(objects)} kernels, {library.stat().st_size / 1e6:.1f} MB"


def object_code(compiled: Compiled, name: str, level: str) -> bytes:
    """Return a kernel's machine code for a level, an object file with one function, `name`."""
    import llvmlite.binding as llvm

    code = compiled.kernel.loop.overloads[compiled.types]
    loop = code.fndesc.llvm_func_name
    module = llvm.parse_assembly(code.library.get_llvm_str())
    signature = str(module.get_function(loop).global_value_type)
    module = llvm.parse_assembly(f"{module}\n{_entry(name, loop, signature, compiled.kinds)}")
    for each in [*module.functions, *module.global_variables]:
        if not each.is_declaration and each.name != name:
            each.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    target = llvm.Target.from_default_triple()
    processor = target.create_target_machine(cpu=level, opt=3, reloc="pic", codemodel="small")
    passes.run(module, llvm.create_pass_builder(processor, llvm.create_pipeline_tuning_options(speed_level=3)))
    made: bytes = processor.emit_object(module)
    return made


def _entry(name: str, loop: str, signature: str, kinds: tuple[str, ...]) -> str:
    """Return LLVM's text of the function that takes a kernel's arguments from an array and calls numba's loop."""
    types = signature[signature.index("(") + 1 : -1].split(", ")[4:]  # behind result, error, first and last
    lines: list[str] = []
    values: list[str] = []
    for slot, kind in enumerate(kind for kind in kinds if kind[-1] not in "()"):
        lines.append(f"%slot{slot} = getelementptr i64, ptr %arguments, i64 {slot}")
        array = _ARRAY.fullmatch(kind)
        if array:
            values += _array(slot, int(array[1]), int(array[2]), lines)
        else:
            values.append(_number(slot, types[len(values)], lines))
    given = "".join(f", {type_} {value}" for type_, value in zip(types, values, strict=True))
    body = "\n  ".join(lines)
    return f"""
define i32 @{name}(i64 %first, i64 %last, ptr %arguments) {{
  %result = alloca ptr
  %error = alloca ptr
  {body}
  %status = call i32 @"{loop}"(ptr %result, ptr %error, i64 %first, i64 %last{given})
  ret i32 %status
}}
"""


def _number(slot: int, type_: str, lines: list[str]) -> str:
    """Add lines that read a number; return its name."""
    value = f"%value{slot}"
    if type_ == "float":
        lines += [f"%wide{slot} = load double, ptr %slot{slot}", f"{value} = fptrunc double %wide{slot} to float"]
    elif type_ in ("double", "i64"):
        lines.append(f"{value} = load {type_}, ptr %slot{slot}")
    else:
        lines += [f"%wide{slot} = load i64, ptr %slot{slot}", f"{value} = trunc i64 %wide{slot} to {type_}"]
    return value


def _array(slot: int, itemsize: int, dimensions: int, lines: list[str]) -> list[str]:
    """Add lines that read the fields of a NumPy array; return numba's values: owner, size, data, shape and strides."""
    lines.append(f"%array{slot} = load ptr, ptr %slot{slot}")
    for field, offset in (("data", 0), ("shape", 16), ("strides", 24)):
        lines += [
            f"%at_{field}{slot} = getelementptr i8, ptr %array{slot}, i64 {HEADER + offset}",
            f"%{field}{slot} = load ptr, ptr %at_{field}{slot}",
        ]
    values: dict[str, list[str]] = {"shape": [], "strides": []}
    size = "1"
    for field, found in values.items():
        for k in range(dimensions):
            at, value = f"%at_{field}{slot}_{k}", f"%{field}{slot}_{k}"
            lines += [f"{at} = getelementptr i64, ptr %{field}{slot}, i64 {k}", f"{value} = load i64, ptr {at}"]
            found.append(value)
    for k, extent in enumerate(values["shape"]):
        lines.append(f"%size{slot}_{k} = mul i64 {size}, {extent}")
        size = f"%size{slot}_{k}"
    return ["null", "null", size, str(itemsize), f"%data{slot}", *values["shape"], *values["strides"]]
