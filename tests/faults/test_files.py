"""Full disks, damaged files, and commands that are stopped as they write: nothing half done under a final name."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import psutil
import pyarrow.parquet as pq
import pytest
import xarray as xr
from cases.files.growing import small_files
from cases.files.writers import write_npy
from cli.test_process import HANGS, finish, in_two_lines, start
from distributed import Client
from laws.systems import FILES, SYSTEMS, content, for_file

from daskclust import io

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Port .* is already in use")]

COORDINATES = ["x", "y", "z"]


@pytest.fixture(autouse=True)
def heeds_interrupts() -> Iterator[None]:
    """Jobs in a shell's background ignore SIGINT, and so do their children: not those of a process that handles it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a file of each kind."""
    folder = tmp_path_factory.mktemp("inputs")
    io.write_hits(SYSTEMS["clue"].data.drop_vars("truth").chunk(hit=1000), folder / "hits.parquet")
    io.write_particles(SYSTEMS["dbscan"].data[COORDINATES], folder / "points.zarr")
    write_npy(SYSTEMS["dbscan"].data[COORDINATES], folder / "points.npy")
    io.write_tpx3(SYSTEMS["events"].data.drop_vars("truth"), folder / "run.tpx3")
    return folder


# ------------------------------------------------------------------------------------------------------------ full disk
@pytest.mark.parametrize(("name", "write", "suffix"), [*FILES, ("events", io.write_tpx3, ".tpx3")])
def test_a_full_disk(name: str, write: Callable[..., None], suffix: str, tmp_path: Path) -> None:
    """Lazy results that are computed as they are written; a file that was there stays."""
    system = SYSTEMS[name]
    result = for_file(system.cluster(-(-len(system) // 5)))
    target = tmp_path / f"new{suffix}"
    with dask.config.set(scheduler="threads"):
        result.compute()  # kernels are compiled, and their files written, before files may not grow
        refuse(write, result, target)
        assert list(tmp_path.iterdir()) == []
        write(result, target)
        before = content(target)
        refuse(write, result, target)
    assert list(tmp_path.iterdir()) == [target]
    assert content(target) == before


def refuse(write: Callable[..., None], result: xr.Dataset, target: Path) -> None:
    with small_files(10_000), pytest.raises(OSError, match=r"File too large|requested and"):
        write(result, target)


def test_a_full_disk_below_workers(tmp_path: Path) -> None:
    """They write the chunks of a store."""
    client = Client(processes=False, n_workers=1, dashboard_address="127.0.0.1:0")
    with client, dask.config.set(scheduler="dask.distributed"):
        result = SYSTEMS["fof"].cluster(1000)
        result.compute()
        refuse(io.write_particles, result, tmp_path / "new.zarr")
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------------------------------- damaged files
def damaged_parquet(inputs: Path, folder: Path) -> Path:
    """Return a copy whose third row group has a wrong bit in its first column."""
    data = bytearray((inputs / "hits.parquet").read_bytes())
    column = pq.ParquetFile(inputs / "hits.parquet").metadata.row_group(2).column(0)
    data[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    (folder / "hits.parquet").write_bytes(data)
    return folder / "hits.parquet"


def damaged_zarr(inputs: Path, folder: Path) -> Path:
    """Return a store of three chunks, of which the second of ``y`` has a wrong bit."""
    import zarr

    path = folder / "points.zarr"
    group = zarr.open_group(path, mode="w")
    for axis in COORDINATES:
        values = SYSTEMS["dbscan"].data[axis].values
        checked = {"compressors": [zarr.codecs.ZstdCodec(checksum=True)]}
        group.create_array(axis, data=values, chunks=(2000,), **checked)
    chunk = path / "y" / "c" / "1"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)
    return path


def cut_npy(inputs: Path, folder: Path) -> Path:
    (folder / "points.npy").write_bytes((inputs / "points.npy").read_bytes()[:-1000])
    return folder / "points.npy"


DAMAGED: list[tuple[Callable[..., Path], Callable[..., Any], list[Any], str]] = [
    (damaged_parquet, io.read_hits, ["clue", "--dc", 2, "--rhoc", 0.05],
     "Parquet file: row group 2 (rows 2000 to 2999, counted from 0): "),
    (damaged_zarr, io.open_particles, ["dbscan", "--eps", 0.4],
     "zarr file: rows "),
    (cut_npy, io.open_particles, ["dbscan", "--eps", 0.4], "NumPy file: "),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "read", "command", "told"), DAMAGED)
def test_a_damaged_file_is_named(
    damage: Callable[..., Path], read: Any, command: list[Any], told: str, inputs: Path, tmp_path: Path
) -> None:
    """With the part that is damaged: read at once, lazily, and by a worker of a command."""
    path = damage(inputs, tmp_path)
    for chunks in (None, 700):
        with pytest.raises(ValueError, match="cannot be read as") as error:
            read(path, chunks=chunks).compute()
        assert f"{path} cannot be read as a {told}" in str(error.value)
    for workers in (0, 1):
        arguments = [command[0], path, *command[1:], "--workers", workers, "-o", tmp_path / "new.parquet"]
        code, out, err = finish(start(tmp_path, *arguments))
        assert (code, out) == (1, "")
        lines = err.splitlines()
        assert f"{path} cannot be read as a {told}" in in_two_lines(err)
        if "rows" in told:
            assert lines[1] == "hint: it is damaged: copy or write the file again"
        assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_changes_after_it_was_opened(inputs: Path, tmp_path: Path) -> None:
    data = (inputs / "run.tpx3").read_bytes()
    path = tmp_path / "run.tpx3"
    path.write_bytes(data)
    lazy = io.open_tpx3(path, chunks=1000)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match=r"run\.tpx3 has changed since it was opened .*; open it again"):
        lazy.compute()


# --------------------------------------------------------------------------------------------------- stopped, and again
SLOW = """
import os, sys, time
def replace(*names):  # what is written, or its first part, is about to get its name
    print("waiting", file=sys.stderr, flush=True)
    while not os.path.exists(GO_ON):  # where another thread writes, a signal does not end it
        time.sleep(0.01)
os.replace = replace
"""


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["clue", "hits.parquet", "--dc", 2, "--rhoc", 0.05], "new.parquet"),
        (["dbscan", "points.zarr", "--eps", 0.4], "new.zarr"),
    ],
)
def test_a_stopped_command_can_be_repeated(command: list[Any], name: str, inputs: Path, tmp_path: Path) -> None:
    """As it is, whatever stopped it, with the bytes of one that nobody stopped; nothing else is left then."""
    target, undisturbed = tmp_path / "again" / name, tmp_path / "once" / name
    for path in (target, undisturbed):
        path.parent.mkdir()
    assert finish(start(inputs, *command, "-o", undisturbed))[0] == 0
    for number, workers in ((signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGKILL, 1)):
        go_on = tmp_path / number.name
        before = SLOW.replace("GO_ON", repr(str(go_on)))
        process = start(inputs, *command, "-o", target, "--workers", workers, before=before)
        assert process.stderr.readline() == "waiting\n"
        children = psutil.Process(process.pid).children(recursive=True)
        assert bool(children) == bool(workers)
        process.send_signal(number)
        go_on.touch()
        assert finish(process)[0] == -number
        assert not target.exists()
        _, alive = psutil.wait_procs(children, timeout=HANGS)
        assert not alive  # workers end with their client, even if it was killed
    assert [path.name.startswith(f".{name}.") for path in target.parent.iterdir()] == [True]
    assert finish(start(inputs, *command, "-o", target))[0] == 0
    assert list(target.parent.iterdir()) == [target]
    assert content(target) == content(undisturbed)
