"""Snapshots of simulations in HDF5, as Gadget-2 to 4, AREPO, EAGLE and SWIFT write them: one file or several."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.quote import listed, meant, quoted
from daskclust.io.attrs import KEY, plain_attrs, unpack
from daskclust.io.files import HDF5, check_file, reading, reads
from daskclust.io.particles.units import SCALE, first_number, number, system_of, unit_of
from daskclust.io.rows import ReadRows, Stored, chunk_sizes, rows_of_parts
from daskclust.io.schema import COMPONENTS, KNOWN, REST, Columns, Naming, Table
from daskclust.io.tables.binary import no_numbers
from daskclust.io.tables.hdf5 import datasets_in, import_h5py, inside, lacks, read_dataset

TYPES = {"gas": 0, "dm": 1, "stars": 4, "bh": 5}
"""Types of particles that all these codes number alike."""

# Attributes of the groups Cosmology (SWIFT), Header and Parameters that become attributes of the data set.
_COSMOLOGY = {
    "hubble": ("h", "HubbleParam"),
    "omega_m": ("Omega_m", "Omega0"),
    "omega_lambda": ("Omega_lambda", "OmegaLambda"),
    "omega_b": ("Omega_b", "OmegaBaryon"),
}
_ABOUT = ("Units", "Parameters", "Header", "Cosmology")  # groups of attributes; of two of a name, the later one counts
_NUMBERED = re.compile(r"(.*\.)(\d+)(\.[^.]+)")


@dataclass(frozen=True, slots=True)
class _Member:
    """One array of one file, and what its columns become."""

    name: str
    becomes: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    attrs: dict[str, Any]
    own: int | None  # rows of a chunk of the file


@dataclass(frozen=True, slots=True)
class _File:
    """What one file tells: its header, attributes of this and other groups, and the arrays of one type to read."""

    path: str  # absolute
    header: dict[str, Any]
    about: dict[str, Any]
    rows: int
    members: dict[str, _Member]


def read_snapshot(path: str, kind: int, columns: Columns | None, chunks: int | None) -> Table:
    """Read particles of one type from a snapshot of which `path` is any one file.

    `columns` may name further arrays, and those to leave out; `chunks` are rows of lazy columns.
    """
    if columns is not None and not isinstance(columns, Mapping):
        raise ValueError(
            f"the arrays of {path} have names; give columns={{'its name': 'x', 'its name': 'y'}}, got {columns!r}"
        )
    first = _open(os.path.abspath(path), kind, columns)
    others = _files_of(first.path, first.header)
    files = [first if other == first.path else _open(other, kind, columns) for other in others]
    _check_agreement(files, kind)
    filled = [file for file in files if file.rows]
    if not filled:
        there = [k for k, count in enumerate(np.ravel(first.header.get("NumPart_Total", ()))) if count]
        has = "it has none at all"
        if there:
            has = f"it has {', '.join(f'PartType{k}' for k in there)}: choose one with particle_type={there[0]}"
        raise ValueError(f"{path} has no particles of type {kind}; {has}")
    attrs, known = unpack(first.header.get(KEY), path)
    units: dict[str, str | None] = {}
    scale = _scale_factor(first)
    found: dict[str, Any] = {}
    owns = ((file.rows, next((entry.own for entry in file.members.values()), None)) for file in filled)
    sizes = None if chunks is None else chunk_sizes(chunks, owns)
    for member, entry in filled[0].members.items():
        stored = _stored(filled, member, scale)
        names = _variables(stored.shape, entry.becomes, f"array {member} of {path}")
        twice = sorted(set(names) & set(found))
        if twice:
            raise ValueError(
                f"two arrays of {path} would become {listed(twice)}; rename one with columns={{{quoted(member)}: ...}}"
            )
        found.update(zip(names, stored.columns(sizes), strict=True))
        units.update(dict.fromkeys(names, _unit(filled[0], member)))
    if "mass" not in found and not (columns is not None and ("Masses" in columns or REST in columns)):
        table = first.header.get("MassTable")
        mass = number(table[kind]) if isinstance(table, list) and kind < len(table) else None
        if mass:
            rows, paths = sum(file.rows for file in filled), tuple(file.path for file in filled)
            found["mass"] = Stored(partial(_same, mass), paths, "HDF5", (rows,), np.dtype(np.float64)).array(sizes)
            units["mass"] = _unit(filled[0], "Masses")
    told = {**_attrs(first, scale), "particle_type": kind, **attrs}
    known |= {name: unit for name, unit in units.items() if unit is not None}
    known = {name: unit for name, unit in known.items() if name in found}
    return Table(found, Naming(None, None, path), known, told)


@reads("HDF5")
def _open(path: str, kind: int, columns: Mapping[str, str | None] | None) -> _File:
    """Read everything but the particles of one file."""
    with import_h5py().File(path, "r") as file:
        found = {name: inside(file, name, import_h5py().Group) for name in _ABOUT}
        attrs = {name: {} if group is None else plain_attrs(group.attrs) for name, group in found.items()}
        if found["Header"] is None:
            raise ValueError(
                f"{path} has no group Header, it has {listed(sorted(file))}: it is not a snapshot of "
                "Gadget, AREPO or SWIFT; where it has plain columns, use read_hits(path, field='particles')"
            )
        header = attrs["Header"]
        rows = _count(header, "NumPart_ThisFile", kind, path)
        members = _members(file, KEY in header, kind, rows, path, columns) if rows else {}
    return _File(path, header, {name: value for group in _ABOUT for name, value in attrs[group].items()}, rows, members)


def _count(header: Mapping[str, Any], name: str, kind: int, path: str) -> int:
    """Return one number of a list of the header, 0 beyond its end."""
    counts = header.get(name)
    if not isinstance(counts, list) or not all(isinstance(c, int | float) and c >= 0 and c % 1 == 0 for c in counts):
        raise ValueError(
            f"{name} in the Header of {path} is {quoted(counts)}, expected a number of particles for each type; "
            "write the snapshot again"
        )
    return int(counts[kind]) if kind < len(counts) else 0


def _members(
    file: Any, every: bool, kind: int, rows: int, path: str, columns: Mapping[str, str | None] | None
) -> dict[str, _Member]:
    """Return the arrays to read, of those in the file `every` one or what all codes have."""
    group_name = f"PartType{kind}"
    group = inside(file, group_name, import_h5py().Group)
    names = [] if group is None else datasets_in(group)
    if "Coordinates" not in names:
        raise ValueError(
            f"{path} has no array {group_name}/Coordinates, but its Header says that it has {rows} particles of this "
            f"type; it has {', '.join(names) or 'none'}: choose another type with particle_type="
        )
    members: dict[str, _Member] = {}
    for name, ours in _choose(names, columns, path, every=every).items():
        whole, remedy = f"{group_name}/{name}", f"leave it out with columns={{{quoted(name)}: None}}"
        dataset = file[whole]
        if dataset.is_virtual:
            raise ValueError(
                f"{path} has no particles itself, but names the files that have them, such as "
                f"{dataset.virtual_sources()[0].file_name}; open that one, and all that belong to it are read"
            )
        if fault := no_numbers(dataset.shape, dataset.dtype, f"array {whole} of {path}") or lacks(dataset, whole, path):
            raise ValueError(fault + remedy)
        if len(dataset) != rows:
            raise ValueError(
                f"array {whole} of {path} has {len(dataset)} rows, and the Header says {rows} particles: it was not "
                f"written completely; write it again, or {remedy}"
            )
        own = dataset.chunks and dataset.chunks[0]
        members[name] = _Member(whole, ours, dataset.shape, dataset.dtype, plain_attrs(dataset.attrs), own)
    return members


def _choose(names: list[str], columns: Mapping[str, str | None] | None, path: str, *, every: bool) -> dict[str, str]:
    """Return the arrays to read, and what each becomes: those that all codes have, or every one."""
    given = columns or {}
    # What codes usually have may be left out where it is not: it may be in other files, or a mass in the header.
    unknown = [name for name in given if name not in (*names, REST) and (given[name] is not None or name not in KNOWN)]
    if unknown:
        raise ValueError(
            f"{path} has no array {quoted(unknown[0])}{meant(unknown[0], names)} of this type; it has {listed(names)}"
        )
    if given.get(REST) is not None:
        raise ValueError(f"columns[{REST!r}] must be None (leave out all others), got {given[REST]!r}")
    if given.get("Coordinates", "") is None:
        raise ValueError(f"columns= leaves out Coordinates of {path}; particles have positions")
    rest = {} if REST in given else {name: KNOWN.get(name, name) for name in names if every or name in KNOWN}
    chosen = {"Coordinates": "", **rest, **given}
    ordered = [*(name for name in KNOWN if name in names), *(name for name in names if name not in KNOWN)]
    return {name: ours for name in ordered if (ours := chosen.get(name)) is not None}


def files_of_snapshot(path: str) -> list[str]:
    """Return all files of the snapshot that a file belongs to, by names like its own; the file alone if it is none."""
    if not path.lower().endswith(HDF5) or not is_snapshot(path):
        return [path]
    with reading(path, "HDF5"), import_h5py().File(path, "r") as file:
        header = plain_attrs(file["Header"].attrs)
    return [os.path.join(os.path.dirname(path), os.path.basename(other)) for other in _files_of(path, header)]


def _files_of(path: str, header: Mapping[str, Any]) -> list[str]:
    """Return all files of the snapshot, in the order of their numbers."""
    count = number(header.get("NumFilesPerSnapshot", 1))
    if count is None or count < 1 or count % 1:
        raise ValueError(
            f"NumFilesPerSnapshot in the Header of {path} is {quoted(header.get('NumFilesPerSnapshot'))}, "
            "expected a number of files; write the snapshot again"
        )
    if count == 1:
        return [path]
    folder, base = os.path.split(path)
    own = _NUMBERED.fullmatch(base)
    if own is None:
        raise ValueError(
            f"{path} says that the snapshot has {count:.0f} files, but has no number in its name, as in "
            "snap.0.hdf5, by which to find the others; give them the names that they were written with"
        )
    matches = [_NUMBERED.fullmatch(entry) for entry in os.listdir(folder or ".")]
    there = {int(m[2]): m[0] for m in matches if m and (m[1], m[3]) == (own[1], own[3])}
    # A damaged number may be very large: the first few that are missing are enough.
    missing = [str(k) for k in range(min(int(count), len(there) + 5)) if k not in there]
    if missing:
        raise FileNotFoundError(
            f"the snapshot of {path} has {count:.0f} files, and {own[1]}*{own[3]} with the numbers "
            f"{', '.join(missing[:5])}{' ...' if len(missing) > 4 else ''} are missing; copy them beside it"
        )
    return [os.path.join(folder, there[k]) for k in range(int(count))]


def _check_agreement(files: list[_File], kind: int) -> None:
    """Raise for files of different snapshots, and for numbers of particles that do not add up."""
    first = files[0]
    for file in files[1:]:
        for name in ("NumFilesPerSnapshot", "NumPart_Total", "Time", "Redshift", "BoxSize"):
            if repr(file.header.get(name)) != repr(first.header.get(name)):
                raise ValueError(
                    f"{name} is {quoted(file.header.get(name))} in {file.path} and {quoted(first.header.get(name))} in "
                    f"{first.path}: these are files of two snapshots; put each in its own folder"
                )
    if "NumPart_Total" not in first.header:
        return
    total = _count(first.header, "NumPart_Total", kind, first.path)
    if "NumPart_Total_HighWord" in first.header and total < 1 << 32:
        total += _count(first.header, "NumPart_Total_HighWord", kind, first.path) << 32
    rows = sum(file.rows for file in files)
    if rows != total:
        raise ValueError(
            f"the {len(files)} files of the snapshot of {first.path} have {rows} particles of type {kind}, and its "
            f"NumPart_Total says {total}: files are missing, or NumFilesPerSnapshot is wrong"
        )


def _stored(files: list[_File], member: str, scale: float | None) -> Stored:
    """Return how rows of one array of all files are read."""
    first = files[0]
    remedy = f"leave it out with columns={{{quoted(member)}: None}}"
    lacking = [file.path for file in files if member not in file.members]
    if lacking:
        raise ValueError(f"{lacking[0]} has no array {member} of this type, and {first.path} has; {remedy}")
    entries = [file.members[member] for file in files]
    if len({entry.shape[1:] for entry in entries}) > 1:
        raise ValueError(f"array {member} has different shapes in the files of {first.path}; {remedy}")
    factor = 1.0
    if KNOWN.get(member) == "v" and scale is not None:
        power = first_number(entries[0].attrs, SCALE)  # which makes velocities peculiar ones
        factor = scale ** ((0.0 if first.header.get("Code") == "SWIFT" else 0.5) if power is None else power)
    dtype = np.result_type(*[entry.dtype for entry in entries]).newbyteorder("=")
    if factor != 1:
        dtype = scalable(dtype)
    places = zip(files, entries, strict=True)
    parts = tuple((partial(read_dataset, file.path, entry.name), file.rows) for file, entry in places)
    shape = (sum(file.rows for file in files), *entries[0].shape[1:])
    return Stored(partial(_read_rows, parts, dtype, factor), tuple(file.path for file in files), "HDF5", shape, dtype)


def _read_rows(
    parts: tuple[tuple[ReadRows, int], ...], dtype: np.dtype[Any], factor: float, start: int, stop: int
) -> npt.NDArray[Any]:
    """Return rows start to stop of arrays in several files, times a factor."""
    out = np.concatenate(rows_of_parts(parts, start, stop)).astype(dtype, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):  # inf and NaN of a file stay such
        return out if factor == 1 else out * dtype.type(factor)


def scalable(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype that holds multiples of numbers of `dtype`, which may be whole."""
    return dtype if dtype.kind == "f" else np.result_type(dtype, np.float32)


