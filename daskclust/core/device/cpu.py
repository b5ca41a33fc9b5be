"""SIMD lanes for numba on the CPU, and the CPU's versions of `core/device/operations.py`.

`Lanes(dtype)` is a numba type of `LANES` numbers that LLVM keeps in vector registers and splits where a machine's are
shorter. Operators work lane by lane, a scalar beside lanes is spread over them, so a kernel body reads as if it treated
one point.
"""

from __future__ import annotations

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.core.typing.templates import signature as typing_signature
from numba.extending import intrinsic, lower_builtin, register_model

from daskclust.core.device.cpu_scalars import element_pointer

LANES = 16
INT32 = ir.IntType(32)


class Lanes(types.Type):
    """Numba type of `LANES` values of one dtype."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        element = ir.IntType(1) if lanes.dtype is types.boolean else manager.lookup(lanes.dtype).get_value_type()
        super().__init__(manager, lanes, ir.VectorType(element, LANES))


MASK = Lanes(types.boolean)


def _spread(builder, value):
    vector = ir.VectorType(value.type, LANES)
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, INT32(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(INT32, LANES), [0] * LANES))


def _as_lanes(context, builder, value, given, wanted):
    """Cast a scalar of type `given` to the dtype of `wanted` and spread it; lanes pass through."""
    if isinstance(given, Lanes):
        return value
    return _spread(builder, context.cast(builder, value, given, wanted.dtype))


def _call(builder, name, result, arguments, flags=()):
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(result, [a.type for a in arguments]), name
    )
    return builder.call(function, arguments, fastmath=flags)


def _suffix(dtype):
    return ("f" if isinstance(dtype, types.Float) else "i") + str(dtype.bitwidth)


# ---------------------------------------------------------------------------------------------------------- operators
# Typing templates with code of their own: an `overload` would be compiled for each combination of types.
def _binary(symbol, instruction, result=None):
    """Give lanes the operator `symbol`, made by `instruction(builder, dtype, x, y)`."""

    class Operate(AbstractTemplate):
        key = symbol

        def generic(self, args, _keywords):
            lanes = next((t for t in args if isinstance(t, Lanes)), None)
            if lanes is None or not all(isinstance(t, (Lanes, types.Number, types.Boolean)) for t in args):
                return None
            return typing_signature(result or lanes, *args)

    def codegen(context, builder, signature, arguments):
        lanes = next(t for t in signature.args if isinstance(t, Lanes))
        a, b = (_as_lanes(context, builder, v, t, lanes) for v, t in zip(arguments, signature.args, strict=True))
        return instruction(builder, lanes.dtype, a, b)

    infer_global(symbol)(Operate)
    for kinds in ((Lanes, Lanes), (Lanes, types.Any), (types.Any, Lanes)):
        lower_builtin(symbol, *kinds)(codegen)


def _arithmetic(float_name, int_name):
    return lambda builder, dtype, a, b: getattr(builder, float_name if isinstance(dtype, types.Float) else int_name)(
        a, b
    )


def _comparison(symbol):
    def instruction(builder, dtype, a, b):
        if isinstance(dtype, types.Float):
            return builder.fcmp_ordered(symbol, a, b)
        return builder.icmp_signed(symbol, a, b)

    return instruction


_binary(operator.add, _arithmetic("fadd", "add"))
_binary(operator.sub, _arithmetic("fsub", "sub"))
_binary(operator.mul, _arithmetic("fmul", "mul"))
_binary(operator.truediv, _arithmetic("fdiv", "sdiv"))
_binary(operator.and_, lambda builder, _, a, b: builder.and_(a, b))
_binary(operator.or_, lambda builder, _, a, b: builder.or_(a, b))
for _symbol, _text in (
    (operator.lt, "<"), (operator.le, "<="), (operator.gt, ">"), (operator.ge, ">="), (operator.eq, "=="),
    (operator.ne, "!="),
):  # fmt: skip
    _binary(_symbol, _comparison(_text), MASK)


# ------------------------------------------------------------------------------------------------------ the vocabulary
_NUMBERS = ir.Constant(ir.VectorType(INT32, LANES), list(range(LANES)))


@intrinsic
def lane_width(_typing):
    def codegen(context, _builder, _signature, _arguments):
        return context.get_constant(types.int64, LANES)

    return types.int64(), codegen


@intrinsic
def places(_typing, i, value):
    def codegen(_context, builder, _signature, arguments):
        return builder.add(_spread(builder, builder.trunc(arguments[0], INT32)), _NUMBERS)

    return Lanes(types.int32)(types.int64, value), codegen


def _below(builder, count):
    """Return the mask of the first `count` lanes."""
    return builder.icmp_signed("<", _NUMBERS, _spread(builder, builder.trunc(count, INT32)))


def _load(context, builder, pointer, count, array_type):
    """Load lanes from `pointer`; those from `count` on repeat the first. Arrays are padded, so reading on is safe."""
    vector = context.get_value_type(Lanes(array_type.dtype))
    width = array_type.dtype.bitwidth // 8
    values = builder.load(builder.bitcast(pointer, vector.as_pointer()), align=width)
    return builder.select(_below(builder, count), values, _spread(builder, builder.extract_element(values, INT32(0))))


@intrinsic
def load(_typing, array, i, m):
    lanes = Lanes(array.dtype)

    def codegen(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, signature.args[0], arguments[0], [arguments[1]])
        return _load(context, builder, pointer, arguments[2], array)

    return lanes(array, types.intp, types.int64), codegen


@intrinsic
def point_at(_typing, positions, i, m, axes):
    result = types.UniTuple(Lanes(positions.dtype), len(axes))

    def codegen(context, builder, signature, arguments):
        loaded = []
        for k in range(len(axes)):
            axis = context.get_constant(types.intp, k)
            pointer = element_pointer(context, builder, signature.args[0], arguments[0], [axis, arguments[1]])
            loaded.append(_load(context, builder, pointer, arguments[2], positions))
        return context.make_tuple(builder, result, loaded)

    return result(positions, types.intp, types.int64, axes), codegen


@intrinsic
def store(_typing, array, i, m, value):
    def codegen(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, signature.args[0], arguments[0], [arguments[1]])
        vector = arguments[3].type
        pointer = builder.bitcast(pointer, vector.as_pointer())
        name = f"llvm.masked.store.v{LANES}{_suffix(array.dtype)}.p0"
        align = INT32(array.dtype.bitwidth // 8)
        _call(builder, name, ir.VoidType(), [arguments[3], pointer, align, _below(builder, arguments[2])])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64, Lanes(array.dtype)), codegen


@intrinsic
def like(_typing, value, number):
    def codegen(context, builder, signature, arguments):
        if isinstance(value, Lanes):
            return _as_lanes(context, builder, arguments[1], signature.args[1], value)
        return context.cast(builder, arguments[1], signature.args[1], value)

    return value(value, number), codegen


@intrinsic
def select(_typing, condition, yes, no):
    lanes = next((t for t in (yes, no) if isinstance(t, Lanes)), None)
    result = lanes or no

    def codegen(context, builder, signature, arguments):
        chosen = []
        for value, given in zip(arguments[1:], signature.args[1:], strict=True):
            chosen.append(
                _as_lanes(context, builder, value, given, lanes) if lanes else context.cast(builder, value, given, no)
            )
        return builder.select(arguments[0], *chosen)

    return result(condition, yes, no), codegen


@intrinsic
def bits_of(_typing, condition):
    def codegen(_context, builder, _signature, arguments):
        return builder.zext(builder.bitcast(arguments[0], ir.IntType(LANES)), ir.IntType(64))

    return types.int64(condition), codegen


def _reduction(float_name, int_name):
    @intrinsic
    def reduce(_typing, value):
        def codegen(_context, builder, _signature, arguments):
            name = float_name if isinstance(value.dtype, types.Float) else int_name
            vector = arguments[0]
            intrinsic_name = f"llvm.vector.reduce.{name}.v{LANES}{_suffix(value.dtype)}"
            flags = ("nnan",) if isinstance(value.dtype, types.Float) else ()  # no look for NaN at each step
            return _call(builder, intrinsic_name, vector.type.element, [vector], flags)

        return value.dtype(value), codegen

    return reduce


lowest = _reduction("fmin", "smin")
highest = _reduction("fmax", "smax")


@intrinsic
def team_barrier(_typing, blocks, arrived):
    def codegen(context, _builder, _signature, _arguments):
        return context.get_dummy_value()

    return types.void(blocks, arrived), codegen


@intrinsic
def block_barrier(_typing):
    def codegen(context, _builder, _signature, _arguments):
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def block_memory(_typing, size, spare):
    result = types.UniTuple(spare, 1)

    def codegen(context, builder, _signature, arguments):
        return context.make_tuple(builder, result, arguments[1:])

    return result(size, spare), codegen


def equal_run(context, builder, kind, array, i, last):
    """Return how many elements from `i` on, at most `LANES` and before `last`, equal ``array[i]``."""
    pointer = element_pointer(context, builder, kind, array, [i])
    vector = context.get_value_type(Lanes(kind.dtype))
    values = builder.load(builder.bitcast(pointer, vector.as_pointer()), align=kind.dtype.bitwidth // 8)
    first = _spread(builder, builder.extract_element(values, INT32(0)))
    differs = builder.icmp_signed("!=", values, first)
    word = ir.IntType(64)
    bits = builder.or_(builder.zext(builder.bitcast(differs, ir.IntType(LANES)), word), word(1 << LANES))
    run = builder.cttz(bits, ir.IntType(1)(0))
    left = builder.sub(last, i)
    return builder.select(builder.icmp_signed("<", run, left), run, left)


@intrinsic
def times(_typing, a, b):
    lanes = next((t for t in (a, b) if isinstance(t, Lanes)), None)
    result = lanes or a

    def codegen(context, builder, signature, arguments):
        if lanes:
            pair = [_as_lanes(context, builder, v, t, lanes) for v, t in zip(arguments, signature.args, strict=True)]
        else:
            pair = [context.cast(builder, v, t, a) for v, t in zip(arguments, signature.args, strict=True)]
        return builder.fmul(*pair)

    return result(a, b), codegen


def _call_on_number(builder, name, kind, *values):
    """Call LLVM's function of numbers, or of lanes."""
    shape, dtype = (f"v{LANES}", kind.dtype) if isinstance(kind, Lanes) else ("", kind)
    return _call(builder, f"llvm.{name}.{shape}{_suffix(dtype)}", values[0].type, list(values))


