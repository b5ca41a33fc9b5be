"""CLUE3D against all pairs: every parameter, in memory and on dask; containers, units, and what is refused."""

from __future__ import annotations

from typing import Any

import awkward as ak
import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes
from cases.lanes import quick_first
from oracles.showers_brute import DEFAULTS, showers

from daskclust import CLUE3D, datasets, properties

RESULTS = ("labels_", "density_", "delta_", "nearest_higher_", "is_seed_")


def layer_clusters(seed: int, n: int = 400, dtype: Any = np.float64, exact: bool = False) -> dict[str, np.ndarray]:
    """Return layer clusters around lines from the origin, in both endcaps of two events; `exact` ones on a plane.

    There nothing is rounded: many are behind each other, or equally far from another, and energies are few.
    """
    rng = np.random.default_rng(seed)
    line, layer = rng.integers(0, 12, n), rng.integers(1, 15, n)
    z = (320.0 + 2 * layer) * np.where(line % 3, 1, -1)
    slope, phi = (rng.uniform(*ends, 12)[line] for ends in ((0.05, 0.4), (-np.pi, np.pi)))
    phi[line == 0] = np.pi  # across the seam
    x, y = (slope * abs(z) * turn + rng.normal(0, 0.8, n) for turn in (np.cos(phi), np.sin(phi)))
    energy = rng.exponential(0.4, n)
    if exact:
        x, y = abs(z) * (rng.integers(1, 10, n) * rng.choice([-1, 1], n)) / 256, np.zeros(n)
        energy = rng.integers(0, 4, n) / 4
    radius, is_silicon = rng.uniform(0.3, 3.0, n), rng.random(n) < 0.7
    columns = {"layer": layer, "event": rng.integers(3, 5, n), "energy": energy, "radius": radius}
    return {"x": x, "y": y, "z": z, **columns, "is_silicon": is_silicon}


