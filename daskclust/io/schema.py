"""What the variables of a data set are called, which kind they have, and in which unit they are.

A field of science is one `Field`: a point dimension and a tuple of `Variable`. Readers turn the columns of a file into
a Dataset with `to_dataset`, which accepts usual aliases and checks kinds at the door.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

import daskclust.core.registration  # noqa: F401 (``ds.clust``)

Kind = Literal["float", "int", "bool"]
Columns = Sequence[str] | Mapping[str, str | None]

REST = "*"
"""Key of a `columns=` mapping that stands for every column it does not name."""

# A float64 holds every whole number below this one, and not every one above.
_EXACT_FLOAT = 2**53


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of a data set.

    Parameters
    ----------
    name : str
        Name in the Dataset.
    kind : {"float", "int", "bool"}
        What the values are. A float variable keeps float32 and float64; an int variable keeps every integer type.
    dtype : str
        Type that values of another kind are converted to, when nothing is lost by it.
    unit : str
        Goes to ``attrs["units"]``; "1" when there is none.
    doc : str
        Goes to ``attrs["long_name"]``.
    aliases : tuple of str
        Other names for it in files, in lower case; upper and lower case are not told apart.
    """

    name: str
    kind: Kind
    dtype: str
    unit: str
    doc: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """The variables that data sets of one field of science have.

    Parameters
    ----------
    name : str
        Name of the field; goes to ``attrs["field"]``.
    dim : str
        The point dimension.
    variables : tuple of Variable
        All that are known. A data set may have others.
    required : tuple of str
        Those that every data set must have.
    headerless : mapping of int to tuple of str
        Column names of a file without names, by the number of its columns.
    """

    name: str
    dim: str
    variables: tuple[Variable, ...]
    required: tuple[str, ...]
    headerless: Mapping[int, tuple[str, ...]]

    def find(self, name: str) -> Variable | None:
        """Return the variable with exactly this name, or None."""
        return next((v for v in self.variables if v.name == name), None)


CALORIMETER = Field(
    name="calorimeter",
    dim="hit",
    variables=(
        Variable("x", "float", "float64", "cm", "position across the beam", ("pos_x", "posx", "hit_x")),
        Variable("y", "float", "float64", "cm", "position across the beam", ("pos_y", "posy", "hit_y")),
        Variable("z", "float", "float64", "cm", "position along the beam", ("pos_z", "posz", "hit_z")),
        Variable("eta", "float", "float64", "1", "pseudorapidity"),
        Variable("phi", "float", "float64", "rad", "azimuth"),
        Variable("layer", "int", "int32", "1", "layer number", ("layerid", "layer_id", "lay")),
        Variable("energy", "float", "float64", "GeV", "deposited energy, the weight", ("e", "weight", "w", "edep")),
        Variable("event", "int", "int64", "1", "event number", ("event_id", "eventid", "evt")),
        Variable("truth", "int", "int64", "1", "true cluster number, noise -1"),
        Variable("label", "int", "int64", "1", "cluster number, noise -1"),
        Variable("density", "float", "float64", "GeV", "local density"),
        Variable("delta", "float", "float64", "cm", "distance to the nearest higher hit"),
        Variable("nearest_higher", "int", "int64", "1", "index of the nearest higher hit, none -1"),
        Variable("is_seed", "bool", "bool", "1", "whether the hit is a seed"),
    ),
    required=("x", "y"),
    headerless={2: ("x", "y"), 3: ("x", "y", "layer"), 4: ("x", "y", "layer", "energy")},
)

FIELDS: dict[str, Field] = {CALORIMETER.name: CALORIMETER}
"""Every field by its name. A new one is added here."""


