"""Arguments of a kernel as its machine code takes them: one 64-bit number each, with the types beside.

An array is the address of its NumPy object, from which machine code reads data, shape and strides: their places are
part of NumPy's binary interface (``PyArrayObject_fields``), the same in NumPy 1 and 2.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

Kinds = tuple[str, ...]
"""Types of arguments, tuples written with parentheses."""

HEADER = object.__basicsize__
"""Bytes before the fields of an object: 16, but more in Python without its lock."""


def flatten(args: tuple[Any, ...]) -> tuple[Kinds, str, list[Any]]:
    """Return the types of arguments, their format for `struct` and their values; arrays must stay alive meanwhile."""
    kinds: list[str] = []
    formats: list[str] = []
    values: list[Any] = []
    _flatten(args, kinds, formats, values)
    return tuple(kinds), "".join(formats), values


def packed(form: str, values: list[Any]) -> bytes:
    """Return flattened arguments as machine code reads them."""
    return struct.pack(form, *values)


def plain(kinds: Kinds) -> Kinds:
    """Return types without the marks of arrays that are read-only, or do not begin at a multiple of their items' size.

    Workers get such from others. Machine code is the same for the first, and serves the second on processors of today;
    only what is added to by atomic operations must be aligned, which we allocate.
    """
    return tuple(kind.rstrip("ru") for kind in kinds)


def _flatten(args: tuple[Any, ...], kinds: list[str], formats: list[str], values: list[Any]) -> None:
    for value in args:
        kind = type(value)
        if kind is np.ndarray:
            described = value.dtype, value.ndim, value.flags.num
            kinds.append(_ARRAYS.get(described) or _array_kind(value, described))
            formats.append("q")
            values.append(id(value))
        elif isinstance(value, tuple):
            kinds.append(kind.__name__ + "(")
            _flatten(value, kinds, formats, values)
            kinds.append(")")
        else:
            name, form = _SCALARS.get(kind) or scalar_kind(kind)
            kinds.append(name)
            formats.append(form)
            values.append(value if kind is not np.bool_ else bool(value))


_ARRAYS: dict[Any, str] = {}
_SCALARS: dict[type, tuple[str, str]] = {int: ("i8", "q"), float: ("f8", "d"), bool: ("b1", "q")}


def _array_kind(array: np.ndarray, described: Any) -> str:
    """Return the name of an array's type, such as ``f4[2,C]``, then ``r`` if read-only, ``u`` if unaligned."""
    flags = array.flags
    odd = ("" if flags.writeable else "r") + ("" if flags.aligned else "u")
    name = f"{array.dtype.str[1:]}[{array.ndim},{layout_of(array)}]{odd}"
    if array.dtype.isnative:
        _ARRAYS[described] = name
    return name if array.dtype.isnative else "swapped " + name


def layout_of(array: Any) -> str:
    """Return numba's letter for how an array lies in memory: in order of C or Fortran, or any other."""
    flags = array.flags
    return "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"


def scalar_kind(kind: type) -> tuple[str, str]:
    """Return the name of a number's type and its letter in `struct`."""
    dtype = np.dtype(kind)
    _SCALARS[kind] = dtype.str[1:], {"f": "d", "u": "Q"}.get(dtype.kind, "q")
    return _SCALARS[kind]
