"""What readers say: of paths that are no files, and of texts however long."""

from __future__ import annotations

import importlib
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.lanes import some_of

from daskclust import datasets, io
from daskclust.app.opening import open_file

READERS: list[tuple[str, Any]] = [
    *[(f"a{suffix}", io.read_hits) for suffix in (".csv", ".txt", ".parquet", ".h5", ".npy", ".npz", ".root")],
    *[(f"a{suffix}", io.open_particles) for suffix in (".hdf5", ".parquet", ".npy", ".arborx", ".zarr")],
    *[(f"a{suffix}", io.read_cells) for suffix in (".csv", ".parquet", ".fcs", ".bin")],
    ("a.tpx3", io.open_tpx3), ("a.tpx3", io.open_tpx3_triggers), ("a.t3pa", io.open_t3pa), ("a.raw", io.open_katherine),
    ("a.clog", io.open_pixet),
    ("a.fcs", io.open_fcs), ("a.bin", io.read_gmhc), ("a.csv", lambda path: open_file(Path(path))),
    ("a.txt", lambda path: io.read_calibration(*[path] * 4)),
]  # fmt: skip


def made(kind: str, path: Path) -> None:
    """Make what is no file."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        os.chdir(path.parent)  # its name may be short only
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    elif kind == "directory":
        path.mkdir()
    elif kind == "empty":
        path.touch()
    elif kind == "loop":
        path.symlink_to("b")
        path.with_name("b").symlink_to(path.name)
    elif kind != "none":
        path.symlink_to({"device": "/dev/zero", "dangling": "nowhere"}[kind])


def test_columns_that_must_be_there_are_not_to_be_left_out(tmp_path: Path) -> None:
    """The remedy is another one where the reader needs the column, whatever it is called."""
    times = pd.date_range("2024-01-01", periods=3, freq="us")
    table = pd.DataFrame({"col": [1, 2, 3], "row": [1, 2, 3], "toa_ns": times, "tot": times})
    for suffix, write in ((".parquet", pd.DataFrame.to_parquet), (".csv", pd.DataFrame.to_csv)):
        path = tmp_path / f"a{suffix}"
        write(table, path, index=False)
        with pytest.raises(ValueError, match=r"toa_ns.*number.* write it as numbers in ns$"):
            io.read_hits(path, field="timepix")
        write(table.assign(toa_ns=1), path, index=False)
        with pytest.raises(ValueError, match=r"tot.*number.* leave it out with columns=\{'tot': None\}"):
            io.read_hits(path, field="timepix")
    with pytest.raises(ValueError, match=r"'toa' must be numeric, got dtype datetime64.*; subtract a start and divide"):
        io.to_dataset({"x": [1, 2, 3], "y": [1, 2, 3], "toa": times}, field="timepix")


NO_FILES: dict[str, tuple[Any, str]] = {
    "none": (FileNotFoundError, "no such file: .*{name}"),
    "directory": (IsADirectoryError, "{name} is a directory; give one"),
    "empty": (ValueError, r"{name} is empty \(0 bytes\)"),
    "pipe": (OSError, "{name} is a pipe, which can only be read from beginning to end; write its data to a file"),
    "socket": (OSError, "{name} is a socket, which can only"),
    "device": (OSError, "{name} is a device, which can only"),
    "loop": (OSError, "Too many levels of symbolic links: .*{name}"),
    "dangling": (FileNotFoundError, "{name} is a symbolic link to nowhere, which is not there; correct the link"),
}


@some_of(12, kind=NO_FILES, reader=READERS)
def test_what_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, reader: tuple[str, Any]) -> None:
    (name, read), (error, message) = reader, NO_FILES[kind]
    monkeypatch.chdir(tmp_path)
    made(kind, tmp_path / name)
    error, message = (
        (ValueError, "{name} is not a zarr store") if (name, kind) == ("a.zarr", "directory") else (error, message)
    )
    with pytest.raises(error, match=message.format(name=name)):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("library", "name", "read", "write"),
    [
        ("h5py", "a.h5", io.read_hits, io.write_hits),
        ("h5py", "a.hdf5", io.open_particles, io.write_particles),
        ("zarr", "a.zarr", io.open_particles, io.write_particles),
        ("uproot", "a.root", io.read_hits, None),
    ],
)
def test_a_library_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, name: str, read: Any, write: Any
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    ds = datasets.cosmology_box(5)
    for call in (lambda: read(tmp_path / name), lambda: write(ds, tmp_path / name))[: 2 if write else 1]:
        if name == "a.zarr":
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "zarr.json").touch()
        else:
            (tmp_path / name).write_text("x")
        with pytest.raises(ImportError, match=r'pip install "daskclust\[io\]"'):
            call()
        assert os.listdir(tmp_path) == [name]


def test_a_readout_may_come_through_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.tpx3")
    words = bytes(range(256)) * 10
    writer = threading.Thread(target=(tmp_path / "run.tpx3").write_bytes, args=(words,))
    writer.start()
    assert b"".join(io.follow(tmp_path / "run.tpx3")) == words
    writer.join()


# ----------------------------------------------------------------------------------------------------------- long texts
@pytest.mark.parametrize(("suffix", "kind"), [(".npz", "zipfile.ZipFile"), (".parquet", "pyarrow.parquet.ParquetFile")])
def test_a_file_is_not_opened_for_each_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, kind: str
) -> None:
    """Each time it is opened, its list of all columns is read."""
    path, columns = tmp_path / f"a{suffix}", {name: ("hit", np.ones(3)) for name in ("x", "y", *"abcdefgh")}
    io.write_hits(xr.Dataset(columns), path)
    module, _, name = kind.rpartition(".")
    opened, original = [], getattr(importlib.import_module(module), name)

    class Counting(original):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            opened.append(args)
            super().__init__(*args, **options)

    monkeypatch.setattr(kind, Counting)
    assert len(io.read_hits(path)) == len(columns)
    assert len(opened) <= 2
