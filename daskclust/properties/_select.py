"""Rows of a table by an expression, evaluated without `eval`."""

from __future__ import annotations

import ast
import functools
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.columns import column, label_numbers
from daskclust.core.data.quote import meant
from daskclust.core.device.arrays import device_of, is_dask
from daskclust.core.merge.labels import NOISE

from ._columns import check, checked, label_values
from ._lazy import in_same_chunks, is_lazy

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_LONGEST = 500


def where(table: xr.Dataset, expression: str) -> xr.DataArray:
    """Return for which clusters an expression is true.

    Parameters
    ----------
    table : xarray.Dataset
        As of `cluster_table`, numpy or dask.
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
        For anything else in the expression, unknown names, and expressions that are neither true nor false.

    Notes
    -----
    Numbers are float64, integers of the table too. NaN compares false, and division by zero gives inf or NaN.

    Examples
    --------
    >>> table = xr.Dataset({"size": ("cluster", [2, 5, 9])}, coords={"cluster": [0, 1, 2]})
    >>> where(table, "size > 3 and not size == 9").values
    array([False,  True, False])
    """
    names = _names(expression, table)
    columns = {name: table[name].variable.data for name in names}
    # Whether it can be computed is asked of columns without rows: a lazy expression is refused at once, too.
    chosen = _chosen(*(np.empty(0, column.dtype) for column in columns.values()), names=names, expression=expression)
    if is_lazy(columns):
        import dask.array as da

        chosen = da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
            _chosen,
            *in_same_chunks(list(columns.values())),
            names=names,
            expression=expression,
            dtype=bool,
            meta=np.empty(0, dtype=bool),
            token="daskclust-properties-where",
        )
    else:
        chosen = _chosen(*columns.values(), names=names, expression=expression)
    coords = {"cluster": table["cluster"]} if "cluster" in table.coords else None
    return xr.DataArray(chosen, dims="cluster", coords=coords)


def select(table: xr.Dataset, expression: str) -> xr.Dataset:
    """Return the clusters for which an expression is true.

    Parameters
    ----------
    table : xarray.Dataset
        As of `cluster_table`.
    expression : str
        As of `where`.

    Returns
    -------
    xarray.Dataset
        The rows; ``cluster`` keeps their numbers. The variables in `expression` are computed, if they are lazy.

    Raises
    ------
    ValueError
        As `where`.

    Examples
    --------
    >>> table = xr.Dataset({"size": ("cluster", [2, 5, 9])}, coords={"cluster": [0, 1, 2]})
    >>> select(table, "size > 3 and not size == 9")["cluster"].values
    array([1])
    """
    return table.isel(cluster=np.flatnonzero(_on_host(where(table, expression).compute().data)))


def select_hits(
    ds: xr.Dataset, clusters: xr.Dataset | xr.DataArray, labels: str | xr.DataArray | npt.ArrayLike = "label"
) -> xr.Dataset:
    """Return the points of some clusters.

    Parameters
    ----------
    ds : xarray.Dataset
        Points along one dimension, numpy or dask.
    clusters : xarray.Dataset or xarray.DataArray of bool
        A table with the clusters to keep, as `select` returns it, or what `where` returns.
    labels : str or array_like of int, shape (n,), default "label"
        Cluster numbers, -1 for noise: a variable of `ds`, or an array.

    Returns
    -------
    xarray.Dataset
        The points in their order, with the numbers they had, lazy where `ds` is. Labels are computed, if they are lazy.

    Raises
    ------
    ValueError
        For labels that are no integers, below -1 or not as many as points, and clusters without the coordinate
        ``cluster``.

    Examples
    --------
    >>> ds = xr.Dataset({"x": ("hit", [1, 2, 3]), "label": ("hit", [0, 1, 0])})
    >>> table = xr.Dataset({"size": ("cluster", [2, 1])}, coords={"cluster": [0, 1]})
    >>> select_hits(ds, where(table, "size > 1"))["x"].values
    array([1, 3])
    """
    if "cluster" not in clusters.coords:
        raise ValueError(f"clusters have no coordinate 'cluster' but {list(clusters.coords)}; use select or where")
    numbers = _on_host(clusters["cluster"].data)
    if isinstance(clusters, xr.DataArray):
        if clusters.dtype != bool:
            raise ValueError(f"clusters must be a table or boolean, got dtype {clusters.dtype}; use where")
        numbers = numbers[_on_host(clusters.compute().data)]
    values = column("labels", label_values(ds, labels), label_numbers)
    dimension = ds[labels].dims[0] if isinstance(labels, str) else _point_dimension(ds, values)
    values = checked({"labels": values}, (ds.sizes[dimension],))["labels"]
    values = _on_host(values.compute() if is_dask(values) else values)
    check(values >= NOISE, values, "labels", f"must be {NOISE} (noise) or larger", 0)
    return ds.isel({dimension: np.flatnonzero(np.isin(values, numbers))})


