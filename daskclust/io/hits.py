"""Hits of calorimeters and pixel detectors from and to files."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
import xarray as xr

from daskclust.core.data.fields import FIELDS, SIDES, TIMEPIX, TOA_OF_TIMEPIX4
from daskclust.core.data.lazy import workers_client
from daskclust.core.data.quote import in_sheet, listed
from daskclust.core.data.units import BOX
from daskclust.io.attrs import KEY, pack, stored_attrs, stored_units
from daskclust.io.blocks import (
    Block,
    as_text,
    blocks_of,
    column_dtypes,
    in_memory,
    native,
    only_dim,
    to_write,
    with_scalars_told,
)
from daskclust.io.files import (
    HDF5,
    NEXUS,
    PARQUET,
    READABLE,
    WRITABLE,
    check_file,
    is_parts,
    is_store,
    known_suffix,
    split_member,
)
from daskclust.io.package_readers import read_by, reader_of_package
from daskclust.io.replacing import check_kind, replacing, replacing_folder
from daskclust.io.rows import OnDemand, rows_of_chunk
from daskclust.io.schema import LEFT_OUT, Columns, Naming, Needs, check_units, to_dataset
from daskclust.io.several import takes_several
from daskclust.io.tables.any_table import read_any_table
from daskclust.io.tables.hdf5 import write_hdf5
from daskclust.io.tables.nexus_write import write_nexus
from daskclust.io.tables.parquet import RowGroups, arrow_types, by_event
from daskclust.io.tables.parquet_parts import write_from_workers, write_parts
from daskclust.io.tables.text import is_number
from daskclust.io.tables.zarr import write_zarr

_AUTO_ROWS = 1 << 20  # of a chunk
_LAZY = (*PARQUET, *HDF5, NEXUS, ".zarr")
_LONGEST_COMMENT = (1 << 16) - 1  # bytes, of a zip archive


@takes_several(*READABLE, about=_AUTO_ROWS)
def read_hits(
    path: str | os.PathLike[str],
    *,
    field: str | None = None,
    columns: Columns | None = None,
    units: Mapping[str, str] | None = None,
    layout: str | None = None,
    chunks: int | Literal["auto"] | None = None,
    needs: Needs | None = None,
) -> xr.Dataset:
    """Read hits of a calorimeter or a pixel detector from a file.

    Parameters
    ----------
    path : str or path, or list of these
        The file, or several: a list, a glob, ``"run_*.csv"``, or a folder. Its extension tells the format.

        - ``.csv``, ``.tsv``, ``.txt``: numbers with commas, semicolons, tabs or spaces between them. Names come from
          the first line where that has no number, or from a comment ``# x y ...`` above the data; a unit may stand
          behind a name of the field, ``toa [us]``. Without names, 2, 3 or 4 columns are x, y, layer, energy in this
          order; with ``field="timepix"``, 3 or 4 are x, y, toa, tot.
        - ``.parquet``, ``.pq``: columns of numbers or booleans, or of lists of them with one row for each event; or a
          folder of such files with the same columns, in the order of their names and numbers.
        - ``.h5``, ``.hdf5``: datasets of one length in the root of the file, or in its only group that has such;
          ``file.h5:group`` chooses among several groups. A group of events is chosen before others: ``NXevent_data`` of
          NeXus (``.nxs``, too), as rustpix writes it, and ``raw`` of pymepix. ``toa`` is then the time of the pulse, or
          trigger, and that since then, ``tof``; ``x`` and ``y`` come from ``event_id``, whose group tells ``x_size``.
        - ``.root``: a TTree or RNTuple with a number, or a list of numbers, in each branch (field);
          ``file.root:name`` chooses among several.
        - ``.npy``: shape (n, columns), or a structured array; ``.npz``: one array per column, or one as in ``.npy``.
        - ``.zarr``, or a folder that is a zarr store: an array of shape (n,) for each column.
        - Others, where an installed package has an entry point ``daskclust.readers`` of that name: a function of a path
          and ``chunks`` that returns such a Dataset.

        Lists are joined, a number of a row is repeated for each of its hits, and ``event`` tells the row, unless the
        file has this column. Where the coordinates are numbers, rows are the points, and columns with lists are left
        out. Fields of records, such as those of a collection ``hits`` in an RNTuple or in Parquet,
        have their own name, ``x``, or ``hits.x`` where another column has it.
    field : {"calorimeter", "timepix", "particles"}, optional
        What the hits are of. By default as the metadata of the file tell, if `write_hits` wrote it; else Timepix
        where a column is called ``toa`` or is to be, and a calorimeter where none is.
    columns : sequence of str, or mapping of str to str or None, optional
        A sequence names all columns of a file without names, or replaces the header of a text file. A mapping gives
        the variable for a column of the file; None leaves a column out, and ``{"*": None}`` all that are not named.
    units : mapping of str to str, optional
        Units of variables, such as ``{"toa": "s", "tot": "25 ns"}``, where the file does not tell them, or tells them
        wrong. Values are converted to the unit of the field, which columns without a unit are taken to have.
    layout : {"chips", "quad", "timepix4"}, optional
        For Timepix: whether ``x`` and ``y`` are those of each chip, from 0 to 255, or common to all chips; or those of
        each Timepix4, of 448 columns and 512 rows. By default as the metadata of the file tell, ``"timepix4"`` where
        times are called ``toa48_ns``, else ``"chips"``.
    chunks : int or "auto", optional
        Hits per chunk of a Dataset of dask arrays; ``"auto"`` means about a million, in whole row groups or chunks of
        the file. By default everything is read into memory.
    needs : mapping of str to sequence of str, optional
        Variables that there must be, by the option that names them, such as ``{"weight": ["energy"]}``. They are looked
        for before any values are read; not in ``.root``.

    Returns
    -------
    xarray.Dataset
        Variables along ``hit`` (``particle``) in the order of the file: those of the field (`CALORIMETER`, `TIMEPIX`,
        `PARTICLES`) that the file has under their own name or an alias, in any case, and all other columns under their
        names. ``attrs["units"]`` where the unit is known, ``attrs["field"]``, ``attrs["source"]``, for Timepix
        ``attrs["layout"]``, and what else the file tells.

    Raises
    ------
    OSError, ImportError
        Where `path` is no file, or the library for the format is missing.
    ValueError
        For unknown extensions, damaged files, text that is no number (with line and column), missing or ambiguous
        names, values that are out of range (with the row), and units that are not known or of another quantity.

    Notes
    -----
    With `chunks`, rows and columns of Parquet and HDF5 are read when they are used; where a number is no multiple of
    the file's row groups, or chunks, some of these are read twice. Of Parquet with lists, the last event of a chunk
    goes beyond `chunks` hits, and row groups do not matter. Other formats are read first and then divided. A missing
    value becomes NaN in a column of floats, and is an error in others. NaN and inf are kept: estimators refuse them.

    Several files become one data set; they must have the same columns and units. A list keeps its order; a glob and a
    folder are in the order of names, where numbers count as numbers. ``source`` tells the file of each point, by its
    number in ``attrs["files"]``. Numbers of ``event`` (of Timepix, ``frame`` too) go on from file to file, so that
    event 0 of two files are two events; files of a calorimeter without ``event`` are an event each. Attributes that
    count (``n_...``) are added, others that differ are lists.

    Examples
    --------
    >>> ds = read_hits("hits.csv", columns={"E_dep": "energy"}, units={"energy": "MeV"})  # doctest: +SKIP
    >>> ds = read_hits("run_*.parquet", chunks="auto")  # doctest: +SKIP
    """
    if field is not None and field not in FIELDS:
        raise ValueError(f"unknown field {field!r}; known: {', '.join(sorted(FIELDS))}")
    if layout not in (None, *SIDES):
        raise ValueError(f"layout must be one of {listed(SIDES)}, got {layout!r}")
    chunks = rows_of_chunk(chunks, _AUTO_ROWS)
    name, part = split_member(os.fspath(path))
    name = name.rstrip("/") if os.path.isdir(name) else name
    is_zarr = is_store(name) or (name.lower().endswith(".zarr") and os.path.isdir(name))
    if not is_zarr and not is_parts(name):
        check_file(name)
    entry = None if is_zarr or name.lower().endswith(READABLE) else reader_of_package(name)
    if entry is not None:
        return read_by(entry, name, field, chunks, {"columns": columns, "units": units, "layout": layout}, needs or {})
    suffix, units = ".zarr" if is_zarr else known_suffix(name, READABLE), units or {}
    naming = Naming(None if field is None else FIELDS[field], columns, name, needs=needs or {})
    table = read_any_table(name, part, naming, chunks)
    known, attrs = table.naming.known, {**table.attrs, **table.naming.told}
    if known is TIMEPIX:
        is_timepix4 = table.naming.taken.get("toa") == TOA_OF_TIMEPIX4
        attrs["layout"] = layout or attrs.get("layout", "timepix4" if is_timepix4 else "chips")
    if unknown := sorted(set(units) - set(table.columns)):
        raise ValueError(f"units names {listed(unknown)}, which {name} does not have; it has {listed(table.columns)}")
    check_units(units, known, name, table.units)
    if "x" in units:
        attrs.pop(BOX, None)
    ds = to_dataset(table.columns, field=known.name, units={**table.units, **units}, source=path, attrs=attrs)
    if table.naming.left_out:
        ds.encoding[LEFT_OUT] = table.naming.left_out
    if known is TIMEPIX and chunks is None and ds.attrs["layout"] != "quad" and ds.sizes["hit"]:
        _check_sides(ds, name)
    if chunks is None or suffix in _LAZY or isinstance(chunks, OnDemand):
        return ds
    return ds.chunk({known.dim: int(chunks)}, name_prefix="daskclust-io-")


def write_hits(ds: xr.Dataset, path: str | os.PathLike[str], *, nested: bool = False, partitions: bool = False) -> None:
    """Write a data set of points to a file, completely or not at all.

    Parameters
    ----------
    ds : xarray.Dataset, DataFrame or mapping
        Variables of numbers or booleans along one dimension, numpy or dask; or of times, durations and text (objects),
        which formats that have no such type hold as text. Coordinates are written too, numbers without a dimension as
        attributes.
    path : str or path
        The file, ``.parquet`` (or ``.pq``), ``.h5`` (or ``.hdf5``), ``.csv``, ``.npz`` or ``.zarr`` (a store, for
        `read_hits`, `open_particles` and `xarray.open_zarr`); or ``.nxs``, pixel hits as ``NXevent_data`` for scipp.
        One that exists is replaced.
    nested : bool, default False
        Write Parquet with one row for each event: its number, and lists of what its hits have. The hits must be in the
        order of ``event``. Events without hits have no row. `read_hits` gives the same Dataset for both.
    partitions : bool, default False
        Make `path` a folder of Parquet files, one for each dask chunk, that workers write themselves: all machines must
        see it. `read_hits` reads it as one, in the order of the chunks; so do pyarrow, pandas, polars and Dask.

    Raises
    ------
    ImportError, ValueError
        Where the library for the format is missing; for other extensions, variables that are no columns, and
        with `nested` for other formats, a Dataset without ``event``, and hits in another order; with `partitions` for
        other formats, and a folder that has other files.
    IsADirectoryError, NotADirectoryError
        Where a file would replace a folder, or a store a file.

    Notes
    -----
    The file gets its name when it is complete: readers see the old file or the whole new one, and after an error
    nothing new is left. Memory holds one dask chunk (a row group of Parquet; HDF5; CSV), or one variable (``.npz``):
    workers of a cluster make as many chunks as they have threads ahead, of Parquet as bytes of the file. Variables
    whose chunks have their steps in common, as labels and tables that were not computed yet, are computed first, and
    stay on the workers meanwhile; in a folder nothing stays.

    Parquet, HDF5, ``.nxs`` and ``.npz`` keep types, units and the attributes of the data set that are numbers or texts.
    In ``.nxs`` a pulse is a trigger that ``tof`` counts from; without ``tof``, and before the first trigger, times
    count from 0. CSV keeps
    all digits of floats, and booleans as 0 and 1; Timepix hits have units and attributes in a comment in the first
    line, which pandas passes over with ``comment="#"``.

    Examples
    --------
    >>> write_hits(to_dataset({"x": [0.5, 1.0], "y": [0.0, 2.0]}), "hits.parquet")  # doctest: +SKIP
    """
    target = Path(path)
    suffix = known_suffix(target, (*WRITABLE, NEXUS))
    if partitions and (nested or suffix not in PARQUET):
        raise ValueError(f"partitions=True writes a folder of .parquet files without lists, got {target.name}")
    ds = to_write(ds)
    if partitions:
        write_parts(target, ds)
        return
    check_kind(target, is_folder=suffix == ".zarr")
    ds = with_scalars_told(ds)
    dim = only_dim(ds)
    if nested and (suffix not in PARQUET or "event" not in ds.variables):
        raise ValueError(
            f"nested=True writes .parquet, of a Dataset with a variable 'event'; got {target.name} and "
            f"{', '.join(map(str, ds.variables))}"
        )
    if suffix == NEXUS and not (dim == TIMEPIX.dim and {"x", "y", "toa"} <= set(ds.variables)):
        raise ValueError(f"{target.name} is for pixel hits, with x, y and toa; the Dataset has {listed(ds.variables)}")
    if suffix == ".zarr":
        with replacing_folder(target, ds.attrs.get("source")) as folder:
            write_zarr(folder, ds, dim)
        return
    attrs, units = stored_attrs(ds, dim), stored_units(ds)
    with replacing(target) as stream:
        if suffix in PARQUET and not nested and ds.chunks and workers_client() is not None:
            write_from_workers(stream, ds, dim)
        elif suffix in PARQUET:
            with RowGroups(
                stream, column_dtypes(ds), units, attrs, "event" if nested else None, arrow_types(ds)
            ) as groups:
                for block in by_event(blocks_of(ds, dim), "event") if nested else blocks_of(ds, dim):
                    groups.write(block)
        elif suffix in HDF5:
            write_hdf5(stream, ds, dim)
        elif suffix == NEXUS:
            write_nexus(stream, ds, dim)
        elif suffix == ".csv":
            # Only where there is something that columns do not tell: tables for other programs stay plain.
            head = f"# {KEY}: {pack(attrs, units)}\n" if attrs.get("field") == TIMEPIX.name else ""
            _write_csv(stream, blocks_of(ds, dim), [str(name) for name in ds.variables], head)
        else:
            _write_npz(stream, ds, f"{KEY}: {pack(attrs, units)}")


def _check_sides(ds: xr.Dataset, source: str) -> None:
    """Refuse pixels that no chip of the layout has."""
    sides = dict(zip("xy", SIDES.get(ds.attrs["layout"], SIDES["chips"]), strict=True))
    axis = max(sides, key=lambda axis: int(ds[axis].max()) / sides[axis])
    if ds[axis].max() >= sides[axis]:
        raise ValueError(
            f"{axis} of {source} reaches {int(ds[axis].max())}, but a chip has pixels 0 to {sides[axis] - 1}; "
            "where coordinates are common to several chips, give layout='quad', for a Timepix4 layout='timepix4'"
        )


def _write_csv(stream: BinaryIO, blocks: Iterator[Block], names: list[str], head: str) -> None:
    """Write names and rows; the shortest digits that give the same float back."""
    import pandas as pd

    odd = [name for name in names if set(name) & set(",;\t\r\n#\"'") or is_number(name) or name != name.strip()]
    if odd:
        raise ValueError(f"names {odd} are not allowed in the header of a CSV file; rename them, or write Parquet")
    stream.write(head.encode("utf-8"))
    for number, block in enumerate(blocks):
        columns = {name: block[name].astype(np.int8) if block[name].dtype == bool else block[name] for name in names}
        columns = {in_sheet(name): as_text(values) for name, values in columns.items()}
        text = pd.DataFrame(columns).to_csv(index=False, header=number == 0, lineterminator="\n", na_rep="nan")
        stream.write(text.encode("utf-8"))


def _write_npz(stream: BinaryIO, ds: xr.Dataset, comment: str) -> None:
    """Write one array per variable, one after the other, so that one at a time is in memory."""
    if len(comment.encode()) > _LONGEST_COMMENT:
        raise ValueError(
            f"the attributes of the Dataset take {len(comment.encode())} bytes, and .npz holds {_LONGEST_COMMENT}; "
            "write .parquet or .h5, or remove long ones from ds.attrs"
        )
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name in ds.variables:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, as_text(native(in_memory(ds[name]).values)), allow_pickle=False)
        archive.comment = comment.encode()
