"""Divisions that are as bad as they can be: clusters, borders and weights on both sides of a plane."""

import math
from dataclasses import replace

import numpy as np
import pytest
from cases.dbscan import Case, assert_answer

from daskclust.dbscan.plan import DbscanPlan

RNG = np.random.default_rng(11)


def column(*x):
    """Return points along the first of two axes: kernels of one axis are compiled in the slow lane alone."""
    return np.stack([x, np.zeros(len(x))], axis=1)


def assert_divided(case, *divisions):
    """Demand one chunk's answer, which is brute force's, however the planes divide the points; return it."""
    wanted = case.answer()
    assert_answer(case.fit(), wanted)
    n = len(case.X)
    for cuts in divisions:
        for rows in ((n // 2, n - n // 2), (1,) * n):
            assert_answer(case.chunked(rows, case.partition(*cuts)), wanted)
    return wanted


LEFT, RIGHT = [-1.0, -1.1, -1.2, -1.3], [1.0, 1.1, 1.2, 1.3]


@pytest.mark.parametrize("first", ["left", "right", "border"])
def test_border_point_between_the_clusters_of_two_chunks(first):
    x = {"left": [*LEFT, 0.0, *RIGHT], "right": [*RIGHT, *LEFT, 0.0], "border": [0.0, *RIGHT, *LEFT]}[first]
    answer = assert_divided(Case(column(*x)), [[0.0]], [[-0.5]], [[0.5]], [[-0.999, 0.0, 0.999]], [[-1.0, 1.0]])
    border = x.index(0.0)
    assert not answer.is_core[border]
    assert answer.labels[border] == 0
    assert set(answer.labels) == {0, 1}


def test_border_point_whose_smallest_label_only_a_merge_tells():
    """Left of the border point is a set that locally comes second; far away, in another chunk, it holds point 0."""
    tail = [-8.0 + 0.5 * k for k in range(15)]  # -8 ... -1: the left set, a chain
    x = [*tail[:2], *RIGHT, 0.0, *tail[2:]]
    case = Case(column(*x), 1.0, 4)
    local = case.partition([-5.0]).split({"X": case.X}, 0)[1]
    assert min(local.ids) == x.index(1.0)  # the chunk of the border point knows the first point of the right set alone
    answer = assert_divided(case, [[-5.0]], [[-4.75, -0.5]], [[-5.0, 0.5]], [[-5.0, 0.0]], [[-5.0, -3.0, -1.0, 0.0]])
    assert not answer.is_core[x.index(0.0)]
    assert answer.labels[x.index(0.0)] == answer.labels[0] == 0
    assert answer.labels[x.index(1.0)] == 1


def test_cluster_smaller_than_min_samples_in_each_chunk():
    case = Case(column(0.0, 0.3, 0.6, 0.9), 1.0, 4)
    answer = assert_divided(case, [[0.15, 0.45, 0.75]], [[0.45]], [[0.3, 0.6, 0.9]])
    assert answer.labels.tolist() == [0] * 4
    few = Case(column(0.0, 0.9, 1.8, 2.7), 1.0, min_members=4)
    assert assert_divided(few, [[0.45, 1.35, 2.25]], [[1.0]]).labels.tolist() == [0] * 4
    assert assert_divided(replace(few, min_members=5), [[0.45, 1.35, 2.25]], [[1.0]]).labels.tolist() == [-1] * 4


def test_core_point_that_needs_neighbours_across_the_face():
    case = Case(column(-2.0, -0.9, 0.0, 0.4, 0.8), 1.0, 4)  # 0.0 has all but -2.0, no other has four
    answer = assert_divided(case, [[-0.1]], [[0.1]], [[0.2]], [[-0.5, 0.2, 0.6]])
    assert answer.is_core.tolist() == [False, False, True, False, False]
    assert answer.labels.tolist() == [-1, 0, 0, 0, 0]


def test_point_that_weighs_enough_only_as_far_as_the_chunk_sees():
    """Beyond eps from a block not all neighbours are known: a negative weight farther out unmakes the bridge F."""
    A, B, F, C, D, N = (-0.1, 1.2), (0.8, 1.2), (1.5, 0.6), (0.8, 0.0), (-0.1, 0.0), (2.3, 0.6)
    case = Case(np.array([A, B, F, C, D, N]), 1.0, 2, np.array([1, 1, 1, 1, 1, -10.0]))
    answer = assert_divided(case, [[0.0]], [[0.0, 0.5]], [[0.0], [0.6]])
    assert answer.is_core.tolist() == [True, True, False, True, True, False]
    assert answer.labels.tolist() == [0, 0, 0, 1, 1, -1]


@pytest.mark.parametrize("min_samples", [2, 4])
def test_halos_that_are_chosen_here(min_samples):
    """Blocks of which the plan says how far they must see: each has core points on its face that others make."""
    x = np.arange(0, 40, 0.5)
    X = column(*x, *x[::4] + 0.25)[RNG.permutation(100)]
    case = Case(X, 0.75, min_samples)
    wanted = case.answer()
    assert_answer(case.fit(), wanted)
    for rows in ((10,) * 10, (25,) * 4, (4,) * 25):
        assert_answer(case.chunked(rows), wanted)
    thin = Case(np.repeat(X * 2, 2, axis=0), 1.0, 5)  # 0.5 and 1 apart: whether five are near depends on the place
    assert thin.answer().is_core.any()
    assert not thin.answer().is_core.all()
    for rows in ((20,) * 10, (5,) * 40):
        assert_answer(thin.chunked(rows), thin.answer())


@pytest.mark.parametrize("d", [2, 3])
def test_corners_of_blocks(d):
    """One point in each of the four or eight blocks around a corner: linked along edges, diagonals or not at all."""
    corners = np.stack(np.meshgrid(*[[-0.25, 0.25]] * d, indexing="ij"), axis=-1).reshape(-1, d)
    cuts = [[0.0]] * d
    for eps, groups in ((0.5, 1), (0.49, 2**d)):
        answer = assert_divided(Case(corners, eps, min_members=1), cuts)
        assert answer.labels.max() + 1 == groups
    opposite = corners[[0, -1]]
    for eps, groups in ((0.5 * math.sqrt(d) + 1e-9, 1), (0.5 * math.sqrt(d) - 1e-9, 2)):
        answer = assert_divided(Case(opposite, eps, min_members=1), cuts)
        assert answer.labels.max() + 1 == groups
    centre = np.concatenate([corners, np.zeros((1, d))])  # it alone has all others near
    case = Case(centre, 0.25 * math.sqrt(d) + 1e-9, 2**d + 1)
    answer = assert_divided(case, cuts, [[1e-9]] * d, [[-0.1, 0.1]] * d)
    assert answer.is_core.tolist() == [False] * 2**d + [True]
    assert answer.labels.tolist() == [0] * (2**d + 1)


@pytest.mark.parametrize("min_samples", [2, 3])
def test_clusters_that_join_across_periodic_faces_alone(min_samples):
    x = [0.1, 0.3, 9.9, 9.7, 5.0, 5.1, 5.2]
    case = Case(column(*x), 0.5, min_samples, None, (10.0, 0.0))
    assert assert_divided(case, [[3.0, 6.0]], [[0.2, 9.8]], [[5.0]]).labels.tolist() == [0, 0, 0, 0, 1, 1, 1]
    corners = np.array([[0.1, 0.1], [9.9, 9.9], [9.9, 0.1], [0.1, 9.9], [5.0, 5.0]])
    case = Case(corners, 0.5, min_samples, None, (10.0, 10.0))
    assert assert_divided(case, [[3.0, 6.0], [5.0]]).labels.tolist() == [0, 0, 0, 0, -1]
    case = replace(case, X=corners[[0, 1, 4]], min_samples=2)  # over the edge of both faces at once
    assert assert_divided(case, [[3.0, 6.0], [5.0]], [[5.0]], [[], [5.0]]).labels.tolist() == [0, 0, -1]
    assert assert_divided(replace(case, period=(10.0, 0.0)), [[3.0, 6.0], [5.0]]).labels.tolist() == [-1, -1, -1]


@pytest.mark.parametrize("min_samples", [2, 3])
def test_chain_through_many_chunks_and_back(min_samples):
    """Out along y = 0, back along y = 3: the two arms meet in the last of the chunks only."""
    x = np.arange(0, 20, 0.8)
    arms = np.concatenate([np.stack([x, 0 * x], 1), np.stack([x[::-1], 0 * x + 3], 1)])
    turn = np.array([[x[-1], 0.75], [x[-1], 1.5], [x[-1], 2.25]])
    alone = np.stack([x, 0 * x + 6], 1)
    X = np.concatenate([arms, alone, turn])
    for order in (np.arange(len(X)), np.arange(len(X))[::-1], RNG.permutation(len(X))):
        case = Case(X[order], 1.0, min_samples)
        answer = assert_divided(case, [np.arange(1.5, 20, 1.5)], [np.arange(2.1, 20, 3.0), [1.0, 4.0]])
        assert set(answer.labels) == {0, 1}
    without = assert_divided(Case(X[: -len(turn)], 1.0, 2), [np.arange(1.5, 20, 1.5)])
    assert set(without.labels) == {0, 1, 2}


@pytest.mark.parametrize("count", [2**15 - 1, 2**15, 2**15 + 1])
def test_sets_that_16_bits_do_not_number(count):
    """The numbers of a chunk's sets wait for the merge in as few bytes as they fit."""
    pair = np.arange(4 * count) // 2
    x = 3.0 * pair + 0.5 * (np.arange(4 * count) % 2)
    case = Case(column(*x), 1.0, 2)
    found = case.chunked((2 * count, 2 * count), case.partition([x[2 * count]]))
    np.testing.assert_array_equal(np.asarray(found.labels_), pair)


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
