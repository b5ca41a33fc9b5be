"""Rows of a table by an expression: a tree of names, numbers, arithmetic and comparisons, and nothing else."""

from __future__ import annotations

import ast
import functools
import operator
import warnings
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.columns import column, label_numbers
from daskclust.core.data.datasets import dataset_of
from daskclust.core.data.lazy import lazy_along, meta_of, values_or_index
from daskclust.core.data.quote import meant
from daskclust.core.device.arrays import is_dask, to_host

from ._columns import check_labels, checked, label_values
from ._lazy import in_same_chunks, mapped

if TYPE_CHECKING:
    import xarray as xr

_OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.And: operator.and_, ast.Or: operator.or_,
    ast.Not: operator.invert, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip
_LONGEST = 500
_BITS = 1 << 20  # clusters of which the bits are packed at a time


def where(table: xr.Dataset, expression: str) -> xr.DataArray:
    """Return for which clusters an expression is true.

    Parameters
    ----------
    table : xarray.Dataset, DataFrame or mapping
        As of `cluster_table`, numpy or dask; ``cluster``, a column or the index of pandas, has the numbers.
    expression : str
        Comparisons of variables and numbers, with arithmetic, ``and``, ``or``, ``not`` and parentheses, such as
        ``"size > 3 and energy > 20"`` or ``"0 <= layer < 10"``. Nothing else is evaluated: no calls, no attributes.

    Returns
    -------
    xarray.DataArray of bool, shape (k,)
        Along ``cluster``, with its numbers; lazy if a variable in `expression` is.

    Raises
    ------
    ValueError
        For anything else in the expression, unknown names, variables that are no numbers, and expressions that are
        neither true nor false.

    Notes
    -----
    All numbers are float64. NaN compares false, and division by zero gives inf or NaN.

    Examples
    --------
    >>> import xarray as xr
    >>> table = xr.Dataset({"size": ("cluster", [2, 5, 9])}, coords={"cluster": [0, 1, 2]})
    >>> where(table, "size > 3 and not size == 9").values
    array([False,  True, False])
    """
    import xarray as xr

    table = _table_of(table)
    names = _names(_tree(expression), expression, table)
    columns = [column(name, table[name]) for name in names]
    choose = functools.partial(_chosen, names=names, expression=expression)
    chosen = choose(*(np.empty(0, column.dtype) for column in columns))  # so that lazy tables refuse at once, too
    if any(map(is_dask, columns)):
        chosen = mapped("where", choose, *in_same_chunks(columns), dtype=bool)
    else:
        chosen = choose(*columns)
    coords = {"cluster": table["cluster"]} if "cluster" in table.coords else None
    return xr.DataArray(chosen, dims="cluster", coords=coords)


def select(table: xr.Dataset, expression: str) -> xr.Dataset:
    """Return the clusters for which an expression is true.

    Parameters
    ----------
    table, expression
        As of `where`.

    Returns
    -------
    xarray.Dataset
        The rows; ``cluster`` keeps their numbers. Where a variable in `expression` is lazy, so are the rows, and
        ``cluster`` has no index, which ``.set_xindex("cluster")`` makes. How many rows each chunk has is computed: a
        table that is used again should be persisted before.
    """
    table = _table_of(table)
    chosen = where(table, expression).data
    return rows_of(table, "cluster", chosen)


