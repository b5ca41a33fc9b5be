"""What CLUE measures of a chunk, which no threshold changes: densities, and nearest highers.

A point's higher ones are looked for in cells close by; where there is none, in a tree of boxes. Many points that are
equal are taken together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.clue.kernels import equal_points, formulas
from daskclust.clue.kernels.equal_points import PointPlaces, find_places
from daskclust.core.data.checks import check_count, check_extent
from daskclust.core.device.arrays import Cuda, Host, device_of, fill
from daskclust.core.device.kernels import Body, Kernel
from daskclust.core.run.plan import Plan
from daskclust.core.space.box_tree import Members, make_tree, no_members, search_tree, sorted_group
from daskclust.core.space.extent import check_values, extent_of, without_gaps
from daskclust.core.space.grid import PAD, WIDER, Cells, Grid, make_grid, periodic_distance2, search_neighbours
from daskclust.core.space.partition import Chunk
from daskclust.core.space.sorting import sort_into_cells

# How many times dc are searched cell by cell, before the tree is, on 1 to 4 axes; measured.
_NEAR = 8, 8, 4, 2


class Densities(NamedTuple):
    """Densities and nearest highers of a chunk's points, and what is needed to go on from them."""

    chunk: Chunk
    rho: Any
    delta: Any
    nearest: Any


class DensityField(NamedTuple):
    """Where a chunk's points lie."""

    grid: Grid
    group: Any  # (n,) group of each point, in their order; empty where there is one
    groups: int
    extent: NDArray[np.float64]  # (2, d) lowest and highest coordinates


