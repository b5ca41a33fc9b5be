"""What numba-cuda-mlir needs code of its own for; `cuda_numba.py` has the same for numba-cuda."""

# mypy: ignore-errors
from __future__ import annotations

import functools

from cuda.core import ObjectCode
from numba_cuda_mlir import cuda
from numba_cuda_mlir import lowering_utilities as lowering
from numba_cuda_mlir._mlir import ir
from numba_cuda_mlir._mlir.dialects import arith, builtin, func, llvm, memref
from numba_cuda_mlir._mlir.extras import types as mlir
from numba_cuda_mlir.extending import intrinsic, lower_builtin, refresh_registries
from numba_cuda_mlir.models import UniTupleModel
from numba_cuda_mlir.numba_cuda import types

from daskclust.core.device.machine_code.cuda_arguments import made_of, volatile_load

device = cuda.jit(device=True)
# 0.6.0 takes a tuple of one, which a function returns, for its element
UniTupleModel.from_return = lambda model, builder, value: model.from_data(
    builder, value if isinstance(value, tuple) else (value,)
)


def inlined(function):
    """Compile a body: MLIR inlines it; before types are known, as is done else, ``*args`` would fail."""
    for value in map(function.__globals__.get, function.__code__.co_names):
        if isinstance(value, type) and hasattr(value, "_fields"):
            _construct(value)
    return cuda.jit(device=True, forceinline=True, inline=lambda call, caller, callee: False)(function)


def loaded(compiled):
    """Return the kernel of cuda.core of what a dispatcher compiled."""
    return ObjectCode.from_cubin(compiled.metadata["cubin"]).get_kernel(compiled.metadata["func_name"])


def _cast(builder, value, given, wanted):
    if isinstance(wanted, types.Array):
        return value
    return lowering.convert(value, builder.get_mlir_type(wanted), signed=getattr(given, "signed", False))


def _place(builder, value, kind):
    return lowering.index_of(_cast(builder, value, kind, types.int64))


def _known(define):
    """Make an intrinsic that is known although something may have been compiled before."""
    made = intrinsic(define)
    refresh_registries(include_uninitialized_cuda=False)
    return made


def _typed(make):
    """Let `make(builder, kinds, *values)` be the code of an intrinsic."""

    def codegen(builder, target, args, _keywords):
        kinds = [builder.get_numba_type(each.name) for each in args]
        builder.store_var(target, make(builder, kinds, *(builder.load_var(each) for each in args)))

    return codegen


@lower_builtin(len, types.Array)
def _length(builder, target, args, keywords):
    """Take the length of the first axis, where 0.6.0 takes the number of all elements."""
    _typed(lambda _, kinds, array: lowering.convert(memref.dim(array, lowering.index_of(0)), mlir.i64()))(
        builder, target, args, keywords
    )


@intrinsic
def point_at(_typing, positions, i, m, axes):
    def codegen(builder, kinds, array, at, *_):
        at = _place(builder, at, kinds[1])
        return tuple(memref.load(array, [lowering.index_of(k), at]) for k in range(len(axes)))

    return types.UniTuple(positions.dtype, len(axes))(positions, i, m, axes), _typed(codegen)


@intrinsic
def like(_typing, value, number):
    return value(value, number), _typed(lambda builder, kinds, _, given: _cast(builder, given, kinds[1], value))


@intrinsic
def select(_typing, condition, yes, no):
    def codegen(builder, kinds, held, *chosen):
        chosen = (_cast(builder, v, t, no) for v, t in zip(chosen, kinds[1:], strict=True))
        return arith.select(_cast(builder, held, kinds[0], types.boolean), *chosen)

    return no(condition, yes, no), _typed(codegen)


def libdevice(single, double):
    """Return a function of libdevice of one number, and one of two, the other cast to the type of the first."""

    def of(number):
        def codegen(builder, kinds, *values):
            cast = [_cast(builder, v, t, number) for v, t in zip(values, kinds, strict=True)]
            kind = ir.FunctionType.get([v.type for v in cast], [cast[0].type])
            name = single if number == types.float32 else double
            callee = lowering.get_or_insert_function(name, kind, builder.mlir_gpu_module)
            return func.call(result=[cast[0].type], callee=callee.name.value, operands_=cast)

        return _typed(codegen)

    @_known
    def one(_typing, a):
        return a(a), of(a)

    @_known
    def two(_typing, a, b):
        return a(a, b), of(a)

    return one, two


@intrinsic
def power_of_two(_typing, exponent):
    def codegen(_builder, _kinds, value):
        word, mantissa, bias = (mlir.i32(), 23, 127) if exponent.bitwidth == 32 else (mlir.i64(), 52, 1023)
        biased = arith.addi(arith.fptosi(word, value), arith.constant(word, bias))
        return arith.bitcast(value.type, arith.shli(biased, arith.constant(word, mantissa)))

    return exponent(exponent), _typed(codegen)


@intrinsic
def atomic_load(_typing, array, i):
    def codegen(builder, kinds, values, at):
        item, (text, letters) = builder.get_mlir_type(array.dtype), volatile_load(array.dtype)
        place = lowering.memref_to_llvm_ptr(values, [_place(builder, at, kinds[1])], item)
        return llvm.inline_asm(item, [place], text, letters, has_side_effects=True)

    return array.dtype(array, i), _typed(codegen)


@intrinsic
def fence(_typing):
    """Stand for `cuda.threadfence`, which 0.6.0 has not."""

    def codegen(*_):
        llvm.inline_asm(None, [], "membar.gl;", "~{memory}", has_side_effects=True)

    return types.none(), codegen


def rebuilding(wanted):
    """Return a function of machine code that makes arguments of the type `wanted` of flattened ones."""

    @_known
    def rebuilt(_typing, flat):
        def codegen(builder, kinds, values):
            return made_of(_Making(builder), wanted, zip(kinds[0], values, strict=True))

        return wanted(flat), _typed(codegen)

    rebuilt.wanted = wanted
    return rebuilt


@functools.cache
def _construct(cls):
    """Let kernels make named tuples of a class, which 0.6.0 does not."""

    @lower_builtin(cls, types.VarArg(types.Any))
    def made(builder, target, args, keywords):
        wanted = builder.get_numba_type(target.name)
        cast = _typed(lambda _, kinds, *values: tuple(map(_cast, [builder] * len(kinds), values, kinds, wanted)))
        cast(builder, target, args, keywords)

    refresh_registries(include_uninitialized_cuda=False)


class _Making:
    def __init__(self, builder):
        self.builder, self.one, self.multiply = builder, arith.constant(mlir.i64(), 1), arith.muli

    def group(self, _kind, values):
        return tuple(values)

    def read(self, kind, pointer):
        return llvm.load(self.builder.get_mlir_type(kind), pointer)

    def array(self, kind, data, shape, strides):
        parts = {(0,): data, (1,): data, (2,): arith.constant(mlir.i64(), 0)}
        parts |= {(3, k): length for k, length in enumerate(shape)} | {(4, k): step for k, step in enumerate(strides)}
        whole = llvm.UndefOp(lowering.memref_descriptor_type(kind.ndim)).result
        for place, part in parts.items():
            whole = llvm.insertvalue(container=whole, value=part, position=ir.DenseI64ArrayAttr.get(list(place)))
        return builtin.unrealized_conversion_cast([self.builder.get_mlir_type(kind)], [whole])
