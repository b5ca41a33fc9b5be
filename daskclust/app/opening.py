"""Files of any field as a data set, and the Python line that opens them; of data larger than memory, a part.

Points that are thinned cluster otherwise, so a part is whole: all points of a time window, of some events or layers, or
of a region of space.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.app.parameters import rounded
from daskclust.core.data.inputs import NOT_CLUSTERED
from daskclust.core.data.limits import free_memory
from daskclust.core.data.quote import argument, listed
from daskclust.io.any_file import reader_of
from daskclust.io.files import TEXT, check_file
from daskclust.io.schema import Columns

Array = npt.NDArray[Any]
Limits = Mapping[str, tuple[float, float]]

FIELD_OF = {"events": "timepix", "clue": "calorimeter", **dict.fromkeys(("dbscan", "fof", "hdbscan"), "particles")}
"""The field by whose names a system's tables are read, as its command does."""

_CHUNKED = ("read_hits", "open_particles", "open_tpx3")  # readers that may leave points in the file
_OF_CELLS = ("open_fcs", "read_cells")
_AT_ONCE = (*TEXT, ".npz")  # formats that they read at once, nevertheless

_WORKING = 16  # bytes in use for each byte of the data: results, sorted copies, pictures
_SHARE = 0.5  # of free memory
_MOST = 1_000_000  # points of a part
_SAMPLE = 100_000  # values by which the limits of a part are chosen
_SAFE = 0.9  # of the points that a part may have: its limits are those of a sample
_WHOLE = ("event", "layer")  # variables whose values are taken completely
_DIGITS = 6


