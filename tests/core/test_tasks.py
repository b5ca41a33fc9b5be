"""Tasks are neither small nor many, whatever the chunks: runs of chunks, blocks of a size, parts that hold points."""

import math
import os
import pickle
from types import SimpleNamespace

import dask
import dask.array as da
import numpy as np
import pytest
from cases.lanes import quick_first
from cases.steps import Steps, in_chunks
from dask._task_spec import convert_legacy_graph
from dask.callbacks import Callback
from dask.order import order
from dask.sizeof import sizeof
from distributed import Client, LocalCluster
from laws.registry import ENTRIES, RUNS, fit, name_of, sample_of

from daskclust import FriendsOfFriends
from daskclust.core.run import exchange, graph
from daskclust.core.run.division import blocks_of_space, divide, task_count
from daskclust.core.run.exchange import runs_of
from daskclust.core.run.graph import boxed
from daskclust.core.run.plan import Cost
from daskclust.core.run.workers import Workers, _Worker, _workers_of, find_workers, points_per_task
from daskclust.core.space.partition import Division, Partition
from daskclust.datasets import timepix
from daskclust.events.plan import EventPlan
from daskclust.io import open_tpx3, write_hits, write_tpx3
from daskclust.properties import cluster_table
from daskclust.systems import SYSTEMS
from daskclust.workers import start

N = 4000
RNG = np.random.default_rng(5)
X = np.sort(RNG.uniform(0, 40, (N, 2)), axis=0)[:, ::-1]  # along a diagonal
MIXED = RNG.permutation(X)


def friends(X, give):
    return FriendsOfFriends(0.4).fit(give(X)).labels_


TRIED = list(dict.fromkeys(name_of(system, run) for system in ENTRIES for run in (system.runs[0], system.runs[-1])))
"""Of each system the runs with fewest and with most columns."""


ONE_TASK = [name for name in TRIED if RUNS[name][0].name in SYSTEMS]
ONE_TASK.remove("hca 4-d threshold=0.3 n_clusters=3")  # without apriori clusters each chunk is a task


@pytest.mark.parametrize("name", ONE_TASK)
def test_little_work_is_one_task(name, monkeypatch):
    called, alone = [], graph._alone
    monkeypatch.setattr(graph, "_alone", lambda step, *args: called.append(step) or alone(step, *args))
    with dask.config.set({"daskclust.task-seconds": 0.5}):
        fit(name, sample_of(name, 16 * RUNS[name][0].size).map(in_chunks(100))).labels_.compute()
    names = [getattr(getattr(step, "func", step), "__name__", "") for step in called]
    assert names.count("local") + names.count("tree_of") == 1  # of HDBSCAN the latter


def test_parts_are_made_where_points_are(monkeypatch):
    monkeypatch.setattr(exchange, "_FEW", 32)
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


def test_exchanged_chunks_are_begun_one_after_the_other():
    """Dask's order makes chunks that are taken together all at once, before the first of them is clustered."""
    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None):
        labels = FriendsOfFriends(0.4).fit(in_chunks(40)(MIXED)).labels_  # 100 chunks, 100 blocks
        steps = convert_legacy_graph(dict(dask.optimize(labels)[0].__dask_graph__()))
    places = order(steps)
    made, ended = (
        [places[key] for key in steps if key[0].startswith(f"daskclust-{it}")] for it in ("chunk", "fof-local")
    )
    assert len(ended) == 100
    each = 100 // len(made)
    assert max(each * (k + 1) - np.searchsorted(np.sort(ended), at) for k, at in enumerate(sorted(made))) <= 2


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


def in_some_chunks(numbers):
    """Return 600 chunks of 400 points that fill space, but in some of the chunks a small ball."""
    points = np.random.default_rng(3).uniform(0, 100, (600, 400, 3))
    points[numbers] = 50 + np.random.default_rng(4).normal(size=points[numbers].shape)
    return points.reshape(-1, 3)


SPACE = in_some_chunks([])
UNEVEN = np.random.default_rng(6).permutation([200] * 595 + [24_200] * 5)
ORDERS = {  # points, rows of chunks, whether all of these are read
    "random": (SPACE, 400, False),
    "in space": (SPACE[SPACE[:, 0].argsort()], 400, True),
    "every 16th other": (in_some_chunks(slice(None, None, 16)), 400, True),
    "every second other": (in_some_chunks(slice(None, None, 2)), 400, False),
    "some other": (in_some_chunks(slice(30)), 400, True),
    "uneven": (SPACE * np.where(np.repeat(UNEVEN, UNEVEN) > 200, 0.1, 1.0)[:, None], tuple(UNEVEN.tolist()), False),
}


