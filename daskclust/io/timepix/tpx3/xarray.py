"""Raw Timepix3 files for `xarray.open_dataset`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

import xarray as xr
from xarray.backends import BackendEntrypoint

from daskclust.core.data.fields import TIMEPIX
from daskclust.io.devices import on_demand
from daskclust.io.rows import check_hits_per_chunk
from daskclust.io.timepix.tpx3.decode import DTYPES
from daskclust.io.timepix.tpx3.read import AUTO_HITS, open_hits, read_rows
from daskclust.io.timepix.tpx3.triggers import open_tpx3_triggers


class Tpx3Entrypoint(BackendEntrypoint):
    """Open raw Timepix3 files with ``xr.open_dataset(path, engine="tpx3")``.

    Parameters and data set are those of `daskclust.io.open_tpx3`. Without ``chunks=`` variables are read when they are
    used; ``chunks={}`` makes dask arrays with chunks of `hits_per_chunk`. ``group="tdc"`` opens the triggers.
    """

    description = "Raw files of Timepix3 detectors (.tpx3): hits sorted by time, and triggers"

    def open_dataset(  # type: ignore[override,unused-ignore]
        self,
        filename_or_obj: str | os.PathLike[str],
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: Literal["tdc"] | None = None,
        layout: Literal["chips", "quad"] = "chips",
        gap: int = 0,
        disorder: float = 600_000.0,
        phase_correction: bool = False,
        on_reset: Literal["continue", "restart"] = "continue",
        hits_per_chunk: int = AUTO_HITS,
    ) -> xr.Dataset:
        """Return hits as a data set that is read on demand, or triggers in memory."""
        name = os.fspath(filename_or_obj)
        if group not in (None, "tdc"):
            raise ValueError(f"unknown group {group!r} of {name}; known: None for hits, 'tdc' for triggers")
        if group == "tdc":
            ds = open_tpx3_triggers(name, on_reset=on_reset)
        else:
            chunks = check_hits_per_chunk(hits_per_chunk, "hits_per_chunk")
            hits = open_hits(
                name, layout=layout, gap=gap, disorder=disorder, chunks=chunks, phase_correction=phase_correction,
                on_reset=on_reset,
            )  # fmt: skip
            length, about = hits.index.n_hits, TIMEPIX.attrs
            columns = {
                key: on_demand("hit", partial(read_rows, hits, key), length, dtype, about[key], hits.sizes)
                for key, dtype in DTYPES.items()
            }
            ds = xr.Dataset(columns, attrs=hits.attrs(name))
        return ds.drop_vars(drop_variables or (), errors="ignore")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Say whether a path has the extension of raw Timepix3 files."""
        return str(filename_or_obj).lower().endswith(".tpx3")
