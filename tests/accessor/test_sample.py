"""``ds.clust.hca(sample=...)``: the hierarchy of a sample, and labels of all cells."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import xarray as xr

from daskclust import MahalanobisHCA, datasets

CELLS = datasets.cytometry(2000, 4, rng=0)
CUT = {"n_clusters": 4, "min_size": 10}


def wanted(sample: int, seed: int, apriori: np.ndarray | None = None) -> tuple[np.ndarray, MahalanobisHCA, np.ndarray]:
    """Return labels of all cells as the estimator gives them, the estimator, and the cells of the sample."""
    X = CELLS["X"].values
    chosen = np.sort(np.random.default_rng(seed).choice(len(X), sample, replace=False, shuffle=False))
    fitted = MahalanobisHCA(30).fit(X[chosen], apriori=None if apriori is None else apriori[chosen])
    labels = fitted.predict(X, **CUT)
    labels[chosen] = fitted.labels(**CUT)
    return labels, fitted, chosen


@pytest.mark.parametrize("with_apriori", [False, True])
@pytest.mark.parametrize("chunk", [None, 300])
def test_sample_and_other_cells(with_apriori: bool, chunk: int | None) -> None:
    apriori = np.arange(2000) // 50
    cells = CELLS.assign(apriori=("cell", apriori)) if with_apriori else CELLS
    labels, fitted, chosen = wanted(400, 5, apriori if with_apriori else None)
    given = cells if chunk is None else cells.chunk(cell=chunk)
    found = given.clust.hca(30, **CUT, sample=400, rng=5)
    assert (found.chunks == {}) == (chunk is None)
    if chunk is not None:
        assert found["label"].chunks == found["point_height"].chunks == ((300,) * 6 + (200,),)
        assert all(each.chunks for name, each in found.data_vars.items() if name != "population")
    np.testing.assert_array_equal(found["label"], labels)
    assert found["label"].dtype == np.int64
    np.testing.assert_array_equal(found["linkage"], fitted.linkage_)
    heights = found["point_height"].values
    np.testing.assert_array_equal(np.flatnonzero(~np.isnan(heights)), chosen)
    np.testing.assert_array_equal(heights[chosen], fitted.point_heights_)
    assert "sample=400" in found.attrs["hca"]
    xr.testing.assert_identical(found["X"].compute(), CELLS["X"])


def test_a_second_call_replaces_the_first() -> None:
    first = CELLS.clust.hca(30, **CUT, sample=300)
    again = first.clust.hca(30, **CUT, sample=200)
    xr.testing.assert_identical(again, CELLS.clust.hca(30, **CUT, sample=200))
    assert first["label"].attrs["min_size"] == 10


def test_a_sample_of_all_is_all() -> None:
    found = CELLS.isel(cell=slice(300)).clust.hca(30, sample=10**6)
    plain = CELLS.isel(cell=slice(300)).clust.hca(30)
    xr.testing.assert_identical(found.drop_attrs(), plain.drop_attrs())


def test_chunks_of_the_sample_are_read_before_those_of_the_others() -> None:
    """No chunk is both sampled and labelled in one graph: it would be kept until the sample is clustered."""
    read = []

    def block(values: np.ndarray) -> np.ndarray:
        read.append(len(values))
        return values

    X = da.map_blocks(block, da.from_array(CELLS["X"].values, chunks=(500, -1)), dtype=float, meta=np.empty((0, 0)))
    cells = CELLS[["channel"]].assign(X=(("cell", "channel"), X))
    found = cells.clust.hca(30, **CUT, sample=100)
    assert read == [500] * 4
    found["label"].compute(scheduler="synchronous")
    assert read == [500] * 8


@pytest.mark.parametrize("sample", [0, -1, 1.5, "x"])
def test_wrong_samples(sample: object) -> None:
    with pytest.raises((ValueError, TypeError), match="sample must be"):
        CELLS.clust.hca(30, sample=sample)
