"""Cells to files: CSV and Parquet as other columns are, and FCS."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import numpy as np
import xarray as xr

from daskclust.core.data.quote import quoted, repeated
from daskclust.io.attrs import pack, stored_attrs
from daskclust.io.blocks import only_dim, with_scalars_told
from daskclust.io.cytometry.transform import check_cells
from daskclust.io.files import WRITABLE, known_suffix
from daskclust.io.hits import write_hits
from daskclust.io.replacing import replacing

KEYWORD = "daskclust"
"""Has the attributes of the data set, in lower case as keywords are read."""

# Attributes that an FCS file tells itself.
_OWN = ("channel_names", "detector_names", "fcs_version", "fcs_notes", "cytometer", "date")

# A float32 holds every whole number below this one.
_EXACT = 2**24

# The byte where keywords begin, and the last one that eight digits tell.
_TEXT_AT, _HEADER_MOST = 58, 99_999_999


def write_cells(ds: xr.Dataset, path: str | os.PathLike[str]) -> None:
    r"""Write cells to a file, completely or not at all.

    Parameters
    ----------
    ds : xarray.Dataset
        ``X`` (cell, channel) with names of channels, numpy or dask, and variables of numbers along ``cell``.
    path : str or path
        The file; its extension tells the format. One that exists is replaced.

        - ``.csv``: a column for each channel and variable.
        - ``.parquet``, ``.pq``, ``.h5``, ``.hdf5``, ``.npz``, ``.zarr``: as well, with types, names of detectors, and
          attributes that are numbers or texts.
        - ``.fcs``: FCS 3.1 with float32: values of float64 are rounded, and variables are channels.

    Raises
    ------
    ImportError, OSError
        Where the library for the format, or the folder, is missing, or may not be written to.
    TypeError, ValueError
        For arrays on a GPU; for other extensions, a Dataset without ``X`` and names of channels, names that are alike
        or that the format does not hold, and whole numbers that a float32 does not.

    Notes
    -----
    Dask arrays are computed chunk by chunk, those for FCS at once. Nothing undoes a transformation: files tell it in
    their attributes, except CSV, and readers refuse to transform such values again.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> cells = xr.Dataset({"X": (("cell", "channel"), [[0.5, 1.0]])}, coords={"channel": ["CD3", "CD4"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_cells(cells, pathlib.Path(folder, "cells.csv"))
    ...     pathlib.Path(folder, "cells.csv").read_text()
    'CD3,CD4\n0.5,1.0\n'
    """
    target = Path(path)
    suffix = known_suffix(path, (*WRITABLE, ".fcs"))
    flat, detectors = _flat(ds)
    if suffix != ".fcs":
        write_hits(flat, target)
        return
    with replacing(target) as stream:
        _write_fcs(stream, flat.compute(), detectors)


def write_columns(ds: xr.Dataset, path: Path) -> None:
    """Write columns of numbers as the channels of an FCS file; detectors are those that attributes tell."""
    ds = with_scalars_told(ds)
    only_dim(ds, "fiub")
    second = dict(zip(ds.attrs.get("channel_names", []), ds.attrs.get("detector_names", []), strict=False))
    names = [str(name) for name in ds.variables]
    with replacing(path) as stream:
        _write_fcs(stream, ds.compute(), [second.get(name, name) for name in names])


def columns_of(ds: xr.Dataset) -> xr.Dataset:
    """Return cells as columns: one for each channel and variable."""
    return _flat(ds)[0]


def _flat(ds: xr.Dataset) -> tuple[xr.Dataset, list[str]]:
    """Return a column for each channel and variable, and the second names of all columns."""
    all_names = check_cells(ds, "write_cells")
    cell = ds["X"].dims[0]
    others = {str(name): ds[name].variable for name in ds if ds[name].dims == (cell,)}
    names, detectors = [own[0] for own in all_names], [own[-1] for own in all_names]
    alike = sorted({*repeated(names), *(name for name in names if name in others)})
    if alike or not names:
        raise ValueError(
            f"X has channels without names of their own ({', '.join(map(repr, alike)) or 'no channels'}); name them "
            "with ds.assign_coords(channel=[...])"
        )
    X = ds["X"].variable
    X = X.chunk({"channel": -1}) if X.chunks else X
    columns = {name: xr.Variable(cell, X[:, k].data) for k, name in enumerate(names)}
    attrs = {name: value for name, value in ds.attrs.items() if name not in ("field", "source")}
    if "detector" in ds.coords:
        attrs |= {"channel_names": names, "detector_names": detectors}
    return xr.Dataset({**columns, **others}, attrs=attrs), [*detectors, *others]


def _write_fcs(stream: BinaryIO, flat: xr.Dataset, detectors: list[str]) -> None:
    """Write columns as the channels of an FCS 3.1 file, in float32; their names become $PnS, the detectors $PnN."""
    names = [str(name) for name in flat.variables]
    for name in (*names, *detectors):
        # The slash divides keywords; readers drop dollars; commas divide the names of a spillover matrix.
        if not name.strip() or name != name.strip("/ ") or set(name) & set("$,") or not name.isprintable():
            raise ValueError(
                f"the name {quoted(name)} is not allowed in an FCS file; rename the channel, or write Parquet"
            )
    if len(set(detectors)) < len(detectors):
        raise ValueError(
            "channels of an FCS file need different names ($PnN); rename channels or detectors with the same name"
        )
    columns = []
    for name in names:
        values = flat[name].values
        if values.dtype.kind in "iu" and len(values) and not -_EXACT <= values.min() <= values.max() <= _EXACT:
            raise ValueError(
                f"FCS files hold whole numbers to {_EXACT} here (float32), and {name} has {values.min()} to "
                f"{values.max()}; write Parquet"
            )
        columns.append(values.astype("<f4"))
    attrs = {name: value for name, value in stored_attrs(flat, "").items() if name not in _OWN}
    spillover = attrs.pop("spillover", None)  # as the keyword has it
    pairs = {"MODE": "L", "DATATYPE": "F", "BYTEORD": "1,2,3,4", "NEXTDATA": "0", "PAR": len(names)}
    pairs |= {f"{edge}{part}": "0" for part in ("ANALYSIS", "STEXT") for edge in ("BEGIN", "END")}
    for n, (detector, name) in enumerate(zip(detectors, names, strict=True), start=1):
        own = {"N": detector, "S": name, "B": "32", "E": "0,0", "R": "262144"}
        pairs |= {f"P{n}{key}": value for key, value in own.items()}
    pairs |= {"SPILLOVER": spillover} if spillover else {}
    events = np.stack(columns, axis=1)
    pairs |= {"TOT": len(events), "BEGINDATA": f"{0:020}", "ENDDATA": f"{0:020}"}
    text = "".join(f"/${key}/{str(value).replace('/', '//')}" for key, value in pairs.items())
    text = f"/{KEYWORD.upper()}/{pack(attrs).replace('/', '//')}{text}/"
    first = _TEXT_AT + len(text.encode())
    last = first + events.nbytes - 1
    for place, edge in ((first, "BEGIN"), (last, "END")):
        text = text.replace(f"/${edge}DATA/{0:020}/", f"/${edge}DATA/{place:020}/")
    in_header = (first, last) if last <= _HEADER_MOST else (0, 0)
    places = (_TEXT_AT, first - 1, *in_header, 0, 0)
    stream.write("".join(["FCS3.1    ", *(f"{place:8}" for place in places), text]).encode())
    stream.write(events.tobytes())
