"""Summaries of clusters in one chunk of points, and how summaries of several chunks become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.merge.labels import NOISE

from ._columns import Groups, check, check_labels, finite, grouped

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]

# In place of a seed or a layer that is not there: the largest index, so that a minimum prefers any other.
_NONE = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Partial:
    """What is known of the m clusters that have points in some chunks."""

    names: tuple[str, ...]  # the c coordinates
    has_seeds: bool  # whether the points have an ``is_seed``
    noise_size: int
    noise_weight: float
    ids: Int  # (m,): numbers of the clusters, ascending
    size: Int  # (m,): number of points
    weight: Float  # (m,): sum of weights
    mean: Float  # (c, m): weighted mean
    square: Float  # (c, m): weighted sum of squared distances to the mean
    low: Float  # (c, m): extent
    high: Float
    seed_at: Float  # (c, m): position of the seed, NaN without one
    seed: Int  # (m,): smallest index of a seed
    seed_layer: Int  # (m,): its layer
    first_layer: Int  # (m,): extent in layers
    last_layer: Int

    def columns(self, weight: str | None, *, layered: bool) -> list[tuple[str, npt.NDArray[Any]]]:
        """Return the properties of the clusters by name; NaN, and -1 for integers, where one has none."""
        total = np.where(self.weight > 0, self.weight, np.nan)
        found: list[tuple[str, npt.NDArray[Any]]] = [("size", self.size)]
        found += [] if weight is None else [(weight, self.weight)]
        for k, name in enumerate(self.names):
            found += [(name, np.where(self.weight > 0, self.mean[k], np.nan))]
            found += [(f"{name}_rms", np.sqrt(self.square[k] / total))]
            found += [(f"{name}_min", self.low[k]), (f"{name}_max", self.high[k])]
        found += [("rms", np.sqrt(self.square.sum(axis=0) / total))]
        if self.has_seeds:
            found += [("seed", np.where(self.seed == _NONE, NOISE, self.seed))]
            found += [(f"{name}_seed", at) for name, at in zip(self.names, self.seed_at, strict=True)]
        if layered:
            common = np.where(self.first_layer == self.last_layer, self.first_layer, NOISE)
            layer = self.seed_layer if self.has_seeds else common
            found += [("layer", np.where(layer == _NONE, NOISE, layer))]
        return found


def summarise(arrays: Mapping[str, npt.NDArray[Any]], start: int, names: tuple[str, ...]) -> Partial:
    """Return the summary of one chunk, whose first point has the index `start`: each point is a summary of its own."""
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
    every = Partial(
        names=names,
        has_seeds="is_seed" in arrays,
        noise_size=len(labels) - n,
        noise_weight=float(weight[~inside].sum()),
        ids=labels[inside],
        size=np.ones(n, np.int64),
        weight=weight[inside],
        mean=x,
        square=np.zeros_like(x),
        low=x,
        high=x,
        seed_at=np.where(seeds, x, np.nan),
        seed=np.where(seeds, start + np.flatnonzero(inside), _NONE),
        seed_layer=np.where(seeds, layer, _NONE),
        first_layer=layer,
        last_layer=layer,
    )
    return _grouped(every)


def merge(parts: Sequence[Partial]) -> Partial:
    """Return the summary of all chunks of which some summaries are, in the order of the chunks."""
    if len(parts) == 1:
        return parts[0]
    joined: dict[str, Any] = {
        f.name: np.concatenate([getattr(part, f.name) for part in parts], axis=-1)
        for f in fields(Partial)
        if isinstance(getattr(parts[0], f.name), np.ndarray)
    }
    size, weight = sum(part.noise_size for part in parts), float(np.sum([part.noise_weight for part in parts]))
    return _grouped(replace(parts[0], noise_size=size, noise_weight=weight, **joined))


def _grouped(many: Partial) -> Partial:
    """Return the summary of several, in which clusters may be more than once."""
    groups = grouped(many.ids)
    seed = groups.lowest(many.seed)
    moments = [_moments(groups, many.weight, *each) for each in zip(many.mean, many.square, strict=True)]
    mean, square = np.array(moments).reshape(len(many.names), 2, len(groups.ids)).swapaxes(0, 1)
    return replace(
        many,
        ids=groups.ids,
        size=groups.reduced(np.add, many.size),
        weight=_sums(groups, many.weight),
        mean=mean,
        square=square,
        low=_along_axes(groups, np.minimum, many.low),
        high=_along_axes(groups, np.maximum, many.high),
        seed_at=many.seed_at[:, seed],
        seed=many.seed[seed],
        seed_layer=many.seed_layer[seed],
        first_layer=groups.reduced(np.minimum, many.first_layer),
        last_layer=groups.reduced(np.maximum, many.last_layer),
    )


def _moments(groups: Groups, weight: Float, x: Float, square: Float) -> tuple[Float, Float]:
    """Return weighted means, and weighted sums of squares around them, of groups of points or of summaries.

    A summary is a point at its mean, with the squares around that added (Chan et al.). All differences are taken from
    a point of the group itself, then from its mean, so that no digits cancel far from the origin.
    """
    group, total = groups.group, _sums(groups, weight)
    divisor = np.where(total > 0, total, 1.0)
    mean = x[groups.first]
    mean += _sums(groups, weight * (x - mean[group])) / divisor
    rest = x - mean[group]
    shift = _sums(groups, weight * rest) / divisor
    around = _sums(groups, weight * rest * rest + square)
    return mean + shift, np.maximum(around - total * shift * shift, 0.0)


def _along_axes(groups: Groups, operation: np.ufunc, values: Float) -> Float:
    """Return an operation's result for each axis and group."""
    return np.array([groups.reduced(operation, row) for row in values]).reshape(len(values), len(groups.ids))


def _sums(groups: Groups, values: Float) -> Float:
    """Return the sum of values of each group, in the order of the points."""
    # Of no points, bincount returns integers.
    return np.bincount(groups.group, values, len(groups.ids)).astype(np.float64, copy=False)
