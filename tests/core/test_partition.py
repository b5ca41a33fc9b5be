"""Extents, partitions with halos, planes, and ids."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskclust.core.data import checks
from daskclust.core.device.arrays import HOST
from daskclust.core.merge.own_ids import OwnIds
from daskclust.core.run.division import balanced_cuts
from daskclust.core.run.steps import PointResults, part_of, put_back
from daskclust.core.space.extent import group_range, survey, without_gaps
from daskclust.core.space.grid import wrap_positions
from daskclust.core.space.partition import Partition


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_survey(threads, count, dtype):
    threads(count)
    X = np.random.default_rng(6).normal(size=(1001, 3)).astype(dtype)
    low, high, bad = survey(HOST, X)
    np.testing.assert_array_equal(low, X.min(axis=0))
    np.testing.assert_array_equal(high, X.max(axis=0))
    assert (low.dtype, high.dtype, bad) == (np.float64, np.float64, 1001)
    for value in (np.nan, np.inf, -np.inf):
        for rows in ([0], [1000], [500, 17, 999]):
            broken = X.copy()
            broken[rows, np.arange(len(rows)) % 3] = value
            assert survey(HOST, broken)[2] == min(rows)
    assert survey(HOST, X[:1])[2] == 1


def test_group_range():
    assert group_range(HOST, np.array([3, -5, 2], np.int32)) == (-5, 3)
    assert group_range(HOST, np.array([2**62, -(2**63)])) == (-(2**63), 2**62)
    assert group_range(HOST, np.empty(0, np.int32)) == (0, 0)


@pytest.mark.parametrize("stride", [1, 2, 3, 8, 10**9])
def test_groups_without_gaps(stride):
    group = np.random.default_rng(2).integers(-20, 20, 500).astype(np.int64)
    number, first, count = without_gaps(HOST, group * stride)
    assert count == (40 if stride != 2 else 79)  # as they are where they are not much farther apart
    assert number.min() == first
    assert number.max() == first + count - 1
    np.testing.assert_array_equal(np.unique(number, return_inverse=True)[1], group + 20)
    assert without_gaps(HOST, group[:0])[1:] == (0, 1)


def outside(x, low, high, cycle):
    """Return how far coordinates are from [low, high], around the period too."""
    copies = [-2, -1, 0, 1, 2] if cycle else [0]
    return np.min([np.maximum(np.maximum(low - (x + k * cycle), x + k * cycle - high), 0) for k in copies], axis=0)


@st.composite
def partitions(draw, X):
    d = X.shape[1]
    period = tuple(draw(st.sampled_from([0.0, 0.0, 0.5, 2.0, 7.0])) for _ in range(d))
    cuts, count = [], 1
    for cycle in period[: draw(st.integers(0, d))]:
        inside = st.floats(0.01 * cycle, 0.99 * cycle) if cycle else st.floats(-6, 6)
        rows = [np.unique(draw(st.lists(inside, max_size=3))).astype(float) for _ in range(count)]
        cuts.append(rows if draw(st.booleans()) else rows[0])
        count = sum(len(row) + 1 for row in rows) if cuts[-1] is rows else count * (len(rows[0]) + 1)
    return Partition(draw(st.integers(1, 3)), tuple(cuts), period, draw(st.sampled_from([0.1, 0.4, 1.5, 9.0])))


@given(st.data(), st.integers(0, 2**32), st.integers(0, 60), st.integers(1, 3))
def test_split(data, seed, n, d):
    """Every point is owned once, by the chunk whose region it is in; halos are complete and not much larger."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-6, 6, (n, d)).astype(data.draw(st.sampled_from([np.float32, np.float64])))
    group = rng.integers(-4, 5, n).astype(np.int32)
    partition = data.draw(partitions(X))
    chunks = partition.split({"X": X, "layer": group, "other": np.arange(n)}, 1000, group=group)
    assert len(chunks) == len(partition)
    blocks = partition.n_blocks
    moved = wrap_positions(X, partition.period).astype(float)
    owner = np.zeros(n, int)
    for number, chunk in enumerate(chunks):
        rows = chunk.ids - 1000
        assert (np.diff(rows) > 0).all()
        for name, values in (("X", X), ("layer", group), ("other", np.arange(n))):
            np.testing.assert_array_equal(chunk.columns[name], values[rows], strict=True)
        wanted = group % partition.groups == number // blocks if partition.groups > 1 else np.ones(n, bool)
        if not partition.cuts:
            assert chunk.owned is None
            assert chunk.region == ()
            np.testing.assert_array_equal(rows, np.flatnonzero(wanted))
            owner[rows] += 1
            continue
        assert chunk.region == partition.region(number)
        inside, far = wanted.copy(), np.zeros(n)
        for axis, (low, high) in enumerate(chunk.region):
            inside &= (moved[:, axis] >= low) & (moved[:, axis] < high)
            far = np.maximum(far, outside(moved[:, axis], low, high, partition.period[axis]))
        np.testing.assert_array_equal(rows[chunk.owned], np.flatnonzero(inside))
        owner[rows[chunk.owned]] += 1
        held = np.zeros(n, bool)
        held[rows] = True
        assert held[wanted & (far <= partition.halo)].all()
        assert not held[~wanted | (far > partition.halo * (1 + 1e-9) + 1e-12)].any()
    np.testing.assert_array_equal(owner, np.ones(n))
    if n and not partition.groups > 1:
        (reached,) = partition.reached(X.min(axis=0)[None], X.max(axis=0)[None])
        assert set(np.flatnonzero([len(chunk.ids) for chunk in chunks])) <= set(reached.tolist())
        for number, part in zip(reached, partition.split({"X": X}, 1000, among=reached), strict=True):
            np.testing.assert_array_equal(part.ids, chunks[number].ids)
            assert part.region == partition.region(number)


