"""The table of pixel clusters of hits in chunks: a summary of each, and how summaries of several become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskclust.core.data.checks import check_count
from daskclust.core.device.arrays import HOST
from daskclust.core.device.threads import one_thread
from daskclust.core.merge.labels import NOISE
from daskclust.properties.kernels import chains as chain_kernels
from daskclust.properties.kernels import clusters as kernels
from daskclust.properties.kernels.clusters import Totals

from ._columns import Array, Int, groups, numbered, row_count
from ._pixel_arrays import FLOATS, divided, empty_columns, explain, hits_of, is_there, prepared, survey

_OPERATIONS = dict.fromkeys(("x_min", "y_min"), np.minimum) | dict.fromkeys(("x_max", "y_max", "toa_last"), np.maximum)


@dataclass(frozen=True, slots=True)
class Partial:
    """What is known of the clusters that have hits in some chunks."""

    ids: Int  # (m,): numbers of the clusters, ascending
    totals: Totals  # of arrays (m,)
    noise_size: int
    noise_weight: float


def summarise(arrays: Mapping[str, Any], start: int, by: int) -> Partial:
    """Return the summary of one chunk of n hits."""
    check_count(len(arrays["labels"]))
    arrays = prepared(HOST, arrays, start)
    labels, hits, bad = arrays["labels"], hits_of(HOST, arrays), np.zeros(1, np.int64)
    ids, local = numbered(labels)
    types: dict[str, Any] = dict.fromkeys((*FLOATS, "wx", "wy"), np.float64)
    types |= {"chip": hits.chip.dtype, "tot_max": hits.tot.dtype, "x_seed": hits.x.dtype, "y_seed": hits.y.dtype}
    totals = Totals(*(np.empty(len(ids), types.get(name, np.int64)) for name in Totals._fields))
    with one_thread():
        blocks = survey(HOST, local, hits, by, bad)
        pieces = divided(len(ids), len(local), blocks)
        head = HOST.scratch("pixel heads", int(np.diff(pieces.first).max()), np.int32)
        following = HOST.scratch("pixel chains", len(local), np.int32)
        chain_kernels.total_piece.run(
            len(pieces.first_block), pieces, local, blocks, head, following, hits, start, by, totals, bad
        )
    if bad[0] or labels.min(initial=NOISE) < NOISE:
        explain(arrays, start)
    return Partial(ids, totals, int(blocks.noise_size.sum()), float(np.sum(blocks.noise_weight)))


def merge(parts: Sequence[Partial]) -> Partial:
    """Return the summary of all chunks of which some summaries are."""
    if len(parts) == 1:
        return parts[0]
    ids, group = groups(np.concatenate([part.ids for part in parts]))
    t = Totals(*(np.concatenate(columns) for columns in zip(*(part.totals for part in parts), strict=True)))
    head = np.empty(len(ids), np.int64)
    head[group[::-1]] = np.arange(len(group))[::-1]  # the last that is written stays: the first place of each cluster
    rest = np.flatnonzero(head[group] != np.arange(len(group)))  # few: clusters that cross a border
    first = _winner(group, head, rest, -t.toa)
    seed = _winner(group, head, rest, t.tot_max)
    result = {}
    for name, values in t._asdict().items():
        if name in ("toa", "tof", "chip"):
            result[name] = values[first]
        elif name in ("seed", "tot_max", "x_seed", "y_seed"):
            result[name] = values[seed]
        else:
            result[name] = _reduced(_OPERATIONS.get(name, np.add), group, head, rest, values)
    noise_weight = float(np.sum([part.noise_weight for part in parts]))
    return Partial(ids, Totals(**result), sum(part.noise_size for part in parts), noise_weight)


def _reduced(operation: np.ufunc, group: Array, head: Array, rest: Array, values: Array) -> Array:
    """Return an operation's result for the values of each group: that at its `head`, then those of `rest`."""
    result: Array = values[head]
    operation.at(result, group[rest], values[rest])
    return result


def _winner(group: Array, head: Array, rest: Array, values: Array) -> Array:
    """Return the place of each group's largest value, the first of several."""
    largest = _reduced(np.maximum, group, head, rest, values)
    places = rest[values[rest] == largest[group[rest]]][::-1]
    result = head.copy()
    result[group[places]] = places  # the last that is written stays: the first place
    return np.where(values[head] == largest, head, result)


def finish(partial: Partial, n_clusters: int | None, *, by: int, has: tuple[str, ...]) -> dict[str, Any]:
    """Return the columns of the table, and the two numbers of noise."""
    largest = int(partial.ids.max(initial=-1))
    rows = row_count(largest, int(partial.totals.size.sum()) + partial.noise_size, n_clusters)
    columns = empty_columns(HOST, partial.totals, rows, has)
    with one_thread():
        kernels.empty_row.run(rows, columns)
        kernels.finish_row.run(len(partial.ids), partial.totals, partial.ids, by, columns)
    result = {name: column for name, column in columns._asdict().items() if is_there(name, has)}
    noise = {"noise_size": np.asarray(partial.noise_size), "noise_weight": np.asarray(partial.noise_weight)}
    return result | noise
