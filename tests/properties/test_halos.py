"""The table of halos against one loop over halos, before they are folded into the box; any chunks give the same."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pytest
import xarray as xr
from cases.lanes import some_of
from cases.tables import SPEED, WIDTH, G, L, by_threads, folded, halos, ranges_of, told
from hypothesis import given
from hypothesis import strategies as st

from daskclust.properties import _halos, halo_table


def by_loop(ds: xr.Dataset, rows: int, box: float | None = L, gravity: float | None = None) -> dict[str, Any]:
    """Return the table from a loop over halos of particles in open space."""
    axes = [name for name in "xyz" if name in ds]
    columns: dict[str, list[Any]] = {}
    for halo in range(rows):
        mine = ds.isel(particle=np.flatnonzero(ds["label"].values == halo))
        for name, value in row_of(mine, axes, box, gravity).items():
            columns.setdefault(name, []).append(value)
    return columns


def row_of(mine: xr.Dataset, axes: list[str], box: float | None, gravity: float | None) -> dict[str, Any]:
    n, d = mine.sizes["particle"], len(axes)
    m = mine["mass"].values if "mass" in mine else np.ones(n)
    row: dict[str, Any] = {"size": n, "mass": m.sum()}
    moving = f"v{axes[0]}" in mine
    if not n or not m.sum():
        names = [*axes, "r_rms", "r_max", *["b_to_a", "c_to_a"][: d - 1], *["spin"] * (gravity is not None)]
        names += [*(f"v{a}" for a in axes), "sigma_v", *(["jx", "jy", "jz"] if d == 3 else ["jz"] * (d == 2))] * moving
        return row | dict.fromkeys(names, np.nan)
    x = np.stack([mine[a].values for a in axes])
    centre = x[:, 0] + np.average(x - x[:, :1], axis=1, weights=m)
    offset = x - centre[:, None]
    row |= dict(zip(axes, centre % box if box else centre, strict=True))
    distance = np.sqrt((offset**2).sum(axis=0))
    row |= {"r_rms": np.sqrt(np.average(distance**2, weights=m)), "r_max": distance.max()}
    tensor = np.cov(offset, aweights=m, ddof=0) if n > 1 and (m > 0).sum() > 1 else np.zeros((d, d))
    axis = np.sqrt(np.linalg.eigvalsh(np.atleast_2d(tensor)).clip(0))[::-1]
    with np.errstate(invalid="ignore"):
        row |= dict(zip(["b_to_a", "c_to_a"], axis[1:] / axis[0], strict=False))
    if moving:
        v = np.stack([mine[f"v{a}"].values for a in axes])
        mean = v[:, 0] + np.average(v - v[:, :1], axis=1, weights=m)
        row |= {f"v{a}": value for a, value in zip(axes, mean, strict=True)}
        u = v - mean[:, None]
        row["sigma_v"] = np.sqrt(np.mean([np.average(each**2, weights=m) for each in u]))
        if d == 2:
            row["jz"] = np.average(offset[0] * u[1] - offset[1] * u[0], weights=m)
        if d == 3:
            j = np.average(np.cross(offset.T, u.T), axis=0, weights=m)
            row |= dict(zip(["jx", "jy", "jz"], j, strict=True))
            if gravity is not None:
                circular = np.sqrt(gravity * m.sum() / row["r_max"]) if row["r_max"] else np.nan
                row["spin"] = np.linalg.norm(j) / (np.sqrt(2) * circular * row["r_max"]) if row["r_max"] else np.nan
    return row


def assert_is(table: xr.Dataset, expected: Any, tolerance: float = 1e-12) -> None:
    """Compare: sizes exactly, the others to a tolerance of the scale of their terms."""
    assert set(table.data_vars) - {"noise_size", "noise_mass"} == set(expected)
    scales = {"j": 4 * WIDTH * SPEED, "v": 4000.0, "s": SPEED, "m": 10.0}
    for name in expected:
        got, want = table[name].values, np.asarray(expected[name])
        if name == "size":
            np.testing.assert_array_equal(got, want)
        elif name.endswith("_to_a"):  # square roots: of 1e-16 where an axis vanishes
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want), err_msg=name)
            np.testing.assert_allclose(got**2, want**2, rtol=tolerance, atol=10 * tolerance, err_msg=name)
        else:
            atol = tolerance * (1.0 if name == "spin" else scales.get(name[0], L))
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=atol, err_msg=name)


@some_of(12, d=[1, 2, 3], moving=[True, False], mass=[True, False], chunks=[None, 60])
def test_table_equals_loop(d: int, moving: bool, mass: bool, chunks: int | None) -> None:
    ds = halos(700, 120, d=d, moving=moving, mass=mass)
    gravity = G if d == 3 and moving else None
    table = told(halo_table(folded(ds) if chunks is None else folded(ds).chunk(particle=chunks), G=gravity))
    assert_is(table, by_loop(ds, 120, gravity=gravity))
    noise = ds["label"].values < 0
    assert table.attrs["noise_size"] == noise.sum()
    assert table.attrs["noise_mass"] == pytest.approx(ds["mass"].values[noise].sum() if mass else noise.sum())
    assert table.attrs["boxsize"] == [L] * d
    assert (type(table.attrs["noise_size"]), type(table.attrs["noise_mass"])) == (int, float)
    for name in "xyz"[:d]:
        assert not ((table[name] < 0) | (table[name] >= L)).any()


@given(data=st.data(), n=st.integers(0, 60), k=st.integers(1, 12), seed=st.integers(0, 10**6), d=st.integers(1, 3))
def test_any_particles_in_any_chunks(data: Any, n: int, k: int, seed: int, d: int) -> None:
    ds = halos(n, k, seed, d=d, mass=data.draw(st.booleans()))
    gravity = G if d == 3 else None
    table = halo_table(folded(ds), n_clusters=k + 2, G=gravity)
    assert_is(table, by_loop(ds, k + 2, gravity=gravity))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5)))
    chunked = folded(ds).chunk(particle=tuple(np.diff([0, *cuts, n]).tolist()))
    with ranges_of(data.draw(st.integers(1, 7)), data.draw(st.integers(2, 4))):
        lazy = told(halo_table(chunked, n_clusters=k + 2, G=gravity))
    assert_is(lazy, {name: table[name].values for name in table})
    assert lazy.attrs["noise_size"] == table.attrs["noise_size"]
    assert lazy.attrs["noise_mass"] == pytest.approx(table.attrs["noise_mass"], rel=1e-14)


@given(seed=st.integers(0, 10**6), turns=st.integers(-10_000, 10_000))
def test_images_of_particles_do_not_matter(seed: int, turns: int) -> None:
    ds = halos(100, 8, seed)
    rng = np.random.default_rng(seed)
    expected = halo_table(folded(ds), G=G)
    moved = {name: ds[name] + L * (turns + rng.integers(-2, 3, 100)) for name in "xyz"}
    for given_ds in (ds.assign(moved), ds.assign(moved).chunk(particle=40)):
        assert_is(halo_table(given_ds, boxsize=L, G=G), {n: expected[n].values for n in expected}, 1e-13)


def test_a_halo_across_a_corner() -> None:
    corners = np.array([[x, y, z] for x in (0.25, 9.5) for y in (0.5, 9.75) for z in (0.0, 9.0)])
    ds = xr.Dataset({name: ("particle", corners[:, axis]) for axis, name in enumerate("xyz")}, attrs={"boxsize": 10.0})
    for given_ds in (ds, ds.chunk(particle=1), ds.isel(particle=slice(None, None, -1))):
        row = halo_table(given_ds, np.zeros(8, int)).isel(cluster=0)
        assert [float(row[name]) for name in "xyz"] == [9.875, 0.125, 9.5]
        assert float(row["r_max"]) == pytest.approx(np.sqrt(0.375**2 + 0.375**2 + 0.5**2))
    assert [float(value) for value in halo_table(ds, np.zeros(8, int), boxsize=None)["x"]] == [4.875]


def test_centres_are_below_the_box_size() -> None:
    ds = xr.Dataset({"x": ("particle", [-1e-20, 0.0, 3.0, 3.0 - 1e-17, -3e-17, 2.0])})
    table = halo_table(ds, np.arange(6), boxsize=3.0)
    np.testing.assert_array_equal(table["x"], [0, 0, 0, 0, 0, 2])


def test_boxes_that_are_open_along_an_axis() -> None:
    ds = halos(200, 20).assign(z=lambda ds: ds["z"] + 1e6)
    expected = by_loop(ds, 20)
    expected["z"] = by_loop(ds, 20, None)["z"]
    for boxsize in ([L, L, None], [L, L, 0.0], np.array([L, L, 0])):
        table = halo_table(folded(ds).assign(z=ds["z"]), boxsize=boxsize)
        assert_is(table, expected, 1e-9)
        assert table.attrs["boxsize"] == [L, L, 0.0]
    assert "boxsize" not in halo_table(ds).attrs
    assert_is(halo_table(ds.assign_attrs(boxsize=0.0)), by_loop(ds, 20, None), 1e-9)


def test_digits_do_not_cancel() -> None:
    ds = halos(500, 20, noise=False)
    expected = by_loop(ds, 20)
    far = ds.assign({name: ds[name] + 2.0**30 for name in "xyz"} | {f"v{name}": ds[f"v{name}"] for name in "xyz"})
    fast = far.assign({f"v{name}": (ds[f"v{name}"] * 2**20).round() / 2**20 + 2.0**30 for name in "xyz"})
    for given_ds in (fast, fast.chunk(particle=60)):
        table = halo_table(given_ds)
        for name in ("r_rms", "r_max", "sigma_v"):
            np.testing.assert_allclose(table[name], expected[name], rtol=1e-7)
    # in memory the offsets are exact, and only the centre has to be rounded
    np.testing.assert_allclose(halo_table(far)["sigma_v"], expected["sigma_v"], rtol=1e-12)


def test_one_member_and_equal_places() -> None:
    columns = {name: ("particle", [5.0, 6.9, 6.9]) for name in ("x", "y", "z", "vx", "vy", "vz")}
    table = halo_table(xr.Dataset(columns), [0, 1, 1], G=1.0, boxsize=7.3)
    for name in ("r_rms", "r_max", "sigma_v", "jx", "jy", "jz"):
        np.testing.assert_array_equal(table[name], 0.0)
    for name in ("spin", "b_to_a", "c_to_a"):
        assert np.isnan(table[name]).all()
    np.testing.assert_array_equal(table["vx"], [5.0, 6.9])


def test_halos_without_mass() -> None:
    ds = xr.Dataset({"x": ("particle", [1.0, 2.0, 3.0, 9.0]), "mass": ("particle", [0.0, 0.0, 1.0, 0.0])})
    for given_ds in (ds, ds.chunk(particle=1)):
        table = halo_table(given_ds, [0, 0, 1, 1])
        np.testing.assert_array_equal(table["mass"], [0.0, 1.0])
        np.testing.assert_array_equal(table["size"], [2, 2])
        np.testing.assert_array_equal(table["x"], [np.nan, 3.0])
        np.testing.assert_array_equal(table["r_rms"], [np.nan, 0.0])
        np.testing.assert_array_equal(table["r_max"], [np.nan, 6.0])
    np.testing.assert_array_equal(halo_table(ds, [0, 0, 1, 1], mass=None)["mass"], [2.0, 2.0])


@pytest.mark.parametrize("kind", ["sphere", "needle", "plane", "ellipsoid"])
def test_known_shapes(kind: str) -> None:
    axes = {"sphere": (3, 3, 3), "needle": (3, 0, 0), "plane": (3, 3, 0), "ellipsoid": (5, 3, 2)}[kind]
    turn, _ = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))
    points = np.concatenate([np.diag(axes), -np.diag(axes)]).astype(float) @ turn.T
    ds = xr.Dataset({name: ("particle", points[:, axis] + 8.0) for axis, name in enumerate("xyz")})
    table = halo_table(ds, np.zeros(6, int))
    np.testing.assert_allclose(table["b_to_a"], axes[1] / axes[0], atol=1e-7)
    np.testing.assert_allclose(table["c_to_a"], axes[2] / axes[0], atol=1e-7)


def test_a_turning_disc() -> None:
    angle = 2 * np.pi * np.arange(100) / 100
    x, y = 2 * np.cos(angle), 2 * np.sin(angle)
    columns = {"x": x, "y": y, "z": 0 * x, "vx": 5 - 3 * y / 2, "vy": 3 * x / 2, "vz": 0 * x, "mass": 0 * x + 0.25}
    ds = xr.Dataset({name: ("particle", values) for name, values in columns.items()})
    row = halo_table(ds, np.zeros(100, int), G=18.0 * 2 / 25).isel(cluster=0)  # a circular velocity of sqrt(18)
    assert float(row["jz"]) == pytest.approx(6.0)
    assert float(row["spin"]) == pytest.approx(6 / (np.sqrt(2) * np.sqrt(18) * 2))
    assert float(row["sigma_v"]) == pytest.approx(3 / np.sqrt(3))
    flat = halo_table(ds.drop_vars(["z", "vz"]), np.zeros(100, int)).isel(cluster=0)
    assert float(flat["sigma_v"]) == pytest.approx(3 / np.sqrt(2))
    assert float(flat["jz"]) == pytest.approx(6.0)
    assert "jx" not in flat
    assert "c_to_a" not in flat


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_types(dtype: Any) -> None:
    ds = halos(300, 30)
    ds = ds.assign({name: ds[name].astype(dtype) for name in ds if name != "label"})
    table = halo_table(folded(ds), ds["label"].values.astype(np.int16), G=G)
    wide = ds.assign({name: ds[name].astype(np.float64) for name in ds if name != "label"})
    assert_is(table, by_loop(wide, 30, gravity=G), 1e-5 if dtype == np.float32 else 1e-12)
    assert {table[name].dtype for name in table} == {np.dtype(np.int64), np.dtype(np.float64)}
    assert list(table)[:3] == ["size", "mass", "x"]


def test_units() -> None:
    ds = folded(halos(50, 5))
    units = {"x": "kpc/h", "y": "kpc/h", "z": "kpc/h", "vx": "km/s", "vy": "km/s", "vz": "km/s", "mass": "1e10 Msun/h"}
    for name, unit in units.items():
        ds[name].attrs["units"] = unit
    table = halo_table(ds, G=G)
    expected = units | {"size": "1", "r_rms": "kpc/h", "r_max": "kpc/h", "sigma_v": "km/s", "spin": "1", "b_to_a": "1"}
    expected |= {"jx": "kpc/h km/s", "jz": "kpc/h km/s", "c_to_a": "1"}
    assert {name: table[name].attrs.get("units") for name in expected} == expected
    assert halo_table(ds, mass=None)["mass"].attrs["units"] == "1"
    assert halo_table(halos(50, 5))["mass"].attrs == {}


def test_names_of_variables() -> None:
    ds = folded(halos(50, 5))
    other = ds.rename(vx="ux", vy="uy", vz="uz", mass="weight")
    xr.testing.assert_identical(halo_table(other, velocities=("ux", "uy", "uz"), mass="weight"), halo_table(ds))
    without = halo_table(ds, velocities=None)
    assert "vx" not in without
    assert "sigma_v" not in without
    assert "vx" not in halo_table(ds.drop_vars("vy"))
    xr.testing.assert_identical(halo_table(ds.set_coords(["x", "mass"]), ds["label"]), halo_table(ds))


@pytest.mark.parametrize("order", ["sorted", "any"])
def test_threads_change_nothing(monkeypatch: Any, order: str) -> None:
    monkeypatch.setattr(_halos, "_BLOCK", 64)
    ds = folded(halos(20_000, 3000, 1))
    ds = ds if order == "any" else ds.isel(particle=np.argsort(ds["label"].values, kind="stable"))
    tables = by_threads(lambda: halo_table(ds, G=G))
    xr.testing.assert_identical(*tables)


def test_a_chunk_gets_only_its_halos() -> None:
    with ranges_of(10):
        table = halo_table(folded(halos(300, 40)).chunk(particle=60), n_clusters=40)
    graph = dict(dask.optimize(table["x"].data)[0].__dask_graph__())
    needs = {key: task.dependencies for key, task in graph.items() if hasattr(task, "dependencies")}
    positions = [key for key in needs if str(key[0]).startswith("xarray-x-")]
    passes = {key for key, names in needs.items() if names & set(positions)}
    assert (len(positions), len(passes)) == (5, 10)
    merged = {key for key in needs if "merge-aggregate" in key[0] and "finish" not in key[0]}
    assert merged
    assert [key for key in passes if needs[key] & merged] == [], "not all of the merged table"


@pytest.mark.parametrize(
    ("change", "kwargs", "message"),
    [
        ({}, {"mass": "weight"}, "mass: the Dataset has no variable 'weight'"),
        (
            {},
            {"velocities": ("vx", "vy")},
            r"velocities must name one variable for each of x, y, z, got \('vx', 'vy'\)",
        ),
        ({}, {"boxsize": -1.0}, "boxsize must be finite and not negative, got -1.0"),
        ({}, {"boxsize": (1.0, 2.0)}, r"boxsize must be a length, or one for each of x, y, z, got \(1.0, 2.0\)"),
        ({}, {"G": 0.0}, "G must be finite and positive, got 0.0"),
        ({}, {"G": 1.0, "velocities": None}, "G=1.0: the spin needs x, y, z and velocities; leave it out"),
        ({"z": np.nan}, {}, "z must be finite, got nan at index 7"),
        ({"mass": -1.0}, {}, "mass must not be negative, got -1.0 at index 7"),
        ({"label": -1, "x": -np.inf}, {}, "x must be finite, got -inf at index 7"),
    ],
)
@pytest.mark.parametrize("chunks", [None, 6])
def test_wrong_input(change: dict[str, Any], kwargs: dict[str, Any], message: str, chunks: int | None) -> None:
    ds = halos(20, 4, 3)
    for name, value in change.items():
        ds[name][7] = value
    with pytest.raises(ValueError, match=message):
        halo_table(ds if chunks is None else ds.chunk(particle=chunks), **kwargs).compute()
