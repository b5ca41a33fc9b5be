"""Files of Advacam's Pixet program."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases.files.tpx3_words import rows_of
from hypothesis import given
from hypothesis import strategies as st

from daskclust.io import open_t3pa

NAMES = ("toa", "x", "y", "chip", "tot")
HEADER = ["Index", "Matrix Index", "ToA", "ToT", "FToA", "Overflow"]
FOUR = "Matrix Index\tToA\tToT\tFToA\n"


def text(rows: list[Any], header: list[str] = HEADER, end: str = "\n") -> str:
    """Return the text of a file, with its rows as they are given."""
    return "".join("\t".join(map(str, row)) + end for row in [header, *rows])


def expected(rows: list[list[int]]) -> list[tuple[Fraction, int, int, int, int]]:
    """Return (toa, x, y, chip, tot) of the hits among rows in the usual order of columns, sorted, in plain Python."""
    hits = []
    for _, matrix, toa, tot, ftoa, overflow in rows:
        if overflow == 0 or overflow == matrix // 65536:
            time = Fraction(25) * toa - Fraction(25, 16) * ftoa
            hits.append((time, matrix % 256, matrix // 256 % 256, matrix // 65536, 25 * tot))
    return sorted(hits, key=lambda hit: hit[0])


ROW = [(1, 9), (0, 4 * 65536 - 1), (0, 50), (0, 1023), (0, 31)]
ROWS = st.lists(st.tuples(*(st.integers(*ends) for ends in ROW), st.sampled_from([0, 0, 0, 1, 2, 3])).map(list))


@given(rows=ROWS, columns=st.permutations(range(6)), end=st.sampled_from(["\n", "\r\n"]))
def test_equals_plain_python(write: Any, rows: list[list[int]], columns: list[int], end: str) -> None:
    rows = [[k, *row[1:]] for k, row in enumerate(rows, start=1)]
    shuffled = [[row[k] for k in columns] for row in rows]
    path = write(text(shuffled, [HEADER[k] for k in columns], end))
    ds = open_t3pa(path)
    assert rows_of(ds, *NAMES) == expected(rows)
    assert [str(ds[v].dtype) for v in ("x", "y", "toa", "tot", "chip")] == [
        "uint16", "uint16", "float64", "float32", "uint8",
    ]  # fmt: skip
    assert [ds[v].attrs["units"] for v in ("x", "y", "toa", "tot", "chip")] == ["pixel", "pixel", "ns", "ns", "1"]
    assert (ds.attrs["field"], ds.attrs["layout"], ds.attrs["source"]) == ("timepix", "chips", str(path))
    lost = len(ds.attrs["lost_data_toa"]) + len(ds.attrs["lost_data_length"])
    assert ds.sizes["hit"] + ds.attrs["n_special"] + lost == len(rows) == ds.attrs["n_rows"]


def test_appended_measurements(write: Any) -> None:
    path = write(text([[0, 1, 5, 1, 0, 0], [1, 2, 6, 1, 0, 0], [0, 3, 5, 1, 0, 0], [1, 4, 6, 1, 0, 0]]))
    with pytest.raises(ValueError, match=r"has 2 measurements \(Index starts anew in line 4\).* measurement=0 to"):
        open_t3pa(path)
    np.testing.assert_array_equal(open_t3pa(path, measurement=1)["x"], [3, 4])
    assert open_t3pa(path, measurement=0).attrs["n_measurements"] == 2
    for wrong, error in ((2, ValueError), (-1, ValueError), (True, TypeError), (0.0, TypeError)):
        with pytest.raises(error, match=f"measurement of {path} must be .*, got {wrong!r}"):
            open_t3pa(path, measurement=wrong)  # type: ignore[arg-type]


def test_measurements_of_one_row(write: Any) -> None:
    path = write(text([[k, x, 5, 1, 0, 0] for x, k in enumerate([0, 0, 1, 0, 0])]))
    with pytest.raises(ValueError, match=r"has 4 measurements \(Index starts anew in line 3\).* measurement=0 to"):
        open_t3pa(path)
    assert [open_t3pa(path, measurement=k)["x"].values.tolist() for k in range(4)] == [[0], [1, 2], [3], [4]]
    for header in (HEADER, HEADER[1:]):  # with Index, and without
        ds = open_t3pa(write(text([[0, 7, 5, 1, 0, 0][-len(header) :]], header)), measurement=0)
        assert (ds["x"].values.tolist(), ds.attrs["n_measurements"]) == ([7], 1)


def test_an_index_of_zeros_alone_counts_nothing(write: Any) -> None:
    ds = open_t3pa(write(text([[0, x, 5, 1, 0, 0] for x in range(3)])))
    assert (ds["x"].values.tolist(), ds.attrs["n_measurements"]) == ([0, 1, 2], 1)


def test_the_malformed_file(shared_data: Path) -> None:
    with pytest.raises(ValueError, match=r"malformed\.t3pa, line 2: expected 6 fields .* found 3: '12312\\t12923709"):
        open_t3pa(shared_data / "timepix" / "malformed.t3pa")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("Index\tMatrix\tIndex\tToA\tToT\tFToA\n", r"has no column 'Matrix Index' in its first line, which is"),
        ("Matrix Index|ToA|ToT|FToA\n1|2|3|4\n", "a .t3pa file has tabs between"),
        ("Matrix Index\tToA\tToT\tFToA\tToT\n", "columns of the same name"),
        (
            f"{FOUR}1\t2\t3\t4\n\n1\t2\t3\t4.5\n",
            r"line 4, column 'FToA': expected a whole number .* found '4.5'",
        ),
        (f"{FOUR}1\t2\t3\t4\n1\t\t3\t4\n", r"line 3, column 'ToA': expected a whole number from 0 to .*, found ''"),
        (f"{FOUR}1\t2\t3\t4\n1\t2\t3\t4\t5\n", r"line 3: expected 4 fields .* found 5"),
        (
            f"{FOUR}1\t2\t3\t4\n\n\n1\t-2\t3\t4\n",
            r"line 5, column 'ToA': expected a whole .* found '-2'",
        ),
        (f"{FOUR}1\t2\t3\t32\n", r"line 2, column 'FToA': expected a whole number from 0 to 31, found '32'"),
        (f"{FOUR}16777216\t2\t3\t1\n", r"'Matrix Index': expected a whole number from 0 to 16777215"),
        (f"{FOUR}1\t99999999999999999999\t3\t1\n", r"line 2, column 'ToA': expected a whole number"),
        ("no header at all", r"has no column 'Matrix Index', 'ToA', 'ToT', 'FToA'"),
    ],
)
def test_wrong_files(write: Any, content: str, message: str) -> None:
    path = write(content)
    with pytest.raises(ValueError, match=message) as error:
        open_t3pa(path)
    assert path in str(error.value)