@dataclass(frozen=True, slots=True)
class Naming:
    """How the columns of one file become variables of one field.

    Parameters
    ----------
    field : Field
        Gives aliases and required names.
    columns : sequence of str, mapping of str to str or None, or None
        The reader's ``columns=``.
    source : str
        The file, for messages.
    """

    field: Field
    columns: Columns | None
    source: str

    def names(self, found: Sequence[str] | None, count: int) -> list[str]:
        """Return the `count` names of the columns of a file.

        Parameters
        ----------
        found : sequence of str or None
            The names in the file, None where it has none.
        count : int
            Number of columns.

        Returns
        -------
        list of str
            From a ``columns=`` sequence, else from the file, else by the number of columns.

        Raises
        ------
        ValueError
            If the numbers differ, or no names are given and the number of columns does not tell them.
        """
        if self.columns is not None and not isinstance(self.columns, Mapping):
            names = _checked_sequence(self.columns)
            if len(names) != count:
                raise ValueError(
                    f"{self.source} has {count} columns, but columns= names {len(names)}: {names}; name every column"
                )
            return names
        if found is not None:
            return list(found)
        if count not in self.field.headerless:
            known = "; ".join(f"{n}: {', '.join(names)}" for n, names in self.field.headerless.items())
            raise ValueError(
                f"{self.source} has {count} columns without names, which is known for ({known}) only; "
                "name them with columns=[...]"
            )
        return list(self.field.headerless[count])

    def choose(self, found: Sequence[str], *, named: bool = False) -> dict[str, str]:
        """Return which columns to read and the variable that each becomes.

        Parameters
        ----------
        found : sequence of str
            Names of all columns, in the order of the file.
        named : bool, default False
            The format always has names, so that a ``columns=`` sequence would be a mistake.

        Returns
        -------
        dict of str to str
            Column to variable, in the order of the file.

        Raises
        ------
        ValueError
            For duplicates, unknown keys, two columns for one variable and missing required variables.
        """
        if named and self.columns is not None and not isinstance(self.columns, Mapping):
            raise ValueError(
                f"the columns of {self.source} have names ({_listed(found)}); "
                "give columns= as a mapping {name in the file: name of the variable}"
            )
        twice = sorted({name for name in found if list(found).count(name) > 1})
        if twice:
            raise ValueError(f"{self.source} has columns of the same name {twice}; rename them in the file")
        given: Mapping[str, str | None] = self.columns if isinstance(self.columns, Mapping) else {}
        chosen = _explicit(given, found, self.source)
        if REST not in given:
            rest = [name for name in found if name not in given]
            chosen.update(_by_alias(rest, set(chosen.values()), self.field, self.source))
        chosen = {name: chosen[name] for name in found if name in chosen}
        _check_complete(chosen, found, self.field, self.source)
        return chosen


def _checked_sequence(columns: Sequence[str]) -> list[str]:
    """Return the names as a list, or say what a ``columns=`` sequence must be."""
    if isinstance(columns, str) or not all(isinstance(name, str) and name for name in columns):
        raise ValueError(f"columns must be a list of names or a mapping of names, got {columns!r}")
    return list(columns)


def _listed(names: Sequence[str]) -> str:
    """Return names for a message, the first twenty of them."""
    return ", ".join(map(repr, names[:20])) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _explicit(given: Mapping[str, str | None], found: Sequence[str], source: str) -> dict[str, str]:
    """Return the part of a naming that the user's mapping settles."""
    if given.get(REST) is not None:
        raise ValueError(f"columns[{REST!r}] must be None (leave out all other columns), got {given[REST]!r}")
    unknown = [name for name in given if name != REST and name not in found]
    if unknown:
        raise ValueError(f"{source} has no column {_listed(unknown)}; it has {_listed(found)}")
    chosen: dict[str, str] = {}
    for name, ours in given.items():
        if ours is None:
            continue
        if not isinstance(ours, str) or not ours:
            raise ValueError(f"columns[{name!r}] must be the name of a variable or None, got {ours!r}")
        if ours in chosen.values():
            raise ValueError(f"columns= gives two columns the name {ours!r}; a variable has one column")
        chosen[name] = ours
    return chosen


def _by_alias(names: Sequence[str], taken: set[str], field: Field, source: str) -> dict[str, str]:
    """Return names of variables for columns: the variable's own name wins, then an alias, then the column's own."""
    chosen: dict[str, str] = {}
    own = {v.name: v.name for v in field.variables}
    aliases = {alias: v.name for v in field.variables for alias in v.aliases}
    for table in (own, aliases):
        used = taken | set(chosen.values())
        matches = {name: table[name.lower()] for name in names if name not in chosen and name.lower() in table}
        for name, ours in matches.items():
            same = [other for other, its in matches.items() if its == ours]
            if ours in used:
                continue
            if len(same) > 1:
                raise ValueError(
                    f"columns {_listed(same)} of {source} could all be {ours!r}; "
                    f"choose one with columns={{{same[0]!r}: {ours!r}, {same[1]!r}: None}}"
                )
            chosen[name] = ours
    for name in names:
        if name not in chosen:
            if name in taken or name in chosen.values():
                raise ValueError(f"column {name!r} of {source} is in the way of another one; rename it with columns=")
            chosen[name] = name
    return chosen


def _check_complete(chosen: Mapping[str, str], found: Sequence[str], field: Field, source: str) -> None:
    """Raise when a required variable has no column."""
    missing = [name for name in field.required if name not in chosen.values()]
    if missing:
        raise ValueError(
            f"{source} has no column for {_listed(missing)}; it has {_listed(found)}: "
            f"name it with columns={{'its name': {missing[0]!r}}}"
        )


