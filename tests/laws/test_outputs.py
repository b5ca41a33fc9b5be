"""What an output takes the place of: a file, a store of its own kind, what a link leads to; never an input."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases.lanes import some_of

from daskclust import datasets, io

POINTS = io.to_dataset({axis: np.arange(5) / 4 for axis in "xyz"}, field="particles")
PIXELS = io.to_dataset({"x": [1], "y": [2], "toa": [100.0], "tot": [25.0], "chip": [0]}, field="timepix")


def sink(kind: Any) -> Callable[..., None]:
    def write(ds: Any, path: Path) -> None:
        with kind(path) as file:
            file.write(ds)

    return write


def parts(ds: Any, path: Path) -> None:
    io.write_hits(ds, path, partitions=True)


FILES: list[tuple[Callable[..., None], Any, str]] = [
    *((io.write_hits, POINTS, suffix) for suffix in (".csv", ".parquet", ".h5", ".npz")),
    *((io.write_particles, POINTS, suffix) for suffix in (".hdf5", ".pq")),
    *((io.write_cells, datasets.cytometry(9, 2, rng=0), suffix) for suffix in (".csv", ".parquet")),
    (io.write_tpx3, PIXELS, ".tpx3"),
    (sink(partial(io.PartsSink, keep=False)), POINTS, ".parquet"),
    (sink(io.PartsSink), POINTS, ".csv"),
    (sink(io.PartsSink), POINTS, ".parquet"),
]
FOLDERS: list[tuple[Callable[..., None], Any, str]] = [
    (io.write_particles, POINTS, ".zarr"),
    (sink(io.PartsSink), POINTS, ".zarr"),
    (parts, POINTS, ".parquet"),
]
each_folder = pytest.mark.parametrize(("write", "ds", "suffix"), FOLDERS)
each = pytest.mark.parametrize(("write", "ds", "suffix"), [*FILES, *FOLDERS])


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def content(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return {str(each.relative_to(path.parent)): each.read_bytes() for each in files}


# --------------------------------------------------------------------------------------------------------- permissions
@each
def test_what_is_replaced_gives_its_permissions(
    tmp_path: Path, write: Callable[..., None], ds: Any, suffix: str
) -> None:
    path = tmp_path / f"out{suffix}"
    write(ds, path)
    is_file = path.is_file()
    assert mode_of(path) == (0o640 if is_file else 0o750)  # new ones: as the umask has it
    for mode in (0o600, 0o664) if is_file else (0o700, 0o775):
        if is_file:
            path.write_bytes(b"before")
        path.chmod(mode)
        write(ds, path)
        assert mode_of(path) == mode
        assert content(path) != {path.name: b"before"}


# --------------------------------------------------------------------------------------------------------------- links
@each
@pytest.mark.parametrize(("steps", "is_there"), [(1, False), (2, True)])
def test_a_link_stays_and_what_it_leads_to_is_replaced(
    tmp_path: Path, write: Callable[..., None], ds: Any, suffix: str, steps: int, is_there: bool
) -> None:
    for name in ("links", "disk"):
        (tmp_path / name).mkdir()
    real = tmp_path / "disk" / f"real{suffix}"
    if is_there:
        write(ds, real)
    links = [tmp_path / "links" / f"{k}{suffix}" for k in range(steps)]
    for link, target in zip(links, [Path("../disk") / real.name, *links], strict=False):
        link.symlink_to(target)
    write(ds, links[-1])
    assert all(link.is_symlink() for link in links)
    assert sorted(path.name for path in (tmp_path / "links").iterdir()) == sorted(link.name for link in links)
    assert list((tmp_path / "disk").iterdir()) == [real]
    direct = tmp_path / f"real{suffix}"
    write(ds, direct)
    if suffix not in (".h5", ".hdf5"):  # which tell the time
        assert content(direct) == content(real)


@each
def test_loops_of_links_and_pipes_are_not_replaced(
    tmp_path: Path, write: Callable[..., None], ds: Any, suffix: str
) -> None:
    one, two, pipe = (tmp_path / f"{name}{suffix}" for name in "abc")
    one.symlink_to(two)
    two.symlink_to(one)
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="is in a loop of symbolic links; give the path of the file itself"):
        write(ds, one)
    with pytest.raises((OSError, ValueError), match=r"is a pipe, which is not replaced|is a file; give another name"):
        write(ds, pipe)
    assert pipe.is_fifo()
    assert sorted(tmp_path.iterdir()) == [one, two, pipe]


# -------------------------------------------------------------------------------------------------- what is of others
def notes(folder: Path) -> None:
    (folder / "notes.txt").write_text("by hand")


def deep(folder: Path) -> None:
    (folder / "x").mkdir(exist_ok=True)
    (folder / "x" / "notes.txt").write_text("by hand")


def link(folder: Path) -> None:
    (folder / "part-000099.parquet").symlink_to(__file__)


def hidden(folder: Path) -> None:
    (folder / ".notes").touch()


def group(folder: Path) -> None:
    io.write_particles(POINTS, folder / "run.zarr")


@each_folder
@pytest.mark.parametrize(
    ("put", "is_ours"), [(notes, True), (notes, False), (deep, True), (link, False), (hidden, True), (group, False)]
)
def test_a_folder_with_other_things_stays(
    tmp_path: Path, write: Callable[..., None], ds: Any, suffix: str, is_ours: bool, put: Callable[..., None]
) -> None:
    path = tmp_path / f"out{suffix}"
    if is_ours:
        write(ds, path)
    else:
        path.mkdir()
    put(path)
    before = content(path)
    with pytest.raises(ValueError, match=r"out\.\w+ has '.*', which no output has; give another name, or remove it"):
        write(ds, path)
    left = tmp_path / f"out{suffix}.parts.parquet"
    assert content(path) == before
    if left.exists():  # nothing is lost of a stream
        assert io.read_hits(left).sizes["particle"] == 5
        shutil.rmtree(left)
    assert list(tmp_path.iterdir()) == [path]


@each_folder
def test_an_empty_folder_and_one_of_its_own_are_replaced(
    tmp_path: Path, write: Callable[..., None], ds: Any, suffix: str
) -> None:
    path = tmp_path / f"out{suffix}"
    path.mkdir()
    for _ in range(2):
        write(ds, path)
        assert content(path)
    assert list(tmp_path.iterdir()) == [path]


# --------------------------------------------------------------------------------------------------------------- inputs
def test_a_part_that_was_read_is_not_in_what_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "points.parquet"
    parts(POINTS.chunk(particle=2), folder)
    (tmp_path / "link").symlink_to(folder / "part-000001.parquet")
    (tmp_path / "again.parquet").symlink_to(folder)
    for source in (folder / "part-000001.parquet", tmp_path / "again.parquet" / "part-000001.parquet"):
        one = io.read_hits(source)
        for target in (folder, tmp_path / "again.parquet"):
            with pytest.raises(ValueError, match=r"holds the input .*; give another name"):
                parts(one, target)
    assert io.read_hits(folder).sizes["particle"] == 5
    parts(io.read_hits(folder).isel(particle=slice(3)), folder)  # all of it was read
    assert io.read_hits(folder).sizes["particle"] == 3


def in_store(folder: Path) -> tuple[str, str]:
    (folder / "box.zarr").mkdir()
    io.write_particles(POINTS, folder / "box.zarr" / "snap.hdf5")
    return "box.zarr/snap.hdf5", "box.zarr"


def store_in_store(folder: Path) -> tuple[str, str]:
    (folder / "box.zarr").mkdir()
    io.write_particles(POINTS, folder / "box.zarr" / "run.zarr")
    return "box.zarr/run.zarr", "box.zarr"


def part_of_a_folder(folder: Path) -> tuple[str, str]:
    parts(POINTS.chunk(particle=2), folder / "box.parquet")
    return "box.parquet", "box.parquet/part-000001.parquet"


def of_one_snapshot(folder: Path) -> tuple[str, str]:
    for k in range(2):
        io.write_particles(POINTS, folder / f"snap.{k}.hdf5")
    return "snap.0.hdf5", "snap.1.hdf5"


def itself(folder: Path) -> tuple[str, str]:
    io.write_particles(POINTS, folder / "box.hdf5")
    return "box.hdf5", "box.hdf5"


def group_of_itself(folder: Path) -> tuple[str, str]:
    io.write_hits(POINTS, folder / "box.h5")
    return "box.h5:/", "box.h5"


@some_of(
    12,
    make=[in_store, store_in_store, part_of_a_folder, of_one_snapshot, itself, group_of_itself],
    is_linked=[False, True],
    option=["-o", "--table"],
    system=["fof {} --b 0.2", "dbscan {} --eps 2", "clue {} --dc 1 --rhoc 1"],
)
def test_no_command_replaces_its_input(
    tmp_path: Path, monkeypatch: Any, command: Any, system: str, option: str, is_linked: bool, make: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    source, target = make(tmp_path)
    before = content(tmp_path)
    if is_linked:
        name, _, group = source.partition(":")
        link = Path(f"link{Path(name).suffix}")
        link.symlink_to(name)
        source, targets = f"{link}:{group}".rstrip(":") if make is not of_one_snapshot else source, [target]
        other = Path(f"other{Path(target).suffix}")
        other.symlink_to(target)
        targets.append(str(other))
    else:
        targets = [target]
    for each in targets:
        code, _, err = command(*system.format(source).split(), option, each)
        assert code == 1
        assert f"error: {option} {each} " in err
        assert ("is the input" in err) or ("holds the input" in err) or ("is a part of the input" in err)
    assert {name: data for name, data in content(tmp_path).items() if "link" not in name and "other" not in name} == (
        before
    )
