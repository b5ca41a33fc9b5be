"""Arguments of a CUDA kernel as it takes them: numbers one by one, an array as its address and lengths.

numba itself passes an array as five numbers and two for each axis; machine code makes its array of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.extending import intrinsic
from numba.cuda.np.arrayobj import populate_array
from numba.cuda.np.numpy_support import from_dtype

from daskclust.core.device.machine_code.arguments import layout_of, scalar_kind


def signature(args: tuple[Any, ...]) -> tuple[Any, tuple[Any, Any]]:
    """Return numba's type of arguments, and the types that a kernel is compiled for: its first, and all flattened."""
    wanted = _type_of(args)
    return wanted, (types.int64, types.Tuple(list(_flat_types(wanted))))


def packing(flat: Any) -> str:
    """Return the format for `struct` of flattened arguments, eight bytes each."""
    return "".join(_character(kind) for kind in flat)


def _character(kind: Any) -> str:
    if isinstance(kind, types.Float):
        return "d" if kind.bitwidth == 64 else "f4x"
    return "Q" if kind == types.uint64 or isinstance(kind, types.CPointer) else "q"


def _type_of(value: Any) -> Any:
    if isinstance(value, tuple):
        fields = [_type_of(field) for field in value]
        return types.NamedTuple(fields, type(value)) if hasattr(value, "_fields") else types.Tuple(fields)
    if hasattr(value, "strides") and not isinstance(value, np.generic):
        return types.Array(from_dtype(value.dtype), value.ndim, layout_of(value))
    return from_dtype(np.dtype(scalar_kind(type(value))[0]))


def _flat_types(kind: Any) -> Iterator[Any]:
    if isinstance(kind, types.BaseTuple):
        for field in kind:
            yield from _flat_types(field)
    elif isinstance(kind, types.Array):
        yield types.CPointer(kind.dtype)
        yield from [types.int64] * (kind.ndim * (2 if kind.layout == "A" else 1))
    else:
        yield kind


def rebuilding(wanted: Any) -> Any:
    """Return a function of machine code that makes arguments of the type `wanted` of flattened ones."""

    @intrinsic
    def rebuilt(_typing, flat):  # type: ignore[no-untyped-def]
        def codegen(context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
            slots = (builder.extract_value(arguments[0], k) for k in range(len(flat)))
            return _value(context, builder, wanted, slots)

        return wanted(flat), codegen

    rebuilt.wanted = wanted
    return rebuilt


def _value(context: Any, builder: Any, kind: Any, slots: Iterator[Any]) -> Any:
    """Return an argument, made of the numbers that it has among the flattened ones."""
    if isinstance(kind, types.BaseTuple):
        return context.make_tuple(builder, kind, [_value(context, builder, field, slots) for field in kind])
    if not isinstance(kind, types.Array):
        return next(slots)
    data = next(slots)
    shape = [next(slots) for _ in range(kind.ndim)]
    item = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = _strides(builder, kind, shape, item, slots)
    array = context.make_array(kind)(context, builder)
    populate_array(array, data, shape, strides, item, None)
    return array._getvalue()


def _strides(builder: Any, kind: Any, shape: list[Any], item: Any, slots: Iterator[Any]) -> list[Any]:
    if kind.layout == "A":
        return [next(slots) for _ in shape]
    lengths = shape if kind.layout == "F" else shape[::-1]
    strides = [item]
    for length in lengths[:-1]:
        strides.append(builder.mul(strides[-1], length))
    return strides if kind.layout == "F" else strides[::-1]
