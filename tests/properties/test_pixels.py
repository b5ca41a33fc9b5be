"""The table of pixel clusters against one loop over clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.tables import by_threads, pixel_hits, ranges_of, told
from hypothesis import given
from hypothesis import strategies as st

from daskclust.properties import _pixels, cluster_table

BY_ROUNDING = ("energy",)


def by_loop(ds: xr.Dataset, labels: Any, rows: int, weight: str | None = "tot") -> dict[str, list[Any]]:
    """Return the table from a loop over clusters, axes by an eigenvalue solver."""
    columns: dict[str, list[Any]] = {}
    data = {name: variable.values for name, variable in ds.items()}
    for cluster in range(rows):
        mine = np.flatnonzero(labels == cluster)
        for name, value in row_of(data, mine, weight).items():
            columns.setdefault(name, []).append(value)
    return columns


def row_of(data: dict[Any, Any], mine: Any, weight: str | None) -> dict[str, Any]:
    """Return the row of a cluster with the hits `mine`."""
    if not len(mine):
        zero = ["size", "tot", "x_min", "x_max", "y_min", "y_max", "x_seed", "y_seed"]
        others = ["x", "y", "x_plain", "y_plain", "length", "width", "angle", "toa", "toa_last", "tot_max"]
        if "energy" in data:
            zero, others = [*zero, "energy", "chip"], [*others, "tof"]
        return dict.fromkeys(zero, 0) | dict.fromkeys(others, np.nan) | {"seed": -1}
    x, y, toa, tot = (data[name][mine].astype(float) for name in ("x", "y", "toa", "tot"))
    w = np.ones(len(mine)) if weight is None else data[weight][mine].astype(float)
    w = w if w.sum() > 0 else np.ones(len(mine))
    seed, first = mine[np.argmax(tot)], mine[np.argmin(toa)]
    values, vectors = np.linalg.eigh(np.cov(x, y, ddof=0) if len(mine) > 1 else np.zeros((2, 2)))
    row = {
        "size": len(mine), "tot": tot.sum(), "x": np.average(x, weights=w), "y": np.average(y, weights=w),
        "x_plain": x.mean(), "y_plain": y.mean(),
        "length": np.sqrt(12 * (values[1] + 1 / 12)), "width": np.sqrt(12 * (values[0].clip(0) + 1 / 12)),
        "angle": np.nan if np.isclose(values[0], values[1], atol=1e-9) else np.arctan2(vectors[1, 1], vectors[0, 1]),
        "toa": toa.min(), "toa_last": toa.max(),
        "x_min": x.min(), "x_max": x.max(), "y_min": y.min(), "y_max": y.max(),
        "seed": seed, "tot_max": tot.max(), "x_seed": data["x"][seed], "y_seed": data["y"][seed],
    }  # fmt: skip
    if "energy" in data:
        row |= {"energy": data["energy"][mine].sum(dtype=float), "chip": data["chip"][first], "tof": data["tof"][first]}
    return row


def assert_is(table: xr.Dataset, expected: dict[str, list[Any]]) -> None:
    """Compare with the loop: exactly but for centroids, axes and energies."""
    assert set(table.data_vars) - {"noise_size", "noise_weight"} == set(expected)
    for name, values in expected.items():
        want, got = np.asarray(values), table[name].values
        if name == "angle":  # of an axis, so up to half a turn; any where no axis is longer
            turns = (got - want) / np.pi
            np.testing.assert_allclose((turns - np.rint(turns))[~np.isnan(want)], 0, atol=1e-6)
            given_angles = got[~np.isnan(got)]
            assert ((given_angles > -np.pi / 2 - 1e-7) & (given_angles <= np.pi / 2 + 1e-7)).all()
        elif name in ("x", "y", "x_plain", "y_plain", "length", "width", "energy"):
            np.testing.assert_allclose(got, want, rtol=2e-7, atol=2e-6, err_msg=name)
        else:
            np.testing.assert_array_equal(got, want, err_msg=name)


def assert_same(a: xr.Dataset, b: xr.Dataset) -> None:
    """Compare tables to the last bit, but for sums of energies."""
    assert list(a.data_vars) == list(b.data_vars)
    for name in a:
        assert a[name].dtype == b[name].dtype, name
        assert a[name].attrs == b[name].attrs, name
        if name in BY_ROUNDING:
            np.testing.assert_allclose(a[name], b[name], rtol=1e-13)
        else:
            np.testing.assert_array_equal(a[name], b[name], err_msg=str(name))


@pytest.mark.parametrize(
    ("optional", "weight"), [(True, "tot"), (True, "energy"), (True, None), (False, "tot"), (False, None)]
)
@pytest.mark.parametrize("chunks", [None, 100, pytest.param(7, marks=pytest.mark.slow)])
def test_table_equals_loop(optional: bool, weight: str | None, chunks: int | None) -> None:
    ds = pixel_hits(700, 120, optional=optional)
    labels = ds["label"].values
    table = told(cluster_table(ds if chunks is None else ds.chunk(hit=chunks), weight=weight))
    assert_is(table, by_loop(ds, labels, labels.max() + 1, weight))
    assert table.attrs["noise_size"] == (labels < 0).sum()
    noise = ds[weight].values[labels < 0].sum(dtype=float) if weight else (labels < 0).sum()
    assert table.attrs["noise_weight"] == pytest.approx(noise)
    assert type(table.attrs["noise_size"]) is int


@pytest.mark.parametrize("chunks", [None, 100])
def test_hits_without_tot(chunks: int | None) -> None:
    """They weigh 1 each, and the seed is the first hit."""
    ds = pixel_hits(700, 120, optional=False)
    bare = ds.drop_vars("tot").assign_attrs(field="timepix")
    table = told(cluster_table(bare if chunks is None else bare.chunk(hit=chunks)))
    expected = by_loop(ds.assign(tot=xr.zeros_like(ds["tot"])), ds["label"].values, ds["label"].values.max() + 1, None)
    assert_is(table, {name: values for name, values in expected.items() if name not in ("tot", "tot_max")})


@given(data=st.data(), n=st.integers(0, 60), k=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_any_hits_in_any_chunks(data: Any, n: int, k: int, seed: int) -> None:
    ds = pixel_hits(n, k, seed, side=data.draw(st.integers(1, 5)))
    table = cluster_table(ds, n_clusters=k + 2, weight="tot")
    assert_is(table, by_loop(ds, ds["label"].values, k + 2))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5)))
    with ranges_of(data.draw(st.integers(1, 7)), data.draw(st.integers(2, 4))):
        lazy = cluster_table(ds.chunk(hit=tuple(np.diff([0, *cuts, n]).tolist())), n_clusters=k + 2, weight="tot")
    assert_same(told(lazy), table)
    assert told(lazy).attrs == table.attrs


@given(data=st.data(), n=st.integers(1, 60), k=st.integers(1, 20), seed=st.integers(0, 10**6))
def test_clusters_that_one_chunk_has_are_rows_at_once(data: Any, n: int, k: int, seed: int) -> None:
    """Hits nearly in the order of their clusters, as events are; some numbers are left out, and some hits are noise."""
    ds, rng = pixel_hits(n, k, seed, side=4), np.random.default_rng(seed)
    order = np.argsort(ds["label"].values + rng.uniform(0, data.draw(st.sampled_from([0.0, 1.5, 4.0])), n))
    ds = ds.isel(hit=order)
    ds["label"].values[rng.uniform(size=n) < 0.2] = -1
    table, rows = cluster_table(ds), ds["label"].values.max() + 1
    if rows:
        assert_is(table, by_loop(ds, ds["label"].values, rows, "energy"))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5)))
    chunks = {"hit": tuple(np.diff([0, *cuts, n]).tolist())}
    with ranges_of(data.draw(st.integers(1, 7)), 2):
        found = told(cluster_table(ds.chunk(chunks)))
        assert_same(found, table)
        assert found.attrs == pytest.approx(table.attrs)
        ds["tot"].values[data.draw(st.integers(0, n - 1))] = -1.0
        for each in ds, ds.chunk(chunks):
            with pytest.raises(ValueError, match=rf"tot.* {int(np.argmin(ds['tot'].values))}\b"):
                cluster_table(each).compute()


def test_which_data_sets_are_pixels() -> None:
    ds = pixel_hits(50, 5)
    assert "length" in cluster_table(ds.drop_attrs())
    assert "x_rms" in cluster_table(ds.drop_vars("toa").drop_attrs())
    with pytest.raises(ValueError, match="the Timepix data set has no toa; it has x, y, tot"):
        cluster_table(ds.drop_vars("toa"))


@pytest.mark.parametrize("kind", ["single", "row", "column", "diagonal", "falling", "square", "doubled", "far"])
def test_known_shapes(kind: str) -> None:
    x, y, length, width, angle = {
        "single": ([3], [4], 1, 1, 0),
        "row": (range(10, 21), [5] * 11, 11, 1, 0),
        "column": ([5] * 11, range(10, 21), 11, 1, np.pi / 2),
        "diagonal": (range(5), range(5), np.sqrt(49), 1, np.pi / 4),
        "falling": (range(5), range(4, -1, -1), 7, 1, -np.pi / 4),
        "square": ([1, 1, 1, 2, 2, 2, 3, 3, 3], [1, 2, 3] * 3, 3, 3, 0),
        "doubled": ([8] * 6, [8] * 6, 1, 1, 0),
        "far": (range(65000, 65021), [65535] * 21, 21, 1, 0),
    }[kind]
    n = len(list(x))
    ds = xr.Dataset(
        {"x": ("hit", list(x)), "y": ("hit", list(y)), "toa": ("hit", np.zeros(n)), "tot": ("hit", np.ones(n))}
    )
    for given_ds in (ds, ds.chunk(hit=2)):
        table = cluster_table(given_ds, np.zeros(n, int))
        np.testing.assert_allclose(table["length"], length, rtol=1e-7)
        np.testing.assert_allclose(table["width"], width, rtol=1e-7)
        np.testing.assert_allclose(table["angle"], angle, atol=1e-7)
        assert table["x"] == np.mean(x)


def test_ties_and_first_hits() -> None:
    ds = xr.Dataset(
        {
            "x": ("hit", np.array([4, 5, 6, 7, 8], np.uint16)),
            "y": ("hit", np.array([1, 1, 1, 1, 1], np.uint16)),
            "toa": ("hit", [50.0, 25.0, 25.0, 75.0, 75.0]),  # not in time order
            "tot": ("hit", np.array([25, 75, 75, 50, 75], np.float32)),
            "chip": ("hit", np.array([0, 1, 2, 3, 0], np.uint8)),
        }
    )
    for given_ds in (ds, ds.chunk(hit=2), ds.chunk(hit=1)):
        table = cluster_table(given_ds, np.zeros(5, np.int64))
        assert table["seed"] == 1
        assert table["x_seed"] == 5
        assert table["chip"] == 1
        assert table["toa"] == 25.0
        assert table["toa_last"] == 75.0


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64, np.int32])
@pytest.mark.parametrize("tot", [np.float32, np.float64, np.uint16])
def test_kinds_of_columns(dtype: Any, tot: Any) -> None:
    ds = pixel_hits(300, 50, side=4)
    ds["x"], ds["y"] = ds["x"] // 4, ds["y"] // 4
    wanted = cluster_table(ds)
    other = ds.assign(x=ds["x"].astype(dtype), y=ds["y"].astype(dtype), tot=ds["tot"].astype(tot))
    got = cluster_table(other, other["label"].values.astype(np.int32))
    assert got["x_min"].dtype == got["x_seed"].dtype == (dtype if np.dtype(dtype).kind == "u" else np.uint16)
    for name in wanted:
        np.testing.assert_array_equal(got[name], wanted[name], err_msg=str(name))


def test_types_and_units() -> None:
    table = cluster_table(pixel_hits(100, 5))
    assert list(table)[:5] == ["size", "tot", "energy", "x", "y"]
    units = {"size": "1", "tot": "ns", "energy": "keV", "x": "pixel", "length": "pixel", "angle": "rad", "toa": "ns"}
    units |= {"x_min": "pixel", "chip": "1", "seed": "1", "tot_max": "ns", "y_seed": "pixel", "tof": "ns"}
    assert {name: table[name].attrs["units"] for name in units} == units
    assert table["size"].dtype == table["seed"].dtype == np.int64
    assert {table[name].dtype for name in ("tot", "energy", "toa", "toa_last", "tof")} == {np.dtype(np.float64)}


@pytest.mark.parametrize("order", ["time", "any", "descending"])
def test_threads_change_nothing(monkeypatch: Any, order: str) -> None:
    monkeypatch.setattr(_pixels, "_PIECE", 500)
    monkeypatch.setattr(_pixels, "_BLOCK", 64)
    n = 8_000
    ds = pixel_hits(n, 2000, 1)
    rng = np.random.default_rng(2)
    in_time = (np.arange(n) // 4 + rng.integers(0, 3, n)).astype(np.int64)
    labels = {"time": in_time, "any": rng.integers(-1, 1600, n), "descending": in_time[::-1].copy()}[order]
    tables = by_threads(lambda: cluster_table(ds, labels))
    xr.testing.assert_identical(*tables)
    assert_is(tables[0], by_loop(ds, labels, tables[0].sizes["cluster"], "energy"))
    lazy = told(cluster_table(ds.chunk(hit=1999), labels))
    for name in set(lazy) - {"energy", "x", "y"}:  # the centroid is weighted by energy here
        np.testing.assert_array_equal(lazy[name], tables[0][name], err_msg=str(name))


@pytest.mark.parametrize("chunks", [None, 20])
def test_more_hits_than_a_chunk_holds(monkeypatch: Any, chunks: int | None) -> None:
    monkeypatch.setattr("daskclust.core.data.checks._MOST_POINTS", 19)
    ds = pixel_hits(20, 4)
    with pytest.raises(ValueError, match="20 points are more than one chunk holds"):
        cluster_table(ds if chunks is None else ds.chunk(hit=chunks)).compute()
    assert cluster_table(ds.chunk(hit=19)).sizes["cluster"] == ds["label"].max() + 1


@pytest.mark.parametrize(
    ("change", "kwargs", "message"),
    [
        ({}, {"weight": "mass"}, r"weight of pixels must be 'tot', 'energy' or None, got 'mass'"),
        ({}, {"coords": ["x"]}, r"coords=\['x'\]: positions of pixels are x and y; leave it out"),
        ({"toa": np.nan}, {}, r"toa must be finite, got nan at index 7"),
        ({"tot": -25.0}, {}, r"tot must not be negative, got -25.0 at index 7"),
        ({"energy": -1.0}, {"weight": None}, r"energy must not be negative, got -1.0 at index 7"),
        ({"x": 70000}, {}, r"x must be from 0 to 65535, got 70000 at index 7"),
        ({"label": -1, "tot": np.nan}, {}, r"tot must be finite, got nan at index 7"),
    ],
)
@pytest.mark.parametrize("chunks", [None, 6])
def test_wrong_input(change: dict[str, Any], kwargs: dict[str, Any], message: str, chunks: int | None) -> None:
    ds = pixel_hits(20, 4, 3)
    ds["x"], ds["y"] = ds["x"].astype(np.int32), ds["y"].astype(np.int64)
    for name, value in change.items():
        ds[name][7] = value
    with pytest.raises(ValueError, match=message):
        cluster_table(ds if chunks is None else ds.chunk(hit=chunks), **kwargs).compute()
