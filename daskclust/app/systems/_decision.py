"""What the decision plot of CLUE draws; it stays the same while thresholds move."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

DENSITY, DELTA = "log density", "log delta"
"""Names of the axes."""


@dataclass(frozen=True, eq=False)
class Decision:
    """Densities and distances to nearest highers, in the logarithm.

    Parameters
    ----------
    density, delta : numpy.ndarray, shape (n,)
        As of `daskclust.CLUE`.
    reach : float
        How far nearest highers were looked for; farther away, delta is inf.
    """

    density: npt.NDArray[Any]
    delta: npt.NDArray[Any]
    reach: float

    @property
    def level(self) -> float:
        """Where points without a nearest higher are drawn."""
        return 1.6 * self.reach

    @cached_property
    def floors(self) -> tuple[float, float]:
        """Least density and least distance that are drawn: what is not positive is there."""
        return _least(self.density), _least(self.delta)

    @cached_property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Logarithms to base 10."""
        delta = np.minimum(self.delta, self.level)
        return {
            DENSITY: np.log10(np.maximum(self.density, self.floors[0])),
            DELTA: np.log10(np.maximum(delta, self.floors[1])),
        }

    def expressions(self, source: str) -> dict[str, str]:
        """Return Python expressions for `columns`, of a result with distances up to `reach`."""
        density, delta = f'{source}["density"].values', f'{source}["delta"].values'
        return {
            DENSITY: f"np.log10(np.maximum({density}, {self.floors[0]!r}))",
            DELTA: f"np.log10(np.maximum(np.minimum({delta}, {self.level!r}), {self.floors[1]!r}))",
        }


def _least(values: npt.NDArray[Any]) -> float:
    """Return half of the least positive value, or the least one where all are positive."""
    positive = values[values > 0]
    least = float(positive.min(initial=np.inf))
    if not np.isfinite(least):
        return 1.0
    return least if positive.size == values.size else least / 2
