"""Snapshots of simulations: all that the codes write is read, and what is wrong with files is told."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import dask
import h5py
import numpy as np
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes
from cases.files.particles import positions, refused, sample, write_gadget2, write_snapshot

from daskclust.io import open_particles, write_particles


@pytest.mark.parametrize("chunks", [None, "auto", 1, 4, 5, 100])
def test_gadget2_of_several_files(tmp_path: Path, chunks: Any) -> None:
    dm = write_gadget2(tmp_path)
    with raise_if_dask_computes():
        ds = open_particles(tmp_path / "snap_005.2.hdf5", chunks=chunks)
    assert list(ds) == ["x", "y", "z", "vx", "vy", "vz", "id", "mass"]
    assert ds.sizes == {"particle": 14}
    assert (ds.chunks == {}) == (chunks is None)
    if isinstance(chunks, int):
        assert max(ds.chunks["particle"]) <= chunks
    np.testing.assert_array_equal(positions(ds), dm["Coordinates"])
    # Gadget has velocities divided by the square root of the scale factor.
    np.testing.assert_array_equal(ds["vy"], dm["Velocities"][:, 1] * np.float32(0.5))
    np.testing.assert_array_equal(ds["id"], dm["ParticleIDs"])
    np.testing.assert_array_equal(ds["mass"], np.full(14, 1.5))
    assert [str(ds[v].dtype) for v in ("x", "vx", "id", "mass")] == ["float32", "float32", "uint32", "float64"]
    assert "units" not in ds["x"].attrs
    assert ds.attrs == {
        "boxsize": 1000.0, "redshift": 3.0, "scale_factor": 0.25, "hubble": 0.7, "omega_m": 0.3, "omega_lambda": 0.7,
        "particle_type": 1, "field": "particles", "source": str(tmp_path / "snap_005.2.hdf5"),
    }  # fmt: skip


def test_types_and_arrays_of_a_snapshot(tmp_path: Path) -> None:
    write_gadget2(tmp_path)
    path = tmp_path / "snap_005.0.hdf5"
    gas = open_particles(path, particle_type="gas", columns={"InternalEnergy": "u", "Acceleration": "a"})
    assert list(gas) == ["x", "y", "z", "mass", "ax", "ay", "az", "u"]
    np.testing.assert_array_equal(gas["mass"], [0.5, 0.25, 0.5, 1.25, 0.5, 2.25])
    np.testing.assert_array_equal(gas["ay"], np.full(6, 2.0))
    xr.testing.assert_identical(gas["x"].compute(), open_particles(path, particle_type=0, chunks=None)["x"])
    assert list(open_particles(path, columns={"Velocities": None, "Masses": None})) == ["x", "y", "z", "id"]
    assert list(open_particles(path, columns={"ParticleIDs": "number", "*": None})) == ["x", "y", "z", "number"]
    units = {"length": "kpc/h", "mass": "1e10 Msun/h", "vx": "km/s"}
    named = open_particles(path, units=units)
    found = [named[v].attrs.get("units") for v in ("x", "z", "vx", "vy", "mass")]
    assert found == ["kpc/h", "kpc/h", "km/s", None, "1e10 Msun/h"]


def test_high_words_and_runs_without_expansion(tmp_path: Path) -> None:
    high = np.array([0, 1, 0, 0, 0, 0], np.uint32)
    write_gadget2(tmp_path, 1, NumPart_Total_HighWord=high)
    refused(rf"have 4 particles of type 1, and its NumPart_Total says {4 + 2**32}", tmp_path / "snap_005.0.hdf5")
    dm = write_gadget2(tmp_path, 1, Time=2.5, Redshift=0.0, BoxSize=0.0)
    ds = open_particles(tmp_path / "snap_005.0.hdf5")
    np.testing.assert_array_equal(ds["vx"], dm["Velocities"][:, 0])
    assert ds.attrs["time"] == 2.5
    assert not {"boxsize", "redshift", "scale_factor"} & set(ds.attrs)
    assert open_particles(tmp_path / "snap_005.0.hdf5", boxsize=7).attrs["boxsize"] == 7.0


def test_swift(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    coordinates, velocities = rng.random((6, 3)) * [100, 50, 25], rng.normal(size=(6, 3)).astype(np.float32)
    path = tmp_path / "swift_0010.hdf5"
    header = {
        "BoxSize": [100.0, 50.0, 25.0], "Code": np.bytes_("SWIFT"), "NumFilesPerSnapshot": np.array([1], np.int32),
        "NumPart_ThisFile": np.array([0, 6, 0, 0, 0, 0, 0]), "MassTable": np.zeros(7),
        "NumPart_Total": np.array([0, 6, 0, 0, 0, 0, 0], np.uint32), "NumPart_Total_HighWord": np.zeros(7, np.uint32),
        "Redshift": [1.0], "Scale-factor": [0.5], "Time": [0.006],
    }  # fmt: skip
    sizes = {"U_L": ("length", 3.08567758e24), "U_M": ("mass", 1.98841e43), "U_t": ("time", 3.08567758e19)}
    units = {f"Unit {name} in cgs ({symbol})": [size] for symbol, (name, size) in sizes.items()}
    cosmology = {"h": [0.681], "Omega_m": [0.306], "Omega_lambda": [0.694]}
    write_snapshot(path, {}, Header=header, Cosmology=cosmology, Units=units)
    with h5py.File(path, "a") as file:
        group = file.create_group("PartType1")
        for name, values, size in [
            ("Coordinates", coordinates, 3.08567758e24),
            ("Velocities", velocities, None),
            ("Masses", np.full(6, 0.5, np.float32), 1.98841e43),
            ("ParticleIDs", np.arange(6), None),
        ]:
            data = group.create_dataset(name, data=values, chunks=(4, *values.shape[1:]), compression="gzip")
            data.attrs.update({"h-scale exponent": [0.0], "a-scale exponent": [float(name == "Coordinates")]})
            if size is not None:
                data.attrs["Conversion factor to CGS (not including cosmological corrections)"] = [size]
        file["DMParticles"] = h5py.SoftLink("/PartType1")
    ds = open_particles(path, chunks=4)
    np.testing.assert_array_equal(positions(ds), coordinates)
    np.testing.assert_array_equal(ds["vz"], velocities[:, 2])
    assert [ds[v].attrs["units"] for v in ("x", "vy", "mass")] == ["Mpc", "km/s", "1e10 Msun"]
    told = {name: ds.attrs[name] for name in ("boxsize", "scale_factor", "redshift", "hubble", "omega_m", "code")}
    assert told == {
        "boxsize": [100.0, 50.0, 25.0], "scale_factor": 0.5, "redshift": 1.0, "hubble": 0.681, "omega_m": 0.306,
        "code": "SWIFT",
    }  # fmt: skip
    with h5py.File(tmp_path / "virtual.hdf5", "w") as file, h5py.File(path) as source:
        source.copy("Header", file)
        layout = h5py.VirtualLayout(shape=(6, 3), dtype="f8")
        layout[:] = h5py.VirtualSource("swift_0010.hdf5", "PartType1/Coordinates", shape=(6, 3))
        file.create_group("PartType1").create_virtual_dataset("Coordinates", layout)
    refused(r"has no particles itself, .* such as swift_0010.hdf5; open that one", tmp_path / "virtual.hdf5")


def test_arepo(tmp_path: Path) -> None:
    path = tmp_path / "snap_099.0.hdf5"
    velocities = np.random.default_rng(3).normal(size=(5, 3)).astype(np.float32)
    header = {
        "BoxSize": 35000.0, "MassTable": np.array([0, 4.5e-4, 0, 0, 0, 0]), "NumFilesPerSnapshot": np.int32(1),
        "NumPart_ThisFile": np.array([0, 5, 0, 0, 0, 0], np.int32), "Redshift": 0.5625, "Time": 0.64,
        "NumPart_Total": np.array([0, 5, 0, 0, 0, 0], np.uint32), "NumPart_Total_HighWord": np.zeros(6, np.uint32),
        "UnitLength_in_cm": 3.085678e21, "UnitMass_in_g": 1.989e43, "UnitVelocity_in_cm_per_s": 1e5,
        "HubbleParam": 0.6774, "OmegaBaryon": 0.0486,
    }  # fmt: skip
    arrays = {"Coordinates": np.arange(15.0).reshape(5, 3), "Velocities": velocities}
    write_snapshot(path, {"PartType1": arrays}, Header=header)
    with h5py.File(path, "a") as file:
        group = file["PartType1"]
        group["Coordinates"].attrs.update({"a_scaling": 1.0, "h_scaling": -1.0, "to_cgs": 3.085678e21})
        group["Velocities"].attrs.update({"a_scaling": 0.5, "h_scaling": 0.0, "to_cgs": 1e5})
    ds = open_particles(path)
    np.testing.assert_array_equal(ds["vx"], velocities[:, 0] * np.float32(0.8))
    assert [ds[v].attrs["units"] for v in ("x", "vx", "mass")] == ["kpc/h", "km/s", "1e10 Msun/h"]
    assert ds.attrs["omega_b"] == 0.0486
    with h5py.File(path, "a") as file:
        file["PartType1/Velocities"].attrs["a_scaling"] = 0.0
        file["PartType1/Coordinates"].attrs.update({"h_scaling": 0.0, "to_cgs": 5e22})
    again = open_particles(path)
    np.testing.assert_array_equal(again["vx"], velocities[:, 0])
    assert again["x"].attrs["units"] == "5e+22 cm"


# What is wrong with snapshots


def test_files_of_a_snapshot_that_are_missing_or_others(tmp_path: Path) -> None:
    write_gadget2(tmp_path)
    (tmp_path / "snap_005.1.hdf5").rename(tmp_path / "other.hdf5")
    with pytest.raises(FileNotFoundError, match=r"3 files, and snap_005\.\*\.hdf5 with the numbers 1 are missing"):
        open_particles(tmp_path / "snap_005.0.hdf5")
    refused(r"other\.hdf5 says that the snapshot has 3 files, but has no number in its", tmp_path / "other.hdf5")
    (tmp_path / "other.hdf5").rename(tmp_path / "snap_005.01.hdf5")
    assert open_particles(tmp_path / "snap_005.2.hdf5").sizes == {"particle": 14}
    with h5py.File(tmp_path / "snap_005.2.hdf5", "a") as file:
        file["Header"].attrs["Time"] = 0.5
    refused(r"Time is 0.5 in .*snap_005\.2.* and 0.25 in .*snap_005\.0.*two snapshots", tmp_path / "snap_005.0.hdf5")
    (tmp_path / "snap_005.01.hdf5").unlink()
    write_gadget2(tmp_path, NumPart_Total=np.array([6, 15, 0, 0, 0, 0]))
    refused(r"3 files of the snapshot of .* have 14 particles of type 1, .* says 15", tmp_path / "snap_005.0.hdf5")
    write_gadget2(tmp_path, 2, NumFilesPerSnapshot=10**12)
    with pytest.raises(FileNotFoundError, match=r"has 1000000000000 files, .* 3, 4, 5, 6, 7 \.\.\. are missing"):
        open_particles(tmp_path / "snap_005.0.hdf5")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"BoxSize": math.nan}, r"the box of .* must be positive and finite, .* got nan; give boxsize="),
        ({"BoxSize": -1.0}, "got -1.0"),
        ({"BoxSize": "large"}, "got 'large'"),
        ({"NumPart_ThisFile": np.array([2, -4, 0, 0, 0, 0])}, r"NumPart_ThisFile in the Header of .* is \[2, -4"),
        ({"NumPart_ThisFile": "four"}, "is 'four', expected a number of particles for each type"),
        ({"NumPart_ThisFile": np.array([2, 5])}, "has 4 rows, and the Header says 5 particles"),
        ({"NumPart_ThisFile": np.array([2, 2**50])}, "has 4 rows, and the Header says 1125899906842624 particles"),
        ({"NumFilesPerSnapshot": 0}, "NumFilesPerSnapshot in the Header of .* is 0"),
        ({"NumFilesPerSnapshot": math.nan}, "is nan, expected a number of files"),
        ({"Scale-factor": -0.5}, "the scale factor in the Header of .* is -0.5"),
    ],
)
def test_headers_that_cannot_be(tmp_path: Path, header: dict[str, Any], message: str) -> None:
    write_gadget2(tmp_path, 1, **header)
    refused(message, tmp_path / "snap_005.0.hdf5")


def test_arrays_that_are_not_there(tmp_path: Path) -> None:
    write_gadget2(tmp_path)
    path = tmp_path / "snap_005.0.hdf5"
    with h5py.File(tmp_path / "snap_005.2.hdf5", "a") as file:
        ids = file["PartType1"].pop("ParticleIDs")[:]
    refused(r"snap_005\.2\.hdf5 has no array ParticleIDs of this type, and .*0\.hdf5 has", path)
    assert "id" not in open_particles(path, columns={"ParticleIDs": None})
    with h5py.File(tmp_path / "snap_005.2.hdf5", "a") as file:
        file["PartType1"].create_dataset("ParticleIDs", shape=ids.shape, dtype=np.uint32, chunks=(4,))
        file["PartType1/ParticleIDs"][:4] = ids[:4]
    refused(r"PartType1/ParticleIDs of .*snap_005\.2\.hdf5 has 1 of 3 chunks: it was not writ", path)
    with h5py.File(tmp_path / "snap_005.2.hdf5", "a") as file:
        del file["PartType1/ParticleIDs"]
        file["PartType1/ParticleIDs"] = [b"a"] * 10
    refused(r"has shape \(10,\) and dtype object, which is no table of numbers", path)
    with h5py.File(tmp_path / "snap_005.2.hdf5", "a") as file:
        del file["PartType1/ParticleIDs"]
        file["PartType1/ParticleIDs"] = np.ones((10, 2))
    refused("array ParticleIDs has different shapes in the files", path)


def test_only_rows_that_are_used_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dm = write_gadget2(tmp_path)
    lazy = open_particles(tmp_path / "snap_005.0.hdf5", chunks=5)
    asked: list[Any] = []
    original = h5py.Dataset.__getitem__

    def spy(self: Any, key: Any, **options: Any) -> Any:
        asked.append((os.path.basename(self.file.filename), self.name, key))
        return original(self, key, **options)

    monkeypatch.setattr(h5py.Dataset, "__getitem__", spy)
    x, y = dask.compute(lazy["x"][:5], lazy["y"][:5])
    # Two columns are read once; a chunk may go over files.
    where = "/PartType1/Coordinates"
    assert asked == [("snap_005.0.hdf5", where, slice(0, 4)), ("snap_005.2.hdf5", where, slice(0, 1))]
    np.testing.assert_array_equal(np.stack([x, y], axis=1), dm["Coordinates"][:5, :2])


def test_gadget_layout_that_is_written(tmp_path: Path) -> None:
    ds = sample(6, redshift=3.0, scale_factor=0.25, omega_m=0.3, hubble=0.7, particle_type=4)
    path = tmp_path / "snap.hdf5"
    write_particles(ds, path)
    with h5py.File(path) as file:
        header = dict(file["Header"].attrs)
        told = [header[name] for name in ("Time", "Redshift", "BoxSize", "HubbleParam", "Omega0")]
        assert told == [0.25, 3.0, 50.0, 0.7, 0.3]
        np.testing.assert_array_equal(header["NumPart_Total"], [0, 0, 0, 0, 6, 0])
        assert set(file["PartType4"]) == {"Coordinates", "Velocities", "Masses", "ParticleIDs", "halo"}
        np.testing.assert_array_equal(file["PartType4/Velocities"][:, 0], ds["vx"] * 2)
    again = open_particles(path, particle_type="stars")
    np.testing.assert_array_equal(again["vx"], ds["vx"])
    for attrs, message in [({"particle_type": 9}, "at most 5, got 9"), ({"scale_factor": 0.0}, "finite and positive")]:
        with pytest.raises(ValueError, match=message):
            write_particles(ds.assign_attrs(attrs), path)
    with pytest.raises(ValueError, match=r"needs Velocities of 3 columns; the Dataset has no 'vy'"):
        write_particles(ds.drop_vars("vy"), path)
    timed = sample(3, time=2.0)
    write_particles(timed, path)
    assert open_particles(path).attrs["time"] == 2.0
    np.testing.assert_array_equal(open_particles(path)["vx"], timed["vx"])


def test_whole_velocities_are_scaled(tmp_path):
    """The peculiar velocity is sqrt(a) times what Gadget stores, which is no whole number."""
    v = np.array([10, 20, 31])
    ds = xr.Dataset({name: ("particle", np.arange(3.0)) for name in "xyz"} | {f"v{k}": ("particle", v) for k in "xyz"})
    path = tmp_path / "whole.hdf5"
    write_particles(ds.assign_attrs(boxsize=10.0, scale_factor=0.5), path)
    for chunks in (None, 2):
        np.testing.assert_allclose(open_particles(path, chunks=chunks)["vx"].values, v, rtol=1e-15)
