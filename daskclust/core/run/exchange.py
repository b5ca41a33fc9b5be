"""Steps that take pieces from many senders to many receivers: one by one, or in bundles where pairs would be many."""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from daskclust.core.run.graph import Tasks

_WORTH = 2  # bundles are made where there are at least so many times fewer tasks of them


Take = Callable[[int, int, int], Any]
"""``take(k, a, b)`` adds the step that gives the pieces `a` to `b - 1` of sender `k`, a list, and returns its key."""


def exchange(tasks: Tasks, name: str, take: Take, targets: Sequence[Sequence[int]], count: int) -> list[Any]:
    """Add the steps that bring the pieces of senders to receivers, and return for each receiver lists of pieces.

    `take` gives pieces of senders, and `targets` has for each sender the receivers of its pieces, ascending. What comes
    to each of the `count` receivers is a list of keys, each of a list of pieces: `unbundled` takes them. Pieces are in
    the order of their senders.

    With n senders and n receivers of which each has something for each there are n**2 pairs. In bundles, all that some
    senders have for some receivers is put together first, and divided among these then: 2 n**(3/2) steps.
    """
    receivers: list[list[Any]] = [[] for _ in range(count)]
    if not in_bundles(len(targets), count, sum(map(len, targets))):
        for sender, places in enumerate(targets):
            for k, place in enumerate(places):
                receivers[place].append(take(sender, k, k + 1))
        return receivers
    width, height = _sides(len(targets), count)
    for a in range(0, len(targets), width):
        for b in range(0, count, height):
            senders, to = range(a, min(a + width, len(targets))), range(b, b + height)
            _bundle(tasks, name, take, {sender: targets[sender] for sender in senders}, to, receivers)
    return receivers


def take_from(tasks: Tasks, name: str, senders: Sequence[Any]) -> Take:
    """Return what gives pieces of senders whose results, with these keys, are lists of all of their pieces."""
    return lambda k, a, b: tasks.add(name, operator.getitem, senders[k], slice(a, b))


def in_bundles(senders: int, receivers: int, pairs: float) -> bool:
    """Return whether bundles are made for so many pairs of a sender and a receiver."""
    return pairs >= _WORTH * bundled_steps(senders, receivers)


def bundled_steps(senders: int, receivers: int) -> int:
    """Return how many steps bundles take where each sender has something for each receiver."""
    width, height = _sides(senders, receivers)
    rows, columns = math.ceil(senders / width), math.ceil(receivers / height)
    return senders * columns + rows * columns + rows * receivers


def _sides(senders: int, receivers: int) -> tuple[int, int]:
    """Return how many senders, and how many receivers, a bundle is for: the roots of their numbers, rounded up."""
    return math.isqrt(max(1, senders) - 1) + 1, math.isqrt(max(1, receivers) - 1) + 1


def _bundle(
    tasks: Tasks, name: str, take: Take, targets: dict[int, Sequence[int]], to: range, receivers: list[list[Any]]
) -> None:
    """Add what brings pieces of some senders to some receivers."""
    taken, places = [], []
    for sender, wanted in targets.items():
        a, b = (bisect_left(wanted, end) for end in (to.start, to.stop))
        if a < b:
            taken.append(take(sender, a, b))
            places.append(wanted[a:b])
    if not taken:
        return
    bundle = tasks.add(f"{name}-bundle", sort_out, taken, places)
    for k, place in enumerate(_receivers(places)):
        receivers[place].append(tasks.add(f"{name}-bundle", operator.getitem, bundle, k))


def _receivers(places: Sequence[Sequence[int]]) -> list[int]:
    return sorted(set().union(*places))


# ---------------------------------------------------------------------------------------------------------- on a worker
def sort_out(senders: Sequence[Sequence[Any]], places: Sequence[Sequence[int]]) -> list[list[Any]]:
    """Return for each receiver that there is something for, ascending, its pieces in the order of senders."""
    pieces: dict[int, list[Any]] = {place: [] for place in _receivers(places)}
    for sender, wanted in zip(senders, places, strict=True):
        for piece, place in zip(sender, wanted, strict=True):
            pieces[place].append(piece)
    return list(pieces.values())


def unbundled(bundles: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the pieces of bundles, in order."""
    return [piece for bundle in bundles for piece in bundle]
