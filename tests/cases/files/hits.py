"""Hits for tests of readers and writers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import xarray as xr

from daskclust.io import read_hits, to_dataset


def refused(message: str, *args: Any, **options: Any) -> None:
    """Check that a file is refused with a message."""
    with pytest.raises(ValueError, match=message):
        read_hits(*args, **options)


def sample(n: int = 7) -> xr.Dataset:
    """Return a small data set with every kind of variable."""
    rng = np.random.default_rng(0)
    return to_dataset(
        {
            "x": rng.normal(size=n).astype(np.float32),
            "y": rng.normal(size=n),
            "layer": np.arange(n, dtype=np.int32) % 3,
            "energy": rng.random(n).astype(np.float32),
            "label": np.arange(n) - 1,
            "is_seed": np.arange(n) % 2 == 0,
            "time": rng.random(n),
        },
        units={"time": "ns"},
    )


def watched_row_groups(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[str]]]:
    """Return a list that takes the number and the columns of each row group of Parquet that is read from now on."""
    asked: list[tuple[int, list[str]]] = []
    original = pq.ParquetFile.read_row_group

    def spy(self: Any, group: int, columns: list[str]) -> Any:
        asked.append((group, columns))
        return original(self, group, columns=columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", spy)
    return asked
