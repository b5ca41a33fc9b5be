"""Hits of calorimeters from and to files."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.files import replacing

from ._binary import read_npy, read_npz, read_root
from ._parquet import read_parquet, write_parquet
from ._text import is_number, read_text
from .schema import CALORIMETER, Columns, Naming, to_dataset

_TEXT = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")
_READABLE = (*_TEXT, *_PARQUET, ".root", ".npy", ".npz")
_WRITABLE = (".csv", *_PARQUET, ".npz")

# Rows of one block of a Dataset in memory: a row group of about 8 MB per column of float64.
_BLOCK_ROWS = 1 << 20


def read_hits(path: str | os.PathLike[str], *, columns: Columns | None = None, chunks: int | None = None) -> xr.Dataset:
    r"""Read calorimeter hits from a file.

    Parameters
    ----------
    path : str or path
        The file; its extension tells the format.

        - ``.csv``, ``.tsv``, ``.txt``: numbers with commas, semicolons, tabs or spaces between them. Names come from
          the first line where that has no number, or from a comment ``# x y ...`` above the data. Without names, 2, 3
          or 4 columns are x, y, layer, energy in this order.
        - ``.parquet``, ``.pq``: columns of numbers or booleans.
        - ``.root``: a tree with one number per hit and branch, or with one list per event and branch: lists are joined
          and ``event`` tells the entry. ``file.root:name`` chooses among several trees.
        - ``.npy``: shape (n, columns), or a structured array; ``.npz``: one array per column, or one as in ``.npy``.
    columns : sequence of str, or mapping of str to str or None, optional
        A sequence names all columns of a file without names, or replaces the header of a text file. A mapping gives
        the variable for a column of the file; None leaves a column out, and ``{"*": None}`` all that are not named.
    chunks : int, optional
        Hits per chunk of a Dataset of dask arrays. By default everything is read into memory.

    Returns
    -------
    xarray.Dataset
        Variables of shape (n,) along ``hit`` in the order of the file, with ``attrs["units"]`` where the unit is known:
        ``x``, ``y`` (cm) always; ``z`` (cm), ``layer``, ``energy`` (GeV), ``eta``, ``phi`` (rad), ``event`` and others
        of `daskclust.io.CALORIMETER` where the file has them under their own name or an alias (``E``, ``weight``; upper
        and lower case are not told apart). All other columns keep their names. Floats keep the type of the file, text
        becomes float64, and ``layer`` an integer.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        Where `path` is no file.
    ImportError
        Where the library for the format is missing.
    ValueError
        For unknown extensions, empty or damaged files, text that is no number (with line and column), missing or
        ambiguous names, layers that are not whole; and for `chunks` that is not positive.

    Notes
    -----
    With `chunks`, Parquet is not read before it is used, and then only the row groups and columns that are: chunks that
    are multiples of the row groups are the cheapest, as a chunk reads whole groups. Other formats are read first and
    then divided. Values of Parquet are checked when they are read. A missing value becomes NaN in a column of floats,
    and is an error in others. NaN and inf are kept: estimators refuse them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "hits.csv")
    >>> _ = file.write_text("0.5,1.5,1,0.02\n0.75,1.5,1,0.04\n")
    >>> ds = read_hits(file)
    >>> ds["layer"].values, ds["energy"].attrs["units"]
    (array([1, 1], dtype=int32), 'GeV')
    >>> folder.cleanup()
    """
    if chunks is not None and (isinstance(chunks, bool) or not isinstance(chunks, int | np.integer) or chunks < 1):
        raise ValueError(f"chunks must be a positive number of hits, got {chunks!r}")
    name, tree = _split_tree(os.fspath(path))
    suffix = _check_readable(name)
    naming = Naming(CALORIMETER, columns, name)
    units: dict[str, str] = {}
    if suffix in _PARQUET:
        found, units = read_parquet(name, naming, chunks)
    elif suffix in _TEXT:
        found = dict(read_text(name, naming))
    elif suffix == ".root":
        found = dict(read_root(name, tree, naming))
    else:
        found = dict((read_npy if suffix == ".npy" else read_npz)(name, naming))
    ds = to_dataset(found, units=units, source=os.fspath(path))
    if chunks is None or suffix in _PARQUET:
        return ds
    return ds.chunk({CALORIMETER.dim: int(chunks)}, name_prefix="daskclust-io-")


def _split_tree(path: str) -> tuple[str, str | None]:
    """Return file and tree of ``file.root:tree``."""
    head, mark, tree = path.rpartition(".root:")
    return (head + ".root", tree) if mark and not os.path.exists(path) else (path, None)


def _check_readable(path: str) -> str:
    """Return the extension in lower case, if the file can be one of ours."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a directory; give one file")
    if not os.path.exists(path):
        raise FileNotFoundError(f"no such file: {path}")
    suffix = _known_suffix(path, _READABLE)
    if os.path.getsize(path) == 0:
        raise ValueError(f"{path} is empty (0 bytes)")
    return suffix


