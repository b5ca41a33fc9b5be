"""Parameters that the data suggest, and why: the knee of a curve, or the largest gap of one.

A suggestion without values says why there is none: points that are spread evenly have neither a knee nor a gap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from daskclust.app.parameters import rounded
from daskclust.app.raster import Array
from daskclust.app.state import Outcome
from daskclust.app.systems import Decision, Hierarchy
from daskclust.app.systems._base import Values, coordinates, matrix
from daskclust.core import hierarchy as tree
from daskclust.core.data.inputs import split_points
from daskclust.plot import RHO

_MOST_ASKED = 5_000  # points of which neighbours are looked for, among all points
_LEAST_KNEE = 1.2  # times the distance of the same share of points, were all spread evenly
_LEAST_GAP = 2.0  # a gap is of this factor, and of this power of the next one
_LEAST_JUMP = 1.6  # from the height of a merge to that of the next
_MOST_CLUSTERS = 20  # of a cut
_MOST_HITS = 2_000_000  # in a row, of which times are compared
_SIDE = tuple((dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1))


class Curve(NamedTuple):
    """The curve behind a suggestion: values, its knee or gap, labels of the axes and whether these are logarithmic."""

    x: Array
    y: Array
    at: tuple[float, float] | None
    words: tuple[str, str]
    log: tuple[bool, bool] = (False, False)


class Suggestion(NamedTuple):
    """Values of parameters (none where the data suggest none), the reason in one sentence, and the curve."""

    values: dict[str, Any]
    reason: str
    curve: Curve


def suggest(outcome: Outcome) -> Suggestion:
    """Return suggested parameters for the system of an outcome."""
    system, values = outcome.request.system, outcome.request.values
    return _OF_SYSTEM[system.name](outcome, system.ds, values)


# ----------------------------------------------------------------------------------------------- lengths of neighbours
def knee(distances: Array) -> int:
    """Return the place at which ascending distances bend up most: the farthest one from the chord of their curve.

    Both axes are linear, as in Ester et al. (1996), whose plot this is, and Satopaa et al. (2011), "kneedle".
    """
    rise = (distances - distances[0]) / max(float(distances[-1] - distances[0]), np.finfo(float).tiny)
    return int(np.argmax(np.linspace(0.0, 1.0, len(distances)) - rise))


def neighbour_distances(X: Array, k: int, box: Array | None = None) -> Array:
    """Return ascending distances to the k-th nearest point, itself the first: of a sample, among all points.

    `box` has the period of each axis, 0 for an open one.
    """
    from scipy.spatial import cKDTree

    X = X if box is None else np.where(box > 0, X % np.where(box > 0, box, 1.0), X)
    index = cKDTree(X, boxsize=box)
    asked = np.random.default_rng(0).choice(len(X), min(len(X), _MOST_ASKED), replace=False)
    return np.sort(index.query(X[asked], k=[k])[0][:, 0])


def length(X: Array, k: int, box: Array | None = None) -> tuple[float | None, str, Curve]:
    """Return the distance at the knee (None where there is no knee), the reason, and the curve."""
    words = "share of points (%)", f"distance to neighbour {k}"
    if len(X) < max(k, 10):
        return None, f"{len(X)} points are too few for distances to neighbour {k}", Curve(*_NOTHING, None, words)
    found = neighbour_distances(X, k, box)
    share = 100 * np.arange(1, len(found) + 1) / len(found)
    place = knee(found)
    at = float(share[place]), float(found[place])
    is_knee = 0 < place < len(found) - 1 and at[1] > _LEAST_KNEE * _even(found, share[place] / 100, k, X.shape[1])
    curve = Curve(share, found, at if is_knee else None, words)
    if not is_knee:
        return None, f"Distances to neighbour {k} have no knee: the density is nearly the same everywhere", curve
    reason = f"{at[0]:.0f}% of points have {k - 1} neighbours within {at[1]:.3g}; distances rise steeply beyond"
    return at[1], reason, curve


def _even(found: Array, share: float, k: int, dims: int) -> float:
    """Return the distance quantile of evenly spread points with the same median."""
    from scipy.stats import gamma

    volumes = gamma.ppf([min(share, 0.999), 0.5], k)
    return float(np.median(found) * (volumes[0] / volumes[1]) ** (1 / dims))


def _dbscan(outcome: Outcome, ds: xr.Dataset, values: Values) -> Suggestion:
    X, box = _points(ds)
    at, reason, curve = length(X, max(2, values["min_samples"]), box)
    return Suggestion({} if at is None else {"eps": rounded(at)}, f"{reason}.", curve)


def _fof(outcome: Outcome, ds: xr.Dataset, values: Values) -> Suggestion:
    """Suggest a length by the neighbour 2 d, as Sander et al. (1998) for DBSCAN: friends have no least number."""
    X, box = _points(ds)
    at, reason, curve = length(X, 2 * X.shape[1] + 1, box)
    if at is None or box is None or not all(box) or values.get("by") != "b":
        return Suggestion({} if at is None else {"linking_length": rounded(at)}, f"{reason}.", curve)
    separation = float(np.prod(box) / len(X)) ** (1 / X.shape[1])
    return Suggestion({"b": rounded(at / separation)}, f"{reason}; b is that by the mean separation.", curve)


def _points(ds: xr.Dataset) -> tuple[Array, Array | None]:
    """Return positions in float64, and the periods of axes."""
    points = split_points(ds, (), coordinates(ds))
    X, box = np.asarray(points.X, np.float64), points.box("auto")
    sides = [box] * X.shape[1] if np.ndim(box) == 0 else list(box)
    return X, np.array([side or 0.0 for side in sides]) if any(sides) else None


# ------------------------------------------------------------------------------------------------------- decision plot
def gap(values: Array) -> int:
    """Return how many of descending values are above their largest gap in the logarithm; 0 where no gap stands out.

    It is looked for among the larger half: the last ones are points with one neighbour or two, and their steps chance.
    """
    steps = -np.diff(np.log(values[: len(values) // 2 + 1]))
    if not len(steps):
        return 0
    order = np.argsort(-steps, kind="stable")
    others = steps[order[1]] if len(steps) > 1 else 0.0
    stands_out = steps[order[0]] >= max(np.log(_LEAST_GAP), _LEAST_GAP * others)
    return int(order[0]) + 1 if stands_out else 0


def nearest_denser(X: Array, density: Array, asked: Array) -> Array:
    """Return distances of points `asked` to the nearest of all that are denser, or as dense with a larger index.

    Trees of 1, 2, 4, ... points in the order of density: those denser than a point are at most one of each size.
    """
    from scipy.spatial import cKDTree

    order = np.lexsort((-np.arange(len(X)), -density))
    rank = np.empty(len(X), np.int64)
    rank[order] = np.arange(len(X))
    number, out = rank[asked], np.full(len(asked), np.inf)
    for size in (1 << bit for bit in range(len(X).bit_length())):
        mine = np.flatnonzero(number & size)
        start = number[mine] // (2 * size) * (2 * size)
        for first in np.unique(start):
            which = mine[start == first]
            found = cKDTree(X[order[first : first + size]]).query(X[asked[which]])[0]
            out[which] = np.minimum(out[which], found)
    return out


def _clue(outcome: Outcome, ds: xr.Dataset, values: Values) -> Suggestion:
    """Suggest thresholds at the largest gap of density times distance, as Rodriguez and Laio (2014)."""
    decision = outcome.ground
    assert isinstance(decision, Decision)
    words = "rank", f"{RHO} δ"
    peaks = np.flatnonzero((decision.delta > values["dc"]) & (decision.density > 0))
    if len(peaks) < 3:
        return Suggestion({}, f"Only {len(peaks)} points have no higher one within dc.", Curve(*_NOTHING, None, words))
    density, delta = decision.density[peaks].astype(np.float64), decision.delta[peaks].astype(np.float64)
    beyond = np.isinf(delta)  # not looked for, as far as densities were asked for
    delta[beyond] = nearest_denser(_apart(ds), decision.density, peaks[beyond])
    span = float(np.linalg.norm(np.ptp(matrix(ds, coordinates(ds)), axis=0)))
    highest = delta > 1.001 * span  # of its layer: it has no higher one, and is as far as any other, at least
    delta[highest] = delta[~highest].max(initial=decision.reach)
    order = np.argsort(-density * delta, kind="stable")
    density, delta = density[order], delta[order]
    product, rank = density * delta, np.arange(1.0, len(order) + 1)
    count = gap(product)
    if not count:
        return Suggestion(
            {}, "No gap stands out: density times distance falls evenly.", Curve(rank, product, None, words, _LOG)
        )
    between = float(np.sqrt(product[count - 1] * product[count]))
    curve = Curve(rank, product, (count + 0.5, between), words, _LOG)
    seeds, others = slice(None, count), slice(count, None)
    delta_c = _between(delta[seeds], delta[others][density[others] >= density[seeds].min()])
    rivals = density[others][delta[others] > delta_c]
    rhoc = _between(density[seeds], rivals if len(rivals) else decision.density[decision.density > 0].min())
    number = int(np.count_nonzero((density >= rhoc) & (delta > delta_c)))
    factor = product[count - 1] / product[count]
    reason = f"{count} points stand out: density times distance to a higher point is {factor:.1f} times the next one's"
    reason += "." if number == count else f"; thresholds that keep all of them have {number} seeds."
    return Suggestion({"rhoc": rhoc, "delta_c": delta_c}, reason, curve)


def _apart(ds: xr.Dataset) -> Array:
    """Return positions, and layers and events so far apart that no point is near one of another."""
    X = np.asarray(matrix(ds, coordinates(ds)), np.float64)
    groups = [ds[name].values for name in ("event", "layer") if name in ds.variables]
    far = 4.0 * float(np.linalg.norm(np.ptp(X, axis=0)) or 1.0)
    return np.column_stack([X, *(far * np.unique(group, return_inverse=True)[1] for group in groups)])


def _between(kept: Array, others: Array) -> float:
    """Return a threshold between some values and the next lower ones."""
    low = others.max(initial=0.0)
    least = float(kept.min())
    return rounded(float(np.sqrt(least * low)), 4) if 0 < low < least else rounded(0.999 * least, 4)


# --------------------------------------------------------------------------------------------------- times and heights
def times_between(x: Array, y: Array, toa: Array) -> Array:
    """Return the time since the last earlier hit on the same or a touching pixel, of hits that have one."""
    order = np.argsort(toa, kind="stable")
    x, y, toa = x[order].astype(np.int64), y[order].astype(np.int64), toa[order].astype(np.float64)
    x, y = x - x.min() + 1, y - y.min() + 1
    n, width = len(toa), int(y.max()) + 2
    key = np.sort((x * width + y) * n + np.arange(n))  # by pixel, then by time
    out = np.full(n, np.inf)
    for dx, dy in _SIDE:
        mine = ((x + dx) * width + y + dy) * n + np.arange(n)
        before = key[np.searchsorted(key, mine) - 1]
        is_there = (before // n == mine // n) & (before < mine)
        out[is_there] = np.minimum(out[is_there], (toa - toa[before % n])[is_there])
    found: Array = out[np.isfinite(out)]
    return found


def _events(outcome: Outcome, ds: xr.Dataset, values: Values) -> Suggestion:
    """Suggest a time in the valley between hits of one particle, and of two that happened to touch."""
    from scipy.ndimage import gaussian_filter1d
    from scipy.signal import find_peaks

    words = "time since a touching hit (ns)", "hits"
    ds = ds if outcome.hidden is None else ds.isel({ds["toa"].dims[0]: ~outcome.hidden})
    toa = ds["toa"].values
    early = np.argpartition(toa, _MOST_HITS)[:_MOST_HITS] if len(toa) > _MOST_HITS else slice(None)
    x = ds["x"].values.astype(np.int64)
    if "chip" in ds.variables and ds.attrs.get("layout") != "quad":  # hits of different chips never touch
        x += ds["chip"].values.astype(np.int64) * (int(x.max(initial=0)) + 2)
    found = times_between(x[early], ds["y"].values[early], toa[early])
    positive = found[found > 0]
    if len(positive) < 100:
        reason = f"Only {len(positive)} hits have an earlier one on a touching pixel."
        return Suggestion({}, reason, Curve(*_NOTHING, None, words, (True, False)))
    # bins of a tenth of a decade, smoothed by a fifth: a clock's ticks make no valleys
    low, high = np.log10([positive.min(), positive.max() * 1.001])
    edges = np.linspace(low, high, max(3, round(10 * (high - low)) + 1))
    smooth = gaussian_filter1d(np.histogram(np.log10(positive), edges)[0].astype(float), 2.0, mode="constant")
    middle = 10 ** ((edges[1:] + edges[:-1]) / 2)
    curve = Curve(middle, smooth, None, words, (True, False))
    peaks = find_peaks(np.concatenate([[0.0], smooth, [0.0]]))[0] - 1
    if len(peaks) < 2:
        return Suggestion({}, "The times have one peak and no valley: no time tells particles apart.", curve)
    first, last = np.sort(peaks[np.argsort(-smooth[peaks], kind="stable")[:2]])
    valley = first + int(np.argmin(smooth[first : last + 1]))
    if smooth[valley] * _LEAST_GAP > min(smooth[first], smooth[last]):
        return Suggestion({}, "The valley between two peaks of the times is too shallow to cut there.", curve)
    at = rounded(float(middle[valley]), 2)
    reason = f"Touching hits follow within {middle[first]:.2g} ns in one particle, after {middle[last]:.2g} by chance"
    return Suggestion(
        {"dt_max": at}, f"{reason}; {at:g} ns is the valley.", curve._replace(at=(at, float(smooth[valley])))
    )


def _hca(outcome: Outcome, ds: xr.Dataset, values: Values) -> Suggestion:
    """Suggest the number of clusters below the largest jump of heights among the last merges."""
    hierarchy = outcome.ground
    assert isinstance(hierarchy, Hierarchy)
    heights = tree.condense(hierarchy.linkage, 2 * _MOST_CLUSTERS, values["min_size"]).linkage[:, 2]
    heights = np.sort(heights[heights > 0])[::-1][:_MOST_CLUSTERS]  # the k-th: undone by a cut into k + 1
    curve = Curve(np.arange(2.0, len(heights) + 2), heights, None, ("clusters", "height of the merge"))
    jumps = heights[:-1] / heights[1:]
    if jumps.max(initial=0.0) < _LEAST_JUMP:
        return Suggestion({}, f"No merge is {_LEAST_JUMP:g} times as high as the one before it.", curve)
    place = int(np.argmax(jumps))
    count = place + 2
    reason = (
        f"The merge of {count} clusters into {count - 1}, at height {heights[place]:.3g}, is {jumps[place]:.1f} times"
    )
    how = {"cut": "number", "n_clusters": count}
    reason += " as high as the one before it: the largest jump."
    return Suggestion(how, reason, curve._replace(at=(float(count), float(heights[place]))))


def _hdbscan(outcome: Outcome, ds: xr.Dataset, values: Values) -> Suggestion:
    """Tell that there is no scale to suggest."""
    reason = "HDBSCAN* finds the distances itself: min_cluster_size is the least number of points of what you look for."
    return Suggestion({}, reason, Curve(*_NOTHING, None, ("", "")))


_NOTHING = (np.empty(0), np.empty(0))
_LOG = (True, True)
_OF_SYSTEM: dict[str, Callable[[Outcome, xr.Dataset, Values], Suggestion]] = {
    "clue": _clue, "dbscan": _dbscan, "fof": _fof, "hdbscan": _hdbscan, "events": _events, "hca": _hca,
}  # fmt: skip
"""Systems for which there are suggestions."""
