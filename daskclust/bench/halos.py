"""How a cube is cut into blocks, and how many points are in their halos, for the model of time and traffic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from daskclust.bench._scaling_data import geometry_of


def grid_of(blocks: int, axes: int) -> tuple[float, ...]:
    """Return how many blocks there are along each axis of a cube that is cut into `blocks`, in the mean over rows."""
    if not axes:
        return ()
    grid = [max(1, int(blocks ** (1 / axes)) - 1)] * axes
    while math.prod(grid) < blocks:
        grid[grid.index(min(grid))] += 1
    means, rows = [], Counter({blocks: 1})  # rows by the number of blocks that they are cut into
    for axis, most in enumerate(grid):
        parts: Counter[int] = Counter()
        for wanted, times in rows.items():
            along = wanted if axis == axes - 1 else min(most, wanted)
            each, more = divmod(wanted, along)
            parts[each] += times * (along - more)
            parts[each + 1] += times * more
        means.append(parts.total() / rows.total())
        rows = +parts
    return tuple(means)


def halo_share(side: float, grid: Sequence[float], reach: float, *, period: bool) -> float:
    """Return how many points halos have for each point, in a cube of uniform density.

    Parameters
    ----------
    side : float
        Of the cube.
    grid : sequence of float
        Number of blocks along each axis.
    reach : float
        Width of a halo, in the unit of `side`.
    period : bool
        Whether the cube is periodic.

    Returns
    -------
    float
        Points of halos over points.

    Notes
    -----
    Each plane between two blocks gives a layer of `reach` on both its sides to the block beyond. Along one axis with q
    planes, a point is thus in 1 + 2 q reach / side blocks in the mean, at most in all; axes are independent.
    """
    times = 1.0
    for blocks in grid:
        planes = 0.0 if blocks <= 1 else blocks if period else blocks - 1
        times *= min(1 + 2 * planes * reach / side, blocks)
    return times - 1


def halo_points(system: str, points: float, grid: Sequence[float]) -> float:
    """Return the number of points in the halos of blocks of a system's points."""
    space = geometry_of(system)
    if not space.axes:
        return 0.0
    side = (points / space.density) ** (1 / space.axes)
    return points * halo_share(side, grid, space.reach, period=space.period)
