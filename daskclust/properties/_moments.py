"""Moments of clusters of points: a summary of one chunk, one summary of several, and the rows that follow."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from daskclust.core.data.quote import repeated
from daskclust.core.device.arrays import HOST
from daskclust.core.merge.labels import NOISE

from ._columns import check, check_labels, finite, on_device
from ._summary import Array, Columns, Groups, Summary, grouped

Float = npt.NDArray[np.float64]

# In place of a seed or a layer that is not there: the largest index, so that a minimum prefers any other.
_NONE = np.iinfo(np.int64).max
_OPERATIONS = {
    "size": np.add,
    **dict.fromkeys(("low", "first_layer"), np.minimum),
    **dict.fromkeys(("high", "last_layer"), np.maximum),
}


# Columns of a summary, of c coordinates:
#   size, weight       number of points, and sum of weights
#   mean, square       (c, m): weighted mean, and weighted sum of squared distances to it
#   low, high          (c, m): extent
#   seed               smallest index of a seed, its layer, and (c, m) its position, NaN without one
#   seed_layer, seed_at
#   first_layer, last_layer: extent in layers
#   peak, peak_at      the largest weight, and (c, m) the first point that has it; only where they are asked for
#   time, time_weight  weighted mean of times, and sum of 1 / time_error**2; only where there are these


def summarise(arrays: Mapping[str, Array], start: int, names: tuple[str, ...], *, peaks: bool = False) -> Summary:
    """Return the summary of one chunk, whose first point has the index `start`: each point is a summary of its own."""
    arrays = on_device(HOST, arrays)
    labels = arrays["labels"].astype(np.int64, copy=False)
    check_labels(labels, start)
    weight = finite(arrays["weight"], "weight", start) if "weight" in arrays else np.ones(len(labels))
    check(weight >= 0, weight, "weight", "must not be negative", start)
    points = [finite(arrays[f"[{name}]"], name, start) for name in names]
    inside = labels != NOISE
    n = int(inside.sum())
    x = np.array([values[inside] for values in points]).reshape(len(names), n)
    seeds = arrays["is_seed"][inside] if "is_seed" in arrays else np.zeros(n, bool)
    layer = arrays["layer"][inside].astype(np.int64) if "layer" in arrays else np.full(n, _NONE)
    every = {
        "size": np.ones(n, np.int64),
        "weight": weight[inside],
        "mean": x,
        "square": np.zeros_like(x),
        "low": x,
        "high": x,
        "seed_at": np.where(seeds, x, np.nan),
        "seed": np.where(seeds, start + np.flatnonzero(inside), _NONE),
        "seed_layer": np.where(seeds, layer, _NONE),
        "first_layer": layer,
        "last_layer": layer,
    }
    if peaks:
        every |= {"peak": weight[inside], "peak_at": x}
    if "time" in arrays:
        every |= {name: values[inside] for name, values in _times(arrays, start).items()}
    groups = grouped(labels[inside])
    return Summary(groups.ids, merge(groups, every), len(labels) - n, float(weight[~inside].sum()))


def _times(arrays: Mapping[str, Array], start: int) -> dict[str, Float]:
    """Return times and their weights, 0 for those whose resolution is not positive, or NaN: they are not known."""
    error = arrays["time_error"].astype(np.float64, copy=False)
    known = error > 0
    time = finite(np.where(known, arrays["time"], 0.0), "time", start)
    with np.errstate(divide="ignore", over="ignore"):
        weight = np.divide(1.0, error * error, out=np.zeros(len(error)), where=known)
    return {"time": time, "time_weight": finite(weight, "1 / time_error**2", start)}


def merge(groups: Groups, many: Columns) -> Columns:
    """Return the columns of each cluster, of those of several summaries."""
    seed = groups.lowest(many["seed"])
    mean, square = np.empty((2, len(many["mean"]), len(groups.ids)))
    for k, (x, around) in enumerate(zip(many["mean"], many["square"], strict=True)):
        mean[k], square[k] = moments(groups, many["weight"], x, around)
    found = {name: groups.reduced(operation, many[name]) for name, operation in _OPERATIONS.items()}
    found |= {"weight": sums(groups, many["weight"]), "mean": mean, "square": square}
    if "peak" in many:
        peak = groups.lowest(-many["peak"])
        found |= {name: many[name][..., peak] for name in ("peak", "peak_at")}
    if "time" in many:
        weight = many["time_weight"]
        found["time"], _ = moments(groups, weight, many["time"], np.zeros(len(weight)))
        found["time_weight"] = sums(groups, weight)
    return found | {name: many[name][..., seed] for name in ("seed_at", "seed", "seed_layer")}


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
    if has_layers:
        common = np.where(many["first_layer"] == many["last_layer"], many["first_layer"], NOISE)
        layer = many["seed_layer"] if has_seeds else common
        found += [("layer", np.where(layer == _NONE, NOISE, layer))]
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
