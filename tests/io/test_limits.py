"""Absurd files are refused before the work, with words that are short: columns, long lines, what unpacks to much."""

from __future__ import annotations

import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases.files.fcs_reference import fcs_bytes
from cases.lanes import some_of

from daskclust import io
from daskclust.core.data import limits
from daskclust.io.tables import text

Write = Callable[[Path, list[str]], None]
HITS, CELLS = io.read_hits, io.read_cells


def _parquet(path: Path, names: list[str]) -> None:
    pq.write_table(pa.table([pa.array([1.0])] * len(names), names=names), path)


def _csv(path: Path, names: list[str]) -> None:
    path.write_text(",".join(names) + "\n" + ",".join("1" * len(names)) + "\n")


def _hdf5(path: Path, names: list[str]) -> None:
    with h5py.File(path, "w") as file:
        for name in names:
            file[name] = [1.0]


def _npy(path: Path, names: list[str]) -> None:
    np.save(path, np.zeros(1, [(name, np.float64) for name in names]))


def _npz(path: Path, names: list[str]) -> None:
    np.savez(path, **{name: np.zeros(1) for name in names})


WIDE: list[tuple[str, Write, Any]] = [
    ("wide.parquet", _parquet, HITS), ("wide.parquet", _parquet, CELLS), ("wide.csv", _csv, HITS),
    ("wide.csv", _csv, CELLS), ("wide.h5", _hdf5, HITS), ("wide.npy", _npy, HITS), ("wide.npz", _npz, HITS),
]  # fmt: skip


@pytest.mark.parametrize(("name", "write", "read"), WIDE)
def test_a_table_of_too_many_columns_is_refused(
    name: str, write: Write, read: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(limits, "MOST_COLUMNS", 20)
    path = tmp_path / name
    write(path, ["x", "y", *(f"c{k}" for k in range(18))])
    read(path)
    write(path, ["x", "y", *(f"c{k}" for k in range(19))])
    with pytest.raises(ValueError, match=rf"^\S*{name} has 21 columns, and at most 20 are read; write those") as told:
        read(path)
    assert len(str(told.value)) < 400


@pytest.mark.parametrize("place", ["header", "first row", "comment", "last row"])
@pytest.mark.parametrize("read", [HITS, CELLS])
def test_a_line_of_text_that_is_no_row_is_refused(read: Any, place: str, tmp_path: Path) -> None:
    """And is not read to its end: a file may be one line of gigabytes."""
    path, long = tmp_path / "long.csv", ",".join(["c"] * (text.LONGEST_LINE // 2))
    lines = {"header": ["x,y," + long, "1,2"], "first row": [long.replace("c", "1") + ",1", "1,2"]}
    lines |= {"comment": ["#" + long + ",", "1,2"], "last row": ["x,y", "1,2", "1,2," + long]}
    path.write_text("\n".join(lines[place]) + "\n")
    with path.open("r+b") as stream:  # sparse
        stream.truncate(1 << 31) if place != "last row" else None
    with pytest.raises(ValueError, match=r"long\.csv, line \d has more than 4194304 characters") as told:
        read(path)
    assert len(str(told.value)) < 500


@pytest.mark.parametrize("read", ["npz", "npz of one", "parquet", "hdf5"])
def test_numbers_that_memory_has_no_room_for_are_not_read(read: str, tmp_path: Path, monkeypatch: Any) -> None:
    """Files that are small, as zeros are packed well."""
    n, path = 1 << 20, tmp_path / f"zeros.{read[:3] if read != 'parquet' else read}"
    zeros = np.zeros(n)
    if read == "npz":
        np.savez_compressed(path, x=zeros, y=zeros)
    elif read == "npz of one":
        np.savez_compressed(path, np.zeros((n, 2)))
    elif read == "parquet":
        pq.write_table(pa.table({"x": zeros, "y": zeros}), path, compression="zstd")
    else:
        path = path.with_suffix(".h5")
        with h5py.File(path, "w") as file:
            for name in "xy":
                file.create_dataset(name, data=zeros, compression="gzip")
    monkeypatch.setattr(limits, "_SMALL", 0)
    monkeypatch.setattr(limits, "free_memory", lambda: 4.5 * zeros.nbytes)
    io.read_hits(path, columns=["x", "y"] if "one" in read else None)
    monkeypatch.setattr(limits, "free_memory", lambda: 3.5 * zeros.nbytes)
    tracemalloc.start()
    with pytest.raises(MemoryError, match=rf"numbers of \S*{path.name} take 0\.0156 GiB .* 0\.0273 GiB are free"):
        io.read_hits(path, columns=["x", "y"] if "one" in read else None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < zeros.nbytes
    if read in ("parquet", "hdf5"):
        assert io.read_hits(path, chunks=1000).sizes["hit"] == n  # lazily, nothing is read


def test_a_member_of_an_archive_that_says_less_than_it_has_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "lies.npz"
    np.savez_compressed(path, x=np.zeros(1000), y=np.zeros(1000))
    data = bytearray(path.read_bytes())
    for info in zipfile.ZipFile(path).infolist():
        size = info.file_size.to_bytes(4, "little")
        for place in [k for k in range(len(data)) if data[k : k + 4] == size]:
            data[place : place + 4] = (200).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"lies\.npz"):
        io.read_hits(path)


# ------------------------------------------------------------------------------------------------------ long keywords


KEYS = (
    "$BYTEORD", "$DATATYPE", "$MODE", "$NEXTDATA", "$PAR", "$TOT", "$P1N", "$P1B", "$P1R", "$P1E", "$P1G", "$P1S",
    "$P1D", "$BEGINDATA", "$ENDDATA", "$BEGINSTEXT", "$TIMESTEP", "$SPILLOVER", "SPILL", "$COMP", "$CYT",
)  # fmt: skip


@some_of(24, value=["9" * 4000, "n" * 4000, "-" + "9" * 4000, "1," * 2000, "0." + "3" * 4000, "9" * 5000], key=KEYS)
@pytest.mark.filterwarnings("ignore")
def test_a_keyword_of_thousands_of_letters_is_cut_in_messages(key: str, value: str, tmp_path: Path) -> None:
    path, told = tmp_path / "long.fcs", ""
    path.write_bytes(
        fcs_bytes(["<f4"] * 2, [(0, 1), (2, 3)], **{key.removeprefix("$") if key[0] == "$" else key.lower(): value})
    )
    try:
        io.open_fcs(path)
    except ValueError as error:
        told = str(error)
    assert len(told) < 1500


def test_free_memory_is_no_more_than_a_limit_of_the_process(monkeypatch: Any) -> None:
    free = limits.free_memory()
    monkeypatch.setattr(limits.resource, "getrlimit", lambda _: (1 << 45, 1 << 45))
    assert limits.free_memory() <= free * 1.5
    monkeypatch.setattr(limits.resource, "getrlimit", lambda _: (1, 1))
    assert limits.free_memory() < 0
