"""`PartsSink`: what was written stays, whatever ends the block, in parts or in the file."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from cases.files.growing import small_files
from cases.lanes import some_of

from daskclust import io
from daskclust.io.outputs import growing

SUFFIXES = (".parquet", ".csv", ".h5", ".npz", ".zarr")
SIZES = (3, 0, 5, 1, 4)


def tables() -> list[xr.Dataset]:
    values = np.arange(sum(SIZES)) / 3
    ends = np.cumsum(SIZES)
    return [
        io.to_dataset({"x": values[end - n : end], "y": -values[end - n : end]}, field="calorimeter")
        for n, end in zip(SIZES, ends, strict=True)
    ]


def read(path: Path) -> xr.Dataset:
    return (io.open_particles(path, chunks=None) if path.suffix == ".zarr" else io.read_hits(path)).load()


def assert_first(path: Path, n: int) -> None:
    ds = read(path)
    np.testing.assert_array_equal(ds["x"], np.arange(n) / 3)
    np.testing.assert_array_equal(ds["y"], -np.arange(n) / 3)
    assert ds["x"].dtype == np.float64
    assert ds["x"].attrs["units"] == "cm"


@some_of(
    20,
    suffix=SUFFIXES,
    rows=[1, 4, 100],
    error=[None, ConnectionResetError(104, "reset"), KeyboardInterrupt(), ValueError("bad")],
    after=[1, 3, len(SIZES)],
)
def test_all_tables_before_the_end_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, rows: int, error: BaseException | None, after: int
) -> None:
    monkeypatch.setattr(growing, "_ROWS", rows)
    path = tmp_path / f"out{suffix}"
    sink = io.PartsSink(path)
    try:
        with sink:
            for table in tables()[:after]:
                sink.write(table)
            if error is not None:
                raise error
    except (OSError, KeyboardInterrupt, ValueError) as raised:
        assert raised is error  # noqa: PT017
    assert list(tmp_path.iterdir()) == [path]
    assert sink.kept == path
    assert sink.n_rows == sum(SIZES[:after])
    assert_first(path, sum(SIZES[:after]))
    if suffix != ".csv":  # of calorimeters, which has no attributes
        ended = None if error is None else str(error) or type(error).__name__
        assert read(path).attrs.get("ended_by") == ended


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(("keep", "n"), [(True, 0), (False, 2)])
def test_what_leaves_nothing_new(tmp_path: Path, suffix: str, there: bool, keep: bool, n: int) -> None:
    """An error before any rows, and any error where nothing is to be kept."""
    path = tmp_path / f"out{suffix}"
    if there and suffix != ".zarr":
        path.write_bytes(b"before")
    with pytest.raises(ConnectionRefusedError), io.PartsSink(path, keep=keep) as sink:  # noqa: PT012
        for table in tables()[:n]:
            sink.write(table)
        raise ConnectionRefusedError
    assert sink.kept is None
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"before"] * (there and suffix != ".zarr")


def test_a_part_is_closed_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_SECONDS", 0.01)
    folder = tmp_path / "out.csv.parts.parquet"
    with io.PartsSink(tmp_path / "out.csv") as sink:
        for k, table in enumerate(tables(), start=1):
            sink.write(table)
            while sink.n_rows < sum(SIZES[:k]):  # for ever, if it is not
                time.sleep(0.01)
            assert_first(folder, sum(SIZES[:k]))
    assert_first(tmp_path / "out.csv", sum(SIZES))


def test_what_an_earlier_run_left_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, folder = tmp_path / "out.h5", tmp_path / "out.h5.parts.parquet"
    program = (
        "import os, signal, sys\nfrom daskclust import io\nfrom daskclust.io.outputs import growing\n"
        "growing._ROWS = 1\n"
        "import xarray as xr\n"
        "with io.PartsSink(sys.argv[1]) as sink:\n"
        "    for k in range(3): sink.write(xr.Dataset({a: ('hit', [b * k / 3]) for a, b in (('x', 1), ('y', -1))}))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert io.read_hits(folder).sizes["hit"] == 3
    assert list(tmp_path.iterdir()) == [folder]
    shutil.copytree(folder, tmp_path / "out.h5.more.parts.parquet")  # as the next run leaves it
    with io.PartsSink(path) as sink:
        sink.write(tables()[0])
    assert caplog.text.count("has what an earlier run kept and did not put together") == 2
    assert len(list(tmp_path.iterdir())) == 3
    assert_first(path, SIZES[0])
    assert io.read_hits(folder).sizes["hit"] == 3


# ---------------------------------------------------------------------------------------------------------- full disks
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_disk_too_full_for_the_file_leaves_the_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(growing, "_ROWS", 500)
    path = tmp_path / f"out{suffix}"
    values = np.random.default_rng(0).random(5000)
    with (  # noqa: PT012
        small_files(9_000),
        pytest.raises(OSError, match=r"File too large|requested and") as told,
        io.PartsSink(path) as sink,
    ):
        for k in range(0, 5000, 500):
            sink.write(io.to_dataset({"x": values[k : k + 500], "y": values[k : k + 500]}, field="calorimeter"))
    assert str(path) in str(told.value)
    assert list(tmp_path.iterdir()) == [sink.kept]
    np.testing.assert_array_equal(read(sink.kept)["x"], values)
    assert f"{path} was not made; its 5000 rows are in {sink.kept}" in caplog.text


def test_a_disk_too_full_for_a_part_ends_with_those_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No row may follow where some are missing, not even when there is room again."""
    monkeypatch.setattr(growing, "_ROWS", 1)
    path = tmp_path / "out.csv"
    with pytest.raises(OSError, match="File too large") as told, io.PartsSink(path) as sink:  # noqa: PT012
        sink.write(tables()[0])
        with small_files(100), pytest.raises(OSError, match="File too large"):
            sink.write(tables()[2])
        sink.write(tables()[3])
    assert told.value.filename == str(path)
    assert_first(path, SIZES[0])
    assert list(tmp_path.iterdir()) == [path]
