"""What works in host memory alone says so, rather than to copy arrays from a GPU in silence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from daskclust.core.data.lazy import meta_of
from daskclust.core.device.arrays import is_cuda, is_dask


def check_on_host(step: str, arrays: Mapping[str, Any]) -> None:
    """Raise a TypeError that names the first of some arrays, or dask arrays of such, that is on a GPU."""
    for name, array in arrays.items():
        if is_cuda(meta_of(array) if is_dask(array) else array):
            raise TypeError(
                f"{step} needs arrays in host memory, and {name} is on a GPU; copy it first: ds.as_numpy() for a "
                "Dataset, cupy.asnumpy(array) for an array"
            )
