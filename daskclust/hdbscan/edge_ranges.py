"""The edges of all blocks in one order, in pieces of equal size: no worker ever has all of them.

Each block has its edges in order. Every so-many-th of all blocks tell near which edges a piece ends; of the edges near
these there are few, and they tell where exactly.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.hdbscan.block_trees import at, order_of, together
from daskclust.hdbscan.kernels.first_edges import Edges

_STEP = 256  # edges of a block for each that it tells


def in_order(parts: list[Edges]) -> Edges:
    """Return all edges in order."""
    every = together(parts)
    return at(every, order_of(every))


def with_joints(final: Edges, joints: Edges, block: int) -> Edges:
    """Return a block's edges, those of the first one with the edges between blocks."""
    return final if block else in_order([final, joints])


def some_of(edges: Edges) -> Edges:
    """Return the last of each so many edges."""
    return at(edges, slice(_STEP - 1, None, _STEP))


def ends_near(some: list[Edges], *, ranks: NDArray[np.int64]) -> tuple[Edges, Edges]:
    """Return for each rank an edge before the one of this rank, counted from 1, and one that is not before it."""
    least, most = (Edges(*(np.array([end]) for end in (value, value, 0, 0))) for value in (-np.inf, np.inf))
    every = together([least, in_order(some), most])
    # a block has up to _STEP - 1 edges more before an edge than it tells of
    before = (ranks - 1 - len(some) * (_STEP - 1)) // _STEP
    return at(every, np.maximum(before, 0)), at(every, np.minimum(-(-ranks // _STEP), len(every.low) - 1))


class NearEnds(NamedTuple):
    """A block's edges between two others, for each rank."""

    before: NDArray[np.int64]
    edges: list[Edges]


def near_ends(edges: Edges, ends: tuple[Edges, Edges]) -> NearEnds:
    """Return a block's edges near each end, and how many come before these."""
    first, last = (places_in(edges, each) for each in ends)
    return NearEnds(first, [at(edges, slice(*pair)) for pair in zip(first, last, strict=True)])


def ends_of(near: list[NearEnds], *, ranks: NDArray[np.int64]) -> Edges:
    """Return the edge of each rank, counted from 1."""
    rest = ranks - 1 - sum(each.before for each in near)
    found = [in_order([each.edges[k] for each in near]) for k in range(len(ranks))]
    return together([at(each, slice(k, k + 1)) for each, k in zip(found, rest, strict=True)])


def pieces_of(edges: Edges, ends: Edges) -> list[Edges]:
    """Return a block's edges up to each end, and those behind the last."""
    cuts = [0, *places_in(edges, ends), len(edges.low)]
    return [at(edges, slice(*pair)) for pair in itertools.pairwise(cuts)]


def places_in(edges: Edges, others: Edges) -> NDArray[np.int64]:
    """Return how many of a block's edges are not behind each of some others."""
    places = np.empty(len(others.low), np.int64)
    for k, other in enumerate(zip(*others, strict=True)):
        begin, end = 0, len(edges.low)
        for values, value in zip(edges, other, strict=True):
            tied: Any = values[begin:end]
            begin, end = begin + np.searchsorted(tied, value), begin + np.searchsorted(tied, value, side="right")
        places[k] = end
    return places
