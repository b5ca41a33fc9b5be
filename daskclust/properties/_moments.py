"""Summaries of clusters in one chunk of points, and how summaries of several chunks become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.merge.labels import NOISE

from ._columns import check, finite

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]

# In place of a seed or a layer that is not there: the largest index, so that a minimum prefers any other.
_NONE = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Partial:
    """What is known of the clusters that have points in some chunks.

    Parameters
    ----------
    names : tuple of str
        The c coordinates.
    ids : numpy.ndarray of int64, shape (m,)
        Numbers of the clusters, ascending.
    size : numpy.ndarray of int64, shape (m,)
        Number of points.
    weight : numpy.ndarray of float64, shape (m,)
        Sum of weights.
    mean, square : numpy.ndarray of float64, shape (c, m)
        Weighted mean, and weighted sum of squared distances to it.
    low, high, seed_at : numpy.ndarray of float64, shape (c, m)
        Extent; position of the seed, NaN without one.
    seed, seed_layer : numpy.ndarray of int64, shape (m,)
        Smallest index of a seed and its layer.
    first_layer, last_layer : numpy.ndarray of int64, shape (m,)
        Extent in layers.
    noise_size : int
        Number of noise points.
    noise_weight : float
        Sum of their weights.
    has_seeds : bool
        Whether the points have an ``is_seed``.
    """

    names: tuple[str, ...]
    ids: Int
    size: Int
    weight: Float
    mean: Float
    square: Float
    low: Float
    high: Float
    seed_at: Float
    seed: Int
    seed_layer: Int
    first_layer: Int
    last_layer: Int
    noise_size: int
    noise_weight: float
    has_seeds: bool

    def column(self, kind: str, coordinate: str) -> npt.NDArray[Any]:
        """Return one property of the m clusters.

        Parameters
        ----------
        kind : str
            "size", "weight", "mean", "rms", "low", "high", "seed", "seed_at" or "layer".
        coordinate : str
            Where `kind` has coordinates; '' with "rms" is that over all of them.

        Returns
        -------
        numpy.ndarray of float64 or int64, shape (m,)
            NaN, and -1 for integers, where a cluster has no such property.
        """
        if kind in ("mean", "rms"):
            weighted = self.weight > 0
            if kind == "mean":
                return np.where(weighted, self.mean[self.names.index(coordinate)], np.nan)
            square = self.square[self.names.index(coordinate)] if coordinate else self.square.sum(axis=0)
            root: Float = np.sqrt(np.divide(square, self.weight, out=np.full(len(square), np.nan), where=weighted))
            return root
        if kind == "layer":
            common = np.where(self.first_layer == self.last_layer, self.first_layer, NOISE)
            layer = self.seed_layer if self.has_seeds else common
            return np.where(layer == _NONE, NOISE, layer)
        if kind == "seed":
            return np.where(self.seed == _NONE, NOISE, self.seed)
        values: npt.NDArray[Any] = getattr(self, kind)
        return values[self.names.index(coordinate)] if coordinate else values


def summarise(arrays: Mapping[str, npt.NDArray[Any]], start: int, names: tuple[str, ...]) -> Partial:
    """Return the summary of one chunk of n points.

    Parameters
    ----------
    arrays : mapping of str to numpy.ndarray, each of shape (n,)
        By role: "labels", "weight", "layer" and "is_seed" (optional but for labels), and "[name]" for coordinates.
    start : int
        Index of the first point in the data set.
    names : tuple of str
        The coordinates.

    Returns
    -------
    Partial
        Of the clusters that have a point in the chunk.

    Raises
    ------
    ValueError
        For labels below -1, coordinates that are not finite, and weights that are negative or not finite.
    """
    labels = arrays["labels"].astype(np.int64, copy=False)
    check(labels >= NOISE, labels, "labels", f"must be {NOISE} (noise) or larger", start)
    weight = finite(arrays["weight"], "weight", start) if "weight" in arrays else np.ones(len(labels))
    check(weight >= 0, weight, "weight", "must not be negative", start)
    points = {name: finite(arrays[f"[{name}]"], name, start) for name in names}
    inside = labels != NOISE
    ids, group = groups(labels[inside])
    m, w = len(ids), weight[inside]
    seeds = np.full(len(group), _NONE)
    if "is_seed" in arrays:
        seeds = np.where(arrays["is_seed"][inside], start + np.flatnonzero(inside), _NONE)
    layer = arrays["layer"][inside].astype(np.int64) if "layer" in arrays else np.full(len(group), _NONE)
    xs = [points[name][inside] for name in names]
    moments = [_moments(group, m, w, x, np.zeros(len(x))) for x in xs]
    seed = _lowest(group, m, seeds)
    winner = (seeds == seed[group]) & (seeds != _NONE)
    return Partial(
        names=names,
        ids=ids,
        size=np.bincount(group, minlength=m).astype(np.int64),
        weight=_sums(group, m, w),
        mean=_stack([mean for mean, _ in moments], m),
        square=_stack([square for _, square in moments], m),
        low=_stack([_lowest(group, m, x) for x in xs], m),
        high=_stack([-_lowest(group, m, -x) for x in xs], m),
        seed_at=_stack([_of_winner(group, m, winner, x, np.nan) for x in xs], m),
        seed=seed,
        seed_layer=_of_winner(group, m, winner, layer, _NONE),
        first_layer=_lowest(group, m, layer),
        last_layer=-_lowest(group, m, -layer),
        noise_size=int(len(labels) - len(group)),
        noise_weight=float(weight[~inside].sum()),
        has_seeds="is_seed" in arrays,
    )


def merge(parts: Sequence[Partial]) -> Partial:
    """Return the summary of all chunks of which some summaries are.

    Parameters
    ----------
    parts : sequence of Partial
        At least one, in the order of the chunks.

    Returns
    -------
    Partial
        Of all clusters in them.
    """
    if len(parts) == 1:
        return parts[0]
    joined = {
        f.name: np.concatenate([getattr(part, f.name) for part in parts], axis=-1)
        for f in fields(Partial)
        if isinstance(getattr(parts[0], f.name), np.ndarray)
    }
    ids, group = groups(joined["ids"])
    m = len(ids)
    moments = [
        _moments(group, m, joined["weight"], mean, square)
        for mean, square in zip(joined["mean"], joined["square"], strict=True)
    ]
    seed = _lowest(group, m, joined["seed"])
    winner = (joined["seed"] == seed[group]) & (joined["seed"] != _NONE)
    size = np.zeros(m, dtype=np.int64)
    np.add.at(size, group, joined["size"])
    return Partial(
        names=parts[0].names,
        ids=ids,
        size=size,
        weight=_sums(group, m, joined["weight"]),
        mean=_stack([mean for mean, _ in moments], m),
        square=_stack([square for _, square in moments], m),
        low=_stack([_lowest(group, m, x) for x in joined["low"]], m),
        high=_stack([-_lowest(group, m, -x) for x in joined["high"]], m),
        seed_at=_stack([_of_winner(group, m, winner, x, np.nan) for x in joined["seed_at"]], m),
        seed=seed,
        seed_layer=_of_winner(group, m, winner, joined["seed_layer"], _NONE),
        first_layer=_lowest(group, m, joined["first_layer"]),
        last_layer=-_lowest(group, m, -joined["last_layer"]),
        noise_size=sum(part.noise_size for part in parts),
        noise_weight=float(np.sum([part.noise_weight for part in parts])),
        has_seeds=parts[0].has_seeds,
    )


def groups(labels: Int) -> tuple[Int, Int]:
    """Return the distinct labels, ascending, and for each point the position of its label among them.

    Parameters
    ----------
    labels : numpy.ndarray of int64, shape (n,)
        Cluster numbers.

    Returns
    -------
    ids : numpy.ndarray of int64, shape (m,)
        The distinct ones.
    group : numpy.ndarray of int64, shape (n,)
        Positions in `ids`.
    """
    if not len(labels):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    first, last = int(labels.min()), int(labels.max())
    if last - first > 4 * len(labels) + 1024:
        ids, group = np.unique(labels, return_inverse=True)
        return ids, group
    # Cluster numbers are dense, so a table of them is smaller and faster than a sort of the points.
    shifted = labels - first
    present = np.zeros(last - first + 1, dtype=bool)
    present[shifted] = True
    position = np.cumsum(present) - 1
    return np.flatnonzero(present) + first, position[shifted]


def _moments(group: Int, m: int, weight: Float, x: Float, square: Float) -> tuple[Float, Float]:
    """Return weighted means, and weighted sums of squares around them, of groups of points or of summaries.

    A summary is a point at its mean, with the squares around that added (Chan et al.). All differences are taken from
    a point of the group itself, then from its mean, so that no digits cancel far from the origin.
    """
    total = _sums(group, m, weight)
    divisor = np.where(total > 0, total, 1.0)
    mean = np.empty(m)
    mean[group[::-1]] = x[::-1]
    mean += _sums(group, m, weight * (x - mean[group])) / divisor
    rest = x - mean[group]
    shift = _sums(group, m, weight * rest) / divisor
    around = _sums(group, m, weight * rest * rest + square)
    return mean + shift, np.maximum(around - total * shift * shift, 0.0)


def _sums(group: Int, m: int, values: Float) -> Float:
    """Return the sum of values of each group, in the order of the points."""
    # Of no points, bincount returns integers.
    return np.bincount(group, weights=values, minlength=m).astype(np.float64, copy=False)


def _lowest(group: Int, m: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the smallest value of each group."""
    top = np.inf if values.dtype.kind == "f" else _NONE
    result = np.full(m, top, dtype=values.dtype)
    np.minimum.at(result, group, values)
    return result


def _of_winner(
    group: Int, m: int, winner: npt.NDArray[np.bool_], values: npt.NDArray[Any], missing: float
) -> npt.NDArray[Any]:
    """Return the value of the one winner of each group; groups without a winner have `missing`."""
    result = np.full(m, missing, dtype=values.dtype)
    result[group[winner]] = values[winner]
    return result


def _stack(rows: Sequence[npt.NDArray[Any]], m: int) -> Float:
    """Return rows as one array of shape (c, m)."""
    return np.array(rows, dtype=np.float64).reshape(len(rows), m)
