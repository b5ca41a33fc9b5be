"""What kernels are compiled for beforehand: each use of a system, a reader or a table, on a few points.

Usual are one to three coordinates (in hierarchical clustering any number), float32 and float64, open and periodic
spaces, and the types that readers give. What is not here is compiled where it is first used.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import dask
import numpy as np

from daskclust import CLUE, DBSCAN, FriendsOfFriends, MahalanobisHCA, datasets, io, systems
from daskclust.accessor import ClustAccessor
from daskclust.properties import cluster_table, halo_table
from daskclust.readout.stream import EventStream

_POINTS = 400


def use_everything() -> None:
    """Call all that has kernels."""
    with dask.config.set(scheduler="synchronous"):
        for system in systems.SYSTEMS.values():
            for fitted in systems.run_all(system, np.asarray):
                dask.compute(fitted.labels_)
        for dimensions in (1, 2, 3):
            for dtype in (np.float32, np.float64):
                _use_space(np.random.default_rng(0).uniform(0, 8, (_POINTS, dimensions)).astype(dtype))
    _use_hierarchies()
    _use_calorimeter()
    _use_pixels()
    _use_halos()


def _use_space(X: Any) -> None:
    """Cluster points in open and periodic space, with and without weights and layers."""
    layer, weight = np.arange(len(X)) % 3, np.ones(len(X), X.dtype)
    axes = range(X.shape[1])
    for period in (None, 8.0):
        wrap = dict.fromkeys(axes, period) if period else None
        for columns in ({}, {"layer": layer, "sample_weight": weight}, {"event": layer}):
            clue = CLUE(0.5, 2.0, wrap=wrap).fit(X, **columns)
            clue.rethreshold(rhoc=1.0)
        FriendsOfFriends(0.3, boxsize=period).fit(X)
        for min_samples in (1, 5):
            for sample_weight in (None, weight):
                DBSCAN(0.4, min_samples=min_samples, boxsize=period).fit(X, sample_weight=sample_weight)


def _use_hierarchies() -> None:
    """Cluster cells with and without apriori clusters, and cut the trees."""
    for dtype in (np.float32, np.float64):
        X = np.random.default_rng(0).normal(size=(_POINTS, 5)).astype(dtype)
        for parameters in ({}, {"threshold": 0.1}, {"apriori": 10}):
            fitted = MahalanobisHCA(**parameters).fit(X)
            fitted.labels(n_clusters=3), fitted.labels(height=1.0, min_size=5), fitted.point_heights_


def _use_calorimeter() -> None:
    event = datasets.hgcal_event(rng=0)
    cluster_table(ClustAccessor(event).clue(2.0, 0.3, delta_c=2.0, delta_o=3.0))


def _use_pixels() -> None:
    """Write and read raw hits, build events of them at once and as a stream, and make tables."""
    hits = datasets.timepix(_POINTS, rng=0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "hits.tpx3")
        io.write_tpx3(hits, file)
        for variant in ("local", "global", "static"):
            read = io.open_tpx3(file)
            cluster_table(ClustAccessor(read).events(200.0, variant=variant))
        list(EventStream(io.WordReader(file.read_bytes()), 200.0))


def _use_halos() -> None:
    for dtype in (np.float32, np.float64):
        box = datasets.cosmology_box(2000, rng=0).astype(dtype)
        for boxsize in (None, box.attrs["boxsize"]):
            box.attrs["boxsize"] = boxsize
            halo_table(ClustAccessor(box).fof(0.1))
