"""Raw Timepix3 files for `xarray.open_dataset`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from daskclust.core.data.fields import TIMEPIX
from daskclust.io.rows import check_hits_per_chunk
from daskclust.io.timepix.tpx3.decode import DTYPES
from daskclust.io.timepix.tpx3.read import AUTO_HITS, HitFile, open_hits, read_rows
from daskclust.io.timepix.tpx3.triggers import open_tpx3_triggers


class HitArray(BackendArray):
    """A column of hits that is read when it is asked for, chunk by chunk."""

    def __init__(self, hits: HitFile, name: str) -> None:
        self.hits, self.name = hits, name
        self.shape = (hits.index.n_hits,)
        self.dtype = np.dtype(DTYPES[name])

    def __getitem__(self, key: indexing.ExplicitIndexer) -> npt.NDArray[Any]:
        """Return the rows that a key chooses."""
        return indexing.explicit_indexing_adapter(  # type: ignore[no-any-return,unused-ignore]
            key, self.shape, indexing.IndexingSupport.BASIC, self._rows
        )

    def _rows(self, key: tuple[Any, ...]) -> Any:
        """Return rows by a slice or a number."""
        (chosen,) = key
        if isinstance(chosen, slice):
            start, stop, step = chosen.indices(self.shape[0])  # xarray reverses rows itself: steps are positive
            return read_rows(self.hits, self.name, start, stop)[::step]
        return read_rows(self.hits, self.name, chosen, chosen + 1)[0]


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
            encoding = {"preferred_chunks": {"hit": hits.sizes}}
            columns = {key: indexing.LazilyIndexedArray(HitArray(hits, key)) for key in DTYPES}
            ds = xr.Dataset(
                {key: ("hit", values, TIMEPIX.attrs[key], encoding) for key, values in columns.items()},
                attrs=hits.attrs(name),
            )
        return ds.drop_vars(drop_variables or (), errors="ignore")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Say whether a path has the extension of raw Timepix3 files."""
        return str(filename_or_obj).lower().endswith(".tpx3")
