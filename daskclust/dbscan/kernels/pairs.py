"""What is asked of pairs of points that a tree proposes as neighbours."""

from __future__ import annotations

from daskclust.core.device.kernels import kernel
from daskclust.dbscan.kernels.core_points import add_exactly, add_weight
from daskclust.dbscan.kernels.links import distance2


@kernel
def check_near(pair, one, other, positions, period, eps2, is_near):
    """Say whether two points are within eps, around periods too."""
    is_near[pair] = distance2(one[pair], other[pair], positions, period) <= eps2


@kernel
def sum_weights(place, begin, members, weight, high, low):
    """Write the sum of the weights of a place's members, as two numbers."""
    high[place], low[place] = 0.0, 0.0
    for k in range(begin[place], begin[place + 1]):
        high[place], low[place] = add_exactly(high[place], low[place], weight[members[k]])


@kernel
def weigh(query, begin, neighbours, weight, rest, enough, is_enough):
    """Say whether the neighbours of a point weigh enough; `rest` is added to their weights unless it is empty."""
    high, low = 0.0, 0.0
    for k in range(begin[query], begin[query + 1]):
        high, low = add_weight(high, low, neighbours[k], weight, rest)
    is_enough[query] = 1 if high >= enough else 0
