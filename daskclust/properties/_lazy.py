"""Tables of dask arrays, in ranges of cluster numbers: no task has more of the table than its range.

The summary of each chunk is cut by the ranges, the pieces of a range are merged as a tree, and each range is finished
alone. Summaries are objects of any kind; they travel in arrays of objects, which are public API of dask.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.columns import for_kernels
from daskclust.core.data.lazy import lazy_along, workers_client
from daskclust.core.device.arrays import device_of, is_dask
from daskclust.core.merge.labels import NOISE
from daskclust.core.run.graph import Box

from ._summary import Columns, Summary, TableSteps, finished, joined, merged, row_count

Array = npt.NDArray[Any]

_ROWS = 1 << 18  # of a range, about
_MOST_PIECES = 1 << 20  # of all summaries; where chunks are many, ranges are longer
_FAN_IN = 16
# Pieces for each chunk and range that go one by one, and are spilled where memory ends. P2P takes fewer tasks, but
# estimates what waits from a few pieces, most of which are none: workers need memory for some summaries more.
_FEW = 128


def is_lazy(arrays: Mapping[str, Any]) -> bool:
    """Return whether any of the arrays is dask's."""
    return any(map(is_dask, arrays.values()))


def columns(arrays: Mapping[str, Any], steps: TableSteps, rows: int | None) -> Mapping[str, Any]:
    """Return the columns of the table, of dask arrays lazy ones; `rows` of these must be known."""
    if not is_lazy(arrays):
        if steps.one_chunk is not None:
            return steps.one_chunk(device_of(arrays["x"]), arrays, n_clusters=rows)
        return finished(steps.summarise(arrays, 0), rows, len(arrays["labels"]), steps)
    # The types of the columns are those of a table of nothing.
    empty = {role: np.empty(0, array.dtype) for role, array in arrays.items()}
    nothing = steps.summarise(empty, 0)
    arrays = dict(zip(arrays, in_same_chunks(list(arrays.values())), strict=True))
    ranges = _ranges(rows or 0, arrays["labels"].numblocks[0])
    pieces = _pieces(arrays, steps.summarise, ranges)
    total = _merged(pieces, steps.merge)
    if steps.again is not None:
        summarise, merge = steps.again
        parts = _exchanged(mapped("part", _parts, pieces, total, chunks=pieces.chunks), (1, -1))
        known = mapped("known", _joined, parts, chunks=parts.chunks[:1], drop_axis=1)
        pieces = _pieces(arrays, summarise, ranges, known)
        nothing, total = summarise(empty, 0, nothing), _merged(pieces, merge)
    one_each = ((1,) * len(ranges),)
    table = mapped(
        "finish", _finished, total, ranges=ranges, steps=steps, nothing=nothing, chunks=one_each, drop_axis=0
    )
    result = {}
    for name, like in finished(nothing, 0, 0, steps).items():
        if like.ndim:
            result[name] = mapped("column", _take, table, column=name, chunks=(ranges,), dtype=like.dtype)
        else:  # noise
            result[name] = mapped("column", _take, table.blocks[:1], column=name, chunks=((1,),), dtype=like.dtype)[0]
    return result


def mapped(step: str, function: Callable[..., Array], *arrays: Any, dtype: Any = object, **options: Any) -> Any:
    """Return what a function makes of each block of some dask arrays."""
    import dask.array as da

    options |= {"dtype": dtype, "meta": np.empty(0, dtype), "token": f"daskclust-properties-{step}"}
    return da.map_blocks(function, *arrays, **options)  # type: ignore[no-untyped-call,unused-ignore]


def in_same_chunks(arrays: Sequence[Any]) -> list[Any]:
    """Return arrays, of which at least one is dask's, as dask arrays in the chunks of the first of these."""
    sizes = next(array.chunks[0] for array in arrays if is_dask(array))
    return [lazy_along(array, sizes) for array in arrays]


def counted(arrays: dict[str, Any], rows: int | None) -> tuple[dict[str, Any], Any]:
    """Return the arrays and the number of rows; of dask arrays the largest label plus 1, where it is not given.

    Their labels need not be computed again then.
    """
    if rows is not None or not is_lazy(arrays):
        return arrays, rows
    labels = in_same_chunks(list(arrays.values()))[list(arrays).index("labels")].persist()
    largest = mapped("largest", _largest, labels, dtype=np.int64, chunks=((1,) * labels.numblocks[0],))
    return {**arrays, "labels": labels}, row_count(int(largest.compute().max(initial=NOISE)), labels.shape[0], None)


def _largest(labels: Array) -> Array:
    return np.array([labels.max() if labels.size else NOISE], np.int64)


