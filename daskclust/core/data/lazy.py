"""Variables of data sets as dask arrays, and where those would be computed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd
import xarray as xr


def lazy_along(variable: xr.Variable, dim: Hashable, sizes: tuple[int, ...]) -> Any:
    """Return the values of a variable as a dask array with chunks of some sizes along a dimension.

    Numbers of rows are made where they are used.
    """
    import dask.array as da

    index = variable.to_index() if isinstance(variable, xr.IndexVariable) else None
    if isinstance(index, pd.RangeIndex):
        return da.arange(index.start, index.stop, index.step, chunks=(sizes,), dtype=variable.dtype)  # type: ignore[no-untyped-call,unused-ignore]
    return xr.Variable(variable.dims, variable.data).chunk({dim: sizes}).data


def workers_client() -> Any:
    """Return the client of the cluster on which dask would compute now, None where it would in this process."""
    from dask.base import get_scheduler

    client = getattr(get_scheduler(), "__self__", None)  # type: ignore[no-untyped-call,unused-ignore]
    return client if hasattr(client, "scheduler_info") else None
