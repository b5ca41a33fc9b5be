"""Many sets of points at once: each is clustered as by itself; any planes and chunks are in `test_laws`."""

from __future__ import annotations

import awkward as ak
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.dbscan import Case, as_sklearn, assert_answer
from cases.lanes import some_of
from oracles import brute as oracles

from daskclust import DBSCAN, FriendsOfFriends

RNG = np.random.default_rng(3)
X = RNG.uniform(0, 4, (300, 2))
EVENT = RNG.choice([7, -2, 5, 2**40], 300)


def one_by_one(case):
    """Return scikit-learn's answers to each event, numbered through all by the first core points."""
    labels, is_core, firsts = np.full(len(case.X), -1), np.zeros(len(case.X), bool), []
    for each in np.unique(case.event):
        rows = np.flatnonzero(case.event == each)
        found = as_sklearn(case.X[rows], case.eps, case.min_samples, None if case.weight is None else case.weight[rows])
        is_core[rows] = found.is_core
        labels[rows] = np.where(found.labels < 0, -1, found.labels + len(firsts))
        firsts += [rows[(found.labels == k) & found.is_core][0] for k in range(found.labels.max(initial=-1) + 1)]
    number = np.append(np.argsort(np.argsort(firsts)), -1)
    return oracles.Groups(number[labels], is_core)


@some_of(8, d=[1, 2, 3, 5], dtype=[np.float32, np.float64], min_samples=[2, 5], weighted=[False, True])
def test_events_are_those_of_scikit_learn_one_by_one(d, dtype, min_samples, weighted):
    rng = np.random.default_rng([d, min_samples])
    n, eps = 2000, {1: 0.03, 2: 0.3, 3: 0.7, 5: 1.4}[d]
    centres = rng.uniform(0, 9, (20, d))
    points = (centres[rng.integers(0, 20, n)] + rng.normal(0, 0.3 if d > 1 else 3.0, (n, d))).astype(dtype)
    weight = rng.integers(0, 5, n) / 2 if weighted else None
    case = Case(points, eps, min_samples, weight, event=rng.integers(0, 12, n) ** 9)
    wanted = one_by_one(case)
    assert wanted.labels.max() > 12
    assert_answer(case.fit(), wanted)
    for partition in ("layers", "space"):
        assert_answer(case.chunked(700, partition), wanted)


def test_chunks_as_they_are():
    event = np.repeat([4, 1, 9], 100)
    case = Case(X, 0.3, 3, event=event)
    assert_answer(case.chunked((100, 200), "chunks"), case.answer())
    with pytest.raises(ValueError, match="1 is in several chunks"):
        case.chunked((150, 150), "chunks").labels_.compute()


@pytest.mark.parametrize("n", [3, 40_000])
def test_events_without_a_table_of_rows(n):
    """Rows of all events are more than a table is worth, or than can be numbered: those that hold points are kept."""
    for extent in (3e3, 1e9):
        points = np.repeat(RNG.uniform(0, extent, (n, 3)), 2, axis=0) + RNG.uniform(-0.2, 0.2, (2 * n, 3))
        event = np.repeat(RNG.integers(0, n, n), 2)
        event[1::20] += 1  # one of two
        wanted = -np.ones(2 * n, int)
        pairs = np.flatnonzero(event[::2] == event[1::2])
        wanted[2 * pairs] = wanted[2 * pairs + 1] = np.arange(len(pairs))
        np.testing.assert_array_equal(DBSCAN(1.0, min_samples=2).fit(points, event=event).labels_, wanted)


def test_columns_and_lists():
    event = np.sort(RNG.integers(0, 5, 300))
    event[event == 3] = 4  # an empty list
    wanted = Case(X, 0.3, 3, event=event)
    columns = {"x": X[:, 0], "y": X[:, 1]}
    frame = pd.DataFrame(columns | {"event": event})
    for points in (frame, frame.rename(columns={"x": "lat", "y": "lon"})):
        assert_answer(DBSCAN(0.3, min_samples=3).fit(points), wanted.answer())
    for kind in (DBSCAN(0.3, min_samples=3), FriendsOfFriends(0.3)):
        labels = kind.fit(X, event=event).labels_
        found = kind.fit(ak.unflatten(ak.zip(columns), np.bincount(event)))
        np.testing.assert_array_equal(ak.flatten(found.labels_), labels)
        np.testing.assert_array_equal(ak.num(found.is_core_), np.bincount(event))


def test_datasets():
    ds = xr.Dataset({"x": ("hit", X[:, 0]), "y": ("hit", X[:, 1]), "event": ("hit", EVENT)})
    for kind, method, how in ((DBSCAN, "dbscan", {"min_samples": 3}), (FriendsOfFriends, "fof", {})):
        apart = kind(0.3, **how).fit(X, event=EVENT).labels_
        for each in (ds, ds.chunk(hit=90)):
            found = getattr(each.clust, method)(0.3, **how)
            np.testing.assert_array_equal(found["label"], apart)
            assert "event='event'" in found.attrs[method]
        together = getattr(ds.clust, method)(0.3, event=None, **how)
        np.testing.assert_array_equal(together["label"], kind(0.3, **how).fit(X).labels_)
        assert "event" not in together.attrs[method]


@pytest.mark.parametrize("kind", [DBSCAN, FriendsOfFriends])
def test_what_is_refused(kind):
    with pytest.raises(ValueError, match="event must have one value for each of the 300 points"):
        kind(0.3).fit(X, event=[0, 1])
    with pytest.raises(ValueError, match="event must be whole numbers"):
        kind(0.3).fit(X, event=X[:, 0])
    with pytest.raises(ValueError, match='"layers" needs event='):
        kind(0.3).fit(da.from_array(X), partition="layers")
