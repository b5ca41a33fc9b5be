"""CLUE3D as a plan: a chunk has whole events, so no link leaves it, and what is merged is numbers of showers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from daskclust.clue3d import kernels
from daskclust.clue3d.kernels import ClusterSizes, Compared, ShowerRule
from daskclust.core.data.checks import check_count, check_extent
from daskclust.core.device.arrays import Cuda, Host, device_of
from daskclust.core.device.unionfind import flatten
from daskclust.core.merge.own_ids import OwnIds
from daskclust.core.merge.sets import NOTHING, Fragments, Slice
from daskclust.core.run.plan import Cost, Plan
from daskclust.core.space.extent import check_values, extent_of, group_range, survey, without_gaps
from daskclust.core.space.grid import PAD, Cells, make_grid
from daskclust.core.space.partition import Chunk
from daskclust.core.space.sorting import sort_into_cells

# Of cells, at z = 1 or in eta and phi: it does not depend on the points of a chunk, for sums to be the same in any.
_TILE = 1 / 64
_MOST_LAYERS = 1 << 22  # float32 holds differences of their numbers


class Followed(NamedTuple):
    """What is known of a chunk's points, in the order of the input."""

    chunk: Chunk
    density: Any
    delta: Any
    nearest: Any  # int32
    is_seed: Any
    parent: Any  # the point that each follows; itself at the root of a tree


class ShowerMembers(NamedTuple):
    """A chunk's own result."""

    ids: OwnIds
    shower_of: Any  # (n,) int32, -1 for noise
    is_seed: Any


