"""Numbers in text files: commas, semicolons, tabs or spaces between them, with or without a header."""

from __future__ import annotations

import codecs
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from daskclust.core.data.fields import FIELDS
from daskclust.core.data.limits import LONGEST_LINE
from daskclust.core.data.quote import quoted, short
from daskclust.io.attrs import KEY, unpack
from daskclust.io.schema import Naming, Table

_DECORATED = re.compile(r"#?\s*(.*?)\s*(?:\[(.*)\]|\((.*)\))?")  # "x", "#x", "x [mm]", or "x(3)" of a halo finder
_DECIMAL = re.compile(r"(?:^|;)\s*\"?[-+]?\d*([.,])\d")  # mark of a number between semicolons
_SAMPLE = 1000  # rows that tell it
_OPEN = r'(?<![^\s,;])"[^"]*(?:""[^"]*)*'  # a field in quotes begins where a field does; two quotes in it are one
_QUOTED, _UNCLOSED = re.compile(_OPEN + '"'), re.compile(_OPEN + "$")


class _Layout(NamedTuple):
    """What the first lines of a text file tell."""

    separator: str | None  # None is any white space
    header: list[str] | None
    width: int  # fields in every line
    skip: int  # lines before the first row of numbers
    metadata: str  # of a comment that `write_hits` wrote
    ends: bool = False  # whether a separator ends each line
    decimal: str = "."


def read_text(path: str, naming: Naming) -> Table:
    """Read the columns of a file as float64; blank lines and what follows a ``#`` are passed over."""
    layout = _look(path, naming)
    attrs, units = unpack(layout.metadata, path)
    if layout.header is not None:
        header, in_header = _names_and_units(layout.header, naming)
        layout, units = layout._replace(header=header), {**in_header, **units}
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


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    """Decode bytes that are no UTF-8, which only names and texts may have; binary files stay an error."""
    if not isinstance(error, UnicodeDecodeError) or b"\0" in error.object:
        raise error
    return error.object[error.start : error.end].decode("cp1252"), error.end


codecs.register_error("daskclust-windows", _as_windows)


@contextmanager
def _open(path: str) -> Iterator[TextIO]:
    """Open text in UTF-8, in UTF-16 with its mark, or of Windows; a byte order mark at its start is no part of it."""
    with open(path, "rb") as file:
        is_16 = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    encoding, errors = ("utf-16", "strict") if is_16 else ("utf-8-sig", "daskclust-windows")
    try:
        with open(path, encoding=encoding, errors=errors) as stream:
            yield stream
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a UTF-{16 if is_16 else 8} text file: {error}") from error


def _lines(stream: TextIO, path: str, skip: int = 0) -> Iterator[tuple[int, str, str]]:
    """Yield the number of each line, what is before its ``#`` and what behind; texts in quotes may have line breaks.

    One that is too long to be a row of numbers is refused.
    """
    lines = islice(enumerate(iter(partial(stream.readline, LONGEST_LINE + 1), ""), 1), skip, None)
    for number, line in lines:
        while len(line) <= LONGEST_LINE and '"' in line and _UNCLOSED.search(_masked(line).partition("#")[0]):
            for _, more in lines:
                line += more
                if more.count('"') % 2 or len(line) > LONGEST_LINE:
                    break
            else:
                raise ValueError(f"{path}, line {number}: a quote without its end: {quoted(line.rstrip())}; close it")
        if len(line) > LONGEST_LINE:
            raise ValueError(
                f"{path}, line {number} has more than {LONGEST_LINE} characters, which is no row of numbers or names: "
                f"{quoted(line)}; are there line breaks, and is it a table?"
            )
        end = len(_masked(line).partition("#")[0])
        yield number, line[:end], line[end + 1 :]


def _masked(line: str) -> str:
    """Return a line, of the same length, without what stands in quotes."""
    return _QUOTED.sub(lambda found: f'"{"_" * (len(found[0]) - 2)}"', line) if '"' in line else line


def _split(line: str, separator: str | None) -> list[str]:
    """Return the fields of a line without spaces and quotes around them."""
    line = line.strip("\r\n")
    if '"' not in line:
        return [text.strip().strip("'").strip() for text in line.split(separator)]
    pattern = r"(\S+)" if separator is None else rf"(?:^|{separator})([^{separator}]*)"
    fields = [line[slice(*found.span(1))].strip() for found in re.finditer(pattern, _masked(line))]
    return [(f[1:-1].replace('""', '"') if _QUOTED.fullmatch(f) else f.strip("\"'")).strip() for f in fields]


