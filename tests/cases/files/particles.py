"""Particles for tests of readers: data sets, and snapshots as the codes write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

from daskclust.io import open_particles, to_dataset


def refused(message: str, *args: Any, **options: Any) -> None:
    """Check that a file is refused with a message."""
    with pytest.raises(ValueError, match=message):
        open_particles(*args, **options)


def sample(n: int = 10, **attrs: Any) -> xr.Dataset:
    """Return particles with every kind of variable, in float32 as simulations have them."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {axis: rng.random(n, np.float32) * 50 for axis in "xyz"}
    columns |= {f"v{axis}": rng.normal(0, 200, n).astype(np.float32) for axis in "xyz"}
    columns |= {"mass": rng.random(n), "id": rng.permutation(n).astype(np.uint64), "halo": np.arange(n) - 1}
    units = {**dict.fromkeys("xyz", "Mpc/h"), **dict.fromkeys(("vx", "vy", "vz"), "km/s"), "mass": "1e10 Msun/h"}
    return to_dataset(columns, field="particles", units=units, attrs={"boxsize": 50.0, **attrs})


def positions(ds: xr.Dataset) -> np.ndarray[Any, Any]:
    """Return positions as (n, 3)."""
    return np.stack([ds[axis].values for axis in "xyz"], axis=1)


def write_snapshot(path: Path, particles: dict[str, dict[str, Any]], **groups: dict[str, Any]) -> None:
    """Write groups of attributes, and groups of arrays."""
    with h5py.File(path, "w") as file:
        for name, attrs in groups.items():
            file.create_group(name).attrs.update(attrs)
        for name, arrays in particles.items():
            for member, values in arrays.items():
                file[f"{name}/{member}"] = values


def write_gadget2(folder: Path, n_files: int = 3, a: float = 0.25, **header: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Write a snapshot of Gadget-2 with gas and dark matter; return what dark matter there is."""
    rng = np.random.default_rng(1)
    sizes = [4 + 3 * k if k != 1 else 0 for k in range(n_files)]
    n, start = sum(sizes), 0
    dm = {
        "Coordinates": rng.random((n, 3), np.float32) * 1000,
        "Velocities": rng.normal(0, 300, (n, 3)).astype(np.float32),
        "ParticleIDs": np.arange(n, dtype=np.uint32) + 1,
    }
    about = {
        "NumPart_Total": np.array([2 * n_files, n, 0, 0, 0, 0], np.uint32),
        "NumPart_Total_HighWord": np.zeros(6, np.uint32), "MassTable": np.array([0, 1.5, 0, 0, 0, 0]),
        "Time": a, "Redshift": 1 / a - 1, "BoxSize": 1000.0, "NumFilesPerSnapshot": np.int32(n_files),
        "Omega0": 0.3, "OmegaLambda": 0.7, "HubbleParam": 0.7, "Flag_Sfr": np.int32(0),
    }  # fmt: skip
    for k, size in enumerate(sizes):
        gas = {
            "Coordinates": np.full((2, 3), float(k)),
            "Masses": np.array([0.5, 0.25 + k]),
            "InternalEnergy": np.ones(2),
            "Metallicity": np.ones((2, 9)),
            "Acceleration": np.full((2, 3), [1.0, 2.0, 3.0]),
        }
        here = {name: values[start : start + size] for name, values in dm.items()} if size else {}
        own = {"NumPart_ThisFile": np.array([2, size, 0, 0, 0, 0], np.int32)}
        path = folder / f"snap_005.{k}.hdf5"
        write_snapshot(path, {"PartType0": gas, "PartType1": here}, Header={**own, **about, **header})
        start += size
    return dm
