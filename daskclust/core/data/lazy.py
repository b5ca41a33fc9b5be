"""Columns as dask arrays, and where those would be computed."""

from __future__ import annotations

from typing import Any

from daskclust.core.device.arrays import is_dask


def lazy_along(values: Any, sizes: tuple[int, ...], axis: int = 0, index: Any = None) -> Any:
    """Return an array as a dask array with chunks of some sizes along an axis.

    Where it is a pandas index of row numbers, these are made where they are used.
    """
    import dask.array as da
    import pandas as pd

    if isinstance(index, pd.RangeIndex):
        return da.arange(index.start, index.stop, index.step, chunks=(sizes,), dtype=values.dtype)  # type: ignore[no-untyped-call,unused-ignore]
    if is_dask(values):
        return values.rechunk({axis: sizes})
    return da.from_array(values, chunks=(*values.shape[:axis], sizes, *values.shape[axis + 1 :]))  # type: ignore[no-untyped-call,unused-ignore]


def meta_of(collection: Any) -> Any:
    """Return an empty array, or an empty Series, of the class and dtype that chunks of a dask collection have."""
    if is_dask(collection):
        from dask.array.utils import meta_from_array

        return meta_from_array(collection)  # type: ignore[no-untyped-call,unused-ignore]
    from dask.dataframe.utils import make_meta

    return make_meta(collection)


def workers_client() -> Any:
    """Return the client of the cluster on which dask would compute now, None where it would in this process."""
    from dask.base import get_scheduler

    client = getattr(get_scheduler(), "__self__", None)  # type: ignore[no-untyped-call,unused-ignore]
    return client if hasattr(client, "scheduler_info") else None
