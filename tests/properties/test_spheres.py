"""Spheres of a given density against a loop over halos, NFW halos, and colossus; chunks change no bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.lanes import some_of
from colossus.cosmology import cosmology
from colossus.halo import mass_defs

from daskclust.datasets import cosmology_box
from daskclust.properties import spherical_overdensity

UNITS = {"x": "Mpc/h", "y": "Mpc/h", "z": "Mpc/h", "mass": "Msun/h"}
OMEGA_M, CRITICAL = 0.3, 2.77536627e11


def universe(z: float = 0.0) -> Any:
    """Return colossus' flat universe, without radiation; nothing is written to the user's folder."""
    told = {"flat": True, "H0": 70.0, "Om0": OMEGA_M, "Ob0": 0.05, "sigma8": 0.8, "ns": 0.96, "relspecies": False}
    return cosmology.setCosmology(f"of tests {z}", persistence="", params=told)


def particles(X: np.ndarray, mass: Any, **attrs: Any) -> xr.Dataset:
    columns = dict(zip("xyz", X.T, strict=True)) | {"mass": np.broadcast_to(mass, len(X)).copy()}
    ds = xr.Dataset({name: ("particle", each, {"units": UNITS[name]}) for name, each in columns.items()})
    return ds.assign_attrs(omega_m=OMEGA_M, **attrs)


def nfw(n: int, c: float, mass: float, density: float, rng: int = 0) -> np.ndarray:
    """Return n particles, of which each shell has its share: c and the mass are those within a mean density."""
    radius = np.cbrt(3 * mass / (4 * np.pi * density))
    r = np.geomspace(1e-5, 4, 100_001) * radius
    inside = np.log1p(c * r / radius) - c * r / radius / (1 + c * r / radius)
    radii = np.interp((np.arange(n) + 0.5) / n * inside[-1], inside, r)
    way = np.random.default_rng(rng).normal(size=(n, 3))
    return radii[:, None] * way / np.linalg.norm(way, axis=1)[:, None]


def sampled(X: np.ndarray, mass: float, **attrs: Any) -> xr.Dataset:
    """Return particles with 17 more in the centre, which have no mass: the densest point."""
    return particles(np.concatenate([X, np.zeros((17, 3)) + attrs.get("boxsize", 0.0) * 0.995]), 0.0, **attrs).assign(
        mass=("particle", np.append(np.full(len(X), mass), np.zeros(17)), {"units": "Msun/h"})
    )


def by_loop(ds: xr.Dataset, box: float | None, factors: dict[str, float]) -> dict[str, np.ndarray]:
    """Return the table by distances to all particles."""
    X, m, labels = np.stack([ds[a].values for a in "xyz"], axis=1), ds["mass"].values, ds["label"].values
    rows: list[dict[str, float]] = []

    def away(a: Any, b: Any) -> Any:
        d = np.abs(a - b)
        return np.sqrt((np.minimum(d, box - d) ** 2 if box else d**2).sum(axis=-1))

    for halo in range(labels.max() + 1):
        mine, own = X[labels == halo], m[labels == halo].sum()
        row = dict.fromkeys([f"{a}_peak" for a in "xyz"], np.nan)
        rows.append(row)
        if not len(mine):
            continue
        mine = mine[np.lexsort(mine.T[::-1])]
        near = np.sort(away(mine[:, None], mine[None]), axis=1)[:, min(16, len(mine) - 1)]
        centre = mine[near.argmin()]
        row |= dict(zip(row, centre, strict=True))
        r = away(X, centre)
        order = np.argsort(r)
        r, inside = r[order], np.cumsum(m[order])
        for name, density in factors.items():
            # the mean density just before the next particle is the lowest between the two
            before = inside[:-1] / (4 / 3 * np.pi * r[1:] ** 3)
            is_dense = np.append(False, inside[1:] / (4 / 3 * np.pi * r[1:] ** 3) >= density)
            is_dense[0] = True  # the centre is a particle
            allowed = r <= np.cbrt(3 * own / (4 * np.pi * density))
            first = int(np.argmax(is_dense & allowed))
            last = first + int(np.argmax(before[first:] < density))
            row[f"m_{name}"], row[f"r_{name}"] = inside[last], np.cbrt(3 * inside[last] / (4 * np.pi * density))
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in rows[0]}


def mean_density(factor: float) -> float:
    return factor * OMEGA_M * CRITICAL


@some_of(6, periodic=[True, False], chunks=[None, 700, 5000])
def test_spheres_equal_a_loop(periodic: bool, chunks: int | None) -> None:
    ds = cosmology_box(6000, filaments=0, rng=3).astype(np.float64).rename(halo="label")
    box = ds.attrs["boxsize"]
    labels = ds["label"].values.astype(int)
    labels[labels == 7] = -1  # a number without particles
    ds = ds.assign(label=("particle", labels))
    factors = {"200c": mean_density(200 / OMEGA_M), "200m": mean_density(200), "90.5m": mean_density(90.5)}
    expected = by_loop(ds, box if periodic else None, factors)
    given = ds if chunks is None else ds.chunk(particle=chunks)
    found = spherical_overdensity(given, definitions=tuple(factors), boxsize="auto" if periodic else None)
    assert set(expected) < set(found)
    assert np.isnan(found["m_200m"][7])
    for name, values in expected.items():
        np.testing.assert_allclose(found[name].values, values, rtol=1e-12, err_msg=name)


def test_chunks_and_images_of_the_box_change_no_bit() -> None:
    ds = cosmology_box(20_000, rng=1).astype(np.float64).rename(halo="label")
    ds["label"] = ds["label"].astype(int)
    expected = spherical_overdensity(ds)
    for chunks in (20_000, 3_333):
        xr.testing.assert_identical(spherical_overdensity(ds.chunk(particle=chunks)), expected)
    order = np.random.default_rng(0).permutation(20_000)
    xr.testing.assert_identical(spherical_overdensity(ds.isel(particle=order)), expected)


@pytest.mark.parametrize("c", [4.0, 12.0])
@pytest.mark.parametrize("z", [0.0, 1.5])
def test_nfw_halos_have_the_masses_of_colossus(c: float, z: float) -> None:
    """The shells have their share: one particle is how good a mass can be."""
    known, mass, n = universe(z), 1e14, 40_000
    radii = {}
    definitions = ("200c", "200m", "500c", "vir")
    m = {"200c": mass}
    for name in definitions:
        m[name], radii[name], _ = mass_defs.changeMassDefinition(mass, c, z, "200c", name)
    density = 200 * known.rho_c(z) * 1e9 / (1 + z) ** 3  # comoving, from kpc to Mpc
    X = nfw(n, c, mass, density)
    total = (np.log1p(4 * c) - 4 * c / (1 + 4 * c)) / (np.log1p(c) - c / (1 + c)) * mass
    box = 20.0
    ds = sampled((X + 0.995 * box) % box, total / n, boxsize=box, redshift=z)
    found = spherical_overdensity(ds, np.zeros(n + 17, int), definitions=definitions).isel(cluster=0)
    one = spherical_overdensity(ds, np.zeros(n + 17, int), definitions="200c").isel(cluster=0)
    assert one.identical(found[list(one.variables)])
    for name in definitions:
        allowed = 4 * total / n / m[name]  # four particles; a mass moves the radius, which moves the mass
        assert float(found[f"m_{name}"]) == pytest.approx(m[name], rel=allowed), name
        assert float(found[f"r_{name}"]) == pytest.approx(radii[name] / 1000 * (1 + z), rel=allowed), name


def test_velocity_and_concentration_of_nfw_halos() -> None:
    c, mass, n = 10.0, 1e13, 100_000
    density = 200 * CRITICAL
    X = nfw(n, c, mass, density)
    total = (np.log1p(4 * c) - 4 * c / (1 + 4 * c)) / (np.log1p(c) - c / (1 + c)) * mass
    found = spherical_overdensity(sampled(X, total / n), np.zeros(n + 17, int)).isel(cluster=0)
    radius = np.cbrt(3 * mass / (4 * np.pi * density))
    at_radius = np.sqrt(4.30091727e-9 * mass / radius)
    turn = 2.1625815870646106
    ratio = np.sqrt((np.log1p(turn) - turn / (1 + turn)) / turn / ((np.log1p(c) - c / (1 + c)) / c))
    assert float(found["v_max"]) == pytest.approx(at_radius * ratio, rel=1e-4)
    assert float(found["r_v_max"]) == pytest.approx(turn / c * radius, rel=0.02)  # the curve is flat there
    assert float(found["concentration"]) == pytest.approx(c, rel=1e-3)


def test_units_and_expansion() -> None:
    """kpc with h known are 1000 / h of Mpc/h; comoving densities of 200m are the same at any redshift."""
    ds = cosmology_box(5000, rng=1)
    ds = ds.astype(np.float64).assign(halo=ds["halo"])
    first = spherical_overdensity(ds, "halo", definitions=("200m", "200c"))
    other = ds.assign({a: ("particle", ds[a].values / 0.7 * 1000, {"units": "kpc"}) for a in "xyz"})
    other["mass"] = ("particle", ds["mass"].values / 0.7 / 1e10, {"units": "1e10 Msun"})
    other = other.assign_attrs(hubble=0.7)  # the box has a unit of its own
    again = spherical_overdensity(other, "halo", definitions=("200m", "200c"))
    assert again["r_200m"].attrs["units"] == "kpc"
    np.testing.assert_allclose(again["m_200c"] * 0.7 * 1e10, first["m_200c"], rtol=1e-9)
    np.testing.assert_allclose(again["v_max"], first["v_max"], rtol=1e-9)
    later = spherical_overdensity(ds.assign_attrs(redshift=1.0), "halo", definitions=("200m", "200c"))
    np.testing.assert_allclose(later["m_200m"], first["m_200m"], rtol=1e-12)
    assert float((later["m_200c"] / first["m_200c"]).mean()) > 1  # the universe was denser
    with pytest.raises(ValueError, match="hubble"):
        spherical_overdensity(other.assign_attrs(hubble=None), "halo")


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({"omega_m": None}, {}, "omega_m"),
        ({}, {"definitions": ("200x",)}, "'200x'"),
        ({}, {"definitions": ("0c",)}, "definitions"),
        ({}, {"definitions": ()}, "at least one"),
        ({}, {"definitions": ("vir", "vir")}, "different"),
        ({}, {"mass": "m"}, "mass"),
    ],
)
def test_what_is_wrong_is_told(change: dict[str, Any], options: dict[str, Any], words: str) -> None:
    ds = cosmology_box(100, rng=0)
    ds.attrs = {name: value for name, value in {**ds.attrs, **change}.items() if value is not None}
    with pytest.raises(ValueError, match=words):
        spherical_overdensity(ds, "halo", **options)


def test_nothing_and_noise() -> None:
    ds = cosmology_box(100, rng=0)
    for given in (ds, ds.chunk(particle=30), ds.isel(particle=slice(0)), ds.isel(particle=slice(0)).chunk()):
        found = spherical_overdensity(given, np.full(given.sizes["particle"], -1))
        assert found.sizes["cluster"] == 0
    heavy = ds.assign(mass=ds["mass"] * 1e9)  # a sphere that is larger than the box
    assert np.isnan(spherical_overdensity(heavy, np.zeros(100, int))["m_200m"][0])
