"""Points, pixel hits and particles with labels, of which tables of clusters are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import xarray as xr

from daskclust.properties import _lazy

L = 64.0  # side of the box
G = 43007.1
WIDTH = 2.0  # of halos
SPEED = 300.0


def told(table: xr.Dataset) -> xr.Dataset:
    """Return a table in memory; what a lazy one has of noise is in its attributes, as in memory."""
    table = table.compute()
    noise = {name: values.item() for name, values in table.items() if not values.ndim}
    return table.drop_vars(list(noise)).assign_attrs(noise)


@contextmanager
def ranges_of(rows: int, fan_in: int = 2) -> Iterator[None]:
    """Make lazy tables in ranges of so many clusters, merged so many at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_lazy, "_ROWS", rows)
        patch.setattr(_lazy, "_FAN_IN", fan_in)
        yield


def by_threads(make: Callable[[], xr.Dataset]) -> list[xr.Dataset]:
    """Return what is made by one thread and by two."""
    numba = pytest.importorskip("numba")
    before = numba.get_num_threads()
    tables = []
    try:
        for threads in (1, 2):
            numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
            tables.append(make())
    finally:
        numba.set_num_threads(before)
    return tables


def hit_columns(n: int, k: int, optional: bool = True) -> dict[str, np.ndarray]:
    """Return hits in the order of time, of `k` clusters and noise."""
    rng = np.random.default_rng(n + k)
    arrays = {
        "labels": rng.integers(-1, k, n),
        "x": rng.integers(0, 256, n).astype(np.uint16),
        "y": rng.integers(0, 256, n).astype(np.uint16),
        "toa": np.sort(rng.integers(0, n, n)) * 1.5625,
        "tot": (25 * rng.integers(0, 5, n)).astype(np.float32),
    }
    if optional:
        arrays["energy"] = rng.exponential(3.0, n).astype(np.float32)
        arrays["chip"] = rng.integers(0, 4, n).astype(np.uint8)
        arrays["tof"] = rng.uniform(0, 1e6, n)
    return arrays


def particle_columns(n: int, k: int, d: int = 3, optional: bool = True, dtype: Any = np.float64) -> dict[str, Any]:
    """Return particles of `k` halos and others, with velocities, the first in float32, and masses."""
    rng = np.random.default_rng(n + k)
    names = ["x", "y", "z"][:d] + [*["vx", "vy", "vz"][:d], "mass"] * optional
    arrays = {name: rng.exponential(8.0, n).astype(np.float32 if name == "vx" else dtype) for name in names}
    return {"labels": rng.integers(-1, k, n)} | arrays


def random_hits(n: int, k: int, seed: int = 0, *, offset: float = 0.0) -> xr.Dataset:
    """Return hits with labels from -1 to k - 1, one layer per label, and some seeds."""
    rng = np.random.default_rng(seed)
    label = rng.integers(-1, k, n)
    return xr.Dataset(
        {
            "x": ("hit", rng.normal(offset, 1.0, n), {"units": "cm"}),
            "y": ("hit", rng.normal(-offset, 2.0, n).astype(np.float32), {"units": "cm"}),
            "layer": ("hit", (label % 5).astype(np.int32)),
            "energy": ("hit", rng.exponential(1.0, n).astype(np.float32), {"units": "GeV"}),
            "label": ("hit", label),
            "is_seed": ("hit", rng.random(n) < 0.3),
        }
    )


def pixel_hits(
    n: int, k: int, seed: int = 0, *, noise: bool = True, side: int = 9, optional: bool = True
) -> xr.Dataset:
    """Return hits in time order with many ties of time and ToT, and labels by the time of the first hit, with gaps."""
    rng = np.random.default_rng(seed)
    label = rng.integers(-1 if noise else 0, max(k, 1), n)
    corner = rng.integers(0, 500, (2, max(k, 1) + 1))
    x, y = (corner[:, label] + rng.integers(0, side, (2, n))).astype(np.uint16)
    ds = xr.Dataset(
        {
            "x": ("hit", x, {"units": "pixel"}),
            "y": ("hit", y, {"units": "pixel"}),
            "toa": ("hit", np.sort(rng.integers(0, max(n // 3, 1), n)) * 1.5625, {"units": "ns"}),
            "tot": ("hit", (25 * rng.integers(0, 6, n)).astype(np.float32), {"units": "ns"}),
            "label": ("hit", label),
        },
        attrs={"field": "timepix", "layout": "quad"},
    )
    if optional:
        ds["chip"] = ("hit", rng.integers(0, 4, n).astype(np.uint8), {"units": "1"})
        ds["energy"] = ("hit", rng.exponential(5.0, n).astype(np.float32), {"units": "keV"})
        ds["tof"] = ("hit", rng.uniform(0, 1e6, n), {"units": "ns"})
    return ds


def halos(
    n: int, k: int, seed: int = 0, *, d: int = 3, noise: bool = True, mass: bool = True, moving: bool = True
) -> xr.Dataset:
    """Return particles of k halos, some of which lie over corners of the box, in open space, in random order.

    Positions are multiples of 2**-20, so that those of other images are exact.
    """
    rng = np.random.default_rng(seed)
    label = rng.integers(-1 if noise else 0, max(k, 1), n)
    centre = rng.choice([0.0, 17.3, 50.1, L], (max(k, 1) + 1, d)) + rng.normal(0, 0.1, (max(k, 1) + 1, d))
    positions = np.round((centre[label] + WIDTH * rng.normal(0, 1, (n, d))) * 2**20) / 2**20
    columns = {name: positions[:, axis] for axis, name in enumerate("xyz"[:d])}
    if moving:
        drift = 1000 * rng.normal(0, 1, (max(k, 1) + 1, d))
        columns |= {f"v{a}": drift[label, i] + SPEED * rng.normal(0, 1, n) for i, a in enumerate("xyz"[:d])}
    if mass:
        columns["mass"] = rng.exponential(2.0, n)
    ds = xr.Dataset({name: ("particle", values) for name, values in columns.items()})
    return ds.assign(label=("particle", label))


def folded(ds: xr.Dataset, boxsize: Any = L) -> xr.Dataset:
    """Return the particles in the box."""
    inside = {name: ds[name] % L for name in "xyz" if name in ds}
    return ds.assign(inside).assign_attrs(boxsize=boxsize)
