"""Particles of simulations from and to files."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr

from daskclust.core.data.boxes import box_in, mean_separation
from daskclust.core.data.checks import check_positive
from daskclust.core.data.fields import PARTICLES
from daskclust.core.data.quote import listed, quoted
from daskclust.core.data.units import BOX
from daskclust.io.blocks import only_dim, to_write, with_scalars_told
from daskclust.io.files import HDF5, PARQUET, check_file, is_parts, is_store, known_suffix
from daskclust.io.hits import write_hits
from daskclust.io.particles.gadget import write_gadget
from daskclust.io.particles.snapshot import TYPES, files_of_snapshot, read_snapshot
from daskclust.io.replacing import check_kind, replacing
from daskclust.io.rows import Stored, fixed_rows, rows_of_chunk
from daskclust.io.schema import COMPONENTS, LEFT_OUT, Columns, Naming, Needs, Table, check_units, to_dataset
from daskclust.io.several import takes_several
from daskclust.io.tables.binary import read_npy, unnamed
from daskclust.io.tables.parquet_read import read_parquet
from daskclust.io.tables.zarr import read_zarr

_ARBORX = (".arborx", ".bin")
_WRITABLE = (*HDF5, *PARQUET, ".zarr")
_KNOWN = (*_WRITABLE, ".npy", *_ARBORX)
_START = 8  # bytes of the numbers of points and dimensions, with which ArborX's files begin

# 48 MB of positions in float32: large enough for a device, small enough for many workers.
_AUTO_ROWS = 1 << 22

_QUANTITIES = {"length": COMPONENTS, "velocity": ("vx", "vy", "vz")}


@takes_several(*_KNOWN, about=_AUTO_ROWS, parts=files_of_snapshot)
def open_particles(
    path: str | os.PathLike[str],
    *,
    particle_type: int | str = "dm",
    columns: Columns | None = None,
    units: Mapping[str, str] | None = None,
    boxsize: float | Sequence[float] | None = None,
    chunks: int | Literal["auto"] | None = "auto",
    fill_missing: bool = False,
    needs: Needs | None = None,
) -> xr.Dataset:
    """Open particles of a simulation, or other points in a box, as a data set of dask arrays.

    Parameters
    ----------
    path : str or path, or list of these
        The file, or several, a list, a glob or a folder, as of `read_hits`. Its extension tells the format.

        - ``.hdf5``, ``.h5``: a snapshot of Gadget-2, 3, 4, AREPO, EAGLE or SWIFT. Where it has several files
          (``snap.0.hdf5``, ``snap.1.hdf5`` ...), any one stands for all, in the order of their numbers. Plain columns
          in HDF5 are for ``read_hits(path, field="particles")``.
        - ``.parquet``, ``.pq``: columns of numbers.
        - ``.npy``: shape (n, d), or a structured array; it is mapped, not loaded.
        - ``.zarr``, or a folder that is a zarr store (format 2 or 3): arrays ``x``, ``y``, ``z`` ... of shape (n,), or
          ``Coordinates``, ``Velocities``, ``Masses``, ``ParticleIDs``; or one array of shape (n, d).
        - ``.arborx``, ``.bin``: ArborX's: int32 n, int32 d, then float32 coordinates, little-endian.
    particle_type : int or {"gas", "dm", "stars", "bh"}, default "dm"
        Which particles of a snapshot: those of ``PartType0``, ``1``, ``4``, ``5``, or of a number.
    columns : sequence of str, or mapping of str to str or None, optional
        A sequence names all columns of an array without names; by default 1 to 3 are ``x``, ``y``, ``z``, 6 have
        ``vx``, ``vy``, ``vz`` after these, 7 have ``mass`` at the end. A mapping gives the variable for a column of the
        file; None leaves it out, and ``{"*": None}`` all that are not named. Of a snapshot, positions, velocities,
        masses and ids are read, and what is named: ``{"Potential": "potential"}``; columns of arrays of shape (n, 3)
        get x, y, z behind their names.
    units : mapping of str to str, optional
        Units that the file does not tell, or tells wrong, by variable, or for ``"length"`` and ``"velocity"`` together:
        ``{"length": "Mpc/h", "mass": "1e10 Msun/h"}``. Values do not change.
    boxsize : float or sequence of float, optional
        Side of the periodic box, or one for each axis (None where it is open), in the unit of ``x``, if the file does
        not tell it, or tells it wrong.
    chunks : int, "auto" or None, default "auto"
        Particles per chunk; ``"auto"`` means about 4 million, in whole chunks or row groups of the file. None reads
        everything into memory.
    fill_missing : bool, default False
        Whether the chunks that a zarr store does not have are taken for its fill value. By default they are an error.
    needs : mapping of str to sequence of str, optional
        As of `read_hits`, for all but snapshots.

    Returns
    -------
    xarray.Dataset
        Variables of shape (n,) along ``particle``, in the order of the file and in its types: ``x``, ``y``, ``z`` as
        far as there are axes, ``vx``, ``vy``, ``vz``, ``mass``, ``id`` and others, with ``attrs["units"]`` where the
        unit is known. ``attrs`` have ``boxsize`` (a float, or a list where sides differ, None for an open axis; none
        for an open box) and ``boxsize_units``, and what the file tells of ``redshift``, ``scale_factor``, ``time``
        (without expansion), ``hubble``, ``omega_m``, ``omega_lambda``, ``omega_b``, ``particle_type``, ``code``.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, ImportError
        Where `path` is no file, files of a snapshot are missing, or the library for the format is.
    ValueError
        For unknown extensions, damaged, incomplete or unmatched files, a box that is not positive, and wrong options.

    Notes
    -----
    Positions, boxes and masses are as in the file: comoving, and with 1/h in the codes that have it. Velocities are
    made peculiar ones: those of Gadget, AREPO and EAGLE are multiplied by the power of the scale factor that the file
    tells, by its square root where it tells none. One mass for all particles of a type (``MassTable``) becomes a
    column. ``BoxSize`` 0 is an open box, 0 for one axis an open axis.

    Headers are read at once; each chunk reads its own rows when it is used, on a worker that must see the file. Where a
    number in `chunks` is no multiple of the file's own chunks or row groups, some of these are read twice. Values are
    not searched for NaN, nor for positions outside of the box: estimators do so.

    zarr leaves out a chunk whose values all equal the fill value, unless told ``write_empty_chunks=True``, and reads a
    lost one as the fill value, too: both are an error here when their rows are read. `write_particles` writes all.

    References
    ----------
    Springel et al., "Simulating cosmic structure formation with the GADGET-4 code", MNRAS 506 (2021),
    doi:10.1093/mnras/stab1855. Schaller et al., "SWIFT: a modern highly parallel gravity and smoothed particle
    hydrodynamics solver", MNRAS 530 (2024), doi:10.1093/mnras/stae922.

    Examples
    --------
    >>> ds = open_particles("snap_099.0.hdf5", particle_type="stars")  # doctest: +SKIP
    >>> ds = open_particles("points.npy", boxsize=4.0, units={"length": "Mpc/h"})  # doctest: +SKIP
    """
    name = os.fspath(path)
    rows = rows_of_chunk(chunks, _AUTO_ROWS, "particles")
    kind = TYPES.get(particle_type, -1) if isinstance(particle_type, str) else particle_type
    if isinstance(kind, bool) or not isinstance(kind, int | np.integer) or kind < 0:
        raise ValueError(f"particle_type must be a number from 0, or one of {', '.join(TYPES)}, got {particle_type!r}")
    is_zarr = is_store(name) or (name.lower().endswith(".zarr") and os.path.isdir(name))
    if not is_zarr and not is_parts(name):
        check_file(name, "give one file of it")
    suffix = ".zarr" if is_zarr else known_suffix(name, _KNOWN)
    naming = Naming(PARTICLES, columns, name, needs=needs or {})
    if suffix in HDF5:
        table = read_snapshot(name, int(kind), columns, rows)
    elif suffix == ".zarr":
        table = read_zarr(name, naming, rows, fill_missing)
    elif suffix in PARQUET:
        table = read_parquet(name, naming, rows)
    else:
        table = (_read_arborx if suffix in _ARBORX else read_npy)(name, naming, rows)
    given = _expanded(units or {}, table, name)
    check_units(given, PARTICLES, name, table.units)
    axes = [axis for axis in COMPONENTS if axis in table.columns]
    attrs = _with_boxsize({**table.attrs, **table.naming.told}, boxsize, axes, name)
    if "x" in given or boxsize is not None:
        attrs.pop(BOX, None)
    ds = to_dataset(table.columns, field=PARTICLES.name, units={**table.units, **given}, source=name, attrs=attrs)
    if table.naming.left_out:
        ds.encoding[LEFT_OUT] = table.naming.left_out
    return ds


def _expanded(units: Mapping[str, str], table: Table, path: str) -> dict[str, str]:
    """Return the user's units by variable."""
    given: dict[str, str] = {}
    for name, unit in units.items():
        names = [name] if name in table.columns else [n for n in _QUANTITIES.get(name, ()) if n in table.columns]
        if not names:
            raise ValueError(
                f"units names {quoted(name)}, which {path} does not have; it has {listed(table.columns)}, of which "
                f"{' and '.join(_QUANTITIES)} are several"
            )
        given.update(dict.fromkeys(names, unit))
    return given


