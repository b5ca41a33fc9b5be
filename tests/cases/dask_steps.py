"""Arrays in chunks, and the steps that dask runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
from dask.callbacks import Callback
from dask.utils import key_split


def in_chunks(rows: int | tuple[int, ...]) -> Callable[[Any], Any]:
    """Return what makes dask arrays with chunks of so many rows of arrays."""
    return lambda values: da.from_array(values, chunks=(rows, *values.shape[1:]))


class Steps(Callback):
    """Collects the tasks that dask runs: their names, and how often a step is among them, fused ones too."""

    def __init__(self) -> None:
        super().__init__(pretask=self._count)
        self.names: list[str] = []
        self._text = ""

    def _count(self, key: Any, dsk: Any, state: Any) -> None:
        self.names.append(key_split(key))
        self._text += f" {key[0] if isinstance(key, tuple) else key}"

    def __getitem__(self, step: str) -> int:
        return self._text.count(f"daskclust-{step}")
