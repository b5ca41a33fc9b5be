"""CUDA's versions of `core/device/operations.py`: one point a thread.

What is missing here is the plain function of `operations.py`, compiled as it stands.
"""

from __future__ import annotations

from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import intrinsic

from daskclust.core.device.cuda_compiler import compiler

cuda = compiler()


@intrinsic
def point_at(_typing, positions, i, m, axes):
    from numba.cuda import cgutils

    result = types.UniTuple(positions.dtype, len(axes))

    def codegen(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        loaded = []
        for k in range(len(axes)):
            index = [context.get_constant(types.intp, k), arguments[1]]
            pointer = cgutils.get_item_pointer(context, builder, signature.args[0], view, index)
            loaded.append(builder.load(pointer))
        return context.make_tuple(builder, result, loaded)

    return result(positions, types.intp, m, axes), codegen


@intrinsic
def like(_typing, value, number):
    def codegen(context, builder, signature, arguments):
        return context.cast(builder, arguments[1], signature.args[1], value)

    return value(value, number), codegen


@intrinsic
def select(_typing, condition, yes, no):
    def codegen(context, builder, signature, arguments):
        chosen = [context.cast(builder, v, t, no) for v, t in zip(arguments[1:], signature.args[1:], strict=True)]
        return builder.select(arguments[0], *chosen)

    return no(condition, yes, no), codegen


@cuda.jit(device=True)
def bits_of(condition):
    return types.int64(condition)


@intrinsic
def times(_typing, a, b):
    """`mul.rn` is the multiplication that the assembler may not fuse with an addition."""

    def codegen(context, builder, signature, arguments):
        pair = [context.cast(builder, v, t, a) for v, t in zip(arguments, signature.args, strict=True)]
        return _call(builder, "__nv_fmul_rn" if a == types.float32 else "__nv_dmul_rn", pair)

    return a(a, b), codegen


def _call(builder, name, arguments):  # type: ignore[no-untyped-def]
    """Call a function of libdevice on numbers of one type."""
    number = arguments[0].type
    known = builder.module.globals.get(name)
    function = known or ir.Function(builder.module, ir.FunctionType(number, [number] * len(arguments)), name)
    return builder.call(function, arguments)


def _libdevice(single: str, double: str):  # type: ignore[no-untyped-def]
    """Return a function of one number that keeps its precision."""

    @intrinsic
    def apply(_typing, value):  # type: ignore[no-untyped-def]
        def codegen(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
            return _call(builder, single if value == types.float32 else double, arguments)

        return value(value), codegen

    return apply


square_root = _libdevice("__nv_sqrtf", "__nv_sqrt")
nearest_whole = _libdevice("__nv_rintf", "__nv_rint")


@intrinsic
def power_of_two(_typing, exponent):
    def codegen(_context, builder, _signature, arguments):
        from daskclust.core.device.cpu import exponent_bits

        return exponent_bits(builder, arguments[0], exponent.bitwidth)

    return exponent(exponent), codegen


@cuda.jit(device=True)
def atomic_add(array, i, value):
    return cuda.atomic.add(array, i, value)


@cuda.jit(device=True)
def atomic_min(array, i, value):
    return cuda.atomic.min(array, i, value)


@cuda.jit(device=True)
def atomic_max(array, i, value):
    return cuda.atomic.max(array, i, value)


@cuda.jit(device=True)
def atomic_cas(array, i, old, new):
    return cuda.atomic.cas(array, i, old, new)


@cuda.jit(device=True)
def block_barrier():
    cuda.syncthreads()


@cuda.jit(device=True)
def block_memory(size, spare):
    shared = cuda.shared.array(0, types.float64)  # as long as the launch says
    return ((shared if len(shared) >= size else spare),)


@intrinsic
def atomic_load(_typing, array, i):
    """Load what neither the compiler nor the first-level cache may answer by what it was before.

    numba's `ldcg` may be moved out of a loop.
    """
    from numba.cuda import cgutils

    def codegen(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = cgutils.get_item_pointer(context, builder, signature.args[0], view, [arguments[1]])
        item, bits = context.get_value_type(array.dtype), array.dtype.bitwidth
        kind, letter = ("f", {32: "f", 64: "d"}) if isinstance(array.dtype, types.Float) else ("b", {32: "r", 64: "l"})
        load = f"ld.volatile.global.{kind}{bits} $0, [$1];"
        function = ir.FunctionType(item, [item.as_pointer()])
        return builder.call(ir.InlineAsm(function, load, f"={letter[bits]},l", side_effect=True), [pointer])

    return array.dtype(array, types.intp), codegen


@cuda.jit(device=True)
def team_barrier(blocks, arrived):
    cuda.syncthreads()
    if blocks > 1:
        if cuda.threadIdx.x == 0:
            cuda.threadfence()
            before = types.uint32(cuda.atomic.add(arrived, 0, 1))
            wanted = before - before % types.uint32(blocks) + types.uint32(blocks)
            while types.uint32(cuda.atomic.add(arrived, 0, 0)) < wanted:
                pass
            cuda.threadfence()
        cuda.syncthreads()


@cuda.jit(device=True)
def copy_four(source, at, target, to, least):
    mask = 0
    for k in range(4):
        target[to + k] = source[at + k]
        if source[at + k] >= least:
            mask |= 1 << k
    return mask


@cuda.jit(device=True)
def lowest_bit(mask):
    return cuda.ffs(mask) - 1


@cuda.jit(device=True)
def count_bits(mask):
    return cuda.popc(mask)
