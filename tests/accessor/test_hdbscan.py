"""ds.clust.hdbscan and ds.clust.emst: one call to the estimators, results beside the data."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from daskclust import EMST, HDBSCAN, datasets


@pytest.fixture
def box() -> xr.Dataset:
    """Return 300 particles of a periodic box, in two events."""
    made = datasets.cosmology_box(300, smallest=20, rng=0)
    return made.assign(event=("particle", np.arange(300) % 2))


def test_results_are_those_of_the_estimator(box: xr.Dataset) -> None:
    X, side = np.stack([box[name].values for name in "xyz"], axis=1), box.attrs["boxsize"]
    for event in (None, "event"):
        found = box.clust.hdbscan(8, min_samples=3, event=event)
        wanted = HDBSCAN(8, min_samples=3, boxsize=side).fit(X, event=None if event is None else box["event"].values)
        np.testing.assert_array_equal(found["label"], wanted.labels_)
        np.testing.assert_array_equal(found["probability"], wanted.probabilities_)
        np.testing.assert_array_equal(found["outlier_score"], wanted.outlier_scores_)
    xr.testing.assert_identical(box.clust.hdbscan(8, min_samples=3), found)  # an event that is there is taken
    flat = box.clust.hdbscan(8, min_samples=3, event=None, coordinates=("x", "y"), boxsize=None)
    np.testing.assert_array_equal(flat["label"], HDBSCAN(8, min_samples=3).fit(X[:, :2]).labels_)


def test_attributes(box: xr.Dataset) -> None:
    found = box.clust.hdbscan(8, min_samples=3, cluster_selection_epsilon=0.2, event=None)
    told = found.attrs["hdbscan"]
    side = f"boxsize={box.attrs['boxsize']:g} Mpc/h"
    for words in ("min_cluster_size=8", "cluster_selection_epsilon=0.2 Mpc/h", side):
        assert words in told
    assert found["label"].attrs["min_cluster_size"] == 8
    assert found["label"].dims == found["probability"].dims == ("particle",)


def test_other_selections_are_assigned(box: xr.Dataset) -> None:
    fit = HDBSCAN(8, min_samples=3, boxsize=box.attrs["boxsize"]).fit(box.drop_vars("event"))
    leaves = box.clust.assign(fit.rethreshold(cluster_selection_method="leaf"))
    wanted = box.clust.hdbscan(8, min_samples=3, cluster_selection_method="leaf", event=None)
    np.testing.assert_array_equal(leaves["label"], wanted["label"])


def test_the_minimum_spanning_tree_is_beside_the_points(box: xr.Dataset) -> None:
    box = box.drop_vars("event")
    found, tree = box.clust.emst(), EMST().fit(box)
    np.testing.assert_array_equal(found["edge"], tree.edges_)
    np.testing.assert_array_equal(found["length"], tree.lengths_)
    assert found["length"].attrs["units"] == "Mpc/h"
    assert "boxsize=" in found.attrs["emst"]


def test_a_tree_of_some_points_of_an_earlier_one() -> None:
    ds = xr.Dataset({"x": ("hit", np.arange(9.0) ** 2)})
    some = slice(None, 5)
    found = ds.clust.emst(coordinates=("x",)).isel(hit=some).clust.emst(coordinates=("x",))
    xr.testing.assert_identical(found, ds.isel(hit=some).clust.emst(coordinates=("x",)))
    for dim in ("link", "end"):
        with pytest.raises(ValueError, match=rf"have a dimension '{dim}', and so has the Dataset; ds\.rename\({dim}="):
            ds.rename(hit=dim).clust.emst()
