"""Many chunks are merged on all workers, and points go by Dask's exchange: the answer is that without chunks."""

import pickle
from functools import partial

import dask
import dask.array as da
import numpy as np
import pytest
from cases.lanes import quick_first
from cases.steps import in_chunks
from dask.base import collections_to_expr
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from daskclust import CLUE, DBSCAN, FriendsOfFriends
from daskclust.core.merge.sets import Fragments, merge_fragments
from daskclust.core.merge.tree import borders_of, join_borders
from daskclust.core.run import exchange
from daskclust.core.run.division import balanced_cuts
from daskclust.core.run.exchange import all_to_all, pieces_of
from daskclust.core.run.graph import ChunkSteps, unboxed
from daskclust.core.space.partition import Partition
from daskclust.workers import start

RNG = np.random.default_rng(8)
CENTERS = RNG.uniform(0, 20, (30, 3))
SNAKE = np.stack([np.linspace(0, 20, 400), 10 + 8 * np.sin(np.linspace(0, 9, 400)), np.full(400, 3.0)], axis=1)
X = np.concatenate([c + RNG.normal(0, 0.3, (60, 3)) for c in CENTERS] + [RNG.uniform(0, 20, (1500, 3)), SNAKE]) % 20
MIXED = RNG.permutation(X)
LAYER = RNG.integers(0, 30, len(X))


CLUSTERS, AROUND = CLUE(0.6, 3.0), CLUE(0.6, 3.0, delta_o=1.4, wrap={0: 20.0, 2: 20.0})
IN_BLOCKS = Partition(groups=4, cuts=balanced_cuts(X, (3, 2), (0.0,) * 3), period=(0.0, 0.0), halo=1.3)
SYSTEMS = {
    "clue": (CLUSTERS, {}),
    "clue around": (AROUND, {}),
    "clue of layers": (CLUSTERS, {"layer": LAYER, "partition": "layers"}),
    "clue of layers in blocks": (CLUSTERS, {"layer": LAYER, "partition": IN_BLOCKS}),
    "dbscan": (DBSCAN(0.6, min_samples=5), {}),
    "friends": (FriendsOfFriends(0.55, min_members=3), {}),
    "friends in a box": (FriendsOfFriends(0.55, boxsize=20.0), {}),
}


def fit(system, points, give=np.asarray):
    estimator, how = SYSTEMS[system]
    return clone(estimator).fit(give(points), **{k: give(v) if k == "layer" else v for k, v in how.items()})


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(("points", "width"), quick_first([(MIXED, 2), (X, 5)]))
def test_answers_are_those_without_chunks(system, points, width):
    wanted = fit(system, points)
    with dask.config.set({"daskclust.merge-width": width}):
        found = fit(system, points, in_chunks(130))
        labels, n_clusters = dask.compute(found.labels_, found.n_clusters_)
    assert any("merge-rank" in str(key) for key in found.labels_.dask)  # it was merged so
    np.testing.assert_array_equal(labels, wanted.labels_)
    assert n_clusters == wanted.n_clusters_


@pytest.mark.parametrize("width", [1, -3])
def test_widths_that_merge_nothing_are_refused(width):
    with dask.config.set({"daskclust.merge-width": width}), pytest.raises(ValueError, match=f"at least 2, got {width}"):
        fit("friends", X, in_chunks(600))


def test_steps_of_another_merge_have_other_names():
    """A scheduler that still knows those of the one takes tasks of the same name for the same."""
    keys = []
    for width in (2, 64):
        with dask.config.set({"daskclust.merge-width": width}):
            graph = fit("friends", X, in_chunks(600)).labels_.dask
        keys.append({key for key in graph if "fof" in str(key) and "measure" not in str(key)})
    assert keys[0].isdisjoint(keys[1])


# ------------------------------------------------------------------------------------------------------ what goes up
def blocks(points, count, halo, period=(0.0, 0.0, 0.0)):
    return Partition(cuts=balanced_cuts(points, count, period), period=period, halo=halo)


