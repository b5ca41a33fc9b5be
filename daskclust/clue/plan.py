"""CLUE as a plan: what a worker does with a chunk, what is merged, what becomes of it.

A chunk is a group of layers, or a block with a halo of dm + dc: within dm of an own point every density is then exact,
and so is the nearest higher of every own point. Points follow their nearest higher up to a seed or an outlier; where
that chain leaves the block the merge goes on with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.clue import kernels
from daskclust.core.arrays import Cuda, Host, device_of, fill, gather
from daskclust.core.binning import sort_into_cells
from daskclust.core.cells import PAD, WIDER, Cells, make_grid, periodic_distance2, search_neighbours
from daskclust.core.checks import check_count, check_extent, raise_not_finite, raise_not_finite_value
from daskclust.core.jit import Body
from daskclust.core.merge import Frontier, Slice, merge_trees
from daskclust.core.partition import Chunk
from daskclust.core.survey import group_range, survey
from daskclust.core.workload import Cost


class Measures(NamedTuple):
    """Densities and nearest highers of sorted points, and what is needed to go on from them."""

    chunk: Chunk
    order: Any
    rho: Any
    delta: Any
    nearest: Any


class Trees(NamedTuple):
    """Every sorted point's root."""

    measures: Measures
    kind: Any
    root: Any
    is_seed: Any
    exits: Any


