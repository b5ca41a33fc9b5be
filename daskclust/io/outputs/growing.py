"""Files of a stream of tables, of which nothing is lost: parts beside the file, and the file of all in the end."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import xarray as xr

from daskclust.core.data.quote import short
from daskclust.core.space.partition import block_sizes
from daskclust.io.attrs import stored_attrs, stored_units
from daskclust.io.blocks import column_dtypes, native_block, only_dim
from daskclust.io.files import OUTPUTS, PARQUET, known_suffix
from daskclust.io.replacing import beside, naming, place_of, replacing, sync_folder
from daskclust.io.tables.parquet import GROUP_ROWS, RowGroups, arrow_types, shown
from daskclust.io.tables.parquet_parts import parts_of

_log = logging.getLogger(__name__)

_ROWS, _SECONDS = 1 << 21, 10.0  # of a part
_LARGE = 1 << 18  # rows of a table that is a row group of its own
_CHUNK = 1 << 20  # rows of the file that are in memory at once


class PartsSink:
    """A file that grows table by table, of which all that was written stays, or all or nothing.

    Parameters
    ----------
    path : str or path
        The file, ``.parquet``, ``.csv``, ``.h5``, ``.npz``, ``.zarr``, ``.fcs`` or ``.root``. One that exists is
        replaced at the end.
    keep : bool, default True
        Whether rows stay, whatever ends the program. False: after an error nothing is left, and Parquet grows in its
        own file, which gets its name at the end.

    Attributes
    ----------
    attrs : dict of str to object
        Attributes to add to those of the first table; ``"ended_by"`` tells the error.
    n_rows : int
        Rows on disk so far.
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
        known_suffix(path, OUTPUTS)
        self.path, self._keeps = Path(path), keep
        self.attrs: dict[str, Any] = {}
        self.n_rows, self._n_parts = 0, 0
        self.kept: Path | None = None
        self._in_place = not keep and self.path.suffix in PARQUET
        self._folder, self._lock, self._timer = Path(), threading.Lock(), threading.Timer(0, str)
        self._groups: RowGroups | None = None
        self._stack = ExitStack()  # of the Parquet file that is open
        self._waiting: list[xr.Dataset] = []
        self._dim, self._dtypes = "", dict[str, Any]()
        told = f"the sink of {path} is not open; use it as: with PartsSink(path) as sink: ..."
        self._error: Exception | None = ValueError(told)

    def __enter__(self) -> PartsSink:
        self._error = None
        if self._in_place:
            self._stream = self._stack.enter_context(replacing(self.path))
            return self
        place, mode = place_of(self.path)
        self._folder = place.with_name(f"{place.name}.parts.parquet") if self._keeps else beside(place, "tmp")
        while self._folder.exists():
            _log.warning("%s has what an earlier run kept and did not put together", self._folder)
            self._folder = self._folder.with_name(self._folder.name.replace(".parts", ".more.parts"))
        with naming(self.path):
            self._folder.mkdir(0o777 if mode is None else 0o700 | mode | (mode & 0o444) >> 2)  # as private as the file
        sync_folder(place.parent)
        return self

    def write(self, ds: xr.Dataset) -> None:
        """Add the rows of a table.

        Parameters
        ----------
        ds : xarray.Dataset
            Variables of numbers or booleans along one dimension, in memory; as many, with the same names and types,
            as in the first table. They are copied.

        Raises
        ------
        OSError
            Of the disk, now and ever after.
        ValueError
            For variables of other shapes, names or types, and outside of a ``with`` block.
        """
        with self._lock:
            if self._error is not None:
                raise self._error
            dim, dtypes = only_dim(ds), column_dtypes(ds)
            self._dim, self._dtypes = self._dim or dim, self._dtypes or dtypes
            if (dim, dtypes) != (self._dim, self._dtypes):
                raise ValueError(
                    f"a table of {shown(dtypes)} along {dim} cannot follow one of {shown(self._dtypes)} along "
                    f"{self._dim}; give all tables the same variables and types"
                )
            if not self._waiting:
                self._timer = threading.Timer(_SECONDS, self._put_down)
                self._timer.daemon = True
                self._timer.start()
            rows = sum(each.sizes[dim] for each in (*self._waiting, ds))
            is_enough = rows >= _ROWS or (self._in_place and (rows >= GROUP_ROWS or ds.sizes[dim] >= _LARGE))
            self._waiting.append(ds if is_enough else ds.copy(deep=True))
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
                self._write(self._waiting)
                if not self._in_place:
                    self._close()
            except Exception as error:
                with suppress(Exception):  # a full disk is told once
                    self._stack.__exit__(type(error), error, None)
                self._error = error
                if isinstance(error, OSError) and error.errno is not None:
                    error.filename = str(self.path)
            else:
                self.n_rows += sum(ds.sizes[self._dim] for ds in self._waiting)
                self._n_parts, self._waiting = self._n_parts + 1, []

    def _write(self, tables: list[xr.Dataset]) -> None:
        """Write tables to the file that is open, or as a new part."""
        if self._groups is None:
            if not self._in_place:
                self._stream = self._stack.enter_context(replacing(self._folder / f"part-{self._n_parts:06}.parquet"))
            first = tables[0]
            groups = RowGroups(self._stream, self._dtypes, stored_units(first), first.attrs, arrow=arrow_types(first))
            self._groups = self._stack.enter_context(groups)
        blocks = [native_block(ds) for ds in tables]
        columns = (
            blocks[0]
            if len(blocks) == 1
            else {name: np.concatenate([each[name] for each in blocks]) for name in self._dtypes}
        )
        self._groups.write(columns, GROUP_ROWS)

    def _close(self) -> None:
        """Complete the file that is open, with the attributes there are by now."""
        if self._groups is not None:
            attrs = {**self._groups.attrs, **self.attrs}
            self._groups.attrs = stored_attrs(xr.Dataset(attrs=attrs), self._dim)
        self._groups = None
        self._stack.close()

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
            if self._in_place and failed is None:
                with naming(self.path):
                    self._close()
                self.kept = self.path
            elif self._in_place and failed is not None:
                self._stack.__exit__(type(failed), failed, None)
            elif self._n_parts and (failed is None or (self._keeps and self.n_rows)):
                self.kept = self._folder
                with naming(self.path):
                    self._put_together()
                self.kept = self.path
        except Exception as raised:
            failed = failed or raised
            if self._keeps:
                _log.warning("%s was not made; its %d rows are in %s", self.path, self.n_rows, self._folder)
        finally:
            if not self._in_place and (self.kept != self._folder or not self._keeps):
                shutil.rmtree(self._folder, ignore_errors=True)
        self._error = ValueError(f"the sink of {self.path} is closed")
        if failed is not None and error is None:
            raise failed

    def _put_together(self) -> None:
        """Make the file of its parts, whose columns have their own names."""
        from daskclust.io.outputs.own_columns import joined_columns, own_columns
        from daskclust.io.outputs.writing import write_points

        found = joined_columns([own_columns(part, joins=False) for part in parts_of(str(self._folder))])
        assert found is not None  # `write` refuses tables without columns
        ds = found.dataset(self._dim, block_sizes(found.rows, _CHUNK))  # parts may be small
        write_points(ds.assign_attrs(self.attrs), self.path)
