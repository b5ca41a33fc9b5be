"""Dask arrays: columns as such, functions of their blocks, and where they are computed."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import is_dask, on_device_of


def meta_of(collection: Any) -> Any:
    """Return an empty array, or an empty Series, of the class and dtype that chunks of a dask collection have."""
    if is_dask(collection):
        from dask.array.utils import meta_from_array

        return meta_from_array(collection)  # type: ignore[no-untyped-call,unused-ignore]
    from dask.dataframe.utils import make_meta

    return make_meta(collection)


def lazy_along(values: Any, sizes: tuple[int, ...], axis: int = 0) -> Any:
    """Return an array as a dask array with chunks of some sizes along an axis.

    Of a pandas index of row numbers, these are made where they are used.
    """
    import dask.array as da
    import pandas as pd

    if isinstance(values, pd.RangeIndex):
        kind = {"dtype": values.dtype, "meta": np.empty(0, values.dtype), "token": "daskclust-io-rows"}
        numbers = functools.partial(_numbers, start=values.start, step=values.step, dtype=values.dtype)
        return da.blockwise(numbers, "a", chunk_rows(sizes), "a", align_arrays=False, **kind)
    if is_dask(values):
        return values.rechunk({axis: sizes})
    return da.from_array(values, chunks=(*values.shape[:axis], sizes, *values.shape[axis + 1 :]))  # type: ignore[no-untyped-call,unused-ignore]


def values_or_index(variable: Any, index: Any) -> Any:
    """Return the values of a variable, or the pandas index that it has, if this is one of row numbers."""
    import pandas as pd

    return index if isinstance(index, pd.RangeIndex) else variable.data


def _numbers(rows: tuple[slice], start: int, step: int, dtype: Any) -> Any:
    """Return the numbers of the rows of a chunk; the step is fused with that which needs them."""
    return np.arange(start + step * rows[0].start, start + step * rows[0].stop, step, dtype=dtype)


def chunk_rows(sizes: tuple[int, ...]) -> Any:
    """Return what stands for the rows of each chunk, as a tuple of one slice.

    Steps that ask dask for it by `block_info` would need dask.array on workers, which takes them a second to import.
    """
    from dask.layers import ArraySliceDep

    return ArraySliceDep((sizes,))


def with_first_rows(
    function: Callable[..., Any], array: Any, *args: Any, sizes: tuple[int, ...] | None = None, **kind: Any
) -> Any:
    """Return ``function(block, first row, *args)`` of each block of a dask array, as long as it, or as `sizes` say."""
    import dask.array as da

    axes, given = tuple(range(array.ndim)), itertools.chain(*((arg, None) for arg in args))
    kind |= {"function": function, "adjust_chunks": sizes and {0: sizes}, "align_arrays": False}
    return da.blockwise(_with_first_row, axes, array, axes, chunk_rows(array.chunks[0]), (0,), *given, **kind)


def _with_first_row(block: Any, rows: tuple[slice], *args: Any, function: Callable[..., Any]) -> Any:
    return function(block, rows[0].start, *args)


def chunk_numbers(count: int) -> Any:
    """Return what stands for the number of each of so many chunks, as a tuple of one."""
    from dask.layers import ArrayBlockIdDep

    return ArrayBlockIdDep(((1,) * count,))


def workers_client() -> Any:
    """Return the client of the cluster on which dask would compute now, None where it would in this process."""
    from dask.base import get_scheduler

    client = getattr(get_scheduler(), "__self__", None)  # type: ignore[no-untyped-call,unused-ignore]
    return client if hasattr(client, "scheduler_info") else None


def collected(array: Any) -> Any:
    """Return a dask array (n,) in memory; its blocks are joined here, as a worker would import dask.array to do it."""
    client = workers_client()
    if client is None:
        return array.compute()
    return np.concatenate(client.gather(futures_along(array)))


def futures_along(array: Any) -> list[Any]:
    """Return the futures of the blocks of a dask array, (n,) or a number, without the step of `compute` that joins."""
    from dask.core import flatten

    persisted = array.persist()
    return [persisted.dask[key] for key in flatten(persisted.__dask_keys__())]


def of_blocks(function: Callable[..., Any], array: Any, width: int = 1) -> NDArray[np.int64]:
    """Return `width` whole numbers of each block of an array (n,), which a function finds there, now, as (m, width)."""
    if not is_dask(array):
        return np.reshape(function(array), (1, width))
    import dask.array as da

    kind = {"dtype": np.int64, "meta": np.empty(0, np.int64), "token": "daskclust-count"}
    found = da.map_blocks(_flat, array, function=function, chunks=((width,) * array.numblocks[0],), **kind)
    return np.reshape(collected(found), (-1, width))


def _flat(block: Any, function: Callable[..., Any]) -> Any:
    return np.array(function(block), np.int64, ndmin=1)


def whole(result: Any, function: Callable[..., Any], shape: tuple[int, ...], dtype: Any) -> Any:
    """Return ``function(result)``, an array, of a dask array as one of one chunk."""
    import dask.array as da

    # not delayed: dask would optimise the array's graph on its own, and share no step of it with other results
    axes = tuple(range(len(shape)))
    given = tuple(range(len(shape), len(shape) + result.ndim))
    sizes = dict(zip(axes, shape, strict=True))
    meta = np.empty((0,) * len(shape), dtype)
    kind = {"dtype": dtype, "meta": meta, "token": _named(function)}
    return da.blockwise(function, axes, result, given, new_axes=sizes, concatenate=True, **kind)


def along_points(array: Any, X: Any) -> Any:
    """Return a dask array (n,) of one chunk on the host as one with the chunks and the class of X's blocks."""
    import dask.array as da

    like = meta_of(X)
    kind = {"dtype": array.dtype, "meta": like.ravel()[:0].astype(array.dtype), "token": _named(_like_block)}
    return da.map_blocks(_like_block, array.rechunk((X.chunks[0],)), like, **kind)


