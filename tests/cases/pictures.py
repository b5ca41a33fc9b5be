"""Every picture of `daskclust.plot`, of data as users have it; by name of the function, and a word."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from daskclust import HDBSCAN, MahalanobisHCA, datasets, plot, properties


@functools.cache
def event() -> xr.Dataset:
    """Return clustered hits of an event in a calorimeter."""
    made = datasets.hgcal_event(40, n_noise=2_000, rng=1)
    return made.clust.clue(2.0, 0.3, delta_c=2.0, delta_o=3.0)


@functools.cache
def layer() -> xr.Dataset:
    """Return clustered hits of the toy calorimeter, three layers."""
    return datasets.calorimeter(3, 1_500, size=100.0, rng=0).clust.clue(5.0, 4.0, delta_o=6.0)


@functools.cache
def hits() -> xr.Dataset:
    """Return clustered hits of lead ions, with times of flight after triggers each millisecond."""
    made = datasets.timepix(15_000, kind="lead", rng=1).clust.events(200.0, min_hits=3)
    return made.assign(tof=made["toa"] % 1e6)


@functools.cache
def chips() -> xr.Dataset:
    """Return hits of pions on two chips."""
    return datasets.timepix(8_000, kind="pion45", chips=2, rng=2).clust.events(200.0, min_hits=3)


@functools.cache
def particles() -> xr.Dataset:
    """Return the particles of a box, linked to halos."""
    return datasets.cosmology_box(15_000, smallest=20, filaments=0.1, rng=1).clust.fof(b=0.2, min_members=20)


@functools.cache
def cells() -> tuple[xr.Dataset, MahalanobisHCA, Any]:
    """Return cells, their hierarchy, and a cut of it."""
    made = datasets.cytometry(1_500, 8, rarest=0.03, rng=3)
    hca = MahalanobisHCA(threshold=100).fit(made)
    return made, hca, hca.labels(n_clusters=9, min_size=30)


@functools.cache
def densities() -> tuple[xr.Dataset, HDBSCAN]:
    """Return points of three densities, and their clusters."""
    rng = np.random.default_rng(0)
    blobs = [rng.normal(centre, width, (150, 2)) for centre, width in ((0, 1.0), (5, 0.5), (8, 0.2))]
    x, y = np.concatenate([*blobs, rng.uniform(-3, 10, (80, 2))]).T
    ds = xr.Dataset({"x": ("point", x, {"units": "cm"}), "y": ("point", y, {"units": "cm"})})
    return ds, HDBSCAN(12, min_samples=4).fit(ds)


@functools.cache
def clusters(of: Callable[[], xr.Dataset]) -> xr.Dataset:
    """Return the table of clusters."""
    return properties.cluster_table(of())


@functools.cache
def halos() -> xr.Dataset:
    """Return the catalogue of halos."""
    return properties.halo_table(particles())


def _other_tree() -> Any:
    return MahalanobisHCA(threshold=300).fit(cells()[0]).linkage_


PICTURES: dict[str, Callable[[], Any]] = {
    # CLUE
    "decision": lambda: plot.decision(event(), logx=True),
    "decision linear": lambda: plot.decision(layer()),
    "clusters": lambda: plot.clusters(layer(), layer=1, links=True),
    "clusters side": lambda: plot.clusters(event(), "z", "y", seeds=False),
    "layers": lambda: plot.layers(layer()),
    "layers slider": lambda: plot.layers(layer(), slider=True),
    "energy_spectrum": lambda: plot.energy_spectrum(clusters(event)),
    "cluster_sizes": lambda: plot.cluster_sizes(clusters(event)),
    # events
    "event_display": lambda: plot.event_display(hits(), window=(0.0, 2e6)),
    "event_display tot": lambda: plot.event_display(hits(), window=(0.0, 2e6), color="tot"),
    "event_display few": lambda: plot.event_display(hits(), clusters=[3, 5, 8]),
    "event_display chips": lambda: plot.event_display(chips()),
    "hit_map": lambda: plot.hit_map(hits()),
    "size_spectrum": lambda: plot.size_spectrum(clusters(hits)),
    "tot_spectrum": lambda: plot.tot_spectrum(hits()),
    "tof_spectrum": lambda: plot.tof_spectrum(hits()),
    "rate": lambda: plot.rate(hits(), clusters(hits)),
    # particles
    "clusters particles": lambda: plot.clusters(particles(), seeds=False),
    "projected_density": lambda: plot.projected_density(particles(), pixels=128),
    "halo_circles": lambda: plot.projected_density(particles(), pixels=128) * plot.halo_circles(halos()),
    "halo_circles alone": lambda: plot.halo_circles(halos()),
    "mass_function": lambda: plot.mass_function(halos(), bins=12),
    # cells
    "dendrogram": lambda: plot.dendrogram(cells()[1].linkage_, 16, min_size=30, labels=cells()[2]),
    "dendrogram plain": lambda: plot.dendrogram(cells()[1].linkage_, 30),
    "point_height_scatter": lambda: plot.point_height_scatter(cells()[1].linkage_, _other_tree()),
    "ellipses": lambda: plot.ellipses(cells()[0], cells()[2], "marker_1", "marker_2"),
    "ellipse_grid": lambda: plot.ellipse_grid(cells()[0], cells()[2], columns=2),
    "channel_medians": lambda: plot.channel_medians(cells()[0], cells()[2], Z=cells()[1].linkage_),
    # HDBSCAN*
    "condensed_tree": lambda: plot.condensed_tree(densities()[1]),
    "condensed_tree logarithmic": lambda: plot.condensed_tree(densities()[1], logy=True),
    "condensed_tree plain": lambda: plot.condensed_tree(densities()[1].condensed_tree_, 9),
    "spanning_tree": lambda: plot.spanning_tree(densities()[0], densities()[1]),
}