def conform(values: npt.ArrayLike, variable: Variable, *, first_row: int = 0) -> npt.NDArray[Any]:
    """Return values in a type that the variable may have.

    Parameters
    ----------
    values : array_like, shape (n,)
        Numbers or booleans.
    variable : Variable
        The variable they become. Floats keep float32 or float64 (float16 becomes float32, others float64), integers
        keep their type; whole floats become ``variable.dtype`` where an integer is due.
    first_row : int, default 0
        Row of ``values[0]`` in the data set, for messages.

    Returns
    -------
    numpy.ndarray, shape (n,)
        In native byte order; the input itself where nothing has to change.

    Raises
    ------
    ValueError
        If a value cannot be represented; the message has its row, counted from 0.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"variable {variable.name!r} must be numeric, got dtype {array.dtype}")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if variable.kind == "float":
        if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
            return array.astype(np.float32, copy=False) if array.dtype.itemsize < 4 else array
        return array.astype(variable.dtype)
    if variable.kind == "bool":
        return array if array.dtype.kind == "b" else _whole(array, variable, 0, 1, first_row).astype(bool)
    if array.dtype.kind in "iu":
        return array
    bounds = np.iinfo(variable.dtype)
    low, high = max(bounds.min, 1 - _EXACT_FLOAT), min(bounds.max, _EXACT_FLOAT - 1)
    return _whole(array, variable, low, high, first_row).astype(variable.dtype)


def _whole(array: npt.NDArray[Any], variable: Variable, low: int, high: int, first_row: int) -> npt.NDArray[Any]:
    """Return the array if it has whole numbers from low to high only, else name the first row that has not."""
    if array.dtype.kind == "b":
        return array
    # In float64, as a smaller type would round the bounds; and so written that NaN, which compares false, is wrong.
    bounds = np.array([[low], [high]], dtype=np.float64)
    good = (array >= bounds[0]) & (array <= bounds[1])
    good &= array == np.floor(array, where=good, out=np.zeros_like(array))
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(
            f"variable {variable.name!r} must hold whole numbers from {low} to {high}, got {array[row]!s} in row "
            f"{first_row + row} (counted from 0); correct it, or keep the column under another name with columns="
        )
    return array


def target_dtype(dtype: npt.DTypeLike, variable: Variable | None) -> np.dtype[Any]:
    """Return the type that `conform` gives to values of a type, without any values.

    Parameters
    ----------
    dtype : dtype_like
        Type in the file.
    variable : Variable or None
        None for a variable that the field does not know: it keeps its type.

    Returns
    -------
    numpy.dtype
        As `conform` gives it.
    """
    if variable is None:
        return np.dtype(dtype).newbyteorder("=")
    return conform(np.empty(0, dtype=dtype), variable).dtype


def to_dataset(
    columns: Mapping[str, Any],
    *,
    field: str = "calorimeter",
    units: Mapping[str, str] | None = None,
    source: str | os.PathLike[str] | None = None,
) -> xr.Dataset:
    """Make a Dataset of columns, and check their names, kinds and lengths.

    Parameters
    ----------
    columns : mapping of str to array_like, each of shape (n,)
        Names are those of the field's variables or their aliases; others are kept as they are. Dask arrays stay lazy.
    field : str, default "calorimeter"
        A key of `FIELDS`.
    units : mapping of str to str, optional
        Units of variables that the field does not know.
    source : str or path, optional
        Goes to ``attrs["source"]``, and into messages.

    Returns
    -------
    xarray.Dataset
        One dimension (``hit`` for calorimeters), ``attrs["units"]`` on every variable whose unit is known.

    Raises
    ------
    ValueError
        For an unknown field, missing or ambiguous names, unequal lengths and values of another kind.

    Notes
    -----
    No array is copied unless its type changes. Values are not searched for NaN: estimators do so.

    Examples
    --------
    >>> ds = to_dataset({"X": [0.0, 1.0], "y": [2.0, 3.0], "layer": [1.0, 1.0], "weight": [0.5, 0.25]})
    >>> list(ds), ds["layer"].dtype, ds["energy"].attrs["units"]
    (['x', 'y', 'layer', 'energy'], dtype('int32'), 'GeV')
    """
    if field not in FIELDS:
        raise ValueError(f"unknown field {field!r}; known: {', '.join(sorted(FIELDS))}")
    known = FIELDS[field]
    name_of_source = "the mapping" if source is None else os.fspath(source)
    chosen = Naming(known, None, name_of_source).choose(list(columns))
    variables: dict[str, Any] = {}
    for name, ours in chosen.items():
        unit = (units or {}).get(ours)
        variables[ours] = (known.dim, *_with_attrs(columns[name], known.find(ours), ours, unit))
    lengths = {name: entry[1].shape[0] for name, entry in variables.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of {name_of_source} have unequal lengths: {lengths}")
    attrs = {"field": field} if source is None else {"field": field, "source": os.fspath(source)}
    return xr.Dataset(variables, attrs=attrs)


def _with_attrs(values: Any, variable: Variable | None, name: str, unit: str | None) -> tuple[Any, dict[str, str]]:
    """Return checked values and their attributes."""
    lazy = hasattr(values, "__dask_graph__")
    array = values if lazy else np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"variable {name!r} must have one dimension, got shape {array.shape}")
    if variable is None:
        return array, {} if unit is None else {"units": unit}
    if not lazy:
        array = conform(array, variable)
    elif target_dtype(array.dtype, variable) != array.dtype:
        wanted = target_dtype(array.dtype, variable)
        raise ValueError(f"variable {name!r} has dtype {array.dtype}; call .astype({str(wanted)!r}) on it first")
    return array, {"units": variable.unit, "long_name": variable.doc}
