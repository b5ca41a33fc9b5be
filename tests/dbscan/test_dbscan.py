"""DBSCAN and friends-of-friends against programs that no one here wrote: scikit-learn and its tests, SciPy, halos."""

from __future__ import annotations

import inspect
import itertools
import re
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import sklearn.cluster._dbscan as their_module
import sklearn.cluster.tests.test_dbscan as their_tests
from cases.dbscan import as_sklearn, assert_answer
from cases.lanes import every_dtype, quick_first
from oracles.brute import Groups
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from sklearn.cluster import DBSCAN as Theirs  # noqa: N811

from daskclust import DBSCAN, FriendsOfFriends


# ------------------------------------------------------------------------------------------- scikit-learn's own tests
class Stand(DBSCAN):
    """Our class in the place of scikit-learn's; what it must refuse, it refuses with a clear error, and they do it."""

    refused: list[str] = []  # noqa: RUF012 (of one test)

    def fit(self, X, y=None, sample_weight=None):
        words = self._refusal(X)
        if words is None:
            return super().fit(X, sample_weight=sample_weight)
        with pytest.raises((ValueError, TypeError), match=words):
            super().fit(X, sample_weight=sample_weight)
        Stand.refused.append(words)
        parameters = {name: value for name, value in self.get_params().items() if name not in ("boxsize", "units")}
        theirs = Theirs(**parameters).fit(X, sample_weight=sample_weight)
        self._X, self.labels_ = X, theirs.labels_
        self.is_core_ = np.isin(np.arange(X.shape[0]), theirs.core_sample_indices_)
        return self

    def _refusal(self, X):
        if self.metric not in ("euclidean", "minkowski"):
            return (
                re.escape(f"metric must be 'euclidean' or 'haversine', got {self.metric!r}")
                + ".*sklearn.cluster.DBSCAN"
            )
        if self.metric_params or self.p not in (None, 2):
            given = f"p=2, got p={self.p!r} and metric_params={self.metric_params!r}"
            return re.escape(given) + ".*sklearn.cluster.DBSCAN"
        return r"(?s)[Ss]parse.*dense" if sparse.issparse(X) else None


# Tests that ask for other metrics or sparse matrices, in part or as a whole; all others are ours alone.
ASK_FOR_OTHERS = {
    "test_dbscan_similarity": "metric",
    "test_dbscan_sparse": "parse",
    "test_dbscan_sparse_precomputed": "metric",
    "test_dbscan_sparse_precomputed_different_eps": "metric",
    "test_dbscan_input_not_modified": "metric|parse",
    "test_dbscan_input_not_modified_precomputed_sparse_nodiag": "metric",
    "test_dbscan_no_core_samples": "parse",
    "test_dbscan_callable": "metric",
    "test_dbscan_metric_params": "p=|metric",
    "test_dbscan_balltree": "metric|p=",
    "test_weighted_dbscan": "metric",
    "test_dbscan_precomputed_metric_with_degenerate_input_arrays": "metric",
    "test_dbscan_precomputed_metric_with_initial_rows_zero": "metric",
    "test_dbscan_no_warning_unsorted_precomputed": "metric",
    "test_dbscan_no_warning_presorted_precomputed": "metric",
}


def their_calls():
    """Yield the name and arguments of each of scikit-learn's tests of DBSCAN, its parametrizations taken apart."""
    for name, function in inspect.getmembers(their_tests, inspect.isfunction):
        if not name.startswith("test_"):
            continue
        choices = []
        for mark in getattr(function, "pytestmark", []):
            assert mark.name == "parametrize"
            choices.append([{mark.args[0]: value} for value in mark.args[1]])
        if "global_random_seed" in inspect.signature(function).parameters:
            choices.append([{"global_random_seed": seed} for seed in (0, 42)])
        for chosen in itertools.product(*choices):
            yield name, {key: value for choice in chosen for key, value in choice.items()}


CALLS = list(their_calls())
assert {name for name, _ in CALLS} >= {"test_dbscan_feature", "test_weighted_dbscan", "test_boundaries"}


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_their_own_tests(monkeypatch, name, arguments):
    monkeypatch.setattr(their_tests, "DBSCAN", Stand)
    monkeypatch.setattr(their_module, "DBSCAN", Stand)
    monkeypatch.setattr(Stand, "refused", [])
    getattr(their_tests, name)(**arguments)
    if name not in ASK_FOR_OTHERS or (arguments.get("metric") == "minkowski" and not arguments["csr_container"]):
        assert not Stand.refused
    else:
        assert Stand.refused
        assert all(re.search(ASK_FOR_OTHERS[name], words) for words in Stand.refused)


