"""Columns of a file to the variables of a field of science: their names, kinds and units.

Readers choose columns with a `Naming` and turn them into a Dataset with `to_dataset`, which accepts usual aliases and
checks kinds at the door. What a field has is in `fields`.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Any

from daskclust.core.data.datasets import variable_of
from daskclust.core.data.fields import CALORIMETER, FIELDS, PARTICLES, TIMEPIX, Field
from daskclust.core.data.limits import check_columns
from daskclust.core.data.nested import flatten, is_awkward
from daskclust.core.data.quote import listed, meant, quoted, repeated, short
from daskclust.core.data.units import BOX, check
from daskclust.io.kinds import in_field_unit
from daskclust.io.rows import Stored

if TYPE_CHECKING:
    import xarray as xr

logger = logging.getLogger(__name__)

Columns = Sequence[str] | Mapping[str, str | None]

Needs = Mapping[str, Sequence[str]]

_SEPARATOR = re.compile(r"[_.\-/ ]")  # between a prefix of columns and the name of a variable

REST = "*"
"""Key of a `columns=` mapping that stands for every column it does not name."""

COMPONENTS = ("x", "y", "z")

# What the columns of an array of shape (n, 3) begin with; the variable that an array of shape (n,) becomes.
KNOWN = {"Coordinates": "", "Velocities": "v", "Velocity": "v", "Masses": "mass", "Mass": "mass", "ParticleIDs": "id"}


LEFT_OUT = "left_out"
"""Key of a data set's `encoding`: the columns with lists that were left out, as rows are points."""


