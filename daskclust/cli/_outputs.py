"""What clustering commands write: points with labels and tables of clusters, in any format."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from daskclust.cli._options import writing
from daskclust.core.data.files import PARQUET

if TYPE_CHECKING:
    import xarray as xr

    from daskclust.io import ParquetSink

WRITABLE = (".parquet", "(.pq)", ".csv", ".h5", "(.hdf5)", ".npz", ".zarr")
FORMATS = ".parquet, .csv, .h5, .npz or .zarr"
_WRITTEN_IN_PART = re.compile(r"\d+ requested and \d+ written")  # NumPy's words for a full disk

Output = Annotated[Path | None, writing(f"Points with labels: {FORMATS}.", "--output", "-o")]
Table = Annotated[Path | None, writing("Clusters, a row each, in the same formats.", "--table")]


def check_outputs(
    sources: Sequence[str | Path], outputs: Mapping[str, Path | None], suffixes: Sequence[str] = WRITABLE
) -> None:
    """Refuse, before any work, outputs by option that are no files of a kind, the input, or one and the same.

    A suffix in brackets may be used, too, and is not told of.
    """
    given = {option: path for option, path in outputs.items() if path is not None}
    told = " or ".join(suffix for suffix in suffixes if not suffix.startswith("("))
    for option, path in given.items():
        if path.suffix not in [suffix.strip("()") for suffix in suffixes]:
            raise ValueError(f"{option} must be a {told} file, got {path}")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to; make it first")
        if path.is_dir() and path.suffix != ".zarr":
            raise IsADirectoryError(f"{path} is a folder, not a file to write to; name a file in it")
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(f"nothing may be written to the folder {path.parent}; write to another one")
        if path.resolve() in [Path(source).resolve() for source in sources]:
            raise ValueError(f"{option} {path} is the input; write to another file")
    if len({path.resolve() for path in given.values()}) < len(given):
        raise ValueError(f"{' and '.join(given)} are one file, {path}; write to different ones")


def write_points(data: xr.Dataset, path: Path) -> None:
    """Write points, or a table, to a file of any format."""
    from daskclust.io import write_hits, write_particles

    (write_particles if path.suffix == ".zarr" else write_hits)(data, path)


@contextmanager
def growing(path: Path, dim: str) -> Iterator[ParquetSink]:
    """Open a file that grows table by table, along a dimension.

    Other formats than Parquet are made of a Parquet file beside it, chunk by chunk, which is removed at the end.
    """
    from daskclust.io import ParquetSink

    if path.suffix in PARQUET:
        with ParquetSink(path) as sink:
            yield sink
        return
    rows = path.with_name(f".{path.name}.parquet")
    try:
        with ParquetSink(rows) as sink:
            yield sink
        write_points(_lazy(rows, dim), path)
    finally:
        rows.unlink(missing_ok=True)


def _lazy(path: Path, dim: str) -> xr.Dataset:
    """Return the columns of a Parquet file under their own names, lazy."""
    import pyarrow.parquet as pq
    import xarray as xr

    from daskclust.io.fields import TIMEPIX
    from daskclust.io.lazy import About
    from daskclust.io.schema import Naming
    from daskclust.io.tables.parquet_read import read_parquet

    names = pq.read_schema(path).names
    found = read_parquet(str(path), Naming(TIMEPIX, {name: name for name in names}, str(path)), About(1 << 20))
    units = {name: {"units": unit} for name, unit in found.units.items()}
    columns = {name: (dim, values, units.get(name, {})) for name, values in found.columns.items()}
    return xr.Dataset(columns, attrs=found.attrs)


@contextmanager
def naming(path: Path | None) -> Iterator[None]:
    """Let errors of the disk name the file that is written: the system does not."""
    try:
        yield
    except OSError as error:
        number = error.errno or (errno.ENOSPC if _WRITTEN_IN_PART.match(str(error)) else None)
        if path is None or number is None or error.filename is not None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from error
