"""Tasks are neither small nor many, whatever the chunks: runs of chunks, blocks of a size, parts that hold points."""

from __future__ import annotations

import math
import pickle

import dask
import dask.array as da
import numpy as np
import pytest
from cases.steps import Steps, in_chunks
from dask.callbacks import Callback
from dask.sizeof import sizeof
from laws.registry import ENTRIES, RUNS, fit, name_of

from daskclust import FriendsOfFriends
from daskclust.core.run.chunk_sizes import Cost, Workers, points_per_task
from daskclust.core.run.division import blocks_of_space, rows_per_task
from daskclust.core.run.layout import runs_of
from daskclust.core.run import graph
from daskclust.core.run.boxes import boxed
from daskclust.systems import SYSTEMS

N = 4000
RNG = np.random.default_rng(5)
X = np.sort(RNG.uniform(0, 40, (N, 2)), axis=0)[:, ::-1]  # along a diagonal
MIXED = RNG.permutation(X)


def friends(X, give):
    return FriendsOfFriends(0.4).fit(give(X)).labels_


TRIED = list(dict.fromkeys(name_of(system, run) for system in ENTRIES for run in (system.runs[0], system.runs[-1])))
"""Of each system the runs with fewest and with most columns."""


def sample_of(name):
    system, run = RUNS[name]
    return system.sample(16 * system.size, run, np.float64)


@pytest.mark.parametrize("name", TRIED)
@pytest.mark.parametrize(
    ("order", "seconds"), [("given", 2e-4), ("given", 0), ("mixed", 0.5), ("mixed", 3e-5), ("mixed", 0)]
)
def test_answers_are_the_same(name, order, seconds):
    sample, how = sample_of(name), {}
    if order == "mixed":
        n = 16 * RUNS[name][0].size
        sample = sample.map(lambda values: values[np.random.default_rng(2).permutation(n)])
        how = {"partition": "windows"} if name.startswith("events") else {}
    with dask.config.set({"daskclust.task-seconds": seconds}):
        lazy = fit(name, sample.map(in_chunks(130)), **how).labels_
    assert set(lazy.chunks[0][:-1]) == {130}
    np.testing.assert_array_equal(lazy.compute(), fit(name, sample).labels_)


ONE_TASK = [name for name in TRIED if RUNS[name][0].name in SYSTEMS]
ONE_TASK.remove("hca 4-d threshold=0.3 n_clusters=3")  # without apriori clusters each chunk is a task


@pytest.mark.parametrize("name", ONE_TASK)
def test_little_work_is_one_task(name, monkeypatch):
    called, alone = [], graph._alone
    monkeypatch.setattr(graph, "_alone", lambda step, *args: called.append(step) or alone(step, *args))
    with dask.config.set({"daskclust.task-seconds": 0.5}):
        fit(name, sample_of(name).map(in_chunks(100))).labels_.compute()
    assert [getattr(step, "__name__", "") for step in called].count("local") == 1


def test_parts_are_made_where_points_are():
    counts = []
    for points in (X, MIXED):
        with Steps() as steps:  # 40 chunks, 40 blocks
            friends(points, in_chunks(100)).compute()
        counts.append((steps["part-piece"], steps["fof-finish-piece"]))
    (few, few_back), (all_of_them, all_back) = counts
    assert few == few_back < 200
    assert 1500 < all_of_them == all_back <= 1600


def test_chunks_are_begun_one_after_the_other():
    """Dask's own order is any, and what is read of chunks for blocks to come waits in memory."""
    open_now = most = 0

    def look(key, dsk, state):
        nonlocal open_now, most
        open_now += ("split" in key[0]) - ("fof-local" in key[0])
        most = max(most, open_now)

    with Callback(pretask=look):
        friends(X, in_chunks(100)).compute(scheduler="synchronous")  # 40 chunks, 40 blocks
    assert most <= 40 // 3


