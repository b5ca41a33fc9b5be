"""Cells in tables, a column for each channel: CSV and Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.files import reading
from daskclust.core.data.quote import listed, meant, quoted, repeated, short
from daskclust.io.attrs import KEY, unpack
from daskclust.io.cytometry.gmhc import numbered
from daskclust.io.cytometry.rows import VARIABLES, WholeNumbers, choose_channels, column_of, matrix_of, whole_numbers
from daskclust.io.fields import Field
from daskclust.io.schema import Naming
from daskclust.io.tables.parquet import rows_of
from daskclust.io.tables.text import read_text

# Tables are read as they are: what is a channel, and what is beside them, is settled here.
_PLAIN = Field(name="cytometry", dim="cell", variables=(), required=(), headerless={})


@dataclass(frozen=True, slots=True)
class Columns(Naming):
    """Which columns of a table are channels, and which are variables beside them.

    Parameters
    ----------
    field, columns, source
        Of `Naming`.
    channels : str, sequence of str, or None
        Names or patterns of channels; None for all columns that are no variables.
    apriori : str or None
        The column of apriori clusters.
    """

    channels: Any = None
    apriori: str | None = None

    def names(self, found: Sequence[str] | None, count: int) -> list[str]:
        """Return the names in the file, or numbers."""
        return numbered(count) if found is None else list(found)

    def choose(self, found: Sequence[str], *, named: bool = False) -> dict[str, str]:
        """Return the columns to read, each under its own name."""
        if twice := repeated(found):
            raise ValueError(f"{self.source} has columns of the same name {listed(twice)}; rename them in the file")
        variables = self.variables(found)
        channels = [name for name in found if name not in variables]
        picked = choose_channels(self.channels, [(name,) for name in channels], self.source)
        if not picked:
            raise ValueError(f"{self.source} has no columns of channels; it has {listed(found)}")
        names = [*(channels[k] for k in picked), *variables]
        return dict(zip(names, names, strict=True))

    def variables(self, found: Sequence[str]) -> dict[str, str]:
        """Return which columns are no channels, and the variables that they become."""
        if self.apriori is not None and self.apriori not in found:
            raise ValueError(
                f"{self.source} has no column {quoted(self.apriori)}{meant(self.apriori, found)} of apriori clusters; "
                f"it has {listed(found)}"
            )
        # Who chooses channels has chosen; otherwise what write_cells writes beside them is no channel.
        own = {name: name for name in VARIABLES if name in found} if self.channels is None else {}
        if self.apriori is not None:
            own = {name: ours for name, ours in own.items() if ours != "apriori"} | {self.apriori: "apriori"}
        return own


@dataclass(frozen=True, slots=True)
class Cells:
    """What a table has.

    Parameters
    ----------
    X : array, shape (n, d)
        Values, numpy or dask.
    channels : list of str
        Names of its columns.
    variables : dict of str to array, each of shape (n,)
        Whole numbers.
    attrs : dict of str to object
        Attributes that the file tells.
    """

    X: Any
    channels: list[str]
    variables: dict[str, Any]
    attrs: dict[str, Any]


def read_csv(path: str, channels: Any, apriori: str | None) -> Cells:
    """Read the cells of a text file, with or without names in its first line."""
    naming = Columns(_PLAIN, None, path, channels, apriori)
    table = read_text(path, naming)
    named = naming.variables(list(table.columns))
    names = [name for name in table.columns if name not in named]
    variables = {ours: whole_numbers(table.columns[name], name, path) for name, ours in named.items()}
    return Cells(np.stack([table.columns[name] for name in names], axis=1), names, variables, table.attrs)


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """Columns of a Parquet file side by side.

    Parameters
    ----------
    path : str
        The file.
    rows : int
        Number of rows.
    columns : tuple of str
        Names of the columns.
    kind : str
        NumPy's name of the type of the values.
    """

    path: str
    rows: int
    columns: tuple[str, ...]
    kind: str

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return np.dtype(self.kind)

    def load(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return rows start to stop, from the row groups that have them."""
        table = rows_of(self.path, self.columns, start, stop)
        found = [table.column(name).to_numpy() for name in self.columns]
        out = np.empty((stop - start, self.width), self.dtype)
        for k, values in enumerate(found):
            if values.dtype.kind not in "fiub" or (values.dtype.kind == "f" and self.dtype.kind != "f"):
                raise ValueError(f"column {quoted(self.columns[k])} of {self.path} has no value in some rows; fill it")
            out[:, k] = values
        return out


def read_parquet(path: str, channels: Any, apriori: str | None, chunks: int | None) -> Cells:
    """Read the cells of a Parquet file."""
    try:
        import pyarrow.parquet as pq
        import pyarrow.types as kinds
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install pyarrow") from error
    with reading(path, "Parquet"), pq.ParquetFile(path) as file:
        schema, rows, metadata = file.schema_arrow, file.metadata.num_rows, file.metadata.metadata or {}
    attrs, _ = unpack(metadata.get(KEY.encode()), path)
    naming = Columns(_PLAIN, None, path, channels, apriori)
    chosen = list(naming.choose(schema.names))
    types: dict[str, np.dtype[Any]] = {}
    for name in chosen:
        arrow = schema.field(name).type
        if not (kinds.is_integer(arrow) or kinds.is_floating(arrow) or kinds.is_boolean(arrow)):
            raise ValueError(
                f"column {quoted(name)} of {path} has type {short(arrow)}, which is no number; choose columns "
                "without it with channels="
            )
        types[name] = np.dtype(arrow.to_pandas_dtype())
    named = naming.variables(chosen)
    names = [name for name in chosen if name not in named]
    is_small = all(types[name].kind == "f" and types[name].itemsize <= 4 for name in names)
    matrix = ParquetRows(path, rows, tuple(names), "float32" if is_small else "float64")
    variables = {}
    for name, ours in named.items():
        kind = types[name].name if types[name].kind in "iu" else "float64"
        variables[ours] = column_of(WholeNumbers(ParquetRows(path, rows, (name,), kind), 0, name), chunks)
    return Cells(matrix_of(matrix, chunks), names, variables, attrs)