@dataclass(frozen=True)
class ShowerPlan(Plan):
    """CLUE3D's parameters, named as the estimator's."""

    critical_density: float
    critical_self_density: float
    density_sibling_layers: int
    density_distance_sqr: float
    kernel_density_factor: float
    density_on_same_layer: bool
    nearest_higher_on_same_layer: bool
    use_absolute_projective_scale: bool
    use_cluster_dimension_xy: bool
    critical_distance: float
    critical_z_distance_lyr: int
    outlier_multiplier: float
    min_size: int

    name = "showers"
    group = "group"
    cost = Cost(seconds=1e-6, size=150)
    kernels = 18
    results: ClassVar = {"labels": np.int64, "is_seed": np.bool_}
    results_before_merge: ClassVar = {"density": None, "delta": None, "nearest_higher": np.int64}
    divisions = "layers", "chunks"

    def measure(self, chunk: Chunk) -> Followed:
        """Find densities, nearest highers, and the point that each follows."""
        X, layer, energy = (chunk.columns[name] for name in ("X", "layer", "energy"))
        device, n, dtype = device_of(X), len(X), X.dtype.type
        self._check(device, chunk)
        results = tuple(device.empty(n, kind) for kind in (dtype, dtype, np.int32, np.bool_, np.int32))
        if n > 0:
            rule, sizes = self._rule(dtype), self._sizes(device, chunk)
            cells, found = self._sort(device, chunk, rule, sizes)
            rho, delta = device.scratch(n + PAD, dtype), device.scratch(n, dtype)
            nearest = device.scratch(n, np.int32)
            step = {"distance2": kernels.projected2 if self.use_absolute_projective_scale else kernels.eta_phi2}
            densities = kernels.density.bind(visit=kernels.add_energy, **step)
            device.run(densities, n, cells.row, cells, found, cells.positions[-1], rule, rho)
            search = kernels.nearest_higher.bind(visit=kernels.take_nearer, **step)
            device.run(search, n, cells.row, cells, found, rho, rule, delta, nearest)
            device.run(kernels.decide, n, cells.order, rho, delta, nearest, energy, layer, sizes, rule, results)
        return Followed(chunk, *results)

    def _check(self, device: Host | Cuda, chunk: Chunk) -> None:
        """Refuse what has no place: coordinates and energies that are not finite, z of 0, layers far apart."""
        X = chunk.columns["X"]
        check_count(len(X))
        extent_of(chunk)
        for name, said in (("energy", "sample_weight"), ("radius", "radius")):
            if name in chunk.columns:
                check_values(chunk, name, said)
        if "radius" in chunk.columns and len(X) and (least := chunk.columns["radius"].min()) < 0:
            raise ValueError(f"radius must not be negative, got {float(least):g}")
        if len(flat := np.flatnonzero(X[:, 2] == 0)):
            row = chunk.ids_on_host()[int(device.to_host(flat[:1])[0])]
            raise ValueError(
                f"z must not be 0: X[{row}, 2] = 0, and showers come from the origin; shift z so that it is there"
            )
        low, high = group_range(device, chunk.columns["layer"])
        if max(-low, high) >= _MOST_LAYERS:
            raise ValueError(f"layer must lie within {_MOST_LAYERS} of 0, got {low} to {high}; number layers from 0")

    def _rule(self, dtype: Any) -> ShowerRule:
        """Return the parameters in the dtype of the points."""
        with np.errstate(over="ignore"):
            outlier_distance = dtype(self.outlier_multiplier) * dtype(self.critical_distance)
        return ShowerRule(
            dtype(self.density_distance_sqr),
            self.use_cluster_dimension_xy,
            dtype(self.critical_distance),
            outlier_distance,
            dtype(self.kernel_density_factor),
            dtype(self.kernel_density_factor if self.density_on_same_layer else 0),
            dtype(self.density_sibling_layers),
            dtype(0 if self.nearest_higher_on_same_layer else 1),
            dtype(self.critical_density),
            dtype(self.critical_self_density),
            self.critical_z_distance_lyr,
        )

    def _sizes(self, device: Host | Cuda, chunk: Chunk) -> ClusterSizes:
        """Return radii, and what is in silicon, where they matter: they are lengths across."""
        dtypes = {"radius": chunk.columns["X"].dtype, "is_silicon": np.bool_}
        known = chunk.columns if self.use_absolute_projective_scale else {}
        return ClusterSizes(*(known.get(name, device.empty(0, dtype)) for name, dtype in dtypes.items()))

    def _sort(self, device: Host | Cuda, chunk: Chunk, rule: ShowerRule, sizes: ClusterSizes) -> tuple[Cells, Compared]:
        """Sort points into cells by direction and layer, those of an event and an endcap together."""
        X, layer, energy = (chunk.columns[name] for name in ("X", "layer", "energy"))
        n, dtype, is_flat = len(X), X.dtype.type, self.use_absolute_projective_scale
        place, points = device.empty((n, 3), dtype), tuple(device.empty(n, dtype) for _ in range(3))
        locate = kernels.on_plane if is_flat else kernels.in_eta_phi
        device.run(kernels.find_place.bind(locate=locate), n, X, layer, place, points)
        low, high, _ = survey(device, place)
        tile = _TILE, _TILE, 1.0
        check_extent(low, high, tile)
        period = (0.0, 0.0 if is_flat else 2 * np.pi, 0.0)
        group, first, groups = without_gaps(device, chunk.columns["group"])
        grid = make_grid(low, high, tile, period, device.empty(0, np.int64), first)
        cells = sort_into_cells(device, place, group, groups, grid, energy)
        found = Compared(*(device.scratch(n + PAD, dtype) for _ in Compared._fields))
        largest = float(np.abs([low, high])[:, :2].max())
        slack = float(32 * np.finfo(dtype).eps) * (largest + 4)
        widest = 2 * largest + 8
        device.run(kernels.arrange, n, cells.order, points, sizes, rule, widest, slack, found)
        return cells, found

    def before_merge(self, followed: Followed) -> tuple[Any, dict[str, Any]]:
        """Return densities, separations and nearest highers of the chunk's points, in the order of the data set."""
        chunk, density, delta, nearest, *_ = followed
        device, n = device_of(density), len(density)
        higher = device.empty(n, np.int64)
        device.run(kernels.to_ids, n, device.empty(0, np.int64) if chunk.ids is None else chunk.ids, nearest, higher)
        return chunk.ids, {"density": density, "delta": delta, "nearest_higher": higher}

    def local(self, followed: Followed, before: None = None) -> tuple[ShowerMembers, Fragments]:
        """Follow every point to the end of its chain, and count the layer clusters of each seed."""
        chunk, is_seed, n = followed.chunk, followed.is_seed, len(followed.density)
        device = device_of(followed.density)
        root, seeds = followed.parent.copy(), device.scratch(n, np.int32)
        device.run(flatten, n, root)
        device.running_sum(is_seed, seeds)
        first = np.flatnonzero(is_seed)
        shower_of, sizes = device.empty(n, np.int32), device.full(len(first), 0, np.int32)
        device.run(kernels.count_member, n, root, is_seed, seeds, shower_of, sizes)
        ids = device.to_host(first if chunk.ids is None else chunk.ids[first]).astype(np.int64)
        members = device.to_host(sizes).astype(np.int64)
        group = chunk.whole_groups(self.group)
        groups = (group >> 1) * 2**32 + (group & 1) + 2**31  # by the names of layers: -z 0, +z 1
        frontier = Fragments(ids, members, NOTHING, NOTHING, np.empty((0, 0)), groups)
        own = OwnIds(0, n, None) if chunk.ids is None else OwnIds.of(chunk.ids)
        return ShowerMembers(own, shower_of, is_seed), frontier

    def rows_in(self, local: ShowerMembers, rows: slice) -> ShowerMembers:
        """Return what is known of some of the chunk's own points."""
        return local._replace(shower_of=local.shower_of[rows], is_seed=local.is_seed[rows])

    def finish(self, local: ShowerMembers, merged: Slice) -> dict[str, Any]:
        """Return labels, and which points are seeds of showers."""
        device, n = device_of(local.shower_of), len(local.shower_of)
        labels, is_seed = device.empty(n, np.int64), device.empty(n, np.bool_)
        numbers = device.from_host(merged.numbers)
        device.run(kernels.take_label, n, local.shower_of, local.is_seed, numbers, labels, is_seed)
        return {"labels": labels, "is_seed": is_seed}