@pytest.mark.parametrize("name", quick_first(ORDERS, 3))
def test_blocks_are_balanced(name):
    """All chunks are read only where some do not tell how many points there are in each block, or for few blocks."""
    points, rows, all_read = ORDERS[name]
    lazy, read = da.from_array(points, chunks=(rows, 3)), []

    def noted(block):
        read.append(len(block))
        return block

    lazy = da.map_blocks(noted, lazy, dtype=float, meta=np.empty((0, 3)))
    division = blocks_of_space(lazy, 300, (100.0,) * 3, 0.2)
    sizes = [part.owned.sum() for part in division.partition.split({"X": points}, 0)]
    assert len(sizes) == 300
    assert 0.7 * len(points) / 300 < min(sizes) <= max(sizes) < 1.5 * len(points) / 300
    assert len(read) == 600 if all_read else len(read) <= 128
    assert (division.reached is not None) == (name == "in space")


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
        (5 * 10**7, 8, math.inf, 0.3125),  # two for each thread
        (10**12, 1000, math.inf, 10.0),  # longer where there are many workers: one scheduler serves them all
        (10**9, 2, 300e6, 0.1),  # memory holds no more: 1e6 points of 100 bytes in a third of it
    ],
)
def test_points_of_a_task(n, workers, memory, seconds):
    assert points_per_task(n, Cost(100e-9, 100), Workers(workers, memory)) == pytest.approx(seconds / 100e-9)


def warnings_in(caplog):
    return [record.getMessage() for record in caplog.records if record.name.startswith("daskclust.core.run")]


def test_workers_of_a_client_are_asked(caplog):
    with start(3, processes=False, memory_limit="1GB"):
        assert find_workers() == Workers(3, (0.8e9 - 400e6) / 3)
        with dask.config.set(scheduler="threads"):  # these have all of the machine
            assert find_workers().threads == len(os.sched_getaffinity(0))
        with dask.config.set({"daskclust.workers": 5, "daskclust.worker-memory": "4GB"}):
            assert find_workers() == Workers(5 * 3, (0.8 * 4e9 - 400e6) / 3)
        with (
            dask.config.set({"daskclust.workers": 0}),
            pytest.raises(ValueError, match=r"daskclust.workers of dask's configuration must be 1 or more, got 0"),
        ):
            find_workers()
    assert not warnings_in(caplog)


def test_workers_with_little_memory_are_told_of(caplog):
    assert _workers_of([_Worker(1, 0.6e9)], None).memory == pytest.approx(0.8 * 0.6e9 - 400e6)
    assert not warnings_in(caplog)
    assert _workers_of([_Worker(2, 0.5e9)], None).memory == 0.5e9 / 10 / 2  # little is better than nothing
    assert "workers have 476.84 MiB of memory each, and need about 381.47 MiB for themselves" in warnings_in(caplog)[0]


def test_workers_that_are_yet_to_come(caplog):
    each = {"n_workers": 0, "threads_per_worker": 2, "memory_limit": "2GB"}
    share = (0.8 * 2e9 - 400e6) / 2
    with LocalCluster(processes=False, dashboard_address="127.0.0.1:0", **each) as cluster, Client(cluster):
        assert find_workers() == Workers(16 * 2, share)
        (told,) = warnings_in(caplog)
        assert "16 workers with 1.86 GiB each are assumed" in told
        assert '"daskclust.worker-memory"' in told
        cluster.adapt(minimum=0, maximum=7, interval="1 hour")
        assert find_workers() == Workers(7 * 2, share)
        assert len(warnings_in(caplog)) == 1


def test_workers_of_jobs(caplog):
    """As dask-jobqueue says what it submits: each job has several processes."""
    job = {"options": {"cores": 16, "memory": "64GB"}, "group": ["-0", "-1", "-2", "-3"]}
    cluster = SimpleNamespace(worker_spec={"job-0": job, "job-1": job}, new_spec=job)
    assert _workers_of([], cluster) == Workers(2 * 16, (0.8 * 16e9 - 400e6) / 4)
    assert _workers_of([_Worker(4, 8e9)] * 3, cluster) == Workers(2 * 16, (0.8 * 8e9 - 400e6) / 4)
    assert not warnings_in(caplog)
    unknown = {"options": {}}
    assert _workers_of([], SimpleNamespace(worker_spec={"job-0": unknown}, new_spec=unknown)).threads == 1
    assert "1 workers with 3.73 GiB each" in warnings_in(caplog)[0]


