"""Points of any number for every system, made by chunks on workers: what of them is near is alike at any size."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.space.partition import block_sizes

SYSTEMS = ("clue-space", "clue-layers", "events", "fof", "dbscan", "hca")
IN_TREES = ("clue-space", "clue-layers", "fof", "dbscan")  # those whose frontiers are fragments
ORDERS = ("random", "space")
GROUP = 250  # cells of an apriori cluster
RATE = 10e6  # hits a second
LAYER = 10_000  # hits of a layer


class Points(NamedTuple):
    """How points of a system lie, for the model: everything in the unit of their coordinates."""

    axes: int  # that space is cut along, 0 where it is not
    density: float  # points in a unit of volume
    reach: float  # width of a halo
    period: bool  # whether space is periodic


class _Clumps(NamedTuple):
    """Round clumps of points and a uniform background, in a box."""

    axes: int
    side: float
    background: float  # share of the points
    least: int  # points of the smallest clumps; their number falls as the power -1.9
    most: int
    size: Callable[[Any], Any]  # radius of a clump of so many points
    inner: Callable[[np.random.Generator, Any, int], NDArray[Any]]  # offsets, given radii and the number of axes
    layers: int = 0
    slabs: int = 0  # 0: a chunk's clumps are anywhere, else in its slab along the first axis


def geometry_of(system: str) -> Points:
    """Return how the points of a system lie."""
    if system == "clue-space":
        return Points(2, 0.04, 5.0 + 3.0, False)
    if system in ("fof", "dbscan"):
        return Points(3, 1.0, 0.2 if system == "fof" else 2 * 0.3, True)
    return Points(0, 1.0, 0.0, False)


def fitted(system: str, points: int, block: int, order: str = "random") -> list[Any]:
    """Return what there is to compute of a system, lazy, for so many points in chunks of `block` points."""
    return results_of(system, arrays_of(system, points, block, order), points)


def arrays_of(system: str, points: int, block: int, order: str = "random") -> dict[str, Any]:
    """Return the points of a system as dask arrays by name."""
    if system == "hca":
        from daskclust.datasets import apriori_gaussians

        chunks = max(1, block // GROUP) * GROUP
        cells = apriori_gaussians(max(1, points // GROUP), GROUP, channels=8, shuffle=True, chunks=chunks, rng=0)
        return {name: cells[name].data for name in ("X", "apriori")}
    if system == "events":
        hits = _map_chunks(_hits, points, block, 3, np.float64)
        return {name: hits[:, k] for k, name in enumerate(("toa", "x", "y"))}
    X = _lazy(_clumps_of(system, points), points, block, order)
    return {"X": X[:, :2], "layer": X[:, 2].astype(np.int32)} if system == "clue-layers" else {"X": X}


def results_of(system: str, arrays: Mapping[str, Any], points: int) -> list[Any]:
    """Return what a system makes of its points, in memory or lazy: labels and number of clusters, or a hierarchy."""
    from daskclust import CLUE, DBSCAN, EventBuilder, FriendsOfFriends, MahalanobisHCA

    if system == "hca":
        return [MahalanobisHCA(GROUP).fit(arrays["X"], apriori=arrays["apriori"]).linkage_]
    side: float = points ** (1 / 3)
    found: Any
    if system == "events":
        found = EventBuilder(200.0).fit(dict(arrays))
    elif system == "fof":
        found = FriendsOfFriends(0.2, boxsize=side).fit(arrays["X"], partition="space")
    elif system == "dbscan":
        found = DBSCAN(0.3, min_samples=5, boxsize=side).fit(arrays["X"], partition="space")
    else:
        partition = "layers" if system == "clue-layers" else "space"
        clue = CLUE(3.0, 8.0, delta_c=5.0, delta_o=5.0)
        found = clue.fit(arrays["X"], layer=arrays.get("layer"), partition=partition)
    return [found.labels_, found.n_clusters_]


def _clumps_of(system: str, points: int) -> _Clumps:
    if system in ("fof", "dbscan"):
        return _Clumps(3, points ** (1 / 3), 0.4, 10, 2000, _radius_of_halo, _isothermal)
    layers = max(1, points // LAYER) if system == "clue-layers" else 0
    side = 500.0 if layers else math.sqrt(points / 0.04)
    return _Clumps(2, side, 0.05, 10, 10, np.ones_like, _showers, layers=layers)


# --------------------------------------------------------------------------------------------------------- lazy chunks
def _lazy(clumps: _Clumps, points: int, block: int, order: str) -> Any:
    """Return a dask array (n, axes), or (n, axes + 1) with layers."""
    if order == "space":
        clumps = clumps._replace(slabs=len(block_sizes(points, block)))
    return _map_chunks(partial(_clumped, clumps), points, block, clumps.axes + (clumps.layers > 0), np.float32)


def _map_chunks(make: Callable[..., Any], points: int, block: int, columns: int, dtype: Any) -> Any:
    import dask.array as da
    from dask.base import tokenize

    return da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
        _made,
        make=make,
        chunks=(block_sizes(points, block), (columns,)),
        dtype=dtype,
        meta=np.empty((0, 0), dtype),
        name=f"daskclust-source-{tokenize(make, points, block)}",
    )


def _made(*, make: Callable[..., Any], block_info: Mapping[Any, Any] | None = None) -> Any:
    if block_info is None:
        raise ValueError("block_info is missing: this function is for dask.array.map_blocks")
    place = block_info[None]
    start, stop = place["array-location"][0]
    return make(place["chunk-location"][0], start, stop).astype(place["dtype"])


# --------------------------------------------------------------------------------------------------- one chunk's points
def _clumped(clumps: _Clumps, chunk: int, start: int, stop: int) -> NDArray[Any]:
    """Return the points of a chunk in random order; of clumps that two chunks share there are none."""
    random, n = np.random.default_rng((12, chunk)), stop - start
    low, high = np.zeros(clumps.axes), np.full(clumps.axes, clumps.side)
    if clumps.slabs:
        low[0], high[0] = clumps.side * chunk / clumps.slabs, clumps.side * (chunk + 1) / clumps.slabs
    clumped = round(n * (1 - clumps.background))
    sizes = _sizes(random, clumps, clumped)
    of = np.repeat(np.arange(len(sizes)), sizes)
    out = random.uniform(low, high, (n, clumps.axes))
    centers = random.uniform(low, high, (len(sizes), clumps.axes))
    out[:clumped] = centers[of] + clumps.inner(random, clumps.size(sizes)[of], clumps.axes)
    out = np.mod(out, clumps.side)
    if clumps.layers:
        layer = random.integers(0, clumps.layers, n)
        layer[:clumped] = random.integers(0, clumps.layers, len(sizes))[of]
        out = np.concatenate([out, layer[:, None]], axis=1)
    return out[random.permutation(n)]


def _sizes(random: np.random.Generator, clumps: _Clumps, total: int) -> NDArray[np.int64]:
    """Return sizes of clumps that have `total` points together."""
    least, most, power = clumps.least, clumps.most, -0.9
    sizes = np.empty(0, np.int64)
    while sizes.sum() < total:
        drawn = least**power + random.uniform(0, 1, 1 + total // least) * (most**power - least**power)
        sizes = np.concatenate([sizes, (drawn ** (1 / power)).astype(np.int64)])
    last = int(np.searchsorted(np.cumsum(sizes), total))
    sizes = sizes[: last + 1]
    if len(sizes):
        sizes[-1] -= sizes.sum() - total
    return sizes


def _radius_of_halo(points: Any) -> Any:
    """Return the radius in which the density is 200 times the mean, which is 1."""
    return np.cbrt(points / (200 * 4 / 3 * np.pi))


def _isothermal(random: np.random.Generator, radius: Any, axes: int) -> NDArray[Any]:
    """Return offsets of points whose density falls with the square of the distance from the middle."""
    away = random.normal(size=(len(radius), axes))
    away *= (radius * random.uniform(0, 1, len(radius)) / np.linalg.norm(away, axis=1))[:, None]
    return away


def _showers(random: np.random.Generator, radius: Any, axes: int) -> NDArray[Any]:
    """Return offsets of hits with a standard deviation of 3 cm."""
    return random.normal(0.0, 3.0, (len(radius), axes))


def _hits(chunk: int, start: int, stop: int) -> NDArray[Any]:
    """Return toa, x and y of a chunk's hits, which fill the time from the chunk before to the next."""
    from daskclust.datasets import timepix

    hits = timepix(stop - start, kind="pion45", rate=RATE, rng=chunk)
    toa = hits["toa"].values
    if len(toa):
        begin, end = start / RATE * 1e9, stop / RATE * 1e9
        toa = begin + (toa - toa[0]) * ((end - begin) / max(toa[-1] - toa[0], 1.0) * (1 - 1e-9))
    return np.stack([toa, hits["x"].values, hits["y"].values], axis=1)
