"""Numbers in text: RFC 4180 (quotes, what stands in them, ends of lines), and the separators and encodings in use.

What is right is what `csv` and Python's codecs write, read by the file's own table of numbers.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases.lanes import some_of

from daskclust.io import read_cells, read_hits

QUOTES = {"minimal": csv.QUOTE_MINIMAL, "all": csv.QUOTE_ALL, "not numbers": csv.QUOTE_NONNUMERIC}
SEPARATORS = [",", ";", "\t", " "]
ENDS = ["\n", "\r\n", "\r"]
ENCODINGS = ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le with mark", "utf-16-be with mark"]
TEXTS = {
    "plain": ("S1", "S2", "S3"),
    "separators": ("Smith, J", "a;b,c", "d\te f"),
    "quotes": ('5" wide', 'the "first"', '""'),
    "comments": ("run #1", "#", 'a "#2"'),
    "line breaks": ("one\ntwo", "\n", 'a\n"b", c\n'),
    "letters": ("Müller", "µm²", "±"),
    "empty": ("", " ", ""),
}
HEADS = {
    "none": None,
    "plain": ("x", "y", "energy", "E"),
    "separators": ("x, in cm", "y; in cm", "E, in GeV", "energy"),
    "quotes": ('x "1"', '"y"', 'a "b", c', "E"),
    "line breaks": ("x\n(cm)", "y\ncm", "a\n\nb", "E"),
    "letters": ("x µ", "y é", "ü", "E"),
    "comments": ("#1", "y # 2", "no. #", "E"),
}
NUMBERS = np.random.default_rng(0).normal(size=(3, 4)).round(3)


def encoded(text: str, encoding: str) -> bytes:
    plain, _, mark = encoding.partition(" with ")
    return (("\ufeff" if mark else "") + text).encode(plain)


def written(rows: list[list[Any]], separator: str, quotes: str, end: str) -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=separator, quoting=QUOTES[quotes], lineterminator=end).writerows(rows)
    return stream.getvalue()


@some_of(
    40,
    separator=SEPARATORS,
    quotes=QUOTES,
    end=ENDS,
    encoding=ENCODINGS,
    head=HEADS,
    texts=[None, *TEXTS],
    place=[0, 2],
)
def test_what_csv_writes_is_read(
    tmp_path: Path, separator: str, quotes: str, end: str, encoding: str, head: str, texts: str | None, place: int
) -> None:
    rows: list[list[Any]] = NUMBERS.tolist()
    names = HEADS[head]
    if names is not None:
        rows.insert(0, list(names))
    if texts is not None and (names is not None or quotes != "minimal"):
        for row, text in zip(rows, ["note"] * (names is not None) + list(TEXTS[texts]), strict=True):
            row.insert(place, text)
    else:
        texts = None
    # Other marks that separate and # need quotes, and csv gives them none; several spaces are one separator.
    if {head, texts} & {"comments", "separators", "line breaks"} or (separator == " " and texts == "empty"):
        quotes = "all" if quotes == "minimal" else quotes
    path = tmp_path / "a.csv"
    path.write_bytes(encoded(written(rows, separator, quotes, end), encoding))
    columns: Any = None
    if names is not None:
        columns = {name: f"v{k}" for k, name in enumerate(names)} | {names[0]: "x", names[1]: "y"}
        columns |= {} if texts is None else {"note": None}
    elif texts is None:
        columns = ["x", "y", "v2", "v3"]
    else:
        rest = ["x", "y", "v2", "v3"]
        with pytest.raises(ValueError, match=r"expected a number|5 columns without names"):
            read_hits(path)
        with pytest.raises(ValueError, match=r"column \d.*: expected a number"):
            read_hits(path, columns=[*rest[:place], "note", *rest[place:]])
        return
    ds = read_hits(path, field="calorimeter", columns=columns)
    np.testing.assert_array_equal(np.stack([ds[v] for v in ("x", "y", "v2", "v3")], axis=1), NUMBERS)
    if texts is not None:
        with pytest.raises(ValueError, match=r"line \d+, column \d \(note\): expected a number.*\{'note': None"):
            read_hits(path, columns={name: ours for name, ours in columns.items() if name != "note"})


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_letters_of_names_stay(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.csv").write_bytes(encoded("β-µ±é,CD3 “A”\n1,2\n".replace("β", "ß"), encoding))
    assert list(read_cells(tmp_path / "a.csv")["channel"].values) == ["ß-µ±é", "CD3 “A”"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(("text", "line"), [('"x,y', 1), ('x,y|1,"2', 2), ('x,y|"1",2|3,"4 ""|5,6', 3)])
def test_a_quote_without_its_end(tmp_path: Path, text: str, line: int, end: str) -> None:
    (tmp_path / "a.csv").write_bytes(text.replace("|", end).encode())
    with pytest.raises(ValueError, match=f"line {line}: a quote without its end: .*; close it"):
        read_hits(tmp_path / "a.csv")


@pytest.mark.parametrize("data", [b"x,y\n1,2\n\xe9\x00\x00\x00", b"\xff\xfex\x00,\x00y", b"x,\x81\n1,2\n"])
def test_what_is_no_text(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(data)
    with pytest.raises(ValueError, match=r"is not a UTF-(8|16) text file"):
        read_hits(tmp_path / "a.csv")
