"""Rows of ``.t3pa``: counters that start anew, the order of a readout, what stands between columns.

The standard: Advacam's wiki. ToA counts 25 ns, modulo 2**64 (MiniPIX), 2**30 (AdvaPIX), 2**28 (AdvaPIX Quad).
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases.lanes import some_of

from daskclust.io import open_t3pa

HEADER = ("Index", "Matrix Index", "ToA", "ToT", "FToA", "Overflow")
DEVICES = {"AdvaPIX": (2**30, 1), "Quad": (2**28, 4), "MiniPIX": (2**64, 1)}
SECOND = 40_000_000  # steps


def measured(turn: int, n_chips: int, gap: int, disorder: int, seed: int) -> tuple[np.ndarray, list[list[int]]]:
    """Return the times in ns of the hits of a readout, and its rows, in the order in which it sends them."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.integers(0, gap, 200)) + rng.integers(0, 2**27)
    times = times[np.argsort(times + rng.integers(0, disorder + 1, times.size), kind="stable")]
    fine = rng.integers(0, 32, times.size)
    chips = rng.integers(0, n_chips, times.size)
    pixels = rng.integers(0, 65536, times.size) + 65536 * chips
    rows = zip(range(times.size), pixels, times % turn if turn < 2**63 else times, fine, chips, strict=True)
    return 25 * times - 25 / 16 * fine, [[k, p, t, 10, f, c] for k, p, t, f, c in rows]


def text(rows: list[list[Any]], between: str = "\t", end: str = "\n", header: tuple[str, ...] = HEADER) -> str:
    return "".join(between.join(map(str, row)) + end for row in [header, *rows])


@some_of(18, seed=[0, 1], disorder=[0, 20_000, SECOND // 4], part=[1 / 500, 1 / 50, 0.7], device=DEVICES)
def test_times_go_on_where_counters_start_anew(
    tmp_path: Path, device: str, part: float, disorder: int, seed: int
) -> None:
    turn, n_chips = DEVICES[device]
    times, rows = measured(turn, n_chips, int(min(turn, 2**32) * part), disorder, seed)
    (tmp_path / "a.t3pa").write_text(text(rows))
    ds = open_t3pa(tmp_path / "a.t3pa")
    order = np.argsort(times, kind="stable")
    np.testing.assert_array_equal(ds["toa"] - ds["toa"][0], times[order] - times.min())
    np.testing.assert_array_equal(ds["x"], np.array([row[1] % 256 for row in rows])[order])
    assert ds.attrs["n_toa_turns"] == times.max() // (25 * turn)
    assert ds.attrs["n_unsorted"] == np.count_nonzero(times < np.maximum.accumulate(times))


@pytest.mark.parametrize("turn", [2**20, 2**28])
def test_the_length_of_a_turn_is_given(tmp_path: Path, turn: int, caplog: pytest.LogCaptureFixture) -> None:
    times, rows = measured(turn, 1, turn // 2, 0, 0)
    path = tmp_path / "a.t3pa"
    path.write_text(text(rows))
    with caplog.at_level(logging.WARNING):
        ds = open_t3pa(path, turn=turn)
    assert f"taken as after {turn} steps of 25 ns" in caplog.text
    np.testing.assert_array_equal(np.diff(ds["toa"]), np.diff(np.sort(times)))
    with pytest.raises(ValueError, match=rf"has a ToA of {max(row[2] for row in rows)}, which is not below turn=1024"):
        open_t3pa(path, turn=1024)


def test_a_fall_that_no_device_has_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.t3pa").write_text(text([[0, 1, 2**28 - 5, 1, 0, 0], [1, 2, 7, 1, 0, 0]]))
    ds = open_t3pa(tmp_path / "a.t3pa")  # one chip: AdvaPIX after 20 s, or one chip of a Quad after 0.3 us?
    assert (ds.attrs["n_toa_turns"], ds.attrs["n_unsorted"]) == (0, 1)
    assert "ToA falls from 6.71088628 s to 1.75e-07 s, and 1 times" in caplog.text
    assert open_t3pa(tmp_path / "a.t3pa", turn=2**28)["toa"].values.tolist() == [25.0 * (2**28 - 5), 25.0 * (2**28 + 7)]


def test_lost_data_are_in_the_same_turn(tmp_path: Path) -> None:
    rows = [[0, 1, 2**30 - 5, 1, 0, 0], [1, 0x74, 3, 0, 0, 1], [2, 0x75, 2**29 + 9, 0, 0, 1], [3, 2, 40, 1, 0, 0]]
    (tmp_path / "a.t3pa").write_text(text(rows))
    ds = open_t3pa(tmp_path / "a.t3pa")
    assert ds["toa"].values.tolist() == [25.0 * (2**30 - 5), 25.0 * (2**30 + 40)]
    assert ds.attrs["lost_data_toa"] == [25.0 * (2**30 + 3)]
    assert ds.attrs["lost_data_length"] == [25.0 * (2**29 + 9)]  # a length, not a time


@pytest.mark.parametrize("first", [0, 1, 40])
def test_measurements_begin_where_the_index_does(tmp_path: Path, first: int) -> None:
    rows = [[first + k, k, 2**29 * k, 1, 0, 0] for k in range(4)]
    (tmp_path / "a.t3pa").write_text(text([*rows, *rows]))
    with pytest.raises(ValueError, match=r"has 2 measurements \(Index starts anew in line 6\)"):
        open_t3pa(tmp_path / "a.t3pa")
    assert open_t3pa(tmp_path / "a.t3pa", measurement=1)["x"].values.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n"])
@pytest.mark.parametrize("names", [HEADER, [name.upper() for name in HEADER], ["# Index", *HEADER[1:]]])
@pytest.mark.parametrize(
    ("of_names", "between"), [(" ", " "), ("   ", "   "), (" ", "\t"), ("\t", " "), *[(m, m) for m in "\t;,"]]
)
def test_separators(tmp_path: Path, names: list[str], of_names: str, between: str, end: str) -> None:
    rows = [[0, 1290, 1000, 20, 3, 0], [1, 1291, 1001, 30, 0, 0]]
    (tmp_path / "a.t3pa").write_text(of_names.join(names) + end + text(rows, between, end).partition("\n")[2])
    ds = open_t3pa(tmp_path / "a.t3pa")
    assert (ds["x"].values.tolist(), ds["y"].values.tolist()) == ([10, 11], [5, 5])
    assert (ds["toa"].values.tolist(), ds["tot"].values.tolist()) == ([24995.3125, 25025.0], [500.0, 750.0])
