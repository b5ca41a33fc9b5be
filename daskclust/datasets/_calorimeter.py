"""Calorimeters: the toy detector of the CLUE paper, and an event of a high-granularity calorimeter."""

from __future__ import annotations

import numpy as np
import xarray as xr

from daskclust.core.merge.labels import NOISE

from ._arguments import RNG, count, dataset, given
from ._showers import Deposits, layer_positions, noise_deposits, shower_deposits, sum_in_cells


def calorimeter(
    n_layers: int = 100,
    points_per_layer: int = 10_000,
    *,
    size: float = 250.0,
    points_per_cluster: int = 10,
    sigma: float = 3.0,
    noise: float = 0.05,
    rng: RNG = None,
) -> xr.Dataset:
    """Make the toy calorimeter of the CLUE paper: round Gaussian clusters and uniform noise on many layers.

    Parameters
    ----------
    n_layers, points_per_layer : int
        Layers, which are independent of each other, and hits of each, noise included.
    size, sigma : float
        Half the side of the square of a layer, and standard deviation of a cluster along each axis, in cm.
    points_per_cluster : int, default 10
        Hits of each cluster; the last one of a layer has fewer where the numbers do not divide.
    noise : float, default 0.05
        Fraction of uniform noise, from 0 to 1.
    rng : int, numpy.random.Generator or None, default None
        Seed or generator.

    Returns
    -------
    xarray.Dataset
        Along ``hit``, layer after layer and cluster after cluster, noise last: ``x``, ``y`` (cm, float32), ``layer``
        (int32), ``energy`` (all 1, float32), ``truth`` (int64, different on every layer, -1 noise). The arguments
        are in ``attrs``.

    Notes
    -----
    Centres are uniform in the square less 10 cm (at most a quarter of its side) at each border, noise less 20 cm, as in
    the authors' files ``toyDetector_*.csv``. These have a standard deviation of 2.0 cm, where the paper says 3 cm:
    ``calorimeter(1, sigma=2.0)`` is like ``toyDetector_10000.csv``.

    References
    ----------
    Rovere et al., "CLUE: a fast parallel clustering algorithm for high granularity calorimeters in high-energy
    physics", section 4.2, Frontiers in Big Data 3 (2020), doi:10.3389/fdata.2020.591315.

    Examples
    --------
    >>> ds = calorimeter(2, 100, rng=0)
    >>> ds.sizes["hit"], int(ds["truth"].max()) + 1, int((ds["truth"] == -1).sum())
    (200, 20, 10)
    """
    attrs = given("calorimeter", locals(), n_layers=count)
    random = np.random.default_rng(rng)
    clustered = round(points_per_layer * (1 - noise))
    n_clusters = -(-clustered // points_per_cluster)
    local = np.full(points_per_layer, NOISE, dtype=np.int64)
    local[:clustered] = np.arange(clustered) // points_per_cluster
    xy = np.empty((n_layers, points_per_layer, 2), dtype=np.float32)
    inner, outer = size - min(10.0, size / 4), size - min(20.0, size / 4)
    # Layer by layer: random numbers in float64 for all layers at once would take several times the result.
    for points in xy:
        centres = random.uniform(-inner, inner, (n_clusters, 2))
        points[:clustered] = centres[local[:clustered]] + random.normal(0.0, sigma, (clustered, 2))
        points[clustered:] = random.uniform(-outer, outer, (points_per_layer - clustered, 2))
    truth = np.where(local >= 0, local + n_clusters * np.arange(n_layers)[:, None], NOISE)
    x, y = np.ascontiguousarray(xy.reshape(-1, 2).T)
    layer = np.arange(n_layers, dtype=np.int32).repeat(points_per_layer)
    energy = np.ones(len(x), dtype=np.float32)
    return dataset({"x": x, "y": y, "layer": layer, "energy": energy, "truth": truth.reshape(-1)}, attrs)


def hgcal_event(
    n_showers: int = 130,
    n_layers: int = 47,
    *,
    hadronic: float = 0.6,
    energy_range: tuple[float, float] = (5.0, 150.0),
    n_noise: int = 12_000,
    cell_size: float = 1.0,
    threshold: float = 0.003,
    rng: RNG = None,
) -> xr.Dataset:
    """Make one event of a high-granularity calorimeter: showers that cross many layers, and noise.

    Parameters
    ----------
    n_showers, n_layers : int
        Particles that come from the origin, and layers: the first 55 % are thin (electromagnetic part), the others
        thick (hadronic part).
    hadronic : float, default 0.6
        Fraction of showers that are hadronic, from 0 to 1; the others are electromagnetic.
    energy_range : tuple of float, default (5.0, 150.0)
        Smallest and largest energy of a particle, in GeV; its logarithm is uniform.
    n_noise : int, default 12000
        Cells with noise or with pile-up of low energy, uniform over the layers and the area.
    cell_size, threshold : float
        Distance of the centres of neighbouring hexagonal cells, in cm; energy below which cells are no hits, in GeV.
    rng
        As of `calorimeter`.

    Returns
    -------
    xarray.Dataset
        Along ``hit``, by layer and cell, about 50000 hits by default: ``x``, ``y``, ``z`` (cm), ``energy`` (GeV),
        ``eta``, ``phi`` (rad) of the cell's centre, all float32; ``layer`` (int32, 0 first); ``truth`` (int64): the
        shower that gave the cell most of its energy, -1 where noise did. The arguments are in ``attrs``.

    Notes
    -----
    Deposits of a shower are in number proportional to its energy. Their depth has a gamma distribution: of an
    electromagnetic shower in radiation lengths, with its maximum at ln(E / 10 MeV) + 0.5; of a hadronic one in
    interaction lengths, after an exponential depth of the first collision. Across, they spread as a Gaussian, wider
    with depth, with a tail of three times its width.

    References
    ----------
    Longo and Sestili, "Monte Carlo calculation of photon-initiated electromagnetic showers in lead glass", Nucl.
    Instrum. Methods 128 (1975), doi:10.1016/0029-554X(75)90679-5: the gamma profile.

    Examples
    --------
    >>> ds = hgcal_event(3, n_noise=10, rng=0)
    >>> set(ds["truth"].values.tolist()) <= {-1, 0, 1, 2}, bool((ds["energy"] >= 0.003).all())
    (True, True)
    """
    attrs = given("hgcal_event", locals())
    if not 0 < energy_range[0] <= energy_range[1] < np.inf:
        raise ValueError(f"energy_range must be two positive energies, the smaller one first, got {energy_range!r}")
    random = np.random.default_rng(rng)
    z_of_layer = layer_positions(n_layers)
    deposits = [
        shower_deposits(random, n_showers, hadronic, energy_range, z_of_layer),
        noise_deposits(random, n_noise, z_of_layer),
    ]
    hits = sum_in_cells(Deposits(*map(np.concatenate, zip(*deposits, strict=True))), cell_size, threshold)
    z = z_of_layer[hits["layer"]]
    hits["z"] = z.astype(np.float32)
    hits["eta"] = np.arcsinh(z / np.maximum(np.hypot(hits["x"], hits["y"]), cell_size / 2)).astype(np.float32)
    hits["phi"] = np.arctan2(hits["y"], hits["x"]).astype(np.float32)
    order = ("x", "y", "z", "layer", "energy", "eta", "phi", "truth")
    return dataset({name: hits[name] for name in order}, attrs | {"energy_range": list(energy_range)})
