"""Data sets on a GPU, and back in host memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import xarray as xr

from daskclust.core.data.lazy import meta_of
from daskclust.core.device.arrays import cupy_module, is_cuda, is_dask, to_host
from daskclust.io.blocks import native

_NUMBERS = "fiub"  # kinds of dtypes that a GPU has


def to_device(ds: xr.Dataset, device: Literal["cpu", "cuda"]) -> xr.Dataset:
    """Return a Dataset with its numbers on a GPU, or in host memory: there its estimators and ``ds.clust`` work.

    Parameters
    ----------
    ds : xarray.Dataset
        Variables in memory, on a GPU, or lazy. It is not changed.
    device : {"cpu", "cuda"}
        ``"cuda"``: CuPy arrays on the current GPU; ``"cpu"``: NumPy arrays.

    Returns
    -------
    xarray.Dataset
        The same names, types, coordinates, attributes and chunks, in native byte order. Lazy variables stay lazy: their
        chunks go over on the workers, as they are needed. Texts, times, and coordinates that are indexes stay in host
        memory; what is on the device already is not copied.

    Raises
    ------
    ImportError, ValueError
        Where CuPy is missing, with ``"cuda"``; for another device.

    Examples
    --------
    >>> ds = xr.Dataset({"x": ("hit", [0.0, 1.0])})
    >>> on_gpu = to_device(ds, "cuda").clust.clue(1.0, 2.0)  # doctest: +SKIP
    >>> to_device(on_gpu, "cpu")["label"].values  # doctest: +SKIP
    array([0, 0])
    """
    if not isinstance(ds, xr.Dataset):
        raise TypeError(f"ds must be an xarray.Dataset, got {type(ds).__name__}; cupy.asarray takes arrays")
    if device not in ("cpu", "cuda"):
        raise ValueError(f'device must be "cpu" or "cuda", got {device!r}')
    move = _to_gpu if device == "cuda" else to_host
    moved = {}
    for name, variable in ds.variables.items():
        if variable.dtype.kind in _NUMBERS and name not in ds.xindexes:
            data = variable.data
            if not is_dask(data):
                data = move(data)
            elif is_cuda(before := meta_of(data)) != is_cuda(meta := move(before)):
                token = f"daskclust-io-to-{'gpu' if move is _to_gpu else 'host'}"
                data = data.map_blocks(move, dtype=meta.dtype, meta=meta, token=token)
            moved[name] = variable.copy(data=data)
    return ds.assign(moved)


def check_on_host(step: str, arrays: Mapping[str, Any]) -> None:
    """Raise a TypeError that names the first of some arrays, or dask arrays of such, that is on a GPU."""
    for name, array in arrays.items():
        if is_cuda(meta_of(array) if is_dask(array) else array):
            raise TypeError(
                f"{step} needs arrays in host memory, and {name} is on a GPU; copy it first: ds.as_numpy() for a "
                "Dataset, cupy.asnumpy(array) for an array"
            )


def _to_gpu(values: Any) -> Any:
    return values if is_cuda(values) else cupy_module().asarray(native(np.asarray(values)))
