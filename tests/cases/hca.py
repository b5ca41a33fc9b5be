"""Point sets for the tests of Mahalanobis hierarchical clustering, and what is asked of the answers."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import dask
import dask.array as da
import numpy as np
from hypothesis import strategies as st
from oracles.hca_brute import RULES, brute_linkage, check_linkage
from oracles.hca_reference import clusters_of

from daskclust import MahalanobisHCA
from daskclust.hca import levels

DISTANCES = ("centroid", "full")
RTOL = 1e-9  # of heights: those of brute force come from the members, ours from sums of sums


@dataclass
class Case:
    """Points, their apriori clusters, and the parameters of the estimator."""

    X: np.ndarray
    threshold: float | int = 0.5
    apriori: np.ndarray | None = None
    options: dict[str, Any] = field(default_factory=dict)  # rule, distance, normalize, order, noise_label

    def estimator(self) -> MahalanobisHCA:
        return MahalanobisHCA(self.threshold, **self.options)

    def fit(self) -> MahalanobisHCA:
        return self.estimator().fit(self.X, apriori=self.apriori)

    def chunked(self, rows: Any, partition: str = "auto") -> MahalanobisHCA:
        """Fit to dask arrays with chunks of `rows` points."""
        X = da.from_array(self.X, chunks=(rows, self.X.shape[1]))
        apriori = None if self.apriori is None else da.from_array(self.apriori, chunks=(rows, *self.apriori.shape[1:]))
        return self.estimator().fit(X, apriori=apriori, partition=partition)

    def brute(self) -> dict[str, Any]:
        """Return the arguments of brute force."""
        labels = {} if self.apriori is None else {"apriori": self.apriori, "noise_label": -1}
        return {"X": self.X, "threshold": self.threshold, **labels, **self.options}


def merges_of(Z: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of ids, int64 (n - 1, 2), and the heights of a linkage."""
    pairs = Z[:, :2].astype(np.int64)
    np.testing.assert_array_equal(pairs, Z[:, :2])
    return pairs, Z[:, 2]


def assert_brute(case: Case, *, may_tie: bool = False) -> MahalanobisHCA:
    """Demand the merges of brute force, and heights up to rounding.

    With `may_tie` distances are equal but for rounding: then each merge is to be that of a nearest pair.
    """
    fitted = case.fit()
    merges, heights = merges_of(fitted.linkage_)
    if may_tie:
        check_linkage(merges, heights, rtol=RTOL, **case.brute())
    else:
        wanted, wanted_heights = brute_linkage(**case.brute())
        np.testing.assert_array_equal(merges, wanted)
        np.testing.assert_allclose(heights, wanted_heights, rtol=RTOL, atol=0)
    return fitted


def results(fitted: Any) -> dict[str, np.ndarray]:
    """Return all results in memory, computed in one go."""
    names = ("linkage_", "n_apriori_merges_", "is_monotone_", "labels_", "point_heights_")
    return dask.compute({name: getattr(fitted, name) for name in names})[0]


def assert_same_results(got: Any, wanted: Any) -> None:
    """Demand results that are equal to the last bit."""
    wanted = results(wanted)
    for name, array in results(got).items():
        np.testing.assert_array_equal(array, wanted[name], err_msg=name)
        assert np.asarray(array).dtype == np.asarray(wanted[name]).dtype, name


def tree(Z: Any) -> dict[frozenset[int], float]:
    """Return the height of each cluster by its members, so that the order of rows plays no part."""
    merges, heights = merges_of(Z)
    return dict(zip(clusters_of(merges), heights.tolist(), strict=True))


def assert_same_tree(got: Any, wanted: Any) -> None:
    """Demand the same clusters at the same heights, up to rounding: sums run in the order of ids."""
    heights, wanted_heights = tree(got), tree(wanted)
    assert heights.keys() == wanted_heights.keys()
    np.testing.assert_allclose([heights[k] for k in wanted_heights], [*wanted_heights.values()], rtol=1e-11)


