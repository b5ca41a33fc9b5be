"""ds.clust: one call to the estimator, results beside the data."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import dask
import numpy as np
import pytest
import xarray as xr

from daskclust import CLUE, datasets

RESULTS = ["label", "density", "delta", "nearest_higher", "is_seed"]


@pytest.fixture
def toy() -> xr.Dataset:
    """Return 600 hits on three layers, with a coordinate and attributes."""
    ds = datasets.calorimeter(3, 200, size=80.0, rng=0)
    return ds.assign_coords(hit=np.arange(600) + 7, run=5).assign_attrs(name="toy")


def forbid_computing(*args: object, **kwargs: object) -> None:
    pytest.fail("dask computed something")


def assert_same(a: xr.Dataset, b: xr.Dataset) -> None:
    for name in RESULTS:
        np.testing.assert_array_equal(a[name].values, b[name].values, err_msg=name)
        assert a[name].dtype == b[name].dtype, name


ORDERS = {
    "daskclust first": "import daskclust; import xarray",
    "xarray first": "import xarray; import daskclust",
    "a part of xarray first": "from xarray.core import dataset; import daskclust",
    "a part of xarray later": "import daskclust; from xarray.core import dataset",
    "io first": "from daskclust import io; import xarray",
    "accessor first": "import daskclust.accessor; import xarray",
    "kernels first": "import daskclust.core.device.kernels; import xarray",
    "a Dataset before": "import xarray; ds = xarray.Dataset({'x': ('hit', [0.0])}); import daskclust",
    "looked for before": "import daskclust, importlib.util; importlib.util.find_spec('xarray'); import xarray",
    "loaded when used": """
import importlib.util
import daskclust
spec = importlib.util.find_spec("xarray")
loader = spec.loader = importlib.util.LazyLoader(spec.loader)
xarray = sys.modules["xarray"] = importlib.util.module_from_spec(spec)
loader.exec_module(xarray)
xarray.Dataset
""",
    "in threads": """
import importlib, threading
import daskclust
names = ["xarray", "daskclust.accessor", "daskclust.io"]
threads = [threading.Thread(target=importlib.import_module, args=(name,)) for name in names]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
import xarray
""",
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_is_there_in_whatever_order_xarray_was_imported(order: str) -> None:
    code = f"""
import sys
ds = None
{order}
if ds is None:
    ds = xarray.Dataset({{"x": ("hit", [0.0])}}) if "xarray" in globals() else dataset.Dataset({{"x": ("hit", [0.0])}})
assert type(ds.clust).__name__ == "ClustAccessor"
assert not [finder for finder in sys.meta_path if "daskclust" in type(finder).__module__]
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, check=True)


def test_lists_its_methods_with_their_parameters(toy: xr.Dataset) -> None:
    text = repr(toy.clust)
    for name in ("clue", "events", "dbscan", "fof", "hca", "assign"):
        parameters = list(inspect.signature(getattr(toy.clust, name)).parameters)
        line = next(line for line in text.splitlines() if line.startswith(f"  .{name}("))
        assert all(re.search(rf"\b{parameter}\b", line) for parameter in parameters)
    assert "'hit': 600" in text


def test_is_the_estimator(toy: xr.Dataset) -> None:
    result = toy.clust.clue(10.0, 5.0, delta_c=12.0, delta_o=8.0)
    clue = CLUE(10.0, 5.0, delta_c=12.0, delta_o=8.0).fit(toy)
    for name, expected in zip(RESULTS, ("labels", "density", "delta", "nearest_higher", "is_seed"), strict=True):
        np.testing.assert_array_equal(result[name].values, getattr(clue, f"{expected}_"))
        assert result[name].dims == ("hit",)
    assert_same(result, toy.clust.assign(clue))


def test_keeps_the_input_and_all_of_it(toy: xr.Dataset) -> None:
    before = toy.copy(deep=True)
    result = toy.clust.clue(10.0, 5.0)
    xr.testing.assert_identical(toy, before)
    xr.testing.assert_identical(result.drop_vars(RESULTS).drop_attrs(deep=False), before.drop_attrs(deep=False))
    assert result.attrs == before.attrs | {"clue": result.attrs["clue"]}
    again = result.clust.clue(20.0, 5.0)
    assert_same(again, toy.clust.clue(20.0, 5.0))


