"""What this machine allows at best: measured ceilings, and the work that an answer needs at least.

A *ceiling* is how many bytes a second the memory copies, and how many operations a second the cores do. The *work* of a
system on given points is a number of bytes (of the input, read once, and of the results, written once) and one of
operations: additions, products and comparisons of numbers. The *floor* is the time that they take at the ceilings, the
longer of the two. The formulas for n points in d dimensions are in docs/benchmarks.md. What they leave out: looking for
the nearest higher of CLUE beyond dc, for the nearest clusters of a hierarchy, and for the edges of a spanning tree.
"""

import functools
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from bench.timing import all_seconds, device_of
from daskclust.core.device.arrays import CUDA, HOST, copy
from daskclust.core.device.kernels import lane_kernel
from daskclust.core.device.operations import like, load, store
from daskclust.core.device.threads import in_threads, thread_count

OPERATIONS = 24  # of a number in a round of `multiply_add`: a product and a sum in each of 12 chains
_COPIED = {"cpu": 1 << 28, "cuda": 1 << 30}  # bytes of each of two arrays: larger than caches, and long beside a launch
_POINTS = 1 << 18
_ROUNDS = {"cpu": 1 << 8, "cuda": 1 << 14}
_REPEATS = 5


class Work(NamedTuple):
    """What an answer needs at least."""

    bytes: float  # in and out of memory
    operations: float


@functools.cache
def ceilings_of(device):
    """Measure, once in this process, how fast ``"cpu"`` or ``"cuda"`` copies and computes, on all threads.

    ``bytes_per_second``, read and written, are of a copy within memory, on a GPU by a kernel or by the driver.
    ``operations_per_second`` in float32 are of products and sums in registers, apart on the CPU, fused on CUDA.
    """
    place = HOST if device == "cpu" else CUDA
    return measure_ceilings(place, device_of(device).finish, _COPIED[device], _POINTS, _ROUNDS[device])


def measure_ceilings(place, finish, copied, points, rounds):
    """Measure the ceilings of a device with arrays of `copied` bytes and `rounds` of operations on `points` numbers."""
    source, target = (place.full(max(copied // 4, 1), 1.0, np.float32) for _ in range(2))
    copies = [functools.partial(copy_in_threads, source, target)]
    if place.name != "cpu":  # by a kernel, or by the driver
        copies = [
            lambda: place.run(copy, len(source), source, target),
            lambda: target.data.copy_from_device(source.data, source.nbytes),
        ]
    seconds = min(min(all_seconds(call, finish, _REPEATS)) for call in copies)
    row, numbers = (place.full(points + 16, 0, dtype) for dtype in (np.int32, np.float32))
    compute = functools.partial(place.run, multiply_add, points, row, rounds, numbers)
    return {
        "bytes_per_second": 2 * 4 * len(source) / seconds,
        "operations_per_second": points * rounds * OPERATIONS / min(all_seconds(compute, finish, _REPEATS)),
    }


def copy_in_threads(source, target):
    """Copy by NumPy, which writes past the caches, a part on each thread."""
    threads = thread_count()
    parts = list(zip(np.array_split(source, threads), np.array_split(target, threads), strict=True))
    in_threads(lambda k: np.copyto(parts[k][1], parts[k][0]), threads, threads)


@lane_kernel
def multiply_add(i, m, row, rounds, numbers):
    """Twelve independent chains of products and sums, enough to keep all arithmetic units of a core busy."""
    x = load(numbers, i, m)
    by, more = like(x, 0.999), like(x, 0.001)
    a, b, c, d, e, f = x, x + more, x - more, by, by + x, by - x
    g, h, p, q, r, s = a + e, b + e, c + e, d + e, e + e, f + e
    done = 0
    while done < rounds:
        a = a * by + more
        b = b * by + more
        c = c * by + more
        d = d * by + more
        e = e * by + more
        f = f * by + more
        g = g * by + more
        h = h * by + more
        p = p * by + more
        q = q * by + more
        r = r * by + more
        s = s * by + more
        done += 1
    store(numbers, i, m, a + b + c + d + e + f + g + h + p + q + r + s)


def clue_work(n, d, pairs):
    """Return the work of CLUE: `pairs` of points of a layer are within dc."""
    return Work(n * (4 * d + 33), (3 * d + 3) * pairs)


def events_work(n):
    """Return the work of event building: of each of 9 pixels a hit asks whether it had a hit within dt_max."""
    return Work(20 * n, 18 * n)


def dbscan_work(n, d, needed):
    """Return the work of DBSCAN: `needed` neighbours must be seen, over all points, each from both of its ends."""
    return Work(n * (4 * d + 9), 3 * d * needed / 2)


def tree_work(n, d):
    """Return the work of a minimum spanning tree: the length of each of its edges."""
    return Work(8 * n * d + 24 * (n - 1), 3 * d * (n - 1))


def hdbscan_work(n, d, min_samples):
    """Return the work of HDBSCAN*: each edge, or each point's neighbours up to its core distance if those are more."""
    pairs = max(n - 1, n * (min_samples - 1) / 2)  # neighbours are seen from both ends
    return Work(n * (8 * d + 32) + 56 * (n - 1), 3 * d * pairs)


def hca_work(n, d):
    """Return the work of hierarchical clustering: covariances, and centroid and height of each merge."""
    return Work(4 * n * d + 32 * (n - 1), 6 * d * (n - 1) + d * (d + 1) * n)


def count_neighbours(X, radius, *, sample=200_000):
    """Count the neighbours of each point at a distance up to `radius`; of many points, of a `sample` of them."""
    asked = X if len(X) <= sample else np.random.default_rng(0).choice(X, sample, replace=False)
    tree = cKDTree(X, compact_nodes=False, balanced_tree=False)  # others take longer to make than they save
    return tree.query_ball_point(asked, radius, return_length=True, workers=-1) - 1


def beside_floor(work, ms, ceilings):
    """Return ``bytes``, ``operations``, ``floor_ms`` and ``of_roofline`` of a run that took `ms`."""
    needed = {name: float(value) for name, value in work._asdict().items()}
    floor = 1e3 * max(value / ceilings[f"{name}_per_second"] for name, value in needed.items())
    return needed | {"floor_ms": floor, "of_roofline": floor / ms}