def _same(value: float, start: int, stop: int) -> npt.NDArray[np.float64]:
    return np.full(stop - start, value)


def _variables(shape: tuple[int, ...], ours: str, what: str) -> list[str]:
    """Return what the columns of an array are called."""
    width = math.prod(shape[1:])
    if width == 1:
        return [ours or COMPONENTS[0]]
    if width > len(COMPONENTS):
        raise ValueError(f"{what} has {width} columns, and at most {len(COMPONENTS)} can be read")
    return [ours + axis for axis in COMPONENTS[:width]]


def _scale_factor(file: _File) -> float | None:
    """Return the scale factor of a cosmological run; None for one without expansion.

    Gadget's ``Time`` is the scale factor or the time, and its ``Redshift`` 0 where it is the time.
    """
    told = first_number(file.header, ("Scale-factor", "ExpansionFactor"))
    if told is None:
        time, redshift = number(file.header.get("Time")), number(file.header.get("Redshift"))
        if time is None or redshift is None or abs(time * (1 + redshift) - 1) > 1e-5:
            return None
        told = time
    if not 0 < told < float("inf"):
        raise ValueError(f"the scale factor in the Header of {file.path} is {quoted(told)}, expected a positive number")
    return told


def _unit(file: _File, member: str) -> str | None:
    is_swift = file.header.get("Code") == "SWIFT"
    power = 0.0 if is_swift or _scale_factor(file) is None else -1.0
    attrs = file.members[member].attrs if member in file.members else {}
    told = attrs.get("units")
    return told if isinstance(told, str) else unit_of(member, attrs, system_of(file.about), power)


def _attrs(file: _File, scale: float | None) -> dict[str, Any]:
    told: dict[str, Any] = {"boxsize": file.header.get("BoxSize")}
    if scale is None:
        told["time"] = number(file.header.get("Time"))
    else:
        told |= {"redshift": number(file.header.get("Redshift")), "scale_factor": scale}
    told |= {name: first_number(file.about, names) for name, names in _COSMOLOGY.items()}
    told["code"] = code if isinstance(code := file.header.get("Code"), str) else None
    return {name: value for name, value in told.items() if value is not None}


def is_snapshot(path: str | os.PathLike[str]) -> bool:
    """Return whether an HDF5 file is not one of plain columns; of damaged files, too: the reader of snapshots tells."""
    try:
        check_file(os.fspath(path))  # a pipe would be waited for
        with import_h5py().File(path, "r") as file:
            return "Header" in file
    except (ImportError, OSError, ValueError):
        return True
