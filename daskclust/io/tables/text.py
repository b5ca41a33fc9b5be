"""Numbers in text files: commas, semicolons, tabs or spaces between them, with or without a header."""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from daskclust.core.data.limits import LONGEST_LINE
from daskclust.core.data.quote import quoted, short
from daskclust.io.attrs import KEY, unpack
from daskclust.io.fields import FIELDS
from daskclust.io.schema import Naming, Table

_DECORATED = re.compile(r"#?\s*(.*?)\s*(?:\[(.*)\]|\((.*)\))?")  # "x", "#x", "x [mm]", or "x(3)" of a halo finder


class _Layout(NamedTuple):
    """What the first lines of a text file tell."""

    separator: str | None  # None is any white space
    header: list[str] | None
    width: int  # fields in every line
    skip: int  # lines before the first row of numbers
    metadata: str  # of a comment that `write_hits` wrote
    units: Mapping[str, str] = MappingProxyType({})  # of names in the header
    ends: bool = False  # whether a separator ends each line


def read_text(path: str, naming: Naming) -> Table:
    """Read the columns of a UTF-8 file as float64; blank lines and what follows a ``#`` are passed over."""
    layout = _look(path, naming)
    attrs, units = unpack(layout.metadata, path)
    units = {**layout.units, **units}
    names = naming.names(layout.header, layout.width)
    naming = naming.settle(names, attrs.get("field"))
    chosen = naming.choose(names)
    kept = [k for k, name in enumerate(names) if name in chosen]
    table = _numbers(path, layout, kept, naming.without)
    columns = {chosen[names[k]]: np.array(table[:, place]) for place, k in enumerate(kept)}
    told = {ours: units[name] for name, ours in chosen.items() if name in units}
    return Table({ours: columns[ours] for ours in chosen.values()}, naming, told, attrs)


def read_rows(path: str, width: int) -> npt.NDArray[np.float64]:
    """Read rows of `width` numbers with white space between them, without names."""
    return _numbers(path, _Layout(None, None, width, 0, ""), range(width))


@contextmanager
def _open(path: str) -> Iterator[TextIO]:
    """Open a text file; a byte order mark at its start is no part of it."""
    try:
        with open(path, encoding="utf-8-sig") as stream:
            yield stream
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a UTF-8 text file: {error}") from error


def _lines(stream: TextIO, path: str) -> Iterator[str]:
    """Yield lines, and refuse one that is too long to be a row of numbers."""
    for number, line in enumerate(iter(partial(stream.readline, LONGEST_LINE + 1), ""), start=1):
        if len(line) > LONGEST_LINE:
            raise ValueError(
                f"{path}, line {number} has more than {LONGEST_LINE} characters, which is no row of numbers or names: "
                f"{quoted(line)}; are there line breaks, and is it a table?"
            )
        yield line


def _split(line: str, separator: str | None) -> list[str]:
    """Return the fields of a line without spaces and quotes around them."""
    return [text.strip().strip("\"'").strip() for text in line.strip("\r\n").split(separator)]


def is_number(text: str) -> bool:
    """Return whether the reader takes a text for a number: as `float` would, but for ``1_000``."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _is_meant_as_number(text: str) -> bool:
    """Return whether a field is a number, or a wrong one ("1,5" between semicolons), rather than a name ("141Pr")."""
    begins_so = text[:1] in tuple("0123456789+-.")
    return is_number(text) or (begins_so and not any(letter.isalpha() for letter in text if letter not in "eE"))


def _look(path: str, naming: Naming) -> _Layout:
    """Read lines up to the first row of numbers, and conclude on the layout of the file."""
    comments, header, skip, metadata, separator = list[str](), None, 0, "", None
    with _open(path) as stream:
        lines = _lines(stream, path)
        for number, line in enumerate(lines):
            bare, _, said = line.partition("#")
            if not bare.strip():
                if said.strip().startswith(f"{KEY}: "):
                    metadata = said.strip().removeprefix(f"{KEY}: ")
                else:
                    comments.append(said)
                continue
            separator = _separator(bare)
            fields = _split(bare, separator)
            if header is None and not any(_is_meant_as_number(text) for text in fields):
                header, skip = fields, number + 1
                continue
            if header is None:
                following = next((later for later in lines if later.partition("#")[0].strip()), "").partition("#")[0]
                if _are_names(bare, following, naming):
                    header, skip, fields = fields, number + 1, _split(following, separator)
            ends = len(fields) > 1 and not fields[-1]
            if header is not None:
                ends &= len(header) == len(fields) - 1 or (len(header) == len(fields) and not header[-1])
            width = len(fields) - 1 if ends else len(header or fields)
            if header is None:
                header, skip = _header_in_comments(comments, width, naming), number
            header, units = (None, {}) if header is None else _names_and_units(header[:width], naming)
            return _Layout(separator, header, width, skip, metadata, units, ends)
    if header is None:
        raise ValueError(f"{path} has no data: expected rows of numbers such as x, y, layer, energy")
    header, units = _names_and_units(header if header[-1] else header[:-1], naming)
    return _Layout(separator, header, len(header), skip, metadata, units)


def _separator(line: str) -> str | None:
    """Return what stands between the fields of a line; a semicolon wins, as a comma may be a decimal one beside it."""
    return next((mark for mark in ";,\t" if mark in line), None)


def _are_names(line: str, following: str, naming: Naming) -> bool:
    """Return whether numbers are names: those in quotes above others without, or pandas' 0, 1, 2 above fractions."""
    if not following.strip():
        return False
    texts, later = ([text.strip() for text in row.split(_separator(line))] for row in (line, following))
    if all(text[:1] in ("'", '"') for text in texts):
        return not set(following) & set("'\"")
    is_counted = len(texts) > 1 and texts == [str(k) for k in range(len(texts))]
    is_plain = naming.columns is None or isinstance(naming.columns, Mapping)
    return is_counted and is_plain and not all(text.lstrip("+-").isdecimal() for text in later)