@dataclass(frozen=True, slots=True)
class Naming:
    """How the columns of one file become variables of one field."""

    field: Field | None  # gives aliases and required names; None while the file has not told it: see `settle`
    columns: Columns | None  # the reader's columns=
    source: str  # the file, for messages
    # Whether names are keys of the caller's own mapping: it is these that messages say to change, not columns=.
    is_mapping: bool = dataclass_field(default=False, kw_only=True)
    is_flat: bool = dataclass_field(default=False, kw_only=True)  # whether lists and records are no columns
    needs: Needs = dataclass_field(default_factory=dict, kw_only=True)
    # Columns of other names by the variable that they are taken for, as `choose` finds them.
    taken: dict[str, str] = dataclass_field(default_factory=dict, kw_only=True, compare=False)
    left_out: set[str] = dataclass_field(default_factory=set, kw_only=True, compare=False)  # by `without_lists`

    @property
    def told(self) -> dict[str, str]:
        """What columns of other names were taken for, as an attribute."""
        return {"columns": ", ".join(f"{ours}: {name}" for ours, name in self.taken.items())} if self.taken else {}

    def without(self, name: str) -> str:
        """Return how a column is left out, for messages; one that must be there, what it is to be."""
        ours = str(self.given.get(name) or name).lower()
        for variable in map(self.known.find, self.known.required):
            if variable is not None and ours in (variable.name, *variable.aliases):
                return "write it as numbers" + f" in {variable.unit}" * bool(variable.unit)
        return f"leave it out with columns={{{quoted(name)}: None}}"

    def is_float(self, name: str) -> bool:
        """Return whether a column has floats, whatever the file has, and NaN where there is nothing."""
        return False

    @property
    def known(self) -> Field:
        """The field, that of calorimeters where none is settled."""
        return self.field or CALORIMETER

    @property
    def given(self) -> Mapping[str, str | None]:
        """The ``columns=`` mapping of the user."""
        return self.columns if isinstance(self.columns, Mapping) else {}

    def settle(self, found: Sequence[str], stored: Any = None) -> Naming:
        """Return the naming with a field: its own, the stored one, that which a name marks, or calorimeters."""
        check_columns(len(found), self.source)
        if self.field is not None:
            return self
        if isinstance(stored, str) and stored in FIELDS:
            return replace(self, field=FIELDS[stored])
        names = {(self.given.get(name, name) or "").lower() for name in found}
        behind = {_SEPARATOR.split(name)[-1] for name in names}  # "x" of "rechit_x" and "hit.x"
        names |= set() if "layer" in behind else behind  # hits of a calorimeter have times, too
        marked = (field for field in FIELDS.values() if names & set(field.marks))
        return replace(self, field=next(marked, CALORIMETER))

    def names(self, found: Sequence[str] | None, count: int) -> list[str]:
        """Return the `count` names of columns: of a ``columns=`` sequence, of the file, or by their number."""
        if self.columns is not None and not isinstance(self.columns, Mapping):
            names = self.columns
            if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
                raise ValueError(f"columns must be a list of names or a mapping of names, got {quoted(names)}")
            if len(names) != count:
                raise ValueError(
                    f"{self.source} has {count} columns, but columns= names {len(names)}: {listed(names)}; name all"
                )
            return list(names)
        if found is not None:
            return list(found)
        if count not in self.known.headerless:
            known = "; ".join(f"{n}: {', '.join(axes)}" for n, axes in self.known.headerless.items())
            raise ValueError(
                f"{self.source} has {count} columns without names, whose meaning is known only for ({known}); "
                "name them with columns=[...]"
            )
        return list(self.known.headerless[count])

    def choose(self, found: Sequence[str], *, named: bool = False) -> dict[str, str]:
        """Return the variable that each column of a file becomes, in the order of the file; without those left out.

        Where a format is always `named`, a ``columns=`` sequence is a mistake.
        """
        if named and self.columns is not None and not isinstance(self.columns, Mapping):
            raise ValueError(
                f"the columns of {self.source} have names ({listed(found)}); "
                "give columns={'its name': 'x', 'its name': 'y'}"
            )
        if twice := repeated(found):
            raise ValueError(f"{self.source} has columns of the same name {listed(twice)}; rename them in the file")
        chosen = _explicit(self.given, found, self.source)
        if REST not in self.given:
            rest = [name for name in found if name not in self.given]
            chosen.update(_by_alias(rest, set(chosen.values()), self))
        chosen = {name: chosen[name] for name in found if name in chosen}
        self.taken.update(
            {ours: name for name, ours in chosen.items() if ours not in (name, name.lower()) and name not in self.given}
        )
        _check_complete(chosen, found, self)
        for option, names in self.needs.items():
            if unknown := sorted(set(names) - set(chosen.values())):
                raise ValueError(
                    f"{option} names {listed(unknown)}, which {self.source} does not have"
                    f"{meant(unknown[0], chosen.values())}; it has {listed(chosen.values())}"
                )
        return chosen

    def without_lists(self, chosen: Mapping[str, str], lists: Collection[str]) -> dict[str, str]:
        """Return the chosen columns without those with lists, where all coordinates are numbers: rows are points there.

        Variables of the field, and what the user names, are not left out: that they have lists is an error.
        """
        coordinates = {*self.known.required, *self.known.instead.values()}
        if any(chosen.get(name) in coordinates for name in lists):
            return dict(chosen)
        named = {name for names in self.needs.values() for name in names}
        for name in filter(chosen.get, lists):
            if self.given.get(name) or chosen[name] in named or self.known.find(chosen[name]):
                raise ValueError(
                    f"column {quoted(name)} of {self.source} has a list in each row, and {self.known.required[0]!r} a "
                    f"number: its rows are points, which need one number each; {self.without(name)}"
                )
        new = [name for name in lists if name in chosen and name not in self.left_out]
        if new:
            self.left_out.update(new)
            logger.warning("columns of %s with a list for each point are left out: %s", self.source, ", ".join(new))
        return {name: ours for name, ours in chosen.items() if name not in lists}


@dataclass(frozen=True, slots=True)
class Table:
    """What was read from a file: columns (n,) and units by variable, and attributes of the data set."""

    columns: dict[str, Any]
    naming: Naming
    units: dict[str, str] = dataclass_field(default_factory=dict)
    attrs: dict[str, Any] = dataclass_field(default_factory=dict)


def short_names(paths: Sequence[tuple[str, ...]]) -> list[str]:
    """Return names for columns that lie within others: the last one of the path, the whole path where that is taken."""
    last = Counter(path[-1] for path in paths)
    return [path[-1] if last[path[-1]] == 1 else ".".join(path) for path in paths]


def _explicit(given: Mapping[str, str | None], found: Sequence[str], source: str) -> dict[str, str]:
    """Return the part of a naming that the user's mapping settles."""
    if given.get(REST) is not None:
        raise ValueError(f"columns[{REST!r}] must be None (leave out all other columns), got {quoted(given[REST])}")
    known = {REST, *found}
    if unknown := [name for name in given if name not in known]:
        meant_by = meant(str(unknown[0]), found)
        raise ValueError(f"{source} has no column {listed(unknown)}{meant_by}; it has {listed(found)}")
    chosen = {name: ours for name, ours in given.items() if ours is not None}
    for name, ours in chosen.items():
        if not isinstance(ours, str) or not ours:
            raise ValueError(f"columns[{quoted(name)}] must be the name of a variable or None, got {quoted(ours)}")
    if twice := repeated(chosen.values()):
        raise ValueError(f"columns= gives two columns the name {quoted(twice[0])}; a variable has one column")
    return chosen


