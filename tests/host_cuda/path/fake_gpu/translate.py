"""LLVM IR that numba-cuda made for NVVM, as IR that the host's compiler takes.

Intrinsics become functions of the stand-in driver, and shared memory a place in its memory. What is not known here is
refused by name.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from llvmlite import binding as llvm
from numba.cuda.cudadrv.nvvm import llvm_replace

_REGISTERS = [
    f"{what}.{axis}" for what in ("tid", "ctaid", "ntid", "nctaid") for axis in "xyz"
]  # as struct Ids of the driver has them
_ASM = {  # inline assembly that is a function of the driver
    "mov.u32 $0, %dynamic_smem_size;": "nvvm_dynamic_smem_size",
    "membar.gl;": "nvvm_membar_gl",
}
_MEETING = re.compile(r"@\"?nvvm_barrier")
_ATOMIC = re.compile(
    r"^\s*(?:%\S+ = )?(?:tail )?(?:atomicrmw|cmpxchg|load atomic|call float @nvvm_atomic|call double @nvvm_atomic)",
    re.M,
)


class Entry(NamedTuple):
    """What the driver has to know of a kernel beside its machine code."""

    name: str
    kinds: str
    """Of its arguments, a letter each: p for a pointer."""
    shared: int
    """Bytes of static shared memory."""
    meets: bool
    """Whether threads wait for each other at barriers."""


def host_module(texts: list[str], name: str) -> tuple[llvm.ModuleRef, Entry]:
    """Return one module with ``@run(ptr arguments)``, one thread of the kernel `name`, and what there is to know."""
    shared = SharedMemory(texts)
    translated = [_translated(text, shared) for text in texts]
    module = llvm.parse_assembly(_ir_of_the_lane())
    for text in translated:
        module.link_in(llvm.parse_assembly(text))
    kinds = [str(argument.type) for argument in module.get_function(name).arguments]
    module.link_in(llvm.parse_assembly(_entry(name, kinds)))
    for function in module.functions:
        if not function.is_declaration and function.name != "run":
            function.linkage = "internal"
    meets = any(map(_MEETING.search, translated))
    return module, Entry(name, "".join("p" if kind == "ptr" else "v" for kind in kinds), shared.size, meets)


class SharedMemory:
    """Where each array of shared memory lies: the static ones one after the other, the dynamic one behind them."""

    _DEFINITION = re.compile(
        r'^@("[^"]+"|[\w.$]+) = (?:external )?addrspace\(3\) global (\[(\d+) x (.+?)\])(?: undef)?, align \d+$', re.M
    )

    def __init__(self, texts: list[str]) -> None:
        self.places: dict[str, str] = {}
        self.size = 0
        found = [match for text in texts for match in self._DEFINITION.finditer(text)]
        for match in sorted(found, key=lambda match: match[3] == "0"):
            at = -(-self.size // 128) * 128
            if match[3] != "0":
                self.size = at + int(match[3]) * _size_of(match[4])
            self.places[match[1]] = f"bitcast (i8* getelementptr (i8, i8* @lane_shared, i64 {at}) to {match[2]}*)"
        self.size = -(-self.size // 128) * 128

    def put_in(self, text: str) -> str:
        """Return IR that uses the driver's memory in place of arrays of its own."""
        text = self._DEFINITION.sub("", text)
        if "@lane_shared" not in text and any(f"@{name}" in text for name in self.places):
            text += "\n@lane_shared = external global i8\n"
        for name, place in self.places.items():
            text = text.replace(f"@{name}", place)
        return text


def _size_of(element: str) -> int:
    context = llvm.create_target_data("e-m:e-i64:64-i128:128-n8:16:32:64-S128")
    module = llvm.parse_assembly(f"@x = global {element} zeroinitializer")
    return context.get_abi_size(module.get_global_variable("x").global_value_type)


