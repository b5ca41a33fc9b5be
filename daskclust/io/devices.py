"""Where the arrays of a data set are: on a GPU, in host memory, or in a file, from which they are read when used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from daskclust.core.data.lazy import meta_of
from daskclust.core.device.arrays import cupy_module, is_cuda, is_dask, to_host
from daskclust.io.blocks import native
from daskclust.io.rows import ReadRows

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


# ----------------------------------------------------------------------------------------------------------- on demand
class _ColumnArray(BackendArray):
    """A column, of which xarray reads the rows that are asked for."""

    def __init__(self, read: ReadRows, length: int, dtype: Any) -> None:
        self.read, self.shape, self.dtype = read, (length,), np.dtype(dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Return the rows that a key chooses."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._rows)

    def _rows(self, key: tuple[Any, ...]) -> Any:
        (chosen,) = key
        if isinstance(chosen, slice):
            start, stop, step = chosen.indices(self.shape[0])  # xarray reverses rows itself: steps are positive
            return self.read(start, stop)[::step]
        return self.read(chosen, chosen + 1)[0]


def on_demand(
    dim: str, read: ReadRows, length: int, dtype: Any, attrs: Mapping[str, Any], steps: tuple[int, ...] | None
) -> xr.Variable:
    """Return a column whose rows start to stop are read when they are used, best in `steps` of so many rows."""
    values = indexing.LazilyIndexedArray(_ColumnArray(read, length, dtype))
    return xr.Variable(dim, values, attrs, {"preferred_chunks": {dim: steps}})