@dataclass(frozen=True)
class ClueParameters(Plan):
    """Parameters of CLUE, lengths in the unit of the coordinates; of dc and deltas the largest that a point has."""

    dc: float
    rhoc: float | None  # None where the chunk's column ``rhoc`` holds one for each point
    delta_c: float
    delta_o: float
    chi: Body  # kernel ``chi(distance, per_scale)``
    per_scale: float  # one over the kernel's length
    neighbor_weight: float
    period: tuple[float, ...]
    own: frozenset[str] = frozenset()  # which of dc, delta_c and delta_o the chunk's columns hold, one for each point

    @property
    def dm(self) -> float:
        """Largest distance at which a nearest higher is looked for."""
        return max(self.delta_c, self.delta_o)

    def measure(self, chunk: Chunk) -> Densities:
        """Compute density, nearest higher and separation: all that does not depend on thresholds."""
        device = device_of(chunk.columns["X"])
        columns = chunk.columns
        n, dtype = len(columns["X"]), columns["X"].dtype.type
        # in memory these are results
        types = dtype, dtype, np.int64 if chunk.ids is None else np.int32
        results = tuple(device.empty(n, kind) for kind in types)
        if n > 0:
            cells, field = self._sort(device, chunk, columns)
            places = find_places(device, cells, n, field.group)
            if places is None:
                rho, delta = device.scratch(n + PAD, dtype), device.scratch(n, dtype)
                nearest = device.scratch(n, np.int32)
                reach = self._reach_of(device, n, cells, columns)
                self._sum_density(device, n, cells, reach, cells.positions[-1], device.empty(0, dtype), rho)
                of_points = rho, cells.order, device.empty(0, np.int32)
                self._find_higher(device, n, cells, field, of_points, None, delta, nearest)
                device.run(formulas.put_back, n, cells.order, rho, delta, nearest, results)
            else:
                alike = self._alike(device, n, cells, columns, field.group) if "dc" in self.own else places
                self._measure_places(device, columns, field, places, alike, *results)
        return Densities(chunk, *results)

    def _alike(self, device: Host | Cuda, n: int, cells: Cells, columns: dict[str, Any], group: Any) -> PointPlaces:
        """Return the places of points that have the same density: those of equal ones that have the same dc, too."""
        positions = cells.positions.copy()
        positions[-1] = self._reach_of(device, n, cells, columns)  # one more axis in the place of weights
        grid = cells.grid._replace(period=(*cells.grid.period, 0.0))
        places = find_places(device, cells._replace(grid=grid, positions=positions), n, group)
        every = device.count_up(n)
        return places or PointPlaces(every, every, every, device.count_up(n + 1))

    def _measure_places(
        self,
        device: Host | Cuda,
        columns: dict[str, Any],
        field: DensityField,
        places: PointPlaces,
        alike: PointPlaces,
        rho: Any,
        delta: Any,
        nearest: Any,
    ) -> None:
        """Write what is measured of points in the order of the input, equal ones of which are taken together.

        Their densities are those of `alike`, which are places of equal dc.
        """
        n, dtype = len(delta), delta.dtype
        cells, total, sorted_weight, alone, sorted_of = self._sorted_places(device, columns, field, alike)
        k = len(alike.firsts)
        rho_of, at_zero = device.empty(k + PAD, dtype), device.full(1 + PAD, 0, dtype)
        reach = self._reach_of(device, k, cells, columns, alike.firsts)
        self._sum_density(device, k, cells, reach, sorted_weight, alone, rho_of)
        factors = dtype.type(self.neighbor_weight), dtype.type(self.per_scale)
        device.run(
            formulas.chi_at_zero.bind(**self._chi_step()), 1, device.full(1 + PAD, 0, np.int32), *factors, at_zero
        )
        weight = columns.get("weight", device.empty(0, dtype))
        known = alike, sorted_of, rho_of, alone, self._is_flat, at_zero, weight, total
        device.run(equal_points.density_of_row, n, *known, rho)

        if alike is not places:
            cells, *_, sorted_of = self._sorted_places(device, columns, field, places)
            k = len(places.firsts)
        rows, least = places.rows, device.empty(n, np.int32)
        if not self._is_flat or alike is not places:  # points of a place may differ in their density
            by_density = device.order_of(device.take_at(rho, rows))
            rows = device.take_at(rows, by_density)
            rows = device.take_at(rows, device.order_of(device.take_at(places.of_row, rows)))
        device.run(equal_points.find_least, k, places.begin, rows, least)
        members = Members(cells.order, places.begin, rows, least, rho)
        rho_of, (top, tie) = device.empty(k + PAD, dtype), (device.empty(k + PAD, np.int32) for _ in range(2))
        device.run(equal_points.find_top, k, cells.order, members, top, tie, rho_of)

        delta_of, nearest_of = device.empty(k, dtype), device.empty(k, np.int32)
        self._find_higher(device, k, cells, field, (rho_of, top, tie), members, delta_of, nearest_of)
        device.run(equal_points.follow, n, places, sorted_of, members, delta_of, nearest_of, delta, nearest)

    def _sorted_places(
        self, device: Host | Cuda, columns: dict[str, Any], field: DensityField, places: PointPlaces
    ) -> tuple[Cells, Any, Any, Any, Any]:
        """Return places in cells, their weights in their own order and sorted, what `density` calls alone, and where.

        Where is the number of each among the sorted ones.
        """
        X, k = columns["X"], len(places.firsts)
        group = device.take_at(field.group, places.firsts) if len(field.group) else field.group
        cells = sort_into_cells(device, device.take_at(X, places.firsts), group, field.groups, field.grid)
        total, sorted_weight, alone = (device.empty(k + PAD, X.dtype) for _ in range(3))
        sorted_of = device.empty(k + PAD, np.int32)
        device.run(equal_points.add_up, k, places, columns.get("weight", device.empty(0, X.dtype)), total)
        device.run(equal_points.describe, k, cells.order, places, total, sorted_weight, alone, sorted_of)
        return cells, total, sorted_weight, alone, sorted_of

    def _reach_of(self, device: Host | Cuda, n: int, cells: Cells, columns: dict[str, Any], rows: Any = None) -> Any:
        """Return the square of dc for `n` sorted points, or the dc of each; `rows` are their rows if not in order."""
        X = columns["X"]
        if "dc" not in self.own:
            return square_below(self.dc, X.dtype.type)
        dc, order = device.empty(n + PAD, X.dtype), cells.order[:n]
        dc[:n] = device.take_at(columns["dc"], order if rows is None else device.take_at(rows, order))
        dc[n:] = 0
        return dc

    def _sum_density(
        self, device: Host | Cuda, n: int, cells: Cells, reach: Any, weight: Any, alone: Any, rho: Any
    ) -> None:
        factors = rho.dtype.type(self.neighbor_weight), rho.dtype.type(self.per_scale)
        device.run(self.density_kernel, n, cells.row, cells, along(cells, self.dc), reach, weight, alone, *factors, rho)

    def _find_higher(
        self,
        device: Host | Cuda,
        n: int,
        cells: Cells,
        field: DensityField,
        of_points: tuple[Any, Any, Any],
        members: Members | None,
        delta: Any,
        nearest: Any,
    ) -> None:
        """Write distance and index of the nearest highers of sorted points.

        `of_points` are density, index and, where several points may be at a place, what `take_nearer` says of ties.
        """
        rho, order, tie = of_points
        near = self.near(len(cells.grid.shape))
        if len(cells.first) == 0 and self.dm >= 2 * self.dc:
            near = 0.0  # cells are found by bisection, and most of them are empty
        if near > 0:
            beyond2 = just_above(square_below(near, rho.dtype.type))
            close_by = formulas.nearest_higher.bind(**self.search_step(near))
            device.run(close_by, n, cells.row, cells, along(cells, near), beyond2, rho, order, tie, delta, nearest)
        else:
            device.run(fill, n, nearest, np.int32(-1))
        if near == self.dm and members is None:
            return
        group = device.empty(n if len(field.group) else 0, np.int32)
        device.run(sorted_group, len(group), order, field.group, field.grid.first_group, group)
        tree = make_tree(device, cells.positions, cells.grid.period, n, (rho, order, group), field.extent)
        beyond2 = just_above(square_below(self.dm, rho.dtype.type))
        members = members or no_members(device, rho.dtype)
        search = search_tree.bind(**self._metric)
        device.run(search, n, tree, members, near < self.dm, beyond2, delta, nearest, grain=512)

    # ------------------------------------------------------------------------------------------------------ its steps
    def _sort(self, device: Host | Cuda, chunk: Chunk, columns: dict[str, Any]) -> tuple[Cells, DensityField]:
        """Check the points and sort them, and their weights, into cells a little wider than dc.

        Cells depend on dc alone, so densities, down to the rounding of their sums, do not depend on thresholds.
        """
        X = columns["X"]
        check_count(len(X))
        low, high = extent_of(chunk)
        for column, name in (("weight", "sample_weight"), ("rhoc", "rhoc")):
            if column in columns:
                check_values(chunk, column, name)
        tile = self.dc * WIDER
        check_extent(low, high, tile)
        group, first_group, groups = without_gaps(device, columns.get("layer", device.empty(0, np.int32)))
        grid = make_grid(low, high, tile, self.period, device.empty(0, np.int64), first_group)
        is_periodic, cycle = np.array(self.period) > 0, np.array(self.period)
        extent = np.where(is_periodic, [np.zeros(len(cycle)), cycle], [low, high])
        weight = columns.get("weight", device.empty(0, X.dtype))
        return sort_into_cells(device, X, group, groups, grid, weight), DensityField(grid, group, groups, extent)

    @property
    def _metric(self) -> dict[str, Body]:
        return {"distance2": periodic_distance2} if any(self.period) else {}

    def near(self, axes: int) -> float:
        """Return how far nearest highers are looked for cell by cell."""
        return min(self.dm, _NEAR[axes - 1] * self.dc)

    @property
    def density_kernel(self) -> Kernel:
        """The kernel that sums densities."""
        return formulas.density.bind(**self._metric, **self._density_step())

    def search_step(self, near: float) -> dict[str, Body]:
        """Return what a search for nearest highers, up to a distance, is bound to."""
        step = {**self._metric, "visit": formulas.take_nearer}
        if near >= 2 * self.dc:  # measured: with few rows to leave out, looking for them costs more than it saves
            step |= {"walk": search_neighbours, "radius2": formulas.largest_nearest2}
        return step

    @property
    def _is_flat(self) -> bool:
        return self.chi is formulas.flat and self.neighbor_weight == 1.0

    def deltas(self, device: Host | Cuda, columns: dict[str, Any], dtype: Any) -> tuple[Any, ...]:
        """Return delta_c and delta_o as kernels take them: the one of all points, and those of each or nothing."""
        own = [columns[name] if name in self.own else device.empty(0, dtype) for name in ("delta_c", "delta_o")]
        return dtype(self.delta_c), dtype(self.delta_o), *own

    def _chi_step(self) -> dict[str, Body]:
        if self._is_flat:
            return {"visit": formulas.add_weight}
        return {"visit": formulas.add_weighted, "chi": self.chi}

    def _density_step(self) -> dict[str, Body]:
        own = {"limit_at": formulas.own_limit, "is_within": formulas.is_within_own} if "dc" in self.own else {}
        return self._chi_step() | own


def along(cells: Cells, reach: float) -> tuple[float, ...]:
    """Return how far to look along each axis that is cut into cells."""
    return (reach * WIDER,) * len(cells.grid.axes)


def square_below(distance: float, dtype: Any) -> Any:
    """Return the largest number of type `dtype` whose square root is at most `distance` in that precision.

    Comparing squares with it is comparing distances with `distance`, to the last bit.
    """
    with np.errstate(over="ignore"):
        limit, up = dtype(distance), dtype(np.inf)
        if limit == up:
            raise ValueError(f"a distance of {distance:g} is too large for {np.dtype(dtype)} coordinates; use float64")
        square = limit * limit
        while np.sqrt(square) > limit:
            square = np.nextafter(square, -up)
        while np.sqrt(np.nextafter(square, up)) <= limit:
            square = np.nextafter(square, up)
    return square


def just_above(number: Any) -> Any:
    """Return the next larger number of the same type."""
    with np.errstate(over="ignore"):
        return np.nextafter(number, type(number)(np.inf))