def test_points_that_would_be_lost_are_told_of():
    partition = Partition(cuts=(np.array([1.0, 2.0]),), period=(0.0,), halo=0.1)
    with pytest.raises(ValueError, match=r"begins at point 70 has other values .* persist"):
        partition.split({"X": np.array([[0.5], [2.5]])}, 70, among=np.array([0, 1]))


@given(st.integers(0, 2**32), st.integers(0, 500), st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_balanced_cuts(seed, n, blocks):
    sample = np.random.default_rng(seed).exponential(2.0, (n, 3)).astype(np.float32)
    period = (0.0, 1.0, 0.0)[: len(blocks)]
    partition = Partition(cuts=balanced_cuts(sample, tuple(blocks), period), period=period)
    shares = [chunk.owned.sum() for chunk in partition.split({"X": sample}, 0)]
    assert sum(shares) == n
    if n >= 4 * math.prod(blocks):
        assert len(shares) == math.prod(blocks)
        assert max(shares) - min(shares) <= 2 * len(blocks) + 1


def test_more_points_than_a_part_can_number(monkeypatch):
    monkeypatch.setattr(checks, "_MOST_POINTS", 9)
    partition = Partition(cuts=(np.array([4.5]),), period=(0.0,), halo=1.0)
    X = np.arange(9.0)[:, None]  # two of them are in halos, too
    with pytest.raises(ValueError, match="11 points are more than one chunk holds"):
        partition.split({"X": X}, 0)


@pytest.mark.parametrize(("count", "grid"), [(8, (3, 3)), (7, (2, 2, 2)), (1, (1, 1)), (5, (5,)), (11, (3, 2, 2))])
def test_balanced_cuts_into_any_number(count, grid):
    X = np.random.default_rng(3).normal(size=(6600, len(grid)))
    partition = Partition(cuts=balanced_cuts(X, grid, (0.0,) * len(grid), count), period=(0.0,) * len(grid))
    sizes = [len(chunk.ids) for chunk in partition.split({"X": X}, 0)]
    assert len(partition) == count
    assert max(sizes) - min(sizes) <= len(grid)


@pytest.mark.parametrize(("step", "itemsize"), [(1, 0), (3, 2), (2**15, 2), (2**17, 4), (2**31, 4)])
@pytest.mark.parametrize("n", [1, 2, 4096, 4097, 20_000])
@pytest.mark.parametrize("far", [0, 1, 40])
def test_ids_take_as_little_memory_as_they_need(step, itemsize, n, far):
    rng = np.random.default_rng([step, n, far])
    steps = rng.integers(1, step, n, endpoint=True)
    steps[rng.integers(0, n, far)] = rng.integers(2**32, 2**45, far)
    ids = 2**50 + np.cumsum(steps)
    kept = OwnIds.of(ids)
    np.testing.assert_array_equal(kept.on(HOST), ids, strict=True)
    if n >= 4096:
        assert (0 if kept.steps is None else kept.steps.itemsize) == max(itemsize, 2 if far else 0)
        assert kept.far is None or len(kept.far) <= far
    ends = [ids[0] - 1, *ids[[0, n // 2, -1]], ids[-1] + 1, *rng.integers(ids[0], ids[-1], 9, endpoint=True)]
    for start, end in itertools.combinations(ends, 2):
        part, rows = kept.within(start, end)
        np.testing.assert_array_equal(part.on(HOST), ids[(start <= ids) & (ids < end)])
        np.testing.assert_array_equal(ids[rows], part.on(HOST))


def test_no_ids():
    kept = OwnIds.of(np.empty(0, np.int64))
    assert len(kept.on(HOST)) == len(kept.within(0, 5)[0].on(HOST)) == 0


@pytest.mark.parametrize("largest", [2**31 - 1, 2**31, 2**62])
def test_pieces_of_results_are_put_back_as_they_were(largest):
    rng = np.random.default_rng(largest % 97)
    n, starts = 9000, np.array([0, 3000, 3000, 9000])
    values = {"label": rng.integers(-1, 50, n), "other": np.full(n, -1), "x": rng.normal(size=n).astype(np.float32)}
    values["other"][7] = largest
    owner = rng.integers(0, 3, n)
    known = [
        PointResults(OwnIds.of(ids), {k: v[ids] for k, v in values.items()})
        for ids in map(np.flatnonzero, owner == np.arange(3)[:, None])
    ]
    for k, (start, end) in enumerate(itertools.pairwise(starts)):
        pieces = [part_of(each, start, end) for each in known]
        found = put_back(pieces, starts, k)
        assert {piece.results["label"].dtype for piece in pieces} == {np.dtype(np.int32)}
        for name, wanted in values.items():
            np.testing.assert_array_equal(found[name], wanted[start:end], strict=True)