@contextmanager
def form(name: str, few: int = 256):
    """Look at all pairs ("plain") or leave most out ("pruned", down to `few` clusters with new slots)."""
    before = levels.SMALL, levels.FEW
    levels.SMALL, levels.FEW = {"plain": 1 << 40, "pruned": 1}[name], few
    try:
        yield
    finally:
        levels.SMALL, levels.FEW = before


def gaussians(rng: np.random.Generator, n: int, d: int, parts: int = 4, apart: float = 6.0) -> np.ndarray:
    """Return elongated clouds of points, in random order."""
    centers = rng.normal(0, apart, (parts, d))
    turns = rng.normal(size=(parts, d, d)) / np.sqrt(d)
    of = rng.integers(0, parts, n)
    return centers[of] + np.einsum("ij,ijk->ik", rng.normal(size=(n, d)), turns[of])


def hard_points(rng: np.random.Generator, kind: str, n: int) -> np.ndarray:
    """Return points of a kind that bounds of distances may get wrong."""
    d = {"line": 1, "many channels": 40}.get(kind, 4)
    X = gaussians(rng, n, d)
    if kind == "far":
        return X + 1e6
    if kind == "scales":
        return X * [1e-3, 1.0, 1e3, 1e6]
    if kind == "constant":
        X[:, [0, 2]] = 0.1, -1e5 / 3
    if kind == "outlier":
        X[rng.integers(0, n)] = 1e9
    if kind == "float32":
        return X.astype(np.float32)
    if kind == "lattice":
        return np.round(X)
    if kind == "repeated":
        return X[rng.integers(0, n // 4, n)]
    return X


HARD = ("plain", "far", "scales", "constant", "outlier", "float32", "lattice", "repeated", "line", "many channels")


def is_clear(case: Case, merges: np.ndarray) -> bool:
    """Tell whether no covariance is nearly singular: then rounding decides, here and in brute force in two ways."""
    for members in clusters_of(merges):
        points = case.X[sorted(members)]
        if len(points) > 1:
            covariance = np.atleast_2d(np.cov(points.T))
            scale = np.sqrt(np.diag(covariance))
            scale[scale == 0] = 1.0
            least = np.linalg.eigvalsh(covariance / np.outer(scale, scale))[0]
            if 1e-15 < abs(least) < 1e-6:
                return False
    return True


@st.composite
def cases(draw, most: int = 40, axes: int = 6) -> Case:
    """Draw points, with ties and without, apriori clusters of any labels, and parameters."""
    n, d = draw(st.integers(2, most)), draw(st.integers(1, axes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["gaussians", "gaussians", "lattice", "pairs", "equal"]))
    X = gaussians(rng, n, d, apart=3.0)
    if kind == "lattice":
        X = rng.integers(0, 4, (n, d)).astype(float)
    elif kind == "pairs":
        X = rng.integers(-9, 9, (n, d))[rng.integers(0, n, n)].astype(float)
    elif kind == "equal":
        X = np.full((n, d), 3.0)
    thresholds = st.one_of(st.sampled_from([0.1, 0.3, 0.5, 1.0, 1, 2, 3]), st.integers(1, n + 9))
    options = {
        "rule": draw(st.sampled_from(RULES)),
        "distance": draw(st.sampled_from(DISTANCES)),
        "normalize": draw(st.booleans()),
        "order": draw(st.sampled_from(["height", "groups"])),
    }
    apriori = None
    if draw(st.booleans()):
        names = draw(st.lists(st.integers(-(2**62), 2**62), max_size=5, unique=True))
        apriori = np.array([*names, -1])[rng.integers(0, len(names) + 1, n)]  # all are noise where there is no name
        apriori = draw(st.sampled_from([apriori, apriori, np.arange(n)[::-1], np.zeros(n, np.int64)]))
    return Case(X, draw(thresholds), apriori, options)
