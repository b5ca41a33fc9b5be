"""ds.clust.dbscan and ds.clust.fof: one call to the estimators, results beside the data."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes

from daskclust import DBSCAN, FriendsOfFriends, datasets
from daskclust.core.space.partition import Partition
from daskclust.io import linking_length


@pytest.fixture
def box() -> xr.Dataset:
    """Return 2000 particles of a periodic box."""
    return datasets.cosmology_box(2000, rng=0)


@pytest.fixture
def flat() -> xr.Dataset:
    """Return 1000 points of a plane."""
    return datasets.seed_spreader(1000, 2, n_clusters=3.0, noise=0.05, rng=0)


def fitted(ds: xr.Dataset, estimator: DBSCAN, names: str = "xyz", **options: Any) -> DBSCAN:
    """Return the estimator, fitted on an array."""
    return estimator.fit(np.stack([ds[name].values for name in names], axis=1), **options)


# ----------------------------------------------------------------------------------------------------------- estimators
def test_the_box_is_that_of_the_data_set(box: xr.Dataset) -> None:
    side, bare = box.attrs["boxsize"], box.drop_attrs(deep=False)
    periodic = fitted(box, FriendsOfFriends(0.25, boxsize=side)).labels_
    is_open = fitted(box, FriendsOfFriends(0.25)).labels_
    assert not np.array_equal(periodic, is_open)
    for result in (
        box.clust.fof(0.25),
        bare.clust.fof(0.25, boxsize=side),
        box.assign_attrs(boxsize=np.array([side] * 3)).clust.fof(0.25),
    ):
        np.testing.assert_array_equal(result["label"], periodic)
    for result in (box.clust.fof(0.25, boxsize=None), bare.clust.fof(0.25)):
        np.testing.assert_array_equal(result["label"], is_open)


def test_sides_that_differ(box: xr.Dataset) -> None:
    side = box.attrs["boxsize"]
    sides = [side, 2 * side, None]
    of_attrs = box.assign_attrs(boxsize=[side, 2 * side, 0.0])  # 0: open, as tables and codes write it
    swapped = of_attrs.clust.dbscan(0.3, coordinates=("z", "x", "y"))
    assert "boxsize=(None, " in swapped.attrs["dbscan"]
    for result in (box.clust.dbscan(0.3, boxsize=sides), of_attrs.clust.dbscan(0.3), swapped):
        np.testing.assert_array_equal(result["label"], fitted(box, DBSCAN(0.3, boxsize=sides)).labels_)


def test_coordinates_other_than_positions_are_open(box: xr.Dataset) -> None:
    phase = ("x", "y", "z", "vx")
    with pytest.raises(ValueError, match=r"x has the unit 'Mpc/h' and vx 'km/s', which .*; scale one to the unit of"):
        box.clust.dbscan(1.0, coordinates=phase)
    box["vx"].attrs["units"] = box["vy"].attrs["units"] = "Mpc/h"  # what they move in some time
    result = box.clust.dbscan(1.0, min_samples=3, coordinates=phase)
    expected = fitted(box, DBSCAN(1.0, min_samples=3, boxsize=[box.attrs["boxsize"]] * 3 + [None]), phase)
    np.testing.assert_array_equal(result["label"], expected.labels_)
    assert "boxsize=None" in box.clust.dbscan(20.0, coordinates=("vx", "vy")).attrs["dbscan"]


def test_weights(box: xr.Dataset) -> None:
    box["weight"] = "particle", np.linspace(0.0, 3.0, 2000)
    estimator = fitted(box, DBSCAN(0.3, boxsize=box.attrs["boxsize"]), sample_weight=box["weight"].values)
    np.testing.assert_array_equal(box.clust.dbscan(0.3, weight="weight")["label"], estimator.labels_)
    assert not np.array_equal(box.clust.dbscan(0.3)["label"], estimator.labels_)


def test_attributes(box: xr.Dataset) -> None:
    result = box.clust.dbscan(0.25, min_samples=4, boxsize=[20, None, 30.0], weight="mass")
    expected = "eps=0.25 Mpc/h, min_samples=4, boxsize=(20, None, 30) Mpc/h, coordinates=('x', 'y', 'z'), weight='mass'"
    assert result.attrs["dbscan"] == expected
    numbers = {"eps": 0.25, "eps_units": "Mpc/h", "min_samples": 4}
    assert result["label"].attrs == {"long_name": "cluster number, noise -1", "units": "1", **numbers}
    result = box.clust.fof(b=0.2, min_members=20)
    side = f"{box.attrs['boxsize']:g}"
    assert result.attrs["fof"] == (
        f"linking_length=0.2 Mpc/h, b=0.2, min_members=20, boxsize={side} Mpc/h, coordinates=('x', 'y', 'z')"
    )
    assert result["label"].attrs["linking_length"] == linking_length(box, 0.2)
    assert result["label"].attrs["min_members"] == 20
    assert "b=" not in box.clust.fof(0.2, boxsize=None).attrs["fof"]
    assert "boxsize=None" in box.clust.fof(0.2, boxsize=None).attrs["fof"]


# --------------------------------------------------------------------------------------------------------------- length
def test_b_is_a_fraction_of_the_mean_separation(box: xr.Dataset) -> None:
    given = box.clust.fof(linking_length(box, 0.168))
    np.testing.assert_array_equal(box.clust.fof(b=0.168)["label"], given["label"])
    bare = box.drop_attrs(deep=False)
    np.testing.assert_array_equal(bare.clust.fof(b=0.168, boxsize=box.attrs["boxsize"])["label"], given["label"])
    flat = box.clust.fof(b=0.2, coordinates=("y", "z"))
    length = 0.2 * box.attrs["boxsize"] / np.sqrt(2000)
    assert flat["label"].attrs["linking_length"] == pytest.approx(length, rel=1e-15)


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("fof", {}, "give linking_length or b, and not both; got linking_length=None and b=None"),
        ("fof", {"b": 0.2, "boxsize": (10.0, None, 10.0)}, "needs a box that is closed along each axis"),
        ("fof", {"b": 0.2, "coordinates": ("vx", "vy")}, "fraction of the mean separation"),
        ("fof", {"b": -0.2}, "b must be finite and positive, got -0.2"),
        ("fof", {"b": 20.0}, r"linking length of at most half of the box, got b=20\.0: "),
    ],
)
def test_what_is_wrong(box: xr.Dataset, method: str, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(box.clust, method)(**arguments)


# ----------------------------------------------------------------------------------------------------------------- dask
def test_dask_stays_lazy(box: xr.Dataset) -> None:
    """With a partition that is given; else a sample is taken of several chunks."""
    halves = Partition(cuts=(np.array([6.0]),), period=(box.attrs["boxsize"],) * 3, halo=0.61)
    with raise_if_dask_computes():
        result = box.chunk(particle=500).clust.dbscan(0.3, partition=halves)
    xr.testing.assert_identical(result.compute(), box.clust.dbscan(0.3))


def test_the_sample_and_the_results_have_no_task_of_one_name_and_two_meanings(box: xr.Dataset) -> None:
    """A cluster that still knows of the one when it gets the other would warn."""
    graphs: list[dict[object, object]] = []

    def scheduler(graph: object, keys: object, **options: object) -> object:
        graphs.append(dict(graph.__dask_graph__() if hasattr(graph, "__dask_graph__") else graph))
        return dask.get(graphs[-1], keys, **options)

    with dask.config.set(scheduler=scheduler):
        lazy = box.chunk(particle=700)
        lazy.clust.fof(b=0.2)["label"].compute()
        lazy.clust.fof(b=0.168).compute()
        lazy.clust.dbscan(0.3)["label"].compute()
    samples, results = graphs[::2], graphs[1::2]
    assert len(samples) == len(results) == 3
    for sample in samples:
        assert any("sample" in str(key) for key in sample)
        for others in results:
            assert [key for key in sample.keys() & others.keys() if sample[key] != others[key]] == []


def test_of_one_point(box: xr.Dataset) -> None:
    one = box.isel(particle=[0])
    assert one.clust.fof(b=0.2)["label"].values.tolist() == [-1]
    assert one.clust.fof(b=0.2, min_members=1)["label"].values.tolist() == [0]
    assert one.clust.dbscan(0.2, min_samples=1)["is_core"].values.tolist() == [True]
