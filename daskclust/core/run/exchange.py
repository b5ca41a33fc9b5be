"""Pieces go from many senders to many receivers: one by one where pairs are few, else by dask's own exchange."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from daskclust.core.data.lazy import workers_client
from daskclust.core.run.graph import Lists, Steps, keys_of

_FEW = 8  # pairs for each sender or receiver that go one by one; with 30 of both the exchange is faster

Give = Callable[[int, int], tuple[Any, ...]]
"""``give(k, p)`` is the step, a function with its arguments, that gives the piece `p` of sender `k`."""


def is_few(targets: Sequence[Sequence[int]], count: int) -> bool:
    """Return whether the pieces that some senders have for `count` receivers go one by one."""
    return sum(map(len, targets)) <= _FEW * (len(targets) + count)


def one_by_one(steps: Steps, step: str, give: Give, targets: Sequence[Sequence[int]], count: int, *sources: Any) -> Any:
    """Return for each of `count` receivers the list of its pieces, in the order of their senders.

    `targets` has for each sender the receivers of its pieces, ascending; what `give` needs is in `sources`.
    """
    name, pieces = steps.name(step), steps.name(f"{step}-piece")
    receivers: list[list[Any]] = [[] for _ in range(count)]
    beside = []
    for sender, places in enumerate(targets):
        for p, place in enumerate(places):
            beside.append(((pieces, sender, p), give(sender, p)))
            receivers[place].append((pieces, sender, p))
    return steps.one_by_one(name, [(list, each) for each in receivers], *sources, beside=beside)


def all_to_all(rows: Any) -> Lists:
    """Return for each of R receivers the list of its pieces, of rows (m, R) of pieces; they are as many for each.

    On workers this is dask's P2P exchange, with steps in proportion to m and R and pieces on disk; arrays of a process
    have them in its memory.
    """
    senders, receivers = rows.shape
    method = "tasks" if workers_client() is None else "p2p"
    return Lists(rows.rechunk(((senders,), (1,) * receivers), method=method))


def pieces_of(steps: Steps, step: str, lists: Any, targets: Sequence[Sequence[int]], count: int) -> Any:
    """Return the same as `one_by_one` of pieces that are in lists, one for each sender."""
    keys = keys_of(lists)
    return one_by_one(steps, step, lambda k, p: (_piece, keys[k], p), targets, count, lists)


def _piece(pieces: list[Any], number: int) -> Any:
    return pieces[number]