@dataclass(frozen=True)
class CluePlan:
    """Parameters of CLUE, lengths in the unit of the coordinates.

    Parameters
    ----------
    dc : float
        Radius of the density.
    rhoc : float or None
        Density threshold of seeds; None where the chunk's column ``rhoc`` holds one for each point.
    delta_c, delta_o : float
        Separation that makes a dense point a seed, and a sparse one an outlier.
    chi : Body
        Kernel ``chi(distance, per_scale)``.
    per_scale : float
        Second argument of the kernel, one over its length.
    neighbor_weight : float
        Factor for all points but the point itself.
    period : tuple of float
        Period of every axis, 0 where it is open.
    """

    dc: float
    rhoc: float | None
    delta_c: float
    delta_o: float
    chi: Body
    per_scale: float
    neighbor_weight: float
    period: tuple[float, ...]

    name = "clue"
    carry = None  # chunks do not follow each other
    cost = Cost(seconds=180e-9, size=75)

    @property
    def dm(self) -> float:
        """Largest distance at which a nearest higher is looked for."""
        return max(self.delta_c, self.delta_o)

    @property
    def halo(self) -> float:
        """How far around a block its chunk must reach."""
        return (self.dm + self.dc) * WIDER

    # ------------------------------------------------------------------------------------------------- on a worker
    def measure(self, chunk: Chunk) -> Measures:
        """Compute density, nearest higher and separation: all that does not depend on thresholds."""
        device = device_of(chunk.columns["X"])
        columns = {name: device.argument(values) for name, values in chunk.columns.items()}
        n, dtype, new = len(columns["X"]), columns["X"].dtype.type, _maker(device, chunk)
        order, nearest = new("order", n + PAD, np.int32), new("nearest", n, np.int32)
        rho, delta = new("rho", n + PAD, dtype), new("delta", n, dtype)
        if n == 0:
            return Measures(chunk, order, rho, delta, nearest)
        cells = self._sort(device, columns, chunk.ids, order)
        weight = self._sorted_weight(device, columns, cells)
        metric = {"distance2": periodic_distance2} if any(self.period) else {}
        density = kernels.density.bind(**metric, **self._density_step())
        factors = dtype(self.neighbor_weight), dtype(self.per_scale)
        device.run(density, n, cells.row, cells, self.dc * WIDER, square_below(self.dc, dtype), weight, *factors, rho)
        nearest_higher = kernels.nearest_higher.bind(**metric, **self._search_step())
        beyond2 = just_above(square_below(self.dm, dtype))
        device.run(nearest_higher, n, cells.row, cells, self.dm * WIDER, beyond2, rho, delta, nearest)
        return Measures(chunk, order, rho, delta, nearest)

    def local(self, measures: Measures, before: None = None) -> tuple[Trees, Frontier | None]:
        """Find seeds and outliers, the root of every point, and the links that leave the chunk."""
        chunk, order, rho, delta, nearest = measures
        device, n, dtype = device_of(chunk.columns["X"]), len(delta), rho.dtype.type
        new = _maker(device, chunk)
        kind, parent = new("kind", n, np.int8), new("parent", n, np.int32)
        is_seed = device.empty(n, np.bool_)
        rhoc_of = device.argument(chunk.columns["rhoc"]) if self.rhoc is None else device.empty(0, dtype)
        owned = device.empty(0, np.bool_) if chunk.owned is None else device.argument(chunk.owned)
        thresholds = dtype(self.rhoc or 0), rhoc_of, dtype(self.delta_c), dtype(self.delta_o), dtype(self.dm)
        device.run(kernels.classify, n, order, rho, delta, nearest, *thresholds, owned, kind, parent, is_seed)
        device.run(kernels.find_root, n, parent)
        trees = Trees(measures, kind, parent, is_seed, np.empty(0, np.int64))
        if chunk.ids is None:
            return trees, None
        if chunk.owned is None:
            none = np.empty(0, np.int64)
            roots = device.to_host(chunk.ids[device.give(is_seed)])
            return trees, Frontier(roots, none.reshape(0, 2), none, self._own_groups(device, chunk))
        return self._links(device, trees, owned)

    def _links(self, device: Host | Cuda, trees: Trees, owned: Any) -> tuple[Trees, Frontier]:
        """Add the links of a block: from each exit to the point it follows, from each border point to its root."""
        (chunk, order, *_, nearest), kind, root, is_seed, _ = trees
        X, n = device.argument(chunk.columns["X"]), len(nearest)
        is_border = device.empty(n, np.bool_)
        low, high = (tuple(ends) for ends in zip(*chunk.region, strict=True))
        reach = self.dm * WIDER + float(8 * np.finfo(X.dtype).eps * _largest(low, high))
        device.run(kernels.mark_border, n, order, X, owned, low, high, self.period, reach, is_border)

        place_id = chunk.ids[device.give(order)[:n]]
        exits = np.flatnonzero(device.give(kind) == kernels.EXIT)
        border = np.flatnonzero(device.give(is_border))
        ends = np.concatenate([exits, border]), np.concatenate([device.give(nearest)[exits], device.give(root)[border]])
        edges = np.stack([device.to_host(place_id[end]) for end in ends], axis=1)
        seeds = device.to_host(chunk.ids[device.give(is_seed)])
        return trees._replace(exits=exits), Frontier(seeds, edges, edges[: len(exits), 0], np.empty(0, np.int64))

    def _own_groups(self, device: Host | Cuda, chunk: Chunk) -> NDArray[np.int64]:
        """Return the groups of a chunk that is to hold them whole."""
        if not chunk.as_given or len(chunk.columns["X"]) == 0:
            return np.empty(0, np.int64)
        if "layer" not in chunk.columns:
            return np.zeros(1, np.int64)
        return np.unique(device.to_host(device.argument(chunk.columns["layer"]))).astype(np.int64)

    def merge(self, frontiers: list[Frontier]) -> list[Slice]:
        """Follow the links between chunks and number the seeds by their place in the data set."""
        return merge_trees(frontiers)

    def owned_ids(self, trees: Trees) -> Any:
        """Return the global ids of the points that the chunk owns."""
        chunk = trees.measures.chunk
        return chunk.ids if chunk.owned is None else chunk.ids[chunk.owned]

    def finish(self, trees: Trees, merged: Slice | None) -> dict[str, Any]:
        """Return the results for the chunk's own points, in the order of the data set.

        Without `merged` the chunk is all of the data and its seeds are numbered as they come.
        """
        (chunk, order, rho, delta, nearest), kind, root, is_seed, exits = trees
        device, n, dtype = device_of(chunk.columns["X"]), len(delta), rho.dtype.type
        owned, own_up_to, n_own = self._own_places(device, chunk, n)
        labels, nearest_higher = device.empty(n_own, np.int64), device.empty(n_own, np.int64)
        density, separation = device.empty(n_own, dtype), device.empty(n_own, dtype)

        seeds = device.scratch("seeds", n, np.int32)
        device.running_sum(is_seed, seeds)
        numbers = device.from_host(np.empty(0, np.int64) if merged is None else merged.numbers)
        exit_number = device.scratch("exit number", n if len(exits) else 0, np.int64)
        if len(exits) and merged is not None:
            answers = device.from_host(merged.answers)
            device.run(kernels.scatter, len(exits), device.argument(exits), answers, exit_number)
        ids = device.empty(0, np.int64) if chunk.ids is None else device.argument(chunk.ids)
        outputs = (labels, density, separation, nearest_higher)
        device.run(
            kernels.emit, n, order, ids, owned, own_up_to, rho, delta, nearest, dtype(self.dm), kind, root, seeds,
            numbers, exit_number, outputs,
        )  # fmt: skip
        results = {
            "labels": labels,
            "density": density,
            "delta": separation,
            "nearest_higher": nearest_higher,
            "is_seed": is_seed if chunk.owned is None else device.take(is_seed, chunk.owned),
        }
        results = {name: device.give(values) for name, values in results.items()}
        if merged is None:
            results["n_clusters"] = int(device.to_host(seeds[n - 1 : n])[0]) if n else 0
        return results

    # ------------------------------------------------------------------------------------------------------ its steps
    def _own_places(self, device: Host | Cuda, chunk: Chunk, n: int) -> tuple[Any, Any, int]:
        """Return which points are the chunk's, how many of these there are up to each, and in all.

        The first two are empty where all are.
        """
        if chunk.owned is None or n == 0:
            return device.empty(0, np.bool_), device.empty(0, np.int32), n
        owned, up_to = device.argument(chunk.owned), device.scratch("own", n, np.int32)
        device.running_sum(owned, up_to)
        return owned, up_to, int(device.to_host(up_to[n - 1 :])[0])

    def _sort(self, device: Host | Cuda, columns: dict[str, Any], ids: Any, order: Any) -> Cells:
        """Check the points and sort them into cells a little wider than dc.

        Cells depend on dc alone, so densities, down to the rounding of their sums, do not depend on thresholds.
        """
        X = columns["X"]
        check_count(len(X))
        low, high, bad = survey(device, X)
        if bad < len(X):
            raise_not_finite(device.to_host(X[bad : bad + 1])[0], bad if ids is None else int(ids[bad]))
        for column, name in (("weight", "sample_weight"), ("rhoc", "rhoc")):
            if column in columns:
                self._check_finite(device, columns[column], name, ids)
        tile = self.dc * WIDER
        check_extent(low, high, tile)
        group, first_group, groups = self._groups(device, columns.get("layer", device.empty(0, np.int32)))
        grid = make_grid(low, high, tile, self.period, device.empty(0, np.int64), first_group)
        return sort_into_cells(device, X, group, groups, grid, order)

    def _check_finite(self, device: Host | Cuda, values: Any, name: str, ids: Any) -> None:
        *_, bad = survey(device, values.reshape(len(values), 1))
        if bad < len(values):
            value = device.to_host(values[bad : bad + 1])[0]
            raise_not_finite_value(name, value, bad if ids is None else int(ids[bad]))

    def _groups(self, device: Host | Cuda, group: Any) -> tuple[Any, int, int]:
        """Return group numbers, the first of them and how many there are."""
        first, last = group_range(device, group)
        if last - first <= 4 * len(group) + 1024:
            return group, first, last - first + 1
        # numbers far apart: count them without the gaps
        distinct, compact = np.unique(device.to_host(group), return_inverse=True)
        return device.from_host(compact.astype(np.int32)), 0, len(distinct)

    def _sorted_weight(self, device: Host | Cuda, columns: dict[str, Any], cells: Cells) -> Any:
        X = columns["X"]
        weight = device.scratch("weight", len(X) + PAD, X.dtype)
        if "weight" in columns:
            device.run(gather, len(X), columns["weight"], cells.order, weight)
        else:
            device.run(fill, len(X), weight, X.dtype.type(1))
        return weight

    def _search_step(self) -> dict[str, Body]:
        step: dict[str, Body] = {"visit": kernels.take_nearer}
        if self.dm >= 2 * self.dc:  # measured: with few rows to leave out, looking for them costs more than it saves
            step |= {"walk": search_neighbours, "radius2": kernels.largest_nearest2}
        return step

    def _density_step(self) -> dict[str, Body]:
        if self.chi is kernels.flat and self.neighbor_weight == 1.0:
            return {"visit": kernels.add_weight}
        return {"visit": kernels.add_weighted, "chi": self.chi}


def _maker(device: Host | Cuda, chunk: Chunk) -> Callable[..., Any]:
    """Return what makes arrays for results of a step: scratch in memory, where the next step follows at once."""
    if chunk.ids is None:
        return device.scratch
    return lambda _name, shape, dtype: device.empty(shape, dtype)


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


def _largest(low: tuple[float, ...], high: tuple[float, ...]) -> float:
    """Return the largest coordinate, in size, of a block's faces."""
    return max((abs(x) for x in (*low, *high) if np.isfinite(x)), default=0.0)
