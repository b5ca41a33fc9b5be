"""On dask nothing is computed before it is asked for, but for the pass that counts, and chunks change nothing."""

import dask.array as da
import numpy as np
import pytest
from cases.clue import raise_if_dask_computes
from cases.hca import Case, assert_same_results, cases, gaussians, results
from cases.lanes import row_chunks
from hypothesis import given
from hypothesis import strategies as st

from daskclust import MahalanobisHCA
from daskclust.core.run.division import pack_groups
from daskclust.core.space.partition import Chunk
from daskclust.datasets import cytometry
from daskclust.hca.plan import HcaPlan, rule_of

RNG = np.random.default_rng(3)
X = gaussians(RNG, 400, 3)
APRIORI = RNG.integers(-1, 12, 400)
LEVELS = np.stack([APRIORI, np.where(APRIORI < 0, -1, APRIORI // 4)], axis=1)
ROWS = (70, 130, 100, 100)
CASES = {
    "alone": Case(X, 0.1),
    "apriori": Case(X, 0.1, APRIORI),
    "levels": Case(X, 20, LEVELS, {"rule": "mahal"}),
    "full, by groups": Case(X[:200], 0.1, APRIORI[:200], {"distance": "full", "order": "groups"}),
}


def sorted_by_groups(case):
    """Return the case with the points of each coarsest cluster together, and chunks that hold them whole."""
    coarsest = case.apriori.reshape(len(case.X), -1)[:, -1]
    order = np.argsort(coarsest, kind="stable")
    moved = Case(case.X[order], case.threshold, case.apriori[order], case.options)
    return moved, tuple(np.unique(coarsest, return_counts=True)[1].tolist())


def test_chunks_as_they_are_compute_nothing():
    for name in ("apriori", "levels", "full, by groups"):
        case, rows = sorted_by_groups(CASES[name])
        with raise_if_dask_computes():
            lazy = case.chunked(rows, "chunks")
            single = case.chunked((len(case.X),))
        assert_same_results(lazy, case.fit())
        assert_same_results(single, case.fit())


def test_the_pass_that_counts_reads_no_coordinates():
    read = []

    def block(block_info=None):
        (start, stop), _ = block_info[None]["array-location"]
        read.append(start)
        return X[start:stop]

    points = da.map_blocks(block, chunks=(ROWS, (3,)), dtype=X.dtype, meta=np.empty((0, 0)))
    lazy = MahalanobisHCA(0.1).fit(points, apriori=da.from_array(APRIORI, chunks=(ROWS,)))
    assert read == []
    np.testing.assert_array_equal(lazy.labels_.compute(), CASES["apriori"].fit().labels_)
    assert sorted(read) == [0, 70, 200, 300]


def test_what_goes_up_holds_no_members():
    """Distances of centroids need sizes, sums and scatters of roots; full distances all points, once."""
    columns = {"X": X, "apriori": np.where(APRIORI < 0, 12, APRIORI)[:, None]}
    for distance, points in (("centroid", 13), ("full", 400)):
        plan = HcaPlan(rule_of("thesis", 40.0, distance, False))
        chunk = Chunk(columns)
        frontier = plan.local(plan.measure(chunk))[1]
        assert len(frontier.clusters.ref) == 13
        assert frontier.clusters.points.shape == (points, 3)
        assert len(frontier.history.heights) == 400 - 13


def test_packs_are_balanced_by_the_square_of_sizes():
    sizes = np.array([100, 60, 60, 50, 10, 10, 1])
    pack = pack_groups(np.arange(7), sizes, 2)
    assert pack.tolist() == [0, 1, 1, 1, 1, 1, 1]
    assert np.bincount(pack, sizes**2.0).tolist() == [10_000, 9901]
    assert set(pack_groups(np.arange(5), np.ones(5, int), 9)) == {0, 1, 2, 3, 4}


@given(st.data(), cases(most=60), st.booleans())
def test_any_chunks(data, case, is_nested):
    """Labels of any size and sign, of one level or two, ties and all: the same bits from any chunks."""
    n = len(case.X)
    if is_nested:
        fine = np.random.default_rng(n).integers(-1, 9, n)
        of_fine = np.array(data.draw(st.lists(st.integers(-3, 2), min_size=9, max_size=9)), np.int64) * 2**40 + 1
        coarse = np.where(fine < 0, data.draw(st.sampled_from([-1, 1])), of_fine[fine])
        case.apriori = np.stack([fine, coarse], axis=1)
    assert_same_results(case.chunked(data.draw(row_chunks(n))), case.fit())


@given(st.data(), cases(most=60))
def test_noise_may_have_any_label(data, case):
    if case.apriori is None:
        case.apriori = np.random.default_rng(0).integers(-1, 4, len(case.X))
    extremes = (0, -(2**63), -(2**63) + 1, 2**63 - 2)
    noise = data.draw(st.one_of(st.sampled_from(extremes), st.integers(2**62 + 1, 2**63 - 2)))
    apriori = np.where(case.apriori == noise, 3, case.apriori)  # a label that is free for noise
    wanted = Case(case.X, case.threshold, apriori, case.options).fit()
    moved = Case(case.X, case.threshold, np.where(apriori == -1, noise, apriori), case.options | {"noise_label": noise})
    assert_same_results(moved.fit(), wanted)
    assert_same_results(moved.chunked(data.draw(row_chunks(len(case.X)))), wanted)


@pytest.mark.parametrize("asked", [20, "kmeans"])
def test_kmeans(asked):
    cells = cytometry(2000, 6, rng=1)["X"].values
    fitted = MahalanobisHCA(0.05).fit(cells, apriori=asked)
    assert fitted.apriori_source_ == "MiniBatchKMeans"
    assert fitted.apriori_.shape == (2000,)
    assert len(np.unique(fitted.apriori_)) <= (20 if asked == 20 else 45)
    assert len(np.unique(fitted.apriori_)) > 15
    assert_same_results(fitted, MahalanobisHCA(0.05).fit(cells, apriori=fitted.apriori_))
    for rows in (2000, (1, 999, 0, 1000)):
        points = da.from_array(cells, chunks=(rows, 6))
        lazy = MahalanobisHCA(0.05).fit(points, apriori=asked)
        assert lazy.apriori_source_ == "MiniBatchKMeans"
        np.testing.assert_array_equal(lazy.apriori_.compute(), fitted.apriori_)
        assert_same_results(lazy, fitted)


def test_each_point_is_in_the_cluster_of_the_nearest_centre(monkeypatch):
    import sklearn.cluster

    models = []

    class Spied(sklearn.cluster.MiniBatchKMeans):
        def fit(self, *args, **options):
            models.append(self)
            return super().fit(*args, **options)

    monkeypatch.setattr(sklearn.cluster, "MiniBatchKMeans", Spied)
    cells = gaussians(np.random.default_rng(8), 3000, 5)
    fitted = MahalanobisHCA(0.05).fit(cells, apriori=30)
    (model,) = models
    np.testing.assert_array_equal(fitted.apriori_, model.predict(cells))


def test_where_apriori_clusters_are_from():
    assert MahalanobisHCA().fit(X).apriori_source_ is None
    assert MahalanobisHCA().fit(X).apriori_ is None
    assert MahalanobisHCA().fit(X, apriori=APRIORI).apriori_source_ == "given"
    one = MahalanobisHCA(0.1).fit(X, apriori=1)
    np.testing.assert_array_equal(one.linkage_, MahalanobisHCA(0.1).fit(X).linkage_)
    assert one.n_apriori_merges_ == 399
    assert results(one)["labels_"].shape == (400,)
