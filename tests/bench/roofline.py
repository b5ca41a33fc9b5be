"""What this machine allows at best: measured ceilings, and the work that an answer needs at least.

A *ceiling* is how many bytes a second the memory copies, and how many operations a second the cores do. The *work* of a
system on given points is a number of bytes (of the input, read once, and of the results, written once) and one of
operations: additions, products and comparisons of numbers. The *floor* is the time that they take at the ceilings, the
longer of the two; what a run reaches of the roofline is the floor over its time. The page on benchmarks has a table of
the formulas. With n points in d dimensions:

- CLUE: of the P pairs of points of a layer within dc a distance has 3 d - 1 operations, comparing it with dc is one; a
  pair adds a weight to each of its two densities, and these are compared once. Looking for the nearest higher beyond dc
  is left out.
- Event building: a hit asks each of 9 pixels whether it had a hit not longer ago than dt_max: a difference and a
  comparison.
- DBSCAN: K is the sum, over all points, of the neighbours within eps that a point must have seen to be core,
  min(neighbours, min_samples - 1); for friends-of-friends it is one for each that is not alone. A distance, of
  3 d operations with its comparison, is seen from both of its ends.
- HCA: for each merge the centroid of the new cluster and the height; once for each point the products of its
  coordinates, which covariances are made of. To know which clusters are nearest is left out, so that this floor is far
  below what any program does.

P and K are counted on the points themselves, all of them or a sample (`count_neighbours`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.bench.kernels import OPERATIONS, multiply_add
from daskclust.bench.timing import all_seconds, device_of
from daskclust.core.device.arrays import CUDA, HOST, copy
from daskclust.core.device.threads import in_threads, thread_count

_COPIED = {"cpu": 1 << 28, "cuda": 1 << 30}  # bytes of each of two arrays: larger than caches, and long beside a launch
_POINTS = 1 << 18
_ROUNDS = {"cpu": 1 << 8, "cuda": 1 << 14}
_REPEATS = 5
_SAMPLE = 200_000


class Work(NamedTuple):
    """What an answer needs at least."""

    bytes: float  # in and out of memory
    operations: float


# ------------------------------------------------------------------------------------------------------------ ceilings
@functools.cache
def ceilings_of(device: str) -> dict[str, float]:
    """Measure, once in this process, how fast ``"cpu"`` or ``"cuda"`` copies and computes, on all threads.

    ``bytes_per_second``, read and written, are of a copy within memory, on a GPU by a kernel or by the driver.
    ``operations_per_second`` in float32 are of products and sums in registers, as the compiler makes them from one
    kernel: apart on the CPU, fused on CUDA. Both are the best of 5 runs, as they are ceilings.
    """
    place = HOST if device == "cpu" else CUDA
    return measure_ceilings(place, device_of(device).finish, _COPIED[device], _POINTS, _ROUNDS[device])


def measure_ceilings(place: Any, finish: Callable[[], None], copied: int, points: int, rounds: int) -> dict[str, float]:
    """Measure the ceilings of a device with arrays of `copied` bytes and `rounds` of operations on `points` numbers."""
    source, target = (place.full(max(copied // 4, 1), 1.0, np.float32) for _ in range(2))
    copies: list[Callable[[], Any]] = [functools.partial(_copy_in_threads, source, target)]
    if place.name != "cpu":  # by a kernel, or by the driver
        copies = [
            lambda: place.run(copy, len(source), source, target),
            lambda: target.data.copy_from_device(source.data, source.nbytes),
        ]
    seconds = min(second for call in copies for second in all_seconds(call, finish, _REPEATS))
    row, numbers = (place.full(points + 16, 0, dtype) for dtype in (np.int32, np.float32))
    compute = functools.partial(place.run, multiply_add, points, row, rounds, numbers)
    return {
        "bytes_per_second": 2 * 4 * len(source) / seconds,
        "operations_per_second": points * rounds * OPERATIONS / min(all_seconds(compute, finish, _REPEATS)),
    }


def _copy_in_threads(source: Any, target: Any) -> None:
    """Copy by NumPy, which writes past the caches, a part on each thread."""
    threads = thread_count()
    parts = list(zip(np.array_split(source, threads), np.array_split(target, threads), strict=True))
    in_threads(lambda k: np.copyto(parts[k][1], parts[k][0]), threads, threads)


# ---------------------------------------------------------------------------------------------------------------- work
def clue_work(n: int, d: int, pairs: float) -> Work:
    """Return the work of CLUE: `pairs` of points of a layer are within dc."""
    return Work(n * (4 * d + 33), (3 * d + 3) * pairs)


def events_work(n: int) -> Work:
    """Return the work of event building."""
    return Work(20 * n, 18 * n)


def dbscan_work(n: int, d: int, needed: float) -> Work:
    """Return the work of DBSCAN: `needed` neighbours must be seen, over all points."""
    return Work(n * (4 * d + 9), 3 * d * needed / 2)


def hca_work(n: int, d: int) -> Work:
    """Return the work of hierarchical clustering."""
    return Work(4 * n * d + 32 * (n - 1), 6 * d * (n - 1) + d * (d + 1) * n)


def count_neighbours(X: NDArray[Any], radius: float, *, sample: int = _SAMPLE) -> NDArray[np.int64]:
    """Count the neighbours of each point at a distance up to `radius`; of many points, of a `sample` of them."""
    from scipy.spatial import cKDTree

    asked = X if len(X) <= sample else np.random.default_rng(0).choice(X, sample, replace=False)
    tree = cKDTree(X, compact_nodes=False, balanced_tree=False)  # others take longer to make than they save
    counts = tree.query_ball_point(asked, radius, return_length=True, workers=-1)
    return np.asarray(counts, np.int64) - 1


def mean_of(counts: NDArray[np.int64]) -> float:
    """Return the mean of counts, 0 where there are none."""
    return float(counts.mean()) if len(counts) else 0.0


# --------------------------------------------------------------------------------------------------------------- floor
def beside_floor(work: Work, ms: float, ceilings: dict[str, float]) -> dict[str, float]:
    """Return ``bytes``, ``operations``, ``floor_ms`` and ``of_roofline`` of a run that took `ms`."""
    needed = {name: float(value) for name, value in work._asdict().items()}
    floor = 1e3 * max(value / ceilings[f"{name}_per_second"] for name, value in needed.items())
    return needed | {"floor_ms": floor, "of_roofline": floor / ms}