def select_hits(
    ds: Any, clusters: xr.Dataset | xr.DataArray, labels: str | xr.DataArray | npt.ArrayLike = "label"
) -> xr.Dataset:
    """Return the points of some clusters.

    Parameters
    ----------
    ds : xarray.Dataset, DataFrame or mapping
        Points along one dimension, numpy or dask, as of `cluster_table`.
    clusters : xarray.Dataset, DataFrame, mapping or xarray.DataArray of bool
        A table with the clusters to keep, as `select` returns it, or what `where` returns.
    labels : str or array_like of int, shape (n,), default "label"
        Cluster numbers, -1 for noise: a variable of `ds`, or an array.

    Returns
    -------
    xarray.Dataset
        The points in their order, with the numbers they had, lazy where `ds` is; how many each chunk has is computed.

    Raises
    ------
    ValueError
        For labels that are no integers, below -1 or not as many as points, and clusters without the coordinate
        ``cluster``.

    Notes
    -----
    Of lazy points, what `where` returns of a lazy table stays on the workers, a bit for each cluster. The numbers of
    other clusters come into memory.

    Examples
    --------
    >>> import xarray as xr
    >>> ds = xr.Dataset({"x": ("hit", [1, 2, 3]), "label": ("hit", [0, 1, 0])})
    >>> table = xr.Dataset({"size": ("cluster", [2, 1])}, coords={"cluster": [0, 1]})
    >>> select_hits(ds, where(table, "size > 1"))["x"].values
    array([1, 3])
    """
    import xarray as xr

    clusters = clusters if isinstance(clusters, xr.DataArray) else _table_of(clusters)
    if "cluster" not in clusters.coords:
        raise ValueError(f"clusters have no coordinate 'cluster' but {list(clusters.coords)}; use select or where")
    if isinstance(clusters, xr.DataArray) and clusters.dtype != bool:
        raise ValueError(f"clusters must be a table or boolean, got dtype {clusters.dtype}; use where")
    ds = dataset_of(ds)
    values = column("labels", label_values(ds, labels), label_numbers)
    fits = [name for name in ds.dims if name == "hit" or ds.sizes[name] == values.shape[0]]
    if not fits:
        raise ValueError(
            f"labels must have the length of a dimension of the Dataset {dict(ds.sizes)}, got {values.shape}"
        )
    dimension = ds[labels].dims[0] if isinstance(labels, str) else "hit" if "hit" in fits else fits[0]
    values = checked({"labels": values}, (ds.sizes[dimension],), {})["labels"]
    is_lazy = bool(ds.chunks) and is_dask(values)
    among, known = _lookup(clusters, is_lazy)
    if not is_lazy:
        values = _on_host(values)
        check_labels(values, 0)
        return rows_of(ds, dimension, among(values, known))
    known = known if is_dask(known) else lazy_along(known, known.shape)
    chosen = mapped("chosen", _chosen_points, values, known, among=among, dtype=bool, chunks=values.chunks)
    return rows_of(ds, dimension, chosen)


def _table_of(table: Any) -> xr.Dataset:
    """Return a table of clusters as a Dataset; pandas has their numbers in the index."""
    if getattr(table, "ndim", 0) == 2 and getattr(getattr(table, "index", None), "name", None) == "cluster":
        table = table.reset_index()
    found: xr.Dataset = dataset_of(table, dim="cluster")
    return found


def rows_of(ds: xr.Dataset, dim: Hashable, chosen: Any) -> xr.Dataset:
    """Return the rows along a dimension that are chosen, by an array of bool; lazy ones in the chunks of this."""
    if not is_dask(chosen):
        return ds.isel({dim: np.flatnonzero(to_host(chosen))})
    import dask.array as da
    import xarray as xr

    counts = mapped("count", _count, chosen, dtype=np.int64, chunks=((1,) * chosen.numblocks[0],)).compute()
    found = {}
    for name, v in ds.variables.items():
        if dim in v.dims:
            axis = v.dims.index(dim)
            values = lazy_along(values_or_index(v, ds.indexes.get(name)), chosen.chunks[0], axis)
            options = {"axis": axis, "adjust_chunks": {dim: tuple(counts.tolist())}, "dtype": v.dtype}
            options |= {"meta": meta_of(values), "align_arrays": False, "token": "daskclust-properties-select"}
            found[name] = v.dims, da.blockwise(_take, v.dims, values, v.dims, chosen, (dim,), **options), v.attrs
    columns = {name: found.pop(name, v) for name, v in ds.data_vars.items()}
    rows = xr.Dataset(columns, coords=ds.drop_dims([dim]).coords, attrs=ds.attrs)
    return rows.assign_coords(xr.Coordinates(found, indexes={}))


def _count(chosen: Any) -> npt.NDArray[np.int64]:
    return np.array([chosen.sum()], np.int64)


def _take(values: Any, chosen: Any, *, axis: int) -> Any:
    return values[(slice(None),) * axis + (chosen,)]


