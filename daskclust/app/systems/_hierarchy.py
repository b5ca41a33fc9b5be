"""The hierarchy of cells, which the dendrogram draws and cuts go through; it stays the same while they move."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.app.selection import LINKAGE
from daskclust.core import hierarchy as tree


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Merges of cells.

    Parameters
    ----------
    linkage : numpy.ndarray, shape (n - 1, 4)
        SciPy's.
    """

    linkage: npt.NDArray[np.float64]

    @property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The linkage alone."""
        return {LINKAGE: self.linkage}

    def expressions(self, source: str) -> dict[str, str]:
        """Return the Python expression for the linkage."""
        return {LINKAGE: f'{source}["linkage"].values'}

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest merge above 0; 0.5 and 1 where there is none."""
        height = self.linkage[:, 2]
        positive = height[height > 0]
        return (float(positive.min()), float(positive.max())) if positive.size else (0.5, 1.0)

    def height(self, n_clusters: int, min_size: int) -> float:
        """Return a height between the merges that a cut into `n_clusters` undoes, and the highest one that it keeps."""
        top = tree.condense(self.linkage, n_clusters + 1, min_size)
        heights = np.sort(top.linkage[:, 2])[::-1]
        if not len(heights):
            return 1.05 * self.ends[1]
        undone, kept = heights[: n_clusters - 1], heights[n_clusters - 1 :]
        above = float(undone[-1]) if len(undone) else 1.05 * self.ends[1]
        below = float(kept[0]) if len(kept) else 0.0
        return (above + below) / 2
