"""Cells in tables, a column for each channel: CSV and Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.files import reading
from daskclust.core.data.quote import listed, meant, quoted, repeated, short
from daskclust.io.attrs import KEY, unpack
from daskclust.io.cytometry.gmhc import numbered
from daskclust.io.cytometry.rows import (
    FIELD,
    VARIABLES,
    Rows,
    cells_dataset,
    choose_channels,
    matrix_of,
    whole_column,
    whole_numbers,
)
from daskclust.io.fields import Field
from daskclust.io.schema import Naming
from daskclust.io.tables.parquet import pyarrow_parquet, rows_of
from daskclust.io.tables.text import read_text

_PLAIN = Field(name=FIELD, dim="cell", variables=(), required=(), headerless={})


@dataclass(frozen=True, slots=True)
class _Plain(Naming):
    """All columns under their own names, or numbers where they have none."""

    def names(self, found: Sequence[str] | None, count: int) -> list[str]:
        """Return the names in the file, or numbers."""
        return numbered(count) if found is None else list(found)


@dataclass(frozen=True, slots=True)
class ParquetRows(Rows):
    """Columns of a Parquet file side by side."""

    columns: tuple[str, ...]

    def load(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return rows start to stop, from the row groups that have them."""
        table = rows_of(self.path, self.columns, start, stop)
        out = np.empty((stop - start, self.width), self.dtype)
        for k, name in enumerate(self.columns):
            values = table.column(name).to_numpy()
            if values.dtype.kind not in "fiub" or (values.dtype.kind == "f" and self.dtype.kind != "f"):
                raise ValueError(f"column {quoted(name)} of {self.path} has no value in some rows; fill it")
            out[:, k] = values
        return out


def choose_columns(
    found: Sequence[str], channels: Any, apriori: str | None, source: str
) -> tuple[list[str], dict[str, str]]:
    """Return which columns are channels, and by their own names those that become variables beside them."""
    if twice := repeated(found):
        raise ValueError(f"{source} has columns of the same name {listed(twice)}; rename them in the file")
    if apriori is not None and apriori not in found:
        raise ValueError(
            f"{source} has no column {quoted(apriori)}{meant(apriori, found)} of apriori clusters; it has "
            f"{listed(found)}"
        )
    # Who chooses channels has chosen; otherwise what write_cells writes beside them is no channel.
    beside = {name: name for name in VARIABLES if name in found and channels is None}
    if apriori is not None:
        beside = {name: ours for name, ours in beside.items() if ours != "apriori"} | {apriori: "apriori"}
    names = [name for name in found if name not in beside]
    picked = [names[k] for k in choose_channels(channels, [(name,) for name in names], source)]
    if not picked:
        raise ValueError(f"{source} has no columns of channels; it has {listed(found)}")
    return picked, beside


def read_csv(path: str, channels: Any, apriori: str | None) -> xr.Dataset:
    """Read the cells of a text file, with or without names in its first line."""
    table = read_text(path, _Plain(_PLAIN, None, path))
    names, beside = choose_columns(list(table.columns), channels, apriori, path)
    variables = {ours: whole_numbers(table.columns[name], name, path) for name, ours in beside.items()}
    return _dataset(np.stack([table.columns[name] for name in names], axis=1), names, table.attrs, variables, path)


def read_parquet(path: str, channels: Any, apriori: str | None, chunks: int | None) -> xr.Dataset:
    """Read the cells of a Parquet file."""
    pq = pyarrow_parquet()
    with reading(path, "Parquet"), pq.ParquetFile(path) as file:
        schema, rows, metadata = file.schema_arrow, file.metadata.num_rows, file.metadata.metadata or {}
    attrs, _ = unpack(metadata.get(KEY.encode()), path)
    names, beside = choose_columns(schema.names, channels, apriori, path)
    types = {name: _number_type(schema.field(name).type, name, path) for name in (*names, *beside)}
    is_small = all(types[name].kind == "f" and types[name].itemsize <= 4 for name in names)
    matrix = ParquetRows(path, rows, len(names), np.dtype(np.float32 if is_small else np.float64), tuple(names))
    variables = {}
    for name, ours in beside.items():
        dtype = types[name] if types[name].kind in "iu" else np.dtype(np.float64)
        variables[ours] = whole_column(ParquetRows(path, rows, 1, dtype, (name,)), name, chunks)
    return _dataset(matrix_of(matrix, chunks), names, attrs, variables, path)


def _number_type(arrow: Any, name: str, path: str) -> np.dtype[Any]:
    """Return NumPy's type of a column of numbers."""
    import pyarrow.types as kinds

    if not (kinds.is_integer(arrow) or kinds.is_floating(arrow) or kinds.is_boolean(arrow)):
        raise ValueError(
            f"column {quoted(name)} of {path} has type {short(arrow)}, which is no number; choose columns without it "
            "with channels="
        )
    dtype: np.dtype[Any] = np.dtype(arrow.to_pandas_dtype())
    return dtype


def _dataset(X: Any, names: list[str], told: Mapping[str, Any], variables: Mapping[str, Any], path: str) -> xr.Dataset:
    """Return the data set of a table, with the second names of its channels that the file tells."""
    attrs = dict(told)
    second = dict(zip(attrs.pop("channel_names", []), attrs.pop("detector_names", []), strict=False))
    detectors = [second[name] for name in names] if second.keys() >= {*names} else None
    return cells_dataset(X, names, {"transform": "none", **attrs, "field": FIELD, "source": path}, variables, detectors)