def _lookup(clusters: xr.Dataset | xr.DataArray, is_lazy: bool) -> tuple[Callable[[Any, Any], Any], Any]:
    """Return what tells which numbers are among the clusters, and what it needs beside them."""
    import pandas as pd
    import xarray as xr

    index, has_mask = clusters.indexes.get("cluster"), isinstance(clusters, xr.DataArray)
    is_whole = isinstance(index, pd.RangeIndex) and (index.start, index.step) == (0, 1)
    if is_lazy and is_whole and has_mask and is_dask(clusters.data):
        mask = clusters.data.rechunk(_BITS)
        sizes = (tuple(-(-size // 8) for size in mask.chunks[0]),)
        return _in_bits, mapped("bits", np.packbits, mask, dtype=np.uint8, chunks=sizes).rechunk(-1)
    numbers = _on_host(clusters["cluster"].data)
    return np.isin, numbers[_on_host(clusters.data)] if has_mask else numbers


def _in_bits(numbers: Any, bits: Any) -> Any:
    """Return whether the bits of some numbers are set."""
    inside = (numbers >= 0) & (numbers < 8 * len(bits))
    found = np.zeros(len(numbers), bool)
    found[inside] = bits[numbers[inside] >> 3] & (128 >> (numbers[inside] & 7)) != 0
    return found


def _chosen_points(labels: Any, known: Any, *, among: Callable[[Any, Any], Any], block_info: Any) -> Any:
    """Return which points of one chunk are of clusters to keep; dask tells where it begins."""
    labels = to_host(labels)
    check_labels(labels, block_info[0]["array-location"][0][0])
    return among(labels, known)


def _on_host(array: Any) -> npt.NDArray[Any]:
    """Return a numpy array, computed where it is lazy."""
    array = array.compute() if is_dask(array) else array
    return np.asarray(to_host(array))


def _tree(expression: str) -> ast.expr:
    if len(expression) > _LONGEST:
        raise ValueError(f"the expression must have at most {_LONGEST} characters, got {len(expression)}")
    try:
        with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
            return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{expression!r} is not a valid expression: {error}") from error


def _names(tree: ast.expr, expression: str, table: xr.Dataset) -> tuple[str, ...]:
    """Return the variables of the table that an expression names."""
    names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
    known = [str(name) for name, v in table.variables.items() if v.dims == ("cluster",)]
    if unknown := [name for name in names if name not in known]:
        near = meant(unknown[0], known)
        raise ValueError(f"{expression!r}: unknown {', '.join(unknown)}{near}; the table has {', '.join(known)}")
    return tuple(names)


def _chosen(*columns: Any, names: tuple[str, ...], expression: str) -> Any:
    """Return the value of an expression for these columns: true or false for each row."""
    # Integers become float64: a difference of small unsigned ones would wrap, a product overflow.
    values = {
        name: column if column.dtype == bool else column.astype(np.float64, copy=False)
        for name, column in zip(names, columns, strict=True)
    }
    try:
        with np.errstate(all="ignore"):
            chosen = _value(_tree(expression), values, expression)
    except (OverflowError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{expression!r} cannot be computed: and, or, not join comparisons, arithmetic takes numbers below 1e308"
        ) from error
    if np.ndim(chosen) != 1 or chosen.dtype != bool:
        raise ValueError(f"{expression!r} must compare variables of the table, as in 'size > 3'")
    return chosen


def _value(node: ast.expr, values: Mapping[str, Any], expression: str) -> Any:
    """Return the value of a part of an expression, numbers as float64: 9**9**9 is infinite, and takes no time."""
    steps: list[tuple[ast.AST, list[ast.expr]]] = []
    match node:
        case ast.Name():
            return values[node.id]
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return np.float64(number)
        case ast.BoolOp():
            return functools.reduce(_OPERATIONS[type(node.op)], (_value(v, values, expression) for v in node.values))
        case ast.UnaryOp():
            steps = [(node.op, [node.operand])]
        case ast.BinOp() if type(node.op) in _OPERATIONS:  # of numbers: NumPy's sum of True and True is True
            return _OPERATIONS[type(node.op)](*(1.0 * _value(v, values, expression) for v in (node.left, node.right)))
        case ast.Compare():
            sides = [node.left, *node.comparators]
            steps = [(sign, sides[k : k + 2]) for k, sign in enumerate(node.ops)]
    if not steps or any(type(sign) not in _OPERATIONS for sign, _ in steps):
        words = "use names, numbers, comparisons, arithmetic, and, or, not"
        raise ValueError(f"{expression!r}: {ast.unparse(node)!r} is not allowed; {words}")
    found = [_OPERATIONS[type(sign)](*(_value(part, values, expression) for part in parts)) for sign, parts in steps]
    return functools.reduce(operator.and_, found)
