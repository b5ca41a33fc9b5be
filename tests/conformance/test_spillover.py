"""Spillover keywords as programs write them, against values that are mixed here by the definition of the matrix.

FCS 3.1, $SPILLOVER: "n, n names of detectors, n * n numbers by rows"; row i is the light of dye i in each detector, so
that observed = true @ matrix. FCS 3.0, $COMP: percentages that the cytometer has subtracted already.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases.files.fcs_reference import fcs_bytes, write
from cases.lanes import some_of
from hypothesis import given
from hypothesis import strategies as st

from daskclust.io import open_fcs, read_cells

DETECTORS = ["FSC-A", "FL1-A", "FL2-A", "PE-Cy7 A", "Time"]
MARKERS = {"P2S": "CD3", "P3S": "CD4"}
MIXED = [3, 1, 2]
"""Columns of the matrix, in its order."""
SPILL = np.array([[1.0, 0.25, 0.0], [0.125, 1.0, 0.0625], [0.5, 0.03125, 1.0]])
TRUTH = np.array([[7.0, 1000.0, 40.0, 300.0, 1.0], [8.0, 0.0, 800.0, 20.0, 2.0], [9.0, 300.0, -40.0, 5.0, 3.0]])
READERS = [open_fcs, read_cells]


def observed(columns: list[int], matrix: Any) -> np.ndarray[Any, Any]:
    """Return what detectors see of the true values."""
    seen = TRUTH.copy()
    seen[:, columns] = TRUTH[:, columns] @ matrix
    return seen


def made(path: Path, values: Any = None, detectors: list[str] = DETECTORS, **keywords: Any) -> Path:
    """Write a file of float64."""
    values = observed(MIXED, SPILL) if values is None else values
    kinds = ["<f8"] * values.shape[1]
    rows = [tuple(row) for row in values.tolist()]
    return write(path, fcs_bytes(kinds, rows, names=detectors, **keywords))


def text_of(names: list[str], matrix: Any = SPILL, mark: str = ",", number: str = "{}") -> str:
    return mark.join([str(len(names)), *names, *(number.format(value) for value in np.ravel(matrix))])


NAMES = {
    "detectors": [DETECTORS[k] for k in MIXED],
    "in other letters": [DETECTORS[k].lower() for k in MIXED],
    "markers": ["PE-Cy7 A", "CD3", "CD4"],
    "numbers of channels": [str(k + 1) for k in MIXED],
    "of the compensated channels": [f"Comp-{DETECTORS[k]}" for k in MIXED],
}
DETECTED = NAMES["detectors"]
TEXTS = {
    "the standard": text_of,
    "spaces": lambda names: text_of(names, mark=" , "),
    "quotes": lambda names: text_of([f'"{name}"' for name in names]),
    "apostrophes": lambda names: text_of([f"'{name}'" for name in names]),
    "a last comma": lambda names: text_of(names) + ",",
    "last commas and spaces": lambda names: f" {text_of(names)}, , ",
    "semicolons": lambda names: text_of(names, mark=";"),
    "semicolons, decimal commas": lambda names: text_of(names, mark=";").replace(".", ","),
    "tabs": lambda names: text_of(names, mark="\t"),
    "lines": lambda names: text_of(names, mark=",\n"),
    "decimal commas": lambda names: text_of(names, number="{:.6f}").replace(".", ","),
    "exponents": lambda names: text_of(names, number="{:.8E}"),
}


@some_of(24, reader=READERS, keyword=["SPILLOVER", "spill"], names=NAMES, writing=TEXTS)
def test_every_writing_of_a_matrix_is_used(tmp_path: Path, reader: Any, keyword: str, names: str, writing: str) -> None:
    path = made(tmp_path, **MARKERS, **{keyword: TEXTS[writing](NAMES[names])})
    for compensate in ("auto", True):
        ds = reader(path, transform=None, compensate=compensate)
        np.testing.assert_allclose(ds["X"], TRUTH, rtol=1e-12, atol=1e-9)
        assert ds.attrs["compensation"] == "file"
    np.testing.assert_array_equal(reader(path, transform=None, compensate=False)["X"], observed(MIXED, SPILL))


@given(data=st.data())
def test_any_matrix_of_any_channels(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    columns = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True))
    shares = st.floats(0, 0.2, allow_subnormal=False)
    matrix = np.eye(len(columns))
    for cell in zip(*np.nonzero(matrix == 0), strict=True):
        matrix[cell] = data.draw(shares)
    by_number = data.draw(st.booleans())
    names = [str(k + 1) if by_number else DETECTORS[k] for k in columns]
    folder = tmp_path_factory.mktemp("any")
    path = made(folder, observed(columns, matrix), SPILLOVER=text_of(names, matrix))
    np.testing.assert_allclose(open_fcs(path, transform=None)["X"], TRUTH, rtol=1e-9, atol=1e-9)


def test_names_come_before_numbers(tmp_path: Path) -> None:
    detectors = ["2", "1", "B", "C", "D"]
    path = made(tmp_path, observed([1, 0], SPILL[:2, :2]), detectors, SPILLOVER=text_of(["1", "2"], SPILL[:2, :2]))
    np.testing.assert_allclose(open_fcs(path, transform=None)["X"], TRUTH, atol=1e-9)


@pytest.mark.parametrize("text", ["", " ", "0", "0,", "0,0"])
def test_no_matrix(tmp_path: Path, text: str) -> None:
    path = made(tmp_path, SPILLOVER=text)
    ds = open_fcs(path, transform=None, compensate=True)
    np.testing.assert_array_equal(ds["X"], observed(MIXED, SPILL))
    assert ds.attrs["compensation"] == "none"


# --------------------------------------------------------------------------------------------- channels that are absent
@pytest.mark.parametrize("gone", range(3))
def test_a_dye_whose_channel_is_absent_and_that_lights_no_other_is_left_out(tmp_path: Path, gone: int) -> None:
    matrix = SPILL.copy()
    matrix[gone] = np.eye(3)[gone]
    kept = [k for k in range(5) if k != MIXED[gone]]
    seen = observed(MIXED, matrix)[:, kept]
    path = made(tmp_path, seen, [DETECTORS[k] for k in kept], SPILLOVER=text_of(DETECTED, matrix))
    ds = open_fcs(path, transform=None, compensate=True)
    np.testing.assert_allclose(ds["X"], TRUTH[:, kept], atol=1e-9)


UNUSABLE = {
    "absent, and in other channels": text_of(["FL1-A", "FL2-A", "FL3-A"]),
    "all absent": text_of(["A", "B", "C"]),
    "numbers beyond the channels": text_of(["4", "5", "6"]),
    "0 as a number": text_of(["0", "1", "2"]),
    "twice": text_of(["FL1-A", "FL1-A", "FL2-A"]),
    "no inverse": text_of(DETECTED, np.ones((3, 3))),
    "not a number": text_of(DETECTED, np.full((3, 3), np.nan)),
    "words": text_of(DETECTED, ["one"] * 9),
    "too few": text_of(DETECTED)[:-4],
    "too many": text_of(DETECTED) + ",1",
    "another count": "2" + text_of(DETECTED)[1:],
    "a negative count": "-3,FL1-A",
    "a large count": f"{10**30},FL1-A",
    "no count": "FL1-A,1",
    "a marker that is not there": "1,CD8,1",
}


@some_of(14, reader=READERS, why=UNUSABLE)
def test_a_matrix_that_cannot_be_used_is_told(tmp_path: Path, reader: Any, why: str) -> None:
    path = made(tmp_path, SPILL=UNUSABLE[why])
    with pytest.warns(UserWarning, match="values are not compensated") as told:
        ds = reader(path, transform=None)
    assert [Path(each.filename).name for each in told] == [Path(__file__).name]  # the line of the user
    np.testing.assert_array_equal(ds["X"], observed(MIXED, SPILL))
    assert ds.attrs["compensation"] == "none"
    with pytest.raises(ValueError, match=r"leave compensation out with compensate=False$"):
        reader(path, compensate=True)
    given = reader(path, transform=None, compensate=_frame())
    np.testing.assert_allclose(given["X"], TRUTH, atol=1e-9)
    assert given.attrs["compensation"] == "given"


def _frame() -> Any:
    import pandas as pd

    return pd.DataFrame(SPILL, columns=DETECTED)


# --------------------------------------------------------------------------------------------------- compensated before
MARKS = {
    "FlowJo 10": "Comp-{}",
    "with a name": "FJComp-{}",
    "with a line": "Comp_{}",
    "FlowJo 9": "<{}>",
    "small": "comp-{}",
}
TOLD = {
    **{f"$COMP of FCS 3.0, {n}": {"COMP": f"2,0.0,{n},0.0,0.0"} for n in ("-40.0", "0.1", "12")},
    "$DFCmTOn of FCS 2.0": {"DFC1TO2": "0.0", "DFC2TO1": "24.5"},
}
NOT_TOLD = {
    "zeros": {"COMP": "2,0.0,0.0,0.0,0.0"},
    "one on the diagonal": {"COMP": "2,1,0,0,1"},
    "empty": {"COMP": ""},
    "no percents": {"DFC1TO2": "0.0", "DFC2TO1": "0"},
}


@some_of(10, reader=READERS, mark=MARKS, named=["as before", "as now"])
def test_compensated_channels_are_not_compensated_twice(tmp_path: Path, reader: Any, mark: str, named: str) -> None:
    now = [MARKS[mark].format(name) if k in MIXED else name for k, name in enumerate(DETECTORS)]
    names = DETECTED if named == "as before" else [now[k] for k in MIXED]
    assert_before(reader, made(tmp_path, TRUTH, now, SPILL=text_of(names)))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("keywords", TOLD)
def test_compensated_by_the_cytometer(tmp_path: Path, reader: Any, keywords: str) -> None:
    assert_before(reader, made(tmp_path, TRUTH, **TOLD[keywords]))


def assert_before(reader: Any, path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds = reader(path, transform=None)
    np.testing.assert_array_equal(ds["X"], TRUTH)
    assert ds.attrs["compensation"] == "before"
    with pytest.raises(ValueError, match=r"compensated before it was written; .* with compensate=False$"):
        reader(path, compensate=True)


@pytest.mark.parametrize("keywords", NOT_TOLD)
def test_not_compensated_by_the_cytometer(tmp_path: Path, keywords: str) -> None:
    ds = open_fcs(made(tmp_path, TRUTH, **NOT_TOLD[keywords]), transform=None, compensate=True)
    assert ds.attrs["compensation"] == "none"


def test_raw_channels_beside_compensated_ones(tmp_path: Path) -> None:
    """A file may have both; the matrix is of the raw ones."""
    both = np.column_stack([observed(MIXED, SPILL), TRUTH[:, MIXED]])
    names = [*DETECTORS, *(f"Comp-{name}" for name in DETECTED)]
    ds = open_fcs(made(tmp_path, both, names, SPILL=text_of(DETECTED)), transform=None, compensate=True)
    np.testing.assert_allclose(ds["X"], np.column_stack([TRUTH, TRUTH[:, MIXED]]), atol=1e-9)