def is_number(text: str) -> bool:
    """Return whether the reader takes a text for a number: as `float` would, but for ``1_000``."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _is_meant_as_number(text: str) -> bool:
    """Return whether a field is a number, or one in other marks ("1,5", "1 000"), rather than a name ("141Pr")."""
    begins_so = text[:1] in tuple("0123456789+-.")
    return is_number(text) or (begins_so and not any(letter.isalpha() for letter in text if letter not in "eE"))


def _look(path: str, naming: Naming) -> _Layout:
    """Read lines up to the first row of numbers, and conclude on the layout of the file."""
    comments, header, skip, metadata, separator = list[str](), None, 0, "", None
    with _open(path) as stream:
        lines = _lines(stream, path)
        for number, bare, said in lines:
            if not bare.strip():
                if said.strip().startswith(f"{KEY}: "):
                    metadata = said.strip().removeprefix(f"{KEY}: ")
                else:
                    comments.append(said)
                continue
            separator = _separator(bare)
            fields, last = _split(bare, separator), number + bare.rstrip("\n").count("\n")
            if header is None and not any(_is_meant_as_number(text) for text in fields):
                header, skip = fields, last
                continue
            if header is None:
                following = next((later for _, later, _ in lines if later.strip()), "")
                if _are_names(bare, following, naming):
                    header, skip, fields = fields, last, _split(following, separator)
            ends = len(fields) > 1 and not fields[-1]
            if header is not None:
                ends &= len(header) == len(fields) - 1 or (len(header) == len(fields) and not header[-1])
            width = len(fields) - 1 if ends else len(header or fields)
            if header is None:
                header, skip = _header_in_comments(comments, width, naming), number - 1
            rows = [bare, *(row for _, row, _ in islice(lines, _SAMPLE))] if separator == ";" else []
            marks = {found[1] for row in rows for found in _DECIMAL.finditer(row)}
            decimal = "," if marks == {","} else "."
            return _Layout(separator, header and header[:width], width, skip, metadata, ends, decimal)
    if header is None:
        raise ValueError(f"{path} has no data: expected rows of numbers such as x, y, layer, energy")
    header = header if header[-1] else header[:-1]
    return _Layout(separator, header, len(header), skip, metadata)


def _separator(line: str) -> str | None:
    """Return what stands between the fields of a line; a semicolon wins, as a comma may be a decimal one beside it."""
    return next((mark for mark in ";,\t" if mark in _masked(line)), None)


def _are_names(line: str, following: str, naming: Naming) -> bool:
    """Return whether numbers are names: those in quotes above others without, or pandas' 0, 1, 2 above fractions."""
    if not following.strip():
        return False
    texts, later = ([text.strip() for text in _masked(row).split(_separator(line))] for row in (line, following))
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

    width, options = layout.width + layout.ends, dict[str, Any]()
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        options["float_precision"] = "round_trip"  # what newer versions do
    try:
        dtypes = {k: np.float64 if k in kept else str for k in range(width)}
        frame = _frame(path, layout, dtype=dtypes, **options)
    except ValueError:
        return _numbers_by_line(path, layout, kept, without)
    # An index is made of the first fields of rows that have too many.
    if not isinstance(frame.index, pd.RangeIndex) or (layout.ends and any(frame[layout.width] != "")):
        return _numbers_by_line(path, layout, kept, without)
    table: npt.NDArray[np.float64] = frame[list(kept)].to_numpy(np.float64)
    return table


def _frame(path: str, layout: _Layout, **options: Any) -> Any:
    """Return the fields of all rows as pandas reads them; an empty one is no number."""
    import pandas as pd

    with _open(path) as stream:
        for _ in range(layout.skip):
            next(stream)
        return pd.read_csv(
            stream, sep=layout.separator or r"\s+", names=range(layout.width + layout.ends), comment="#",
            skipinitialspace=True, na_values=["nan", "NaN"], keep_default_na=False,
            decimal=layout.decimal, **options,
        )  # fmt: skip


def own_columns(path: str, most: int | None = None) -> dict[str, Any]:
    """Return all columns of a file that has names for them, as they are: numbers, and objects; of `most` rows."""
    layout = _look(path, Naming(None, None, path))
    if layout.header is None:
        return {}
    how: dict[str, Any] = {"nrows": most, "index_col": False}
    try:
        frame = _frame(path, layout, **how, **({"low_memory": False} if layout.separator else {}))
    except ValueError:  # what the reader takes line by line
        return {}
    words = [k for k in frame if frame[k].dtype.kind not in "fiu"]
    if words:  # as they are: True is no number
        frame = frame.astype(dict.fromkeys(words, object))
        frame[words] = _frame(path, layout, **how, dtype=str, usecols=words)[words].astype(object)
    return {name: frame[k].to_numpy() for k, name in enumerate(layout.header)}


def _numbers_by_line(
    path: str, layout: _Layout, kept: Sequence[int], without: Callable[[str], str]
) -> npt.NDArray[np.float64]:
    """Return what pandas refuses, such as quoted numbers and indented comments; or tell line and column of an error."""
    numbers = array("d")
    with _open(path) as stream:
        for number, bare, _ in _lines(stream, path, layout.skip):
            if not bare.strip():
                continue
            fields = _split(bare, layout.separator)
            if layout.ends and not fields[-1]:
                del fields[-1]
            if len(fields) != layout.width:
                raise ValueError(
                    f"{path}, line {number}: expected {layout.width} fields as in the "
                    f"{'header' if layout.header else 'first row'}, found {len(fields)}: {quoted(bare.rstrip())}"
                )
            if layout.decimal == ",":
                fields = [text.translate({ord("."): "_", ord(","): "."}) for text in fields]
            if wrong := [k for k in kept if not is_number(fields[k])]:
                name, text = "", fields[wrong[0]]
                has_comma = set(",\t") & set(text) and _is_meant_as_number(text)
                remedy = "; write numbers as 1234.5, without commas" if has_comma else ""
                if layout.header:
                    theirs = layout.header[wrong[0]]
                    name = f" ({short(theirs, 60)})"
                    remedy = remedy or f"; correct it, or {without(theirs)}"
                raise ValueError(
                    f"{path}, line {number}, column {wrong[0] + 1}{name}: expected a number, "
                    f"found {quoted(text)}{remedy}"
                )
            numbers.extend(float(fields[k]) for k in kept)
    return np.array(numbers).reshape(-1, len(kept))
