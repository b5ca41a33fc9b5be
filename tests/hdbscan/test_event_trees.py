"""The trees of events are those of each event by itself, to the bit: in one search, in several, and on dask."""

import dask
import dask.array as da
import numpy as np
from cases.lanes import every_shape, row_chunks
from cases.trees import Case, cases
from hypothesis import given
from hypothesis import strategies as st

from daskclust import HDBSCAN
from daskclust.hdbscan import event_trees as module
from daskclust.hdbscan.event_trees import event_trees, joined, lazy_event_trees
from daskclust.hdbscan.spanning_tree import spanning_tree


def one_by_one(case: Case, event: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return edges, weights and core distances of a tree for each event, joined at first points; sorted by NumPy."""
    firsts = np.sort(np.unique(event, return_index=True)[1])
    edges = [np.column_stack([np.full(len(firsts) - 1, firsts[0]), firsts[1:]])]
    weights, core = [np.full(len(firsts) - 1, np.inf)], np.full(len(event), np.inf)
    for each in np.unique(event):
        (rows,) = np.nonzero(event == each)
        is_few = len(rows) < case.min_samples
        tree = spanning_tree(case.X[rows], 1 if is_few else case.min_samples, case.period, case.alpha)
        edges.append(rows[tree.edges])
        weights.append(np.full(len(rows) - 1, np.inf) if is_few else tree.weight)
        if not is_few:
            core[rows] = tree.core
    edge, weight = np.concatenate(edges), np.concatenate(weights)
    order = np.lexsort((edge[:, 1], edge[:, 0], weight))
    return edge[order], weight[order], core


def assert_same(found, wanted) -> None:
    for values, right in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(values, right, strict=True)


@every_shape
@given(st.data(), cases())
def test_trees_of_events(data, case) -> None:
    n = len(case.X)
    event = np.array(data.draw(st.lists(st.integers(-3, 8), min_size=n, max_size=n)))
    how, wanted = (case.min_samples, case.period, case.alpha), one_by_one(case, event)
    alone = module._ALONE
    try:
        module._ALONE = data.draw(st.sampled_from([1, 9, alone]))
        assert_same(joined(event_trees(case.X, event, *how)), wanted)
    finally:
        module._ALONE = alone
    rows = data.draw(row_chunks(n))
    X, column = (da.from_array(each, chunks=(rows, *each.shape[1:])) for each in (case.X, event))
    lazy = lazy_event_trees(X, column, case.min_samples, case.period or (0.0,) * X.shape[1], case.alpha, "auto")
    assert_same(dask.compute(lazy.edges, lazy.weight, lazy.core), wanted)


def test_far_points_and_numbers_of_any_integers() -> None:
    """Where events do not fit apart into float64, and where differences of numbers do not fit into int64."""
    X = np.random.default_rng(0).normal(size=(60, 2)) * 1e149
    event = np.array([-(2**63), 2**63 - 1, 0])[np.arange(60) % 3]
    assert_same(joined(event_trees(X, event, 3, (), 1.0)), one_by_one(Case(X, 3), event))


def test_results_on_dask_are_those_in_memory() -> None:
    rng = np.random.default_rng(1)
    X, event = rng.normal(size=(600, 2)), rng.integers(0, 9, 600).astype(np.uint8)
    memory = HDBSCAN(5).fit(X, event=event)
    lazy = HDBSCAN(5).fit(da.from_array(X, chunks=(170, 2)), event=event)
    assert memory.n_clusters_ > 2
    for name in ("labels_", "probabilities_", "outlier_scores_", "core_distances_", "single_linkage_tree_"):
        np.testing.assert_array_equal(getattr(lazy, name).compute(), getattr(memory, name), strict=True)
    np.testing.assert_array_equal(lazy.dbscan_clustering(0.3).compute(), memory.dbscan_clustering(0.3))


def test_condensed_tree_of_one_event_that_has_a_tree() -> None:
    """The other point is an event of its own: it leaves the root, of all, at density 0."""
    rows = HDBSCAN(2, min_samples=1).fit([[0.0], [1.0], [9.0]], event=[0, 0, 1]).condensed_tree_
    assert rows.tolist() == [(3, 2, 0.0, 1), (3, 4, 0.0, 2), (4, 0, 1.0, 1), (4, 1, 1.0, 1)]
