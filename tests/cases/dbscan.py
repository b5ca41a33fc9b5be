"""Point sets for the tests of DBSCAN and friends-of-friends, and what is asked of the answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from cases.lanes import COMMON, a_shape, drawn_points, on_host, put_on_seams
from cases.steps import some_planes
from hypothesis import strategies as st
from oracles import brute as oracles

from daskclust import DBSCAN, FriendsOfFriends
from daskclust.core.device.arrays import HOST
from daskclust.core.space.partition import Partition
from daskclust.dbscan.kernels.blocking import sort_into_blocks
from daskclust.dbscan.kernels.blocks import make_grid
from daskclust.dbscan.plan import DbscanPlan


@dataclass
class Case:
    """Points and parameters: DBSCAN's, or those of friends-of-friends where `min_members` is given."""

    X: np.ndarray
    eps: float = 1.0
    min_samples: int = 4
    weight: np.ndarray | None = None
    period: tuple[float, ...] = ()  # of every axis, 0 where it is open; () where all are
    min_members: int | None = None
    event: np.ndarray | None = None

    def estimator(self) -> DBSCAN | FriendsOfFriends:
        boxsize = [cycle or None for cycle in self.period] if self.period else None
        if self.min_members is not None:
            return FriendsOfFriends(self.eps, min_members=self.min_members, boxsize=boxsize)
        return DBSCAN(self.eps, min_samples=self.min_samples, boxsize=boxsize)

    def fit(self) -> Any:
        return self.estimator().fit(self.X, **self.beside())

    def beside(self) -> dict[str, np.ndarray]:
        """Return the other columns of ``fit``."""
        given = {"sample_weight": self.weight, "event": self.event}
        return {name: values for name, values in given.items() if values is not None}

    def chunked(self, rows: Any, partition: Any = "auto") -> Any:
        """Fit to dask arrays with chunks of `rows` points."""
        beside = {name: da.from_array(values, chunks=(rows,)) for name, values in self.beside().items()}
        X = da.from_array(self.X, chunks=(rows, self.X.shape[1]))
        return self.estimator().fit(X, **beside, partition=partition)

    def partition(self, *cuts: Any, farther: float = 1.0) -> Partition:
        """Return the partition by planes across the first axes, with the halo that it needs."""
        planes = tuple(np.array(each, float) for each in cuts)
        period = self.period or (0.0,) * self.X.shape[1]
        return Partition(cuts=planes, period=period, halo=self.halo * farther)

    @property
    def halo(self) -> float:
        by_links = self.min_members is not None or (self.min_samples <= 2 and self.weight is None)
        return self.eps if by_links else 2 * self.eps

    def plan(self) -> DbscanPlan:
        period = self.period or (0.0,) * self.X.shape[1]
        least = 2 if self.min_samples == 2 else 1
        return DbscanPlan(self.eps, self.min_samples, least, period, self.weight is not None)

    def columns(self) -> dict[str, np.ndarray]:
        given = {"X": self.X, "weight": self.weight, "event": self.event}
        return {name: values for name, values in given.items() if values is not None}

    def answer(self) -> oracles.Groups:
        """Return the answer of brute force."""
        if self.min_members is not None:
            return oracles.dbscan(self.X, self.eps, 1, period=self.period, least=self.min_members, event=self.event)
        how = {"weight": self.weight, "period": self.period, "event": self.event}
        return oracles.dbscan(self.X, self.eps, self.min_samples, **how)


def results(fitted: Any) -> tuple[Any, Any, int]:
    """Return labels, core points and the number of clusters on the host, computed in one go."""
    labels, is_core, count = dask.compute(fitted.labels_, fitted.is_core_, fitted.n_clusters_)
    return on_host(labels), on_host(is_core), int(count)


def assert_answer(fitted: Any, answer: Any) -> None:
    """Demand labels and core points to the last one; `answer` is of brute force, or another fit."""
    labels, is_core, count = results(fitted)
    wanted, wanted_core = answer if isinstance(answer, oracles.Groups) else results(answer)[:2]
    np.testing.assert_array_equal(is_core, wanted_core, err_msg="is_core", strict=True)
    np.testing.assert_array_equal(labels, wanted, err_msg="labels", strict=True)
    assert count == wanted.max(initial=-1) + 1


def as_sklearn(X: Any, eps: float, min_samples: int, weight: Any = None) -> oracles.Groups:
    """Return scikit-learn's answer.

    Left to choose, it takes brute force for fewer than 12 points and more than 15 axes, which expands ``(x - y)**2``
    and so rounds distances of about eps otherwise than its trees do, and the definition.
    """
    from sklearn.cluster import DBSCAN as Theirs  # noqa: N811

    theirs = Theirs(eps=eps, min_samples=min_samples, algorithm="kd_tree").fit(X, sample_weight=weight)
    is_core = np.zeros(len(X), bool)
    is_core[theirs.core_sample_indices_] = True
    return oracles.Groups(theirs.labels_.astype(np.int64), is_core)


SHAPES = [*COMMON, (1, np.float64), (2, np.float32), (3, np.float32), (4, np.float64)]
KINDS = ["lattice", "tenths", "uniform", "clumps", "pairs", "places", "equal"]


@st.composite
def cases(draw, shapes=SHAPES, most=60, periodic=True, friends=True):
    """Draw points with many ties, few, or none; weights, periods, events, or friends-of-friends."""
    d, dtype = draw(a_shape(shapes))
    n = draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.sampled_from([0.6, 1.5, 4.0, 12.0] if d < 3 else [0.6, 1.2, 2.0, 4.0]))
    X = drawn_points(rng, draw(st.sampled_from(KINDS)), n, d, size).astype(dtype)
    eps = draw(st.sampled_from([1.0, 1.0, 0.5, 0.3, 0.7, 2**0.5]))
    period: tuple[float, ...] = ()
    if periodic and draw(st.booleans()):
        cycles = st.sampled_from([0.0, 2 * eps, 2.03125 * eps, 3.0 * eps, 5.5 * eps, 2 * size + eps, 3 * size])
        period = tuple(cycle if cycle >= 2 * eps else 0.0 for cycle in (draw(cycles) for _ in range(d)))
        put_on_seams(draw, X, period)
    numbers = draw(st.sampled_from([None, None, [0], [0, 1], [2, 3, 9], [-(2**40), 7, 2**62]]))
    event = None if numbers is None else rng.choice(numbers, n)
    if friends and draw(st.sampled_from([False, False, True])):
        return Case(X, eps, 2, None, period, min_members=draw(st.integers(1, 6)), event=event)
    weights = draw(st.sampled_from([None, None, "quarters", "any"]))
    weight = None
    if weights:
        weight = rng.integers(-3, 9, n) / 4 if weights == "quarters" else rng.normal(1.0, 1.0, n)
    return Case(X, eps, draw(st.integers(1, 8)), weight, period, event=event)


@st.composite
def planes(draw, case):
    """Draw a partition by any planes across the first axes."""
    return case.partition(*draw(some_planes(case.X, case.period)), farther=draw(st.sampled_from([1.0, 1.0, 1.5])))


def blocks_of(X, eps, period=None, most_bits=2):
    period = period or (0.0,) * X.shape[1]
    grid = make_grid(X.min(axis=0).astype(float), X.max(axis=0).astype(float), eps, period, most_bits)
    return sort_into_blocks(HOST, X, grid, eps)[0]
