"""Objects of any kind as elements of arrays, as dask's arrays are made of arrays alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

_OTHER = 64  # bytes of an object that is no array, roughly


class Box(np.ndarray):
    """An array of objects."""

    @property
    def nbytes(self) -> int:
        """How much memory it takes with its objects, as dask wants to know: it spills by it."""
        return sum(map(_size_of, self.ravel()))


def _size_of(value: Any) -> int:
    """Return the bytes of the arrays in an object."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    parts: Sequence[Any] = ()
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif is_dataclass(value):
        parts = [getattr(value, each.name) for each in fields(value)]
    elif isinstance(value, list | tuple):
        parts = value
    return _OTHER + sum(map(_size_of, parts))


def boxed(values: Sequence[Any], shape: tuple[int, int] = (1, 1)) -> Box:
    """Return objects as an array of this shape."""
    box = np.empty(shape, object).view(Box)
    for k, value in enumerate(values):
        box.flat[k] = value
    return box


def unboxed(box: Any) -> Any:
    """Return the one object in an array, which may be in a list of one, or a number in a tuple."""
    while isinstance(box, list):
        (box,) = box
    return box[0] if isinstance(box, tuple) else box[0, 0]


def listed(box: Any) -> list[Any]:
    """Return all objects in an array, which may be in a list of one."""
    while isinstance(box, list):
        (box,) = box
    return list(box.ravel())
