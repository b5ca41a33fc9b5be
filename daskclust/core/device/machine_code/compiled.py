"""Kernels that numba compiles for the CPU: bodies as intermediate code, and functions that run one for many indices.

numba takes each function, with all that it calls, through LLVM's optimizers and on to machine code: the innermost of a
chain of ten would be compiled ten times. Nobody but kernels runs a body, and these swallow it whole. So a body stays as
LLVM's intermediate code, and is optimized once, within its kernel.

A kernel is called as ``kernel(first, last, arguments)`` with arguments as `arguments.py` packs them. That needs neither
Python's objects nor numba at run time, so that machine code of the same kernel may be shipped.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

from llvmlite import ir
from numba import int64, njit, typeof, types
from numba.core import cgutils, entrypoints
from numba.core.caching import Cache, CacheImpl, IndexDataCacheFile
from numba.core.codegen import CPUCodegen, JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr_generic, register_model
from numba.np.arrayobj import populate_array

from daskclust.core.device.cpu import equal_run
from daskclust.core.device.machine_code.arguments import HEADER

# what is missing is seen here, and kernels are then compiled by `public_numba.py`
_INNER = {
    JITCodeLibrary: ("_finalize_dynamic_globals", "_optimize_final_module", "_optimize_functions"),
    CPUCodegen: ("_module_pass_manager",),
    IndexDataCacheFile: ("_load_index", "_save_data", "_save_index"),
}
_FOUND = [getattr(whole, name) for whole, names in _INNER.items() for name in names]
_WORD, _BYTE = ir.IntType(64), ir.IntType(8)


class _InlinedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Intermediate code to be linked into the libraries of kernels: not linked or optimized here, and not to be run."""

    codegen = SimpleNamespace(set_env=lambda name, environment: None)  # of Python's objects: bodies have none

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # it has no address


class _KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """A kernel's code, optimized once: numba does it twice, for the sake of counted references, which are none here."""

    def link(self, library: Any) -> None:
        """Link a library, and all that this links."""
        if library not in self._linking_libraries:
            self.add_linking_library(library)
            for each in library._linking_libraries:
                self.link(each)

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class InlinedCompiler(Compiler):  # type: ignore[misc]
    """numba's compiler (a ``pipeline_class``) for functions that are always inlined and never called alone."""

    def define_pipelines(self) -> Any:
        self.state.library = _InlinedLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


def function(source: Callable[..., Any]) -> Any:
    """Return what numba compiles, to be inlined, when a kernel needs it."""
    # What other packages add to numba (awkward does) it loads at the first call, on any thread and without its lock;
    # one that compiles meanwhile fails on tables that change.
    with global_compiler_lock:
        entrypoints.init_all()
    options = {"_nrt": False, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "forceinline": True}
    return njit(**options, no_cpython_wrapper=True, pipeline_class=InlinedCompiler)(source)


# ------------------------------------------------------------------------------------------------------------ arguments
class Parts(types.Type):  # type: ignore[misc]
    """A named tuple among a kernel's arguments, as bodies take it: by its place in memory, not field by field.

    Inlining leaves nothing of that. But numba passes an array as seven and more arguments, at each call of each body.
    """

    def __init__(self, whole: types.NamedTuple) -> None:
        self.fields = {name: by_place(kind) for name, kind in zip(whole.fields, whole.types, strict=True)}
        self.whole = whole
        digest = hashlib.blake2s(str(whole).encode(), digest_size=6).hexdigest()
        super().__init__(f"{whole.instance_class.__name__}.{digest}")

    @property
    def key(self) -> Any:
        return self.whole


def by_place(kind: Any) -> Any:
    """Return the type that bodies take an argument in."""
    return Parts(kind) if isinstance(kind, types.NamedTuple) else kind


@register_model(Parts)
class _PartsModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, parts: Parts) -> None:
        fields = [manager.lookup(kind).get_value_type() for kind in parts.fields.values()]
        layout = [
            value.pointee if isinstance(kind, Parts) else value
            for kind, value in zip(parts.fields.values(), fields, strict=True)
        ]
        super().__init__(manager, parts, ir.LiteralStructType(layout).as_pointer())


@infer_getattr
class _FieldOfParts(AttributeTemplate):  # type: ignore[misc]
    key = Parts

    def generic_resolve(self, parts: Parts, name: str) -> Any:
        return parts.fields.get(name)


@lower_getattr_generic(Parts)
def _field_of(_context: Any, builder: Any, parts: Parts, pointer: Any, name: str) -> Any:
    place = cgutils.gep_inbounds(builder, pointer, 0, list(parts.fields).index(name))
    return place if isinstance(parts.fields[name], Parts) else builder.load(place)


