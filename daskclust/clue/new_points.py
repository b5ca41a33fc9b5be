"""New points among those of a fit: their densities, and the labels of their nearest highers.

A new point counts for no other one, and has no weight: it changes nothing. Points of a fit are sorted as its densities
need them, so that the density at a place is that of a point there, to the last bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.clue.densities import ClueParameters, along, just_above, square_below
from daskclust.clue.kernels import formulas
from daskclust.clue.kernels.equal_points import find_places
from daskclust.core.data.checks import check_count, check_extent
from daskclust.core.data.columns import for_kernels, named_for_kernels
from daskclust.core.device.arrays import device_of, on_device_of
from daskclust.core.space.box_tree import BoxTree, make_tree, no_members
from daskclust.core.space.extent import extent_of
from daskclust.core.space.grid import PAD, WIDER, Cells, make_grid
from daskclust.core.space.partition import Chunk
from daskclust.core.space.sorting import sort_into_cells


class FittedPoints(NamedTuple):
    """Points of a fit, sorted for any number of searches."""

    tile: float  # width of cells
    cells: Cells  # of points, or of places where many are equal
    weight: Any  # of each in cells
    groups: NDArray[np.int64]  # ascending; empty where there is one
    tree: BoxTree
    labels: Any  # of each point, and -1 behind the last


class Predictor(ClueParameters):
    """What CLUE says of new points, by the parameters of a fit."""

    def fitted(self, X: Any, rho: Any, labels: Any, group: Any, weight: Any, dc: Any) -> FittedPoints:
        """Return the points of a fit, of densities `rho`; the last three columns are None where the fit has none."""
        device, n = device_of(X), len(X)
        columns = {"X": X, "layer": group, "weight": weight, "dc": dc}
        columns = named_for_kernels({name: values for name, values in columns.items() if values is not None})
        groups = np.empty(0, np.int64)
        if group is not None:
            groups, number = np.unique(device.to_host(group), return_inverse=True)
            columns["layer"] = device.from_host(number.astype(np.int32))
        cells, field = self._sort(device, Chunk(columns), columns)
        order = cells.order[:n]
        of_group = device.take_at(field.group, order) if len(field.group) else field.group
        known = device.take_at(for_kernels("density", rho), order), order, of_group
        tree = make_tree(device, cells.positions, self.period, n, known, field.extent, has_least=True)
        tree = BoxTree(self.period, *(array.copy() for array in tree[1:]))  # what serves again is not kept
        sorted_weight, places = cells.positions[-1], find_places(device, cells, n, field.group)
        if places is not None:
            alike = self._alike(device, n, cells, columns, field.group) if "dc" in self.own else places
            cells, _, sorted_weight, *_ = self._sorted_places(device, columns, field, alike)
        cells = Cells(cells.grid, *(array.copy() for array in cells[1:]))
        labels = np.append(labels, on_device_of(labels, np.array([-1])))
        return FittedPoints(self.dc * WIDER, cells, sorted_weight.copy(), groups, tree, labels)

    def labels_of(self, X: Any, rows: Any, fitted: FittedPoints, group: Any, *lengths: Any) -> Any:
        """Return the label of each new point; lengths are dc, delta_c and delta_o where each point has its own."""
        device, n, dtype = device_of(fitted.labels), len(X), X.dtype.type
        if n == 0:
            return on_device_of(X, fitted.labels[:0])
        given = zip(("X", "dc", "delta_c", "delta_o"), (X, *lengths), strict=True)
        columns = {name: on_device_of(fitted.labels, each) for name, each in given if each is not None}
        columns = named_for_kernels(columns)
        check_count(n)
        low, high = extent_of(Chunk(columns, rows))
        check_extent(low, high, fitted.tile)
        number = device.empty(0, np.int32)
        if len(fitted.groups):
            asked = device_of(group).to_host(group)
            at = np.searchsorted(fitted.groups, asked).clip(max=len(fitted.groups) - 1)
            number = device.from_host(np.where(fitted.groups[at] == asked, at, -1).astype(np.int32))
        grid = make_grid(low, high, fitted.tile, self.period, device.empty(0, np.int64), -1 if len(number) else 0)
        points = sort_into_cells(device, columns["X"], number, len(fitted.groups) + 1, grid)

        rho, cells = device.empty(n + PAD, dtype), fitted.cells
        reach = along(cells, self.dc), self._reach_of(device, n, points, columns)
        factors = dtype(self.neighbor_weight), dtype(self.per_scale)
        sum_density = formulas.density_among.bind(**self._metric, **self._density_step())
        device.run(sum_density, n, points.row, points, number, cells, *reach, fitted.weight, *factors, rho)

        nearest, lowest = device.full(n, -1, np.int64), device.full(n, -np.inf, dtype)
        deltas = self.deltas(device, columns, dtype)
        search = formulas.nearest_among.bind(**self._metric)
        for level, limit in ((lowest, 0.0), (rho, self.dm)):  # a point at the same place goes before all others
            beyond2 = just_above(square_below(limit, dtype))
            known = points, number, fitted.tree, no_members(device, dtype), level, beyond2, deltas
            device.run(search, n, *known, nearest, grain=512)
        return on_device_of(X, fitted.labels[nearest])