@pytest.mark.parametrize(
    ("order", "halo", "cut_axes"), [("space", 0.1, 1), ("space", 4.0, 3), ("random", 0.1, 3)], ids=str
)
def test_points_in_order_are_cut_into_slabs(order, halo, cut_axes):
    """Not where these would have large halos, or are met by as many chunks as cubes."""
    x = RNG.uniform(0, 100, (20_000, 3))
    points = x[np.argsort(x[:, 1])] if order == "space" else x
    division = blocks_of_space(da.from_array(points, chunks=(1000, 3)), 18, (100.0,) * 3, halo)
    cuts = [np.size(planes) > 0 for planes in division.partition.cuts]
    assert sum(np.concatenate([np.ravel(cut) for cut in cuts])) == cut_axes
    assert len(division.partition) == 18
    if cut_axes == 1:
        assert sum(map(len, division.reached)) <= 3 * 20


def test_a_chunk_at_both_ends_of_a_period():
    """Its bounding box is all of the axis."""
    x = np.sort(RNG.uniform(-2, 98, (2000, 1)), axis=0) % 100
    division = blocks_of_space(da.from_array(x, chunks=(100, 1)), 10, (100.0,), 0.1)
    assert [each.tolist() for each in division.reached][::19] == [[0, 9], [9]]


def test_a_source_that_changes_is_told_of():
    calls = iter(range(1000))

    def block(_, block_info=None):
        return X[:100] + 10.0 * next(calls)

    lazy = da.map_blocks(block, da.zeros((400, 2), chunks=(100, 2)), dtype=float, meta=np.empty((0, 2)))
    with pytest.raises(ValueError, match="gives other values each time"):
        FriendsOfFriends(0.1).fit(lazy).labels_.compute()


@pytest.mark.parametrize(
    ("lengths", "rows", "wanted"),
    [
        ([5, 5, 5, 5], 10, [(0, 2), (2, 4)]),
        ([5, 5, 5], 4, [(0, 1), (1, 2), (2, 3)]),
        ([1, 20, 1, 1], 5, [(0, 1), (1, 2), (2, 4)]),
        ([0, 0, 3], 0, [(0, 2), (2, 3)]),
        ([7], 0, [(0, 1)]),
    ],
)
def test_runs(lengths, rows, wanted):
    assert runs_of(lengths, rows) == wanted


@pytest.mark.parametrize(
    ("n", "workers", "memory", "seconds"),
    [
        (10**9, 2, math.inf, 0.5),  # as long as is wished
        (10**8, 8, math.inf, 0.3125),  # four for each thread
        (10**6, 8, math.inf, 0.1),  # but not too short
        (10**12, 1000, math.inf, 10.0),  # longer where there are many workers: one scheduler serves them all
        (10**7, 4, math.inf, 1 / 12),  # as many for each thread, though ten of 0.1 s would do
        (10**9, 2, 400e6, 0.1),  # memory holds no more: 1e6 points of 100 bytes in a quarter of it
    ],
)
def test_points_of_a_task(n, workers, memory, seconds):
    assert points_per_task(n, Cost(100e-9, 100), Workers(workers, memory)) == pytest.approx(seconds / 100e-9)


def test_workers_of_a_client_are_asked():
    from daskclust.workers import start

    X = da.zeros((10**9,), chunks=10**8)
    with start(3, processes=False, memory_limit="300MB"), dask.config.set({"daskclust.task-seconds": 0.5}):
        assert rows_per_task(X, Cost(1e-9, 100)) == pytest.approx(100e6 / 4 / 100)
        with dask.config.set(scheduler="threads"):  # these have all of the machine
            assert rows_per_task(X, Cost(1e-9, 100)) > 1e6


def test_the_size_of_what_is_in_boxes_is_known():
    """Dask spills by it: an array of objects has eight bytes for each, whatever they are."""
    results = {"labels": np.zeros(1000), "is_seed": np.zeros(1000, bool)}
    box = boxed([(results, None), [np.zeros(10, np.float32)]], (1, 2))
    assert 9040 <= sizeof(box) < 9500
    assert sizeof(pickle.loads(pickle.dumps(box))) == sizeof(box)
    assert 40 <= sizeof(box[:, 1:]) < 200


def test_slices_are_cut_where_the_table_is():
    """They need more than the table: dask spreads steps that need one thing alone, and that thing goes everywhere."""
    graph = dict(friends(X, in_chunks(1000)).__dask_graph__())
    slices = [task for key, task in graph.items() if "fof-slice" in str(key)]
    assert len(slices) == 4
    for task in slices:
        assert {name.split("-")[2] for name, *_ in task.dependencies} == {"merge", "frontier"}