# ------------------------------------------------------------------------------------------------ scikit-learn's labels
def assert_as_sklearn(X, eps, min_samples, weight=None):
    ours = DBSCAN(eps, min_samples=min_samples).fit(X, sample_weight=weight)
    wanted = as_sklearn(X, eps, min_samples, weight)
    assert_answer(ours, wanted)
    np.testing.assert_array_equal(ours.core_sample_indices_, np.flatnonzero(wanted.is_core))
    np.testing.assert_array_equal(ours.components_, X[wanted.is_core])
    return ours


@pytest.mark.parametrize(
    "kind", ["uniform", pytest.param("float32", marks=pytest.mark.slow), "twice", "whole", "tenths", "clumps"]
)
@pytest.mark.parametrize("d", [2, 3, *(pytest.param(d, marks=pytest.mark.slow) for d in (1, 4, 5, 6))])
def test_random_sets(kind, d):
    """Many sets of each kind, with and without weights; whole numbers and tenths have many pairs at exactly eps."""
    rng = np.random.default_rng([d, len(kind)])
    found = 0
    for _ in range(25):
        n, min_samples = int(rng.integers(1, 400)), int(rng.choice([1, 2, 3, 4, 5, 8, 20]))
        eps = float(rng.choice([0.05, 0.1, 0.3, 1.0, 2.0, 5.0])) if kind != "tenths" else int(rng.integers(1, 9)) / 10
        X = rng.random((n, d))
        if kind == "whole":
            X = rng.integers(0, max(2, round(300 ** (1 / d))), (n, d)).astype(float)
        elif kind == "tenths":
            X = rng.integers(0, max(3, round(600 ** (1 / d))), (n, d)) * 0.1
        elif kind == "twice":
            X = np.repeat(X, 2, axis=0)[:n]
        elif kind == "clumps":
            X = X[rng.integers(0, max(1, n // 20), n)] * 10 + rng.normal(0, 0.2, (n, d))
        elif kind == "float32":
            X = X.astype(np.float32)
        weight = rng.choice([0.25, 0.5, 1.0, 2.0, -0.5, 3.0], n) if rng.random() < 0.3 else None
        found += assert_as_sklearn(X, eps, min_samples, weight).n_clusters_
    assert found > 5


@pytest.mark.parametrize("axes", [3, 4])
@every_dtype
def test_one_answer_at_exactly_eps_where_scikit_learn_has_two(axes, dtype):
    """Squares decide, ``np.sqrt(3) ** 2 < 3``; their trees take nodes by square roots, and single points by squares."""
    eps = np.sqrt(3.0)
    assert eps**2 < 3 < np.nextafter(eps, 2) ** 2
    X = np.zeros((3, axes), dtype)
    X[1, :3], X[2, 2] = 1, 9
    by_node = Theirs(eps=eps, min_samples=2, algorithm="kd_tree", leaf_size=1).fit(X).labels_
    by_point = Theirs(eps=eps, min_samples=2, algorithm="kd_tree", leaf_size=30).fit(X).labels_
    np.testing.assert_array_equal(by_node, [0, 0, -1])
    np.testing.assert_array_equal(by_point, [-1, -1, -1])
    for points in (X, da.from_array(X, chunks=(1, axes))):
        np.testing.assert_array_equal(DBSCAN(eps, min_samples=2).fit(points).labels_, by_point)
        np.testing.assert_array_equal(DBSCAN(np.nextafter(eps, 2), min_samples=2).fit(points).labels_, by_node)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "dtype", "eps"), [(2, np.float64, 0.004), (3, np.float32, 0.02)])
def test_two_hundred_thousand_points(d, dtype, eps):
    rng = np.random.default_rng(d)
    X = np.concatenate([rng.random((150_000, d)), 0.5 + 0.05 * rng.normal(0, 1, (50_000, d))]).astype(dtype)
    X = X[rng.permutation(len(X))]
    ours = assert_as_sklearn(X, eps, 8)
    assert ours.n_clusters_ > 50
    assert (ours.labels_ == -1).sum() > 1000
    chunked = DBSCAN(eps, min_samples=8).fit(da.from_array(X, chunks=(50_000, d)))
    np.testing.assert_array_equal(chunked.labels_.compute(), ours.labels_)


def test_weights_in_a_large_set():
    rng = np.random.default_rng(4)
    X, weight = rng.random((20_000, 2)), rng.integers(-4, 12, 20_000) / 4
    assert assert_as_sklearn(X, 0.01, 9, weight).n_clusters_ > 50


# the points and scikit-learn's labels of them, stored: NAME_EPS_MINSAMPLES.csv.gz
STORED = sorted((Path(__file__).parents[1] / "data" / "scikit_learn").glob("*.csv.gz"))
assert len(STORED) == 5


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.name)
def test_stored_answers(path):
    table = np.genfromtxt(path, delimiter=",", names=True)
    X = np.stack([table[name] for name in table.dtype.names if name.startswith("x")], axis=1)
    weight = table["weight"] if "weight" in table.dtype.names else None
    wanted = Groups(table["label"].astype(np.int64), table["is_core"] == 1)
    eps, min_samples = map(float, path.name.removesuffix(".csv.gz").split("_")[1:])
    min_samples = int(min_samples)
    assert_answer(DBSCAN(eps, min_samples=min_samples).fit(X, sample_weight=weight), wanted)
    chunked = None if weight is None else da.from_array(weight, chunks=150)
    points = da.from_array(X, chunks=(150, X.shape[1]))
    assert_answer(DBSCAN(eps, min_samples=min_samples).fit(points, sample_weight=chunked), wanted)
    if min_samples == 2:
        assert_answer(FriendsOfFriends(eps, min_members=2).fit(X), wanted)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("min_samples", [4, 10])
