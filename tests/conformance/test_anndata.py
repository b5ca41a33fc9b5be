"""AnnData in, in memory and from files, and results into it, as scanpy's users have them and as files keep them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from daskclust import DBSCAN, MahalanobisHCA, datasets, io

anndata = pytest.importorskip("anndata")

CELLS = datasets.cytometry(600, 4, noise=0.05, rng=1)
X = CELLS["X"].values.astype(np.float32)
APRIORI = np.arange(len(X)) % 3


@functools.cache
def wanted() -> MahalanobisHCA:
    return MahalanobisHCA(20).fit(X, apriori=APRIORI)


def annotated(values: Any) -> Any:
    obs = pd.DataFrame({"apriori": APRIORI, "tube": ["a"] * len(X)}, index=[f"cell_{k}" for k in range(len(X))])
    return anndata.AnnData(values, obs, pd.DataFrame(index=[f"CD{k}" for k in range(X.shape[1])]))


def test_an_anndata_gives_the_answer_of_its_array(tmp_path: Path) -> None:
    adata = annotated(X)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    adata.write_zarr(tmp_path / "cells.zarr")
    on_disk = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    lazy = [anndata.experimental.read_lazy(tmp_path / f"cells.{suffix}") for suffix in ("h5ad", "zarr")]
    for each in (adata, adata[np.arange(len(X))], on_disk, *lazy):
        fitted = MahalanobisHCA(20).fit(each)
        assert isinstance(fitted.linkage_, da.Array) == isinstance(fitted.predict(each), da.Array)
        assert isinstance(fitted.linkage_, np.ndarray) == isinstance(each.X, np.ndarray)
        np.testing.assert_array_equal(np.asarray(fitted.linkage_), wanted().linkage_)
        np.testing.assert_array_equal(np.asarray(fitted.predict(each)), wanted().predict(X))
    on_disk.file.close()
    np.testing.assert_array_equal(DBSCAN(0.7).fit(adata).labels_, DBSCAN(0.7).fit(X).labels_)
    view = adata[APRIORI == 1]
    np.testing.assert_array_equal(DBSCAN(0.7).fit(view.X).labels_, DBSCAN(0.7).fit(X[APRIORI == 1]).labels_)


def test_sparse_and_missing_matrices_are_refused(tmp_path: Path) -> None:
    sparse = annotated(sp.csr_matrix(X))
    sparse.write_h5ad(tmp_path / "sparse.h5ad")
    on_disk = anndata.read_h5ad(tmp_path / "sparse.h5ad", backed="r")
    for adata in (sparse, on_disk, anndata.experimental.read_lazy(tmp_path / "sparse.h5ad")):
        with pytest.raises(TypeError, match=r"X of the AnnData is sparse, .* adata.obsm"):
            MahalanobisHCA().fit(adata)
    on_disk.file.close()
    with pytest.raises(TypeError, match="X of the AnnData is missing"):
        DBSCAN().fit(anndata.AnnData(obs=sparse.obs))


@pytest.mark.parametrize("lazily", [False, True])
def test_results_outlast_a_file(tmp_path: Path, lazily: bool) -> None:
    adata = annotated(X)
    labels = wanted().labels(n_clusters=5, min_size=30)
    assert (labels < 0).any()
    hca = MahalanobisHCA(20).fit(da.from_array(X, chunks=(250, -1)) if lazily else adata, apriori=APRIORI)
    assert io.to_anndata(adata, hca, labels=hca.labels(n_clusters=5, min_size=30)) is adata
    io.to_anndata(adata, DBSCAN(0.7).fit(adata), key_added="dbscan")
    adata.write_h5ad(tmp_path / "results.h5ad")
    found = anndata.read_h5ad(tmp_path / "results.h5ad")
    assert list(found.obs["daskclust"].cat.categories) == ["0", "1", "2", "3", "4"]
    np.testing.assert_array_equal(found.obs["daskclust"].cat.codes, labels)
    np.testing.assert_array_equal(found.uns["daskclust"]["linkage"], wanted().linkage_)
    params = found.uns["daskclust"]["params"]
    assert (params["estimator"], params["rule"], params["threshold"]) == ("MahalanobisHCA", "thesis", 20)
    assert found.uns["dbscan"]["params"]["eps"] == 0.7
    assert found.obs["daskclust"].isna().sum() == (labels < 0).sum()


@pytest.mark.parametrize("chunks", [None, {"cell": 250}])
def test_a_dataset_becomes_an_anndata(tmp_path: Path, chunks: dict[str, int] | None) -> None:
    ds = CELLS.assign_coords(detector=("channel", [f"FL{k}" for k in range(X.shape[1])]))
    ds = (
        (ds.chunk(chunks) if chunks else ds)
        .assign_attrs(transform="arcsinh", cofactor=5.0)
        .clust.hca(20, n_clusters=4, min_size=30)
    )
    adata = io.to_anndata(ds, key_added="hca")
    assert isinstance(adata.X, da.Array) == bool(chunks)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    found = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(found.X, ds["X"])
    np.testing.assert_array_equal(found.obs["hca"].cat.codes, ds["label"])
    np.testing.assert_array_equal(found.obs["population"], ds["population"])
    np.testing.assert_array_equal(found.uns["hca"]["linkage"], ds["linkage"])
    assert found.uns["hca"]["params"]["n_clusters"] == 4
    assert found.uns["cofactor"] == 5.0
    assert list(found.var["detector"]) == list(ds["detector"].values)


def test_what_has_no_results_is_refused() -> None:
    with pytest.raises(ValueError, match="no results; give a fitted estimator"):
        io.to_anndata(annotated(X))
    with pytest.raises(TypeError, match=r"must be an AnnData or an xarray\.Dataset"):
        io.to_anndata(X, wanted())
    with pytest.raises(ValueError, match="labels"):
        io.to_anndata(annotated(X), wanted(), labels=APRIORI[1:])