def _ranges(rows: int, chunks: int) -> tuple[int, ...]:
    """Return the lengths of the ranges of cluster numbers."""
    number = max(1, min(-(-rows // _ROWS), _MOST_PIECES // chunks))
    return tuple(np.diff(np.arange(number + 1) * rows // number).tolist())


def _pieces(arrays: Mapping[str, Any], summarise: Callable[..., Summary], ranges: tuple[int, ...], *known: Any) -> Any:
    """Return a dask array of objects, shape (chunks, ranges): the pieces of summaries, blocks of one range each.

    A block has the pieces of as many chunks as there are ranges: about one summary, where all chunks have clusters of
    all ranges, and fewer where clusters are of few chunks.
    """
    chunks = arrays["labels"].numblocks[0]
    options = {"roles": tuple(arrays), "summarise": summarise, "ranges": ranges}
    shape = ((1,) * chunks, (len(ranges),))
    cut = mapped("summary", _summarise_block, *arrays.values(), *known, **options, chunks=shape, new_axis=1)
    return _exchanged(cut, (min(chunks, max(_FAN_IN, len(ranges))), 1))


def _exchanged(pieces: Any, chunks: tuple[int, int]) -> Any:
    """Return pieces in other blocks; many on workers by dask's P2P exchange, which has them on disks."""
    return pieces.rechunk(chunks, threshold=_FEW, method="tasks" if workers_client() is None else None)


def _summarise_block(
    *blocks: Array,
    roles: tuple[str, ...],
    summarise: Callable[..., Summary],
    ranges: tuple[int, ...],
    block_info: Any = None,
) -> Array:
    """Return the summary of one chunk as one row of pieces; dask tells where the chunk begins."""
    start = block_info[0]["array-location"][0][0]
    known = [block[0] for block in blocks[len(roles) :]]
    arrays = {role: for_kernels(role, block) for role, block in zip(roles, blocks, strict=False)}
    summary = summarise(arrays, start, *known)
    largest = int(summary.ids.max(initial=NOISE))
    row_count(largest, largest + 1, sum(ranges))  # raises
    return _boxes(_cut(summary, ranges))[None]


def _cut(summary: Summary, ranges: tuple[int, ...]) -> list[Summary | None]:
    """Return the part of a summary in each range, None where it has no cluster; noise is with the first."""
    ends = np.searchsorted(summary.ids, np.cumsum((0, *ranges))).tolist()
    pieces: list[Summary | None] = [None] * len(ranges)
    for k, (begin, end) in enumerate(itertools.pairwise(ends)):
        if begin < end or k == 0:
            # copies: the others need not stay in memory for them
            columns = {name: values[..., begin:end].copy() for name, values in summary.columns.items()}
            noise = (summary.noise_size, summary.noise_weight) if k == 0 else ()
            pieces[k] = Summary(summary.ids[begin:end].copy(), columns, *noise)
    return pieces


def _merged(pieces: Any, merge: Callable[..., Columns]) -> Any:
    """Return a dask array of objects, shape (1, ranges): the pieces of each range merged as a tree."""
    return _as_tree("merge", pieces, functools.partial(merged, merge=merge))


def reduced_objects(step: str, function: Callable[..., Any], combine: Callable[[list[Any]], Any], *arrays: Any) -> Any:
    """Return the objects that a function makes of blocks of dask arrays (n,) combined as a tree, computed now."""
    one_each = ((1,) * arrays[0].numblocks[0],)
    objects = mapped(step, functools.partial(_boxed, function=function), *arrays, chunks=one_each)
    return _as_tree(step, objects, combine).compute()[0]


def _as_tree(step: str, objects: Any, combine: Callable[[list[Any]], Any]) -> Any:
    """Return a dask array of objects whose first axis is reduced to one: those of each place combined as a tree."""
    import dask.array as da

    combine_boxes = functools.partial(_combine_boxes, combine=combine)
    return da.reduction(  # type: ignore[no-untyped-call,unused-ignore]
        objects,
        chunk=combine_boxes,
        combine=combine_boxes,
        aggregate=combine_boxes,
        axis=0,
        keepdims=True,
        concatenate=False,
        split_every=_FAN_IN,
        dtype=object,
        meta=np.empty((0,) * objects.ndim, dtype=object),
        name=f"daskclust-properties-{step}",
    )


def _combine_boxes(boxes: Any, axis: Any, keepdims: Any, *, combine: Callable[[list[Any]], Any]) -> Array:
    """Return one object of those in an array, or in nested lists of arrays; None of none."""
    from dask.core import flatten

    arrays = list(flatten([boxes]))
    parts = [part for box in arrays for part in box.flat if part is not None]
    return _boxes([combine(parts) if parts else None]).reshape((1,) * arrays[0].ndim)


def _boxed(*blocks: Array, function: Callable[..., Any]) -> Array:
    return _boxes([function(*blocks)])


def _parts(pieces: Array, total: Array) -> Array:
    """Return what the merged summary of one range has on the clusters of each chunk."""
    return _boxes([None if piece is None else _known(piece, total[0, 0]) for piece in pieces[:, 0]])[:, None]


def _known(piece: Summary, total: Summary) -> Summary:
    place = np.searchsorted(total.ids, piece.ids)
    return replace(piece, columns={name: values[..., place] for name, values in total.columns.items()})


def _joined(parts: Array) -> Array:
    return _boxes([joined([part for part in parts.flat if part is not None])])


def _finished(
    total: Array, *, ranges: tuple[int, ...], steps: TableSteps, nothing: Summary, block_info: Any = None
) -> Array:
    k = block_info[0]["chunk-location"][1]
    found = nothing if total[0, 0] is None else total[0, 0]
    return _boxes([finished(replace(found, ids=found.ids - sum(ranges[:k])), ranges[k], 0, steps)])


def _take(table: Array, column: str) -> Array:
    return np.atleast_1d(table[0][column])


def _boxes(values: Iterable[Any]) -> Array:
    """Return any objects as an array."""
    values = list(values)
    boxes = np.empty(len(values), dtype=object).view(Box)
    boxes[:] = values
    return boxes
