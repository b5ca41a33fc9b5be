"""CPU versions of the operations of `core/device/operations.py` on bit masks."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_FOUR = 4


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
def lowest_bit(_typing, mask):
    def codegen(_context, builder, _signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return mask(mask), codegen


@intrinsic
def count_bits(_typing, mask):
    def codegen(_context, builder, _signature, arguments):
        return builder.ctpop(arguments[0])

    return mask(mask), codegen
