"""``ds.clust``: where it is, and what is true of all its methods."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes
from cases.lanes import quick_first
from sklearn.base import clone

from daskclust import CLUE, DBSCAN, HDBSCAN, FriendsOfFriends, datasets, io
from daskclust.systems import SYSTEMS

ORDERS = {
    "daskclust first": "import daskclust; import xarray",
    "xarray first": "import xarray; import daskclust",
    "a part of xarray later": "import daskclust; from xarray.core import dataset",
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


@pytest.mark.parametrize("order", quick_first(ORDERS, 2))
def test_is_there_in_whatever_order_xarray_was_imported(order: str) -> None:
    code = f"""
import sys
{ORDERS[order]}
kind = sys.modules["xarray"].Dataset if "dataset" not in globals() else dataset.Dataset
assert type(kind().clust).__name__ == "ClustAccessor"
assert not [finder for finder in sys.meta_path if "daskclust" in type(finder).__module__]
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, check=True)


@pytest.mark.parametrize(
    ("imported", "absent"),
    [
        ("daskclust", {"numpy", "xarray", "numba", "sklearn", "dask"}),
        ("xarray, daskclust", {"numba", "sklearn"}),
    ],
)
def test_import_is_light(imported: str, absent: set[str]) -> None:
    code = f"import sys, {imported}; sys.exit(str({absent} & set(sys.modules) or 0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "0\n"


# ----------------------------------------------------------------------------------------------------------- any method
def marked(ds: xr.Dataset) -> xr.Dataset:
    """Return points with a coordinate and attributes of their own."""
    dim = next(iter(ds.sizes))
    return ds.assign_coords({dim: np.arange(ds.sizes[dim]) + 7, "run": 5}).assign_attrs(name="toy")


DATA = {
    "layer clusters": lambda: datasets.hgcal_event(9, 20, n_noise=0, rng=0).rename(hit="cluster"),
    "labelled": lambda: datasets.hgcal_event(9, 20, n_noise=0, rng=0).rename(truth="label"),
    "hits": lambda: datasets.calorimeter(3, 200, size=80.0, rng=0),
    "pixels": lambda: datasets.timepix(600, kind="pion45", rng=0),
    "frames": lambda: (hits := datasets.timepix(600, rng=0)).assign(frame=hits["chip"]),
    "box": lambda: datasets.cosmology_box(2000, rng=0),
    "cells": lambda: datasets.cytometry(200, 3, rng=0),
}
METHODS = [
    ("layer clusters", "showers", {}, ["label", "density", "delta", "nearest_higher", "is_seed"]),
    (
        "hits",
        "clue",
        {"dc": 10.0, "rhoc": 5.0},
        ["label", "density", "delta", "nearest_higher", "is_seed", "is_outlier"],
    ),
    ("pixels", "events", {"dt_max": 200.0}, ["label"]),
    ("box", "dbscan", {"eps": 0.3}, ["label", "is_core"]),
    ("box", "dbscan", {"eps": 0.3, "weight": "mass"}, ["label", "is_core"]),
    ("box", "fof", {"b": 0.2}, ["label"]),
    ("cells", "hca", {}, ["label", "point_height", "linkage", "is_apriori"]),
]
any_method = pytest.mark.parametrize(("data", "name", "kwargs", "results"), METHODS)


@any_method
def test_keeps_the_input_and_all_of_it(data: str, name: str, kwargs: Any, results: list[str], tmp_path: Path) -> None:
    ds = marked(DATA[data]())
    before = ds.copy(deep=True)
    found = getattr(ds.clust, name)(**kwargs)
    xr.testing.assert_identical(ds, before)
    added = [*results, "linkage_column"] if name == "hca" else results
    assert set(found.variables) == set(before.variables) | set(added)
    xr.testing.assert_identical(found.drop_vars(added).drop_attrs(deep=False), before.drop_attrs(deep=False))
    assert found.attrs == before.attrs | {name: found.attrs[name]}
    assert all(found[result].attrs["long_name"] for result in results)
    xr.testing.assert_identical(getattr(found.clust, name)(**kwargs), found)
    some = found.isel({next(iter(ds.sizes)): slice(0, 50)})
    assert getattr(some.clust, name)(**kwargs)["label"].shape == (50,)
    found.to_zarr(tmp_path / "found.zarr", zarr_format=2, consolidated=False)
    stored = xr.open_zarr(tmp_path / "found.zarr", consolidated=False)
    assert stored.attrs[name] == found.attrs[name]
    assert {result: stored[result].attrs for result in results} == {result: found[result].attrs for result in results}


