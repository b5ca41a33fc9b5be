"""Data for each system of the explorer, steps of its parameters, files, and looks into its views."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from daskclust import datasets, io
from daskclust.app.code import code
from daskclust.app.layout import Explorer
from daskclust.app.state import State

DATA: dict[str, Callable[[], xr.Dataset]] = {
    "clue": lambda: datasets.calorimeter(3, 300, size=80.0, rng=0),
    "fof": lambda: datasets.cosmology_box(4000, smallest=20, rng=0),
    "dbscan": lambda: datasets.cosmology_box(4000, smallest=20, rng=0),
    "hdbscan": lambda: datasets.cosmology_box(1200, smallest=20, rng=0),
    "events": lambda: datasets.timepix(3000, rng=0),
    "hca": lambda: datasets.cytometry(400, rng=0),
}
STEPS: dict[str, list[dict[str, Any]]] = {
    "clue": [{"rhoc": 8.0}, {"delta_o": 30.0}, {"delta_c": 3.0, "delta_o": 4.0}, {"dc": 9.0}, {"kernel": "gaussian"}],
    "fof": [{"min_members": 5}, {"b": 0.3}, {"by": "linking_length", "linking_length": 0.5}, {"min_members": 50}],
    "dbscan": [{"min_samples": 20}, {"eps": 0.3}],
    "hdbscan": [
        {"min_cluster_size": 20},
        {"cluster_selection_method": "leaf"},
        {"cluster_selection_epsilon": 0.5},
        {"min_samples": 3},
    ],
    "events": [{"min_hits": 3}, {"dt_max": 50.0}, {"variant": "static"}, {"connectivity": 4}],
    "hca": [
        {"n_clusters": 3},
        {"min_size": 5},
        {"cut": "height", "height": 2.5},
        {"distance": "full"},
        {"apriori": "kmeans", "cut": "number"},
        {"threshold": 0.2},
    ],
}


def _write_points(ds: xr.Dataset, path: Path) -> None:
    ds.to_dataframe()[["x", "y"]].to_csv(path, index=False)


_FILES: dict[str, tuple[str, Callable[[xr.Dataset, Path], Any]]] = {
    "clue": ("hits.parquet", io.write_hits),
    "events": ("pixels.parquet", io.write_hits),
    "fof": ("box.hdf5", io.write_particles),
    "dbscan": ("points.csv", _write_points),
    "hdbscan": ("points.csv", _write_points),
    "hca": ("cells.fcs", lambda ds, path: io.write_cells(ds[["X"]], path)),
}


def written(name: str, ds: xr.Dataset, folder: Path) -> Path:
    """Return a file of the kind that users of a system have."""
    file, write = _FILES[name]
    write(ds, folder / file)
    return folder / file


def made(state: State) -> dict[str, Any]:
    """Return what the Python lines of a state make."""
    names: dict[str, Any] = {"ds": state.ds}
    exec(code(state), names)
    return names


def view(explorer: Explorer, kind: type) -> Any:
    return next(each for each in explorer.views if isinstance(each, kind))


def glyphs(explorer: Explorer, kind: type) -> list[dict[str, Any]]:
    """Return the data of the glyphs of a view."""
    return [dict(layer.data_source.data) for layer in view(explorer, kind).canvas.figure.renderers]


def told(explorer: Explorer) -> str:
    """Return the note beside the sliders."""
    return html.unescape(explorer.note.object) if explorer.note.visible else ""


def points(n: int, apart: float = 10.0, **more: Any) -> xr.Dataset:
    """Return points on a grid."""
    side = int(np.ceil(np.sqrt(n)))
    x, y = np.divmod(np.arange(n), side)
    return xr.Dataset({"x": ("hit", apart * x), "y": ("hit", apart * y), **more})


def hits(n: int) -> xr.Dataset:
    return datasets.timepix(max(n, 1), rng=0).isel(hit=slice(0, n))
