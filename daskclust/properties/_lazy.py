"""Tables of dask arrays, in ranges of cluster numbers: no task has more of the table than its range.

The summary of each chunk is cut by the ranges, the pieces of a range are merged as a tree, and each range is finished
alone. Where chunks have clusters of few ranges, as those of events in time, ranges begin where chunks do: clusters are
finished with their chunk, and only those that other chunks may have, too, are merged. Summaries are objects of any
kind; they travel in arrays of objects, which are public API of dask.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.data.columns import for_kernels
from daskclust.core.data.lazy import chunk_numbers, chunk_rows, lazy_along, of_blocks, workers_client
from daskclust.core.device.arrays import device_of, is_dask
from daskclust.core.device.threads import one_thread
from daskclust.core.merge.labels import NOISE
from daskclust.core.run.exchange import is_few, pieces_of
from daskclust.core.run.graph import ChunkSteps, boxed, unboxed

from ._summary import Array, Columns, Summary, TableSteps, finished, in_rows, joined, merged, noise_of, row_count

_ROWS = 1 << 18  # of a range, about
_MOST_PIECES = 1 << 20  # of all summaries; where chunks are many, ranges are longer
_FAN_IN = 16
# Pieces for each chunk and range that go one by one, and are spilled where memory ends. P2P takes fewer tasks, but
# estimates what waits from a few pieces, most of which are none: workers need memory for some summaries more.
_FEW = 128


class Ranges(NamedTuple):
    """Ranges of cluster numbers, and what is known of chunks that have clusters of few of them."""

    lengths: tuple[int, ...]
    of_chunks: Sequence[Sequence[int]] = ()  # the ranges that each chunk may have clusters of
    own: Sequence[Sequence[int]] = ()  # the first cluster that no other chunk has, and the one behind the last


class ChunkRows(NamedTuple):
    """Clusters of one chunk in one range."""

    own: Summary | None  # rows of the table, of those that no other chunk has
    shared: Summary | None


def is_lazy(arrays: Mapping[str, Any]) -> bool:
    """Return whether any of the arrays is dask's."""
    return any(map(is_dask, arrays.values()))


def columns(arrays: Mapping[str, Any], steps: TableSteps, rows: Any) -> Mapping[str, Any]:
    """Return the columns of the table, of dask arrays lazy ones; `rows` is what `counted` returns."""
    if not is_lazy(arrays):
        if steps.one_chunk is not None:
            return steps.one_chunk(device_of(arrays["x"]), arrays, n_clusters=rows)
        summary = steps.summarise(arrays, 0)
        summary = summary if steps.again is None else steps.again[0](arrays, 0, summary)
        return finished(summary, rows, len(arrays["labels"]), steps)
    import dask.array as da

    # The types of the columns are those of a table of nothing.
    empty = {role: np.empty(0, array.dtype) for role, array in arrays.items()}
    nothing = steps.summarise(empty, 0)
    nothing = nothing if steps.again is None else steps.again[0](empty, 0, nothing)
    arrays = dict(zip(arrays, in_same_chunks(list(arrays.values())), strict=True))
    if not isinstance(rows, Ranges):
        rows = Ranges(_evenly(rows or 0, arrays["labels"].numblocks[0]))
    ranges = rows.lengths
    if rows.of_chunks and steps.again is None:
        table, noise = _in_order(arrays, steps, rows, nothing)
    else:
        table = _in_any_order(arrays, steps, ranges, nothing)
        noise = table.blocks[:1]
    kind: dict[str, Any] = {"token": "daskclust-properties-column", "adjust_chunks": {"a": ranges}}
    result = {}
    for name, like in finished(nothing, 0, 0, steps).items():
        kind |= {"column": name, "dtype": like.dtype, "meta": np.empty((0,) * like.ndim, like.dtype)}
        result[name] = da.blockwise(_take, "a" * like.ndim, table if like.ndim else noise, "ab", **kind)
    return result


