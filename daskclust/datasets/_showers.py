"""A model of showers in a high-granularity calorimeter: deposits of energy, and the cells that collect them.

Depths and radii are round numbers in the order of the CMS HGCAL's. The aim is data of the right shape (density,
overlap, energies), not a simulation of that detector.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from daskclust.core.merge.labels import NOISE

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]

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
