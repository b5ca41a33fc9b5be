"""Arguments of a CUDA kernel as it takes them: numbers one by one, an array as its address and lengths.

numba itself passes an array as five numbers and two for each axis; machine code makes its array of these. An array
without axes is a number on the device, which kernels read there: the host need not know it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from daskclust.core.device.cuda_compiler import types
from daskclust.core.device.machine_code.arguments import layout_of, scalar_kind


def signature(n: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, Any]]:
    """Return numba's type of a kernel's arguments, and the types that it is compiled for: of `n` and flattened."""
    first = types.int64 if isinstance(n, int) else types.CPointer(types.int32)
    return _type_of(args), (first, types.Tuple(list(_flat_types(args))))


def _type_of(value: Any) -> Any:
    if isinstance(value, tuple):
        fields = [_type_of(field) for field in value]
        return types.NamedTuple(fields, type(value)) if hasattr(value, "_fields") else types.Tuple(fields)
    if _is_array(value) and value.ndim:
        return types.Array(_number(value.dtype), value.ndim, layout_of(value))
    return _number(value.dtype if _is_array(value) else np.dtype(scalar_kind(type(value))[0]))


def _number(dtype: Any) -> Any:
    return getattr(types, np.dtype(dtype).name)


def _is_array(value: Any) -> bool:
    return hasattr(value, "strides") and not isinstance(value, np.generic)


def _flat_types(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for field in value:
            yield from _flat_types(field)
    elif _is_array(value):
        yield types.CPointer(_number(value.dtype))
        yield from [types.int64] * (value.ndim * (2 if value.ndim and layout_of(value) == "A" else 1))
    else:
        yield _type_of(value)


def made_of(making: Any, kind: Any, slots: Iterator[tuple[Any, Any]]) -> Any:
    """Let a compiler make an argument of the numbers that it has among the flattened ones, strides in elements."""
    if isinstance(kind, types.BaseTuple):
        return making.group(kind, [made_of(making, field, slots) for field in kind])
    given, number = next(slots)
    if not isinstance(kind, types.Array):
        return making.read(kind, number) if isinstance(given, types.CPointer) else number
    shape = [next(slots)[1] for _ in range(kind.ndim)]
    if kind.layout == "A":
        return making.array(kind, number, shape, [next(slots)[1] for _ in shape])
    lengths = shape if kind.layout == "F" else shape[::-1]
    strides = list(itertools.accumulate(lengths[:-1], making.multiply, initial=making.one))
    return making.array(kind, number, shape, strides if kind.layout == "F" else strides[::-1])


def volatile_load(dtype: Any) -> tuple[str, str]:
    """Return an instruction, and its constraints, that loads what threads write: not what it was before, from a cache.

    numba's `ldcg` may be moved out of a loop.
    """
    kind, letters = ("f", {32: "f", 64: "d"}) if isinstance(dtype, types.Float) else ("b", {32: "r", 64: "l"})
    return f"ld.volatile.global.{kind}{dtype.bitwidth} $0, [$1];", f"={letters[dtype.bitwidth]},l"
