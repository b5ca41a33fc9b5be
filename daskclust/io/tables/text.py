"""Numbers in text files: commas, semicolons, tabs or spaces between them, with or without a header."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from daskclust.core.data.quote import quoted, short
from daskclust.io.attrs import KEY, unpack
from daskclust.io.fields import FIELDS
from daskclust.io.schema import Naming, Table


class _Layout(NamedTuple):
    """What the first lines of a text file tell."""

    separator: str | None  # None is any white space
    header: list[str] | None
    width: int  # fields in every line
    skip: int  # lines before the first row of numbers
    metadata: str  # of a comment that `write_hits` wrote


def read_text(path: str, naming: Naming) -> Table:
    """Read the columns of a UTF-8 file as float64; blank lines and what follows a ``#`` are passed over."""
    layout = _look(path, naming)
    attrs, units = unpack(layout.metadata, path)
    names = naming.names(layout.header, layout.width)
    naming = naming.settle(names, attrs.get("field"))
    chosen = naming.choose(names)
    kept = [k for k, name in enumerate(names) if name in chosen]
    table = _numbers(path, layout, kept)
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
    comment, header, skip, metadata = "", None, 0, ""
    with _open(path) as stream:
        for number, line in enumerate(stream):
            bare, _, said = line.partition("#")
            if not bare.strip():
                if said.strip().startswith(f"{KEY}: "):
                    metadata = said.strip().removeprefix(f"{KEY}: ")
                else:
                    comment = said or comment
                continue
            # A semicolon wins, because a comma may be a decimal one beside it.
            separator = next((mark for mark in ";,\t" if mark in bare), None)
            fields = _split(bare, separator)
            if header is None and not any(_is_meant_as_number(text) for text in fields):
                header, skip = fields, number + 1
                continue
            if header is None:
                header, skip = _header_of_comment(comment, separator, len(fields), naming), number
            return _Layout(separator, header, len(header or fields), skip, metadata)
    if header is None:
        raise ValueError(f"{path} has no data: expected rows of numbers such as x, y, layer, energy")
    return _Layout(None, header, len(header), skip, metadata)


def _header_of_comment(comment: str, separator: str | None, width: int, naming: Naming) -> list[str] | None:
    """Return the names in the last comment above the data (as NumPy's ``savetxt`` writes them), or None.

    A sentence may have as many words as the data have columns, so names count only with the required ones among them.
    """
    fields = _split(comment, separator)
    ours = {name.lower() for name in fields}
    candidates = FIELDS.values() if naming.field is None else (naming.field,)
    needed = [[field.find(name) for name in field.required] for field in candidates]
    found = any(all(v is not None and ours & {v.name, *v.aliases} for v in variables) for variables in needed)
    return fields if found and len(fields) == width else None


def _numbers(path: str, layout: _Layout, kept: Sequence[int]) -> npt.NDArray[np.float64]:
    """Return the numbers of all rows in the columns that are kept, shape (n, number of them); others may have text."""
    import pandas as pd

    options: dict[str, Any] = {"na_values": ["nan", "NaN"], "keep_default_na": False}  # an empty field is an error
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        options["float_precision"] = "round_trip"  # what newer versions do
    try:
        with _open(path) as stream:
            for _ in range(layout.skip):
                next(stream)
            frame = pd.read_csv(
                stream, sep=layout.separator or r"\s+", names=range(layout.width), comment="#",
                dtype={k: np.float64 if k in kept else str for k in range(layout.width)},
                skipinitialspace=True, quoting=csv.QUOTE_NONE, **options,
            )  # fmt: skip
    except ValueError:
        return _numbers_by_line(path, layout, kept)
    if not isinstance(frame.index, pd.RangeIndex):  # made of the first fields of rows that have too many
        return _numbers_by_line(path, layout, kept)
    table: npt.NDArray[np.float64] = frame[list(kept)].to_numpy(np.float64)
    return table


def _numbers_by_line(path: str, layout: _Layout, kept: Sequence[int]) -> npt.NDArray[np.float64]:
    """Return what pandas refuses, such as quoted numbers and indented comments; or tell line and column of an error."""
    numbers = array("d")
    with _open(path) as stream:
        for number, line in enumerate(stream, start=1):
            bare = line.partition("#")[0]
            if number <= layout.skip or not bare.strip():
                continue
            fields = _split(bare, layout.separator)
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
                    remedy = f"; correct it, or leave the column out with columns={{{quoted(theirs)}: None}}"
                raise ValueError(
                    f"{path}, line {number}, column {wrong[0] + 1}{name}: expected a number, "
                    f"found {quoted(fields[wrong[0]])}{remedy}"
                )
            numbers.extend(float(fields[k]) for k in kept)
    return np.array(numbers).reshape(-1, len(kept))
