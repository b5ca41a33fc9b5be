"""Several files as one data set: a list of names, a glob, or a folder, for all readers."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import pairwise
from typing import Any, Concatenate, ParamSpec, Protocol

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.fields import CALORIMETER
from daskclust.core.data.quote import listed, quoted
from daskclust.core.device.arrays import is_dask
from daskclust.io.files import Paths, files_of
from daskclust.io.rows import About, chunk_sizes

logger = logging.getLogger(__name__)

Options = ParamSpec("Options")
Integers = npt.NDArray[np.integer[Any]]

SOURCE, FILES = "source", "files"
"""The variable that tells the file of a point by its number, and the attribute with the names of the files."""

# Attributes that say what values mean: they must be equal. Of others, those that count are added.
_MEANING = (
    "field", "layout", "gap", "boxsize", "boxsize_units", "transform", "cofactor", "linear", "compensation",
    "not_clustered", "particle_type",
)  # fmt: skip
_COUNT = "n_"


class Reader(Protocol[Options]):
    """A reader of one file, or of several as one data set."""

    def __call__(self, path: Paths, *args: Options.args, **options: Options.kwargs) -> xr.Dataset:
        """Return the points of the files."""


def takes_several(
    *endings: str, about: int = 1, parts: Callable[[str], Sequence[str]] = lambda path: [path]
) -> Callable[[Callable[Concatenate[Any, Options], xr.Dataset]], Reader[Options]]:
    """Let a reader of one file take several: of a folder those with its `endings`, or all where there are none.

    `about` is what ``chunks="auto"`` means; ``parts(file)`` returns all files that one stands for, as of a snapshot.
    """

    def decorated(reader: Callable[Concatenate[Any, Options], xr.Dataset]) -> Reader[Options]:
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
            chunks = {"chunks": default, **options}["chunks"]
            return joined(found, About(about) if chunks == "auto" else chunks)

        signature = inspect.signature(reader)
        default = signature.parameters["chunks"].default if "chunks" in signature.parameters else None
        first, *others = signature.parameters.values()
        first = first.replace(annotation="str | os.PathLike[str] | Iterable[str | os.PathLike[str]]")
        read.__signature__ = signature.replace(parameters=[first, *others])  # type: ignore[attr-defined]
        return read

    return decorated


# --------------------------------------------------------------------------------------------------------- one data set
def joined(found: Mapping[str, xr.Dataset], chunks: Any = None) -> xr.Dataset:
    """Return the data sets of files as one, with ``source``, the number of the file of each point.

    Events and frames go on from file to file. A file of a calorimeter without events is one event. Small files share a
    chunk where `chunks` are `About` so long.
    """
    files = list(found)
    first, dim = found[files[0]], next(str(dim) for dim in found[files[0]].sizes if dim != "channel")
    parts = [_alike(each, file, first, files[0]) for file, each in found.items()]
    sizes = [each.sizes[dim] for each in parts]
    _tell_of_times(parts, files)
    ds = xr.concat(
        parts if any(sizes) else parts[:1],
        dim,
        data_vars="all",
        coords="minimal",
        compat="override",
        join="override",
        combine_attrs="override",
    )
    about = {"long_name": "number of the file, from 0", FILES: files}
    ds[SOURCE] = (dim, _numbers(sizes, ds.chunks.get(dim)), about)
    is_calorimeter = first.attrs.get("field") == CALORIMETER.name
    for name in ("event", *([] if is_calorimeter else ["frame"])):
        if name in first.variables:
            number = ds[name]
            ds[name] = (dim, _numbered_on(number.data.astype(np.int64, copy=False), sizes), number.attrs)
    if is_calorimeter and "event" not in first.variables:
        ds["event"] = ds[SOURCE].astype(np.int64).assign_attrs(CALORIMETER.attrs["event"])
        if len(files) > 1:
            logger.warning("the files have no event numbers: each of the %d files is one event", len(files))
    if ds.chunks and isinstance(chunks, About):
        ds = ds.chunk({dim: chunk_sizes(chunks, [(size, size) for size in ds.chunks[dim]])})
    ds.attrs = {**joined_attrs([each.attrs for each in found.values()]), SOURCE: files, FILES: files}
    return ds


def _numbers(sizes: Sequence[int], chunks: tuple[int, ...] | None) -> Any:
    """Return the number of the file of each point, in chunks where the points are."""
    if chunks is None:
        return np.concatenate([np.full(size, number, np.int32) for number, size in enumerate(sizes)])
    import dask.array as da

    return da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
        _filled, chunks, _files_of_chunks(sizes, chunks), chunks=(chunks,), dtype=np.int32,
        meta=np.empty(0, np.int32), token="daskclust-io-source",
    )  # fmt: skip


def _filled(sizes: Sequence[int], numbers: Integers, block_id: Any) -> Integers:
    return np.full(sizes[block_id[0]], numbers[block_id[0]], np.int32)


def _files_of_chunks(sizes: Sequence[int], chunks: Sequence[int]) -> Integers:
    """Return the number of the file that each chunk is of."""
    starts = np.cumsum([0, *chunks[:-1]])
    return np.minimum(np.searchsorted(np.cumsum(sizes), starts, side="right"), len(sizes) - 1)


def _numbered_on(event: Any, sizes: Sequence[int]) -> Any:
    """Return events whose numbers go on from file to file, those that rise as they are; in memory the same array."""
    if not is_dask(event):
        parts = np.split(event, np.cumsum(sizes)[:-1])  # views
        offsets = _offsets(np.concatenate([_ends(part) for part in parts]), np.arange(len(sizes)))
        for part, offset in zip(parts, offsets, strict=True):
            if offset:
                part += offset
        return event
    import dask.array as da

    count, files = event.numblocks[0], _files_of_chunks(sizes, event.chunks[0])
    about: dict[str, Any] = {"dtype": np.int64, "token": "daskclust-io-event"}
    ends = event.map_blocks(_ends, chunks=((1,) * count, (2,)), new_axis=1, meta=np.empty((0, 0), np.int64), **about)
    ends = ends.rechunk((count, 2))
    offsets = ends.map_blocks(_offsets, files, chunks=((count,),), drop_axis=1, meta=np.empty(0, np.int64), **about)
    return da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
        np.add, event, offsets.rechunk(1), chunks=event.chunks, meta=np.empty(0, np.int64), **about
    )


def _ends(event: Integers) -> Integers:
    """Return the least and the greatest number, shape (1, 2); the first is greater where there are none."""
    limits = np.iinfo(np.int64)
    return np.array([[event.min(initial=limits.max), event.max(initial=limits.min)]])


def _offsets(ends: Integers, files: Integers) -> Integers:
    """Return what is added to the numbers of each part, by the ends of the parts and their files."""
    offsets, last = np.zeros(len(ends), np.int64), None
    for file in np.unique(files):
        own = files == file
        least, most = int(ends[own, 0].min()), int(ends[own, 1].max())
        if least > most:
            continue
        offset = last + 1 - least if last is not None and least <= last else 0
        offsets[own], last = offset, most + offset
    return offsets


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
    timed = [(file, ds) for file, ds in zip(files, parts, strict=True) if "toa" in ds and "frame" not in ds]
    spans = [(file, ds["toa"].data) for file, ds in timed if not ds.chunks]
    spans = [(file, toa) for file, toa in spans if len(toa)]
    for (before, earlier), (file, toa) in pairwise(spans):
        if toa[0] < earlier[-1]:
            logger.warning(
                "times of %s begin before those of %s end: if these are runs of their own, cluster each by itself, as "
                "in ds.groupby('source')", file, before,
            )  # fmt: skip
            return


def joined_attrs(given: Sequence[Mapping[Any, Any]]) -> dict[Any, Any]:
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
