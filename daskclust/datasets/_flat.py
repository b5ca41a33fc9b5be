"""Points on one layer, in shapes that are easy to see and hard for some: half circles, circles, ellipses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.merge.labels import NOISE

from ._arguments import RNG, Float, Int, check_counts, check_fraction, check_not_negative, check_positive, dataset


def moons(
    n: int = 1000, *, spread: float = 0.05, noise: float = 0.05, size: float = 230.0, rng: RNG = None
) -> xr.Dataset:
    """Make two interleaved half circles with uniform noise on one layer.

    Parameters
    ----------
    n : int, default 1000
        Number of hits, noise included.
    spread : float, default 0.05
        Standard deviation across the arcs, as a fraction of their radius.
    noise : float, default 0.05
        Fraction of uniform noise, from 0 to 1.
    size : float, default 230.0
        Half the side of the square that noise fills, in cm: that of the paper's file ``moons_1000.csv``.
    rng : int, numpy.random.Generator or None, default None
        Seed or generator.

    Returns
    -------
    xarray.Dataset
        Along ``hit``: ``x``, ``y`` (cm, float32), ``layer`` (all 0, int32), ``energy`` (all 1, float32), ``truth``
        (int64: 0, 1, noise -1).

    Raises
    ------
    ValueError
        For negative numbers and fractions outside of 0 to 1.

    Examples
    --------
    >>> sorted(set(moons(100, rng=0)["truth"].values.tolist()))
    [-1, 0, 1]
    """
    random, truth = _start(n, 2, noise, size, rng, spread=spread)
    angle = random.uniform(0.0, np.pi, n)
    upper = np.stack([np.cos(angle) - 0.5, np.sin(angle) - 0.25], axis=1)
    # The second arc is the first one turned by half a turn around the origin.
    unit = np.where((truth == 0)[:, None], upper, -upper) + random.normal(0.0, spread, (n, 2))
    return _flat(
        unit * (size / 1.75), truth, size, random, generator="moons", n=n, spread=spread, noise=noise, size=size
    )


def circles(
    n: int = 1000,
    *,
    factor: float = 0.4,
    spread: float = 0.04,
    noise: float = 0.05,
    size: float = 230.0,
    rng: RNG = None,
) -> xr.Dataset:
    """Make a small circle inside of a large one with uniform noise on one layer.

    Parameters
    ----------
    n : int, default 1000
        Number of hits, noise included.
    factor : float, default 0.4
        Radius of the small circle as a fraction of the other, from 0 to 1.
    spread : float, default 0.04
        Standard deviation across the circles, as a fraction of the large radius.
    noise : float, default 0.05
        Fraction of uniform noise, from 0 to 1.
    size : float, default 230.0
        Half the side of the square that noise fills, in cm.
    rng : int, numpy.random.Generator or None, default None
        Seed or generator.

    Returns
    -------
    xarray.Dataset
        As of `moons`; ``truth`` is 0 on the large circle and 1 on the small one.

    Raises
    ------
    ValueError
        For negative numbers and fractions outside of 0 to 1.

    Examples
    --------
    >>> ds = circles(100, spread=0.0, noise=0.0, rng=0)
    >>> [round(float(r), 1) for r in np.unique(np.hypot(ds["x"], ds["y"]).round(1))]
    [73.6, 184.0]
    """
    random, truth = _start(n, 2, noise, size, rng, spread=spread)
    check_fraction(factor=factor)
    angle = random.uniform(0.0, 2 * np.pi, n)
    radius = np.where(truth == 0, 1.0, factor)[:, None]
    unit = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1) + random.normal(0.0, spread, (n, 2))
    return _flat(
        unit * (0.8 * size),
        truth,
        size,
        random,
        generator="circles",
        n=n,
        factor=factor,
        spread=spread,
        noise=noise,
        size=size,
    )


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
    n : int, default 1000
        Number of hits, noise included.
    n_clusters : int, default 3
        Number of clusters; hits are divided evenly.
    elongation : float, default 4.0
        Ratio of the long axis of the clusters to the short one.
    noise : float, default 0.05
        Fraction of uniform noise, from 0 to 1.
    size : float, default 230.0
        Half the side of the square that noise fills, in cm.
    rng : int, numpy.random.Generator or None, default None
        Seed or generator: it also draws the common direction of the clusters.

    Returns
    -------
    xarray.Dataset
        As of `moons`; ``truth`` is 0 to ``n_clusters - 1``.

    Raises
    ------
    ValueError
        For negative numbers, no clusters, and fractions outside of 0 to 1.

    Notes
    -----
    Centres are spaced evenly across the long axis, three short standard deviations to either side of each, so that
    clusters overlap little whatever their number.

    Examples
    --------
    >>> int(anisotropic_blobs(100, n_clusters=5, rng=0)["truth"].max())
    4
    """
    check_counts(1, n_clusters=n_clusters)
    check_positive(elongation=elongation)
    random, truth = _start(n, n_clusters, noise, size, rng)
    short = 0.8 * size / (3.0 * n_clusters)
    long = min(short * elongation, 0.35 * size)
    across = (2.0 * np.maximum(truth, 0) + 1.0 - n_clusters) * 3.0 * short + random.normal(0.0, short, n)
    along = random.normal(0.0, long, n)
    angle = random.uniform(0.0, np.pi)
    xy = np.stack(
        [along * np.cos(angle) - across * np.sin(angle), along * np.sin(angle) + across * np.cos(angle)], axis=1
    )
    return _flat(
        xy,
        truth,
        size,
        random,
        generator="anisotropic_blobs",
        n=n,
        n_clusters=n_clusters,
        elongation=elongation,
        noise=noise,
        size=size,
    )


def _start(
    n: int, n_clusters: int, noise: float, size: float, rng: RNG, **lengths: float
) -> tuple[np.random.Generator, Int]:
    """Check common arguments; return a generator and true clusters of equal size, in sequence, noise last."""
    check_counts(n=n)
    check_fraction(noise=noise)
    check_positive(size=size)
    check_not_negative(**lengths)
    clustered = round(n * (1 - noise))
    truth = np.full(n, NOISE, dtype=np.int64)
    truth[:clustered] = np.arange(clustered) * n_clusters // max(clustered, 1)
    return np.random.default_rng(rng), truth


def _flat(xy: Float, truth: Int, size: float, random: np.random.Generator, /, **attrs: Any) -> xr.Dataset:
    """Return a data set of one layer, with uniform noise in the place of the points that are noise."""
    is_noise = truth == NOISE
    xy[is_noise] = random.uniform(-size, size, (int(is_noise.sum()), 2))
    columns: dict[str, npt.NDArray[Any]] = {
        "x": xy[:, 0].astype(np.float32),
        "y": xy[:, 1].astype(np.float32),
        "layer": np.zeros(len(xy), dtype=np.int32),
        "energy": np.ones(len(xy), dtype=np.float32),
        "truth": truth,
    }
    return dataset(columns, **attrs)