def _by_alias(names: Sequence[str], taken: set[str], naming: Naming) -> dict[str, str]:
    """Return names of variables for columns: the variable's own name wins, then an alias, then the column's own."""
    chosen: dict[str, str] = {}
    own = {v.name: v.name for v in naming.known.variables}
    aliases = {alias: v.name for v in naming.known.variables for alias in v.aliases}
    for table in (own, aliases):
        used: set[str | None] = {None, *taken, *chosen.values()}
        matches = defaultdict(list)
        for name in names:
            if name not in chosen and table.get(name.lower()) not in used:
                matches[table[name.lower()]].append(name)
        for ours, same in matches.items():
            if len(same) > 1:
                remedy = f"choose one with columns={{{quoted(same[0])}: {ours!r}, {quoted(same[1])}: None}}"
                if naming.is_mapping:
                    remedy = f"name one of them {ours!r}, and leave the others out"
                raise ValueError(f"columns {listed(same)} of {naming.source} could all be {ours!r}; {remedy}")
            chosen[same[0]] = ours
    chosen |= _by_prefix([name for name in names if name not in chosen], chosen, {*taken, *chosen.values()}, naming)
    used = {None, *taken, *chosen.values()}
    for name in names:
        if name not in chosen and name in used:
            raise ValueError(
                f"column {quoted(name)} of {naming.source} has a name that another column gets; rename it with columns="
            )
        chosen.setdefault(name, name)
    return chosen


def _by_prefix(names: Sequence[str], chosen: Mapping[str, str], used: set[str], naming: Naming) -> dict[str, str]:
    """Return variables of columns whose names have one prefix, as ``rechit_x`` and ``rechit_layer``.

    The prefix is that of the columns of all required variables, or the only one that has them where none is there.
    """
    prefixes: dict[str, dict[str, str]] = defaultdict(dict)  # for each, variables and their columns
    variables = {v.name: v.name for v in naming.known.variables}
    for known in (variables, {alias: v.name for v in naming.known.variables for alias in v.aliases}):
        for name in names:
            for text, ours in known.items():
                before = name.lower().removesuffix(text)
                if before != name.lower() and _SEPARATOR.match(before[-1:]) and ours not in used:
                    prefixes[before].setdefault(ours, name)
    required = set(naming.known.required)
    missing = required - used
    if missing and missing != required:
        return {}  # columns of two kinds of points are not mixed
    if missing:
        fit = [before for before, found in prefixes.items() if missing <= found.keys()]
        if len(fit) > 1:
            pairs = ", ".join(f"{prefixes[fit[0]][ours]}: {ours}" for ours in sorted(missing))
            raise ValueError(
                f"{naming.source} has columns for {listed(sorted(missing))} with the prefixes {listed(fit)}; choose "
                f"with columns={{{pairs}}}"
            )
    else:
        named = {**naming.given, **chosen}
        own = {name.lower().removesuffix(ours) for name, ours in named.items() if ours in naming.known.required}
        fit = [*own] if len(own) == 1 else []
    return {name: ours for before in fit for ours, name in prefixes.get(before, {}).items()}


def _check_complete(chosen: Mapping[str, str], found: Sequence[str], naming: Naming) -> None:
    """Raise when a required variable has no column."""
    instead, there = naming.known.instead, set(chosen.values())
    missing = [name for name in naming.known.required if not {name, instead.get(name)} & there]
    if missing:
        pairs = ", ".join(f"'its name': {name!r}" for name in missing)
        remedy = f"name it with columns={{{pairs}}}"
        if naming.is_mapping:
            remedy = f"add it under the key {missing[0]!r}"
        raise ValueError(f"{naming.source} has no column for {listed(missing)}; it has {listed(found)}: {remedy}")


