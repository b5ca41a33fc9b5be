"""The table of pixel clusters of hits in chunks: a summary of each, and how summaries of several become one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from daskclust.core.device.arrays import HOST
from daskclust.core.device.threads import one_thread
from daskclust.core.merge.labels import NOISE
from daskclust.properties.kernels import chains as chain_kernels
from daskclust.properties.kernels import clusters as kernels
from daskclust.properties.kernels.clusters import Totals

from ._columns import explain, on_device
from ._pixel_arrays import CHECKED, FLOATS, divided, empty_columns, hits_of, is_there, survey
from ._summary import Columns, Groups, Summary, numbered

_OPERATIONS = dict.fromkeys(("x_min", "y_min"), np.minimum) | dict.fromkeys(("x_max", "y_max", "toa_last"), np.maximum)
_OF_FIRST_HIT, _OF_SEED = ("toa", "tof", "chip"), ("seed", "tot_max", "x_seed", "y_seed")


def summarise(arrays: Mapping[str, Any], start: int, by: int) -> Summary:
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
    return Summary(ids, totals._asdict(), int(blocks.noise_size.sum()), float(np.sum(blocks.noise_weight)))


def merge(groups: Groups, many: Columns) -> Columns:
    """Return the totals of each cluster, of those of several summaries."""
    first, seed = groups.lowest(many["toa"]), groups.lowest(-many["tot_max"])
    winners = dict.fromkeys(_OF_FIRST_HIT, first) | dict.fromkeys(_OF_SEED, seed)
    return {
        name: values[winners[name]] if name in winners else groups.reduced(_OPERATIONS.get(name, np.add), values)
        for name, values in many.items()
    }


def finish(many: Columns, *, by: int, has: tuple[str, ...]) -> dict[str, Any]:
    """Return the columns of the table."""
    totals = Totals(**many)
    columns = empty_columns(HOST, totals, len(totals.size), has)
    with one_thread():
        kernels.finish_row.run(len(totals.size), totals, by, columns)
    return {name: column for name, column in columns._asdict().items() if is_there(name, has)}
