"""Events of FCS files: rows of numbers, scaled, compensated and transformed block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from daskclust.core.data.quote import quoted
from daskclust.io.cytometry.fcs import FcsLayout, Scale
from daskclust.io.cytometry.rows import read_exactly
from daskclust.io.cytometry.transform import Preparation


@dataclass(frozen=True, slots=True)
class FcsRows:
    """Chosen channels of the events of an FCS file.

    Parameters
    ----------
    path : str
        The file.
    start : int
        Byte where the first event begins.
    rows : int
        Number of events.
    formats : tuple of str
        Type of each channel in the file.
    scales : tuple of Scale
        One for each channel.
    preparation : Preparation
        What is done to all channels.
    chosen : tuple of int
        Channels that are given, in this order.
    """

    path: str
    start: int
    rows: int
    formats: tuple[str, ...]
    scales: tuple[Scale, ...]
    preparation: Preparation
    chosen: tuple[int, ...]

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.chosen)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values: float32 where the file has these, else float64."""
        return np.dtype(np.float32 if all(kind[1:] == "f4" for kind in self.formats) else np.float64)

    def load(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return rows start to stop."""
        names = [f"c{k}" for k in range(len(self.formats))]
        row = np.dtype(list(zip(names, self.formats, strict=True)))
        stored = read_exactly(self.path, row, stop - start, self.start + start * row.itemsize)
        columns = np.zeros((len(names), stop - start))
        for k in {*self.chosen, *self.preparation.mixed}:
            columns[k] = self.scales[k].apply(stored[names[k]])
        self.preparation.apply(columns)
        return np.ascontiguousarray(columns[list(self.chosen)].T, self.dtype)


def spillover_of(layout: FcsLayout) -> pd.DataFrame | None:
    """Return the spillover matrix of a file, with the names of its channels as columns, None where it has none.

    Raises
    ------
    ValueError
        For one that cannot be read, and for $COMP of FCS 3.0, which does not tell its channels.
    """
    key = next((key for key in ("spillover", "spill") if layout.text.get(key, "").strip()), None)
    if key is None:
        if layout.text.get("comp", "").strip():
            raise ValueError(
                f"{layout.path} has a spillover matrix without names of channels ($COMP of FCS 3.0); give it with "
                "compensate=pandas.DataFrame(matrix, columns=names), or compensate=False"
            )
        return None
    fields = [field.strip() for field in layout.text[key].split(",")]
    count = int(fields[0]) if fields[0].isdecimal() and len(fields[0]) < 6 else 0
    try:
        numbers = [float(field) for field in fields[1 + count :]]
    except ValueError:
        numbers = []
    if not count or len(fields) != 1 + count + count * count or len(numbers) != count * count:
        raise ValueError(
            f"{layout.path} has keyword {key.upper()} {quoted(layout.text[key])}, expected a number n, n names of "
            f"channels and n * n numbers, and found {len(fields)} fields; give compensate=matrix or False"
        )
    return pd.DataFrame(np.reshape(numbers, (count, count)), columns=fields[1 : 1 + count])
