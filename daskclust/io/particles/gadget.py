"""Particles to HDF5 in the layout of Gadget-4."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import xarray as xr

from daskclust.core.data.checks import check_positive, check_whole
from daskclust.io.attrs import KEY, pack, stored_attrs, stored_units
from daskclust.io.blocks import blocks_of
from daskclust.io.particles.snapshot import scalable
from daskclust.io.schema import COMPONENTS, KNOWN
from daskclust.io.tables.hdf5 import check_space, import_h5py

N_TYPES = 6


def write_gadget(stream: BinaryIO, ds: xr.Dataset, dim: str) -> None:
    """Write particles of one type as a snapshot of one file: x, y, z; vx, vy, vz (peculiar), mass, id and others.

    The open file is written through its name, as HDF5 must read while it writes.
    """
    h5py = import_h5py()
    kind, rows, attrs = ds.attrs.get("particle_type", 1), ds.sizes[dim], stored_attrs(ds, dim)
    check_whole("attrs['particle_type']", kind, 0, N_TYPES - 1)
    vectors = {member: [begin + axis for axis in COMPONENTS] for member, begin in _vectors(ds).items()}
    inside = {name for names in vectors.values() for name in names}
    members = {"mass": "Masses", "id": "ParticleIDs"}
    columns = {str(name): members.get(str(name), str(name)) for name in ds.variables if name not in inside}
    scale, units = scale_factor(attrs), stored_units(ds)
    stored: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {
        member: ((rows, len(names)), _dtype_of(ds, member, names)) for member, names in vectors.items()
    }
    stored |= {member: ((rows,), _dtype_of(ds, member, [name])) for name, member in columns.items()}
    check_space(stream, sum(math.prod(shape) * dtype.itemsize for shape, dtype in stored.values()))
    with h5py.File(stream.name, "w", track_order=True) as file:
        header = file.create_group("Header")
        header.attrs.update(_header(attrs, int(kind), rows))
        header.attrs[KEY] = pack(attrs, units)
        parameters = {"HubbleParam": "hubble", "Omega0": "omega_m", "OmegaLambda": "omega_lambda"}
        told = {theirs: attrs[ours] for theirs, ours in parameters.items() if ours in attrs}
        file.create_group("Parameters").attrs.update(told)
        header.attrs.update(told)  # where Gadget-2 has them
        group = file.create_group(f"PartType{kind}")
        for member, (shape, dtype) in stored.items():
            group.create_dataset(member, shape=shape, dtype=dtype)
        stop = 0
        for block in blocks_of(ds, dim):
            start, stop = stop, stop + len(next(iter(block.values())))
            for member, names in vectors.items():
                values = np.stack([block[name] for name in names], axis=1)
                group[member][start:stop] = values / np.sqrt(scale) if member == "Velocities" else values
            for name, member in columns.items():
                group[member][start:stop] = block[name]


def _dtype_of(ds: xr.Dataset, member: str, names: list[str]) -> np.dtype[Any]:
    dtype = np.result_type(*[ds[name].dtype for name in names]).newbyteorder("=")
    return scalable(dtype) if member == "Velocities" else dtype


def _vectors(ds: xr.Dataset) -> dict[str, str]:
    """Return the arrays of three columns that the data set has, and what the names of the columns begin with."""
    vectors = {}
    for member in ("Coordinates", "Velocities"):
        missing = [KNOWN[member] + axis for axis in COMPONENTS if KNOWN[member] + axis not in ds.variables]
        if not missing:
            vectors[member] = KNOWN[member]
        elif member == "Coordinates" or len(missing) < len(COMPONENTS):
            raise ValueError(f"the layout of Gadget needs {member} of 3 columns; the Dataset has no {missing[0]!r}")
    return vectors


def _header(attrs: Mapping[str, Any], kind: int, rows: int) -> dict[str, Any]:
    counts = np.zeros(N_TYPES, np.uint64)
    counts[kind] = rows
    scale = scale_factor(attrs)
    is_time = "time" in attrs and scale == 1
    return {
        "BoxSize": attrs.get("boxsize", 0.0),
        "MassTable": np.zeros(N_TYPES),
        "NumFilesPerSnapshot": 1,
        "NumPart_ThisFile": counts,
        "NumPart_Total": counts,
        "Redshift": 0.0 if is_time else 1 / scale - 1,
        "Time": attrs["time"] if is_time else scale,
    }


def scale_factor(attrs: Mapping[str, Any]) -> float:
    """Return the scale factor, 1 where the data set tells none."""
    return check_positive("attrs['scale_factor']", attrs.get("scale_factor", 1 / (1 + attrs.get("redshift", 0.0))))