def open_file(
    opened: Path | Sequence[Path],
    system: str | None = None,
    columns: Columns | None = None,
    units: Mapping[str, str] | None = None,
    coordinates: Sequence[str] | None = None,
    cells: Mapping[str, Any] = MappingProxyType({}),
    pixels: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[xr.Dataset, *tuple[str, ...]]:
    """Return the points of one file or of several, and the lines that read them.

    Columns that are the `coordinates` become ``x``, ``y``, ``z``. `cells` and `pixels` are options of readers of cells
    and of pixel hits. Points are in memory, unless they may be larger than that.
    """
    paths = [opened] if isinstance(opened, Path) else list(opened)
    for path in reversed(paths):
        if not path.is_dir():
            check_file(str(path))
    given_path = str(path) if len(paths) == 1 else [str(each) for each in paths]
    chosen = {name: value for name, value in (("columns", columns), ("units", units)) if value is not None}
    name, options = _reader(path, "hca" if cells else system, chosen)
    of_pixels = ("open_tpx3",) if "gap" in pixels else ("open_tpx3", "read_hits")
    for given, readers in ((chosen, ("read_hits", "open_particles")), (cells, _OF_CELLS), (pixels, of_pixels)):
        if given and name not in readers:
            raise ValueError(
                f"{' and '.join(given)} cannot be chosen of {path.name}, a file for daskclust.io.{name}; leave them out"
            )
    options |= {**cells, **pixels}
    size = sum(map(_bytes, paths))
    if name in _CHUNKED and path.suffix.lower() not in _AT_ONCE and is_large(size):
        options = {**options, "chunks": "auto"}
    may_be_cells = system is None and not chosen and size < free_memory()  # these are read at once
    ds, line = _opened(given_path, name, options, may_be_cells=may_be_cells)
    if "channels" in cells:  # these are clustered, all of them
        ds = ds.assign_attrs({NOT_CLUSTERED: []})
    if coordinates is None:
        return ds, line
    names, others = dict(zip(coordinates, ("x", "y", "z"), strict=False)), {"x", "y", "z"} - set(coordinates)
    if unknown := [each for each in coordinates if each not in ds.variables]:
        raise ValueError(f"coordinates names {unknown[0]!r}, which {path.name} does not have; it has {listed(ds)}")
    left_out = sorted(others & {str(each) for each in ds.variables})
    return ds.drop_vars(left_out).rename(names), line, f"ds = ds.drop_vars({left_out!r}).rename({names!r})"


def _opened(path: str | list[str], name: str, options: dict[str, Any], *, may_be_cells: bool) -> Any:
    """Return the points of a file and the line that reads them; a table without positions may be one of cells."""
    try:
        return _read(path, name, options)
    except ValueError:
        with contextlib.suppress(ValueError):
            if name in ("read_hits", "open_particles") and may_be_cells:
                return _read(path, "read_cells", {})
        raise


def _reader(path: Path, system: str | None, chosen: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    name = reader_of(path, of_cells=system == "hca")
    if name == "open_particles":
        return name, {"chunks": None, **chosen}
    if name == "read_hits":
        return name, {**({} if system is None else {"field": FIELD_OF.get(system)}), **chosen}
    return name, {}


def _read(path: str | list[str], name: str, options: dict[str, Any]) -> tuple[xr.Dataset, str]:
    from daskclust import io

    ds = getattr(io, name)(path, **options)
    is_bare = name == "read_hits" and "field" not in options and not {"layer", "energy", "toa"} & set(ds.variables)
    if is_bare and "z" in ds.variables and ds.attrs.get("field") == "calorimeter":
        options = {**options, "field": "particles"}  # three coordinates and no layers: no hits of a calorimeter
        ds = io.read_hits(path, **options)
    given = "".join(f", {key}={value!r}" for key, value in options.items())
    line = f"ds = io.{name}({path!r}{given})"
    return (ds if ds.chunks and is_large(ds.nbytes) else ds.compute()), line


def _bytes(path: Path) -> int:
    """Return the size of a file, or of all in a folder."""
    return sum(each.stat().st_size for each in (path.rglob("*") if path.is_dir() else [path]))


# --------------------------------------------------------------------------------------------------- larger than memory
@dataclass(frozen=True, eq=False)
class OpenedPart:
    """A part of a lazy data set: limits of variables that its points are within, and limits of the whole."""

    whole: xr.Dataset
    inside: Limits
    among: Limits
    points: int

    @property
    def words(self) -> str:
        """What is seen, and of how many points."""
        pairs = ((name, self.inside[name], self.among[name]) for name in self.inside)
        ranges = [
            f"{name} {low:.4g}..{high:.4g} of {least:.4g}..{most:.4g}" for name, (low, high), (least, most) in pairs
        ]
        return f"a part: {', '.join(ranges)}; {self.points:,} of {self.of:,} points"

    @property
    def of(self) -> int:
        """Number of all points."""
        return int(self.whole.sizes[_dim(self.whole)])

    @property
    def lines(self) -> list[str]:
        """Python lines that make the part of ``ds``, the whole."""
        sides = (f"(ds[{name!r}] >= {low!r}) & (ds[{name!r}] <= {high!r})" for name, (low, high) in self.inside.items())
        return [
            f"part = {' & '.join(sides)}  # without these two lines, all is clustered, chunk by chunk",
            f"ds = ds.isel({argument(_dim(self.whole), 'np.flatnonzero(part.values)')}).compute()",
        ]


def is_large(size: int) -> bool:
    """Return whether data of so many bytes, and all that is made of them, may be too much for memory."""
    return _WORKING * size > _SHARE * free_memory()


def part_of(ds: xr.Dataset) -> tuple[xr.Dataset, OpenedPart | None]:
    """Return a data set itself, or, of one larger than memory, a part in memory.

    One pass over the variables by which the part is limited, and one over the chunks that have points of it.
    """
    if not ds.chunks or not is_large(ds.nbytes):
        return ds, None
    dim = _dim(ds)
    n = ds.sizes[dim]
    size = ds.nbytes / n
    most = min(_MOST, max(1000, int(_SHARE * free_memory() / (_WORKING * size))))
    names = _limiting(ds)
    least, greatest, sample = _survey(ds, names, dim)
    among = {name: (float(np.nanmin(least[k])), float(np.nanmax(greatest[k]))) for k, name in enumerate(names)}
    inside = _limits(names, sample, most * _SAFE / n, among)
    ends = np.concatenate([[0], np.cumsum(ds.chunks[dim])])
    apart = np.zeros(len(ends) - 1, np.bool_)
    for low, high, (left, right) in zip(least, greatest, inside.values(), strict=True):
        apart |= (high < left) | (low > right)
    found = [_within(ds.isel({dim: slice(ends[k], ends[k + 1])}), inside, dim) for k in np.flatnonzero(~apart)]
    part = xr.concat(found, dim, data_vars="minimal", join="override")
    return part, OpenedPart(ds, inside, among, part.sizes[dim])


def _dim(ds: xr.Dataset) -> str:
    return str(next(iter(ds.chunks)) if ds.chunks and "x" not in ds.variables else ds[_positions(ds)[0]].dims[0])


def _positions(ds: xr.Dataset) -> list[str]:
    return [name for name in ("x", "y", "z") if name in ds.variables]


def _limiting(ds: xr.Dataset) -> list[str]:
    """Return the variables that limit a part: time, else events or layers, else the axes of space."""
    first = [name for name in ("toa", *_WHOLE) if name in ds.variables][:1]
    names = first or _positions(ds)
    if not names:
        raise ValueError(
            f"the data set is larger than memory, and has no x, toa, event or layer of which a part could be taken; "
            f"it has {', '.join(map(str, ds.variables))}. Select points before you explore them"
        )
    return names


def _survey(ds: xr.Dataset, names: list[str], dim: str) -> tuple[Array, Array, Array]:
    """Return the least and greatest values of each chunk, and a sample of values, for each variable."""
    import dask
    import dask.array as da

    step = max(1, ds.sizes[dim] // _SAMPLE)
    columns = [da.asarray(ds[name].data) for name in names]
    ends = [
        [column.map_blocks(_end, end, chunks=((1,) * column.numblocks[0],), dtype="f8") for column in columns]
        for end in ("fmin", "fmax")
    ]
    least, greatest, sample = dask.compute(*ends, [column[::step] for column in columns])
    return np.array(least), np.array(greatest), np.array(sample, np.float64)


def _end(block: Array, end: str) -> Array:
    """Return the least or greatest value of a block, NaN where it has none."""
    return np.array([getattr(np, end).reduce(block.astype(np.float64), initial=np.nan)])


def _limits(names: list[str], sample: Array, share: float, among: Limits) -> dict[str, tuple[float, float]]:
    """Return limits within which a share of the points is: the first ones of time, events or layers; or around one."""
    there = sample[:, np.isfinite(sample).all(axis=0)]
    if names[0] in ("toa", *_WHOLE):
        low, high = among[names[0]][0], float(np.quantile(there[0], min(share, 1.0)))
        # of the last event a part may be beyond
        return {names[0]: (low, max(low, np.floor(high) - 1) if names[0] in _WHOLE else high)}
    middle = there[:, np.argmin(np.abs(there - np.median(there, axis=1, keepdims=True)).sum(axis=0))]
    sides = np.array([among[name][1] - among[name][0] for name in names])
    away = np.abs((there - middle[:, None]) / np.where(sides > 0, sides, 1.0)[:, None]).max(axis=0)
    reach = float(np.quantile(away, min(share, 1.0))) * sides
    ends = zip(names, middle - reach, middle + reach, strict=True)
    return {name: (rounded(float(low), _DIGITS), rounded(float(high), _DIGITS)) for name, low, high in ends}


def _within(chunk: xr.Dataset, inside: Limits, dim: str) -> xr.Dataset:
    loaded = chunk.compute()
    columns = [(loaded[name].values, ends) for name, ends in inside.items()]
    there = np.logical_and.reduce([(values >= low) & (values <= high) for values, (low, high) in columns])
    return loaded.isel({dim: np.flatnonzero(there)})
