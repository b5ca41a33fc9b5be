"""ds.clust.hca: one call to the estimator, labels beside the cells and the hierarchy beside both."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes

from daskclust import MahalanobisHCA
from daskclust.datasets import apriori_gaussians, cytometry

RESULTS = ["label", "point_height", "linkage", "is_apriori"]


@pytest.fixture(scope="module")
def cells() -> xr.Dataset:
    """Return 200 cells."""
    return cytometry(200, 3, rng=0)


@pytest.fixture(scope="module")
def grouped() -> xr.Dataset:
    """Return 180 cells in 6 apriori clusters and some in none, in random order."""
    ds = apriori_gaussians(6, 30, channels=3, shuffle=True, rng=1)
    return ds.assign(apriori=ds["apriori"].where(ds["apriori"] > 0, -1))


# ------------------------------------------------------------------------------------------------------------ estimator
def test_cuts(cells: xr.Dataset) -> None:
    estimator = MahalanobisHCA().fit(cells["X"].values)
    np.testing.assert_array_equal(cells.clust.hca()["label"], estimator.labels_)
    height = float(np.median(estimator.linkage_[:, 2]))
    low = cells.clust.hca(height=height, min_size=0.02)
    np.testing.assert_array_equal(low["label"], estimator.labels(height=height, min_size=0.02))
    assert low["label"].min() == -1
    assert low["label"].attrs["height"] == height


def test_more_clusters_than_there_can_be_are_refused_before_the_work(cells: xr.Dataset) -> None:
    for cut, most in (
        ({"n_clusters": 201}, "200 clusters"),
        ({"n_clusters": 3, "min_size": 80}, "2 clusters of at least"),
    ):
        with raise_if_dask_computes(), pytest.raises(ValueError, match=f"the 200 points have at most {most}"):
            cells.chunk(cell=50).clust.hca(**cut)


@pytest.mark.parametrize("names", [{"cell": "merge"}, {"channel": "merge"}, {"channel": "linkage_column"}])
def test_dimensions_of_the_hierarchy_are_its_own(cells: xr.Dataset, names: dict[str, str]) -> None:
    (dim,) = names.values()
    with pytest.raises(ValueError, match=rf"have a dimension '{dim}', and so has the Dataset; ds\.rename\({dim}="):
        cells.rename(names).clust.hca()


def test_some_cells_of_an_earlier_result(cells: xr.Dataset) -> None:
    some = slice(50, None)
    wanted = cells.isel(cell=some).clust.hca(sample=40)
    xr.testing.assert_identical(cells.clust.hca(sample=40).isel(cell=some).clust.hca(sample=40), wanted)


def test_apriori_clusters(grouped: xr.Dataset) -> None:
    X, labels = grouped["X"].values, grouped["apriori"].values
    for order in ("height", "groups"):
        expected = MahalanobisHCA(30, order=order).fit(X, apriori=labels)
        for apriori in (..., "apriori", grouped["apriori"], labels):
            result = grouped.clust.hca(30, order=order, apriori=apriori)
            np.testing.assert_array_equal(result["linkage"], expected.linkage_)
            assert int(result["is_apriori"].sum()) == expected.n_apriori_merges_ == 5 * 29
            assert result["is_apriori"].values[: 5 * 29].all()
    without = grouped.clust.hca(30, apriori=None)
    np.testing.assert_array_equal(without["linkage"], MahalanobisHCA(30).fit(X).linkage_)
    every = grouped.clust.hca(30, noise_label=7)
    assert int(every["is_apriori"].sum()) == 6 * 29
    both = np.stack([labels, np.where(labels < 0, -1, labels // 3)], axis=1)
    levels = grouped.assign(levels=(("cell", "level"), both))
    nested = MahalanobisHCA(30).fit(X, apriori=levels["levels"].values)
    np.testing.assert_array_equal(levels.clust.hca(30, apriori="levels")["linkage"], nested.linkage_)
    for asked in ("kmeans", 9):
        made = MahalanobisHCA(30).fit(X, apriori=asked)
        np.testing.assert_array_equal(grouped.clust.hca(30, apriori=asked)["linkage"], made.linkage_)


def test_coordinates_that_are_variables(cells: xr.Dataset) -> None:
    X = cells["X"].values
    flat = xr.Dataset({name: ("point", X[:, k]) for k, name in enumerate("xyz")})
    expected = MahalanobisHCA().fit(X).linkage_
    np.testing.assert_array_equal(flat.clust.hca()["linkage"], expected)
    assert flat.clust.hca()["label"].dims == ("point",)
    two = flat.clust.hca(coordinates=("z", "y"))
    np.testing.assert_array_equal(two["linkage"], MahalanobisHCA().fit(X[:, [2, 1]]).linkage_)
    turned = cells.assign(X=cells["X"].transpose())
    np.testing.assert_array_equal(turned.clust.hca()["linkage"], expected)
    assert turned.clust.hca()["label"].dims == ("cell",)


# -------------------------------------------------------------------------------------------------------------- Dataset
# ----------------------------------------------------------------------------------------------------------------- dask
def test_dask_with_apriori_clusters(grouped: xr.Dataset) -> None:
    """Lazy but for the sizes of apriori clusters, where chunks do not hold whole ones."""
    lazy, expected = grouped.chunk(cell=50, channel=2), grouped.clust.hca(30, n_clusters=5)
    for ds in (lazy, grouped.assign(apriori=lazy["apriori"]), grouped.assign(X=lazy["X"])):
        result = ds.clust.hca(30, n_clusters=5)
        assert result["label"].chunks == result["point_height"].chunks == (lazy.chunks["cell"],)
        assert result["linkage"].chunks == ((179,), (4,))
        xr.testing.assert_identical(result.compute(), expected)
    in_order = grouped.sortby("apriori")
    with raise_if_dask_computes():
        chunks = in_order.chunk(cell=30).clust.hca(apriori="apriori", noise_label=-1, partition="chunks")
    xr.testing.assert_identical(chunks.compute(), in_order.clust.hca())


# --------------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize("chunked", [False, True])
def test_few_cells(cells: xr.Dataset, chunked: bool) -> None:
    few = [cells.isel(cell=slice(0, n)) for n in range(3)]
    none, one, two = ((ds.chunk() if chunked else ds).clust.hca().compute() for ds in few)
    assert [none[name].shape for name in RESULTS] == [(0,), (0,), (0, 4), (0,)]
    assert [one[name].shape for name in RESULTS] == [(1,), (1,), (0, 4), (0,)]
    assert two["label"].values.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_clusters": 2, "height": 1.0}, "got n_clusters=2 and height=1.0; give one of them"),
        ({"apriori": "group"}, r"apriori names the variable 'group', which is not along cell; there are \["),
        ({"apriori": "channel"}, "apriori names the variable 'channel'"),
    ],
)
def test_what_is_wrong(cells: xr.Dataset, arguments: dict[str, object], message: str) -> None:
    """It is told before anything is computed."""
    with raise_if_dask_computes(), pytest.raises(ValueError, match=message):
        cells.chunk(cell=60).clust.hca(**arguments)


def test_what_has_no_cells(cells: xr.Dataset) -> None:
    with pytest.raises(ValueError, match=r"X must have the dimensions \(cell, channel\), got \('cell',\)"):
        cells.assign(X=cells["X"][:, 0]).clust.hca()
