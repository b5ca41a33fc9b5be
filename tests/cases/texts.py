"""Names that would run code where they were taken for HTML, in all places of a data set, and in an address."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import xarray as xr
from cases.explorer import DATA

from daskclust import io

NAME = """'"><img src=q onerror="window.ran=1"><b>["""
ADDRESS = (
    "system",
    "look",
    "dc",
    "rhoc",
    "eps",
    "b",
    "dt_max",
    "n_clusters",
    "rule",
    "x",
    "y",
    "slice",
    "width",
    "enlarged",
)


def opened_with(keys: tuple[str, ...]) -> str:
    """Return the part of an address that gives each key such a value."""
    return "?" + urlencode(dict.fromkeys(keys, NAME) | {NAME: NAME, "left": NAME, "hidden": NAME})


def hostile(name: str) -> xr.Dataset:
    """Return the data of a system with such names of columns or channels, units and attributes."""
    ds = DATA[name]()
    if name == "hca":
        ds = ds.assign_coords(channel=[f"{NAME}{k}" for k in range(ds.sizes["channel"])])
        ds["X"].attrs.update(units=NAME, long_name=NAME)
        return ds.assign_attrs(comment=NAME)
    dim = ds["x"].dims[0]
    more = np.arange(ds.sizes[dim], dtype=np.float64)
    return ds.assign({NAME: (dim, more, {"units": NAME, "long_name": NAME})}).assign_attrs(comment=NAME, units=NAME)


def written(name: str, folder: Path) -> Path:
    """Return a file of such data, of such a name."""
    path = folder / f"{NAME}.{'fcs' if name == 'hca' else 'parquet'}"
    if name == "hca":
        io.write_cells(hostile(name)[["X"]], path)
    else:
        io.write_hits(hostile(name), path)
    return path