def _known_suffix(path: str, known: tuple[str, ...]) -> str:
    """Return the extension in lower case, if it is a known one."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in known:
        raise ValueError(f"unknown extension {suffix!r} of {path}; known: {', '.join(known)}")
    return suffix


def write_hits(ds: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write a data set of points to a file, completely or not at all.

    Parameters
    ----------
    ds : xarray.Dataset
        Variables of numbers or booleans along one dimension, numpy or dask. Coordinates are written too.
    path : str or path
        The file, ``.parquet`` (or ``.pq``), ``.csv`` or ``.npz``. A file that exists is replaced.

    Raises
    ------
    ValueError
        For other extensions, for variables of other shapes and types, and for a Dataset without variables.
    OSError
        Where the folder does not exist or cannot be written to.

    Notes
    -----
    The file is written under a temporary name in the same folder and renamed at the end: readers see the old file or
    the whole new one, and after an error nothing new is left. Dask arrays are computed chunk by chunk, so that memory
    holds one chunk (Parquet: it becomes a row group; CSV), or one variable (``.npz``). Parquet keeps types and units of
    all variables; ``.npz`` keeps types; CSV keeps all digits of floats, and booleans as 0 and 1.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "hits.parquet")
    >>> write_hits(xr.Dataset({"x": ("hit", [0.5, 1.0]), "y": ("hit", [0.0, 2.0])}), file)
    >>> read_hits(file)["x"].values
    array([0.5, 1. ])
    >>> folder.cleanup()
    """
    target = Path(path)
    suffix = _known_suffix(os.fspath(path), _WRITABLE)
    dim = _only_dim(ds)
    names = [str(name) for name in ds.variables]
    dtypes = {str(name): v.dtype.newbyteorder("=") for name, v in ds.variables.items()}
    with replacing(target) as stream:
        if suffix in _PARQUET:
            units = {str(name): str(v.attrs["units"]) for name, v in ds.variables.items() if "units" in v.attrs}
            write_parquet(stream, _blocks(ds, dim), dtypes, units)
        elif suffix == ".csv":
            _write_csv(stream, _blocks(ds, dim), names)
        else:
            _write_npz(stream, ds, dtypes)


def _only_dim(ds: xr.Dataset) -> str:
    """Return the one dimension of all variables."""
    if not ds.variables:
        raise ValueError("the Dataset has no variables; there is nothing to write")
    for name, v in ds.variables.items():
        if v.ndim != 1 or v.dtype.kind not in "fiub":
            raise ValueError(
                f"variable {name!r} has dimensions {v.dims} and dtype {v.dtype}, which is no column of numbers; "
                f"leave it out with ds.drop_vars({name!r})"
            )
    dims = {v.dims[0] for v in ds.variables.values()}
    if len(dims) > 1:
        raise ValueError(f"variables have dimensions {sorted(map(str, dims))}; choose those along one dimension")
    return str(dims.pop())


def _blocks(ds: xr.Dataset, dim: str) -> Iterator[Mapping[str, npt.NDArray[Any]]]:
    """Yield the columns block by block: dask chunks, or slices of arrays in memory. Only one is in memory."""
    if ds.chunks:
        ds = ds.unify_chunks()
        sizes: tuple[int, ...] = ds.chunks[dim]
    else:
        sizes = (_BLOCK_ROWS,) * (ds.sizes[dim] // _BLOCK_ROWS) + (ds.sizes[dim] % _BLOCK_ROWS,)
    stop = 0
    # Without points there is still one block, of length 0: it carries the names.
    for size in [size for size in sizes if size] or [0]:
        start, stop = stop, stop + size
        part = ds.isel({dim: slice(start, stop)}).compute()
        yield {str(name): _native(v.values) for name, v in part.variables.items()}


def _native(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array in native byte order."""
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _write_csv(stream: BinaryIO, blocks: Iterator[Mapping[str, npt.NDArray[Any]]], names: list[str]) -> None:
    """Write names and rows; the shortest digits that give the same float back."""
    import pandas as pd

    odd = [name for name in names if set(name) & set(",;\t\r\n#\"'") or is_number(name) or name != name.strip()]
    if odd:
        raise ValueError(f"names {odd} cannot stand in the header of a CSV file; rename them, or write Parquet")
    for number, block in enumerate(blocks):
        columns = {name: block[name].astype(np.int8) if block[name].dtype == bool else block[name] for name in names}
        text = pd.DataFrame(columns).to_csv(index=False, header=number == 0, lineterminator="\n", na_rep="nan")
        stream.write(text.encode("utf-8"))


def _write_npz(stream: BinaryIO, ds: xr.Dataset, dtypes: Mapping[str, np.dtype[Any]]) -> None:
    """Write one array per variable, one after the other, so that one at a time is in memory."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name in dtypes:
            with archive.open(name + ".npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, _native(ds[name].compute().values), allow_pickle=False)
