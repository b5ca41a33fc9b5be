"""The CPU's versions of the operations of `operations.py` that treat one number: bit masks and atomics."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_FOUR = 4


def element_pointer(context, builder, array_type, array, indices):
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, view, indices)


@intrinsic
def copy_four(_typing, source, at, target, to, least):
    sig = types.int32(source, types.intp, target, types.intp, source.dtype)

    def codegen(context, builder, signature, arguments):
        lanes = ir.VectorType(context.get_value_type(source.dtype), _FOUR)
        pointers = []
        for kind, array, i in ((source, *arguments[0:2]), (target, *arguments[2:4])):
            data = context.make_array(kind)(context, builder, array).data
            pointers.append(builder.bitcast(builder.gep(data, [i]), lanes.as_pointer()))
        values = builder.load(pointers[0], align=source.dtype.bitwidth // 8)
        builder.store(values, pointers[1], align=source.dtype.bitwidth // 8)
        first = builder.insert_element(ir.Constant(lanes, ir.Undefined), arguments[4], ir.Constant(ir.IntType(32), 0))
        spread = ir.Constant(ir.VectorType(ir.IntType(32), _FOUR), [0] * _FOUR)
        bound = builder.shuffle_vector(first, ir.Constant(lanes, ir.Undefined), spread)
        bits = builder.bitcast(builder.icmp_signed(">=", values, bound), ir.IntType(_FOUR))
        return builder.zext(bits, ir.IntType(32))

    return sig, codegen


@intrinsic
def word_at(_typing, data, place):
    def codegen(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, signature.args[0], arguments[0], [arguments[1]])
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, types.intp), codegen


@intrinsic
def lowest_bit(_typing, mask):
    def codegen(_context, builder, _signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return mask(mask), codegen


@intrinsic
def count_bits(_typing, mask):
    def codegen(_context, builder, _signature, arguments):
        return builder.ctpop(arguments[0])

    return mask(mask), codegen


# -------------------------------------------------------------------------------------------------------------- atomics
def _atomic(integer_operation, float_operation=None):
    @intrinsic
    def update(_typing, array, i, value):
        def codegen(context, builder, signature, arguments):
            pointer = element_pointer(context, builder, signature.args[0], arguments[0], [arguments[1]])
            number = context.cast(builder, arguments[2], signature.args[2], array.dtype)
            operation = integer_operation
            if isinstance(array.dtype, types.Float):
                operation = float_operation
            elif not array.dtype.signed and operation in ("min", "max"):
                operation = "u" + operation
            if operation is None:
                raise NotImplementedError(f"atomic {integer_operation} on {array.dtype}")
            return builder.atomic_rmw(operation, pointer, number, "monotonic")

        return array.dtype(array, types.intp, value), codegen

    return update


atomic_add = _atomic("add", "fadd")
atomic_min = _atomic("min", "fmin")
atomic_max = _atomic("max", "fmax")


@intrinsic
def atomic_cas(_typing, array, i, old, new):
    def codegen(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, signature.args[0], arguments[0], [arguments[1]])
        expected = context.cast(builder, arguments[2], signature.args[2], array.dtype)
        wanted = context.cast(builder, arguments[3], signature.args[3], array.dtype)
        return builder.extract_value(builder.cmpxchg(pointer, expected, wanted, "monotonic", "monotonic"), 0)

    return array.dtype(array, types.intp, old, new), codegen


@intrinsic
def atomic_load(_typing, array, i):
    def codegen(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, signature.args[0], arguments[0], [arguments[1]])
        return builder.load_atomic(pointer, "monotonic", array.dtype.bitwidth // 8)

    return array.dtype(array, types.intp), codegen
