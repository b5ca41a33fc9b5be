"""What numba-cuda needs code of its own for; `cuda_mlir.py` has the same for its successor."""

# mypy: ignore-errors
from __future__ import annotations

from llvmlite import ir
from numba import cuda
from numba.cuda import cgutils, types
from numba.cuda.extending import intrinsic
from numba.cuda.np.arrayobj import populate_array

from daskclust.core.device.cpu import exponent_bits
from daskclust.core.device.machine_code.cuda_arguments import made_of, volatile_load

device = cuda.jit(device=True)
inlined = cuda.jit(device=True, forceinline=True)
fence = device(lambda: cuda.threadfence())  # noqa: PLW0108


def loaded(compiled):
    """Return the kernel of cuda.core, on the current device, of what a dispatcher compiled."""
    return compiled._codelibrary.get_cufunc().kernel


def _pointer(context, builder, array, value, index):
    view = context.make_array(array)(context, builder, value)
    return cgutils.get_item_pointer(context, builder, array, view, index)


@intrinsic
def point_at(_typing, positions, i, m, axes):
    result = types.UniTuple(positions.dtype, len(axes))

    def codegen(context, builder, signature, arguments):
        places = [[context.get_constant(types.intp, k), arguments[1]] for k in range(len(axes))]
        pointers = [_pointer(context, builder, signature.args[0], arguments[0], place) for place in places]
        return context.make_tuple(builder, result, [builder.load(pointer) for pointer in pointers])

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


def libdevice(single, double):
    """Return a function of libdevice of one number, and one of two, the other cast to the type of the first."""

    def of(number):
        def codegen(context, builder, signature, arguments):
            kind, name = context.get_value_type(number), single if number == types.float32 else double
            cast = [context.cast(builder, v, t, number) for v, t in zip(arguments, signature.args, strict=True)]
            function = ir.FunctionType(kind, [kind] * len(cast))
            return builder.call(cgutils.get_or_insert_function(builder.module, function, name), cast)

        return codegen

    @intrinsic
    def one(_typing, a):
        return a(a), of(a)

    @intrinsic
    def two(_typing, a, b):
        return a(a, b), of(a)

    return one, two


@intrinsic
def power_of_two(_typing, exponent):
    def codegen(_context, builder, _signature, arguments):
        return exponent_bits(builder, arguments[0], exponent.bitwidth)

    return exponent(exponent), codegen


@intrinsic
def atomic_load(_typing, array, i):
    def codegen(context, builder, signature, arguments):
        pointer, item = (
            _pointer(context, builder, array, arguments[0], [arguments[1]]),
            context.get_value_type(array.dtype),
        )
        text, letters = volatile_load(array.dtype)
        return builder.call(
            ir.InlineAsm(ir.FunctionType(item, [pointer.type]), text, letters, side_effect=True), [pointer]
        )

    return array.dtype(array, types.intp), codegen


def rebuilding(wanted):
    """Return a function of machine code that makes arguments of the type `wanted` of flattened ones."""

    @intrinsic
    def rebuilt(_typing, flat):
        def codegen(context, builder, _signature, arguments):
            values = (builder.extract_value(arguments[0], k) for k in range(len(flat)))
            return made_of(_Making(context, builder), wanted, zip(flat, values, strict=True))

        return wanted(flat), codegen

    rebuilt.wanted = wanted
    return rebuilt


class _Making:
    def __init__(self, context, builder):
        self.context, self.builder, self.one = context, builder, context.get_constant(types.intp, 1)
        self.multiply = builder.mul

    def group(self, kind, values):
        return self.context.make_tuple(self.builder, kind, values)

    def read(self, _kind, pointer):
        return self.builder.load(pointer)

    def array(self, kind, data, shape, strides):
        item = self.context.get_constant(
            types.intp, self.context.get_abi_sizeof(self.context.get_data_type(kind.dtype))
        )
        array = self.context.make_array(kind)(self.context, self.builder)
        populate_array(array, data, shape, [self.builder.mul(stride, item) for stride in strides], item, None)
        return array._getvalue()
