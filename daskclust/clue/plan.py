"""CLUE as a plan: what a worker does with a chunk, what is merged, what becomes of it.

A chunk is a group of layers, or a block with a halo of dm + dc: within dm of an own point every density is then exact,
and so is the nearest higher of every own point. Points follow their nearest higher up to a seed or an outlier; where
that chain leaves the block the merge goes on with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from daskclust.clue.densities import Densities
from daskclust.clue.kernels import formulas
from daskclust.clue.new_points import Predictor
from daskclust.core.device.arrays import Cuda, Host, device_of, fill
from daskclust.core.merge.own_ids import OwnIds
from daskclust.core.merge.sets import NONE, NOTHING, Fragments, Slice
from daskclust.core.run.plan import Cost
from daskclust.core.space.grid import WIDER
from daskclust.core.space.partition import Chunk

HOPS = 16  # links of a chain that are followed at once; most chains are shorter


class Chains(NamedTuple):
    """Every point's chain of nearest highers: where it ends, and which ends are seeds or exits."""

    densities: Densities
    root: Any
    is_seed: Any
    is_exit: Any


class ChainEnds(NamedTuple):
    """Where chains of a chunk's own points end, on their device; all chunks' wait in memory for the merge."""

    ids: OwnIds
    end_of: Any  # (n,) int32 number of the seed or, after these, of the exit; -1 for an outlier
    seeds: Any  # (k,) int64 which points are seeds


