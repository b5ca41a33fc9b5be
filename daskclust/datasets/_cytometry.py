"""Cells in many channels: populations of a blood sample, and small Gaussian clusters that are known before."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from ._arguments import RNG, Float, Int, at_least_1, count, fraction, given
from ._indexed import Bits, Order, Steps, as_rows, clusters, draw, make_blocks, normals, uniforms

_NOISE_RANGE = (-1.0, 7.0)  # of all channels after arcsinh


class _Gaussians(NamedTuple):
    """Gaussian clusters: number of the first cell, centre, and lower triangular root of the covariance."""

    order: Order
    first: Int  # (k,)
    centre: Float  # (d, k)
    root: Float  # (d, d, k)


def cytometry(
    n: int = 10_000,
    channels: int = 14,
    *,
    populations: int = 8,
    rarest: float = 0.005,
    noise: float = 0.01,
    shuffle: bool = True,
    chunks: int | None = None,
    rng: RNG = None,
) -> xr.Dataset:
    """Make cells of a blood sample, as they are after the arcsinh transformation.

    Parameters
    ----------
    n, channels : int
        Cells, noise included, and markers.
    populations, rarest : int and float
        Number of populations, whose sizes are a geometric sequence, and size of the rarest as a fraction of the largest
        one, from 0 to 1.
    noise : float, default 0.01
        Fraction of cells that are uniform in all channels, as debris and doublets are, from 0 to 1.
    shuffle : bool, default True
        Whether cells are in random order. Otherwise they come population after population, the noise last.
    chunks, rng
        As of `cosmology_box`.

    Returns
    -------
    xarray.Dataset
        ``X`` (cell, channel), float32, without a unit; ``population`` (cell), int64, numbered from 0 by size, noise -1.
        Channels are ``marker_1``, ``marker_2`` ... The arguments are in ``attrs``.

    Notes
    -----
    A population is a Gaussian. Each marker is positive with the probability 0.4, with a mean from 2.5 to 5.5, else from
    0 to 0.7. Axes of the ellipsoid have random directions; two are long, with standard deviations of about 0.7 and 0.5,
    the others of 0.1 to 0.3. Populations may overlap. Time is O(n channels**2), memory O(n channels).

    Examples
    --------
    >>> ds = cytometry(1000, rng=0)
    >>> dict(ds.sizes), int((ds["population"] == -1).sum()), ds["channel"].values[0].item()
    ({'cell': 1000, 'channel': 14}, 10, 'marker_1')
    """
    attrs = given("cytometry", locals(), populations=at_least_1)
    fraction("rarest", rarest)
    attrs |= {"transform": "arcsinh", "field": "cytometry"}
    order = draw(rng, n, noise, shuffle, int(channels) + int(channels) % 2)
    table = partial(_populations, order, int(channels), int(populations), rarest)
    return _dataset(table, order.n, int(channels), chunks, "population", attrs)


def apriori_gaussians(
    groups: int = 1000,
    size: int = 1000,
    *,
    channels: int = 20,
    spread: float = 0.5,
    extent: float = 100.0,
    shuffle: bool = False,
    chunks: int | None = None,
    rng: RNG = None,
) -> xr.Dataset:
    """Make many small Gaussian clusters in different places, each of which is an apriori cluster.

    Parameters
    ----------
    groups, size, channels : int
        Clusters, cells of each, and dimensions.
    spread : float, default 0.5
        Typical standard deviation of a cluster along its axes; they are from half of it to twice as much.
    extent : float, default 100.0
        Side of the cube in which centres are uniform.
    shuffle : bool, default False
        Whether cells are in random order. Otherwise they come cluster after cluster, so that chunks of multiples of
        `size` hold whole ones.
    chunks, rng
        As of `cosmology_box`.

    Returns
    -------
    xarray.Dataset
        ``X`` (cell, channel), float32, and ``apriori`` (cell), int64, from 0. The arguments are in ``attrs``.

    Notes
    -----
    The defaults have the sizes of the data set "apriori 1M" of the thesis; ``size=2000`` makes "apriori 2M". Clusters
    are ellipsoids in random directions. Time is O(groups size channels**2).

    References
    ----------
    Smelko, "GPU accelerated Mahalanobis-average hierarchical clustering analysis", Charles University (2020), table
    3.2.

    Examples
    --------
    >>> ds = apriori_gaussians(3, 2, channels=4, rng=0)
    >>> ds["X"].shape, ds["apriori"].values
    ((6, 4), array([0, 0, 1, 1, 2, 2]))
    """
    attrs = given("apriori_gaussians", locals(), size=count)
    attrs |= {"field": "cytometry"}
    order = draw(rng, int(groups) * int(size), 0.0, shuffle, int(channels) + int(channels) % 2)
    table = partial(_groups, order, int(channels), int(groups), int(size), spread, extent)
    return _dataset(table, order.n, int(channels), chunks, "apriori", attrs)


def _dataset(table: Any, n: int, d: int, chunks: int | None, truth: str, attrs: dict[str, Any]) -> xr.Dataset:
    of: Steps = {_positions: (d, np.float32), clusters: (1, np.int64)}
    X, (number,) = make_blocks(table, of, n, chunks, "daskclust-datasets-cytometry")
    return xr.Dataset(
        {"X": (("cell", "channel"), as_rows(X), {"units": "1"}), truth: ("cell", number, {"units": "1"})},
        coords={"channel": [f"marker_{k + 1}" for k in range(d)]},
        attrs=attrs,
    )


def _populations(order: Order, d: int, k: int, rarest: float) -> _Gaussians:
    random = np.random.default_rng(order.seed)
    shares = np.geomspace(1.0, rarest, k)
    first = np.concatenate([[0.0], np.cumsum(shares)[:-1]]) / shares.sum() * order.n_inside
    is_positive = random.random((d, k)) < 0.4
    centre = np.where(is_positive, random.uniform(2.5, 5.5, (d, k)), random.uniform(0.0, 0.7, (d, k)))
    deviations = random.uniform(0.1, 0.3, (k, d))
    deviations[:, :2] = (np.array([0.7, 0.5]) * random.uniform(0.8, 1.2, (k, 2)))[:, :d]
    return _Gaussians(order, np.round(first).astype(np.int64), centre, _roots(random, deviations))


def _groups(order: Order, d: int, k: int, size: int, spread: float, extent: float) -> _Gaussians:
    random = np.random.default_rng(order.seed)
    centre = random.random((d, k)) * extent
    deviations = spread * 2.0 ** random.uniform(-1.0, 1.0, (k, d))
    return _Gaussians(order, np.arange(k, dtype=np.int64) * size, centre, _roots(random, deviations))


def _roots(random: np.random.Generator, deviations: Float) -> Float:
    """Return triangular roots of covariances, of shape (d, d, k), with some deviations along random axes."""
    k, d = deviations.shape
    axes, _ = np.linalg.qr(random.normal(size=(k, d, d)))
    covariance = np.einsum("kij,kj,klj->kil", axes, deviations**2, axes)
    return np.ascontiguousarray(np.linalg.cholesky(covariance).transpose(1, 2, 0))


def _positions(table: _Gaussians, index: Bits) -> npt.NDArray[np.float32]:
    d, keys = len(table.centre), table.order.keys
    number, is_inside, cluster = table.order.places(table.first, index)
    out = np.empty((d, len(index)))
    z = normals(keys, number[is_inside])
    for i in range(d):
        # A loop, as the order of the sums of a matrix product depends on the number of rows.
        value = table.centre[i, cluster]
        for j in range(i + 1):
            value += table.root[i, j, cluster] * z[j]
        out[i, is_inside] = value
    low, high = _NOISE_RANGE
    outside = number[~is_inside]
    out[:, ~is_inside] = [low + (high - low) * uniforms(key, outside) for key in keys[:d]]
    return out.astype(np.float32)
