"""The table of pixel clusters: its inputs, its columns with their units, in memory or lazy."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.columns import doubles
from daskclust.core.device.arrays import HOST
from daskclust.core.device.threads import one_thread
from daskclust.core.merge.labels import NOISE
from daskclust.properties.kernels.chains import total_piece
from daskclust.properties.kernels.clusters import BY_ENERGY, BY_NOTHING, BY_TOT, Totals, finish_row

from . import _lazy
from ._columns import checked, explain, label_values, on_device, pixels, table_of, variable
from ._groups import group_columns
from ._pixel_arrays import (
    CHECKED,
    FLOATS,
    OPTIONAL,
    divided,
    empty_columns,
    hits_of,
    is_there,
    survey,
    tabulate,
)
from ._summary import Columns, Groups, Summary, TableSteps, numbered

_NEEDED = ("x", "y", "toa")
_WEIGHTS: dict[str | None, int] = {None: BY_NOTHING, "tot": BY_TOT, "energy": BY_ENERGY}
_KINDS = {"x": pixels, "y": pixels, "chip": pixels, "toa": doubles, "tof": doubles}

# Of which variable a column has its units.
_SOURCES = {
    "toa": "toa", "toa_last": "toa", "tof": "tof", "tot": "tot", "tot_max": "tot", "energy": "energy", "chip": "chip",
    "x": "x", "x_plain": "x", "x_min": "x", "x_max": "x", "x_seed": "x", "length": "x", "width": "x",
    "y": "y", "y_plain": "y", "y_min": "y", "y_max": "y", "y_seed": "y",
}  # fmt: skip

_OPERATIONS = dict.fromkeys(("x_min", "y_min"), np.minimum) | dict.fromkeys(("x_max", "y_max", "toa_last"), np.maximum)
_OF_FIRST_HIT, _OF_SEED = ("toa", "tof", "chip"), ("seed", "tot_max", "x_seed", "y_seed")


def are_pixels(ds: xr.Dataset) -> bool:
    """Return whether a data set is Timepix hits."""
    return ds.attrs.get("field") == "timepix" or all(name in ds for name in (*_NEEDED, "tot"))


def pixel_table(
    ds: xr.Dataset,
    labels: str | xr.DataArray | npt.ArrayLike,
    weight: str | EllipsisType | None,
    coords: Sequence[str] | None,
    n_clusters: int | None,
) -> xr.Dataset:
    """Return the table of pixel clusters: `cluster_table` of a Timepix data set."""
    if coords is not None:
        raise ValueError(f"coords={coords!r}: positions of pixels are x and y; leave it out, or drop tot for points")
    if isinstance(weight, EllipsisType):
        weight = next((name for name in ("energy", "tot") if name in ds), None)
    if weight not in tuple(_WEIGHTS):
        raise ValueError(f"weight of pixels must be 'tot', 'energy' or None, got {weight!r}")
    if weight is not None:
        variable(ds, weight, "weight")
    missing = [name for name in _NEEDED if name not in ds]
    if missing:
        raise ValueError(f"the Timepix data set has no {', '.join(missing)}; it has {', '.join(map(str, ds))}")
    given = {name: ds[name].data for name in (*_NEEDED, "tot", *OPTIONAL) if name in ds}
    tot = given["tot"] if "tot" in given else xr.zeros_like(ds["x"], np.float32).data
    arrays = checked({"labels": label_values(ds, labels), **given, "tot": tot}, ds["x"].shape, _KINDS)
    arrays, n_clusters = _lazy.counted(arrays, n_clusters)
    by = _WEIGHTS[weight]
    steps = TableSteps(
        functools.partial(summarise, by=by),
        merge,
        functools.partial(finish, by=by, has=tuple(arrays)),
        zero=("size", "tot", "energy"),
        one_chunk=functools.partial(tabulate, by=by),
    )
    columns = _lazy.columns(arrays, steps, n_clusters)
    if "tot" not in given:
        del columns["tot"], columns["tot_max"]
    columns = {**columns, **group_columns(ds, ds["x"], arrays["labels"], len(columns["size"]), columns)}
    units = {name: ds[source].attrs.get("units") for name, source in _SOURCES.items() if source in given}
    units |= {"size": "1", "seed": "1", "angle": "rad", "noise_size": "1", "event": "1", "layer": "1"}
    first = [name for name in ("size", "tot", "energy") if name in columns]
    return table_of({name: columns[name] for name in dict.fromkeys([*first, *columns])}, units)


# ------------------------------------------------------------------------------------------------------------ in chunks
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
        total_piece.run(len(pieces.first_block), pieces, local, blocks, head, following, hits, start, by, totals, bad)
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
        finish_row.run(len(totals.size), totals, by, columns)
    return {name: column for name, column in columns._asdict().items() if is_there(name, has)}
