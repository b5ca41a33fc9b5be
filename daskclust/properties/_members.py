"""Members of each cluster, or of each halo, in order: what tables are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.core.device.arrays import HOST, Cuda, Host, fill
from daskclust.core.device.threads import thread_count
from daskclust.properties.kernels import halos as kernels
from daskclust.properties.kernels.halos import Means, Particles

GRAIN = 64  # clusters a task, at least


def members_of(device: Host | Cuda, labels: Any, particles: Particles, rows: int) -> tuple[Any, Any, Particles]:
    """Return where the members of each halo begin among particles in order: by halo, then by index.

    Then that order on CUDA, and on the CPU none, but the members themselves, one beside the other.
    """
    if device is HOST:
        return moved(labels, particles, rows)
    first = device.scratch(rows + 2, np.int32)
    device.run(fill, rows + 2, first, np.int32(0))
    device.run(kernels.count_members, len(labels), labels, first)
    device.running_sum(first, first)
    return first, device.order_of(labels), particles


def moved(labels: Any, particles: Particles, rows: int) -> tuple[Any, Any, Particles]:
    """Return the same on the CPU: all threads move what they read in the order of the input."""
    if len(labels) == 0:
        return np.zeros(rows + 1, np.int32), np.empty(0, np.int32), particles
    pieces = max(1, min(4 * thread_count(), len(labels) // (8 * rows + 1)))
    place = np.zeros((pieces, rows), np.int32)
    kernels.count_piece.run(pieces, labels, place, grain=1)
    ends = place.T.cumsum(dtype=np.int32).reshape(rows, pieces)
    first = np.append(np.int32(0), ends[:, -1])
    place = np.ascontiguousarray((ends - place.T).T)
    given = [column for column in particles if len(column)]
    table = np.empty((first[-1], len(given)), np.result_type(*given))
    columns = iter(table.T)
    members = Particles(*(next(columns) if len(column) else column for column in particles))
    kernels.move_piece.run(pieces, labels, place, particles, members, grain=1)
    return first, np.empty(0, np.int32), members


def empty(device: Host | Cuda, kind: Any, rows: int) -> Any:
    return kind(*(device.empty(rows, np.float64) for _ in kind._fields))


def empty_means(device: Host | Cuda, rows: int) -> Means:
    means: Means = empty(device, Means, rows)
    return means._replace(size=device.empty(rows, np.int64))
