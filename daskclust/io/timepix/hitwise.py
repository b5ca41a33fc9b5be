"""Functions of the variables of hits, hit by hit: at once, or block by block where they are dask arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.datasets import with_unit_attrs
from daskclust.core.data.quote import listed
from daskclust.core.data.units import hit_column
from daskclust.io.devices import check_on_host


def hits_with(ds: xr.Dataset, names: list[str], step: str) -> xr.Dataset:
    """Return a data set with some variables in the units of Timepix hits; refuse one without them, or on a GPU."""
    missing = [name for name in names if name not in ds]
    if missing:
        raise ValueError(f"{step} needs the variable {missing[0]!r}; the Dataset has {listed(ds)}")
    check_on_host(step, {name: ds[name].data for name in names})
    ds = with_unit_attrs(ds)
    return ds.assign({name: found for name in names if (found := hit_column(ds[name], name)).data is not ds[name].data})


def over_blocks(
    ds: xr.Dataset, names: list[str], function: Callable[..., npt.NDArray[Any]], dtype: type[np.generic], step: str
) -> Any:
    """Return a function of some variables: an array, lazy where one of them is."""
    if not any(ds[name].chunks for name in names):
        return function(*(ds[name].values for name in names))
    import dask.array as da
    from dask.base import tokenize
    from dask.delayed import delayed

    parts = ds[names].chunk(name_prefix="daskclust-io-").unify_chunks()
    arrays = [parts[name].data for name in names]
    token = tokenize(function, *(array.name for array in arrays))
    # One object in the graph, rather than one in each task: a calibration has 2 MB.
    shared = delayed(function, name=f"daskclust-io-{step}-options-{token}", traverse=False)
    return da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
        _call, *arrays, function=shared, dtype=dtype, meta=np.empty(0, dtype), name=f"daskclust-io-{step}-{token}"
    )


def _call(*arrays: Any, function: Callable[..., Any]) -> Any:
    return function(*arrays)
