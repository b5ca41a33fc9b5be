"""Opening and writing particles of simulations."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr
from cases.clue import raise_if_dask_computes
from cases.files.particles import positions, refused, sample

from daskclust import datasets
from daskclust.io import linking_length, open_particles, write_particles

SUFFIXES = (".hdf5", ".parquet", ".zarr")


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    np.save(tmp_path / "points.npy", np.zeros((10, 3)))
    ds = open_particles(tmp_path / "points.npy")
    np.save(tmp_path / "points.npy", np.zeros((5, 3)))
    with pytest.raises(
        ValueError, match=r"points\.npy have shape \(5, 3\), expected .* has changed since it was opened"
    ):
        ds["x"].compute()
    assert open_particles(tmp_path / "points.npy")["x"].data.name != ds["x"].data.name


# Other formats


def test_numpy_arrays(tmp_path: Path) -> None:
    path = tmp_path / "points.npy"
    for d, names in [(1, "x"), (2, "x y"), (3, "x y z"), (6, "x y z vx vy vz"), (7, "x y z vx vy vz mass")]:
        X = np.asfortranarray(np.random.default_rng(d).random((11, d)))
        np.save(path, X)
        with raise_if_dask_computes():
            ds = open_particles(path, chunks=4)
        assert list(ds) == names.split()
        assert ds.chunks == {"particle": (4, 4, 3)}
        for values, name in zip(X.T, ds, strict=True):
            np.testing.assert_array_equal(ds[name], values)
        xr.testing.assert_identical(ds.compute(), open_particles(path, chunks=None))
    names = ["a", "b", "x", "c", "d", "e", "y"]
    assert list(open_particles(path, columns=names)) == names
    np.save(path, np.arange(12, dtype=">u2").reshape(4, 3))
    for chunks in (None, 3):
        ds = open_particles(path, chunks=chunks)
        assert ds["y"].dtype == np.float64
        np.testing.assert_array_equal(ds["y"], [1, 4, 7, 10])
    np.save(path, np.arange(4.0))
    np.testing.assert_array_equal(open_particles(path)["x"], np.arange(4.0))
    table = np.zeros(3, dtype=[("pos_x", "f4"), ("y", "f4"), ("tag", "i2"), ("many", "f4", 2)])
    table["y"] = [1, 2, 3]
    np.save(path, table)
    ds = open_particles(path, columns={"many": None}, chunks=2)
    np.testing.assert_array_equal(ds["y"], [1, 2, 3])
    assert list(ds) == ["x", "y", "tag"]
    refused(r"column 'many' of .* has shape \(3, 2\) .* no column of numbers; leave it out", path)


def test_real_positions(shared_data: Path, tmp_path: Path) -> None:
    X = np.fromfile(shared_data / "halos" / "cosmo32768.dat", np.uint16).reshape(-1, 3) / np.float32(65536)
    for suffix in SUFFIXES:
        ds = xr.Dataset({axis: ("particle", X[:, k]) for k, axis in enumerate("xyz")}, attrs={"boxsize": 1.0})
        write_particles(ds, tmp_path / f"cosmo{suffix}")
        again = open_particles(tmp_path / f"cosmo{suffix}", boxsize=1.0, chunks=10_000)
        np.testing.assert_array_equal(positions(again), X)
        assert linking_length(again) == pytest.approx(0.2 / 32)


def test_arborx(tmp_path: Path) -> None:
    X = np.random.default_rng(0).random((9, 3)).astype("<f4")
    content = np.array(X.shape, "<i4").tobytes() + X.tobytes()
    for suffix in (".arborx", ".bin"):
        path = tmp_path / f"hacc{suffix}"
        path.write_bytes(content)
        for chunks in (None, 1, 4, "auto"):
            np.testing.assert_array_equal(positions(open_particles(path, chunks=chunks)), X)
    for damaged in (content[:-1], content + b"\0", content[:5], b"\xff" * len(content)):
        path.write_bytes(damaged)
        refused(rf"has {len(damaged)} bytes; as an ArborX file .*: it is cut, or", path)
    path.write_bytes(np.array([2, 4], "<i4").tobytes() + np.arange(8, dtype="<f4").tobytes())
    refused(r"has 4 coordinates for each point; name them with columns=\[\.\.\.\]", path)
    np.testing.assert_array_equal(open_particles(path, columns=["x", "y", "z", "w"])["w"], [3, 7])


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_stores(tmp_path: Path, zarr_format: int) -> None:
    X = np.random.default_rng(0).random((10, 3), np.float32)
    zarr.create_array(tmp_path / "array.zarr", data=X, chunks=(4, 2), zarr_format=zarr_format)
    group = zarr.open_group(tmp_path / "snapshot", mode="w", zarr_format=zarr_format)
    group.attrs.update({"boxsize": 1.0, "redshift": 0.5, "nested": {"a": 1}})
    for name, values in {"Coordinates": X, "Velocities": -X, "Masses": X[:, 0], "ParticleIDs": np.arange(10)}.items():
        array = group.create_array(name, data=values, chunks=(4, *values.shape[1:]))
        if name == "Masses":
            array.attrs["units"] = "Msun"
    for chunks in (None, 3, "auto"):
        with raise_if_dask_computes():
            ds = open_particles(tmp_path / "array.zarr", chunks=chunks)
            named = open_particles(tmp_path / "snapshot", chunks=chunks)
        np.testing.assert_array_equal(positions(ds), X)
        np.testing.assert_array_equal(positions(named), X)
        np.testing.assert_array_equal(named["vz"], -X[:, 2])
        assert set(named) == {"x", "y", "z", "vx", "vy", "vz", "mass", "id"}
        assert named["mass"].attrs["units"] == "Msun"
        assert (named.attrs["boxsize"], named.attrs["redshift"], "nested" in named.attrs) == (1.0, 0.5, False)


def test_zarr_stores_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.zarr"
    write_particles(sample(5), path)
    shutil.rmtree(path / "y" / "c")
    refused(r"y has no chunk of rows 0 to 4 \(counted from 0\)", path, chunks=None)
    (path / "y" / "zarr.json").write_text("{}")
    refused("cannot be read as a zarr file", path)
    (path / "zarr.json").unlink()
    refused(r"is not a zarr store: it has none of zarr.json", path)
    group = zarr.open_group(path, mode="w")
    group.create_array("x", shape=(3,), dtype="f4")[:] = 1
    group.create_array("y", shape=(4,), dtype="f4")[:] = 1
    refused("unequal lengths", path)


# Writing


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("lazy", [False, True])
def test_all_that_is_written_is_read(tmp_path: Path, suffix: str, lazy: bool) -> None:
    ds = sample(23, redshift=0.0, scale_factor=1.0, hubble=0.7, run="test", sides=[1, 2])
    path = tmp_path / f"snap{suffix}"
    write_particles(ds.chunk(particle=(7, 1, 15)) if lazy else ds, path)
    for chunks in (None, 10):
        again = open_particles(path, chunks=chunks)
        for name in ds:
            xr.testing.assert_equal(again[name], ds[name])
            assert again[name].dtype == ds[name].dtype
            assert again[name].attrs == ds[name].attrs
        assert set(again) == set(ds)
        own = {"source": str(path)} | ({"particle_type": 1} if suffix == ".hdf5" else {})
        assert again.attrs == {**ds.attrs, **own}
    if suffix == ".zarr":
        with xr.open_zarr(path, consolidated=False) as opened:
            xr.testing.assert_equal(opened, ds)
    write_particles(again, path)  # over itself
    assert open_particles(path).sizes == {"particle": 23}
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_particles_and_few_axes(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"snap{suffix}"
    ds = sample()[["x", "y", "z"]]
    if suffix != ".hdf5":
        write_particles(ds.isel(particle=slice(0)), path)
        for chunks in (None, "auto"):
            assert open_particles(path, chunks=chunks).compute().sizes == {"particle": 0}
        write_particles(ds[["x", "y"]], path)
        again = open_particles(path, boxsize=[50, 25])
        np.testing.assert_array_equal(again["y"], ds["y"])
        assert again.attrs["boxsize"] == [50.0, 25.0]
        return
    write_particles(ds.isel(particle=slice(0)), path)
    refused("no particles of type 1", path)
    with pytest.raises(ValueError, match=r"needs Coordinates of 3 columns; the Dataset has no 'z'"):
        write_particles(ds[["x", "y"]], path)


# Linking lengths


def test_linking_length() -> None:
    ds = sample(1000)
    assert linking_length(ds) == pytest.approx(0.2 * 5)
    assert linking_length(ds.chunk(), 0.168) == pytest.approx(0.84)
    sides = ds.assign_attrs(boxsize=[1.0, 2.0, 4.0])
    assert linking_length(sides, 1) == pytest.approx((8 / 1000) ** (1 / 3))
    assert linking_length(ds[["x", "y"]], 1) == pytest.approx((2500 / 1000) ** 0.5)
    with pytest.raises(ValueError, match=r"no attrs\['boxsize'\]; give it with"):
        linking_length(ds.drop_attrs())


def test_stores_changed_in_place_are_read_anew(tmp_path):
    path = tmp_path / "box.zarr"
    write_particles(xr.Dataset({name: ("particle", np.arange(4.0)) for name in "xyz"}), path)
    before = open_particles(path)["x"].data.name
    assert open_particles(path)["x"].data.name == before
    zarr.open_group(path, mode="r+")["x"][:] = 7.0
    assert open_particles(path)["x"].data.name != before


@pytest.mark.parametrize("suffix", [".hdf5", ".parquet"])
def test_a_unit_for_one_axis_alone(tmp_path: Path, suffix: str) -> None:
    """All positions of a file are in one unit: another one for x alone would stretch them along it."""
    box = datasets.cosmology_box(30, rng=0).drop_vars("halo")
    write_particles(box, path := tmp_path / f"box{suffix}")
    with pytest.raises(ValueError, match=r"x, y, z of .* are all in 'Mpc/h', and units names 'Gpc/h' for x alone"):
        open_particles(path, units={"x": "Gpc/h"})
    xr.testing.assert_equal(open_particles(path, units={"x": "Mpc/h"}), open_particles(path))
    same = open_particles(path, units={"length": "Gpc/h"})
    assert [same[axis].attrs["units"] for axis in "xyz"] == ["Gpc/h"] * 3