def split(table: dict[str, np.ndarray], dtype: Any, *names: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return coordinates and named columns in a precision."""
    columns = {name: table[name] for name in ("layer", "energy", *names)}
    for name in {"energy", "radius"} & columns.keys():
        columns[name] = columns[name].astype(dtype)
    return np.stack([table[axis] for axis in "xyz"], axis=1).astype(dtype), columns


def for_fit(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"sample_weight" if name == "energy" else name: values for name, values in columns.items()}


CASES: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({}, ()),
    ({}, ("event",)),
    ({"use_absolute_projective_scale": False}, ("event",)),
    ({"density_on_same_layer": True, "nearest_higher_on_same_layer": True}, ()),
    ({"use_cluster_dimension_xy": True, "kernel_density_factor": 0.5}, ("radius",)),
    ({"critical_self_density": 0.4, "min_num_layer_cluster": 4}, ("radius", "is_silicon", "event")),
    ({"density_sibling_layers": 7, "critical_z_distance_lyr": 2, "density_xy_distance_sqr": 40.0}, ()),
    ({"outlier_multiplier": 0.5, "critical_xy_distance": 6.0, "critical_density": 1.5}, ("event",)),
    ({"density_sibling_layers": 0, "nearest_higher_on_same_layer": True, "density_on_same_layer": True}, ()),
    (
        {"use_absolute_projective_scale": False, "critical_eta_phi_distance": 0.1, "critical_self_density": 0.05},
        ("radius", "is_silicon"),
    ),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("parameters", "names"), CASES)
def test_equals_all_pairs(parameters: dict[str, Any], names: tuple[str, ...], exact: bool, dtype: Any) -> None:
    for seed in range(3):
        X, columns = split(layer_clusters(seed, exact=exact), dtype, *names)
        fitted = CLUE3D(**parameters).fit(X, **for_fit(columns))
        wanted = showers(X, **columns, density=fitted.density_, **parameters)
        np.testing.assert_allclose(fitted.density_, wanted.density, rtol=50 * np.finfo(dtype).eps)
        np.testing.assert_array_equal(fitted.nearest_higher_, wanted.nearest_higher)
        np.testing.assert_allclose(
            fitted.delta_, wanted.delta, rtol=50 * np.finfo(dtype).eps, atol=1e-4 if dtype is np.float32 else 1e-10
        )
        np.testing.assert_array_equal(fitted.is_seed_, wanted.is_seed)
        np.testing.assert_array_equal(fitted.labels_, wanted.labels)
        assert fitted.n_clusters_ == wanted.labels.max() + 1 > 1
        assert fitted.density_.dtype == fitted.delta_.dtype == dtype


def test_defaults_are_those_of_the_rule() -> None:
    assert CLUE3D().get_params() == DEFAULTS


@pytest.mark.parametrize("rows", quick_first([37, 400, 9], 2))
@pytest.mark.parametrize(("parameters", "names"), CASES[:6])
def test_dask_gives_the_same_bits(parameters: dict[str, Any], names: tuple[str, ...], rows: int) -> None:
    X, columns = split(layer_clusters(5), np.float32, *names)
    wanted = CLUE3D(**parameters).fit(X, **for_fit(columns))
    lazy = {name: da.from_array(values, chunks=rows) for name, values in for_fit(columns).items()}
    with raise_if_dask_computes():
        found = CLUE3D(**parameters).fit(da.from_array(X, chunks=(rows, 3)), **lazy)
    results = dask.compute(*(getattr(found, name) for name in RESULTS), scheduler="synchronous")
    for name, values in zip(RESULTS, results, strict=True):
        np.testing.assert_array_equal(values, getattr(wanted, name), err_msg=name)
        assert values.dtype == getattr(wanted, name).dtype
    assert found.n_clusters_.compute() == wanted.n_clusters_


def test_whole_events_may_stay_where_they_are() -> None:
    table = layer_clusters(6)
    order = np.argsort(table["event"], kind="stable")
    ds = xr.Dataset({name: ("cluster", values[order]) for name, values in table.items()})
    rows = tuple(np.unique(table["event"], return_counts=True)[1].tolist())
    wanted = CLUE3D().fit(ds).labels_
    np.testing.assert_array_equal(CLUE3D().fit(ds.chunk(cluster=rows), partition="chunks").labels_, wanted)
    with pytest.raises(ValueError, match=r"layer \d of event 3 is in several chunks"):
        np.asarray(CLUE3D().fit(ds.chunk(cluster=50), partition="chunks").labels_)


def test_containers_and_units() -> None:
    table = layer_clusters(7)
    X, columns = split(table, np.float64, "event", "radius", "is_silicon")
    wanted = CLUE3D().fit(X, **for_fit(columns)).labels_
    ds = xr.Dataset({name: ("cluster", values) for name, values in table.items()})
    millimetres = {axis: ds[axis].copy(data=10 * ds[axis].values).assign_attrs(units="mm") for axis in "xyz"}
    energy = ds["energy"].copy(data=1000 * ds["energy"].values).assign_attrs(units="MeV")
    for given in (ds, pd.DataFrame(table), table, ds.chunk(cluster=90), ds.assign(millimetres).assign(energy=energy)):
        np.testing.assert_array_equal(CLUE3D().fit(given).labels_, wanted)
    order = np.argsort(table["event"], kind="stable")
    records = ak.zip({name: values[order] for name, values in table.items() if name != "event"})
    events = ak.unflatten(records, np.unique(table["event"], return_counts=True)[1])
    nested = CLUE3D().fit(events).labels_
    assert ak.num(nested).tolist() == ak.num(events["x"]).tolist()
    np.testing.assert_array_equal(ak.flatten(nested), CLUE3D().fit(ds.isel(cluster=order)).labels_)


def test_events_and_endcaps_do_not_see_each_other() -> None:
    X, columns = split(layer_clusters(8), np.float64)
    one, energies = CLUE3D().fit(X, **for_fit(columns)), columns["energy"]
    both, mirrored = np.concatenate([X, X]), np.concatenate([X, X * [1, 1, -1]])
    twice = {name: np.concatenate([values, values]) for name, values in for_fit(columns).items()}
    event = np.repeat([7, -2], len(X))
    for fitted in (CLUE3D().fit(both, event=event, **twice), CLUE3D().fit(mirrored, event=event, **twice)):
        assert fitted.n_clusters_ == 2 * one.n_clusters_
        for half in (slice(0, len(X)), slice(len(X), None)):
            np.testing.assert_array_equal(fitted.density_[half], one.density_)
            assert fitted.labels_[half].min() >= -1
        np.testing.assert_array_equal(
            fitted.labels_[len(X) :] - one.n_clusters_, np.where(one.labels_ < 0, -1 - one.n_clusters_, one.labels_)
        )
    assert energies.min() >= 0


REFUSED: list[tuple[dict[str, Any], dict[str, Any], type[Exception], str]] = [
    ({}, {"layer": None}, ValueError, "needs its layer; give layer="),
    ({}, {"sample_weight": None}, ValueError, "needs its energy; give sample_weight="),
    ({"use_cluster_dimension_xy": True}, {}, ValueError, "needs the radius of each layer cluster"),
    ({}, {"is_silicon": np.ones(4, bool)}, ValueError, "needs the radius of each layer cluster"),
    ({}, {"radius": [1.0, 1.0, -2.0, 1.0]}, ValueError, "radius must not be negative, got -2"),
    ({}, {"layer": [0, 1, 2, 1 << 23]}, ValueError, "layer must lie within 4194304 of 0, got 0 to 8388608"),
    ({}, {"event": [0, 1, 2, 1 << 31]}, ValueError, "event must lie within 32 bits, got 0 to 2147483648"),
    ({}, {"sample_weight": [1.0, 1.0, np.nan, 1.0]}, ValueError, r"sample_weight\[2\] = nan"),
    ({"density_on_same_layer": 1}, {}, TypeError, "density_on_same_layer must be True or False, got 1"),
]


@pytest.mark.parametrize(("parameters", "columns", "error", "words"), REFUSED)
def test_what_is_refused(
    parameters: dict[str, Any], columns: dict[str, Any], error: type[Exception], words: str
) -> None:
    X = np.array([[10.0, 0, 320], [10, 0, 322], [10, 0, 324], [10, 0, 326]])
    given = {"layer": [0, 1, 2, 3], "sample_weight": np.ones(4), **columns}
    with pytest.raises(error, match=words):
        CLUE3D(**parameters).fit(X, **given)


def test_coordinates_that_are_refused() -> None:
    columns = {"layer": [0, 1], "sample_weight": [1.0, 1.0]}
    with pytest.raises(ValueError, match="X must have 3 columns, x, y and z, got 2"):
        CLUE3D().fit(np.ones((2, 2)), **columns)
    with pytest.raises(ValueError, match=r"z must not be 0: X\[1, 2\] = 0"):
        CLUE3D().fit(np.array([[1.0, 1, 5], [1, 1, 0]]), **columns)
    with pytest.raises(ValueError, match="no column 'z' for a coordinate"):
        CLUE3D().fit({"x": [1.0], "y": [1.0], "layer": [0], "energy": [1.0]})


def test_the_beam_axis_has_a_place() -> None:
    """There is no azimuth, and no pseudorapidity."""
    X = np.array([[0.0, 0, 320], [0, 0, 322], [1e-9, 0, 324], [-1e-30, -1e-30, 326]])
    for projective in (True, False):
        fitted = CLUE3D(use_absolute_projective_scale=projective).fit(X, layer=[0, 1, 2, 3], sample_weight=np.ones(4))
        assert np.isfinite(fitted.density_).all()
    assert CLUE3D().fit(X, layer=[0, 1, 2, 3], sample_weight=np.ones(4)).labels_.tolist() == [0, 0, 0, 0]


def test_any_scale_of_z() -> None:
    """Cells are of one size for all: what is close to the origin looks at many of them, what is far at few."""
    table = layer_clusters(9, 200)
    for scale in (2.0**-12, 2.0**12):
        X, columns = split(table, np.float64)
        X, lengths = X * scale, {"critical_xy_distance": 1.8 * scale, "density_xy_distance_sqr": 3.24 * scale**2}
        np.testing.assert_array_equal(
            CLUE3D(**lengths).fit(X, **for_fit(columns)).labels_, CLUE3D().fit(X / scale, **for_fit(columns)).labels_
        )


def test_showers_of_a_table_of_clusters() -> None:
    hits = datasets.hgcal_event(20, 30, hadronic=0.0, n_noise=500, rng=1)
    table = properties.cluster_table(hits.clust.clue(1.5, 0.05, delta_o=3.0))
    fitted = CLUE3D().fit(table)
    X, columns = split({name: table[name].values for name in (*"xyz", "layer", "energy")}, np.float64)
    np.testing.assert_array_equal(fitted.labels_, showers(X, **columns, density=fitted.density_).labels)


@pytest.mark.parametrize("kind", [np.uint8, ">i4", object, "Int64"])
def test_labels_of_hits_may_be_of_any_whole_numbers(kind: Any) -> None:
    hits = datasets.hgcal_event(3, 30, hadronic=0.0, n_noise=0, rng=1).clust.clue(1.5, 0.05, delta_o=3.0)
    hits = hits.isel(hit=np.flatnonzero(hits["label"] >= 0))
    labels = pd.Series(hits["label"].values).astype(kind).array
    other = labels if kind == "Int64" else labels.to_numpy()
    xr.testing.assert_identical(
        hits.assign(label=("hit", other)).clust.showers()["shower"], hits.clust.showers()["shower"]
    )
