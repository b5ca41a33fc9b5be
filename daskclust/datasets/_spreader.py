"""The seed spreader of Gan and Tao: clusters along random walks, on which programs for DBSCAN are compared."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.checks import check_positive
from daskclust.core.merge.labels import NOISE

from ._arguments import RNG, Float, Int, given
from ._indexed import Bits, Order, Steps, as_rows, clusters, directions, draw, make_blocks, uniforms

Density = Literal["similar", "varying"]
_AXES = ("x", "y", "z")
_VARIANTS = 10


class _Spots(NamedTuple):
    """The spots of all walks: number of the first point, centre, radius of the ball, and walk."""

    order: Order
    size: float
    first: Int  # (k,)
    centre: Float  # (d, k)
    radius: Float  # (k,)
    walk: Int  # (k,)


def seed_spreader(
    n: int = 1_000_000,
    d: int = 3,
    *,
    density: Density = "similar",
    n_clusters: float = 10.0,
    noise: float = 1e-4,
    vicinity: float = 100.0,
    per_spot: int = 100,
    size: float = 1e5,
    shuffle: bool = True,
    chunks: int | None = None,
    rng: RNG = None,
) -> xr.Dataset:
    """Make clusters of points along random walks, and uniform noise.

    Parameters
    ----------
    n, d : int
        Points, noise included, and dimensions.
    density : {"similar", "varying"}, default "similar"
        Whether all clusters have balls of the radius `vicinity`, or the i-th one of (i % 10 + 1) times that, so that
        clusters differ in density by up to a factor of 10**d.
    n_clusters : float, default 10.0
        Walks that are expected: a walk ends after each point with the probability n_clusters / n, without noise.
    noise : float, default 1e-4
        Fraction of uniform noise, from 0 to 1.
    vicinity, per_spot : float and int
        Radius of the balls in which points are uniform, and points of a ball; then the walk goes on by d / 2 radii in a
        random direction.
    size : float, default 1e5
        Side of the domain; walks and points are reflected at its borders.
    shuffle : bool, default True
        Whether points are in random order. Otherwise they come walk after walk, the noise last.
    chunks, rng
        As of `cosmology_box`.

    Returns
    -------
    xarray.Dataset
        Along ``particle``: up to three dimensions as ``x``, ``y``, ``z``, more as ``X`` of shape (n, d) with the
        dimension ``axis``; float32, without a unit. ``truth`` (int64): the walk, noise -1. The arguments are in
        ``attrs``.

    Notes
    -----
    Walks may cross, and in more than four dimensions steps are longer than balls are wide: ``truth`` is how points
    were made, not what DBSCAN finds. The defaults are those of the paper, which calls the two densities SS-simden and
    SS-varden; it does not say what happens at the borders. Time and memory are O(n d).

    References
    ----------
    Gan and Tao, "DBSCAN revisited: mis-claim, un-fixability, and approximation", SIGMOD (2015),
    doi:10.1145/2723372.2737792.

    Examples
    --------
    >>> ds = seed_spreader(1000, 2, noise=0.1, rng=0)
    >>> list(ds), int((ds["truth"] == -1).sum())
    (['x', 'y', 'truth'], 100)
    """
    attrs = given("seed_spreader", locals(), n_clusters=check_positive)
    if density not in get_args(Density):
        raise ValueError(f"density must be one of {', '.join(get_args(Density))}, got {density!r}")
    order = draw(rng, n, noise, shuffle, 1 + d + d % 2)
    table = partial(_table, order, int(d), n_clusters, vicinity, int(per_spot), size, density == "varying")
    of: Steps = {_positions: (int(d), np.float32), _walks: (1, np.int64)}
    X, (truth,) = make_blocks(table, of, int(n), chunks, "daskclust-datasets-spreader")
    columns: dict[str, Any] = {name: ("particle", values) for name, values in zip(_AXES, X, strict=False)}
    columns = columns if d <= len(_AXES) else {"X": (("particle", "axis"), as_rows(X))}
    return xr.Dataset(columns | {"truth": ("particle", truth, {"units": "1"})}, attrs=attrs)


def _table(
    order: Order, d: int, n_clusters: float, vicinity: float, per_spot: int, size: float, is_varying: bool
) -> _Spots:
    """Return the spots of walks that have as many points as they shall have together."""
    random = np.random.default_rng(order.seed)
    ends = _walk_ends(random, order.n_inside, n_clusters)
    starts = ends - np.diff(ends, prepend=0)
    spots = -(-(ends - starts) // per_spot)
    walk = np.repeat(np.arange(len(ends)), spots)
    first_spot = np.repeat(np.cumsum(spots) - spots, spots)
    radius = np.full(len(walk), vicinity)
    if is_varying:
        radius *= walk % _VARIANTS + 1
    step = random.normal(size=(len(walk), d))
    step *= (radius * d / 2 / np.linalg.norm(step, axis=1))[:, None]
    way = np.cumsum(step, axis=0)
    origin = random.random((len(ends), d)) * size
    centre = origin[walk] + way - way[first_spot]
    first = starts[walk] + (np.arange(len(walk)) - first_spot) * per_spot
    return _Spots(order, size, first, np.ascontiguousarray(_reflected(centre, size).T), radius, walk)


def _walk_ends(random: np.random.Generator, n: int, n_clusters: float) -> Int:
    """Return the number of the point after the last one of each walk, n for the last walk."""
    ends = np.zeros(1, np.int64)
    while ends[-1] < n:
        ends = np.append(ends, ends[-1] + np.cumsum(random.geometric(min(1.0, n_clusters / n), 1024)))
    return np.minimum(ends[1 : np.searchsorted(ends, n) + 1], n)


def _reflected(values: Float, size: float) -> Float:
    """Return coordinates as mirrors at 0 and at `size` leave them."""
    return np.abs((values + size) % (2 * size) - size)


def _positions(table: _Spots, index: Bits) -> npt.NDArray[np.float32]:
    d, keys = len(table.centre), table.order.keys
    number, is_on_walk, spot = table.order.places(table.first, index)
    inside, outside = number[is_on_walk], number[~is_on_walk]
    distance = table.radius[spot] * uniforms(keys[0], inside) ** (1 / d)
    out = np.empty((d, len(index)))
    out[:, is_on_walk] = table.centre[:, spot] + distance * directions(keys[1:], inside, d)
    out[:, ~is_on_walk] = [uniforms(key, outside) * table.size for key in keys[1 : 1 + d]]
    return _reflected(out, table.size).astype(np.float32)


def _walks(table: _Spots, index: Bits) -> Int:
    spot = clusters(table, index)
    return np.where(spot >= 0, table.walk[spot], NOISE) if len(table.walk) else spot
