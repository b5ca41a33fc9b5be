"""Points chosen in a view: by a box, by a lasso, by their clusters, or by branches of a hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core import hierarchy as tree

Mask = npt.NDArray[np.bool_]
Columns = Mapping[str, npt.NDArray[Any]]

LINKAGE = "linkage"
"""Name of the column by which branches are chosen."""


class Range(NamedTuple):
    """Values of a column, ends included."""

    name: str
    low: float
    high: float


def _mask(within: Range | None, columns: Columns) -> Mask | np.bool_:
    if within is None:
        return np.bool_(True)
    column = columns[within.name]
    return np.asarray((column >= within.low) & (column <= within.high))


def _lines(within: Range | None, columns: Mapping[str, str]) -> list[str]:
    if within is None:
        return []
    column = columns[within.name]
    return [f"inside &= ({column} >= {within.low!r}) & ({column} <= {within.high!r})"]


@dataclass(frozen=True)
class Box:
    """Points within a rectangle, edges included.

    Parameters
    ----------
    axes : tuple of str
        Columns across and up.
    x, y : tuple of float
        Smallest and largest value of each.
    within : Range or None
        Values that another column must have, too.
    """

    axes: tuple[str, str]
    x: tuple[float, float]
    y: tuple[float, float]
    within: Range | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns that must be there."""
        return self.axes if self.within is None else (*self.axes, self.within.name)

    def mask(self, columns: Columns) -> Mask:
        """Return which points are inside."""
        parts = zip(self.axes, (self.x, self.y), strict=True)
        inside = [(columns[name] >= low) & (columns[name] <= high) for name, (low, high) in parts]
        return np.asarray(inside[0] & inside[1] & _mask(self.within, columns))

    def lines(self, columns: Mapping[str, str]) -> list[str]:
        """Return the Python lines that make ``inside``; `columns` are expressions for the axes."""
        limits = [
            f"({columns[name]} >= {low!r}) & ({columns[name]} <= {high!r})"
            for name, (low, high) in zip(self.axes, (self.x, self.y), strict=True)
        ]
        return [f"inside = {limits[0]} & {limits[1]}", *_lines(self.within, columns)]


@dataclass(frozen=True)
class Lasso:
    """Points within a closed line.

    Parameters
    ----------
    axes : tuple of str
        Columns across and up.
    corners : tuple of pairs of float
        Of the line.
    within : Range or None
        Values that another column must have, too.
    """

    axes: tuple[str, str]
    corners: tuple[tuple[float, float], ...]
    within: Range | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns that must be there."""
        return self.axes if self.within is None else (*self.axes, self.within.name)

    def mask(self, columns: Columns) -> Mask:
        """Return which points are inside."""
        from matplotlib.path import Path

        x, y = (columns[name] for name in self.axes)
        if len(self.corners) < 3:
            return np.zeros(len(x), np.bool_)
        corners = np.asarray(self.corners)
        (left, low), (right, high) = corners.min(axis=0), corners.max(axis=0)
        near = np.flatnonzero(_mask(self.within, columns) & (x >= left) & (x <= right) & (y >= low) & (y <= high))
        inside = np.zeros(len(x), np.bool_)
        inside[near] = Path(corners).contains_points(np.stack([x[near], y[near]], axis=1))
        return inside

    def lines(self, columns: Mapping[str, str]) -> list[str]:
        """Return the Python lines that make ``inside``; `columns` are expressions for the axes."""
        x, y = (columns[name] for name in self.axes)
        return [
            "from matplotlib.path import Path",
            f"corners = {[tuple(corner) for corner in self.corners]!r}",
            f"inside = Path(corners).contains_points(np.stack([{x}, {y}], axis=1))",
            *_lines(self.within, columns),
        ]


@dataclass(frozen=True)
class Clusters:
    """Points of some clusters.

    Parameters
    ----------
    numbers : tuple of int
        Of the clusters.
    by : Range or None
        The column of their table, and its values, by which they were chosen.
    """

    numbers: tuple[int, ...]
    by: Range | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns that must be there."""
        return ("label",)

    def mask(self, columns: Columns) -> Mask:
        """Return which points are in one of the clusters."""
        label = columns["label"]
        chosen = np.zeros(max(int(label.max(initial=-1)), *self.numbers, -1) + 2, np.bool_)  # the last is noise, -1
        chosen[list(self.numbers)] = True
        return np.asarray(chosen[label])

    def lines(self, columns: Mapping[str, str]) -> list[str]:
        """Return the Python lines that make ``inside``; those of `by` have the table as ``rows``."""
        if self.by is None:
            return [f"inside = np.isin({columns['label']}, {list(self.numbers)!r})"]
        name, low, high = self.by
        return [
            f"column = rows[{name!r}].values",
            f"inside = np.isin({columns['label']}, np.flatnonzero((column >= {low!r}) & (column <= {high!r})))",
        ]


@dataclass(frozen=True)
class Branches:
    """Points below some nodes of a hierarchy.

    Parameters
    ----------
    nodes : tuple of int
        Ids in the linkage.
    """

    nodes: tuple[int, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns that must be there."""
        return (LINKAGE,)

    def mask(self, columns: Columns) -> Mask:
        """Return which points are below one of the nodes."""
        Z = columns[LINKAGE]
        inside = np.zeros(len(Z) + 1, np.bool_)
        for node in self.nodes:
            inside[tree.members(Z, node)] = True
        return inside

    def lines(self, columns: Mapping[str, str]) -> list[str]:
        """Return the Python lines that make ``inside``."""
        return [
            "from daskclust.core import tree",
            f"Z = {columns[LINKAGE]}",
            "inside = np.zeros(len(Z) + 1, bool)",
            f"for node in {list(self.nodes)!r}:",
            "    inside[tree.members(Z, node)] = True",
        ]


Selection = Box | Lasso | Clusters | Branches


def sides(selection: Selection | None) -> tuple[float, float] | None:
    """Return the left and the right of a box or of a lasso, None of all else."""
    if isinstance(selection, Box):
        return selection.x
    if isinstance(selection, Lasso) and selection.corners:
        xs = [x for x, _ in selection.corners]
        return min(xs), max(xs)
    return None


def corners(xs: Sequence[float], ys: Sequence[float], most: int = 400) -> tuple[tuple[float, float], ...]:
    """Return the corners of a line that was drawn, every few of them where there are very many."""
    step = max(1, -(-len(xs) // most))
    return tuple((float(x), float(y)) for x, y in zip(xs[::step], ys[::step], strict=True))
