"""Files of a stream of tables, of which nothing is lost: parts beside the file, and the file of all in the end."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

import xarray as xr

from daskclust.core.data.quote import short
from daskclust.io.blocks import column_dtypes, only_dim
from daskclust.io.cytometry.write import write_columns
from daskclust.io.files import HDF5, PARQUET, known_suffix
from daskclust.io.hits import write_hits
from daskclust.io.own_columns import of_parquet
from daskclust.io.particles.files import write_particles
from daskclust.io.replacing import beside, naming, place_of, sync_folder
from daskclust.io.tables.parquet import ParquetSink, shown
from daskclust.io.tables.root import write_root

_log = logging.getLogger(__name__)

_ROWS, _SECONDS = 1 << 21, 10.0  # of a part
_WRITABLE = (".csv", *PARQUET, *HDF5, ".npz", ".zarr", ".fcs", ".root")
_CHUNK = 1 << 20  # rows of the file that are in memory at once


class PartsSink:
    """A file that grows table by table, of which all that was written stays, whatever ends the program.

    Parameters
    ----------
    path : str or path
        The file, ``.parquet``, ``.csv``, ``.h5``, ``.npz``, ``.zarr``, ``.fcs`` or ``.root``. One that exists is
        replaced at the end.
    keep : bool, default True
        Whether rows stay after an error, too; False leaves nothing then.

    Attributes
    ----------
    attrs : dict of str to object
        Attributes to add to those of the first table; ``"ended_by"`` tells the error.
    n_rows : int
        Rows on disk.
    kept : pathlib.Path or None
        Where these rows are after the end: the file, or the folder of its parts; None where there are none.

    Notes
    -----
    It is a context manager. Every 10 s, or 2,097,152 rows, a Parquet file is added to the folder ``NAME.parts.parquet``
    beside the file, which `read_hits` and other programs read as one table. At the end the file is made of these parts,
    and they are removed. A process that is killed leaves its parts, and a disk that is too full for the file does.

    Examples
    --------
    >>> with PartsSink("hits.h5") as sink:  # doctest: +SKIP
    ...     for batch in stream.batches():
    ...         sink.write(batch.hits)
    """

    def __init__(self, path: str | os.PathLike[str], *, keep: bool = True) -> None:
        known_suffix(path, _WRITABLE)
        self.path, self._keeps = Path(path), keep
        self.attrs: dict[str, Any] = {}
        self.n_rows, self._n_parts = 0, 0
        self.kept: Path | None = None
        self._folder, self._lock, self._timer = Path(), threading.Lock(), threading.Timer(0, str)
        self._waiting: list[xr.Dataset] = []
        self._dim, self._dtypes = "", dict[str, Any]()
        told = f"the sink of {path} is not open; use it as: with PartsSink(path) as sink: ..."
        self._error: Exception | None = ValueError(told)

    def __enter__(self) -> PartsSink:
        place, mode = place_of(self.path)
        self._folder = place.with_name(f"{place.name}.parts.parquet") if self._keeps else beside(place, "tmp")
        while self._folder.exists():
            _log.warning("%s has what an earlier run kept and did not put together", self._folder)
            self._folder = self._folder.with_name(self._folder.name.replace(".parts", ".more.parts"))
        with naming(self.path):
            self._folder.mkdir(0o777 if mode is None else 0o700 | mode | (mode & 0o444) >> 2)  # as private as the file
        sync_folder(place.parent)
        self._error = None
        return self

    def write(self, ds: xr.Dataset) -> None:
        """Add the rows of a table.

        Parameters
        ----------
        ds : xarray.Dataset
            As of `ParquetSink.write`; it is copied.

        Raises
        ------
        OSError
            Of the disk, now and ever after.
        ValueError
            As of `ParquetSink.write`.
        """
        with self._lock:
            if self._error is not None:
                raise self._error
            self._dim, self._dtypes = only_dim(ds), self._dtypes or column_dtypes(ds)
            if column_dtypes(ds) != self._dtypes:
                raise ValueError(f"a table of {shown(column_dtypes(ds))} cannot follow one of {shown(self._dtypes)}")
            if not self._waiting:
                self._timer = threading.Timer(_SECONDS, self._put_down)
                self._timer.daemon = True
                self._timer.start()
            self._waiting.append(ds.copy(deep=True))
            is_enough = sum(each.sizes[self._dim] for each in self._waiting) >= _ROWS
        if is_enough:
            self._put_down()
            if self._error is not None:
                raise self._error

    def _put_down(self) -> None:
        """Write what waits as a part; what goes wrong is raised later, and nothing may follow."""
        with self._lock:
            self._timer.cancel()
            if self._error is not None or not self._waiting:
                return
            try:
                with ParquetSink(self._folder / f"part-{self._n_parts:06}.parquet") as part:
                    part.attrs |= self.attrs
                    for ds in self._waiting:
                        part.write(ds)
            except Exception as error:
                self._error = error
                if isinstance(error, OSError) and error.errno is not None:
                    error.filename = str(self.path)
            else:
                self.n_rows, self._n_parts, self._waiting = self.n_rows + part.n_rows, self._n_parts + 1, []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.attrs.setdefault("ended_by", short(str(error) or type(error).__name__))
        self._put_down()
        failed = error or self._error
        if failed is None and not self._n_parts:
            failed = ValueError(f"no table was written to {self.path}; write one, even if it has no rows")
        try:
            if self._n_parts and (failed is None or (self._keeps and self.n_rows)):
                self.kept = self._folder
                with naming(self.path):
                    write_points(_lazy(self._folder, self._dim).assign_attrs(self.attrs), self.path)
                self.kept = self.path
        except Exception as raised:
            failed = failed or raised
            if self._keeps:
                _log.warning("%s was not made; its %d rows are in %s", self.path, self.n_rows, self._folder)
        finally:
            if self.kept != self._folder or not self._keeps:
                shutil.rmtree(self._folder, ignore_errors=True)
        self._error = ValueError(f"the sink of {self.path} is closed")
        if failed is not None and error is None:
            raise failed


def write_points(data: xr.Dataset, path: Path) -> None:
    """Write points, or a table, to a file of any format."""
    if path.suffix == ".fcs":
        write_columns(data, path)
    elif path.suffix == ".root":
        write_root(data, path)
    else:
        (write_particles if path.suffix == ".zarr" else write_hits)(data, path)


def _lazy(folder: Path, dim: str) -> xr.Dataset:
    """Return the columns of a folder of parts under their own names, lazy."""
    found = of_parquet(str(folder))
    if found is None:
        raise ValueError(f"{folder} has no columns")
    sizes = (_CHUNK,) * (found.rows // _CHUNK) + (found.rows % _CHUNK,) * (found.rows % _CHUNK > 0)
    return found.dataset(dim, sizes or (0,))  # parts may be small
