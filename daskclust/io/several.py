"""Several files as one data set: a list of names, a glob, or a folder, for all readers."""

from __future__ import annotations

import glob
import inspect
import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import pairwise
from typing import Any, Concatenate, ParamSpec

import numpy as np
import xarray as xr

from daskclust.core.data.fields import CALORIMETER
from daskclust.core.data.quote import listed, quoted, repeated
from daskclust.io.files import is_parts, is_store

logger = logging.getLogger(__name__)

Path = str | os.PathLike[str]
Paths = Path | Iterable[Path]
"""What names one file or several."""

Options = ParamSpec("Options")

SOURCE, FILES = "source", "files"
"""The variable that tells the file of a point by its number, and the attribute with the names of the files."""

_MEMBER = re.compile(r"(.*\.(?:root|hdf5|h5))(:[^*?\[]*)", re.IGNORECASE)  # of file.root:tree
# Attributes that say what values mean: they must be equal. Of others, those that count are added.
_MEANING = (
    "field", "layout", "gap", "boxsize", "boxsize_units", "transform", "cofactor", "linear", "compensation",
    "not_clustered", "particle_type",
)  # fmt: skip
_COUNT = "n_"


def takes_several(
    *endings: str, parts: Callable[[str], Sequence[str]] = lambda path: [path]
) -> Callable[[Callable[Concatenate[Any, Options], xr.Dataset]], Callable[Concatenate[Paths, Options], xr.Dataset]]:
    """Let a reader of one file take several: of a folder those with its `endings`, or all where there are none.

    ``parts(file)`` returns all files that one stands for, as one of a snapshot does.
    """

    def decorated(
        reader: Callable[Concatenate[Any, Options], xr.Dataset],
    ) -> Callable[Concatenate[Paths, Options], xr.Dataset]:
        @wraps(reader)
        def read(path: Paths, *args: Options.args, **options: Options.kwargs) -> xr.Dataset:
            files = files_of(path, endings)
            if files is None:
                return reader(path, *args, **options)
            found, known = {}, set[str]()
            for file in files:
                if file not in known:
                    known.update(parts(file))
                    found[file] = reader(file, *args, **options)
            return joined(found)

        signature = inspect.signature(reader)
        first, *others = signature.parameters.values()
        first = first.replace(annotation="str | os.PathLike[str] | Iterable[str | os.PathLike[str]]")
        read.__signature__ = signature.replace(parameters=[first, *others])  # type: ignore[attr-defined]
        return read

    return decorated


def files_of(paths: Paths, endings: Sequence[str] = ()) -> list[str] | None:
    """Return the files that a list, a glob or a folder names; None for the name of one file.

    A list keeps its order. Of globs and folders files are in the order of their names, where numbers count as numbers.
    """
    if isinstance(paths, str | os.PathLike):
        return _expanded(os.fspath(paths), endings)
    given = list(paths) if isinstance(paths, Iterable) and not isinstance(paths, bytes) else [paths]
    if wrong := [path for path in given if not isinstance(path, str | os.PathLike)]:
        raise TypeError(f"path must be the name of a file, or a list of names, got {quoted(wrong[0])}")
    if not given:
        raise ValueError("the list of files is empty; name one or more")
    found = [file for path in map(os.fspath, given) for file in _expanded(path, endings) or [path]]
    if twice := repeated(map(os.path.realpath, found)):
        raise ValueError(f"{twice[0]} is given twice; name each file once")
    return found


def numeric_order(name: str) -> list[Any]:
    """Return a key that sorts names so that ``run_2`` is before ``run_10``."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _expanded(path: str, endings: Sequence[str]) -> list[str] | None:
    """Return the files of a glob or a folder, None for anything else."""
    if os.path.isdir(path):
        return None if _is_one(path) else _in_folder(path, endings)
    if not glob.has_magic(path) or os.path.lexists(path):
        return None
    member = _MEMBER.fullmatch(path)
    pattern, chosen = member.groups() if member else (path, "")
    found = [file + chosen for file in glob.glob(pattern, recursive=True) if _is_one(file)]
    if not found:
        raise FileNotFoundError(f"no file matches {path}; is the folder {quoted(os.path.dirname(path) or '.')} right?")
    return sorted(found, key=numeric_order)


def _is_one(path: str) -> bool:
    """Return whether a path is a file, or a folder that is read as one."""
    return not os.path.isdir(path) or is_parts(path.rstrip("/")) or is_store(path) or path.endswith(".zarr")


def _in_folder(folder: str, endings: Sequence[str]) -> list[str]:
    """Return the files of a folder that a reader may take, if they are of one kind."""
    names = [name for name in os.listdir(folder) if not name.startswith((".", "_"))]
    names = [name for name in names if _is_one(os.path.join(folder, name)) and (not endings or _kind(name) in endings)]
    kinds = sorted(set(map(_kind, names)))
    if not names:
        wanted = f"that has {' or '.join(endings)} files" if endings else "with files in it"
        raise IsADirectoryError(f"{folder} is a directory; give one {wanted}, or a file")
    if len(kinds) > 1:
        pattern = os.path.join(folder, f"*{kinds[0]}")
        raise ValueError(f"{folder} has files of several kinds, {listed(kinds)}; choose those of one, as {pattern}")
    return [os.path.join(folder, name) for name in sorted(names, key=numeric_order)]


def _kind(name: str) -> str:
    return os.path.splitext(name)[1].lower()


# --------------------------------------------------------------------------------------------------------- one data set
def joined(found: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the data sets of files as one, with ``source``, the number of the file of each point.

    Events go on from file to file. A file of a calorimeter without events is one event.
    """
    files = list(found)
    first, dim = found[files[0]], next(str(dim) for dim in found[files[0]].sizes if dim != "channel")
    has_events = "event" in first.variables
    parts: list[xr.Dataset] = []
    last: Any = None
    for number, (file, each) in enumerate(found.items()):
        ds = _alike(each, file, first, files[0])
        ds = ds.assign({SOURCE: (dim, _filled(ds, dim, number))})
        if has_events and ds.sizes[dim]:
            event = ds["event"].data.astype(np.int64)
            if last is not None:
                least = event.min()
                event = event + (least <= last) * (last + 1 - least)
            last = event.max()
            ds["event"] = (dim, event, ds["event"].attrs)
        parts.append(ds)
    _tell_of_times(parts, files)
    ds = xr.concat(
        parts, dim, data_vars="all", coords="minimal", compat="override", join="override", combine_attrs="override"
    )
    ds[SOURCE].attrs = {"long_name": "number of the file, from 0", FILES: files}
    if first.attrs.get("field") == CALORIMETER.name and not has_events:
        ds["event"] = ds[SOURCE].astype(np.int64).assign_attrs(CALORIMETER.attrs["event"])
        if len(files) > 1:
            logger.warning("the files have no event numbers: each of the %d files is one event", len(files))
    ds.attrs = {**_attrs([each.attrs for each in found.values()]), SOURCE: files, FILES: files}
    return ds


