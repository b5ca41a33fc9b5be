"""Cells in tables, a column for each channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from daskclust.core.data.fields import Field
from daskclust.core.data.inputs import stack
from daskclust.core.data.quote import listed, meant, quoted, repeated
from daskclust.io.cytometry.gmhc import numbered
from daskclust.io.cytometry.rows import FIELD, FLOATS, VARIABLES, cells_dataset, choose_channels, column_beside
from daskclust.io.files import split_member
from daskclust.io.schema import Naming
from daskclust.io.tables.any_table import read_any_table

_PLAIN = Field(name=FIELD, dim="cell", variables=(), required=(), headerless={})


@dataclass(frozen=True, slots=True)
class _Cells(Naming):
    """All columns that are chosen, under their own names, or numbers where they have none."""

    channels: Any = None
    apriori: str | None = None

    def without(self, name: str) -> str:
        other = ", or another one for apriori=" if self.apriori == name else ""
        return f"choose columns without it with channels={other}"

    def choose(self, found: Sequence[str], *, named: bool = False) -> dict[str, str]:
        names, beside = choose_columns(found, self.channels, self.apriori, self.source)
        return {name: name for name in (*names, *beside)}

    def is_float(self, name: str) -> bool:
        is_variable = name in VARIABLES and self.channels is None and (self.apriori is None or name != "apriori")
        return name != self.apriori and (name in FLOATS or not is_variable)

    def names(self, found: Sequence[str] | None, count: int) -> list[str]:
        return numbered(count) if found is None else list(found)


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


def read_table(path: str, channels: Any, apriori: str | None, chunks: int | None) -> xr.Dataset:
    """Read the cells of a table in a file of any format; text may have names in its first line."""
    naming = _Cells(_PLAIN, None, path, is_flat=True, channels=channels, apriori=apriori)
    table = read_any_table(*split_member(path), naming, chunks)
    names, beside = choose_columns(list(table.columns), channels, apriori, path)
    columns = [table.columns[name] for name in names]
    is_small = all(column.dtype.kind == "f" and column.dtype.itemsize <= 4 for column in columns)
    X = stack(names, [column.astype(np.float32 if is_small else np.float64, copy=False) for column in columns])
    variables = {ours: column_beside(table.columns[name], name, path) for name, ours in beside.items()}
    attrs = dict(table.attrs)
    second = dict(zip(attrs.pop("channel_names", []), attrs.pop("detector_names", []), strict=False))
    detectors = [second[name] for name in names] if second.keys() >= {*names} else None
    ds = cells_dataset(X, names, {"transform": "none", **attrs, "field": FIELD, "source": path}, variables, detectors)
    if chunks is None or ds.chunks:
        return ds
    return ds.chunk({"cell": int(chunks), "channel": -1}, name_prefix="daskclust-io-")
