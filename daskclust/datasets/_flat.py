"""Points on one layer, in shapes that are easy to see and hard for some: half circles, circles, ellipses."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from daskclust.core.merge.labels import NOISE

from ._arguments import RNG, Float, Int, at_least_1, dataset, given, not_negative


def moons(
    n: int = 1000, *, spread: float = 0.05, noise: float = 0.05, size: float = 230.0, rng: RNG = None
) -> xr.Dataset:
    """Make two interleaved half circles with uniform noise on one layer: scikit-learn's `make_moons`.

    Parameters
    ----------
    n : int, default 1000
        Number of hits, noise included.
    spread : float, default 0.05
        Standard deviation from the arcs along each axis, as a fraction of their radius.
    noise : float, default 0.05
        Fraction of uniform noise, from 0 to 1.
    size : float, default 230.0
        Half the side of the square that noise fills, in cm: that of the paper's file ``moons_1000.csv``.
    rng : int, numpy.random.Generator or None, default None
        Seed or generator.

    Returns
    -------
    xarray.Dataset
        Along ``hit``, noise last: ``x``, ``y`` (cm, float32), ``layer`` (all 0, int32), ``energy`` (all 1, float32),
        ``truth`` (int64: 0, 1, noise -1).

    Examples
    --------
    >>> sorted(set(moons(100, rng=0)["truth"].values.tolist()))
    [-1, 0, 1]
    """
    attrs = given("moons", locals(), spread=not_negative)
    from sklearn.datasets import make_moons

    random, sizes = np.random.default_rng(rng), _sizes(n, 2, noise)
    xy, truth = make_moons(tuple(sizes), shuffle=False, noise=spread, random_state=int(random.integers(1 << 32)))
    return _flat((xy - (0.5, 0.25)) * (size / 1.75), truth, random, attrs)


def circles(
    n: int = 1000,
    *,
    factor: float = 0.4,
    spread: float = 0.04,
    noise: float = 0.05,
    size: float = 230.0,
    rng: RNG = None,
) -> xr.Dataset:
    """Make a small circle inside of a large one with uniform noise on one layer: scikit-learn's `make_circles`.

    Parameters
    ----------
    factor, spread : float
        Radius of the small circle, below 1, and standard deviation from the circles along each axis, as fractions of
        the large radius.
    n, noise, size, rng
        As of `moons`.

    Returns
    -------
    xarray.Dataset
        As of `moons`; ``truth`` is 0 on the large circle and 1 on the small one.

    Examples
    --------
    >>> ds = circles(100, spread=0.0, noise=0.0, rng=0)
    >>> [round(float(r), 1) for r in np.unique(np.hypot(ds["x"], ds["y"]).round(1))]
    [73.6, 184.0]
    """
    attrs = given("circles", locals(), spread=not_negative)
    from sklearn.datasets import make_circles

    random, sizes = np.random.default_rng(rng), tuple(_sizes(n, 2, noise))
    seed = int(random.integers(1 << 32))
    xy, truth = make_circles(sizes, shuffle=False, noise=spread, factor=factor, random_state=seed)
    return _flat(xy * (0.8 * size), truth, random, attrs)


def anisotropic_blobs(
    n: int = 1000,
    *,
    n_clusters: int = 3,
    elongation: float = 4.0,
    noise: float = 0.05,
    size: float = 230.0,
    rng: RNG = None,
) -> xr.Dataset:
    """Make parallel elliptic Gaussian clusters with uniform noise on one layer.

    Parameters
    ----------
    n_clusters, elongation : int and float
        Number of clusters, among which hits are divided evenly, and ratio of their long axis to the short one.
    n, noise, size, rng
        As of `moons`; `rng` also draws the common direction of the clusters.

    Returns
    -------
    xarray.Dataset
        As of `moons`; ``truth`` is 0 to ``n_clusters - 1``.

    Notes
    -----
    Centres are spaced evenly across the long axis, three short standard deviations to either side of each, so that
    clusters overlap little whatever their number.

    Examples
    --------
    >>> int(anisotropic_blobs(100, n_clusters=5, rng=0)["truth"].max())
    4
    """
    attrs = given("anisotropic_blobs", locals(), n_clusters=at_least_1)
    random = np.random.default_rng(rng)
    truth = np.repeat(np.arange(n_clusters), _sizes(n, n_clusters, noise))
    short = 0.8 * size / (3.0 * n_clusters)
    long = min(short * elongation, 0.35 * size)
    across, along = random.normal(0.0, short, n)[: len(truth)], random.normal(0.0, long, n)[: len(truth)]
    across += (2.0 * truth + 1.0 - n_clusters) * 3.0 * short
    angle = random.uniform(0.0, np.pi)
    turned = [along * np.cos(angle) - across * np.sin(angle), along * np.sin(angle) + across * np.cos(angle)]
    return _flat(np.stack(turned, axis=1), truth, random, attrs)


def _sizes(n: int, n_clusters: int, noise: float) -> Int:
    """Return the number of hits of each cluster."""
    clustered = round(n * (1 - noise))
    return np.bincount(np.arange(clustered) * n_clusters // max(clustered, 1), minlength=n_clusters)


def _flat(xy: Float, truth: Int, random: np.random.Generator, attrs: dict[str, Any]) -> xr.Dataset:
    """Return a data set of one layer, filled up with uniform noise."""
    n, size = attrs["n"], attrs["size"]
    x, y = np.concatenate([xy, random.uniform(-size, size, (n - len(xy), 2))]).astype(np.float32).T
    columns = {"x": np.ascontiguousarray(x), "y": np.ascontiguousarray(y), "layer": np.zeros(n, np.int32)}
    columns["energy"] = np.ones(n, np.float32)
    columns["truth"] = np.concatenate([truth.astype(np.int64), np.full(n - len(xy), NOISE)])
    return dataset(columns, attrs)
