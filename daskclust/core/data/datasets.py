"""Data sets of xarray, of what users pass and of columns that are known to be numbers."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np

from daskclust.core.data.foreign import separated, unit_of
from daskclust.core.data.inputs import check_one_dimension, is_dataset, table_of


def dataset_of(data: Any, names: Container[str] | None = None, dim: str = "point") -> Any:
    """Return a Dataset as it is, and columns of anything else as one along `dim`: those of some names, or all."""
    import xarray as xr

    if is_dataset(data):
        return with_unit_attrs(data)
    table = table_of(data)
    if table is None:
        raise TypeError(f"data must be a Dataset, a DataFrame or a mapping with named columns, got {type(data)!r}")

    there = [name for name in table if names is None or name in names]
    check_one_dimension(table.dims(there), ())
    return xr.Dataset({name: (dim, *table.variable(name)) for name in there})


def with_unit_attrs(ds: Any) -> Any:
    """Return a Dataset whose variables have their units in attributes, where libraries of units are in use."""
    carried = {name: unit_of(str(name), each) for name, each in ds.variables.items() if "units" not in each.attrs}
    given = {name: separated(str(name), ds[name].data) for name, unit in carried.items() if unit is not None}
    units = {name: (ds[name].dims, values, {**ds[name].attrs, "units": unit}) for name, (values, unit) in given.items()}
    return ds.assign(units) if units else ds


def variable_of(dims: Any, values: Any, attrs: Any = None, encoding: Any = None) -> Any:
    """Return an array as a variable; xarray need not ask if numbers in memory are Dask's, for which it imports Dask."""
    import xarray as xr

    is_plain = isinstance(values, np.ndarray) and values.dtype.kind in "fiub"
    return xr.Variable(dims, values, attrs, encoding, fastpath=is_plain)