@dataclass(frozen=True)
class CluePlan(Predictor):
    """CLUE's parameters, and all that is done with them."""

    name = "clue"
    cost = Cost(seconds=180e-9, size=95)
    kernels = 16
    results: ClassVar = {"labels": np.int64, "is_seed": np.bool_}
    results_before_merge: ClassVar = {"density": None, "delta": None, "nearest_higher": np.int64}
    divisions = "layers", "space", "chunks"
    reach_name = "dc + max(delta_c, delta_o)"
    min_size = 1  # a seed

    @property
    def reach(self) -> float:
        """Within `dm` of an own point every density must be exact."""
        return self.dm + self.dc

    # ------------------------------------------------------------------------------------------------- on a worker
    def before_merge(self, densities: Densities) -> tuple[Any, dict[str, Any]]:
        """Return densities, separations and nearest highers of the chunk's own points, in the order of the data set."""
        chunk, rho, delta, nearest = densities
        device, n, dtype = device_of(rho), len(rho), rho.dtype.type
        types = {"density": dtype, "delta": dtype, "nearest_higher": np.int64}
        results = {name: device.empty(n, kind) for name, kind in types.items()}
        ids = device.empty(0, np.int64) if chunk.ids is None else chunk.ids
        deltas = self.deltas(device, chunk.columns, dtype)
        device.run(formulas.emit, n, ids, rho, delta, nearest, deltas, tuple(results.values()))
        # all are written, and then the halo's left out: measured to take half of the time of leaving them out there
        return _own(chunk, chunk.ids), {name: _own(chunk, values) for name, values in results.items()}

    def one_chunk(self, densities: Densities) -> dict[str, Any]:
        """Return all results where one chunk holds all points: its seeds are numbered as they come."""
        device, n = device_of(densities.chunk.columns["X"]), len(densities.delta)
        chains, labels = self._chains(device, densities), device.empty(n, np.int64)
        seeds = self._label(device, chains, device.empty(0, np.int32), labels)
        n_clusters = int(device.to_host(seeds[n - 1 : n])[0]) if n else 0
        cut = self.before_merge(densities)[1] if self.own else {}  # a search goes as far as any point's does
        measured = cut or dict(zip(self.results_before_merge, densities[1:], strict=True))
        return {"labels": labels, "is_seed": chains.is_seed, "n_clusters": n_clusters} | measured

    def local(self, densities: Densities, before: None = None) -> tuple[ChainEnds, Fragments]:
        """Find seeds and outliers, the end of every point's chain, and the links that leave the chunk."""
        chunk = densities.chunk
        device = device_of(chunk.columns["X"])
        chains = self._chains(device, densities)
        if chunk.owned is not None:
            exits, frontier = self._links(device, chains)
            return self._ends(device, chains, exits), frontier
        seeds = device.to_host(chunk.ids[chains.is_seed])
        ones, groups = np.ones(len(seeds), np.int64), chunk.whole_groups(self.group)
        frontier = Fragments(seeds, ones, NOTHING, NOTHING, np.empty((0, 0)), groups)
        return self._ends(device, chains, device.count_up(0)), frontier

    def _chains(self, device: Host | Cuda, densities: Densities) -> Chains:
        """Say what each point is, and follow its chain to the last point."""
        chunk, rho, delta, nearest = densities
        n, dtype = len(rho), rho.dtype.type
        parent, is_seed = device.scratch(n, np.int32), device.empty(n, np.bool_)
        rhoc_of = chunk.columns["rhoc"] if self.rhoc is None else device.empty(0, dtype)
        owned = device.empty(0, np.bool_) if chunk.owned is None else chunk.owned
        is_exit = device.empty(len(owned), np.bool_)
        thresholds = dtype(self.rhoc or 0), rhoc_of, self.deltas(device, chunk.columns, dtype)
        device.run(formulas.classify, n, rho, delta, nearest, *thresholds, owned, parent, is_seed, is_exit)
        unfinished = device.full(1, 1, np.int32)
        while device.to_host(unfinished)[0]:
            device.run(fill, 1, unfinished, np.int32(0))
            device.run(formulas.find_root, n, parent, HOPS, unfinished)
        return Chains(densities, parent, is_seed, is_exit)

    def _ends(self, device: Host | Cuda, chains: Chains, exits: Any) -> ChainEnds:
        chunk, n = chains.densities.chunk, len(chains.root)
        is_seed, end_of = chains.is_seed, device.empty(n, np.int32)
        number_of_exit = device.full(n if len(exits) else 0, -1, np.int32)
        number_of_exit[exits] = np.count_nonzero(is_seed) + device.count_up(len(exits))
        self._label(device, chains, number_of_exit, end_of)
        ids = OwnIds.of(_own(chunk, chunk.ids))
        return ChainEnds(ids, _own(chunk, end_of), np.flatnonzero(_own(chunk, is_seed)))

    def _label(self, device: Host | Cuda, chains: Chains, number_of_exit: Any, labels: Any) -> Any:
        """Write the number of the seed, or of the exit, where each point's chain ends; return seeds up to each."""
        n = len(chains.root)
        seeds = device.scratch(n, np.int32)
        device.running_sum(chains.is_seed, seeds)
        device.run(formulas.end_of_chain, n, chains.root, chains.is_seed, seeds, number_of_exit, labels)
        return seeds

    def _links(self, device: Host | Cuda, chains: Chains) -> tuple[Any, Fragments]:
        """Return a block's exits, and what goes up: its seeds, then its exits, each with the points that others see.

        Members of a set are the points near faces whose chain ends in its seed or exit; an exit's also the point that
        it follows, which is another block's.
        """
        (chunk, *_, nearest), root, is_seed, is_exit = chains
        X, owned, n = chunk.columns["X"], chunk.owned, len(nearest)
        is_border = device.empty(n, np.bool_)
        low, high = (tuple(ends) for ends in zip(*chunk.region, strict=True))
        reach = self.dm * WIDER + float(8 * np.finfo(X.dtype).eps * _largest(low, high))
        device.run(formulas.mark_border, n, X, owned, low, high, self.period, reach, is_border)

        seeds, exits = np.flatnonzero(is_seed), np.flatnonzero(is_exit)
        border = np.flatnonzero(is_border)
        border = border[(is_seed | is_exit)[root[border]]]
        ends = root[border]
        set_of = np.where(is_seed[ends], np.searchsorted(seeds, ends), len(seeds) + np.searchsorted(exits, ends))
        members = np.concatenate([border, nearest[exits]])
        member_of = np.concatenate([set_of, len(seeds) + device.count_up(len(exits))])
        places = X[members, : len(low)]

        firsts = np.concatenate([device.to_host(chunk.ids[seeds]), np.full(len(exits), NONE)])
        sizes = np.repeat(np.array([1, 0]), [len(seeds), len(exits)])
        up = map(device.to_host, (chunk.ids[members], member_of, places))
        return exits, Fragments(firsts, sizes, *up)

    def rows_in(self, local: ChainEnds, rows: slice) -> ChainEnds:
        """Return what is known of some of the chunk's own points."""
        seeds = local.seeds[(local.seeds >= rows.start) & (local.seeds < rows.stop)] - rows.start
        return ChainEnds(local.ids, local.end_of[rows], seeds)

    def finish(self, local: ChainEnds, merged: Slice) -> dict[str, Any]:
        """Return labels and which points are seeds, in the order of the data set."""
        device = device_of(local.end_of)
        numbers = device.from_host(np.append(merged.numbers, -1))
        is_seed = device.full(len(local.end_of), False, np.bool_)
        is_seed[local.seeds] = True
        return {"labels": numbers[local.end_of], "is_seed": is_seed}


def _own(chunk: Chunk, values: Any) -> Any:
    """Return values of the points that the chunk owns, from those of all of its points."""
    return values if chunk.owned is None else values[chunk.owned]


def _largest(low: tuple[float, ...], high: tuple[float, ...]) -> float:
    """Return the largest coordinate, in size, of a block's faces."""
    return max((abs(x) for x in (*low, *high) if np.isfinite(x)), default=0.0)