@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([np.float32, np.float64]))
def test_chunks_that_have_a_point_are_known(seed, is_ring, dtype):
    """Where it is as far from a block as the halo is wide, up to rounding, a chunk too many may be said to have it."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1, 6, (150, 2))
    points[::2] = np.round(points[::2] / 0.2) * 0.2
    points = (points + 5 * rng.integers(-3, 3, points.shape)).astype(dtype)
    period = (5.0, 0.0) if is_ring else (0.0, 0.0)
    partition = blocks(points, (int(rng.integers(1, 5)), int(rng.integers(1, 5))), 0.4, period)
    chunks = partition.split({"X": points}, 0)
    for k, chunk in enumerate(chunks):
        seen = partition.seen_from(k, chunk.columns["X"])
        having = [[j for j, other in enumerate(chunks) if i in other.ids] for i in chunk.ids]
        having = np.array([[min(own), max(own)] for own in having]).reshape(-1, 2)
        assert (seen[:, 0] <= having[:, 0]).all()
        assert (seen[:, 1] >= having[:, 1]).all()
        is_any = chunk.ids % 2 == 1
        np.testing.assert_array_equal(seen[is_any], having[is_any])


def test_chunks_that_follow_each_other_lie_together():
    partition = Partition(groups=3, cuts=((0.0, 1.0, 2.0), [(0.0,)] * 4), period=(0.0, 0.0), halo=0.1)
    for first in range(0, len(partition), 4):  # each four are a square
        corners = np.array([partition.region(number) for number in range(first, first + 4)])
        wide = np.isfinite(corners[..., 0]).any(axis=0)
        assert len(np.unique(corners[:, 0], axis=0)) == len(np.unique(corners[:, 1], axis=0)) == 2, wide
    x = np.array([[-0.5, -1.0], [0.5, 1.0], [9.0, 1.0]])
    chunks = partition.split({"X": x, "layer": np.array([1, 2, 5])}, 0, group=np.array([1, 2, 5]))
    assert [number // partition.n_blocks for number, chunk in enumerate(chunks) if chunk.owned.any()] == [1, 2, 2]


def test_what_goes_up_is_what_reaches_out_of_a_region():
    """Of 8 x 8 blocks, groups of 4 x 4 and then all: each level has fewer points, and the last none."""
    points = np.random.default_rng(1).uniform(0, 8, (6000, 2))
    partition = blocks(points, (8, 8), 0.1, (0.0, 0.0))
    alone = []  # each point of a halo is a set of its own, in all chunks that have it
    for chunk in partition.split({"X": points}, 0):
        ids, nothing = chunk.ids, np.empty(0, np.int64)
        shared = np.flatnonzero(np.ptp(partition.seen_from(len(alone), chunk.columns["X"]), axis=1) > 0)
        own = chunk.owned.astype(np.int64)
        alone.append(Fragments(ids, own, ids[shared], shared, chunk.columns["X"][shared], nothing))
    borders = [borders_of((None, each), partition, k) for k, each in enumerate(alone)]
    sent = [sum(len(each.members) for each in borders)]
    level = borders
    for size in (16, 64):
        groups = [level[a : a + (16 if size == 16 else 4)] for a in range(0, len(level), 16 if size == 16 else 4)]
        level = [join_borders(1, size, group, k)[1] for k, group in enumerate(groups)]
        sent.append(sum(len(each.members) for each in level))
    assert sent[0] > 3 * sent[1] > 0 == sent[2]
    assert merge_fragments(alone, 1)[0].n_clusters == 6000


# --------------------------------------------------------------------------------------------------------- exchanges
def send(targets, count):
    """Return how many steps an exchange of named pieces takes, and what each receiver gets."""
    steps = ChunkSteps("", "test", targets, count)
    given = [[f"{a} to {b}" for b in wanted] for a, wanted in enumerate(targets)]
    senders = steps.from_tasks("send", [(partial(list, each),) for each in given])
    got = pieces_of(steps, "got", senders, targets, count)
    pieces = sum("got-piece" in str(key) for key in dict(got.__dask_graph__()))
    return pieces, [unboxed(got[k : k + 1].compute()) for k in range(count)]


@given(st.integers(0, 2**32))
def test_some_to_some(seed):
    rng = np.random.default_rng(seed)
    senders, receivers, share = rng.integers(1, 9), rng.integers(1, 9), rng.choice([0.1, 0.9])
    targets = [np.flatnonzero(rng.random(receivers) < share).tolist() for _ in range(senders)]
    pieces, got = send(targets, receivers)
    assert got == [[f"{a} to {b}" for a in range(senders) if b in targets[a]] for b in range(receivers)]
    assert pieces == sum(map(len, targets))


@pytest.fixture(scope="module")
def client():
    with start(2, processes=False, dashboard=":0") as client:
        yield client


@pytest.mark.parametrize(("senders", "receivers"), [(3, 4), (40, 5), (1, 9)])
@pytest.mark.parametrize("where", ["threads", "workers"])
def test_all_to_all(senders, receivers, where, client):
    with dask.config.set(scheduler="threads" if where == "threads" else client):
        steps = ChunkSteps("", "test", senders, receivers, where)
        rows = steps.from_tasks("send", [(partial(_named, k, receivers),) for k in range(senders)])
        rows = steps.each("row", list, rows, row=receivers)
        got = steps.each("got", list, all_to_all(rows)).compute()
    assert [got[k, 0] for k in range(receivers)] == [[f"{a} to {b}" for a in range(senders)] for b in range(receivers)]


def _named(sender, receivers):
    return [f"{sender} to {b}" for b in range(receivers)]


@pytest.mark.parametrize(
    "system", quick_first(["dbscan", "clue of layers in blocks", "clue around", "friends in a box"], 2)
)
def test_answers_by_the_exchange_of_workers(system, client, monkeypatch):
    monkeypatch.setattr(exchange, "_FEW", 0)
    wanted = fit(system, MIXED).labels_
    with dask.config.set({"scheduler": client, "daskclust.task-seconds": 0, "daskclust.merge-width": 8}):
        found = fit(system, MIXED, in_chunks(200))
        assert any("p2p" in str(key) for key in found.labels_.dask)
        labels, n_clusters = dask.compute(found.labels_, found.n_clusters_)
        np.testing.assert_array_equal(labels, wanted)
        assert n_clusters == labels.max() + 1
        np.testing.assert_array_equal(found.labels_[100:130].compute(), wanted[100:130])


def points_of(count):
    """Return points in chunks that are never computed."""
    chunks = ((1000,) * count, (3,))
    return da.map_blocks(_never, chunks=chunks, dtype=np.float32, meta=np.empty((0, 3), np.float32))


def _never(block_id=None):
    raise RuntimeError(f"chunk {block_id} was computed")


@pytest.mark.parametrize("where", ["threads", "workers"])
def test_tasks_grow_with_chunks(where, client):
    """Not with their square, as pairs of chunks and blocks do; and what is sent to a scheduler is small."""
    counts, sample = [], np.random.default_rng(1).random((4000, 3))
    for count in (200, 800):
        halo, period = 0.01, (0.0,) * 3
        blocks = Partition(cuts=balanced_cuts(sample, (10, 10, 8), period, count), period=period, halo=halo)
        with dask.config.set({"scheduler": "threads" if where == "threads" else client, "daskclust.task-seconds": 0}):
            labels = FriendsOfFriends(0.009).fit(points_of(count), partition=blocks).labels_
            expression = collections_to_expr([labels])
            assert len(pickle.dumps(expression)) < 1000 * count
            counts.append(len(expression.__dask_graph__()))
    assert counts[1] < 4.5 * counts[0] < 4.5 * 20 * 200