def _like_block(values: Any, like: Any) -> Any:
    return on_device_of(like, values)


def map_points(function: Callable[..., Any], X: Any, *args: Any, dtype: Any = np.int64, width: int = 0) -> Any:
    """Return ``function(X, *args)``, a number or `width` of them for each point: block by block if X is a dask array.

    Those of `args` that are dask arrays have the same chunks; of these, too, blocks are given. Others may be delayed.
    """
    if not is_dask(X):
        return function(X, *args)
    import dask.array as da

    meta = meta_of(X).ravel()[:0].astype(dtype)
    kind = {"dtype": dtype, "meta": meta.reshape(0, width) if width else meta, "token": _named(function)}
    kind |= {"new_axes": {"c": width}} if width else {}
    pairs = [(each, ("a", "b")[: each.ndim] if isinstance(each, da.Array) else None) for each in (X, *args)]
    # not map_blocks: it takes one point in several chunks for a number that all blocks share
    out = "ac" if width else "a"
    return da.blockwise(function, out, *itertools.chain(*pairs), concatenate=True, align_arrays=False, **kind)


def map_with(
    function: Callable[..., Any], X: Any, make: Callable[..., Any], given: tuple[Any, ...], *args: Any, **kind: Any
) -> Any:
    """Return ``function(X, rows, made, *args)`` with ``made = make(*given)``, which is made once, for all blocks.

    It is lazy, and as `map_points` says, where `X` or one of `given` is a dask array, of which `make` is given the
    whole; `rows` are the numbers of a block's points, None for all.
    """
    if not any(is_dask(each) for each in (X, *given)):
        return function(X, None, make(*given), *args)
    import dask
    import dask.array as da

    X = X if is_dask(X) else da.from_array(X, chunks=-1)  # type: ignore[no-untyped-call,unused-ignore]
    rows = da.arange(len(X), chunks=(X.chunks[0],))  # type: ignore[no-untyped-call,unused-ignore]
    return map_points(function, X, rows, dask.delayed(make)(*given), *args, **kind)


def map_rows(function: Callable[..., Any], labels: Any, *args: Any) -> Any:
    """Return ``function(block, *args)``, int64 of the same shape on the host, for the blocks of a dask array (n, k)."""
    import dask.array as da

    kind = {"dtype": np.int64, "meta": np.empty((0, 0), np.int64), "token": _named(function)}
    return da.map_blocks(function, labels, *args, **kind)


def extremes(column: Any) -> tuple[Any, Any]:
    """Return the smallest and the largest value of an array; of a dask array by one pass over it, now."""
    low, high = column.min(), column.max()
    if is_dask(column):
        import dask

        low, high = dask.compute(low, high)
    return low, high


def _named(function: Callable[..., Any]) -> str:
    """Return with what names of tasks begin that call a function."""
    from dask.utils import funcname

    return f"daskclust-{funcname(function).strip('_').replace('_', '-')}"
