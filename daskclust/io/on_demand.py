"""Variables of data sets that are read from a file when they are sliced, without Dask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from daskclust.io.rows import ReadRows


class ColumnArray(BackendArray):
    """A column of a file, of which xarray reads the rows that are asked for."""

    def __init__(self, read: ReadRows, length: int, dtype: Any) -> None:
        self.read, self.shape, self.dtype = read, (length,), np.dtype(dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> npt.NDArray[Any]:
        """Return the rows that a key chooses."""
        return indexing.explicit_indexing_adapter(  # type: ignore[no-any-return,unused-ignore]
            key, self.shape, indexing.IndexingSupport.BASIC, self._rows
        )

    def _rows(self, key: tuple[Any, ...]) -> Any:
        (chosen,) = key
        if isinstance(chosen, slice):
            start, stop, step = chosen.indices(self.shape[0])  # xarray reverses rows itself: steps are positive
            return self.read(start, stop)[::step]
        return self.read(chosen, chosen + 1)[0]


def on_demand(
    dim: str, read: ReadRows, length: int, dtype: Any, attrs: Mapping[str, Any], steps: tuple[int, ...] | None
) -> xr.Variable:
    """Return a column that is read when it is used, best in `steps` of so many rows."""
    values = indexing.LazilyIndexedArray(ColumnArray(read, length, dtype))
    return xr.Variable(dim, values, attrs, {"preferred_chunks": {dim: steps}})
