"""Clusters of a window of hits on a CUDA device: seven launches, of which the host reads once what it must know.

The labels of windows that follow each other are numbered on. So a window is joined and its clusters are counted first;
its labels are written when the number of clusters before it is known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import Cuda
from daskclust.core.device.kernels import Body
from daskclust.events.kernels import rules
from daskclust.events.kernels import window as kernels
from daskclust.events.kernels.pixels import Hits

_INDEX = np.int32  # of hits in a window


class Joined(NamedTuple):
    """Hits of a window, in clusters that have numbers of their own; all of it may still be under way."""

    parent: Any  # (n,) root of each hit, at a root its number: see `number_strip`
    facts: Any  # (4,) int64: see `kernels/window.py`


def join(device: Cuda, hits: Hits, rule: Body, dt_max: float, touching: int, least: int = 1, room: int = 0) -> Joined:
    """Join one or more hits that should be in the order of time; clusters of less than `least` hits are noise.

    Arrays are made for `room` hits, so that a window that is a little larger than the last needs no new memory.
    """
    n, room = len(hits.toa), max(room, len(hits.toa))
    strips, most_strips = -(-n // kernels.STRIP), -(-room // kernels.STRIP)
    parent = device.empty(room, _INDEX)[:n]
    sizes = device.empty(room if least > 1 else 0, _INDEX)[:n]
    counts, sums = device.empty(most_strips, _INDEX)[:strips], device.empty(kernels.THREADS, _INDEX)
    facts = device.empty(4, np.int64)
    device.run(kernels.begin, n, parent, sizes, facts)
    if rule is rules.near_hit:
        device.run(kernels.join_window, n, hits, dt_max, touching, parent, facts)
    else:
        latest = device.empty(room, _INDEX)[:n]
        device.run(kernels.join_quiet_window.bind(may_join=rule), n, hits, dt_max, touching, latest, parent, facts)
    device.run(kernels.gather_hit, n, parent, sizes)
    device.run(kernels.count_strip, strips, parent, sizes, least, counts)
    device.run_teams(kernels.add_up, 1, 1, kernels.THREADS, counts, sums, facts)
    device.run(kernels.number_strip, strips, parent, sizes, least, counts)
    return Joined(parent, facts)


def survey(device: Cuda, hits: Hits) -> Joined:
    """Find the facts about one or more hits without joining them."""
    facts = device.full(4, 0, np.int64)
    device.run(kernels.check_hit, len(hits.toa), hits, facts)
    return Joined(None, facts)


def write_labels(device: Cuda, parent: Any, before: int, labels: Any) -> None:
    """Write the labels of joined hits, numbered on from `before` clusters."""
    device.run(kernels.label_hit, len(parent), parent, before, labels)


def is_refused(facts: NDArray[np.int64]) -> bool:
    """Return whether there are hits that `matrix.refuse` names."""
    return bool(facts[kernels.BAD] or facts[kernels.FAR])
