"""Union-find, merges of what chunks share, and labels."""

from types import FunctionType

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import brute as oracles
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from daskclust.core.data.columns import group_name, group_number
from daskclust.core.device import operations
from daskclust.core.device.unionfind import find, flatten, start, unite, unite_edges
from daskclust.core.merge.labels import same_partition
from daskclust.core.merge.sets import NONE, Fragments, merge_fragments, smallest_connected


def united(n, edges):
    parent = np.empty(n, np.int32)
    start.run(n, parent)
    unite_edges.run(len(edges), edges[:, 0].copy(), edges[:, 1].copy(), parent)
    flatten.run(n, parent)
    return parent


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(0, 80))
@example(0, 1, 0)
def test_union_find_of_small_graphs(seed, n, m):
    edges = np.random.default_rng(seed).integers(0, n, (m, 2))
    groups = oracles.groups_of(edges, n)
    np.testing.assert_array_equal(united(n, edges.astype(np.int32)), groups)
    np.testing.assert_array_equal(smallest_connected(edges, n), groups)


def test_union_goes_on_where_loads_stay_out_of_date():
    """A cache may give a thread the parent that an element had when the thread first read it, for ever."""
    edges = np.random.default_rng(3).integers(0, 30, (200, 2))
    parent, steps = np.arange(30), []
    for a, b in edges:
        seen = np.arange(30)  # of this thread

        def load(array, i, seen=seen):
            steps.append(i)
            assert len(steps) < 10_000
            return seen[i]

        look = in_python(find, atomic_load=load)
        in_python(unite, find=look)(parent, a, b)
    flatten.run(30, parent)
    np.testing.assert_array_equal(parent, oracles.groups_of(edges, 30))


def in_python(body, **names):
    """Return a body as a plain function, some of the names that it uses bound to others."""
    own = {name: value for name, value in vars(operations).items() if name.startswith("atomic_")}
    return FunctionType(body.function.__code__, {**body.function.__globals__, **own, **names})


@pytest.mark.parametrize(("n", "m"), [(2_000_000, 2_000_000), (2000, 2_000_000), (500_000, 499_999)])
def test_union_find_on_two_threads(threads, n, m):
    threads(2)
    rng = np.random.default_rng(7)
    edges = rng.integers(0, n, (m, 2)).astype(np.int32)
    if m == n - 1:  # a path, in random order
        edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1).astype(np.int32)[rng.permutation(m)]
    parent = united(n, edges)
    graph = coo_array((np.ones(m, np.int8), (edges[:, 0], edges[:, 1])), shape=(n, n))
    many, label = connected_components(graph, directed=False)
    smallest = np.full(many, n)
    np.minimum.at(smallest, label, np.arange(n))
    np.testing.assert_array_equal(parent, smallest[label])


def fragments(seeds, links=(), groups=()):
    """Return sets of seeds, each with itself as a member, and of links, which know no seed."""
    links = np.array(links, np.int64).reshape(-1, 2)
    firsts = np.concatenate([np.array(seeds, np.int64), np.full(len(links), NONE)])
    sizes = np.repeat([1, 0], [len(seeds), len(links)])
    member_of = np.concatenate([np.arange(len(seeds)), len(seeds) + np.repeat(np.arange(len(links)), 2)])
    members = np.concatenate([np.array(seeds, np.int64), links.ravel()])
    return Fragments(firsts, sizes, members, member_of, groups=np.array(groups, np.int64))


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 5))
def test_merge_of_random_forests(seed, n, chunks):
    rng = np.random.default_rng(seed)
    parent = np.where(rng.random(n) < 0.3, np.arange(n), (rng.random(n) * np.arange(n)).astype(int))
    names = np.sort(rng.choice(10**9, n, replace=False))
    is_root, home = parent == np.arange(n), rng.integers(0, chunks, n)
    is_seed = is_root & (rng.random(n) < 0.7)
    links = np.flatnonzero(~is_root)
    sent = []
    for chunk in range(chunks):
        mine = links[home[links] == chunk]
        seeds = names[is_seed & (home == chunk)]
        sent.append(fragments(seeds, np.stack([names[mine], names[parent[mine]]], axis=1)))
    root = oracles.groups_of(np.stack([np.arange(n), parent], axis=1), n)
    number = np.where(is_seed, np.cumsum(is_seed) - 1, -1)
    for chunk, merged in enumerate(merge_fragments(sent, 1)):
        of_links = number[root[links[home[links] == chunk]]]
        np.testing.assert_array_equal(merged.numbers, np.concatenate([number[is_seed & (home == chunk)], of_links]))
        assert merged.n_clusters == is_seed.sum()


def test_groups_in_several_chunks():
    with pytest.raises(ValueError, match="layer 7 is in several chunks"):
        merge_fragments([fragments([], groups=[6, 7]), fragments([], groups=[7])], 1)
    events, layers = np.array([0, 3, -2, 2**31 - 1, -(2**31)]), np.array([5, -(2**31), 2**31 - 1, -1, 0])
    numbers = group_number(events.astype(np.int32), layers.astype(np.int32))
    assert len(np.unique(numbers)) == 5
    assert group_name(int(numbers[1])) == f"layer {-(2**31)} of event 3"
    assert group_name(int(numbers[3])) == f"layer -1 of event {2**31 - 1}"


def test_same_partition():
    assert same_partition([], [])
    assert same_partition([3, 3, -1], [0, 0, -7])
    assert not same_partition([0, 0, 1], [0, 1, 1])
    assert not same_partition([0, 1], [0, 0])
    assert not same_partition([0, 0], [0, 1])
    assert not same_partition([0], [0, 0])
    assert not same_partition([-1], [0])


@given(st.lists(st.integers(-1, 5)), st.permutations(range(6)), st.integers(0, 5))
def test_renamed_labels_are_the_same_partition(labels, names, other):
    labels = np.array(labels, int)
    renamed = np.where(labels < 0, -1, np.array(names)[labels])
    assert same_partition(labels, renamed)
    if len(labels) and labels[0] != other:
        changed = labels.copy()
        changed[0] = other
        merges = labels[0] < 0 or (labels == labels[0]).sum() > 1 or (labels == other).any()
        assert same_partition(labels, changed) == (not merges)