def test_attributes(toy: xr.Dataset, tmp_path: Path) -> None:
    result = toy.clust.clue(10.0, 5.0, delta_o=8.0, wrap={"y": 200.0})
    assert result["density"].attrs["units"] == "GeV"
    assert result["delta"].attrs["units"] == "cm"
    assert all(result[name].attrs["long_name"] for name in RESULTS)
    assert (result["density"].attrs["dc"], result["density"].attrs["rhoc"]) == (10.0, 5.0)
    assert (result["delta"].attrs["delta_c"], result["delta"].attrs["delta_o"]) == (10.0, 8.0)
    assert result["delta"].attrs["periods"] == [0.0, 200.0]
    for words in ("dc=10", "rhoc=5", "delta_o=8", "wrap={'y': 200.0}", "layer='layer'", "weight='energy'"):
        assert words in result.attrs["clue"]
    result.to_zarr(tmp_path / "result.zarr", zarr_format=2, consolidated=False)
    assert xr.open_zarr(tmp_path / "result.zarr", consolidated=False).attrs["clue"] == result.attrs["clue"]


def test_units_of_results(toy: xr.Dataset) -> None:
    toy["x"].attrs["units"] = toy["y"].attrs["units"] = "mm"
    result = toy.clust.clue(10.0, 5.0, weight=None)
    assert [result[name].attrs["units"] for name in ("delta", "density")] == ["mm", "1"]
    toy = toy.drop_attrs()
    result = toy.clust.clue(10.0, 5.0)
    assert not any("units" in result[name].attrs for name in ("delta", "density"))
    assert "dc=10, rhoc=5, delta_c=10," in result.attrs["clue"]


@pytest.mark.parametrize("chunk", [600, 250, 64])
def test_dask_stays_lazy_and_gives_the_same(toy: xr.Dataset, chunk: int) -> None:
    lazy = toy.chunk(hit=chunk)
    with dask.config.set(scheduler=forbid_computing):
        result = lazy.clust.clue(10.0, 5.0)
    for name in RESULTS:
        assert result[name].chunks == lazy["x"].chunks
    assert_same(result, toy.clust.clue(10.0, 5.0))


def test_some_columns_on_dask(toy: xr.Dataset) -> None:
    mixed = toy.assign(energy=toy["energy"].chunk(hit=100))
    result = mixed.clust.clue(10.0, 5.0)
    assert result["label"].chunks == mixed["energy"].chunks
    assert_same(result, toy.clust.clue(10.0, 5.0))


@pytest.mark.parametrize("chunked", [False, True])
def test_no_points(toy: xr.Dataset, chunked: bool) -> None:
    empty = toy.isel(hit=slice(0, 0))
    result = (empty.chunk() if chunked else empty).clust.clue(10.0, "energy")
    for name in RESULTS:
        assert result[name].shape == (0,)
        assert result[name].dtype == toy.clust.clue(10.0, 5.0)[name].dtype
        assert (result[name].chunks is not None) == chunked
    with pytest.raises(ValueError, match="dc must be finite and positive"):
        empty.clust.clue(-1.0, 5.0)


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
        ({"wrap": {"phi": 6.0}}, "wrap names the axis 'phi'; the coordinates are"),
        ({"coordinates": "x"}, "sequence of names"),
        ({"coordinates": ("x", "q")}, "no column 'q'"),
        ({"coordinates": ("x", "run")}, "one common dimension"),
    ],
)
def test_names_that_are_wrong(toy: xr.Dataset, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        toy.clust.clue(10.0, 5.0, **arguments)


def test_unknown_rhoc_and_no_x(toy: xr.Dataset) -> None:
    with pytest.raises(ValueError, match="rhoc names the variable 'limit'"):
        toy.clust.clue(10.0, "limit")
    with pytest.raises(ValueError, match="no variable x"):
        toy.drop_vars("x").clust.clue(10.0, 5.0)


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


@pytest.mark.parametrize(
    ("imported", "absent"),
    [
        ("daskclust", {"numpy", "xarray", "numba", "sklearn", "dask"}),
        ("xarray, daskclust", {"numba", "sklearn"}),
        ("daskclust.accessor", {"numba", "sklearn"}),
    ],
)
def test_import_is_light(imported: str, absent: set[str]) -> None:
    code = f"import sys, {imported}; sys.exit(str({absent} & set(sys.modules) or 0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "0\n"
