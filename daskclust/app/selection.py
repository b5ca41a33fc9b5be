"""Points chosen in a view: by a box, by a lasso, by their clusters, by branches of a hierarchy, or because they moved.

Each has `needs`, the columns that must be there; `mask`, which points are chosen, of columns by name; and `lines`, the
Python lines that make the mask as ``inside``, of expressions for these columns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core import hierarchy

Mask = npt.NDArray[np.bool_]
Columns = Mapping[str, npt.NDArray[Any]]
Expressions = Mapping[str, str]

LINKAGE = "linkage"  # name of the column by which branches are chosen


class Range(NamedTuple):
    """Values of a column from a lowest to a highest, which is one of them where it `has_end`."""

    name: str
    low: float
    high: float
    has_end: bool = True

    def mask(self, columns: Columns) -> Mask:
        column = columns[self.name]
        return np.asarray((column >= self.low) & (column <= self.high if self.has_end else column < self.high))

    def words(self, columns: Expressions) -> str:
        """Return the mask as a Python expression."""
        column = columns[self.name]
        return f"({column} >= {self.low!r}) & ({column} {'<=' if self.has_end else '<'} {self.high!r})"


def mask_of(ranges: Sequence[Range], columns: Columns) -> Mask:
    """Return which points are in all of some ranges, one or more."""
    return functools.reduce(np.logical_and, [each.mask(columns) for each in ranges])


@dataclass(frozen=True)
class _Drawn:
    """A shape drawn around points in a picture, and ranges of other columns."""

    axes: tuple[str, str]
    within: tuple[Range, ...] = field(default=(), kw_only=True)

    @property
    def needs(self) -> tuple[str, ...]:
        return (*self.axes, *(each.name for each in self.within))


@dataclass(frozen=True)
class ChosenBox(_Drawn):
    """Points within a rectangle, edges included."""

    x: tuple[float, float]
    y: tuple[float, float]

    @property
    def span(self) -> tuple[float, float]:
        """The left and the right."""
        return self.x

    @property
    def _ranges(self) -> list[Range]:
        return [Range(self.axes[0], *self.x), Range(self.axes[1], *self.y), *self.within]

    def mask(self, columns: Columns) -> Mask:
        return mask_of(self._ranges, columns)

    def lines(self, columns: Expressions) -> list[str]:
        x, y, *within = (each.words(columns) for each in self._ranges)
        return [f"inside = {x} & {y}", *(f"inside &= {words}" for words in within)]


@dataclass(frozen=True)
class Lasso(_Drawn):
    """Points within a closed line through corners."""

    corners: tuple[tuple[float, float], ...]

    @property
    def span(self) -> tuple[float, float] | None:
        """The left and the right; None of no corners."""
        xs = [x for x, _ in self.corners]
        return (min(xs), max(xs)) if xs else None

    def mask(self, columns: Columns) -> Mask:
        from matplotlib.path import Path

        x, y = (columns[name] for name in self.axes)
        inside = np.zeros(len(x), np.bool_)
        if len(self.corners) < 3:
            return inside
        lines = np.asarray(self.corners)
        (left, low), (right, high) = lines.min(axis=0).tolist(), lines.max(axis=0).tolist()
        near = np.flatnonzero(ChosenBox(self.axes, (left, right), (low, high), within=self.within).mask(columns))
        inside[near] = Path(lines).contains_points(np.stack([x[near], y[near]], axis=1))
        return inside

    def lines(self, columns: Expressions) -> list[str]:
        x, y = (columns[name] for name in self.axes)
        return [
            "from matplotlib.path import Path",
            f"corners = {[tuple(corner) for corner in self.corners]!r}",
            f"inside = Path(corners).contains_points(np.stack([{x}, {y}], axis=1))",
            *(f"inside &= {each.words(columns)}" for each in self.within),
        ]


@dataclass(frozen=True)
class ChosenClusters:
    """Points of some clusters; `by` is the range of a column of their table, ``rows``, by which they were chosen."""

    numbers: tuple[int, ...]
    by: Range | None = None
    needs = ("label",)

    def mask(self, columns: Columns) -> Mask:
        return np.isin(columns["label"], self.numbers)

    def lines(self, columns: Expressions) -> list[str]:
        if self.by is None:
            return [f"inside = np.isin({columns['label']}, {list(self.numbers)!r})"]
        within = self.by.words({self.by.name: "column"})
        return [
            f"column = rows[{self.by.name!r}].values",
            f"inside = np.isin({columns['label']}, np.flatnonzero({within}))",
        ]


@dataclass(frozen=True)
class Branches:
    """Points below some nodes of a hierarchy, by their ids in the linkage."""

    nodes: tuple[int, ...]
    needs = (LINKAGE,)

    def mask(self, columns: Columns) -> Mask:
        Z = columns[LINKAGE]
        inside = np.zeros(len(Z) + 1, np.bool_)
        for node in self.nodes:
            inside[hierarchy.members(Z, node)] = True
        return inside

    def lines(self, columns: Expressions) -> list[str]:
        return [
            "from daskclust.core import hierarchy",
            f"Z = {columns[LINKAGE]}",
            "inside = np.zeros(len(Z) + 1, bool)",
            f"for node in {list(self.nodes)!r}:",
            "    inside[hierarchy.members(Z, node)] = True",
        ]


@dataclass(frozen=True, eq=False)
class Moved:
    """Points that are in another cluster than before; `made` are the Python lines that cluster as before: ``kept``."""

    before: npt.NDArray[np.int64]
    made: tuple[str, ...]
    compare: Callable[[npt.NDArray[Any], npt.NDArray[Any]], Any]  # `daskclust.app.tools.compare.compare`
    needs = ("label",)

    def mask(self, columns: Columns) -> Mask:
        moved: Mask = self.compare(self.before, columns["label"]).moved
        return moved

    def lines(self, columns: Expressions) -> list[str]:
        return [
            "from daskclust.app.tools.compare import compare",
            *self.made,
            f'inside = compare(kept["label"].values, {columns["label"]}).moved',
        ]


Selection = ChosenBox | Lasso | ChosenClusters | Branches | Moved


def span_of(selection: Selection | None) -> tuple[float, float] | None:
    """Return the left and the right of a box or of a lasso, None of all else."""
    return selection.span if isinstance(selection, ChosenBox | Lasso) else None


def corners(xs: Sequence[float], ys: Sequence[float], most: int = 400) -> tuple[tuple[float, float], ...]:
    """Return the corners of a line that was drawn, every few of them where there are very many."""
    step = max(1, -(-len(xs) // most))
    return tuple((float(x), float(y)) for x, y in zip(xs[::step], ys[::step], strict=True))
