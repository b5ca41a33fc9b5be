"""Groups of particles to HDF5 as other codes have them: the group of each particle, and tables of groups."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr

from daskclust.core.data.boxes import AXES, box_in, box_sides
from daskclust.core.data.checks import check_whole
from daskclust.core.data.units import SIZES, ratio
from daskclust.io.blocks import blocks_of, only_dim, to_write
from daskclust.io.files import HDF5, known_suffix
from daskclust.io.particles.gadget import N_TYPES, scale_factor
from daskclust.io.replacing import check_kind, replacing
from daskclust.io.tables.hdf5 import check_space, import_h5py

_NO_GROUP = 2147483647  # of a particle in none
_MPC, _MASS = SIZES["length"]["Mpc"], 1e10 * SIZES["mass"]["Msun"]  # units of the files, in cgs
_LAYOUTS = ("gadget", "swift")
_SPHERES = {"200c": "Crit200", "500c": "Crit500", "200m": "Mean200", "vir": "TopHat200"}  # as Gadget-4 has them


def write_group_ids(
    ds: xr.Dataset | Sequence[xr.Dataset], path: str | os.PathLike[str], *, labels: str = "label"
) -> None:
    """Write the group of each particle to a file as SWIFT has it, completely or not at all.

    Parameters
    ----------
    ds : xarray.Dataset or sequence of xarray.Dataset
        Particles along one dimension, numpy or dask: ``id`` and labels. ``attrs["particle_type"]`` is the number of
        their type, 1 where it is missing; of several data sets each has another.
    path : str or path
        The file, ``.hdf5`` or ``.h5``. One that exists is replaced.
    labels : str, default "label"
        Variable with the numbers of groups from 0, -1 for particles in none.

    Raises
    ------
    ImportError, OSError
        As `write_particles`.
    ValueError
        Without ids or labels, for labels that are none, and for two data sets of one type.

    Notes
    -----
    ``PartType1`` (and others) have ``ParticleIDs``, and ``FOFGroupIDs`` (int64): the label plus 1, and 2147483647 for
    particles in no group. SOAP takes the file as ``fof_filename`` of its snapshots, and finds particles by their ids:
    their order need not be that of the snapshot. Dask arrays are computed chunk by chunk.

    References
    ----------
    McGibbon et al., "SOAP", JOSS 10 (2025), doi:10.21105/joss.08252.

    Examples
    --------
    >>> found = open_particles("snap.hdf5").clust.fof(b=0.2)  # doctest: +SKIP
    >>> write_group_ids(found, "fof.hdf5")  # doctest: +SKIP
    """
    h5py, target = import_h5py(), _target(path)
    each = [ds] if isinstance(ds, xr.Dataset) else list(ds)
    types = [check_whole("attrs['particle_type']", one.attrs.get("particle_type", 1), 0, N_TYPES - 1) for one in each]
    if len(set(types)) < max(1, len(types)):
        raise ValueError(f"each Dataset must have another attrs['particle_type'], got {types}")
    for one in each:
        if missing := [name for name in ("id", labels) if name not in one]:
            raise ValueError(f"the Dataset has no variable {missing[0]!r}, which the groups of particles need")
    each = [one[["id", labels]].reset_coords(drop=True) for one in each]
    rows = [one.sizes[only_dim(one, "iu")] for one in each]
    counts = np.zeros(N_TYPES, np.int64)
    counts[types] = rows
    with replacing(target) as stream:
        check_space(stream, 16 * sum(rows))
        with h5py.File(stream.name, "w", track_order=True) as file:
            file.create_group("Header").attrs.update(
                {**_of_types(counts), "NumFilesPerSnapshot": [1], "NumPartTypes": [N_TYPES], "OutputType": "FOF"}
            )
            for kind, one in zip(types, each, strict=True):
                _write_ids(file.create_group(f"PartType{kind}"), one, labels)


def _write_ids(group: Any, ds: xr.Dataset, labels: str) -> None:
    """Write ids and groups of the particles of one type."""
    dim = only_dim(ds)
    ids = group.create_dataset("ParticleIDs", (ds.sizes[dim],), ds["id"].dtype.newbyteorder("="))
    groups = group.create_dataset("FOFGroupIDs", (ds.sizes[dim],), np.int64)
    stop = 0
    for block in blocks_of(ds, dim):
        label = block[labels]
        if len(label) and not (label.min() >= -1 and label.max() < _NO_GROUP - 1):
            raise ValueError(f"{labels} must be from -1 to {_NO_GROUP - 2}, got {label.min()} to {label.max()}")
        start, stop = stop, stop + len(label)
        ids[start:stop] = block["id"]
        groups[start:stop] = np.where(label < 0, _NO_GROUP, label.astype(np.int64) + 1)


def write_groups(
    table: xr.Dataset, path: str | os.PathLike[str], *, layout: Literal["gadget", "swift"] = "gadget"
) -> None:
    """Write a table of halos as the group catalogue of a simulation code, completely or not at all.

    Parameters
    ----------
    table : xarray.Dataset
        As of `daskclust.properties.halo_table`: ``x``, ``y``, ``z``, ``size`` and ``mass`` with units. ``attrs`` tell
        the universe: ``halos.assign_attrs(particles.attrs)``. ``hubble`` is needed to convert units with 1/h into those
        without.
    path : str or path
        The file, ``.hdf5`` or ``.h5``. One that exists is replaced.
    layout : {"gadget", "swift"}, default "gadget"
        - ``"gadget"``: Gadget-4's: ``Group/GroupPos`` (Mpc/h), ``GroupMass`` (1e10 Msun/h), ``GroupLen``; and by type
          ``GroupLenType``, ``GroupMassType``. Columns of `daskclust.properties.spherical_overdensity` become
          ``Group_M_Crit200``, ``Group_R_Crit200``, and so with ``Crit500``, ``Mean200`` and ``TopHat200`` (vir).
        - ``"swift"``: SWIFT's: ``Groups/Centres`` (Mpc), ``Masses`` (1e10 Msun), ``Sizes``, and ``GroupIDs``, those of
          `write_group_ids`.

    Raises
    ------
    ImportError, OSError
        As `write_particles`.
    ValueError
        For columns that are missing, and units that are missing or do not convert.

    Notes
    -----
    Rows stay in their order. Those of numbers without particles are left out. Positions are comoving.

    Examples
    --------
    >>> halos = properties.halo_table(found).assign_attrs(found.attrs)  # doctest: +SKIP
    >>> write_groups(halos, "fof_output.hdf5", layout="swift")  # doctest: +SKIP
    """
    if layout not in _LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(_LAYOUTS)}, got {layout!r}")
    h5py, target, table = import_h5py(), _target(path), to_write(table, "cluster")
    if missing := [name for name in (*AXES, "size", "mass") if name not in table]:
        raise ValueError(f"the table has no column {missing[0]!r}, which groups need")
    table = table.compute()
    table = table.isel(cluster=np.flatnonzero(table["size"].values))
    per_h = "/h" * (layout == "gadget")
    lengths, masses = f"Mpc{per_h}", f"1e10 Msun{per_h}"
    columns = {"Pos": np.stack([_in(table, axis, lengths) for axis in AXES], axis=1)}
    columns |= {"Mass": _in(table, "mass", masses), "Len": table["size"].values}
    sides = box_sides(box_in(table, table["x"].attrs.get("units")) or 0, AXES)
    box = [side * _by(table, "x", lengths) for side in sides]
    a = scale_factor(table.attrs)
    header = {"Redshift": [1 / a - 1], "NumFilesPerSnapshot": [1]}
    with replacing(target) as stream:
        check_space(stream, 128 * table.sizes["cluster"])
        with h5py.File(stream.name, "w", track_order=True) as file:
            if layout == "swift":
                _write_swift(file, table, columns, {**header, "BoxSize": box, "Scale-factor": [a]})
            else:
                spheres = {
                    f"Group_{letter.upper()}_{theirs}": _in(table, f"{letter}_{ours}", unit)
                    for ours, theirs in _SPHERES.items()
                    for letter, unit in (("m", masses), ("r", lengths))
                    if f"{letter}_{ours}" in table
                }
                _write_gadget(file, table, columns, spheres, {**header, "Time": [a], "BoxSize": box[0]})


def _write_gadget(
    file: Any, table: xr.Dataset, columns: Mapping[str, Any], spheres: Mapping[str, Any], header: Mapping[str, Any]
) -> None:
    n, kind = table.sizes["cluster"], int(table.attrs.get("particle_type", 1))
    about = {name: value[0] if isinstance(value, list) else value for name, value in header.items()}
    about |= {"Ngroups_ThisFile": n, "Ngroups_Total": n, "Nsubgroups_ThisFile": 0, "Nsubgroups_Total": 0}
    about |= {"Nids_ThisFile": 0, "Nids_Total": 0, "NumFiles": 1, "Flag_DoublePrecision": 1}
    parameters = {"HubbleParam": "hubble", "Omega0": "omega_m", "OmegaLambda": "omega_lambda"}
    known = {theirs: table.attrs[ours] for theirs, ours in parameters.items() if ours in table.attrs}
    file.create_group("Header").attrs.update({**about, **known})
    units = {"UnitLength_in_cm": _MPC, "UnitMass_in_g": _MASS, "UnitVelocity_in_cm_per_s": 1e5}
    file.create_group("Parameters").attrs.update({**known, **units})
    group = file.create_group("Group")
    for name, values in columns.items():
        group[f"Group{name}"] = values.astype(np.int32) if name == "Len" and n and values.max() < 1 << 31 else values
        if name != "Pos":
            group[f"Group{name}Type"] = values[:, None] * (np.arange(N_TYPES) == kind)
    for name, values in spheres.items():
        group[name] = values
    file.create_group("Subhalo")
    file.create_group("IDs")


def _write_swift(file: Any, table: xr.Dataset, columns: Mapping[str, Any], header: Mapping[str, Any]) -> None:
    n, told = table.sizes["cluster"], table.attrs
    about = {"NumGroups_ThisFile": [n], "NumGroups_Total": [n], "Dimension": [3.0], "ThisFile": [0], "Virtual": [0]}
    about |= {"Code": "SWIFT", "OutputType": "FOF", "SelectOutput": "Default", "RunName": "daskclust"}
    about |= {**_of_types(np.zeros(N_TYPES + 1, np.int64)), "CanHaveTypes": [0] * (N_TYPES + 1)}
    file.create_group("Header").attrs.update({**header, **about})
    file.create_group("Cosmology").attrs.update(_swift_cosmology(told) | {"Redshift": header["Redshift"]})
    sizes = {"mass": _MASS, "length": _MPC, "time": _MPC / 1e5, "current": 1.0, "temperature": 1.0}
    letters = dict(zip(sizes, "MLtIT", strict=True))
    units = {f"Unit {name} in cgs (U_{letters[name]})": [size] for name, size in sizes.items()}
    for name in ("Units", "InternalCodeUnits"):
        file.create_group(name).attrs.update(units)
    group = file.create_group("Groups")
    ids = table["cluster"].values.astype(np.int64) + 1
    of = {"Centres": ("Pos", "length"), "Masses": ("Mass", "mass"), "Sizes": ("Len", ""), "GroupIDs": ("", "")}
    words = {"Centres": "centres of mass", "Masses": "masses", "Sizes": "numbers of particles", "GroupIDs": "numbers"}
    a = header["Scale-factor"][0]
    for name, (column, quantity) in of.items():
        group[name] = columns[column] if column else ids
        power, size = float(quantity == "length"), sizes.get(quantity, 1.0)
        group[name].attrs.update(
            {
                "Description": f"FOF groups: {words[name]}",
                "Conversion factor to CGS (not including cosmological corrections)": [size],
                "Conversion factor to physical CGS (including cosmological corrections)": [size * a**power],
                **{f"U_{letter} exponent": [float(what == quantity)] for what, letter in letters.items()},
                "a-scale exponent": [power],
                "h-scale exponent": [0.0],
                "Value stored as physical": [0],
                "Property can be converted to comoving": [1],
            }
        )


def _swift_cosmology(told: Mapping[Any, Any]) -> dict[str, Any]:
    """Return what SWIFT's files tell of the universe, which readers need whole: matter and dark energy alone."""
    if "hubble" not in told or "omega_m" not in told:
        return {"Cosmological run": [0]}
    h, matter = float(told["hubble"]), float(told["omega_m"])
    dark = float(told.get("omega_lambda", 1 - matter))
    omegas = {"m": matter, "lambda": dark, "k": 1 - matter - dark, "r": 0.0, "b": float(told.get("omega_b", 0.0))}
    known = {"h": [h], "H0 [internal units]": [100 * h], "w_0": [-1.0], "w_a": [0.0], "Cosmological run": [1]}
    return known | {f"Omega_{name}": [value] for name, value in omegas.items()}


def _target(path: str | os.PathLike[str]) -> Path:
    known_suffix(path, HDF5)
    check_kind(Path(path), is_folder=False)
    return Path(path)


def _of_types(counts: Any) -> dict[str, Any]:
    """Return numbers of particles by type as headers have them."""
    low = {"NumPart_Total": (counts & 0xFFFFFFFF).astype(np.uint32)}
    high = {"NumPart_Total_HighWord": (counts >> 32).astype(np.uint32)}
    return {"NumPart_ThisFile": counts, **low, **high, "MassTable": np.zeros(len(counts))}


def _in(table: xr.Dataset, name: str, wanted: str) -> Any:
    return table[name].values * _by(table, name, wanted)


def _by(table: xr.Dataset, name: str, wanted: str) -> float:
    """Return what a column is multiplied by to be in a unit."""
    unit = table[name].attrs.get("units")
    by = None if unit is None else ratio(str(unit), wanted, table.attrs.get("hubble"))
    if by is None:
        raise ValueError(
            f"{name} must have a unit that converts to {wanted!r}, got {unit!r}; name it in attrs['units'], and tell "
            "attrs['hubble'] of the table where only one is with 1/h"
        )
    return float(by)
