"""The steps that dask runs."""

from __future__ import annotations

from typing import Any

from dask.callbacks import Callback
from dask.utils import key_split


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