def test_more_chunks_than_a_scheduler_likes_are_told_of(caplog):
    X = da.zeros((10**10, 3), chunks=(10**7, 3))
    rows = points_per_task(len(X), Cost(100e-9, 100), Workers(100, 4e9))
    assert task_count(X, rows) <= 10_000
    assert not warnings_in(caplog)
    rows = points_per_task(len(X), Cost(100e-9, 100), Workers(100, 30e6))
    assert task_count(X, rows) == 100_000
    assert "1e+10 points are divided into 100000 chunks of 100000" in warnings_in(caplog)[0]


def test_chunks_for_which_workers_have_too_little_memory_are_told_of(caplog):
    """Before anything is read: what is divided takes less than what is clustered as it is."""
    hits = {name: da.zeros(10**6, chunks=((100_000, 900_000),)) for name in ("toa", "x", "y")}
    plan = EventPlan(200.0, "local", 8, 1)
    with start(1, processes=False, memory_limit="578MB"):  # 62.4 MB for points
        divide(plan, hits, Partition(cuts=(np.array([0.5]),), period=(0.0,)))
        assert warnings_in(caplog) == []
        divide(plan, hits, "chunks")
    (told,) = warnings_in(caplog)
    assert (
        "a chunk has 900000 points and needs about 70 bytes for each, 60.08 MiB, but workers have only about 59.51 MiB"
        in told
    )


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
        assert {name.split("-")[2] for name, *_ in task.dependencies} == {"merge", "frontiers"}


def test_chunks_are_joined_where_that_halves_them():
    division = Division(None, 100)
    assert len(exchange.Layout.of((20,) * 10, division).runs) == 2
    assert len(exchange.Layout.of((100,) * 9 + (20, 30), division).runs) == 11


def _read(k):
    return {"x": np.arange(4.0) + 4 * k, "y": np.full(4, k)}


def _sums(columns, chunk, factor):
    return factor * sum(map(np.sum, columns))


def _names(array):
    return sorted(key[0].split("-")[2] for key in dask.optimize(array)[0].__dask_graph__() if "test-" in key[0])


def test_a_step_reads_itself_what_it_alone_needs():
    """A task for each chunk that only reads would run anywhere, and its columns go to where the labels are."""
    steps = graph.ChunkSteps("test-", 1)
    columns = steps.read("read", [(_read, k) for k in range(3)], (4, 4, 4), {"x": float, "y": int})
    with Client(processes=False, n_workers=1, dashboard_address=None), graph.only_needed():
        labels = da.ones(12, chunks=4).persist()
        given = steps.shared("given", 2.0)
        sums = steps.of_rows("sums", _sums, [*columns.values(), labels], given)
        total = steps.of_all("total", sum, sums)
        again = steps.of_rows("again", _sums, [columns["x"], labels], total)
        alone = steps.of_rows("alone", _sums, [columns["x"]], given)
        names = [_names(found) for found in (sums, again, alone)]
        assert names[0] == ["given", "sums", "sums", "sums"]
        assert [each.count("read") for each in names] == [0, 3, 3]
        for fused in (None, False):
            with dask.config.set({"optimization.fuse.active": fused}):
                assert sums.compute().ravel().tolist() == [20.0, 60.0, 100.0]
                assert again.compute().ravel().tolist() == [10 * 180.0, 26 * 180.0, 42 * 180.0]
                assert alone.compute().ravel().tolist() == [12.0, 44.0, 76.0]


def test_dask_knows_each_step_by_one_content(tmp_path, caplog):
    """Clusters are found for the table, at once; hits that are written need some of the same steps."""
    write_tpx3(timepix(5000, rng=0), tmp_path / "hits.tpx3")
    with Client(processes=False, n_workers=1, dashboard_address=None):
        hits = open_tpx3(tmp_path / "hits.tpx3", chunks=1000).clust.events(100.0)
        table = cluster_table(hits)
        for ds in (hits, table.drop_vars(["noise_size", "noise_weight"])):
            write_hits(ds, tmp_path / "written.parquet")
    assert "run_spec" not in caplog.text
