"""Moments of clusters of points: a summary of one chunk, one summary of several, and the rows that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from daskclust.core.data.quote import repeated
from daskclust.core.device.arrays import HOST
from daskclust.core.merge.labels import NOISE
from daskclust.properties.kernels.halos import Particles, Spreads, find_both

from ._columns import check, check_labels, finite, on_device
from ._members import GRAIN, empty, empty_means, moved
from ._summary import Array, Columns, Groups, Int, Summary, grouped, numbered

Float = npt.NDArray[np.float64]

# In place of a seed or a layer that is not there: the largest index, so that a minimum prefers any other.
_NONE = np.iinfo(np.int64).max
_OPEN = ((0.0, 0.0),) * 3  # no axis of a box is periodic
_OPERATIONS = {
    "size": np.add,
    **dict.fromkeys(("low", "first_layer"), np.minimum),
    **dict.fromkeys(("high", "last_layer"), np.maximum),
}


# Columns of a summary, of c coordinates:
#   size, weight       number of points, and sum of weights
#   mean, square       (c, m): weighted mean, and weighted sum of squared distances to it
#   low, high          (c, m): extent
#   seed               smallest index of a seed, its layer, and (c, m) its position, NaN without one; only with seeds
#   seed_layer, seed_at
#   first_layer, last_layer: extent in layers; only where there are these, and no seeds
#   peak, peak_at      the largest weight, and (c, m) the first point that has it; only where they are asked for
#   time, time_weight  weighted mean of times, and sum of 1 / time_error**2; only where there are these


def summarise(arrays: Mapping[str, Array], start: int, names: tuple[str, ...], *, peaks: bool = False) -> Summary:
    """Return the summary of one chunk, whose first point has the index `start`."""
    arrays = on_device(HOST, arrays)
    labels = arrays["labels"].astype(np.int64, copy=False)
    check_labels(labels, start)
    weight = finite(arrays["weight"], "weight", start) if "weight" in arrays else np.ones(len(labels))
    check(weight >= 0, weight, "weight", "must not be negative", start)
    points = [finite(arrays[f"[{name}]"], name, start) for name in names]
    inside = labels != NOISE
    ids, local = numbered(labels)
    found = _of_members(local, len(ids), points, weight)
    if "is_seed" in arrays:
        seeds = np.flatnonzero(arrays["is_seed"] & inside)
        found |= _of_seeds(seeds, start, local, len(ids), points, arrays.get("layer"))
    elif "layer" in arrays:
        groups, layer = grouped(local[inside]), arrays["layer"][inside].astype(np.int64)
        found |= {name: groups.reduced(_OPERATIONS[name], layer) for name in ("first_layer", "last_layer")}
    every = {"peak": weight[inside], "peak_at": np.array([values[inside] for values in points])} if peaks else {}
    if "time" in arrays:
        every |= {name: values[inside] for name, values in _times(arrays, start).items()}
    found |= _chosen(grouped(local[inside]), every) if every else {}
    return Summary(ids, found, int(np.count_nonzero(~inside)), float(weight[~inside].sum()))


def _of_members(local: Int, rows: int, points: Sequence[Float], weight: Float) -> dict[str, Array]:
    """Return what clusters numbered from 0 have of their points: three axes at once, by the kernels of halos."""
    found: dict[str, Array] = {name: np.empty((len(points), rows)) for name in ("mean", "square", "low", "high")}
    nothing = np.empty(0)
    for k in range(0, len(points), 3):
        some = points[k : k + 3]
        x, y, z = map(np.ascontiguousarray, (*some, *some, *some)[:3])  # axes that are not there: no other kernels
        first, order, members = moved(local, Particles(x, y, z, nothing, nothing, nothing, weight), rows)
        means, spreads = empty_means(HOST, rows), empty(HOST, Spreads, rows)
        find_both.run(rows, first, order, members, _OPEN, means, spreads, grain=GRAIN)
        for axis in range(len(some)):
            found["mean"][k + axis] = (means.x, means.y, means.z)[axis]
            found["square"][k + axis] = (spreads.xx, spreads.yy, spreads.zz)[axis]
            found["low"][k + axis] = np.minimum.reduceat(members[axis], first[:-1])
            found["high"][k + axis] = np.maximum.reduceat(members[axis], first[:-1])
        found |= {"size": means.size, "weight": means.mass}
    return found


def _of_seeds(
    seeds: Int, start: int, local: Int, rows: int, points: Sequence[Float], layer: Array | None
) -> dict[str, Array]:
    """Return the first of some seeds of each cluster, with its position, and its layer where there are layers."""
    at = seeds[::-1]  # the last that is written stays
    found: dict[str, Array] = {"seed": np.full(rows, _NONE), "seed_at": np.full((len(points), rows), np.nan)}
    found["seed"][local[at]] = start + at
    for place, values in zip(found["seed_at"], points, strict=True):
        place[local[at]] = values[at]
    if layer is not None:
        found["seed_layer"] = np.full(rows, _NONE)
        found["seed_layer"][local[at]] = layer[at]
    return found


def _times(arrays: Mapping[str, Array], start: int) -> dict[str, Float]:
    """Return times and their weights, 0 for those whose resolution is not positive, or NaN: they are not known."""
    error = arrays["time_error"].astype(np.float64, copy=False)
    known = error > 0
    time = finite(np.where(known, arrays["time"], 0.0), "time", start)
    with np.errstate(divide="ignore", over="ignore"):
        weight = np.divide(1.0, error * error, out=np.zeros(len(error)), where=known)
    return {"time": time, "time_weight": finite(weight, "1 / time_error**2", start)}


def merge(groups: Groups, many: Columns) -> dict[str, Array]:
    """Return the columns of each cluster, of those of several summaries."""
    mean, square = np.empty((2, len(many["mean"]), len(groups.ids)))
    for k, (x, around) in enumerate(zip(many["mean"], many["square"], strict=True)):
        mean[k], square[k] = moments(groups, many["weight"], x, around)
    found = {name: groups.reduced(operation, many[name]) for name, operation in _OPERATIONS.items() if name in many}
    found |= {"weight": sums(groups, many["weight"]), "mean": mean, "square": square}
    if "seed" in many:
        seed = groups.lowest(many["seed"])
        found |= {name: many[name][..., seed] for name in ("seed_at", "seed", "seed_layer") if name in many}
    return found | _chosen(groups, many)


def _chosen(groups: Groups, many: Columns) -> dict[str, Array]:
    """Return the points with the largest weights, and the means of times, where these are asked for."""
    found: dict[str, Array] = {}
    if "peak" in many:
        peak = groups.lowest(-many["peak"])
        found |= {name: many[name][..., peak] for name in ("peak", "peak_at")}
    if "time" in many:
        weight = many["time_weight"]
        found["time"], _ = moments(groups, weight, many["time"], np.zeros(len(weight)))
        found["time_weight"] = sums(groups, weight)
    return found


def finish(
    many: Columns, names: tuple[str, ...], weight: str | None, *, has_seeds: bool, has_layers: bool
) -> dict[str, Array]:
    """Return the properties of the clusters by name; NaN, and -1 for integers, where one has none.

    Positions are those of the second pass where there was one.
    """
    place, share = ("log_mean", "log_weight") if "log_mean" in many else ("mean", "weight")
    total = np.where(many["weight"] > 0, many["weight"], np.nan)
    found: list[tuple[str, Array]] = [("size", many["size"])]
    found += [] if weight is None else [(weight, many["weight"])]
    for k, name in enumerate(names):
        found += [(name, np.where(many[share] > 0, many[place][k], np.nan))]
        found += [(f"{name}_rms", np.sqrt(many["square"][k] / total))]
        found += [(f"{name}_min", many["low"][k]), (f"{name}_max", many["high"][k])]
    found += [("rms", np.sqrt(many["square"].sum(axis=0) / total))]
    if has_seeds:
        found += [("seed", np.where(many["seed"] == _NONE, NOISE, many["seed"]))]
        found += [(f"{name}_seed", at) for name, at in zip(names, many["seed_at"], strict=True)]
    if has_layers and has_seeds:
        found += [("layer", np.where(many["seed_layer"] == _NONE, NOISE, many["seed_layer"]))]
    elif has_layers:
        found += [("layer", np.where(many["first_layer"] == many["last_layer"], many["first_layer"], NOISE))]
    if "time" in many:
        known = np.where(many["time_weight"] > 0, many["time_weight"], np.nan)
        found += [("time", np.where(known > 0, many["time"], np.nan)), ("time_error", 1 / np.sqrt(known))]
    if twice := repeated([*(name for name, _ in found), "cluster"]):  # its dimension
        raise ValueError(f"the table would have {twice} twice; rename these columns, or choose others")
    return dict(found)


def moments(groups: Groups, weight: Float, x: Float, square: Float) -> tuple[Float, Float]:
    """Return weighted means, and weighted sums of squares around them, of groups of points or of summaries.

    A summary is a point at its mean, with the squares around that added (Chan et al.). All differences are taken from
    a point of the group itself, then from its mean, so that no digits cancel far from the origin.
    """
    group, total = groups.group, sums(groups, weight)
    divisor = np.where(total > 0, total, 1.0)
    mean = x[groups.first]
    mean += sums(groups, weight * (x - mean[group])) / divisor
    rest = x - mean[group]
    shift = sums(groups, weight * rest) / divisor
    around = sums(groups, weight * rest * rest + square)
    return mean + shift, np.maximum(around - total * shift * shift, 0.0)


def sums(groups: Groups, values: Float) -> Float:
    """Return the sum of values of each group, in the order of the points."""
    # Of no points, bincount returns integers.
    return np.bincount(groups.group, values, len(groups.ids)).astype(np.float64, copy=False)
