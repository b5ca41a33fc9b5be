"""Register ``ds.clust`` with xarray, cheaply: the class is looked up when it is first used.

Whatever makes a Dataset imports this, so that the accessor is there wherever a Dataset of daskclust's is.
"""

from __future__ import annotations

import importlib
from typing import Any

import xarray as xr


def clust(ds: xr.Dataset) -> Any:
    """Return the accessor of a Dataset."""
    return importlib.import_module("daskclust.accessor").ClustAccessor(ds)


xr.register_dataset_accessor("clust")(clust)
