"""Columns of a file as dask arrays, whose blocks read their own rows when they are needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.space.partition import block_sizes
from daskclust.io.fields import Variable
from daskclust.io.kinds import target_dtype

MOST_ROWS = 2**62  # of a chunk: more are all rows, too

ReadRows = Callable[[str, Any, Any, int, int], npt.NDArray[Any]]
"""Reads rows start to stop of one column: (path, column, variable, start, stop)."""


def check_hits_per_chunk(value: Any, name: str = "chunks", also: str = "") -> int:
    """Return `value` if it is a number of hits for a chunk; `also` says for the message what else would do."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a positive number of hits{also}, got {value!r}")
    return min(int(value), MOST_ROWS)


def lazy_column(
    read: ReadRows,
    path: str,
    column: Any,
    variable: Variable | None,
    dtype: np.dtype[Any],
    rows: int,
    chunks: int | tuple[int, ...],
) -> Any:
    """Return one column of a file as a dask array.

    Parameters
    ----------
    read : callable
        A function of a module, so that workers find it.
    path : str
        The file, which every worker must see.
    column : str or tuple
        Its name, or place, in the file.
    variable : Variable or None
        What it becomes.
    dtype : numpy.dtype
        Type in the file.
    rows : int
        Rows of the file.
    chunks : int or tuple of int
        Rows of a block, or of each.

    Returns
    -------
    dask.array.Array, shape (rows,)
        Named ``daskclust-io-read-``.
    """
    import dask.array as da
    from dask.base import tokenize

    sizes = chunks if isinstance(chunks, tuple) else block_sizes(rows, chunks)
    where = os.path.abspath(path)
    state = os.stat(where)
    target = target_dtype(dtype, variable)
    # The time of writing is in the name, so that a file written anew is not taken from a cluster's memory.
    token = tokenize(where, state.st_mtime_ns, state.st_size, column, variable, sizes)
    return da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
        _read_block,
        read=read,
        path=where,
        column=column,
        variable=variable,
        chunks=(sizes,),
        dtype=target,
        meta=np.empty(0, dtype=target),
        name=f"daskclust-io-read-{token}",
    )


def lazy_beside(function: Callable[..., Any], counts: Any, sizes: tuple[int, ...], dtype: Any, **options: Any) -> Any:
    """Return a dask array whose blocks, of `sizes`, a function makes of those of another one, and of `options`."""
    import dask.array as da
    from dask.base import tokenize

    return da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
        function,
        counts,
        chunks=(sizes,),
        dtype=dtype,
        meta=np.empty(0, dtype=dtype),
        name=f"daskclust-io-read-{tokenize(function.__name__, counts.name, sizes, options)}",
        **options,
    )


def _read_block(
    *,
    read: ReadRows,
    path: str,
    column: Any,
    variable: Variable | None,
    block_info: Mapping[Any, Any] | None = None,
) -> npt.NDArray[Any]:
    """Read the rows of one block; dask tells which ones."""
    if block_info is None:
        raise ValueError("block_info is missing: this function is for dask.array.map_blocks")
    start, stop = block_info[None]["array-location"][0]
    return read(path, column, variable, start, stop)
