"""Functions of the variables of hits, hit by hit: at once, or block by block where they are dask arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.quote import listed
from daskclust.core.data.units import hit_column
from daskclust.io.host import check_on_host


def hits_with(ds: xr.Dataset, names: list[str], step: str) -> xr.Dataset:
    """Return a data set with some variables in the units of Timepix hits; refuse one without them, or on a GPU."""
    missing = [name for name in names if name not in ds]
    if missing:
        raise ValueError(f"{step} needs the variable {missing[0]!r}; the Dataset has {listed(ds)}")
    check_on_host(step, {name: ds[name].data for name in names})
    return ds.assign({name: found for name in names if (found := hit_column(ds[name], name)).data is not ds[name].data})


def is_lazy(ds: xr.Dataset, names: list[str]) -> bool:
    """Return whether any of some variables is a dask array."""
    return any(hasattr(ds[name].data, "__dask_graph__") for name in names)


def over_blocks(
    ds: xr.Dataset,
    names: list[str],
    function: Callable[..., npt.NDArray[Any]],
    dtype: np.dtype[Any],
    step: str,
    options: Mapping[str, Any],
) -> xr.DataArray:
    """Return a function of some variables, hit by hit, at once or block by block."""
    if not is_lazy(ds, names):
        values = function(*(ds[name].values for name in names), **options)
        return xr.DataArray(values, dims=ds[names[0]].dims)
    import dask.array as da
    from dask.base import tokenize
    from dask.delayed import delayed

    parts = ds[names].unify_chunks()
    arrays = [da.asarray(parts[name].data) for name in names]  # type: ignore[no-untyped-call,unused-ignore]
    chunks = next(array.chunks for array, name in zip(arrays, names, strict=True) if parts[name].chunks)
    arrays = [array.rechunk(chunks) for array in arrays]
    token = tokenize(names, options, *(array.name for array in arrays))
    # One object in the graph, rather than one in each task: a calibration has 2 MB.
    shared = delayed(dict(options), name=f"daskclust-io-options-{token}", traverse=False)
    result = da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
        _with_options,
        *arrays,
        function=function,
        options=shared,
        dtype=dtype,
        meta=np.empty(0, dtype),
        name=f"daskclust-io-{step}-{token}",
    )
    return xr.DataArray(result, dims=ds[names[0]].dims)


def _with_options(*arrays: Any, function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Call a function on the arrays of a block."""
    return function(*arrays, **options)
