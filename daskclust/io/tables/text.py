"""Numbers in text files: commas, semicolons, tabs or spaces between them, with or without a header."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn, TextIO

import numpy as np
import numpy.typing as npt

from daskclust.core.data.quote import quoted, short
from daskclust.io.attrs import KEY, unpack
from daskclust.io.fields import FIELDS
from daskclust.io.schema import Naming, Table


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the first lines of a text file tell.

    Parameters
    ----------
    separator : str or None
        Between fields; None is any white space.
    header : list of str or None
        Names, where there are some.
    width : int
        Fields in every line.
    skip : int
        Lines before the first row of numbers.
    metadata : str
        What a comment of ours holds, above the rows.
    """

    separator: str | None
    header: list[str] | None
    width: int
    skip: int
    metadata: str = ""


def read_text(path: str, naming: Naming) -> Table:
    """Read the columns of a text file.

    Parameters
    ----------
    path : str
        A UTF-8 file. Blank lines and what follows a ``#`` are passed over.
    naming : Naming
        Which columns become which variables.

    Returns
    -------
    Table
        Columns of float64, and what a comment ``# daskclust: {...}`` tells of units and attributes.

    Raises
    ------
    ValueError
        For a file without any row and header, a row of another length, or text that is no number: with line number.
    """
    try:
        layout = _look(path, naming)
        attrs, units = unpack(layout.metadata, path)
        names = naming.names(layout.header, layout.width)
        naming = naming.settle(names, attrs.get("field"))
        chosen = naming.choose(names)
        told = {ours: units[name] for name, ours in chosen.items() if name in units}
        with _open(path) as stream:
            rows = _rows(stream, layout.skip)
            first = next(rows, None)
            if first is None:
                return Table({ours: np.empty(0) for ours in chosen.values()}, naming, told, attrs)
            table = _parse(path, first, rows, layout)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a UTF-8 text file: {error}") from error
    places = {name: k for k, name in enumerate(names)}
    columns = {ours: np.ascontiguousarray(table[:, places[name]]) for name, ours in chosen.items()}
    return Table(columns, naming, told, attrs)


def _open(path: str) -> TextIO:
    """Open a text file; a byte order mark at its start is no part of it."""
    return open(path, encoding="utf-8-sig")


def _bare(line: str) -> str:
    """Return a line without its comment."""
    return line.partition("#")[0]


def _rows(stream: TextIO, skip: int) -> Iterator[str]:
    """Yield the lines that hold numbers."""
    for number, line in enumerate(stream):
        bare = _bare(line)
        if number >= skip and bare.strip():
            yield bare


def _split(line: str, separator: str | None) -> list[str]:
    """Return the fields of a line without spaces and quotes around them."""
    return [text.strip().strip("\"'").strip() for text in line.strip("\r\n").split(separator)]


def _separator(line: str) -> str | None:
    """Return what is between the fields of a line. A semicolon wins, because a comma may be a decimal one beside it."""
    return next((mark for mark in ";,\t" if mark in line), None)


def is_number(text: str) -> bool:
    """Return whether the reader takes a text for a number.

    Parameters
    ----------
    text : str
        One field.

    Returns
    -------
    bool
        As `float` would, but for ``1_000``.
    """
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
            bare = _bare(line)
            if not bare.strip():
                said = line.partition("#")[2]
                if said.strip().startswith(f"{KEY}: "):
                    metadata = said.strip().removeprefix(f"{KEY}: ")
                else:
                    comment = said or comment
                continue
            separator = _separator(bare)
            fields = _split(bare, separator)
            if header is None and not any(_is_meant_as_number(text) for text in fields):
                header, skip = fields, number + 1
                continue
            if header is None:
                header, skip = _header_of_comment(comment, separator, len(fields), naming), number
            width = len(fields if header is None else header)
            return _Layout(separator, header, width, skip, metadata)
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


def _parse(path: str, first: str, rows: Iterator[str], layout: _Layout) -> npt.NDArray[np.float64]:
    """Return the numbers of all rows, shape (n, width)."""

    def lines() -> Iterator[str]:
        yield first
        yield from rows

    try:
        table = np.loadtxt(lines(), delimiter=layout.separator, comments=None, ndmin=2)
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        _explain(path, layout, error)
    if table.shape[1] != layout.width:
        _explain(path, layout, ValueError(f"{table.shape[1]} columns"))
    return table


def _explain(path: str, layout: _Layout, error: ValueError) -> NoReturn:
    """Find the first wrong line and raise an error that shows it.

    The fast parser counts rows, not lines, so the file is read once more; this happens on the way to an error only.
    """
    with _open(path) as stream:
        for number, line in enumerate(stream, start=1):
            bare = _bare(line)
            if number <= layout.skip or not bare.strip():
                continue
            fields = _split(bare, layout.separator)
            if len(fields) != layout.width:
                raise ValueError(
                    f"{os.fspath(path)}, line {number}: expected {layout.width} fields as in the "
                    f"{'header' if layout.header else 'first row'}, found {len(fields)}: {quoted(line.rstrip())}"
                ) from error
            for column, text in enumerate(fields, start=1):
                if not is_number(text):
                    name = f" ({short(layout.header[column - 1], 60)})" if layout.header else ""
                    raise ValueError(
                        f"{path}, line {number}, column {column}{name}: expected a number, found {quoted(text)}"
                    ) from error
    raise ValueError(f"{path} cannot be read as numbers: {short(error)}") from error
