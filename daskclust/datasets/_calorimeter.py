"""Calorimeters: the toy detector of the CLUE paper, and an event of a high-granularity calorimeter."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from daskclust.core.merge.labels import NOISE

from ._arguments import RNG, Float, Int, count, dataset, given

_Z_FRONT = 322.0  # cm
_LAYER_STEP = (1.6, 5.5)  # cm, thin and thick layers
_RADIATION_LENGTHS = (1.05, 4.2)  # of one layer, thin and thick
_INTERACTION_LENGTHS = (0.055, 0.42)
_CRITICAL_ENERGY = 0.010  # GeV
_ETA_RANGE = (1.6, 2.9)
_DEPOSITS_PER_GEV = 15.0


class Deposits(NamedTuple):
    """Deposits of energy, arrays of shape (n,)."""

    x: Float  # cm
    y: Float
    layer: Int  # 0 first
    energy: Float  # GeV
    source: Int  # number of the shower, -1 for noise


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


# ----------------------------------------------------------------------------------------------- showers in many layers
def _n_thin(n_layers: int) -> int:
    """Return the number of layers of the electromagnetic part."""
    return -(-n_layers * 55 // 100)


def layer_positions(n_layers: int) -> Float:
    """Return where the layers are along the beam, in cm."""
    steps = np.where(np.arange(n_layers) < _n_thin(n_layers), *_LAYER_STEP)
    z: Float = _Z_FRONT + np.cumsum(steps) - steps[0]
    return z


def shower_deposits(
    random: np.random.Generator, n_showers: int, hadronic: float, energy_range: tuple[float, float], z_of_layer: Float
) -> Deposits:
    """Draw showers and return what they deposit inside of the calorimeter, shower by shower."""
    lowest, highest = np.log(energy_range)
    total = np.exp(random.uniform(lowest, highest, n_showers))
    is_hadronic = random.random(n_showers) < hadronic
    slope = np.sinh(random.uniform(*_ETA_RANGE, n_showers))
    phi = random.uniform(-np.pi, np.pi, n_showers)
    # Hadronic showers fluctuate, and a part of their energy is not seen.
    visible = total * np.where(is_hadronic, np.clip(random.normal(0.75, 0.12, n_showers), 0.3, 1.0), 1.0)
    count = np.maximum(1, np.round(visible * _DEPOSITS_PER_GEV)).astype(np.int64)
    shower = np.repeat(np.arange(n_showers, dtype=np.int64), count)
    layer, depth = _deposit_layers(random, shower, total, is_hadronic, len(z_of_layer))
    inside = layer < len(z_of_layer)
    shower, layer, depth = shower[inside], layer[inside], depth[inside]
    # The core is narrow at first; a hadronic one is wider by the transverse momenta of its secondaries.
    core = np.where(is_hadronic[shower], 0.8 + 2.2 * depth, 0.4 + 1.4 * depth)
    core *= np.where(random.random(len(shower)) < 0.12, 3.0, 1.0)
    radius = z_of_layer[layer] / slope[shower]
    x = radius * np.cos(phi[shower]) + random.normal(0.0, 1.0, len(shower)) * core
    y = radius * np.sin(phi[shower]) + random.normal(0.0, 1.0, len(shower)) * core
    energy = (visible / count)[shower] * random.gamma(4.0, 0.25, len(shower))
    return Deposits(x, y, layer, energy, shower)


def _deposit_layers(
    random: np.random.Generator, shower: Int, total: Float, is_hadronic: npt.NDArray[np.bool_], n_layers: int
) -> tuple[Int, Float]:
    """Return the layer of every deposit (n_layers behind the last one) and its depth as a fraction of all depth."""
    thin = np.arange(n_layers) < _n_thin(n_layers)
    radiation = np.cumsum(np.where(thin, *_RADIATION_LENGTHS))
    interaction = np.cumsum(np.where(thin, *_INTERACTION_LENGTHS))
    maximum = np.maximum(1.0, np.log(total / _CRITICAL_ENERGY) + 0.5)
    em_depth = random.gamma(1.0 + 0.5 * maximum[shower], 2.0)
    start = random.exponential(1.0, len(total))
    had_depth = start[shower] + random.gamma((1.2 + 0.25 * np.log(total))[shower], 0.9)
    layer = np.where(is_hadronic[shower], np.searchsorted(interaction, had_depth), np.searchsorted(radiation, em_depth))
    return layer.astype(np.int64), layer / n_layers


def noise_deposits(random: np.random.Generator, n_noise: int, z_of_layer: Float) -> Deposits:
    """Draw noise, uniform over the layers and the area that particles from the origin reach."""
    layer = random.integers(0, len(z_of_layer), n_noise)
    inner, outer = (z_of_layer[layer] / np.sinh(eta) for eta in (3.0, 1.5))
    radius = np.sqrt(random.uniform(inner**2, outer**2))
    phi = random.uniform(-np.pi, np.pi, n_noise)
    energy = 0.004 + random.exponential(0.008, n_noise)
    source = np.full(n_noise, NOISE, dtype=np.int64)
    return Deposits(radius * np.cos(phi), radius * np.sin(phi), layer, energy, source)


def sum_in_cells(deposits: Deposits, cell_size: float, threshold: float) -> dict[str, npt.NDArray[Any]]:
    """Collect deposits in the hexagonal cells of their layers, in the order of layer, row and column.

    Cells with less energy than the threshold are left out; truth is the source of most of the energy, of equal ones the
    smallest.
    """
    column, row = _hexagons(deposits.x / cell_size, deposits.y / cell_size)
    left, low = int(column.min(initial=0)), int(row.min(initial=0))
    n_columns, n_rows = int(column.max(initial=0)) - left + 1, int(row.max(initial=0)) - low + 1
    key, cell = np.unique((deposits.layer * n_rows + (row - low)) * n_columns + (column - left), return_inverse=True)
    total = np.bincount(cell, weights=deposits.energy, minlength=len(key))
    keep = total >= threshold
    row, column = key[keep] // n_columns % n_rows + low, key[keep] % n_columns + left
    return {
        "x": ((column + 0.5 * row) * cell_size).astype(np.float32),
        "y": (row * (np.sqrt(0.75) * cell_size)).astype(np.float32),
        "layer": (key[keep] // n_columns // n_rows).astype(np.int32),
        "energy": total[keep].astype(np.float32),
        "truth": _main_source(cell, deposits)[keep],
    }


def _main_source(cell: Int, deposits: Deposits) -> Int:
    """Return the source that gave most of its energy to each cell."""
    given = pd.DataFrame({"cell": cell, "source": deposits.source, "energy": deposits.energy})
    shares = given.groupby(["cell", "source"], as_index=False).sum()
    shares = shares.sort_values(["cell", "energy"], ascending=[True, False])  # of equal ones the smaller source first
    return np.asarray(shares.drop_duplicates("cell")["source"])


def _hexagons(x: Float, y: Float) -> tuple[Int, Int]:
    """Return column and row of the hexagon around each point, where centres have distance 1.

    The centre of (column, row) is (column + row / 2, row * sqrt(3) / 2): the nearest one is in the row above or below.
    """
    place = y / np.sqrt(0.75)
    row = np.floor(place) + np.array([[0], [1]])
    column = np.round(x - row / 2)
    nearest = ((x - column - row / 2) ** 2 + 0.75 * (place - row) ** 2).argmin(axis=0)[None]
    column, row = (np.take_along_axis(each, nearest, axis=0)[0].astype(np.int64) for each in (column, row))
    return column, row