def _in_any_order(arrays: Mapping[str, Any], steps: TableSteps, ranges: tuple[int, ...], nothing: Summary) -> Any:
    """Return the columns of each range as a dask array of objects: all chunks may have something for all ranges."""
    pieces = _pieces(arrays, steps.summarise, ranges)
    total = as_tree("merge", pieces, functools.partial(merged, merge=steps.merge))
    if steps.again is not None:
        summarise, merge = steps.again
        parts = exchanged(mapped("part", _parts, pieces, total, chunks=pieces.chunks), (1, -1))
        known = _in_boxes("known", _joined, "a", parts, "ab")
        pieces = _pieces(arrays, summarise, ranges, known, "a")
        total = as_tree("merge", pieces, functools.partial(merged, merge=merge))
    kind = {"ranges": ranges, "steps": steps, "nothing": nothing, "new_axes": {"c": 1}}
    return _in_boxes("finish", _finished, "bc", total, "ab", chunk_numbers(len(ranges)), "b", **kind)


def _in_boxes(step: str, function: Callable[..., Array], out: str, *pairs: Any, **options: Any) -> Any:
    """Return an array of objects with one in each block, which a function makes of blocks, or of lists of them."""
    import dask.array as da

    options |= {"dtype": object, "meta": np.empty((0,) * len(out), object), "token": f"daskclust-properties-{step}"}
    return da.blockwise(function, out, *pairs, align_arrays=False, concatenate=False, **options)


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

    Their labels need not be computed again then, and ranges are those that suit them.
    """
    if rows is not None or not is_lazy(arrays):
        return arrays, rows
    labels = in_same_chunks(list(arrays.values()))[list(arrays).index("labels")].persist()
    ends = of_blocks(_ends, labels, 2)
    count = row_count(int(ends[:, 1].max(initial=NOISE)), labels.shape[0], None)
    return {**arrays, "labels": labels}, _ranges_of(count, ends)


def _ends(labels: Array) -> tuple[int, int]:
    """Return the first and the last cluster of a chunk, -1 twice where it has none."""
    inside = labels[labels > NOISE]
    return (int(inside.min()), int(inside.max())) if inside.size else (NOISE, int(labels.min(initial=NOISE)))


def _evenly(rows: int, chunks: int) -> tuple[int, ...]:
    """Return the lengths of the ranges of cluster numbers."""
    number = max(1, min(-(-rows // _ROWS), _MOST_PIECES // chunks))
    return tuple(np.diff(np.arange(number + 1) * rows // number).tolist())


def _ranges_of(rows: int, ends: Array) -> Ranges:
    """Return ranges that begin where chunks have their first new cluster, if chunks have clusters of few of them.

    Its first and last clusters are known.
    """
    starts = [0]
    for begin in np.unique(np.maximum.accumulate([NOISE, *ends[:, 1]]) + 1).tolist():
        length = begin - starts[-1]
        if 2 * length >= _ROWS or begin == rows:
            parts = max(1, length // _ROWS)
            starts += [starts[-1] + length * (k + 1) // parts for k in range(parts)]
    first, last = np.searchsorted(starts[1:-1], ends, side="right").T.tolist()
    spans = [range(a, b + 1) for a, b in zip(first, last, strict=True)]
    if not is_few(spans, len(starts) - 1):
        return Ranges(_evenly(rows, len(ends)))
    known_before = np.maximum.accumulate([NOISE, *ends[:-1, 1]]) + 1
    known_after = np.minimum.accumulate(np.where(ends[:, 0] < 0, rows, ends[:, 0])[::-1])[::-1]
    own = np.stack([known_before, np.maximum(known_before, [*known_after[1:], rows])], axis=1)
    return Ranges(tuple(np.diff(starts).tolist()), spans, own.tolist())


def _pieces(arrays: Mapping[str, Any], summarise: Callable[..., Summary], ranges: tuple[int, ...], *known: Any) -> Any:
    """Return a dask array of objects, shape (chunks, ranges): the pieces of summaries, blocks of one range each.

    A block has the pieces of as many chunks as there are ranges: about one summary, where all chunks have clusters of
    all ranges, and fewer where clusters are of few chunks.
    """
    sizes = arrays["labels"].chunks[0]
    options = {"roles": tuple(arrays), "summarise": summarise, "ranges": ranges}
    shape = {"adjust_chunks": {"a": 1}, "new_axes": {"b": len(ranges)}}
    given = itertools.chain(*((array, "a") for array in arrays.values()), known)
    cut = _in_boxes("summary", _summarise_block, "ab", chunk_rows(sizes), "a", *given, **options, **shape)
    return cut if len(ranges) == 1 else exchanged(cut, (min(len(sizes), max(_FAN_IN, len(ranges))), 1))


def exchanged(pieces: Any, chunks: tuple[int, int]) -> Any:
    """Return pieces in other blocks; many on workers by dask's P2P exchange, which has them on disks."""
    return pieces.rechunk(chunks, threshold=_FEW, method="tasks" if workers_client() is None else None)


