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
Summarise = Callable[[Mapping[str, Array], int], Any]  # arrays of one chunk by role, its first index -> summary
Merge = Callable[[Sequence[Any]], Any]
Part = Callable[[Any, Any], Any]  # merged summary, that of one chunk -> what of the first a chunk needs
Finish = Callable[[Any, int | None], Mapping[str, Array]]  # summary, number of rows -> columns of the table


class SecondPass(NamedTuple):
    """What is done with all chunks once more, when all summaries are merged."""

    part: Part
    summarise: Callable[[Mapping[str, Array], int, Any], Any]  # as `Summarise`, with the part
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
    import dask.array as da

    blocks = _partials(arrays, summarise)
    # The types of the columns are those of a table of nothing.
    empty = {role: np.empty(0, array.dtype) for role, array in arrays.items()}
    nothing = summarise(empty, 0)
    if second is not None:
        total = _merged(blocks, merge, functools.partial(_combine, merge=merge))
        blocks = _partials(arrays, second.summarise, _parts(blocks, total, second.part))
        nothing, merge = second.summarise(empty, 0, nothing), second.merge
    if rows is None:
        return finish(_merged(blocks, merge, functools.partial(_combine, merge=merge)).compute()[0], None)
    total = _merged(blocks, merge, functools.partial(_finish_block, merge=merge, finish=finish, rows=rows))
    result = {}
    for name, like in finish(nothing, 0).items():
        box = da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
            _take,
            total,
            column=name,
            chunks=((rows if like.ndim else 1,),),
            dtype=like.dtype,
            meta=np.empty(0, dtype=like.dtype),
            token="daskclust-properties-column",
        )
        result[name] = box if like.ndim else box[0]
    return result


def in_same_chunks(arrays: Sequence[Any]) -> list[Any]:
    """Return arrays, of which at least one is dask's, as dask arrays in the chunks of the first of these."""
    import dask.array as da

    chunks = next(array.chunks for array in arrays if hasattr(array, "__dask_graph__"))
    return [
        array.rechunk(chunks) if hasattr(array, "__dask_graph__") else da.from_array(array, chunks=chunks)  # type: ignore[no-untyped-call,unused-ignore]
        for array in arrays
    ]


def _partials(arrays: Mapping[str, Any], summarise: Callable[..., Any], *parts: Any) -> Any:
    """Return a dask array of objects: the summary of every chunk, with its part of what is known where there is one."""
    import dask.array as da

    same = in_same_chunks(list(arrays.values()))
    return da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
        _summarise_block,
        *same,
        *parts,
        roles=tuple(arrays),
        summarise=summarise,
        dtype=object,
        chunks=((1,) * same[0].numblocks[0],),
        meta=np.empty(0, dtype=object),
        token="daskclust-properties-summary",
    )


def _summarise_block(
    *blocks: Array, roles: tuple[str, ...], summarise: Callable[..., Any], block_info: Mapping[Any, Any] | None = None
) -> Array:
    """Return the summary of one chunk in an array of length 1; dask tells where the chunk begins."""
    if block_info is None:
        raise ValueError("block_info is missing: this function is for dask.array.map_blocks")
    start = block_info[0]["array-location"][0][0]
    known = [block[0] for block in blocks[len(roles) :]]
    arrays = {role: for_kernels(role, block) for role, block in zip(roles, blocks, strict=False)}
    return _boxed(summarise(arrays, start, *known))


def _parts(blocks: Any, total: Any, part: Part) -> Any:
    """Return a dask array of objects: what of the merged summary each chunk needs."""
    import dask.array as da

    parts = da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
        _part_block,
        blocks,
        total,
        part=part,
        dtype=object,
        chunks=blocks.chunks,
        meta=np.empty(0, dtype=object),
        token="daskclust-properties-part",
    )
    # Taking blocks ends a chain that dask would fuse: all of the merged summary would go to each worker then.
    return parts.blocks[:]


def _part_block(block: Array, total: Array, part: Part) -> Array:
    """Return what of the merged summary a chunk needs, in an array of length 1."""
    return _boxed(part(total[0], block[0]))


def _boxed(value: Any) -> Array:
    """Return an array of length 1 that holds any object."""
    box = np.empty(1, dtype=object)
    box[0] = value
    return box


def _merged(blocks: Any, merge: Merge, aggregate: Callable[..., Array]) -> Any:
    """Return a lazy array of length 1: all summaries merged as a tree, and what `aggregate` makes of them."""
    import dask.array as da

    return da.reduction(  # type: ignore[no-untyped-call,unused-ignore]
        blocks,
        chunk=_unchanged,
        combine=functools.partial(_combine, merge=merge),
        aggregate=aggregate,
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


def _finish_block(parts: Any, axis: Any, keepdims: Any, *, merge: Merge, finish: Finish, rows: int) -> Array:
    """Return the columns of the table of several summaries, in an array of length 1."""
    return _boxed(finish(_combine(parts, axis, keepdims, merge=merge)[0], rows))


def _unchanged(part: Array, axis: Any, keepdims: Any) -> Array:
    """Return a block as it is."""
    return part


def _take(box: Array, column: str) -> Array:
    """Return one column of the finished table."""
    return np.atleast_1d(box[0][column])
