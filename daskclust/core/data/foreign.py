"""Data of libraries that are imported nowhere here: Arrow's tables, AnnData, and the units that arrays carry."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from daskclust.core.data.lazy import meta_of
from daskclust.core.data.units import parse
from daskclust.core.device.arrays import is_dask

_BASES = ("cm", "rad", "ns", "keV", "cm/s", "g")
_UNREAD = "{} has a type that pyarrow does not read ({}); cast it to one of 64 bits, or leave it out"
_UNITS = {"astropy": "unit", "unyt": "units", "pint": "units"}  # the attribute of arrays that has theirs


def comes_from(thing: Any, *packages: str) -> bool:
    """Return whether an object's class, or one of its bases, is of one of the packages."""
    return any(base.__module__.partition(".")[0] in packages for base in type(thing).__mro__)


def gives_arrow(data: Any) -> bool:
    """Return whether an object hands its columns over by Arrow's interface, or by that of data frames."""
    return any(hasattr(data, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__"))


def arrow_table(data: Any) -> Any:
    """Return a table of any library as one of pyarrow's; None for a single column, which has no names."""
    import pyarrow as pa

    if not hasattr(data, "__arrow_c_stream__") and not hasattr(data, "__arrow_c_array__"):
        from pyarrow.interchange import from_dataframe

        return from_dataframe(data)
    try:
        return pa.table(data)
    except (TypeError, ValueError) as error:
        if hasattr(data, "columns"):
            raise TypeError(_UNREAD.format("a column", error)) from error
        return None  # a single column


def arrow_series(name: str, values: Any) -> Any:
    """Return a column of any library as a Series of pandas; numbers have Arrow's type, which tells what is missing."""
    import pandas as pd
    import pyarrow as pa

    try:
        column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.chunked_array(values)
    except pa.ArrowInvalid as error:
        raise TypeError(_UNREAD.format(name, error)) from error
    if pa.types.is_dictionary(column.type):  # pandas refuses equal values, older versions of pyarrow unsigned codes
        values = column.type.value_type
        column = column.cast(values if pa.types.is_primitive(values) else pa.dictionary(pa.int64(), values))
    return column.to_pandas(types_mapper=pd.ArrowDtype if pa.types.is_primitive(column.type) else None)


def anndata_parts(data: Any) -> tuple[Any, tuple[Any, ...], Any] | None:
    """Return ``X`` of an AnnData, lazy where it is on disk, names of variables and a table of cells; None for others.

    Arrays of an AnnData have classes of its package, too.
    """
    if not (comes_from(data, "anndata") and hasattr(data, "obs")):
        return None
    X = data.X
    if X is None or hasattr(X, "to_memory") or comes_from(meta_of(X) if is_dask(X) else X, "scipy"):
        raise TypeError(
            f"X of the AnnData is {'missing' if X is None else 'sparse'}, and coordinates are dense; give an array, "
            "such as adata.obsm['X_pca'], adata.layers[...] or adata[:, names].X.toarray()"
        )
    if comes_from(X, "h5py", "zarr"):
        import dask.array as da

        X = da.from_array(X, chunks=("auto", -1))  # type: ignore[no-untyped-call,unused-ignore]
    return X, tuple(data.var_names), data.obs


def separated(name: str, values: Any) -> tuple[Any, str | None]:
    """Return the numbers of an array of astropy, unyt or pint and its unit; others as they are, and None.

    An array of another class with a unit is refused: what the unit means is not known.
    """
    package = next((each for each in _UNITS if each in sys.modules and comes_from(values, each)), None)
    if package is None:
        if isinstance(values, list | tuple) and values and separated(name, values[0])[1] is not None:
            raise TypeError(f"{name} is a list of quantities; make one array of them, with one unit")
        has_own = hasattr(values, "__array__") and not comes_from(values, "pandas", "xarray", "dask", "cupy")
        unit = getattr(values, "unit", getattr(values, "units", None)) if has_own else None
        if unit is not None and not isinstance(values, np.recarray):
            raise TypeError(
                f"{name} has the unit {str(unit)!r} in a {type(values).__name__}, whose units are not read; give its "
                f"numbers, and name the unit in attrs['units'] of a Dataset"
            )
        return values, None
    unit = _name_of(getattr(values, _UNITS[package], None), package)
    if package == "pint":
        values = values.magnitude
    elif hasattr(values, "unmasked"):  # astropy's masked quantities
        values = np.ma.MaskedArray(np.asarray(values.unmasked), np.asarray(values.mask))
    elif isinstance(values, np.ma.MaskedArray):
        values = np.ma.MaskedArray(np.asarray(values.data), values.mask)
    elif hasattr(values, "__dask_graph__"):
        raise TypeError(
            f"{name} is a dask array of a class of {package}; divide it by its unit, and name that in attrs"
        )
    else:
        values = np.asarray(values)
    return values, unit


def _name_of(unit: Any, package: str) -> str | None:
    """Return a unit by a name that is known here, else as a multiple of one, else as its library writes it."""
    if unit is None:
        return None
    text = f"{unit:~}" if package == "pint" else str(unit)
    with_h = text.replace(" / littleh", "/h")
    names = [text, with_h, *map(str, getattr(unit, "names", ()))]
    names += [] if text.endswith("/ h") else [text.replace(" ", "")]  # "/ h" is by hour
    found = next((name for name in names if parse(name) is not None), None)
    for base in () if found is not None or with_h != text else _BASES:
        try:
            return f"{float(np.asarray((1 * unit).to(base).m if package == 'pint' else (1 * unit).to(base)))!r} {base}"
        except Exception:  # each library has errors of its own for units of another quantity
            continue
    return found or text or "1"


def unit_of(name: str, values: Any) -> Any:
    """Return the unit of a column: what its attributes name, or what its array carries; None without one."""
    if comes_from(values, "pandas", "dask"):
        return None
    named = getattr(values, "attrs", {}).get("units")
    if named is None and comes_from(values, "xarray"):
        # the data of a file are not read for this where no library of units is there
        values = values.data if any(package in sys.modules for package in _UNITS) else None
    return separated(name, values)[1] if named is None else named