def _summarise_block(
    rows: tuple[slice],
    *blocks: Array,
    roles: tuple[str, ...],
    summarise: Callable[..., Summary],
    ranges: tuple[int, ...],
) -> Array:
    """Return the summary of one chunk as one row of pieces."""
    known = [block[0] for block in blocks[len(roles) :]]
    return boxes(_cut(_summary_of(blocks, roles, summarise, rows[0].start, ranges, *known), ranges))[None]


def _summary_of(
    blocks: Iterable[Array],
    roles: tuple[str, ...],
    summarise: Callable[..., Summary],
    start: int,
    ranges: tuple[int, ...],
    *known: Summary,
) -> Summary:
    """Return the summary of one chunk, whose clusters must be in the ranges."""
    arrays = {role: for_kernels(role, block) for role, block in zip(roles, blocks, strict=False)}
    with one_thread():
        summary = summarise(arrays, start, *known)
    largest = int(summary.ids.max(initial=NOISE))
    row_count(largest, largest + 1, sum(ranges))  # raises
    return summary


def _cut(summary: Summary, ranges: tuple[int, ...]) -> list[Summary | None]:
    """Return the part of a summary in each range, None where it has no cluster; noise is with the first."""
    ends = np.searchsorted(summary.ids, np.cumsum((0, *ranges))).tolist()
    pieces: list[Summary | None] = [None] * len(ranges)
    for k, (begin, end) in enumerate(itertools.pairwise(ends)):
        if begin < end or k == 0:
            part = slice(begin, end)
            columns = {name: values[..., part] for name, values in summary.columns.items()}
            ids, noise = summary.ids[part], (summary.noise_size, summary.noise_weight) if k == 0 else ()
            if 2 * (end - begin) < len(summary.ids):  # copies: the others need not stay in memory for them
                ids, columns = ids.copy(), {name: values.copy() for name, values in columns.items()}
            pieces[k] = Summary(ids, columns, *noise)
    return pieces


# ------------------------------------------------------------------------------------------------- chunks in order
class _Common(NamedTuple):
    """What the steps of all chunks need to know."""

    roles: tuple[str, ...]
    steps: TableSteps
    starts: Array  # the first point of each chunk
    ranges: Ranges


def _in_order(arrays: Mapping[str, Any], steps: TableSteps, ranges: Ranges, nothing: Summary) -> tuple[Any, Any]:
    """Return the columns of each range, and those of noise, as dask arrays of objects.

    Chunks have something for few ranges. A range that had the noise of all would keep all that chunks have until it is
    finished.
    """
    from dask.base import tokenize

    chunks = ChunkSteps("properties-", tokenize([array.name for array in arrays.values()], steps, ranges))
    starts = np.cumsum([0, *arrays["labels"].chunks[0]])
    known = chunks.shared("known", _Common(tuple(arrays), steps, starts, ranges))
    cut = chunks.of_rows("summary", _pieces_of_chunk, list(arrays.values()), known)
    pieces = pieces_of(chunks, "piece", cut, ranges.of_chunks, len(ranges.lengths))
    put_together = functools.partial(_put_together, ranges=ranges.lengths, steps=steps, nothing=nothing)
    noise = as_tree("noise", chunks.each("noise", operator.itemgetter(-1), cut), joined)
    noise = chunks.each("all-noise", functools.partial(noise_of, steps=steps), noise)
    return chunks.each("finish", put_together, pieces, numbered=True), noise


