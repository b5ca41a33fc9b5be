"""Every picture of `daskclust.plot` that may be of very many points; of labels that nobody clustered, to be quick."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from daskclust import EMST, plot


@functools.cache
def points(n: int) -> xr.Dataset:
    """Return blobs and noise on 50 layers, with what CLUE, event building and friends-of-friends would have found."""
    rng = np.random.default_rng(0)
    label = np.where(rng.random(n) < 0.2, -1, rng.integers(0, n // 50 + 1, n))
    centres = rng.uniform(0, 250, (n // 50 + 2, 2))
    xy = np.where(label[:, None] < 0, rng.uniform(0, 250, (n, 2)), centres[label] + rng.normal(0, 1.5, (n, 2)))
    nearest = np.where(rng.random(n) < 0.02, -1, rng.integers(0, n, n))
    columns = {
        "x": np.clip(xy[:, 0], 0, 255).astype(np.float32),
        "y": np.clip(xy[:, 1], 0, 255).astype(np.float32),
        "layer": rng.integers(0, 50, n).astype(np.int32),
        "energy": rng.exponential(1.0, n),
        "density": rng.exponential(4.0, n),
        "delta": np.where(nearest < 0, np.inf, rng.exponential(2.0, n)),
        "nearest_higher": nearest,
        "is_seed": nearest < 0,
        "label": label,
        "toa": np.sort(rng.uniform(0, 1e9, n)),
        "tot": 25.0 * rng.integers(1, 200, n),
        "tof": rng.uniform(0, 1e6, n),
    }
    return xr.Dataset({name: ("hit", values) for name, values in columns.items()}, attrs={"boxsize": 256.0})


@functools.cache
def table(n: int) -> xr.Dataset:
    """Return a table of as many clusters."""
    ds, rng = points(n), np.random.default_rng(1)
    columns = {name: ds[name].values for name in ("x", "y", "energy", "tot", "toa", "tof")}
    columns |= {
        "size": rng.zipf(1.8, n).clip(1, 10**6),
        "mass": rng.pareto(1.0, n) + 1,
        "r_max": rng.exponential(1.0, n),
    }
    return xr.Dataset({name: ("cluster", values) for name, values in columns.items()}, attrs={"boxsize": 256.0})


@functools.cache
def tree(n: int) -> np.ndarray:
    """Return the linkage of a cluster that takes up points one after the other."""
    rows, rng = np.arange(n - 1), np.random.default_rng(2)
    last, points = np.where(rows, n + rows - 1, 0), rng.permutation(np.arange(1, n))
    heights = np.sort(rng.exponential(1.0, n - 1))
    return np.column_stack([np.sort([last, points], axis=0).T, heights, rows + 2.0])


def densities(n: int) -> np.ndarray:
    """Return a condensed tree of 999 clusters, each of which is in the one before or in the one before that."""
    rng, names = np.random.default_rng(4), ("parent", "child", "lambda_val", "child_size")
    inner = np.arange(1, 999)
    parents = (inner - 1) // 2 * 2 - rng.integers(0, 2, 998) * (inner > 2)
    sizes = n // (2 + inner)
    points_in = n + rng.integers(0, 999, n), np.arange(n), 1000 + rng.exponential(1.0, n), np.ones(n, int)
    rows = zip(points_in, (n + parents, n + inner, 1.0 + inner, sizes), strict=True)
    return np.rec.fromarrays([np.concatenate(each) for each in rows], names=",".join(names))


def chain(n: int) -> EMST:
    """Return a tree of edges from each point to the next."""
    tree, edges = EMST(), np.column_stack([np.arange(n - 1), np.arange(1, n)])
    xy = np.column_stack([points(n)["x"], points(n)["y"]]).astype(np.float64)
    tree.edges_, tree.lengths_ = edges, np.linalg.norm(np.diff(xy, axis=0), axis=1)
    return tree


def cells(n: int) -> np.ndarray:
    """Return cells in four channels."""
    label, rng = points(n)["label"].values % 12, np.random.default_rng(3)
    return (rng.normal(size=(12, 4))[label] * 5 + rng.normal(size=(n, 4))).astype(np.float32)


def few_labels(n: int) -> np.ndarray:
    label = points(n)["label"].values
    return np.where(label < 0, -1, label % 12)


MANY: dict[str, Callable[[int], Any]] = {
    "decision": lambda n: plot.decision(points(n), rhoc=4.0, delta_c=3.0, delta_o=5.0),
    "decision log": lambda n: plot.decision(points(n), rhoc=4.0, delta_c=3.0, delta_o=5.0, logx=True, logy=True),
    "clusters": lambda n: plot.clusters(points(n)),
    "clusters links": lambda n: plot.clusters(points(n), links=True),
    "layers": lambda n: plot.layers(points(n)),
    "layers slider": lambda n: plot.layers(points(n), range(8), slider=True),
    "energy_spectrum": lambda n: plot.energy_spectrum(table(n)),
    "cluster_sizes": lambda n: plot.cluster_sizes(table(n)),
    "event_display": lambda n: plot.event_display(points(n)),
    "hit_map": lambda n: plot.hit_map(points(n)),
    "size_spectrum": lambda n: plot.size_spectrum(table(n)),
    "tot_spectrum": lambda n: plot.tot_spectrum(points(n)),
    "tof_spectrum": lambda n: plot.tof_spectrum(points(n)),
    "rate": lambda n: plot.rate(points(n), table(n)),
    "projected_density": lambda n: plot.projected_density(points(n)),
    "halo_circles": lambda n: plot.halo_circles(table(n)),
    "mass_function": lambda n: plot.mass_function(table(n)),
    "dendrogram": lambda n: plot.dendrogram(tree(n), 60, labels=few_labels(n)),
    "condensed_tree": lambda n: plot.condensed_tree(densities(n), labels=few_labels(n), logy=True),
    "spanning_tree": lambda n: plot.spanning_tree(points(n), chain(n)),
    "point_height_scatter": lambda n: plot.point_height_scatter(tree(n), tree(n)),
    "ellipses": lambda n: plot.ellipses(cells(n), few_labels(n), 0, 1),
    "ellipse_grid": lambda n: plot.ellipse_grid(cells(n), few_labels(n)),
    "channel_medians": lambda n: plot.channel_medians(cells(n), few_labels(n)),
}
