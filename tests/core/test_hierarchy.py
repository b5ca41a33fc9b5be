"""Hierarchies of clusters: cuts, heights of points and the rest, against SciPy and against sets of points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import hierarchy

from daskclust.core import hierarchy as tree
from daskclust.core.merge.labels import same_partition

Array = np.ndarray[Any, Any]


@st.composite
def linkages(draw: Any, least: int = 1, inversions: bool = True) -> Array:
    """Draw any tree with heights in any order, or in that of its merges."""
    n = draw(st.integers(least, 24))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_linkage(n, rng, draw(st.sampled_from([3, 50])), inversions=inversions)


def random_linkage(n: int, rng: Any, levels: int, *, inversions: bool) -> Array:
    ids, sizes, rows = list(range(n)), dict.fromkeys(range(n), 1), []
    heights = rng.integers(0, levels, n - 1) / 4
    for height in heights if inversions else np.sort(heights):
        a, b = sorted(int(ids.pop(rng.integers(len(ids)))) for _ in range(2))
        sizes[n + len(rows)] = sizes[a] + sizes[b]
        ids.append(n + len(rows))
        rows.append((a, b, height, sizes[a] + sizes[b]))
    return np.array(rows, dtype=float).reshape(n - 1, 4)


def chain(n: int, *, rising: bool = True) -> Array:
    """Return the deepest tree there is: points join one by one."""
    rows = np.arange(n - 1)
    heights = rows + 1.0 if rising else n - rows.astype(float)
    return np.column_stack([np.where(rows, rows + 1, 0), np.where(rows, n + rows - 1, 1), heights, rows + 2.0])


def clusters(Z: Array) -> list[frozenset[int]]:
    """Return the points of each id, by recursion."""
    n = len(Z) + 1

    def points(node: int) -> frozenset[int]:
        if node < n:
            return frozenset([node])
        return points(int(Z[node - n, 0])) | points(int(Z[node - n, 1]))

    return [points(node) for node in range(2 * n - 1)]


def highest(Z: Array, node: int) -> float:
    n = len(Z) + 1
    if node < n:
        return -math.inf
    return max(float(Z[node - n, 2]), *(highest(Z, int(child)) for child in Z[node - n, :2]))


def labelled(n: int, partition: list[frozenset[int]], least: int) -> Array:
    """Return labels of clusters of at least `least` points, by the smallest."""
    labels = np.full(n, -1)
    for number, points in enumerate(sorted((p for p in partition if len(p) >= least), key=min)):
        labels[list(points)] = number
    return labels


def undone(Z: Array, last: int) -> list[frozenset[int]]:
    """Return the partition with the last so many merges undone."""
    n, found = len(Z) + 1, clusters(Z)
    there = set(range(n))
    for row in range(n - 1 - last):
        there = there - {int(Z[row, 0]), int(Z[row, 1])} | {n + row}
    return [found[node] for node in there]


# ----------------------------------------------------------------------------------------------------------------- cuts
def forks(Z: Array, least: int) -> list[int]:
    """Return the rows that merge two clusters of at least `least` points."""
    found = clusters(Z)
    return [row for row, pair in enumerate(Z[:, :2].astype(int)) if min(len(found[id_]) for id_ in pair) >= least]


@given(Z=linkages(), data=st.data())
def test_cut_by_number(Z: Array, data: Any) -> None:
    n, found = len(Z) + 1, clusters(Z)
    k, least = data.draw(st.integers(1, n)), data.draw(st.integers(1, 4))
    np.testing.assert_array_equal(tree.cut(Z, n_clusters=k), labelled(n, undone(Z, k - 1), 1))
    rows = forks(Z, least)
    most = len(rows) + 1 if least <= n else 0
    if k <= most and k <= n and least <= n:  # the same by the top of the tree
        top = tree.condense(Z, k, least)
        by_top = [set(np.flatnonzero(tree.cut(Z, n_clusters=k, min_size=least) == number)) for number in range(k)]
        assert [found[node] for node in top.nodes[:k]] == by_top
    if k > most:
        with pytest.raises(ValueError, match=f"have at most {most} clusters.*, got n_clusters = {k}"):
            tree.cut(Z, n_clusters=k, min_size=least)
        return
    first = rows[len(rows) + 1 - k] if k > 1 else n - 1
    partition = undone(Z, n - 1 - first)  # a horizontal cut, and what it takes to pieces of which none is large
    for row in range(first, n - 1):
        if max(len(found[int(child)]) for child in Z[row, :2]) < least:
            partition.append(found[n + row])
    labels = tree.cut(Z, n_clusters=k, min_size=least)
    np.testing.assert_array_equal(labels, labelled(n, partition, least))
    assert labels.max() == k - 1


@given(Z=linkages(), height=st.integers(-1, 52).map(lambda quarter: quarter / 4), least=st.integers(1, 4))
def test_cut_by_height(Z: Array, height: float, least: int) -> None:
    n, found = len(Z) + 1, clusters(Z)
    low = [found[node] for node in range(2 * n - 1) if highest(Z, node) <= height]
    partition = [points for points in low if not any(points < other for other in low)]
    labels = tree.cut(Z, height=height, min_size=least)
    np.testing.assert_array_equal(labels, labelled(n, partition, least))
    assert labels.dtype == np.int64
    if n > 1 and least == 1:
        assert same_partition(labels, hierarchy.fcluster(Z, height, "distance"))


# --------------------------------------------------------------------------------------------------------------- points
@given(Z=linkages())
def test_heights_of_points(Z: Array) -> None:
    n, found = len(Z) + 1, clusters(Z)
    expected = [sum(row[2] for row, points in zip(Z, found[n:], strict=True) if o in points) for o in range(n)]
    np.testing.assert_array_equal(tree.point_heights(Z), expected)  # quarters: sums are exact


@given(Z=linkages())
def test_members_and_order(Z: Array) -> None:
    n, found = len(Z) + 1, clusters(Z)
    for node in range(2 * n - 1):
        np.testing.assert_array_equal(tree.members(Z, node), sorted(found[node]))
    order = tree.leaf_order(Z)
    np.testing.assert_array_equal(order, hierarchy.leaves_list(Z) if n > 1 else [0])
    if n > 1:
        assert hierarchy.dendrogram(Z, no_plot=True)["leaves"] == order.tolist()


@given(Z=linkages(), data=st.data())
def test_labels_of_nodes(Z: Array, data: Any) -> None:
    n = len(Z) + 1
    labels = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n)))
    for points, label in zip(clusters(Z), tree.node_labels(Z, labels).tolist(), strict=True):
        there = {int(labels[o]) for o in points} - {-1}
        assert label == (-1 if not there else there.pop() if len(there) == 1 else tree.SEVERAL)


# ------------------------------------------------------------------------------------------------------------------ top
@given(Z=linkages(), data=st.data())
def test_top_of_the_tree(Z: Array, data: Any) -> None:
    n, found = len(Z) + 1, clusters(Z)
    p, least = data.draw(st.integers(1, n)), data.draw(st.integers(1, min(n, 4)))
    merges = [n + row for row in forks(Z, least)]
    merges = merges[len(merges) + 1 - p :] if p <= len(merges) else merges
    top = tree.condense(Z, p, least)
    k = len(merges) + 1
    assert k <= p
    assert top.nodes[k:].tolist() == merges
    tree.check_linkage(top.linkage)
    assert top.linkage.shape == (k - 1, 4)
    assert top.linkage[:, 2].tolist() == [Z[node - n, 2] for node in merges]
    assert top.sizes.tolist() == [len(found[node]) for node in top.nodes]
    assert min(top.sizes) >= least
    leaves = [found[node] for node in top.nodes[:k]]
    assert leaves == sorted(leaves, key=min)
    noise = [found[node] for node in top.noise]
    assert max(map(len, noise), default=0) < least
    everything = [*leaves, *noise]
    assert sorted(point for points in everything for point in points) == sorted(found[-1])
    for numbers, node in zip(clusters(top.linkage), top.nodes, strict=True):  # a merge holds its leaves, and noise
        assert {number for number, leaf in enumerate(leaves) if leaf <= found[node]} == numbers
    for node, branch, height in zip(top.noise, top.branch, top.noise_heights, strict=True):
        (row,) = (row for row in range(n - 1) if node in Z[row, :2])
        assert height == Z[row, 2]
        assert found[n + row] > found[top.nodes[branch]]
        assert not any(found[top.nodes[branch]] < found[other] <= found[n + row] for other in merges)


@given(Z=linkages(least=3, inversions=False), data=st.data())
def test_top_has_the_order_of_scipy(Z: Array, data: Any) -> None:
    p = data.draw(st.integers(2, len(Z)))
    top = tree.condense(Z, p)
    drawn = hierarchy.dendrogram(Z, p, "lastp", no_plot=True)["leaves"]
    assert top.nodes[tree.leaf_order(top.linkage)].tolist() == drawn


# ------------------------------------------------------------------------------------------------------ odd, and large
def test_one_point() -> None:
    Z = np.empty((0, 4))
    assert tree.is_monotone(Z)
    for how in ({"n_clusters": 1}, {"height": 0.0}, {"height": 1.0, "min_size": 0.5}):
        assert tree.cut(Z, **how).tolist() == [0]
    assert tree.cut(Z, height=0.0, min_size=2).tolist() == [-1]
    assert tree.condense(Z, 1).linkage.shape == (0, 4)
    with pytest.raises(ValueError, match="at most 0 clusters of at least 2 points"):
        tree.cut(Z, n_clusters=1, min_size=2)


@pytest.mark.parametrize("rising", [True, False])
def test_a_long_chain(rising: bool) -> None:
    n = 200_000
    Z = chain(n, rising=rising)
    assert tree.is_monotone(Z) is rising
    heights = tree.point_heights(Z)
    assert heights[0] == heights[1] == Z[:, 2].sum()
    assert heights[-1] == Z[-1, 2]
    assert tree.cut(Z, n_clusters=3)[[0, n - 3, n - 2, n - 1]].tolist() == [0, 0, 1, 2]
    assert tree.cut(Z, height=2.0).max() == (n - 3 if rising else n - 1)
    assert tree.cut(Z, n_clusters=1, min_size=n).max() == 0
    order = tree.leaf_order(Z)
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    assert order[0] == n - 1
    np.testing.assert_array_equal(tree.members(Z, 2 * n - 2), np.arange(n))
    assert tree.condense(Z, 5).sizes.tolist() == [n - 4, 1, 1, 1, 1, *range(n - 3, n + 1)]
    assert len(tree.condense(Z, 5, 2).noise) == 0
    assert tree.node_labels(Z, np.zeros(n, int)).max() == 0


# --------------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({(1, 2): math.nan}, "row 1 is .* height must be finite"),
        ({(2, 2): -1.0}, "row 2 is .* height must be finite and not negative"),
        ({(1, 0): 6.0}, r"row 1 is .* points, 0 to 3, or 4 \+ an earlier row"),
        ({(1, 0): 0.5}, "row 1 is .* points"),
        ({(1, 0): 0.0}, "row 0 is .* merged in another row"),
        ({(0, 1): 0.0}, "row 0 is .* or twice"),
        ({(2, 3): 5.0}, "row 2 is .* sum of the sizes"),
    ],
)
def test_what_is_no_linkage(change: dict[tuple[int, int], float], message: str) -> None:
    Z = np.array([[0, 1, 1.0, 2], [2, 3, 2.0, 2], [4, 5, 1.5, 4]])
    assert tree.check_linkage(Z) is Z
    assert tree.check_linkage(Z.tolist()).dtype == np.float64
    for place, value in change.items():
        Z[place] = value
    for call in (tree.check_linkage, tree.point_heights, tree.leaf_order, tree.is_monotone):
        with pytest.raises(ValueError, match=message):
            call(Z)