def _translated(text: str, shared: SharedMemory) -> str:
    """Return one module's IR for the host."""
    of_mlir = "ptx_kernel" in text
    text = _with_stack_at_entry(text) if of_mlir else llvm_replace(text)  # puts in numba-cuda's own atomics
    text = re.sub(r"^target .*$|^!nvvm.*$|^@\"?llvm\.used.*$", "", text, flags=re.M)
    text = shared.put_in(text)
    text = re.sub(r" addrspace\(\d+\)", "", text).replace("addrspacecast", "bitcast")
    text = re.sub(r'@"?llvm\.nvvm\.([\w.]+)"?', lambda found: "@nvvm_" + found[1].replace(".", "_"), text)
    text = _without_assembly(text)
    text = _ATOMIC.sub(lambda found: f"  call void @nvvm_spin()\n{found[0]}", text)
    declared = [
        name for name in ("nvvm_spin", *_ASM.values()) if f"@{name}(" in text and f"declare void @{name}(" not in text
    ]
    kinds = {"nvvm_spin": "void", "nvvm_membar_gl": "void"}
    return text + "".join(f"\ndeclare {kinds.get(name, 'i32')} @{name}()" for name in declared)


def _with_stack_at_entry(text: str) -> str:
    """Let functions of numba-cuda-mlir take their stack once: where they do so in a loop, that of a fiber is soon full.

    Values get names, since numbers would have to be in order.
    """

    def moved(found: re.Match[str]) -> str:
        body = re.sub(r"%(\d+)\b", r"%v\1", re.sub(r"^(\d+):", r"v\1:", found[3], flags=re.M))
        taken = re.findall(r"^  %\S+ = alloca .*\n", body, re.M)
        body = re.sub(r"^  %\S+ = alloca .*\n", "", body, flags=re.M)
        given = re.sub(r"%(\d+)\b", r"%v\1", found[2])
        return f"{found[1]}{given}{{\nv{len(re.findall(r'%v[0-9]+', given))}:\n{''.join(taken)}{body}}}\n"

    return re.sub(r"^(define [^(\n]*)([^\n]*)\{\n(.*?)^\}\n", moved, text.replace("ptx_kernel ", ""), flags=re.M | re.S)


def _without_assembly(text: str) -> str:
    """Put loads, stores and calls in the place of inline assembly."""
    call = r'call (?P<kind>[\w.]+) asm (?:sideeffect )? ?"(?P<what>[^"]*)", "[^"]*"\((?P<given>.*)\)'

    def replaced(found: re.Match[str]) -> str:
        what, given = found["what"], found["given"]
        if what in _ASM:
            return f"call {found['kind']} @{_ASM[what]}()"
        if re.fullmatch(r"ld\.[\w.]+ \$0, \[\$1\];", what):
            return f"load volatile {found['kind']}, {given}"
        if re.fullmatch(r"st\.[\w.]+ \[\$0\], \$1;", what):
            place, value = given.split(", ")
            return f"store volatile {value}, {place}"
        raise NotImplementedError(f"inline assembly {what!r}: add it to {__name__}")

    text = re.sub(call, replaced, text)
    return re.sub(r"^(.*= load volatile)", r"  call void @nvvm_spin()\n\1", text, flags=re.M)


def _entry(name: str, kinds: list[str]) -> str:
    """Return IR of ``run``: it takes each argument from where the driver is told that it lies."""
    lines = [f'declare void @"{name}"({", ".join(kinds)})', "define void @run(ptr %arguments) {"]
    for k, kind in enumerate(kinds):
        lines += [
            f"%at{k} = getelementptr ptr, ptr %arguments, i64 {k}",
            f"%place{k} = load ptr, ptr %at{k}",
            f"%value{k} = load {kind}, ptr %place{k}",
        ]
    given = ", ".join(f"{kind} %value{k}" for k, kind in enumerate(kinds))
    return "\n".join([*lines, f'call void @"{name}"({given})', "ret void", "}"])


def _ir_of_the_lane() -> str:
    """Return IR of intrinsics: special registers and atomics of floats."""
    lines = ["@lane_ids = external global [12 x i32]", "declare void @nvvm_spin()"]
    for k, register in enumerate(_REGISTERS):
        name = register.replace(".", "_")
        lines.append(
            f"define i32 @nvvm_read_ptx_sreg_{name}() alwaysinline {{\n"
            f"%at = getelementptr [12 x i32], ptr @lane_ids, i64 0, i64 {k}\n"
            "%value = load i32, ptr %at\nret i32 %value\n}"
        )
    for kind, bits in (("float", 32), ("double", 64)):
        lines.append(
            f"define {kind} @nvvm_atomic_load_add_f{bits}_p0f{bits}(ptr %at, {kind} %by) alwaysinline {{\n"
            f"%old = atomicrmw fadd ptr %at, {kind} %by monotonic\nret {kind} %old\n}}"
        )
    return "\n".join(lines)
