"""Files of a stream of tables, of which nothing is lost: parts beside the file, and the file of all in the end."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import xarray as xr

from daskclust.core.data.files import HDF5, PARQUET, beside, known_suffix, naming, place_of, sync_folder
from daskclust.core.data.quote import short
from daskclust.io.blocks import only_dim
from daskclust.io.fields import TIMEPIX
from daskclust.io.hits import write_hits
from daskclust.io.lazy import About
from daskclust.io.particles.files import write_particles
from daskclust.io.schema import Naming
from daskclust.io.tables.parquet import ParquetSink
from daskclust.io.tables.parquet_parts import parts_of
from daskclust.io.tables.parquet_read import read_parquet

_log = logging.getLogger(__name__)

_ROWS, _SECONDS = 1 << 24, 10.0  # of a part
_WRITABLE = (".csv", *PARQUET, *HDF5, ".npz", ".zarr")
_CHUNK = 1 << 20  # rows of the file that are in memory at once


class PartsSink:
    """A file that grows table by table, of which all that was written stays, whatever ends the program.

    Parameters
    ----------
    path : str or path
        The file, ``.parquet``, ``.csv``, ``.h5``, ``.npz`` or ``.zarr``. One that exists is replaced at the end.
    keep : bool, default True
        Whether all stays after an error, too, if there are rows; False leaves nothing then.

    Attributes
    ----------
    attrs : dict of str to object
        Attributes to add to those of the first table; ``"ended"`` tells the error.
    n_rows : int
        Rows on disk.
    kept : pathlib.Path or None
        Where these rows are after the end: the file, or the folder of its parts; None where there are none.

    Notes
    -----
    It is a context manager. Tables go into parts, Parquet files in a folder ``NAME.parts.parquet`` beside the file, of
    10 s or 16,777,216 rows each, which `read_hits` and other programs read as one table. At the end the file is made of
    them, and they are removed. A process that is killed leaves the parts that are closed, and a disk that is too full
    for the file all.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from daskclust.io import PartsSink, read_hits
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "hits.csv")
    >>> try:
    ...     with PartsSink(file) as sink:
    ...         sink.write(xr.Dataset({"x": ("hit", [0.5]), "y": ("hit", [2.0])}))
    ...         raise ConnectionResetError
    ... except ConnectionResetError:
    ...     read_hits(file)["x"].values
    array([0.5])
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, keep: bool = True) -> None:
        known_suffix(path, _WRITABLE)
        self.path, self._keeps = Path(path), keep
        self.attrs: dict[str, Any] = {}
        self.n_rows, self._n_parts, self._dim = 0, 0, ""
        self.kept: Path | None = None
        self._folder, self._lock = Path(), threading.Lock()
        self._part: ParquetSink | None = None
        self._timer = threading.Timer(0, str)
        told = f"the sink of {path} is not open; use it as: with PartsSink(path) as sink: ..."
        self._error: Exception | None = ValueError(told)

    def __enter__(self) -> PartsSink:
        place, mode = place_of(self.path)
        self._folder = place.with_name(f"{place.name}.parts.parquet") if self._keeps else beside(place, "tmp")
        while self._folder.exists():
            _log.warning("%s has what an earlier run kept and did not put together", self._folder)
            self._folder = self._folder.with_name(self._folder.name.replace(".parts", ".more.parts"))
        self._folder.mkdir(0o777 if mode is None else 0o700 | mode | (mode & 0o444) >> 2)  # as private as the file
        sync_folder(place.parent)
        self._error = None
        return self

    def write(self, ds: xr.Dataset) -> None:
        """Add the rows of a table.

        Parameters
        ----------
        ds : xarray.Dataset
            As of `ParquetSink.write`.

        Raises
        ------
        OSError
            Of the disk, now and ever after: the open part is lost, and no row may follow.
        ValueError
            As of `ParquetSink.write`.
        """
        with self._lock, self._failing():
            if self._part is None:
                self._dim = only_dim(ds)
                self._part = ParquetSink(self._folder / f"part-{self._n_parts:06}.parquet").__enter__()
                self._timer = threading.Timer(_SECONDS, self._close_part)
                self._timer.daemon = True
                self._timer.start()
            self._part.write(ds)
            if self._part.n_rows < _ROWS:
                return
        self._close_part()

    def _close_part(self) -> None:
        """Close the part that is open, so that its rows are on disk; what goes wrong is raised later."""
        self._timer.cancel()
        with suppress(Exception), self._lock, self._failing():
            if self._part is not None:
                self._part.attrs |= self.attrs
                self._part.__exit__(None, None, None)
                self.n_rows, self._n_parts = self.n_rows + self._part.n_rows, self._n_parts + 1
                self._part = None

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Give up the open part after an error of the disk, and all that would follow."""
        if self._error is not None:
            raise self._error
        try:
            yield
        except OSError as error:
            if error.errno is not None:
                error.filename = str(self.path)
            self._error, part, self._part = error, self._part, None
            if part is not None:
                with suppress(OSError):
                    part.__exit__(type(error), error, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.attrs.setdefault("ended", short(str(error) or type(error).__name__))
        self._close_part()
        failed = error or self._error
        if failed is None and not self._n_parts:
            failed = ValueError(f"no table was written to {self.path}; write one, even if it has no rows")
        try:
            if self._n_parts and (failed is None or (self._keeps and self.n_rows)):
                self.kept = self._folder
                with naming(self.path):
                    write_points(lazily(self._folder, self._dim).assign_attrs(self.attrs), self.path)
                self.kept = self.path
        except Exception as raised:
            failed = failed or raised
            if self._keeps:
                _log.warning("%s was not made; its %d rows are in %s", self.path, self.n_rows, self._folder)
        finally:
            if self.kept != self._folder or not self._keeps:
                shutil.rmtree(self._folder, ignore_errors=True)
        if failed is not None and error is None:
            raise failed


def write_points(data: xr.Dataset, path: Path) -> None:
    """Write points, or a table, to a file of any format."""
    (write_particles if path.suffix == ".zarr" else write_hits)(data, path)


def lazily(folder: Path, dim: str) -> xr.Dataset:
    """Return the columns of a folder of parts under their own names, lazy."""
    import pyarrow.parquet as pq

    names = pq.read_schema(parts_of(str(folder))[0]).names
    found = read_parquet(str(folder), Naming(TIMEPIX, {name: name for name in names}, str(folder)), About(_CHUNK))
    units = {name: {"units": unit} for name, unit in found.units.items()}
    columns = {name: (dim, values, units.get(name, {})) for name, values in found.columns.items()}
    return xr.Dataset(columns, attrs=found.attrs).chunk({dim: _CHUNK})  # parts may be small
