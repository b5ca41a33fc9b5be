"""Minimum spanning trees beside quitefastmst: ``python tests/bench/spanning_trees.py [POINTS ...]`` prints a table.

Both are timed in turn in one process, so that both have the same neighbours on the machine; the least of some pairs
counts. quitefastmst's M does not count the point itself. Nothing is asserted but that the total lengths are equal.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from daskclust.datasets import cosmology_box
from daskclust.hdbscan.spanning_tree import spanning_tree

PAIRS = 3


def points(n: int) -> dict[str, Any]:
    """Return points of a cosmology box, and of blobs in a plane."""
    box, rng = cosmology_box(n, rng=0), np.random.default_rng(0)
    centers = rng.uniform(0, 40, (50, 2))
    return {
        "box": np.column_stack([box[axis].values for axis in "xyz"]).astype(np.float64),
        "blobs": centers[rng.integers(0, 50, n)] + 0.5 * rng.normal(size=(n, 2)),
    }


def timed(call: Callable[[], Any]) -> tuple[tuple[float, float], Any]:
    """Return the wall and CPU seconds of a call, and its result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return (time.perf_counter() - wall, time.process_time() - cpu), result


def compare(name: str, X: Any, threads: int, others: int) -> None:
    """Print seconds of both, wall and CPU, and their ratios, for M = `others`."""
    import quitefastmst

    numba.set_num_threads(threads)
    quitefastmst.omp_set_num_threads(threads)
    least, min_samples = np.full((2, 2), np.inf), others + 1 if others > 1 else 1
    spanning_tree(X[:3000], min_samples)
    for _ in range(PAIRS):
        one, tree = timed(lambda: spanning_tree(X, min_samples))
        other, (lengths, *_) = timed(lambda: quitefastmst.mst_euclid(X, others))
        np.testing.assert_allclose(np.sqrt(tree.weight).sum(), lengths.sum(), rtol=1e-12)
        least = np.minimum(least, [one, other])
    (wall, cpu), (their_wall, their_cpu) = least
    ratios = f"{wall / their_wall:.2f} {cpu / their_cpu:.2f}"
    here, theirs = f"{wall:8.2f} {cpu:6.2f}", f"{their_wall:15.2f} {their_cpu:7.2f}"
    print(f"{name:>6s} {len(X):9d} {others:2d} {threads:7d}   {here}   {theirs}   {ratios}", flush=True)


def main(sizes: list[int]) -> None:
    """Compare for each number of points, kind, number of threads and M."""
    print(f"{'points':>16s}  M threads   here: wall, CPU   quitefastmst: wall, CPU   ratios")
    for n in sizes:
        for name, X in points(n).items():
            for threads, others in itertools.product(range(1, numba.config.NUMBA_NUM_THREADS + 1), (1, 15)):
                compare(name, X, threads, others)


if __name__ == "__main__":
    main(list(map(int, sys.argv[1:])) or [100_000, 1_000_000])
