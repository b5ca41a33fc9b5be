"""Tables of dask arrays: a summary of every chunk, summaries merged as a tree, columns of what they make.

Summaries are objects of any kind; they travel in arrays of length 1, which are public API of dask.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.data.columns import for_kernels

Array = npt.NDArray[Any]
Summarise = Callable[..., Any]  # arrays of one chunk by role, its first index, its part if there is one -> summary
Merge = Callable[[Sequence[Any]], Any]
Finish = Callable[..., Mapping[str, Array]]  # summary, number of rows -> columns of the table


class SecondPass(NamedTuple):
    """What is done with all chunks once more, when all summaries are merged."""

    part: Callable[[Any, Any], Any]  # summary of one chunk, merged summary -> what of the second that chunk needs
    summarise: Summarise
    merge: Merge


def is_lazy(arrays: Mapping[str, Any]) -> bool:
    """Return whether any of the arrays is dask's."""
    return any(hasattr(array, "__dask_graph__") for array in arrays.values())


def columns(
    arrays: Mapping[str, Any],
    summarise: Summarise,
    merge: Merge,
    finish: Finish,
    rows: int | None,
    *,
    second: SecondPass | None = None,
) -> Mapping[str, Any]:
    """Return the columns of the table of dask arrays."""
    blocks = _partials(arrays, summarise)
    # The types of the columns are those of a table of nothing.
    empty = {role: np.empty(0, array.dtype) for role, array in arrays.items()}
    nothing, total = summarise(empty, 0), _merged(blocks, merge)
    if second is not None:
        parts = mapped("part", _of_contents, blocks, total, make=second.part, chunks=blocks.chunks)
        # Taking blocks ends a chain that dask would fuse: all of the merged summary would go to each worker then.
        blocks = _partials(arrays, second.summarise, parts.blocks[:])
        nothing, total = second.summarise(empty, 0, nothing), _merged(blocks, second.merge)
    if rows is None:
        return finish(total.compute()[0], None)
    table = mapped("finish", _of_contents, total, make=functools.partial(finish, n_clusters=rows), chunks=((1,),))
    result = {}
    for name, like in finish(nothing, 0).items():
        chunks = ((rows if like.ndim else 1,),)
        column = mapped("column", _take, table, column=name, chunks=chunks, dtype=like.dtype)
        result[name] = column if like.ndim else column[0]
    return result


def mapped(step: str, function: Callable[..., Array], *arrays: Any, dtype: Any = object, **options: Any) -> Any:
    """Return what a function makes of each block of some dask arrays."""
    import dask.array as da

    options |= {"dtype": dtype, "meta": np.empty(0, dtype), "token": f"daskclust-properties-{step}"}
    return da.map_blocks(function, *arrays, **options)  # type: ignore[no-untyped-call,unused-ignore]


def in_same_chunks(arrays: Sequence[Any]) -> list[Any]:
    """Return arrays, of which at least one is dask's, as dask arrays in the chunks of the first of these."""
    import dask.array as da

    chunks = next(array.chunks for array in arrays if hasattr(array, "__dask_graph__"))
    return [
        array.rechunk(chunks) if hasattr(array, "__dask_graph__") else da.from_array(array, chunks=chunks)  # type: ignore[no-untyped-call,unused-ignore]
        for array in arrays
    ]


def _partials(arrays: Mapping[str, Any], summarise: Summarise, *parts: Any) -> Any:
    """Return a dask array of objects: the summary of every chunk, with its part of what is known where there is one."""
    same = in_same_chunks(list(arrays.values()))
    options = {"roles": tuple(arrays), "summarise": summarise, "chunks": ((1,) * same[0].numblocks[0],)}
    return mapped("summary", _summarise_block, *same, *parts, **options)


def _summarise_block(*blocks: Array, roles: tuple[str, ...], summarise: Summarise, block_info: Any = None) -> Array:
    """Return the summary of one chunk in an array of length 1; dask tells where the chunk begins."""
    start = block_info[0]["array-location"][0][0]
    known = [block[0] for block in blocks[len(roles) :]]
    arrays = {role: for_kernels(role, block) for role, block in zip(roles, blocks, strict=False)}
    return _boxed(summarise(arrays, start, *known))


def _of_contents(*boxes: Array, make: Callable[..., Any]) -> Array:
    """Return what a function makes of the objects in arrays of length 1, in such an array."""
    return _boxed(make(*(box[0] for box in boxes)))


def _boxed(value: Any) -> Array:
    """Return an array of length 1 that holds any object."""
    box = np.empty(1, dtype=object)
    box[0] = value
    return box


def _merged(blocks: Any, merge: Merge) -> Any:
    """Return a lazy array of length 1: all summaries merged as a tree."""
    import dask.array as da

    combine = functools.partial(_combine, merge=merge)
    return da.reduction(  # type: ignore[no-untyped-call,unused-ignore]
        blocks,
        chunk=_unchanged,
        combine=combine,
        aggregate=combine,
        axis=0,
        keepdims=True,
        concatenate=False,
        dtype=object,
        meta=np.empty(0, dtype=object),
        name="daskclust-properties-merge",
    )


def _combine(parts: Any, axis: Any, keepdims: Any, *, merge: Merge) -> Array:
    """Return one summary of several, each in an array of length 1."""
    return _boxed(merge([part[0] for part in (parts if isinstance(parts, list) else [parts])]))


def _unchanged(part: Array, axis: Any, keepdims: Any) -> Array:
    """Return a block as it is."""
    return part


def _take(box: Array, column: str) -> Array:
    """Return one column of the finished table."""
    return np.atleast_1d(box[0][column])
