"""CLUE on a CUDA device in one go: the host waits for it once, at the end.

All that the host would have to know on the way stays on the device: the grid, whose numbers kernels read there, and
whether the points are of the usual kind. Where they are not (a coordinate is not finite, cells are too many or hold
too many points), the kernels that follow have nothing to do, and the fit begins anew, step by step.

A fit of 2000 points takes 12 launches and one wait so, and 24 and 8 step by step (`tests/host_cuda/test_counts.py`).
On an H200, 100 000 points in 100 layers take 0.8 ms so, and 2.2 ms where this is tried first and in vain.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.clue.densities import along, just_above, square_below
from daskclust.clue.kernels import equal_points, formulas, usual
from daskclust.clue.plan import CluePlan
from daskclust.core.device.arrays import CUDA, device_of
from daskclust.core.space.grid import MAX_AXES, PAD, WIDER, Cells, Grid, make_grid

_FREE = 1 << 22  # cells of the table, in addition to eight for each point: few points in a whole detector
MOST = ((1 << 31) - _FREE - 1) // 8  # points: numbers of cells stay within 32 bits
_THREADS = 1 << 15  # that look at the coordinates
_HOPS = 1024  # links of a chain that a thread follows; chains are that much shorter after each round


def fit_at_once(plan: CluePlan, columns: dict[str, Any]) -> dict[str, Any] | None:
    """Return results as `run_in_memory` does, for arrays on a CUDA device; None where they need a closer look."""
    X = columns["X"]
    n, near = len(X), plan.near(min(X.shape[1], MAX_AXES))
    if device_of(X) is not CUDA or not 0 < n <= MOST or near < plan.dm or plan.own:
        return None
    device, dtype = CUDA, X.dtype.type
    weight, rhoc = (columns.get(name, device.empty(0, dtype)) for name in ("weight", "rhoc"))
    group = columns.get("layer", device.empty(0, np.int32))
    counts = device.empty(n + 1, np.int32)  # how many seeds there are up to each point, and how many points are treated
    seeds, used = counts[:n], counts[n:]
    cells, cell, rank = _counted(plan, X, (weight, rhoc), group, used)
    run = functools.partial(device.run, limit=used.reshape(()))

    slots = device.empty(n, np.int32)
    run(usual.take_slot, n, cell, rank, cells.first, slots)
    run(usual.place, n, slots, cell, X, weight, cells)

    rho, delta, nearest = device.empty(n + PAD, dtype), device.empty(n, dtype), device.empty(n, np.int32)
    reach2, factors = square_below(plan.dc, dtype), (dtype(plan.neighbor_weight), dtype(plan.per_scale))
    weights = cells.positions[-1], device.empty(0, dtype)
    run(plan.density_kernel, n, cells.row, cells, along(cells, plan.dc), reach2, *weights, *factors, rho)

    types = {"density": dtype, "delta": dtype, "nearest_higher": np.int64}
    results = {name: device.empty(n, kind) for name, kind in types.items()}
    results |= {"labels": device.empty(n, np.int64), "is_seed": device.empty(n, np.bool_)}
    parent, nothing, no_numbers = device.empty(n, np.int32), device.empty(0, np.bool_), device.empty(0, np.int32)
    search = cells, along(cells, near), just_above(square_below(near, dtype)), rho, cells.order, no_numbers
    thresholds = dtype(plan.rhoc or 0), rhoc, plan.deltas(device, columns, dtype)
    written = tuple(results[name] for name in types)
    run(
        usual.find_higher.bind(**plan.search_step(near)), n, cells.row, search, (delta, nearest), written, thresholds,
        (nothing, parent, results["is_seed"], nothing),
    )  # fmt: skip
    for _ in range(max(1, math.ceil(math.log(n, _HOPS)))):
        run(formulas.find_root, n, parent, _HOPS, device.empty(1, np.int32))
    device.running_sum(results["is_seed"], seeds)
    run(formulas.end_of_chain, n, parent, results["is_seed"], seeds, no_numbers, results["labels"])
    n_clusters, treated = map(int, device.to_host(counts[n - 1 :]))
    return results | {"n_clusters": n_clusters} if treated else None


def _counted(plan: CluePlan, X: Any, columns: tuple[Any, Any], group: Any, used: Any) -> tuple[Cells, Any, Any]:
    """Return the grid with the number of points up to each cell, and the cell and the number in it of each point."""
    device, (n, d) = CUDA, X.shape
    most = 8 * n + _FREE
    facts = device.from_host(_initial_facts(d))
    ends, groups, is_bad = facts[: 2 * d].view(np.float64), facts[2 * d : 2 * d + 2], facts[2 * d + 2 :]
    threads = min(n, _THREADS)
    device.run(usual.look, threads, threads, X, columns, group, ends, groups, is_bad)

    # cells along open axes are not known yet
    like = make_grid(np.zeros(d), np.zeros(d), plan.dc * WIDER, plan.period, device.empty(0, np.int64))
    a = len(like.axes)
    numbers = device.from_host(np.array([0] * a + [axis.cells for axis in like.axes] + [0]))
    origin, along_axis, first_group = numbers[:a], numbers[a:-1], numbers[2 * a :]
    device.run(
        usual.lay_grid, 1, n, like.axes, plan.dc, most, ends, groups, is_bad, origin, along_axis, first_group, used
    )
    axes = [axis._replace(origin=_number(origin, k), cells=_number(along_axis, k)) for k, axis in enumerate(like.axes)]
    grid = Grid(tuple(axes), like.period, _number(first_group, 0))

    cell, rank, first = device.empty(n, np.int32), device.empty(n, np.int32), device.zeros(most + 1, np.int32)
    device.run(usual.count_cell, n, X, group, grid, equal_points.MANY, cell, rank, first, used, limit=used.reshape(()))
    device.running_sum(first, first)
    row = device.empty(n + PAD, np.int32)
    positions = device.empty((d + 1, n + PAD), X.dtype)  # and weights
    return Cells(grid, positions, device.empty(n + PAD, np.int32), row, first, device.empty(0, np.int64)), cell, rank


def _number(array: Any, k: int) -> Any:
    """Return an element as a number on the device."""
    return array[k : k + 1].reshape(())


@functools.cache
def _initial_facts(d: int) -> NDArray[np.int64]:
    """Return the extremes to start from, for points of `d` coordinates."""
    ends = np.array([np.inf] * d + [-np.inf] * d).view(np.int64)
    return np.append(ends, [np.iinfo(np.int64).max, np.iinfo(np.int64).min, 0])