def _value(context: Any, builder: Any, kind: Any, slots: Iterator[Any]) -> Any:
    """Return an argument, read from the slots that it has among the packed ones."""
    if isinstance(kind, Parts):
        place = cgutils.alloca_once(builder, context.get_value_type(kind).pointee)
        for k, field in enumerate(kind.fields.values()):
            value = _value(context, builder, field, slots)
            value = builder.load(value) if isinstance(field, Parts) else value
            builder.store(value, cgutils.gep_inbounds(builder, place, 0, k))
        return place
    if isinstance(kind, types.BaseTuple):
        return context.make_tuple(builder, kind, [_value(context, builder, field, slots) for field in kind])
    if isinstance(kind, types.Array):
        return _array(context, builder, kind, builder.inttoptr(builder.load(next(slots)), _BYTE.as_pointer()))
    wanted = context.get_value_type(kind)
    if isinstance(kind, types.Float):
        number = builder.load(builder.bitcast(next(slots), ir.DoubleType().as_pointer()))
        return number if kind is types.float64 else builder.fptrunc(number, wanted)
    number = builder.load(next(slots))
    return number if wanted == _WORD else builder.trunc(number, wanted)


def _array(context: Any, builder: Any, kind: types.Array, place: Any) -> Any:
    """Return numba's array for the NumPy array at a place in memory."""

    def field(offset: int, pointee: Any) -> Any:
        at = builder.gep(place, [_WORD(HEADER + offset)])
        return builder.load(builder.bitcast(at, pointee.as_pointer().as_pointer()))

    array = context.make_array(kind)(context, builder)
    item = context.get_data_type(kind.dtype)
    data = field(0, item)
    extents = [
        [builder.load(builder.gep(numbers, [_WORD(k)])) for k in range(kind.ndim)]
        for numbers in (field(16, _WORD), field(24, _WORD))
    ]
    populate_array(array, data, *extents, context.get_abi_sizeof(item), None)
    return array._getvalue()


# -------------------------------------------------------------------------------------------------------------- kernels
class Loop(NamedTuple):
    """How a kernel goes from one index to the next: ``step(context, builder, i, last, row, call)`` returns how far."""

    indices: int  # that its body takes
    step: Callable[..., Any]


def _each(_context: Any, _builder: Any, i: Any, _last: Any, _row: Any, call: Callable[..., None]) -> Any:
    call(i)
    return _WORD(1)


def _lanes(context: Any, builder: Any, i: Any, last: Any, row: Any, call: Callable[..., None]) -> Any:
    kind, array = row
    m = equal_run(context, builder, kind, array, i, last)
    call(i, m)
    return m


def _team(_context: Any, _builder: Any, i: Any, _last: Any, _row: Any, call: Callable[..., None]) -> Any:
    call(i, _WORD(0), _WORD(1))
    return _WORD(1)


LOOPS = {"each": Loop(1, _each), "lanes": Loop(2, _lanes), "team": Loop(3, _team)}


def compile_kernel(name: str, body: Any, args: tuple[Any, ...], loop: Loop) -> Any:
    """Compile a function, `name`, that runs a body in a loop for arguments like these; return its library in numba."""
    kinds = tuple(by_place(typeof(arg)) for arg in args)
    signature = (int64,) * loop.indices + kinds
    body.compile(signature)
    compiled = body.overloads[signature]
    context = compiled.target_context
    library = _KernelLibrary(context.codegen(), name)
    library.enable_object_caching()
    module = library.create_ir_module(name)
    kernel = ir.Function(module, ir.FunctionType(ir.IntType(32), [_WORD, _WORD, _WORD.as_pointer()]), name)
    first, last, packed = kernel.args
    builder = ir.IRBuilder(kernel.append_basic_block())
    slots = (builder.gep(packed, [_WORD(k)]) for k in itertools.count())
    values = [_value(context, builder, kind, slots) for kind in kinds]
    callee = context.declare_function(module, compiled.fndesc)

    def call(*indices: Any) -> None:
        context.call_conv.call_function(builder, callee, types.none, signature, [*indices, *values])

    before, head, inner, after = builder.block, *(kernel.append_basic_block() for _ in range(3))
    builder.branch(head)
    builder.position_at_end(head)
    i = builder.phi(_WORD)
    i.add_incoming(first, before)
    builder.cbranch(builder.icmp_signed("<", i, last), inner, after)
    builder.position_at_end(inner)
    step = loop.step(context, builder, i, last, (kinds[0], values[0]) if kinds else None, call)
    i.add_incoming(builder.add(i, step), builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    builder.ret(ir.IntType(32)(0))
    library.add_ir_module(module)
    library.link(compiled.library)
    library.finalize()
    return library


def address(library: Any, name: str) -> Callable[[int, int, bytes], int]:
    """Return a kernel of a library, ready to be called."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p)
    return kind(library.get_pointer_to_function(name))


class _KeptLibrary(CacheImpl):  # type: ignore[misc]
    def reduce(self, library: Any) -> Any:
        return library.serialize_using_object_code()

    def rebuild(self, context: Any, data: Any) -> Any:
        return context.codegen().unserialize_library(data)

    def check_cachable(self, _library: Any) -> bool:
        return True


class KernelCache(Cache):  # type: ignore[misc]
    """numba's cache on disk, of the libraries of a kernel."""

    _impl_class = _KeptLibrary