@any_method
def test_is_the_estimator(data: str, name: str, kwargs: Any, results: list[str]) -> None:
    ds = DATA[data]()
    own = {"linking_length": io.linking_length(ds, 0.2)} if name == "fof" else kwargs
    weight = ds[own["weight"]].values if "weight" in own else None
    box = {"boxsize": ds.attrs["boxsize"]} if data == "box" else {}
    estimator = SYSTEMS[name].estimator(**{key: value for key, value in own.items() if key != "weight"}, **box)
    estimator.fit(ds, **({} if weight is None else {"sample_weight": weight}))
    found = getattr(ds.clust, name)(**kwargs)
    attributes = {"label": "labels_", "point_height": "point_heights_"}
    for result in results:
        if result != "is_apriori":
            expected = getattr(estimator, attributes.get(result, f"{result}_"))
            np.testing.assert_array_equal(found[result].values, expected, err_msg=result)
            assert found[result].dtype == expected.dtype
    assigned = ds.clust.assign(estimator, **({"weight": "mass"} if weight is not None else {}))
    xr.testing.assert_identical(assigned.drop_attrs(deep=False), found.drop_attrs(deep=False))
    assert all(words in found.attrs[name] for words in assigned.attrs[name].split(", "))
    with pytest.raises(TypeError, match="estimator must be one of daskclust's CLUE, CLUE3D, EventBuilder"):
        ds.clust.assign("x")