def _filled(ds: xr.Dataset, dim: str, number: int) -> Any:
    """Return a number for each point, lazy where the points are."""
    if dim not in ds.chunks:
        return np.full(ds.sizes[dim], number, np.int32)
    import dask.array as da

    return da.full(ds.sizes[dim], number, dtype=np.int32, chunks=(ds.chunks[dim],))


def _alike(ds: xr.Dataset, file: str, first: xr.Dataset, first_file: str) -> xr.Dataset:
    """Return the data set of a file if it has the columns and units of the first; its channels in their order."""
    if SOURCE in ds.variables:
        raise ValueError(
            f"{file} has a column {SOURCE!r}, which tells the file where there are several; rename it, or leave it out "
            f"with columns={{{SOURCE!r}: None}}"
        )
    _check_names("column", ds.variables, file, first.variables, first_file)
    if "channel" in first.coords:
        names, wanted = ds["channel"].values.tolist(), first["channel"].values.tolist()
        _check_names("channel", names, file, wanted, first_file)
        ds = ds.isel(channel=[names.index(name) for name in wanted]) if names != wanted else ds
    facts = [(f"the unit of {name!r}", ds[name].attrs, first[name].attrs, "units") for name in first.variables]
    facts += [(f"{name!r}", ds.attrs, first.attrs, name) for name in _MEANING]
    for what, ours, theirs, name in facts:
        if _comparable(ours.get(name)) != _comparable(theirs.get(name)):
            raise ValueError(
                f"{what} is {quoted(ours.get(name))} in {file}, and {quoted(theirs.get(name))} in {first_file}; "
                "read them one by one"
            )
    return ds


def _comparable(value: Any) -> str:
    """Return an attribute as text, names of channels in an order of their own."""
    is_names = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return repr(sorted(value) if is_names else value)


def _check_names(what: str, names: Iterable[Any], file: str, wanted: Iterable[Any], first_file: str) -> None:
    """Refuse a file that has not the names of the first one."""
    for others, one, other in (
        (set(wanted) - set(names), first_file, file),
        (set(names) - set(wanted), file, first_file),
    ):
        if others:
            raise ValueError(
                f"{one} has the {what} {listed(sorted(map(str, others)))}, and {other} has not; files that are read "
                f"together have the same {what}s"
            )


def _tell_of_times(parts: Sequence[xr.Dataset], files: Sequence[str]) -> None:
    """Warn where hits in memory, which are in the order of time, of one file are not all after those of the last."""
    spans = [(file, ds["toa"].data) for file, ds in zip(files, parts, strict=True) if "toa" in ds and not ds.chunks]
    spans = [(file, toa) for file, toa in spans if len(toa)]
    for (before, earlier), (file, toa) in pairwise(spans):
        if toa[0] < earlier[-1]:
            logger.warning(
                "times of %s begin before those of %s end: if these are runs of their own, cluster each by itself, as "
                "in ds.groupby('source')", file, before,
            )  # fmt: skip
            return


def _attrs(given: Sequence[Mapping[Any, Any]]) -> dict[Any, Any]:
    """Return the attributes of several data sets: those that are equal, sums of counts, and lists of other values."""
    attrs: dict[Any, Any] = {}
    for name in dict.fromkeys(name for each in given for name in each):
        values = [each.get(name) for each in given]
        if len(set(map(repr, values))) == 1:
            attrs[name] = values[0]
        elif str(name).startswith(_COUNT):
            attrs[name] = sum(value or 0 for value in values)
        elif all(isinstance(value, str | float | int) for value in values):
            attrs[name] = values
    return attrs
