"""On dask nothing is computed before it is asked for, but for one pass that looks for planes."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
from cases.clue import counted_computes, raise_if_dask_computes
from cases.dbscan import Case, assert_answer
from dask.callbacks import Callback

from daskclust import DBSCAN, FriendsOfFriends
from daskclust.dbscan.plan import DbscanPlan

RNG = np.random.default_rng(3)
X = RNG.uniform(0, 12, (300, 2))
WEIGHT = RNG.integers(1, 8, 300) / 4
CASES = {
    "dbscan": Case(X, 0.8, 4),
    "weights": Case(X, 0.8, 5, WEIGHT),
    "periodic": Case(X, 0.8, 4, None, (12.0, 0.0)),
    "friends": Case(X, 0.6, min_members=3),
    "float32, three axes": Case(RNG.uniform(0, 5, (300, 3)).astype(np.float32), 0.8, 4),
    "four axes": Case(RNG.uniform(0, 4, (300, 4)), 0.9, 4),
}
ROWS = (70, 70, 70, 70, 20)


class Steps(Callback):
    """Collects the tasks that dask runs, by the first part of their names."""

    def __init__(self):
        super().__init__(pretask=self.count)
        self.names = []

    def count(self, key, dsk, state):
        self.names.append(dask.utils.key_split(key))


@pytest.mark.parametrize("name", CASES)
def test_fit_computes_nothing(name):
    case = CASES[name]
    with raise_if_dask_computes():
        given = case.chunked(ROWS, case.partition([4.0, 8.0], [6.0]))
        single = case.chunked((300,))
        as_is = case.chunked((300,), "chunks")
        indices, components = given.core_sample_indices_, given.components_
    wanted = case.fit()
    for lazy in (given, single, as_is):
        assert isinstance(lazy.labels_, da.Array)
        assert isinstance(lazy.is_core_, da.Array)
        assert isinstance(lazy.n_clusters_, da.Array)
        assert_answer(lazy, wanted)
    np.testing.assert_array_equal(indices.compute(), wanted.core_sample_indices_, strict=True)
    np.testing.assert_array_equal(components.compute(), wanted.components_, strict=True)
    assert wanted.n_clusters_ > 1


@pytest.mark.parametrize("partition", ["auto", "space"])
@pytest.mark.parametrize("name", CASES)
def test_planes_take_one_pass(name, partition):
    with counted_computes(1) as computes:
        lazy = CASES[name].chunked(ROWS, partition)
    assert len(computes) == 1
    assert_answer(lazy, CASES[name].fit())


@pytest.mark.parametrize("name", CASES)
def test_results_have_the_chunks_and_types_of_the_input(name):
    lazy = CASES[name].chunked(ROWS)
    assert lazy.labels_.chunks == lazy.is_core_.chunks == (ROWS,)
    assert lazy.labels_.dtype == np.int64
    assert lazy.is_core_.dtype == np.bool_
    assert lazy.n_clusters_.shape == ()
    assert lazy.labels_.compute_chunk_sizes().chunks == (ROWS,)
    assert lazy.labels_.blocks[1].compute().shape == (70,)
    assert lazy.labels_.blocks[1].compute().dtype == lazy.labels_._meta.dtype == np.int64
    assert lazy.is_core_.blocks[4].compute().dtype == np.bool_
    assert lazy.n_clusters_.compute().dtype == np.int64


def test_steps_are_named_and_points_stay_where_they_are():
    for case, system in ((CASES["dbscan"], "dbscan"), (CASES["friends"], "fof")):
        lazy = case.chunked(ROWS, case.partition([4.0, 8.0]))
        with Steps() as steps:
            lazy.labels_.compute(optimize_graph=False)
        ours = [name for name in steps.names if name.startswith(f"daskclust-{system}")]
        assert {f"daskclust-{system}-{step}" for step in ("local", "merge", "finish")} <= set(ours)
        assert ours.count(f"daskclust-{system}-merge") == 1
        assert ours.count(f"daskclust-{system}-local") == 3


def test_what_goes_up_is_of_faces_and_clusters():
    """Frontiers grow with these, not with points; coordinates are of points that other chunks have as well."""
    rng = np.random.default_rng(0)
    sizes = []
    for n in (1000, 16_000):
        eps = 1.5 / np.sqrt(n)
        case, plan = Case(rng.random((n, 2)), eps, 5), DbscanPlan(eps, 5, 1, (0.0, 0.0))
        chunks = case.partition([0.5], [0.5]).split({"X": case.X}, 0)
        frontiers = [plan.local(plan.measure(chunk))[1] for chunk in chunks]
        for chunk, frontier in zip(chunks, frontiers, strict=True):
            rows = np.searchsorted(chunk.ids, frontier.members)
            np.testing.assert_array_equal(frontier.places, chunk.columns["X"][rows])
            assert all(part.dtype == np.int64 for part in frontier._replace(places=frontier.members))
        sizes.append(sum(len(frontier.members) for frontier in frontiers))
    assert sizes[1] < 6 * sizes[0]


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_schedulers(scheduler):
    with dask.config.set(scheduler=scheduler, num_workers=2):
        assert_answer(CASES["dbscan"].chunked(ROWS), CASES["dbscan"].fit())


@pytest.mark.slow
def test_distributed():
    from daskclust import workers

    with workers.start(2, processes=True) as client, dask.config.set(scheduler=client):
        for name in ("dbscan", "weights", "friends", "float32, three axes"):
            case = CASES[name]
            assert_answer(case.chunked(ROWS), case.fit())
            assert_answer(case.chunked((100, 0, 200), case.partition([3.0, 6.0], [5.0])), case.fit())


def test_empty_chunks():
    for case in CASES.values():
        for rows in ((0, 120, 0, 180, 0), (300, 0), (0, 300)):
            assert_answer(case.chunked(rows), case.fit())


def test_one_fit_does_not_know_another():
    """Keys of lazy results depend on points and parameters: two fits computed together do not mix."""
    cases = [Case(X, eps, m) for eps in (0.5, 0.8) for m in (3, 4)] + [Case(X + 1, 0.5, 3), Case(X, 0.5, 3, WEIGHT)]
    lazy = [case.chunked(ROWS, case.partition([4.0])) for case in cases]
    for case, labels in zip(cases, dask.compute(*[each.labels_ for each in lazy]), strict=True):
        np.testing.assert_array_equal(labels, case.fit().labels_)


def test_fit_predict():
    np.testing.assert_array_equal(DBSCAN(0.8).fit_predict(X), DBSCAN(0.8).fit(X).labels_)
    lazy = FriendsOfFriends(0.6).fit_predict(da.from_array(X, chunks=(70, 2)))
    np.testing.assert_array_equal(lazy.compute(), FriendsOfFriends(0.6).fit(X).labels_)
    with_weight = DBSCAN(0.8).fit_predict(X, sample_weight=WEIGHT)
    np.testing.assert_array_equal(with_weight, DBSCAN(0.8).fit(X, sample_weight=WEIGHT).labels_)
