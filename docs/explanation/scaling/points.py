"""Points of any number for every system, made by chunks on workers: what is near a point is alike at any number.

`CASES` are what the scripts beside this one run: CLUE by blocks of space and by layers, events, friends-of-friends,
DBSCAN, and Mahalanobis HCA on apriori clusters of 250 cells in 8 channels.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import dask.array as da
import numpy as np
from dask.base import tokenize

from daskclust import CLUE, DBSCAN, EventBuilder, FriendsOfFriends, MahalanobisHCA
from daskclust.core.space.partition import block_sizes
from daskclust.datasets import apriori_gaussians, timepix

CASES = ("clue-space", "clue-layers", "events", "fof", "dbscan", "hca")
IN_SPACE = ("clue-space", "fof", "dbscan")  # those that are divided into blocks of space
GROUP = 250  # cells of an apriori cluster
RATE = 10e6  # hits a second
LAYER = 10_000  # hits of a layer


class Clumps(NamedTuple):
    """Round clumps of points and a uniform background, in a periodic box."""

    axes: int
    side: float
    background: float  # share of the points
    least: int  # points of the smallest clumps; the number of clumps falls with their points, as the power -1.9
    most: int
    offsets: Callable  # of points from the middles of their clumps: of a generator, and the points of each one's clump
    layers: int = 0
    cells: tuple[int, ...] = ()  # along each axis: a chunk's clumps are in its cell of space


class Geometry(NamedTuple):
    """How points lie, for the model: everything in the unit of their coordinates."""

    axes: int  # that space is cut along, 0 where it is not
    density: float  # points in a unit of volume
    reach: float  # width of a halo
    period: bool


def geometry_of(case):
    """Return how the points of a case lie."""
    if case == "clue-space":
        return Geometry(2, 0.04, 5.0 + 3.0, False)
    if case in ("fof", "dbscan"):
        return Geometry(3, 1.0, 0.2 if case == "fof" else 2 * 0.3, True)
    return Geometry(0, 1.0, 0.0, False)


def fitted(case, points, block, order="random"):
    """Return what there is to compute, lazy, for so many points in chunks of `block` points."""
    return results_of(case, arrays_of(case, points, block, order), points)


def arrays_of(case, points, block, order="random"):
    """Return points as dask arrays by name: a chunk's are anywhere, or in one of "slabs" or "blocks" of space."""
    if case == "hca":
        chunks = max(1, block // GROUP) * GROUP
        cells = apriori_gaussians(max(1, points // GROUP), GROUP, channels=8, shuffle=True, chunks=chunks, rng=0)
        return {name: cells[name].data for name in ("X", "apriori")}
    if case == "events":
        hits = _by_chunks(_hits, points, block, 3, np.float64)
        return {name: hits[:, k] for k, name in enumerate(("toa", "x", "y"))}
    clumps = _clumps_of(case, points)
    if order != "random":
        chunks = len(block_sizes(points, block))
        clumps = clumps._replace(cells=(chunks,) if order == "slabs" else _grid(chunks, clumps.axes))
    X = _by_chunks(partial(_clumped, clumps), points, block, clumps.axes + (clumps.layers > 0), np.float32)
    return {"X": X[:, :2], "layer": X[:, 2].astype(np.int32)} if case == "clue-layers" else {"X": X}


def results_of(case, arrays, points):
    """Return labels and number of clusters, or a hierarchy, of arrays in memory or lazy."""
    side = points ** (1 / 3)
    if case == "hca":
        return [MahalanobisHCA(GROUP).fit(arrays["X"], apriori=arrays["apriori"]).linkage_]
    if case == "events":
        found = EventBuilder(200.0).fit(dict(arrays))
    elif case == "fof":
        found = FriendsOfFriends(0.2, boxsize=side).fit(arrays["X"], partition="space")
    elif case == "dbscan":
        found = DBSCAN(0.3, min_samples=5, boxsize=side).fit(arrays["X"], partition="space")
    else:
        clue = CLUE(3.0, 8.0, delta_c=5.0, delta_o=5.0)
        found = clue.fit(arrays["X"], layer=arrays.get("layer"), partition=case.removeprefix("clue-"))
    return [found.labels_, found.n_clusters_]


def _clumps_of(case, points):
    if case in ("fof", "dbscan"):
        return Clumps(3, points ** (1 / 3), 0.4, 10, 2000, _halo)
    layers = max(1, points // LAYER) if case == "clue-layers" else 0
    return Clumps(2, 500.0 if layers else math.sqrt(points / 0.04), 0.05, 10, 10, _shower, layers=layers)


def _grid(cells, axes):
    """Return a number of cells along each axis, as many together as asked for."""
    if axes == 1:
        return (cells,)
    first = next(count for count in range(int(cells ** (1 / axes) + 0.5), 0, -1) if cells % count == 0)
    return (first, *_grid(cells // first, axes - 1))


def _by_chunks(make, points, block, columns, dtype):
    return da.map_blocks(
        _made,
        make=make,
        chunks=(block_sizes(points, block), (columns,)),
        dtype=dtype,
        meta=np.empty((0, 0), dtype),
        name=f"daskclust-source-{tokenize(make, points, block)}",
    )


def _made(*, make, block_info=None):
    place = block_info[None]
    start, stop = place["array-location"][0]
    return make(place["chunk-location"][0], start, stop).astype(place["dtype"])


# --------------------------------------------------------------------------------------------------- one chunk's points
def _clumped(clumps, chunk, start, stop):
    """Return the points of a chunk in random order; no clump is shared by two chunks."""
    random, n = np.random.default_rng((12, chunk)), stop - start
    low, high = np.zeros(clumps.axes), np.full(clumps.axes, clumps.side)
    if clumps.cells:
        axes, cell = slice(len(clumps.cells)), np.array(np.unravel_index(chunk, clumps.cells))
        low[axes], high[axes] = clumps.side * np.array([cell, cell + 1]) / clumps.cells
    clumped = round(n * (1 - clumps.background))
    sizes = _sizes(random, clumps, clumped)
    of = np.repeat(np.arange(len(sizes)), sizes)
    out = random.uniform(low, high, (n, clumps.axes))
    centers = random.uniform(low, high, (len(sizes), clumps.axes))
    out[:clumped] = centers[of] + clumps.offsets(random, sizes[of], clumps.axes)
    out = np.mod(out, clumps.side)
    if clumps.layers:
        layer = random.integers(0, clumps.layers, n)
        layer[:clumped] = random.integers(0, clumps.layers, len(sizes))[of]
        out = np.concatenate([out, layer[:, None]], axis=1)
    return out[random.permutation(n)]


def _sizes(random, clumps, total):
    """Return sizes of clumps that have `total` points together."""
    least, most, power = clumps.least, clumps.most, -0.9
    sizes = np.empty(0, np.int64)
    while sizes.sum() < total:
        drawn = least**power + random.uniform(0, 1, 1 + total // least) * (most**power - least**power)
        sizes = np.concatenate([sizes, (drawn ** (1 / power)).astype(np.int64)])
    sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), total)) + 1]
    if len(sizes):
        sizes[-1] -= sizes.sum() - total
    return sizes


def _halo(random, sizes, axes):
    """Return offsets in halos: 200 times the mean density, which is 1, falling with the square of the distance."""
    radius = np.cbrt(sizes / (200 * 4 / 3 * np.pi))
    away = random.normal(size=(len(sizes), axes))
    return away * (radius * random.uniform(0, 1, len(sizes)) / np.linalg.norm(away, axis=1))[:, None]


def _shower(random, sizes, axes):
    """Return offsets of hits with a standard deviation of 3 cm."""
    return random.normal(0.0, 3.0, (len(sizes), axes))


def _hits(chunk, start, stop):
    """Return toa, x and y of a chunk's hits, which fill the time from the chunk before to the next."""
    hits = timepix(stop - start, kind="pion45", rate=RATE, rng=chunk)
    toa = hits["toa"].values
    if len(toa):
        begin, end = start / RATE * 1e9, stop / RATE * 1e9
        toa = begin + (toa - toa[0]) * ((end - begin) / max(toa[-1] - toa[0], 1.0) * (1 - 1e-9))
    return np.stack([toa, hits["x"].values, hits["y"].values], axis=1)