def _with_boxsize(attrs: Mapping[str, Any], given: Any, axes: Sequence[str], path: str) -> dict[str, Any]:
    """Return the attributes with the box as one float, or a list of one for each axis; without an open one.

    Three are those of x, y and z.
    """
    told = attrs.get("boxsize") if given is None else given
    others = {name: value for name, value in attrs.items() if name != "boxsize"}
    if told is None:
        return others
    sides = np.asarray(told).ravel().tolist() if not isinstance(told, str) else [told]
    if len(sides) == len(COMPONENTS):
        sides = [sides[COMPONENTS.index(axis)] for axis in axes]
    sides = sides * len(axes) if len(sides) == 1 else sides
    source = f"the box of {path}" if given is None else "boxsize"
    if given is None:
        sides = [None if side == 0 else side for side in sides]  # as codes write an open box, or axis
    closed = [side for side in sides if side is not None]
    if len(sides) != len(axes) or not all(isinstance(s, int | float) and 0 < s <= sys.float_info.max for s in closed):
        raise ValueError(
            f"{source} must be positive and finite, one number or {len(axes)}, got {quoted(told)}"
            + ("; give boxsize=" if given is None else "")
        )
    if not closed:
        return others
    sides = [side and float(side) for side in sides]
    return {"boxsize": sides[0] if len(set(sides)) == 1 else sides, **others}


