"""Pictures of particles and halos: every particle is in them, circles are where halos are, bars hold all halos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.elements import options, save_all
from cases.lanes import quick_first, some_of
from scipy.stats import poisson

from daskclust import plot, properties

L = 50.0


@pytest.fixture(scope="module")
def particles() -> xr.Dataset:
    """Return 20 000 particles of 300 halos in a box."""
    rng = np.random.default_rng(0)
    label = rng.integers(-1, 300, 20_000) * rng.integers(0, 2, 20_000)
    positions = (rng.uniform(0, L, (301, 3))[label] + rng.normal(0, 0.5, (20_000, 3))) % L
    columns = {name: ("particle", positions[:, axis], {"units": "Mpc/h"}) for axis, name in enumerate("xyz")}
    columns |= {"mass": ("particle", rng.exponential(1.0, 20_000), {"units": "1e10 Msun/h"})}
    return xr.Dataset(columns, attrs={"boxsize": L}).assign(label=("particle", label))


@pytest.fixture(scope="module")
def table(particles: xr.Dataset) -> xr.Dataset:
    return properties.halo_table(particles)


# -------------------------------------------------------------------------------------------------------------- density
@some_of(3, chunks=[None, 3000], weight=[None, "mass"], axes=[("x", "y"), ("z", "x")])
def test_density_has_every_particle(
    particles: xr.Dataset, axes: tuple[str, str], weight: str | None, chunks: int | None
) -> None:
    ds = particles if chunks is None else particles.chunk(particle=chunks)
    image = plot.projected_density(ds, axes, weight=weight, pixels=100)
    assert image.bounds.lbrt() == (0, 0, L, L)
    a, b = (particles[name].values for name in axes)
    weights = None if weight is None else particles[weight].values
    expected = np.histogram2d(b, a, bins=100, range=[(0, L), (0, L)], weights=weights)[0]
    density = np.nan_to_num(image.dimension_values("density", flat=False))
    np.testing.assert_allclose(density * 0.25, expected, rtol=1e-12)
    assert options(image)["cnorm"] == "log"
    assert options(image)["title"] == "20,000 particles"
    assert [kdim.pprint_label for kdim in image.kdims] == [f"{name} (Mpc/h)" for name in axes]
    what = "particles" if weight is None else "1e10 Msun/h of mass"
    assert image.vdims[0].pprint_label == f"{what} per (Mpc/h)²"


def test_density_without_a_box(particles: xr.Dataset) -> None:
    ds = (
        particles.assign_attrs(boxsize=0.0)
        .assign(x=particles["x"].copy(data=particles["x"].values * 2.0))
        .chunk(particle=7000)
    )
    image = plot.projected_density(ds, pixels=64)
    density = image.dimension_values("density", flat=False)
    assert density.shape == (32, 64)
    left, low, right, high = image.bounds.lbrt()
    assert (left, right) == (ds["x"].min(), ds["x"].max())
    assert np.nansum(density) * (right - left) / 64 * (high - low) / 32 == pytest.approx(20_000)
    assert image.vdims[0].pprint_label == "particles per (Mpc/h)²"
    bare = plot.projected_density(ds.drop_attrs(), weight="mass").vdims[0].pprint_label
    assert bare == "mass per area"


def test_density_folds_images_into_the_box(particles: xr.Dataset) -> None:
    far = particles.assign(x=particles["x"].variable - 3 * L)
    a, b = (plot.projected_density(ds, pixels=50).dimension_values("density") for ds in (far, particles))
    assert np.nansum(a) == pytest.approx(np.nansum(b))


@pytest.mark.parametrize("n", quick_first([1, 0]))
def test_hardly_any_particles(particles: xr.Dataset, n: int, tmp_path: Path) -> None:
    few = particles.isel(particle=slice(0, n)).assign(label=("particle", np.zeros(n, int)))
    rows = properties.halo_table(few)
    density, is_open = plot.projected_density(few), plot.projected_density(few.drop_attrs())
    save_all((density, is_open, density * plot.halo_circles(rows), plot.mass_function(rows)), tmp_path)


# -------------------------------------------------------------------------------------------------------------- circles
def test_circles_are_where_halos_are(table: xr.Dataset) -> None:
    lines = plot.halo_circles(table.drop_attrs(), ("z", "y"), radius="r_rms")
    paths = lines.split(datatype="dictionary")
    assert len(paths) == 300
    assert sorted(path["cluster"] for path in paths) == list(range(300))
    for path in paths:
        row = table.isel(cluster=path["cluster"])
        distance = np.hypot(np.asarray(path["z"]) - float(row["z"]), np.asarray(path["y"]) - float(row["y"]))
        np.testing.assert_allclose(distance, row["r_rms"])
        assert path["mass"] == row["mass"]


@pytest.mark.parametrize("told", [{"boxsize_units": "kpc/h", "boxsize": 1000 * L}, {"boxsize": L}])
def test_boxes_have_a_unit_of_their_own(particles: xr.Dataset, table: xr.Dataset, told: dict[str, Any]) -> None:
    """The same box in another unit gives the same pictures."""
    ds, rows = (each.drop_attrs(deep=False).assign_attrs(told) for each in (particles, table))
    image, expected = (plot.projected_density(each, ("z", "x"), pixels=20) for each in (ds, particles))
    assert image.bounds.lbrt() == (0, 0, L, L)
    np.testing.assert_array_equal(image.dimension_values("density"), expected.dimension_values("density"))
    assert options(plot.halo_circles(rows))["xlim"] == (0.0, L)
    circles, wanted = (plot.halo_circles(each).split(datatype="dictionary") for each in (rows, table))
    assert len(circles) == len(wanted) > 300
    numbers = [plot.mass_function(each).get(1).dimension_values("number") for each in (rows, table)]
    np.testing.assert_allclose(*numbers)
    across = ds.assign(y=ds["y"].copy(data=ds["y"].values * 1000).assign_attrs(units="kpc/h"))
    assert plot.projected_density(across, pixels=20).bounds.lbrt() == (0, 0, L, 1000 * L)
    moving = ds.assign(vx=ds["x"].copy(data=ds["x"].values * 9).assign_attrs(units="km/s"))
    assert plot.projected_density(moving, ("x", "vx"), pixels=20).bounds.lbrt()[1] > 0, "velocities have no box"


def test_circles_across_faces_are_on_both_sides() -> None:
    columns = {"x": [0.5, 5.0, 0.5, 9.9], "y": [0.5, 5.0, 5.0, 5.0], "r_max": [1.0, 2.0, 1.0, 0.05]}
    corner = xr.Dataset({name: ("cluster", values) for name, values in columns.items()}, attrs={"boxsize": [10.0] * 3})
    paths = plot.halo_circles(corner).split(datatype="dictionary")
    centres = sorted((path["cluster"], np.mean(path["x"][:-1]), np.mean(path["y"][:-1])) for path in paths)
    expected = [(0, 0.5, 0.5), (0, 0.5, 10.5), (0, 10.5, 0.5), (0, 10.5, 10.5), (1, 5, 5), (2, 0.5, 5), (2, 10.5, 5)]
    np.testing.assert_allclose(centres, [*expected, (3, 9.9, 5)])
    halfway = plot.halo_circles(corner.assign_attrs(boxsize=[10.0, 0.0, 0.0]))
    assert len(halfway.split(datatype="dictionary")) == 6


def test_the_heaviest_are_drawn(table: xr.Dataset) -> None:
    paths = plot.halo_circles(table.drop_attrs(), most=7).split(datatype="dictionary")
    heaviest = np.argsort(-table["mass"].values)[:7]
    assert {path["cluster"] for path in paths} == set(heaviest.tolist())
    missing = table.drop_attrs().where(table["cluster"] != heaviest[0])
    numbers = {path["cluster"] for path in plot.halo_circles(missing, most=7).split(datatype="dictionary")}
    assert numbers == set(np.argsort(-table["mass"].values)[1:8].tolist())


# --------------------------------------------------------------------------------------------------------------- masses
@pytest.mark.parametrize("bins", [1, 5, 20])
def test_mass_function_counts_every_halo(table: xr.Dataset, bins: int) -> None:
    picture = plot.mass_function(table, bins=bins)
    bars, dots = picture.get(0), picture.get(1)
    mass = table["mass"].values
    edges = np.geomspace(mass.min(), mass.max(), bins + 1)
    dex, volume = np.diff(np.log10(edges))[0], L**3
    number = np.histogram(mass.clip(edges[0], edges[-1]), edges)[0]
    assert number.sum() == 300
    seen = number[number > 0]
    np.testing.assert_allclose(dots.dimension_values("number") * dex * volume, seen)
    np.testing.assert_allclose(dots.dimension_values("mass"), np.sqrt(edges[1:] * edges[:-1])[number > 0])
    low = (bars.dimension_values("number") - bars.dimension_values("below")) * dex * volume
    high = (bars.dimension_values("number") + bars.dimension_values("above")) * dex * volume
    np.testing.assert_allclose(poisson.sf(seen - 1, low), 0.158655, rtol=1e-5)
    np.testing.assert_allclose(poisson.cdf(seen, high), 0.158655, rtol=1e-5)
    assert dots.kdims[0].pprint_label == "mass (1e10 Msun/h)"
    assert dots.vdims[0].pprint_label == "halos per dex per (Mpc/h)³"
    for backend in ("bokeh", "matplotlib"):
        assert options(picture, backend)["logx"]
        assert options(picture, backend)["logy"]
        assert options(picture, backend)["title"] == "300 halos"


def test_mass_function_by_volume_or_not(table: xr.Dataset) -> None:
    def numbers(**kwargs: Any) -> Any:
        return plot.mass_function(kwargs.pop("of", table), **kwargs).get(1).dimension_values("number")

    plain = numbers(boxsize=None)
    np.testing.assert_allclose(numbers() * L**3, plain)
    np.testing.assert_allclose(numbers(boxsize=10.0) * 1000, plain)
    np.testing.assert_allclose(numbers(boxsize=(1.0, 2.0, 4.0)) * 8, plain)
    np.testing.assert_allclose(numbers(of=table.drop_attrs()), plain)
    np.testing.assert_allclose(numbers(of=table.assign_attrs(boxsize=[L, L, 0.0])), plain)
    np.testing.assert_allclose(numbers(of=table.drop_vars("z")) * L**2, plain)
    assert plot.mass_function(table.chunk(cluster=100)).get(1).vdims[0].pprint_label.endswith("per (Mpc/h)³")


def test_halos_without_mass_are_told() -> None:
    few = xr.Dataset({"mass": ("cluster", [0.0, np.nan, 2.0, 4.0])})
    assert options(plot.mass_function(few))["title"] == "2 halos, 1 without mass, 1 of no mass"
