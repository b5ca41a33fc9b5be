"""How well two clusterings of the same points agree. Public as `daskclust.metrics`."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp

from daskclust.core.data.checks import check_number
from daskclust.core.data.columns import Kind, column, doubles, label_numbers, plain
from daskclust.core.device.arrays import is_dask, to_host
from daskclust.core.hierarchy import point_heights
from daskclust.core.merge.labels import NOISE

Noise = Literal["ignore", "cluster"]


class ClusterIoU(NamedTuple):
    """How well the clusters of two clusterings match.

    Attributes
    ----------
    mean : float
        Mean intersection over union of clusters with their best counterparts.
    fraction_above : float
        Fraction of clusters whose intersection over union is above the threshold.
    """

    mean: float
    fraction_above: float


def purity(
    truth: npt.ArrayLike, labels: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None, noise: Noise = "ignore"
) -> float:
    """Return the fraction of clustered weight that belongs to the main true cluster of its cluster.

    Parameters
    ----------
    truth, labels : array_like of int, shape (n,)
        True and predicted clusters, -1 noise.
    sample_weight : array_like of float, shape (n,), optional
        Weight of each point, such as its energy in GeV; 1 by default.
    noise : {"ignore", "cluster"}, default "ignore"
        "ignore": points labelled noise do not count, and true noise in a cluster is an impurity of it. "cluster": -1 is
        a cluster like any other.

    Returns
    -------
    float
        From 0 to 1; NaN where no weight is in a predicted cluster. One cluster per point is pure: look at
        `completeness` too. O(n log n) time.

    Raises
    ------
    ValueError
        For unequal lengths, labels that are no integers or below -1, and weights that are negative or not finite.

    Examples
    --------
    >>> purity([0, 0, 1, 1, -1], [0, 0, 0, 1, 1])
    0.6
    """
    return _shares(truth, labels, sample_weight, noise)[0]


def completeness(
    truth: npt.ArrayLike, labels: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None, noise: Noise = "ignore"
) -> float:
    """Return the fraction of true clusters' weight that is in the main predicted cluster of its true cluster.

    This is `purity` with truth and labels exchanged, not the conditional entropy that scikit-learn calls completeness.
    One cluster of all points is complete.

    Parameters
    ----------
    truth, labels, sample_weight, noise
        As for `purity`, which tells of errors, too.

    Returns
    -------
    float
        From 0 to 1; NaN where no weight is in a true cluster.

    Examples
    --------
    >>> completeness([0, 0, 1, 1, -1], [0, 0, 0, 1, 1])
    0.75
    """
    return _shares(truth, labels, sample_weight, noise)[1]


def f_score(
    truth: npt.ArrayLike, labels: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None, noise: Noise = "ignore"
) -> float:
    """Return the harmonic mean of purity and completeness.

    Parameters
    ----------
    truth, labels, sample_weight, noise
        As for `purity`, which tells of errors, too.

    Returns
    -------
    float
        From 0 to 1. Where only one side has clusters, their match is 0; NaN where neither has.

    Examples
    --------
    >>> round(f_score([0, 0, 1, 1, -1], [0, 0, 0, 1, 1]), 4)
    0.6667
    """
    shares = np.array(_shares(truth, labels, sample_weight, noise))
    if np.isnan(shares).all():
        return float("nan")
    both = np.nan_to_num(shares)
    return float(2 * both.prod() / both.sum()) if both.sum() > 0 else 0.0


def adjusted_rand_index(truth: npt.ArrayLike, labels: npt.ArrayLike, *, noise: Noise = "ignore") -> float:
    """Return the Rand index (pairs of points on which two clusterings agree), adjusted for chance.

    Parameters
    ----------
    truth, labels : array_like of int, shape (n,)
        Clusters, -1 noise.
    noise : {"ignore", "cluster"}, default "ignore"
        "ignore": each noise point is a cluster of its own. "cluster": -1 is a cluster like any other, as for
        `sklearn.metrics.adjusted_rand_score`.

    Returns
    -------
    float
        1 for equal partitions, about 0 for independent ones; negative values are possible.

    Raises
    ------
    ValueError
        For unequal lengths, and for labels that are no integers or below -1.

    References
    ----------
    Hubert and Arabie, "Comparing partitions", Journal of Classification 2 (1985), doi:10.1007/BF01908075.

    Examples
    --------
    >>> adjusted_rand_index([0, 0, 1, 1], [5, 5, 2, 2])
    1.0
    """
    from sklearn.metrics import adjusted_rand_score

    sides = checked_sides(noise, truth=truth, labels=labels)
    if noise == "ignore":  # below the labels there is a number for each noise point
        sides = [np.where(side == NOISE, NOISE - np.arange(len(side)), side) for side in sides]
    return float(adjusted_rand_score(*sides))


def cluster_iou(
    labels_a: npt.ArrayLike, labels_b: npt.ArrayLike, *, above: float = 0.95, noise: Noise = "ignore"
) -> ClusterIoU:
    """Return how much clusters overlap with their best counterparts: intersections over unions.

    Event builders are compared in this way [1]_.

    Parameters
    ----------
    labels_a, labels_b : array_like of int, shape (n,)
        Clusters of the same points by two programs, variants or parameters, -1 noise.
    above : float, default 0.95
        From 0 to 1: a cluster whose intersection over union is larger than this counts as found again.
    noise : {"ignore", "cluster"}, default "ignore"
        "ignore": noise is no cluster, and a counterpart of none; its points count in the size of the other side's
        clusters. "cluster": -1 is a cluster like any other.

    Returns
    -------
    ClusterIoU
        ``mean`` and ``fraction_above``, over the clusters of both sides, so that the order of the arguments does not
        matter. Both are 1 for equal partitions, 0 where only one side has clusters, NaN where neither has.

    Raises
    ------
    ValueError
        For unequal lengths, labels that are no integers or below -1, and `above` out of 0 to 1.

    Notes
    -----
    O(n) time and memory. The counterpart of a cluster is the cluster of the other side with the largest intersection
    over union. [1]_ gives one number for two clusterings and not how it comes from those of clusters: here it is the
    mean, in which each cluster counts once, large or small.

    References
    ----------
    .. [1] Celko, Mráz, Bergmann and Mánek, "Parallel CPU- and GPU-based connected component algorithms for event
       building for hybrid pixel detectors" (2025), section 5, doi:10.48550/arXiv.2412.11809.

    Examples
    --------
    >>> cluster_iou([0, 0, 0, 0, 1, 1], [7, 7, 7, 3, 5, 5])  # 3/4 and 1; 3/4, 1/4 and 1
    ClusterIoU(mean=0.75, fraction_above=0.4)
    """
    if not 0 <= check_number("above", above) <= 1:
        raise ValueError(f"above must be from 0 to 1, got {above!r}")
    sides = checked_sides(noise, labels_a=labels_a, labels_b=labels_b)
    (a, ids_a), (b, ids_b) = map(pd.factorize, sides)
    sizes = np.bincount(a, minlength=len(ids_a)), np.bincount(b, minlength=len(ids_b))
    pair, pairs = pd.factorize(a * len(ids_b) + b)  # n clusters on both sides: n squared fits an int64
    pair_a, pair_b = np.divmod(pairs, max(len(ids_b), 1))
    common = np.bincount(pair, minlength=len(pairs))
    iou = common / (sizes[0][pair_a] + sizes[1][pair_b] - common)
    if noise == "ignore":
        iou[(ids_a[pair_a] == NOISE) | (ids_b[pair_b] == NOISE)] = 0.0
    count, total, found = 0, 0.0, 0
    for place, ids in ((pair_a, ids_a), (pair_b, ids_b)):
        best = np.zeros(len(ids))
        np.maximum.at(best, place, iou)
        best = best[(ids != NOISE) | (noise == "cluster")]
        count, total, found = count + len(best), total + float(best.sum()), found + int((best > above).sum())
    return ClusterIoU(total / count, found / count) if count else ClusterIoU(float("nan"), float("nan"))


def point_height_correlation(Z1: npt.ArrayLike, Z2: npt.ArrayLike) -> float:
    """Return Pearson's correlation of the heights of points in two hierarchies of the same points.

    Parameters
    ----------
    Z1, Z2 : array_like, shape (n - 1, 4)
        SciPy's linkages.

    Returns
    -------
    float
        1 where `point_heights` are the same up to a scale and a shift, as of hierarchies that went through similar
        clusters; NaN where all points of one have the same height, as for fewer than 3 points.

    Raises
    ------
    ValueError
        For what is no linkage, and for different numbers of points.

    Notes
    -----
    O(n) time and memory; `daskclust.plot.point_height_scatter` draws the same.

    References
    ----------
    Smelko, "Mahalanobis based hierarchical clustering accelerated on GPU", Charles University (2020), section 3.3.

    Examples
    --------
    >>> Z = [[0, 1, 1.0, 2], [2, 3, 3.0, 3]]
    >>> point_height_correlation(Z, Z)
    1.0
    """
    sides = point_heights(Z1), point_heights(Z2)
    if len(sides[0]) != len(sides[1]):
        raise ValueError(f"Z1 and Z2 must be of the same points, got {len(sides[0])} and {len(sides[1])}")
    if any(np.ptp(side) == 0 for side in sides):
        return float("nan")
    a, b = (side / side.max() - (side / side.max()).mean() for side in sides)
    # Sums of products, not a matrix product: its last bit depends on which side is the first.
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


def _shares(
    truth: npt.ArrayLike, labels: npt.ArrayLike, sample_weight: npt.ArrayLike | None, noise: Noise
) -> tuple[float, float]:
    """Return purity and completeness, two sums of one table."""
    rows, columns = checked_sides(noise, truth=truth, labels=labels)
    weight = np.ones(len(rows))
    if sample_weight is not None:
        weight = _checked("sample_weight", sample_weight, doubles, 0, "finite and not negative")
    _check_lengths(truth=rows, sample_weight=weight)
    row_ids, column_ids, table = shared_members(rows, columns, weight)
    no_cluster = [int(noise == "ignore" and NOISE in ids[:1]) for ids in (row_ids, column_ids)]
    return _main_share(table.T.tocsr(), *no_cluster[::-1]), _main_share(table, *no_cluster)


def shared_members(
    rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], weight: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], sp.csr_array]:
    """Return the labels on both sides, ascending, and the weight that each pair of them shares."""
    row_ids, row = np.unique(rows, return_inverse=True)
    column_ids, column = np.unique(columns, return_inverse=True)
    table = sp.coo_array((weight, (row, column)), shape=(len(row_ids), len(column_ids)))
    return row_ids, column_ids, table.tocsr()


def _main_share(table: sp.csr_array, row: int, column: int) -> float:
    """Return the sum over rows, from `row` on, of their largest entry from `column` on, as a fraction of all."""
    judged = table[row:]
    total = float(judged.sum())
    if not total > 0:
        return float("nan")
    matched = judged[:, column:]
    return min(1.0, float(matched.max(axis=1).sum()) / total) if matched.shape[1] else 0.0


def checked_sides(noise: str, **given: npt.ArrayLike) -> list[npt.NDArray[np.int64]]:
    """Return the labels of several clusterings of the same points, on the host."""
    if noise not in ("ignore", "cluster"):
        raise ValueError(f"noise must be 'ignore' or 'cluster', got {noise!r}")
    rule = f"{NOISE} (noise) or larger"
    sides = {name: _checked(name, values, label_numbers, NOISE, rule) for name, values in given.items()}
    _check_lengths(**sides)
    return list(sides.values())


def _checked(name: str, values: Any, kind: Kind, least: int, rule: str) -> npt.NDArray[Any]:
    """Return a column of any container on the host, computed where it is lazy; refuse values that break the rule."""
    values = plain(name, values)
    values = values.compute() if is_dask(values) else values
    array = np.asarray(column(name, to_host(values), kind))
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    good = np.isfinite(array) & (array >= least)
    if not good.all():
        index = int(np.argmin(good))
        raise ValueError(f"{name} must be {rule}, got {array[index]} at index {index}")
    return array


def _check_lengths(**arrays: npt.NDArray[Any]) -> None:
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"arrays must have equal lengths, got {lengths}")
