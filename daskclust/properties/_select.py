"""Rows of a table by an expression, evaluated without `eval`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

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


def select(table: xr.Dataset, expression: str) -> xr.Dataset:
    """Return the clusters for which an expression is true.

    Parameters
    ----------
    table : xarray.Dataset
        As of `cluster_table`.
    expression : str
        Comparisons of variables and numbers, with arithmetic, ``and``, ``or``, ``not`` and parentheses, such as
        ``"size > 3 and energy > 20"`` or ``"0 <= layer < 10"``. Nothing else is evaluated: no calls, no attributes.

    Returns
    -------
    xarray.Dataset
        The rows; ``cluster`` keeps their numbers. The variables in `expression` are computed, if they are lazy.

    Raises
    ------
    ValueError
        For anything else in the expression, unknown names, and expressions that are neither true nor false.

    Notes
    -----
    Numbers are float64. NaN compares false, and division by zero gives inf or NaN.

    Examples
    --------
    >>> table = xr.Dataset({"size": ("cluster", [2, 5, 9])}, coords={"cluster": [0, 1, 2]})
    >>> select(table, "size > 3 and not size == 9")["cluster"].values
    array([1])
    """
    if len(expression) > _LONGEST:
        raise ValueError(f"the expression has {len(expression)} characters; {_LONGEST} are the most")
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{expression!r} is no expression: {error}") from error
    names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
    unknown = [name for name in names if name not in table.variables or table[name].dims != ("cluster",)]
    if unknown:
        known = [str(name) for name, v in table.variables.items() if v.dims == ("cluster",)]
        raise ValueError(f"{expression!r}: unknown {', '.join(unknown)}; the table has {', '.join(known)}")
    values = {name: np.asarray(v.values) for name, v in table[names].compute().variables.items()}
    try:
        with np.errstate(all="ignore"):
            chosen = _evaluate(tree, values, expression)
    except (OverflowError, ZeroDivisionError, RecursionError) as error:
        raise ValueError(f"{expression!r} cannot be computed: {error}") from error
    if not (_is_condition(chosen) and np.ndim(chosen) == 1):
        raise ValueError(f"{expression!r} must compare variables of the table, as in 'size > 3'")
    return table.isel(cluster=np.flatnonzero(chosen))


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
            return combine.reduce([value(part, condition=True) for part in parts])
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return np.logical_not(value(part, condition=True))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=part):
            return -value(part, condition=False) if isinstance(sign, ast.USub) else value(part, condition=False)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _ARITHMETIC[type(op)](value(left, condition=False), value(right, condition=False))
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARISONS for op in ops):
            sides = [value(part, condition=False) for part in (left, *others)]
            steps = [_COMPARISONS[type(op)](a, b) for op, a, b in zip(ops, sides, sides[1:], strict=False)]
            return np.logical_and.reduce(steps)
    raise ValueError(
        f"{expression!r}: {ast.unparse(node)!r} is not allowed; use names, numbers, comparisons, arithmetic, "
        "and, or, not"
    )


def _is_condition(value: Any) -> bool:
    """Return whether a value is true or false, not a number."""
    return np.asarray(value).dtype == bool