@intrinsic
def add_square(_typing, total, step):
    def codegen(_context, builder, _signature, arguments):
        return _call_on_number(builder, "fmuladd", step, arguments[1], arguments[1], arguments[0])

    return total(total, step), codegen


def _unary(name):
    @intrinsic
    def apply(_typing, value):
        def codegen(_context, builder, _signature, arguments):
            return _call_on_number(builder, name, value, arguments[0])

        return value(value), codegen

    return apply


square_root = _unary("sqrt")
nearest_whole = _unary("rint")


@infer_global(abs)
class _Absolute(AbstractTemplate):
    def generic(self, args, _keywords):
        is_real = isinstance(args[0], Lanes) and isinstance(args[0].dtype, types.Float)
        return typing_signature(args[0], args[0]) if is_real else None


@lower_builtin(abs, Lanes)
def _absolute(context, builder, signature, arguments):
    return _call_on_number(builder, "fabs", signature.args[0], arguments[0])


@intrinsic
def power_of_two(_typing, exponent):
    def codegen(_context, builder, _signature, arguments):
        dtype = exponent.dtype if isinstance(exponent, Lanes) else exponent
        return exponent_bits(builder, arguments[0], dtype.bitwidth)

    return exponent(exponent), codegen


def exponent_bits(builder, value, bits):
    """Build 2**value by writing its exponent field (`value` is whole and in range)."""
    integer = ir.IntType(bits)
    if isinstance(value.type, ir.VectorType):
        integer = ir.VectorType(integer, value.type.count)
    mantissa, bias = {32: (23, 127), 64: (52, 1023)}[bits]

    def constant(number):
        return ir.Constant(integer, [number] * LANES if isinstance(integer, ir.VectorType) else number)

    biased = builder.add(builder.fptosi(value, integer), constant(bias))
    return builder.bitcast(builder.shl(biased, constant(mantissa)), value.type)


@intrinsic
def lane(_typing, value, k):
    """Return lane `k` as a scalar."""

    def codegen(_context, builder, _signature, arguments):
        return builder.extract_element(*arguments)

    return value.dtype(value, types.int32), codegen


@intrinsic
def with_lane(_typing, value, k, number):
    """Return `value` with `number` in lane `k`."""

    def codegen(context, builder, signature, arguments):
        element = context.cast(builder, arguments[2], signature.args[2], value.dtype)
        return builder.insert_element(arguments[0], element, arguments[1])

    return value(value, types.int32, number), codegen
