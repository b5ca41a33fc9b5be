"""``ds.clust.clue`` and ``ds.clust.assign``: one call to the estimator, results beside the data."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from daskclust import CLUE, datasets

RESULTS = ["label", "density", "delta", "nearest_higher", "is_seed", "is_outlier"]


@pytest.fixture
def toy() -> xr.Dataset:
    """Return 600 hits on three layers, with a coordinate."""
    return datasets.calorimeter(3, 200, size=80.0, rng=0).assign_coords(run=5)


def assert_same(a: xr.Dataset, b: xr.Dataset) -> None:
    for name in RESULTS:
        np.testing.assert_array_equal(a[name].values, b[name].values, err_msg=name)
        assert a[name].dtype == b[name].dtype, name


def test_attributes(toy: xr.Dataset) -> None:
    result = toy.clust.clue(10.0, 5.0, delta_o=8.0, wrap={"y": 200.0})
    assert result["density"].attrs["units"] == "GeV"
    assert result["delta"].attrs["units"] == "cm"
    assert (result["density"].attrs["dc"], result["density"].attrs["rhoc"]) == (10.0, 5.0)
    assert (result["delta"].attrs["delta_c"], result["delta"].attrs["delta_o"]) == (10.0, 8.0)
    assert result["delta"].attrs["periods"] == [0.0, 200.0]
    for words in ("dc=10", "rhoc=5", "delta_o=8", "wrap={'y': 200.0}", "layer='layer'", "weight='energy'"):
        assert words in result.attrs["clue"]


def test_roles_by_name(toy: xr.Dataset) -> None:
    renamed = toy.rename(layer="plane", energy="charge")
    by_name = renamed.clust.clue(10.0, 5.0, layer="plane", weight="charge")
    assert_same(by_name, toy.clust.clue(10.0, 5.0))
    without = toy.clust.clue(10.0, 5.0, layer=None)
    assert_same(without, toy.drop_vars("layer").clust.clue(10.0, 5.0))
    assert int(without["label"].max()) != int(by_name["label"].max())


def test_events_are_apart(toy: xr.Dataset) -> None:
    twice = xr.concat([toy, toy], "hit").assign(event=("hit", np.repeat([0, 1], 600)))
    once = toy.clust.clue(10.0, 5.0)
    both = twice.clust.clue(10.0, 5.0)
    np.testing.assert_array_equal(both["density"].values, np.tile(once["density"].values, 2))
    assert not np.array_equal(twice.clust.clue(10.0, 5.0, event=None)["density"].values, both["density"].values)


def test_threshold_for_each_point(toy: xr.Dataset) -> None:
    toy["limit"] = "hit", np.linspace(2.0, 9.0, 600)
    result = toy.clust.clue(10.0, "limit")
    assert_same(result, toy.clust.clue(10.0, toy["limit"].values))
    assert result["density"].attrs["rhoc_variable"] == "limit"
    assert "rhoc" not in result["density"].attrs


def test_coordinates_and_wrap() -> None:
    ds = xr.Dataset({"eta": ("hit", [1.0, 1.0, 1.0]), "phi": ("hit", [-3.1, 3.1, 0.0])})
    result = ds.clust.clue(0.2, 2.0, coordinates=("eta", "phi"), wrap={"phi": 2 * np.pi})
    np.testing.assert_array_equal(result["label"], [0, 0, -1])
    assert result["delta"].attrs["axes"] == "eta phi"
    lazy = ds.chunk(hit=1).clust.clue(0.2, 2.0, coordinates=("eta", "phi"), wrap={"phi": 2 * np.pi})
    np.testing.assert_array_equal(lazy["label"], [0, 0, -1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layer": "plane"}, "layer names the variable 'plane'"),
        ({"weight": "x"}, "weight names the variable 'x'"),
        ({"event": "run"}, "event names the variable 'run'"),
        ({"wrap": {"phi": 6.0}}, "wrap names the axis 'phi'; the axes are"),
        ({"rhoc": "limit"}, "rhoc names the variable 'limit'"),
    ],
)
def test_names_that_are_wrong(toy: xr.Dataset, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        toy.clust.clue(**{"dc": 10.0, "rhoc": 5.0, **arguments})


def test_assign_needs_a_fit_on_the_same_points(toy: xr.Dataset) -> None:
    with pytest.raises(ValueError, match="not fitted"):
        toy.clust.assign(CLUE(10.0, 5.0))
    with pytest.raises(ValueError, match="fitted on 10 points, the Dataset has 600"):
        toy.clust.assign(CLUE(10.0, 5.0).fit(toy.isel(hit=slice(0, 10))))


def test_rethreshold_is_the_same_as_clustering_again(toy: xr.Dataset) -> None:
    clue = CLUE(10.0, 5.0).fit(toy)
    result = toy.clust.assign(clue.rethreshold(rhoc=7.0))
    assert_same(result, toy.clust.clue(10.0, 7.0))
    assert result.attrs["clue"] == toy.clust.clue(10.0, 7.0).attrs["clue"].replace("layer='layer', event=None, ", "")