def _names_and_units(fields: Sequence[str], naming: Naming) -> tuple[list[str], dict[str, str]]:
    """Return the names in a header and the units behind them; only known names are told apart from what is beside."""
    candidates = FIELDS.values() if naming.field is None else (naming.field,)
    known = {name for field in candidates for v in field.variables for name in (v.name, *v.aliases)}
    names, units = list(fields), {}
    for k, text in enumerate(fields):
        found = _DECORATED.fullmatch(text)
        if text not in naming.given and found is not None and found[1].lower() in known:
            names[k], unit = found[1], found[2] or found[3]
            if unit and not unit.isdecimal():
                units[names[k]] = unit
    return names, units


def _header_in_comments(comments: Sequence[str], width: int, naming: Naming) -> list[str] | None:
    """Return the names in the last comment above the data that has some (as of NumPy's ``savetxt``), or None.

    A sentence may have as many words as the data have columns, so names count only with the required ones among them.
    """
    candidates = FIELDS.values() if naming.field is None else (naming.field,)
    needed = [[field.find(name) for name in field.required] for field in candidates]
    for comment in reversed(comments):
        fields = _split(re.sub(r"\s+(?=[\[(])", "", comment), _separator(comment))[:width]
        ours = {name.lower() for name in _names_and_units(fields, naming)[0]}
        found = any(all(v is not None and ours & {v.name, *v.aliases} for v in variables) for variables in needed)
        if found and len(fields) == width:
            return fields
    return None


def _numbers(
    path: str, layout: _Layout, kept: Sequence[int], without: Callable[[str], str] = str
) -> npt.NDArray[np.float64]:
    """Return the numbers of all rows in the columns that are kept, shape (n, number of them); others may have text."""
    import pandas as pd

    options: dict[str, Any] = {"na_values": ["nan", "NaN"], "keep_default_na": False}  # an empty field is an error
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        options["float_precision"] = "round_trip"  # what newer versions do
    try:
        with _open(path) as stream:
            for _ in range(layout.skip):
                next(stream)
            width = layout.width + layout.ends
            frame = pd.read_csv(
                stream, sep=layout.separator or r"\s+", names=range(width), comment="#",
                dtype={k: np.float64 if k in kept else str for k in range(width)},
                skipinitialspace=True, quoting=csv.QUOTE_NONE, **options,
            )  # fmt: skip
    except ValueError:
        return _numbers_by_line(path, layout, kept, without)
    # An index is made of the first fields of rows that have too many.
    if not isinstance(frame.index, pd.RangeIndex) or (layout.ends and any(frame[layout.width] != "")):
        return _numbers_by_line(path, layout, kept, without)
    table: npt.NDArray[np.float64] = frame[list(kept)].to_numpy(np.float64)
    return table


def _numbers_by_line(
    path: str, layout: _Layout, kept: Sequence[int], without: Callable[[str], str]
) -> npt.NDArray[np.float64]:
    """Return what pandas refuses, such as quoted numbers and indented comments; or tell line and column of an error."""
    numbers = array("d")
    with _open(path) as stream:
        for number, line in enumerate(_lines(stream, path), start=1):
            bare = line.partition("#")[0]
            if number <= layout.skip or not bare.strip():
                continue
            fields = _split(bare, layout.separator)
            if layout.ends and not fields[-1]:
                del fields[-1]
            if len(fields) != layout.width:
                raise ValueError(
                    f"{path}, line {number}: expected {layout.width} fields as in the "
                    f"{'header' if layout.header else 'first row'}, found {len(fields)}: {quoted(line.rstrip())}"
                )
            if wrong := [k for k in kept if not is_number(fields[k])]:
                name, remedy = "", ""
                if layout.header:
                    theirs = layout.header[wrong[0]]
                    name = f" ({short(theirs, 60)})"
                    remedy = f"; correct it, or {without(theirs)}"
                raise ValueError(
                    f"{path}, line {number}, column {wrong[0] + 1}{name}: expected a number, "
                    f"found {quoted(fields[wrong[0]])}{remedy}"
                )
            numbers.extend(float(fields[k]) for k in kept)
    return np.array(numbers).reshape(-1, len(kept))
