"""The table of pixel clusters of hits in chunks: a summary of each, and how summaries of several become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskclust.core.device.arrays import HOST
from daskclust.core.device.threads import one_thread
from daskclust.core.merge.labels import NOISE
from daskclust.properties.kernels import chains as chain_kernels
from daskclust.properties.kernels import clusters as kernels
from daskclust.properties.kernels.clusters import Totals

from ._columns import Int, explain, grouped, in_rows, numbered, on_device
from ._pixel_arrays import CHECKED, FLOATS, divided, empty_columns, hits_of, is_there, survey

_OPERATIONS = dict.fromkeys(("x_min", "y_min"), np.minimum) | dict.fromkeys(("x_max", "y_max", "toa_last"), np.maximum)
_OF_FIRST_HIT, _OF_SEED = ("toa", "tof", "chip"), ("seed", "tot_max", "x_seed", "y_seed")


@dataclass(frozen=True, slots=True)
class Partial:
    """What is known of the clusters that have hits in some chunks."""

    ids: Int  # (m,): numbers of the clusters, ascending
    totals: Totals  # of arrays (m,)
    noise_size: int
    noise_weight: float


def summarise(arrays: Mapping[str, Any], start: int, by: int) -> Partial:
    """Return the summary of one chunk of n hits."""
    arrays = on_device(HOST, arrays)
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
        explain(arrays, start, *CHECKED)
    return Partial(ids, totals, int(blocks.noise_size.sum()), float(np.sum(blocks.noise_weight)))


def merge(parts: Sequence[Partial]) -> Partial:
    """Return the summary of all chunks of which some summaries are."""
    if len(parts) == 1:
        return parts[0]
    groups = grouped(np.concatenate([part.ids for part in parts]))
    t = Totals(*(np.concatenate(columns) for columns in zip(*(part.totals for part in parts), strict=True)))
    winners = dict.fromkeys(_OF_FIRST_HIT, groups.lowest(t.toa)) | dict.fromkeys(_OF_SEED, groups.lowest(-t.tot_max))
    result = {
        name: values[winners[name]] if name in winners else groups.reduced(_OPERATIONS.get(name, np.add), values)
        for name, values in t._asdict().items()
    }
    noise_weight = float(np.sum([part.noise_weight for part in parts]))
    return Partial(groups.ids, Totals(**result), sum(part.noise_size for part in parts), noise_weight)


def finish(partial: Partial, n_clusters: int | None, *, by: int, has: tuple[str, ...]) -> dict[str, Any]:
    """Return the columns of the table, and the two numbers of noise."""
    columns = empty_columns(HOST, partial.totals, len(partial.ids), has)
    with one_thread():
        kernels.finish_row.run(len(partial.ids), partial.totals, by, columns)
    found = {name: column for name, column in columns._asdict().items() if is_there(name, has)}
    points = int(partial.totals.size.sum()) + partial.noise_size
    result = in_rows(found, partial.ids, points, n_clusters, ("size", "tot", "energy"))
    noise = {"noise_size": np.asarray(partial.noise_size), "noise_weight": np.asarray(partial.noise_weight)}
    return result | noise