@pytest.mark.parametrize("parts", [1, 3])
@any_method
def test_dask_gives_the_same(data: str, name: str, kwargs: Any, results: list[str], parts: int) -> None:
    ds = marked(DATA[data]())
    dim = next(iter(ds.sizes))
    lazy = ds.chunk({dim: -(-ds.sizes[dim] // parts)})
    if parts == 1 or name in (
        "clue",
        "showers",
        "hca",
    ):  # the others take a sample of several chunks, or look at their order
        with raise_if_dask_computes():
            found = getattr(lazy.clust, name)(**kwargs)
    else:
        found = getattr(lazy.clust, name)(**kwargs)
    assert all(found[result].chunks for result in results)
    assert found["label"].chunks == (lazy.chunks[dim],)
    xr.testing.assert_identical(found.compute(), getattr(ds.clust, name)(**kwargs))


@pytest.mark.parametrize(
    ("data", "name", "kwargs", "column"),
    [
        ("hits", "clue", {"dc": 10.0, "rhoc": 5.0}, "energy"),
        ("box", "dbscan", {"eps": 0.3, "weight": "mass"}, "mass"),
        ("cells", "hca", {"apriori": "population"}, "population"),
    ],
)
def test_some_columns_on_dask(data: str, name: str, kwargs: Any, column: str) -> None:
    ds = DATA[data]()
    mixed = ds.assign({column: ds[column].chunk({ds[column].dims[0]: 100})})
    found = getattr(mixed.clust, name)(**kwargs)
    assert found["label"].chunks == mixed[column].chunks
    xr.testing.assert_identical(found.compute(), getattr(ds.clust, name)(**kwargs))


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(
    ("data", "name", "kwargs", "wrong"),
    [
        ("hits", "clue", {"dc": 10.0, "rhoc": "energy"}, {"dc": -1.0}),
        ("box", "dbscan", {"eps": 0.3, "weight": "mass"}, {"min_samples": 0}),
        ("box", "fof", {"b": 0.2}, {"b": 0.0}),
        ("box", "fof", {"linking_length": 0.2}, {"min_members": 0}),
        ("box", "hdbscan", {"min_cluster_size": 5}, {"min_cluster_size": 1}),
        ("cells", "hca", {}, {"rule": "maha"}),
        ("pixels", "events", {"dt_max": 200.0}, {"dt_max": -1.0}),
        ("frames", "events", {}, {"connectivity": 5}),
        ("labelled", "showers", {}, {"critical_self_density": -1.0}),
        ("layer clusters", "showers", {}, {"critical_self_density": -1.0}),
    ],
)
def test_no_points(data: str, name: str, kwargs: Any, wrong: Any, chunked: bool) -> None:
    ds = DATA[data]()
    empty = ds.isel({next(iter(ds.sizes)): slice(0, 0)})
    empty = empty.chunk() if chunked else empty
    found, some = getattr(empty.clust, name)(**kwargs), getattr(ds.clust, name)(**kwargs)
    for result in set(some) - set(ds):
        assert len(found[result]) == 0
        assert found[result].dtype == some[result].dtype, result
    result = "shower" if "shower" in found else "label"
    assert (found[result].chunks is not None) == chunked
    with pytest.raises(ValueError, match="must be"):
        getattr(empty.clust, name)(**kwargs | wrong)


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(
    ("name", "estimator"),
    [("clue", CLUE(1.0, 3.0)), ("dbscan", DBSCAN(1.0)), ("fof", FriendsOfFriends(1.0)), ("hdbscan", HDBSCAN())],
)
def test_cells_are_points_of_all_systems(name: str, estimator: Any, chunked: bool) -> None:
    cells = datasets.cytometry(200, 3, rng=0)
    cells = cells.assign(event=("cell", np.arange(200) % 2), level=("step", [1]))
    cells.attrs["not_clustered"] = cells["channel"].values[1]
    wanted = clone(estimator).fit(cells["X"].values[:, ::2], event=cells["event"].values).labels_
    for ds in (cells, cells.transpose()):
        ds = ds.chunk(cell=70) if chunked else ds
        parameters = {key: value for key, value in estimator.get_params().items() if key != "metric_params"}
        found = getattr(ds.clust, name)(**parameters)
        assert found["label"].dims == ("cell",)
        assert (found["label"].chunks is not None) == chunked
        np.testing.assert_array_equal(found["label"], wanted)
        fitted = clone(estimator).fit(ds)
        np.testing.assert_array_equal(fitted.labels_, wanted)
        np.testing.assert_array_equal(ds.clust.assign(fitted)["label"], wanted)


@pytest.mark.parametrize(("name", "first"), [("clue", (10.0, 5.0)), ("dbscan", (0.2,)), ("fof", (0.2,)), ("hca", ())])
def test_coordinates_that_are_wrong(name: str, first: tuple[float, ...]) -> None:
    ds = marked(DATA["box"]())
    method = getattr(ds.clust, name)
    with pytest.raises(ValueError, match=r"coordinates must be a sequence of names, got 'x'; write \('x',\)"):
        method(*first, coordinates="x")
    with pytest.raises(ValueError, match="no column 'q'"):
        method(*first, coordinates=("x", "q"))
    with pytest.raises(ValueError, match="points must be along one dimension"):
        method(*first, coordinates=("x", "run"))
    with pytest.raises(ValueError, match="the Dataset has no variable x, but"):
        getattr(ds.drop_vars("x").clust, name)(*first)


@pytest.mark.parametrize(
    ("method", "first", "roles"),
    [
        ("clue", (10.0, 5.0), ("layer", "event", "weight")),
        ("dbscan", (0.2,), ("event",)),
        ("hdbscan", (5,), ("event",)),
    ],
)
def test_variables_along_other_dimensions(method: str, first: tuple[float, ...], roles: tuple[str, ...]) -> None:
    """They are no layer, event or weight of points: where one would be taken for it, the user must say."""
    points = xr.Dataset({name: ("hit", np.random.default_rng(0).uniform(0, 5, 90)) for name in "xyz"})
    wanted = getattr(points.clust, method)(*first)["label"]
    names = {"layer": "layer", "event": "event", "weight": "energy"}
    none = dict.fromkeys(roles, None)
    for role, name in names.items():
        ds = points.assign({name: (("other", "bin"), np.zeros((3, 2)))})
        if role in roles:
            words = f"{role} would be the variable '{name}', which .* along other, bin; .* or give {role}=None"
            with pytest.raises(ValueError, match=words):
                getattr(ds.clust, method)(*first)
        xr.testing.assert_equal(getattr(ds.clust, method)(*first, **none)["label"], wanted)


@pytest.mark.parametrize("estimator", [DBSCAN(0.2), FriendsOfFriends(0.2), HDBSCAN()])
def test_a_layer_along_another_dimension_is_not_that_of_the_points(estimator: Any) -> None:
    points = xr.Dataset({name: ("hit", np.random.default_rng(0).uniform(0, 5, 90)) for name in "xyz"})
    wanted = clone(estimator).fit(points)
    fitted = clone(estimator).fit(points.assign(layer=(("other", "bin"), np.zeros((3, 2)))))
    assert fitted.n_features_in_ == 3
    np.testing.assert_array_equal(fitted.labels_, wanted.labels_)


def test_lists_its_methods_with_their_parameters() -> None:
    ds = DATA["hits"]()
    lines = repr(ds.clust).splitlines()
    assert "'hit': 600" in lines[0]
    assert {line.partition("(")[0] for line in lines[1:]} == {f"  .{name}" for name in (*SYSTEMS, "assign")}