def write_particles(ds: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write particles to a file, completely or not at all.

    Parameters
    ----------
    ds : xarray.Dataset, DataFrame or mapping
        Variables of numbers along one dimension, numpy or dask, as `open_particles` gives them.
    path : str or path
        The file; its extension tells the format. One that exists is replaced.

        - ``.hdf5``, ``.h5``: a snapshot in the layout of Gadget-4, in one file: ``x``, ``y``, ``z``; ``vx``, ``vy``,
          ``vz`` (peculiar), ``mass``, ``id`` and all others where there are any. ``attrs["particle_type"]`` tells the
          group, ``PartType1`` by default.
        - ``.parquet``, ``.pq``; ``.zarr``: all variables.

    Raises
    ------
    ImportError, OSError
        Where the library for the format, or the folder, is missing, or may not be written to.
    ValueError
        For other extensions, and variables that the format cannot hold.

    Notes
    -----
    After an error nothing new is left. Dask arrays are computed chunk by chunk; those of zarr in parallel, in chunks of
    a million. HDF5, Parquet and zarr keep types, units and the attributes that are numbers or texts. In HDF5,
    velocities are divided by the square root of ``attrs["scale_factor"]``, as Gadget has them: reading them again may
    change their last bit.

    Examples
    --------
    >>> write_particles(open_particles("snap_099.0.hdf5"), "snap_099.zarr")  # doctest: +SKIP
    """
    target, ds = Path(path), to_write(ds, PARTICLES.dim)
    if known_suffix(path, _WRITABLE) not in HDF5:
        write_hits(ds, target)
        return
    check_kind(target, is_folder=False)
    ds = with_scalars_told(ds)
    with replacing(target) as stream:
        write_gadget(stream, ds, only_dim(ds, "fiub"))


def linking_length(ds: xr.Dataset, b: float = 0.2) -> float:
    """Return a linking length for friends-of-friends as a fraction of the mean separation of particles.

    Parameters
    ----------
    ds : xarray.Dataset
        Particles with ``attrs["boxsize"]``, as `open_particles` gives them. Nothing is computed.
    b : float, default 0.2
        The fraction.

    Returns
    -------
    float
        b * (V / n)**(1 / d), in the unit of ``x``: V is the volume of the box, n the number of particles, d the
        number of ``x``, ``y``, ``z`` that there are.

    Raises
    ------
    ValueError
        Without a box or particles, and for a `b` that is not positive.

    Notes
    -----
    Simulations with gas and stars count the separation of dark matter alone: give these particles.

    References
    ----------
    Davis et al., "The evolution of large-scale structure in a universe dominated by cold dark matter", ApJ 292 (1985),
    doi:10.1086/163168.

    Examples
    --------
    >>> ds = xr.Dataset({axis: ("particle", np.zeros(1000)) for axis in "xyz"}, attrs={"boxsize": 50.0})
    >>> round(linking_length(ds, 0.2), 12)
    1.0
    """
    b = check_positive("b", b)
    axes = [axis for axis in COMPONENTS if axis in ds.variables]
    n = ds["x"].size if axes else 0
    if not n:
        raise ValueError("the Dataset has no particles with x; a linking length needs some")
    if "boxsize" not in ds.attrs:
        raise ValueError("the Dataset has no attrs['boxsize']; give it with ds.assign_attrs(boxsize=...)")
    told = box_in(ds, ds["x"].attrs.get("units"))
    box = _with_boxsize({}, told, axes, "the Dataset").get("boxsize")
    if box is None or (isinstance(box, list) and None in box):
        raise ValueError(f"a mean separation needs a box that is closed along each axis, got boxsize={told!r}")
    return b * mean_separation(box if isinstance(box, list) else [box] * len(axes), n)


# --------------------------------------------------------------------------------------------------------------- ArborX
def _read_arborx(path: str, naming: Naming, chunks: int | None) -> Table:
    """Read the coordinates of an ArborX file, whose size must be what the numbers at its beginning say."""
    size = os.path.getsize(path)
    n, d = np.fromfile(path, "<i4", 2).tolist() if size >= _START else (0, 0)
    expected = _START + 4 * n * d
    if n < 0 or d < 1 or size != expected:
        raise ValueError(
            f"{path} has {size} bytes; as an ArborX file (int32 n, int32 d, float32 coordinates) it begins with n = "
            f"{n} and d = {d}, which makes {expected}: it is cut, or has another format"
        )
    if d > 3 and naming.columns is None:
        raise ValueError(f"{path} has {d} coordinates for each point; name them with columns=[...], 'x' first")
    here = os.path.abspath(path)
    read = partial(fixed_rows, here, "<f4", d, _START)
    return unnamed(Stored(read, (here,), "ArborX", (n, d), np.dtype(np.float32)), naming, chunks)
