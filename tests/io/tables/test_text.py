"""Tables in text: every layout is read, and what is wrong is told with line and column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases.files.fcs_reference import write
from cases.files.hits import refused

from daskclust.io import read_hits
from daskclust.io.outputs.own_columns import own_columns

NAMES = ["aniso_1000", "circles_1000", "moons_1000", "sissa_1000", "sissa_4000", "toyDetector_1000"]


@pytest.mark.parametrize("name", NAMES)
def test_real_csv_without_header_equals_pandas(shared_data: Path, name: str) -> None:
    path = shared_data / "clue" / f"{name}.csv"
    ds = read_hits(path)
    expected = pd.read_csv(path, header=None)
    assert list(ds) == ["x", "y", "layer", "energy"]
    assert {str(v.dtype) for v in (ds["x"], ds["y"], ds["energy"])} == {"float64"}
    assert ds["layer"].dtype == np.int32
    for column, variable in enumerate(ds):
        np.testing.assert_array_equal(ds[variable].values, expected[column].to_numpy())
    assert [ds[v].attrs["units"] for v in ds] == ["cm", "cm", "1", "GeV"]
    assert ds.attrs == {"field": "calorimeter", "source": str(path)}


@pytest.mark.parametrize(
    "text",
    [
        "1.5,2,0,4\n-1,2.5e1,1,inf\n",
        "1.5;2;0;4\r\n-1;2.5e1;1;inf\r\n",
        "1.5\t2\t0\t4\n-1\t2.5e1\t1\tinf",
        "  1.5   2 0 4\n-1 2.5e1  1 inf \n",
        "1.5, 2, 0, 4\n\n   \n# a comment\n-1, 2.5e1, 1.0, inf # the last\n\n",
        "x,y,layer,energy\n1.5,2,0,4\n-1,2.5e1,1,inf\n",
        '"X" , "Y", "Layer", "E"\n1.5,2,0,4\n-1,2.5e1,1,inf\n',
        "x y layer energy\n1.5,2,0,4\n-1,2.5e1,1,inf\n",
        "# made today by me\n# x y lay weight\n1.5 2 0 4\n-1 2.5e1 1 inf\n",
        "# made today by me\n1.5 2 0 4\n-1 2.5e1 1 inf\n",
        "\ufeffx\ty\tlayer\tw\n1.5\t2\t0\t4\n-1\t2.5e1\t1\tinf\n",
        '# 5" wide\n1.5,2,0,4 # 3"\n-1,2.5e1,1,inf\n',
        '"1.5","2",0,4\n   # x\n-1,2.5e1,1,inf\n',
    ],
)
def test_text_layouts(tmp_path: Path, text: str) -> None:
    ds = read_hits(write(tmp_path, text, "hits.txt"))
    assert list(ds) == ["x", "y", "layer", "energy"]
    np.testing.assert_array_equal(ds["x"], [1.5, -1.0])
    np.testing.assert_array_equal(ds["y"], [2.0, 25.0])
    np.testing.assert_array_equal(ds["layer"], [0, 1])
    np.testing.assert_array_equal(ds["energy"], [4.0, np.inf])


@pytest.mark.parametrize("end", ["", ";"])
@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("header", ["", "x;y;layer;energy"])
def test_decimal_commas_between_semicolons(tmp_path: Path, header: str, quote: str, end: str) -> None:
    """As spreadsheets write them in most of Europe: the numbers are those that are written with points."""
    rows = np.random.default_rng(0).normal(size=(50, 4)).round(6)
    rows[:, 2], rows[:3] = np.arange(50), 1  # the first rows have no marks
    texts = [[repr(int(v) if v == int(v) else v).replace(".", ",") for v in row] for row in rows.tolist()]
    lines = [header, *(";".join(f"{quote}{text}{quote}" for text in row) + end for row in texts)]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    found = read_hits(tmp_path / "a.csv")
    np.testing.assert_array_equal(np.stack([found[name] for name in ("x", "y", "layer", "energy")], 1), rows)
    if header:
        own = own_columns(tmp_path / "a.csv")
        assert own is not None
        np.testing.assert_array_equal(own.columns["energy"].rows(0, 50), rows[:, 3])


def test_columns_argument(tmp_path: Path) -> None:
    five = write(tmp_path, "1,2,3,4,5\n", "hits.csv")
    assert list(read_hits(five, columns=["t", "x", "y", "layer", "E"])) == ["t", "x", "y", "layer", "energy"]
    named = write(tmp_path, "a,b,c,weight\n1,2,3,4\n", "named.csv")
    assert list(read_hits(named, columns={"a": "x", "b": "y", "c": None})) == ["x", "y", "energy"]
    assert list(read_hits(named, columns={"b": "y", "a": "x", "*": None})) == ["x", "y"]
    assert list(read_hits(named, columns=["y", "x", "layer", "q"])) == ["y", "x", "layer", "q"]


def test_header_without_rows_is_an_empty_data_set(tmp_path: Path) -> None:
    ds = read_hits(write(tmp_path, "x,y,layer,energy\n", "hits.csv"))
    assert ds.sizes == {"hit": 0}
    assert ds["layer"].dtype == np.int32


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"is empty \(0 bytes\)"),
        ("\n  \n# only a comment\n", "has no data: expected rows"),
        ("1,2,3,4\n\n1,2,3\n", r"line 3: expected 4 fields as in the first row, found 3: '1,2,3'"),
        ("x,y\n1,2\n1,2,3\n", r"line 3: expected 2 fields as in the header, found 3"),
        ("x,y\n1,2,3\n4,5,6\n", r"line 2: expected 2 fields as in the header, found 3"),
        ("x,y,layer\n1,2\n", r"line 2: expected 3 fields as in the header, found 2"),
        ("1,2\n3,four\n", r"line 2, column 2: expected a number, found 'four'"),
        ("x,y\n3,\n", r"line 2, column 2 \(y\): expected a number, found ''"),
        ("x,y\n3,1_0\n", r"line 2, column 2 \(y\): expected a number, found '1_0'"),
        ("1,zwei\n3,4\n", r"line 1, column 2: expected a number, found 'zwei'"),
        ("1,5;2.5\n", r"line 1, column 1: expected a number, found '1,5'; write numbers as 1234.5, without commas"),
        (
            "x;y\n1.234,5;2,5\n",
            r"column 1 \(x\): expected a number, found '1.*234.*5'; write numbers as 1234.5, without commas$",
        ),
        ("x\ty\n1,5\t2\n", r"line 2, .*: expected a number, found .*; write numbers as 1234.5, without commas"),
        ('x,y\n"1,5","2,5"\n', r"line 2, .*: expected a number, found '1,5'; write numbers as 1234.5, without commas"),
        ("1\n2\n", r"has 1 columns without names, .* columns=\["),
        ("1,2,3,4,5\n", r"has 5 columns without names"),
        ("a,b\n1,2\n", r"has no column for 'x', 'y'; it has 'a', 'b': name it with columns="),
        ("x,y,x\n1,2,3\n", r"has columns of the same name 'x'"),
        ("x,y,w,e\n1,2,3,4\n", r"columns 'w', 'e' of .* could all be 'energy'; choose one with columns="),
        ("1,2,0\n1,2,0.5\n", r"'layer' must hold whole numbers .* got 0.5 in row 1 \(counted from 0\)"),
        ("1,2,nan\n", r"'layer' must hold whole numbers .* got nan in row 0"),
        ("1,2,3e9\n", r"'layer' must hold whole numbers .* got 3000000000.0 in row 0"),
    ],
)
def test_wrong_text(tmp_path: Path, text: str, message: str) -> None:
    refused(message, write(tmp_path, text, "hits.csv"))