def _point_dimension(ds: xr.Dataset, values: Any) -> Any:
    """Return the dimension of the points."""
    for name in ("hit", *ds.dims):
        if name in ds.dims and (name == "hit" or ds.sizes[name] == values.shape[0]):
            return name
    raise ValueError(f"labels must have the length of a dimension of the Dataset {dict(ds.sizes)}, got {values.shape}")


def _on_host(array: Any) -> npt.NDArray[Any]:
    """Return a numpy array."""
    return np.asarray(device_of(array).to_host(array))


def _names(expression: str, table: xr.Dataset) -> tuple[str, ...]:
    """Return the variables of the table that an expression names."""
    names = sorted({node.id for node in ast.walk(_tree(expression)) if isinstance(node, ast.Name)})
    known = [str(name) for name, v in table.variables.items() if v.dims == ("cluster",)]
    if unknown := [name for name in names if name not in known]:
        near = meant(unknown[0], known)
        raise ValueError(f"{expression!r}: unknown {', '.join(unknown)}{near}; the table has {', '.join(known)}")
    return tuple(names)


def _tree(expression: str) -> ast.expr:
    """Return the tree of an expression."""
    if len(expression) > _LONGEST:
        raise ValueError(f"the expression has {len(expression)} characters; {_LONGEST} are the most")
    try:
        with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
            return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{expression!r} is no expression: {error}") from error


def _chosen(*columns: Any, names: tuple[str, ...], expression: str) -> Any:
    """Return the value of an expression for these columns: true or false for each row."""
    # Integers become float64: a difference of small unsigned ones would wrap, a product overflow.
    values = {
        name: column if column.dtype == bool else column.astype(np.float64, copy=False)
        for name, column in zip(names, columns, strict=True)
    }
    try:
        with np.errstate(all="ignore"):
            chosen = _evaluate(_tree(expression), values, expression)
    except (OverflowError, ZeroDivisionError, RecursionError, TypeError) as error:
        raise ValueError(f"{expression!r} cannot be computed: {error}") from error
    if not (_is_condition(chosen) and np.ndim(chosen) == 1):
        raise ValueError(f"{expression!r} must compare variables of the table, as in 'size > 3'")
    return chosen


def _evaluate(node: ast.expr, values: Mapping[Any, npt.NDArray[Any]], expression: str) -> Any:
    """Return the value of a part of an expression; what is not listed here is refused."""

    def value(part: ast.expr, *, condition: bool) -> Any:
        result = _evaluate(part, values, expression)
        if _is_condition(result) is not condition:
            wanted = "a comparison" if condition else "a number"
            raise ValueError(f"{expression!r}: {ast.unparse(part)!r} is not {wanted}")
        return result

    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.Name(id=name):
            return values[name]
        case ast.BoolOp(op=op, values=parts):
            combine = np.logical_and if isinstance(op, ast.And) else np.logical_or
            return functools.reduce(combine, [value(part, condition=True) for part in parts])
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return np.logical_not(value(part, condition=True))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=part):
            return -value(part, condition=False) if isinstance(sign, ast.USub) else value(part, condition=False)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            result = _ARITHMETIC[type(op)](value(left, condition=False), value(right, condition=False))
            if isinstance(result, complex):
                raise ValueError(f"{expression!r} cannot be computed: {ast.unparse(node)!r} is no real number")
            return result
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARISONS for op in ops):
            sides = [value(part, condition=False) for part in (left, *others)]
            steps = [_COMPARISONS[type(op)](a, b) for op, a, b in zip(ops, sides, sides[1:], strict=False)]
            return functools.reduce(np.logical_and, steps)
    raise ValueError(
        f"{expression!r}: {ast.unparse(node)!r} is not allowed; use names, numbers, comparisons, arithmetic, "
        "and, or, not"
    )


def _is_condition(value: Any) -> bool:
    """Return whether a value is true or false, not a number."""
    return isinstance(value, bool) or (hasattr(value, "dtype") and value.dtype == bool)
