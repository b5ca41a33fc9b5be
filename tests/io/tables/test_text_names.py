"""Names in text files: whichever way a program writes them, columns are never taken by position instead."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases.files.fcs_reference import write
from cases.files.hits import refused
from hypothesis import given
from hypothesis import strategies as st

from daskclust.io import read_cells, read_hits

# How programs write a name: plain, and as consistent-trees, Luna, LabVIEW, and with a unit.
STYLES = {
    "plain": "{}",
    "numbered": "{}({k})",
    "marked": "#{}",
    "spaced": "{} [cm]",
    "bracketed": "{}[cm]",
    "round": "{}(cm)",
}
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " "}


@given(
    order=st.permutations(["x", "y", "z", "q", "a", "b"]),
    count=st.integers(2, 6),
    style=st.sampled_from(sorted(STYLES)),
    between=st.sampled_from(sorted(SEPARATORS)),
    in_comment=st.booleans(),
    comma_in_comment=st.booleans(),
    after=st.integers(0, 2),
    ends=st.sampled_from(["none", "rows", "all"]),
)
def test_names_are_found(
    tmp_path_factory: pytest.TempPathFactory,
    order: list[str],
    count: int,
    style: str,
    between: str,
    in_comment: bool,
    comma_in_comment: bool,
    after: int,
    ends: str,
) -> None:
    names = ["x", "y", *[name for name in order if name not in "xy"][: count - 2]]
    names = [name for name in order if name in names]
    separator = SEPARATORS[between]
    end = separator if ends != "none" and separator.strip(" ") else ""
    if not in_comment and (style == "marked" or (separator == " " and style == "spaced")):
        return  # a comment; more words than columns
    written = [STYLES[style].format(name, k=k) for k, name in enumerate(names)]
    theirs = "," if in_comment and comma_in_comment else separator
    head = theirs.join(written) + (end if ends == "all" and theirs == separator else "")
    head = ("# " if in_comment else "") + head + "\n"
    notes = "".join(f"# a note, {k} of {after}\n" for k in range(after))
    rows = np.arange(3 * len(names)).reshape(3, -1) + 1
    text = head + notes + "".join(separator.join(map(str, row)) + end + "\n" for row in rows)
    ds = read_hits(write(tmp_path_factory.getbasetemp(), text, "hits.txt"), field="calorimeter")
    for k, name in enumerate(names):
        found = next(ours for ours in ds if ours.partition("(")[0].partition("[")[0].strip("# ") == name)
        np.testing.assert_array_equal(ds[found].values, rows[:, k])


def test_units_in_a_header_convert(tmp_path: Path) -> None:
    for head in ("ToA [us],y,x,ToT (ns)", "# x,y,z\n# ToA[us],y,x,ToT(ns)"):
        ds = read_hits(write(tmp_path, f"{head}\n2,5,6,25\n", "hits.csv"))
        assert [float(ds[name][0]) for name in ("x", "y", "toa", "tot")] == [6.0, 5.0, 2000.0, 25.0]
    with_given = read_hits(tmp_path / "hits.csv", units={"toa": "ns"})
    assert float(with_given["toa"][0]) == 2.0
    named = write(tmp_path, "x [mm],y\n1,2\n", "named.csv")
    assert list(read_hits(named, columns={"x [mm]": "q", "y": "x"}, field="particles")) == ["q", "x"]
    refused(
        r"'tot' of .* has the unit 'arb', which is not known", write(tmp_path, "x,y,toa,tot[arb]\n1,2,3,4\n", "a.csv")
    )


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("columns", [2, 3, 5])
def test_header_of_a_frame_without_names_is_no_point(tmp_path: Path, columns: int, index: bool) -> None:
    path = tmp_path / "frame.csv"
    frame = pd.DataFrame(np.random.default_rng(0).random((4, columns)))
    frame.to_csv(path, index=index)
    if not index:
        refused("has no column for 'x', 'y'; it has '0', '1'", path)
        assert read_hits(path, columns={"0": "x", "1": "y"}).sizes == {"hit": 4}
        assert read_cells(path).sizes["cell"] == 4
        frame.round().astype(int).to_csv(path, index=False)  # may be points: whole numbers as the others are
        assert read_hits(path, columns=["x", "y", *"abc"[: columns - 2]]).sizes == {"hit": 5}


def test_names_in_quotes_that_are_numbers(tmp_path: Path) -> None:
    cells = read_cells(write(tmp_path, '"141","142"\n1,2\n3,4\n', "cells.csv"))
    assert list(cells["channel"].values) == ["141", "142"]
    assert read_hits(write(tmp_path, '"0","1"\n', "hits.csv")).sizes == {"hit": 1}
    assert read_hits(write(tmp_path, '"0","1"\n"2.5","3"\n', "hits.csv")).sizes == {"hit": 2}
    assert read_hits(write(tmp_path, "0,1\n", "hits.csv")).sizes == {"hit": 1}