def test_border_points_beside_the_faces_of_a_box(d, min_samples):
    """Some blocks lie inside the box, others beside a face, and clusters in both."""
    rng = np.random.default_rng(min_samples)
    for side in (9.0, 12.0, 20.0):
        X = rng.uniform(0, side, (900, d))
        centers = rng.uniform(0, side, (8, d)) * (rng.random((8, d)) < 0.5)  # half of the coordinates on a face
        X[:300] = (centers[rng.integers(0, 8, 300)] + rng.normal(0, 0.7, (300, d))) % side
        step = np.abs(X[:, None] - X)
        away = np.sqrt((np.minimum(step, side - step) ** 2).sum(axis=2))
        theirs = Theirs(eps=1.0, min_samples=min_samples, metric="precomputed").fit(away)
        ours = DBSCAN(1.0, min_samples=min_samples, boxsize=side).fit(X)
        np.testing.assert_array_equal(ours.labels_, theirs.labels_)
        np.testing.assert_array_equal(ours.core_sample_indices_, theirs.core_sample_indices_)


# ------------------------------------------------------------------------------------------------------ a real snapshot
@pytest.fixture(scope="module")
def halos(shared_data):
    """Return the positions of an N-body snapshot, multiples of 1/65536 in the unit box: no distance is rounded."""
    raw = np.fromfile(shared_data / "halos" / "cosmo32768.dat", np.uint16)
    return raw.reshape(-1, 3) / 65536


def by_tree(X, length, boxsize=None):
    """Return the groups of friends, as SciPy finds them, numbered by their first members."""
    pairs = cKDTree(X, boxsize=boxsize).query_pairs(length, output_type="ndarray")
    ones = np.ones(len(pairs), bool)
    graph = sparse.coo_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(len(X), len(X)))
    _, label = connected_components(graph, directed=False)
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


OPEN = {0.1: 2, 0.01: 9600, 0.001: 27824, 0.05: 461, 0.005: 14497}  # groups, as another program counts them


@pytest.mark.parametrize(
    ("length", "boxsize"),
    quick_first([(0.1, None), (0.01, None), (0.001, None), (0.01, 1.0), (0.05, None), (0.005, None), (0.02, 1.0)], 4),
)
def test_groups_of_a_snapshot(halos, length, boxsize):
    """Open, and in the periodic box (data/ORIGIN.md)."""
    friends = FriendsOfFriends(length, min_members=1, boxsize=boxsize)
    labels = friends.fit(halos).labels_
    assert labels.max() + 1 == friends.n_clusters_
    assert friends.is_core_.all()
    if boxsize is None:
        assert friends.n_clusters_ == OPEN[length]
    if length < 0.1:  # else SciPy's pairs are too many
        np.testing.assert_array_equal(labels, by_tree(halos, length, boxsize))
        np.testing.assert_array_equal(friends.fit(halos.astype(np.float32)).labels_, labels)
    chunked = friends.fit(da.from_array(halos, chunks=(8000, 3)))
    np.testing.assert_array_equal(chunked.labels_.compute(), labels)
    assert chunked.n_clusters_.compute() == labels.max() + 1


@pytest.mark.parametrize("min_members", [2, 100])
def test_small_groups_are_noise(halos, min_members):
    everything = by_tree(halos, 0.01, boxsize=1.0)
    size = np.bincount(everything)[everything]
    wanted = np.where(size >= min_members, everything, -1)
    wanted = np.unique(wanted, return_inverse=True)[1] - 1  # the groups that are left, in the same order
    groups = FriendsOfFriends(0.01, min_members=min_members, boxsize=1.0).fit(halos)
    np.testing.assert_array_equal(groups.labels_, wanted)
    np.testing.assert_array_equal(groups.is_core_, wanted >= 0)


@pytest.mark.parametrize("min_samples", [3, 10])
def test_dense_places_of_a_snapshot(halos, min_samples):
    ours = DBSCAN(0.008, min_samples=min_samples)
    wanted = as_sklearn(halos, 0.008, min_samples)
    assert_answer(ours.fit(halos), wanted)
    assert_answer(ours.fit(da.from_array(halos, chunks=(4000, 3))), wanted)