def to_dataset(
    columns: Any,
    *,
    field: str = "calorimeter",
    units: Mapping[str, str] | None = None,
    source: str | os.PathLike[str] | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Make a Dataset of columns, and check their names, kinds and lengths.

    Parameters
    ----------
    columns : mapping of str to array_like, each of shape (n,), or awkward.Array of records
        Names are those of the field's variables or their aliases; others are kept as they are. Dask arrays stay lazy.
        Awkward lists are joined, and ``event`` tells the list, unless a field has this name.
    field : str, default "calorimeter"
        A key of `FIELDS`.
    units : mapping of str to str, optional
        Units of the columns, by variable, such as ``"us"`` or ``"25 ns"``. Variables of the field are converted to its
        unit, which those without one are taken to have. Units of another quantity are refused, but for positions in
        pixels or as angles and deposits that are not calibrated, which stay as they are.
    source : str or path, optional
        Goes to ``attrs["source"]``, and into messages.
    attrs : mapping of str to object, optional
        Further attributes of the data set.

    Returns
    -------
    xarray.Dataset
        One dimension (``hit``), ``attrs["units"]`` on every variable whose unit is known.

    Raises
    ------
    ValueError
        For missing or ambiguous names, unequal lengths, values of another kind, and units of another quantity.

    Examples
    --------
    >>> ds = to_dataset({"X": [0.0, 1.0], "y": [2.0, 3.0], "layer": [1.0, 1.0], "weight": [0.5, 0.25]})
    >>> list(ds), ds["layer"].dtype, ds["energy"].attrs["units"]
    (['x', 'y', 'layer', 'energy'], dtype('int32'), 'GeV')
    """
    import xarray as xr

    from daskclust.io.devices import on_demand

    if field not in FIELDS:
        raise ValueError(f"unknown field {field!r}; known: {', '.join(sorted(FIELDS))}")
    known = FIELDS[field]
    name_of_source = "the mapping" if source is None else os.fspath(source)
    if is_awkward(columns):
        columns, nesting = flatten(columns, name_of_source)
        if nesting.counts is not None:
            columns = {"event": nesting.event(), **columns}
    naming = Naming(known, None, name_of_source, is_mapping=True)
    chosen = naming.choose(list(columns))
    if known is TIMEPIX and {"toa", "ftoa"} <= set(chosen.values()) and not (units or {}).get("toa"):
        raise ValueError(
            f"{name_of_source} has ftoa beside a toa without a unit, which may count steps of a clock; say "
            "what it counts with units={'toa': '25 ns'} or {'toa': 'ns'}"
        )
    variables: dict[str, Any] = {}
    for name, ours in chosen.items():
        unit = (units or {}).get(ours)
        variables[ours] = in_field_unit(columns[name], known.find(ours), ours, unit, name_of_source)
    lengths = {name: values.shape[0] for name, (values, _) in variables.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of {name_of_source} have unequal lengths: {short(lengths)}")
    told = {"field": field} if source is None else {"field": field, "source": os.fspath(source)}
    unit = variables["x"][1].get("units") if "x" in variables else None
    box = {BOX: unit} if "boxsize" in (attrs or {}) and unit is not None else {}
    made = {
        name: on_demand(known.dim, values.rows, values.shape[0], values.dtype, about, values.steps)
        if isinstance(values, Stored)
        else variable_of(known.dim, values, about)
        for name, (values, about) in variables.items()
    }
    return xr.Dataset(made, attrs={**box, **naming.told, **(attrs or {}), **told})


def check_units(units: Mapping[str, str], field: Field, source: str, told: Mapping[str, str] | None = None) -> None:
    """Refuse what a user gives for units of a field's variables, if they are none of theirs.

    Positions of particles stay in their unit: where the file has `told` one for all axes, another one is for all of
    them, too.
    """
    for name, unit in units.items():
        variable = field.find(name)
        if variable is not None:
            check(name, unit, variable.unit or variable.usual, source)
    axes = {axis: unit for axis, unit in (told or {}).items() if axis in COMPONENTS}
    changed = [axis for axis, unit in axes.items() if units.get(axis, unit) != unit]
    if field is PARTICLES and changed and len(set(axes.values())) == 1 and len(changed) < len(axes):
        told_unit, right = axes[changed[0]], units[changed[0]]
        pairs = ", ".join(f"{axis!r}: {right!r}" for axis in axes)
        raise ValueError(
            f"{', '.join(axes)} of {source} are all in {told_unit!r}, and units names {right!r} for "
            f"{', '.join(changed)} alone; name that of all, units={{{pairs}}}"
        )