def _pieces_of_chunk(blocks: list[Array], chunk: int, known: _Common) -> list[ChunkRows | Summary]:
    """Return what one chunk has for those ranges that it may have clusters of, and its noise."""
    lengths, of_chunks, all_own = known.ranges
    steps, start, (first, end) = known.steps, int(known.starts[chunk]), all_own[chunk]
    if steps.own_rows is None:
        own, shared = _apart(_summary_of(blocks, known.roles, steps.summarise, start, lengths), steps, first, end)
    else:
        arrays = {role: for_kernels(role, block) for role, block in zip(known.roles, blocks, strict=True)}
        rows, shared = steps.own_rows(arrays, start, first, end)
        own = Summary(np.arange(first, end), rows)
    cut = _cut(own, lengths), _cut(shared, lengths)
    noise = replace(shared, ids=shared.ids[:0], columns={})
    return [*(ChunkRows(cut[0][k], cut[1][k]) for k in of_chunks[chunk]), noise]


def _apart(summary: Summary, steps: TableSteps, first: int, end: int) -> tuple[Summary, Summary]:
    """Return the rows of clusters from `first` on, before `end`, and the summary of the others."""
    a, b = np.searchsorted(summary.ids, (first, end))
    rows = steps.finish({name: values[..., a:b] for name, values in summary.columns.items()})
    others = {name: np.delete(values, np.s_[a:b], -1) for name, values in summary.columns.items()}
    shared = replace(summary, ids=np.delete(summary.ids, np.s_[a:b]), columns=others)
    return Summary(summary.ids[a:b], rows), shared


def _put_together(
    pieces: list[ChunkRows], k: int, *, ranges: tuple[int, ...], steps: TableSteps, nothing: Summary
) -> Columns:
    """Return the columns of range number `k`."""
    first = sum(ranges[:k])
    total = merged([piece.shared for piece in pieces if piece.shared is not None] or [nothing], steps.merge)
    every = [(piece.own.ids - first, piece.own.columns) for piece in pieces if piece.own is not None]
    every.append((total.ids - first, steps.finish(total.columns)))
    return in_rows(every, ranges[k], steps.zero)


def reduced_objects(step: str, function: Callable[..., Any], combine: Callable[[list[Any]], Any], *arrays: Any) -> Any:
    """Return the objects that a function makes of blocks of dask arrays (n,) combined as a tree, computed now."""
    one_each = ((1,) * arrays[0].numblocks[0],)
    objects = mapped(step, functools.partial(_boxed, function=function), *arrays, chunks=one_each)
    return as_tree(step, objects, combine).compute()[0]


def as_tree(step: str, objects: Any, combine: Callable[[list[Any]], Any]) -> Any:
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


def _combine_boxes(found: Any, axis: Any, keepdims: Any, *, combine: Callable[[list[Any]], Any]) -> Array:
    """Return one object of those in an array, or in nested lists of arrays; None of none."""
    from dask.core import flatten

    arrays = list(flatten([found]))
    parts = [part for box in arrays for part in box.flat if part is not None]
    return boxes([combine(parts) if parts else None]).reshape((1,) * arrays[0].ndim)


def _boxed(*blocks: Array, function: Callable[..., Any]) -> Array:
    return boxes([function(*blocks)])


def _parts(pieces: Array, total: Array) -> Array:
    """Return what the merged summary of one range has on the clusters of each chunk."""
    return boxes([None if piece is None else _known(piece, total[0, 0]) for piece in pieces[:, 0]])[:, None]


def _known(piece: Summary, total: Summary) -> Summary:
    place = np.searchsorted(total.ids, piece.ids)
    return replace(piece, columns={name: values[..., place] for name, values in total.columns.items()})


def _joined(parts: list[Array]) -> Array:
    return boxes([joined([part for part in parts[0].flat if part is not None])])


def _finished(
    total: list[Array], number: tuple[int], *, ranges: tuple[int, ...], steps: TableSteps, nothing: Summary
) -> Array:
    k, found = number[0], unboxed(total) or nothing
    return boxes([finished(replace(found, ids=found.ids - sum(ranges[:k])), ranges[k], 0, steps)])[None]


def _take(table: Any, column: str) -> Array:
    """Return a column of a range, whose table is in an array of objects, or in lists of one."""
    values: Array = unboxed(table)[column]
    return values


def boxes(values: Iterable[Any]) -> Array:
    """Return any objects as an array."""
    return boxed(list(values))[:, 0]
