"""Folders that are there completely or not at all."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from daskclust.io import replacing


def write(folder, error=None):
    with replacing.replacing_folder(folder) as temporary:
        (temporary / "part").write_text("new")
        if error:
            raise error


def test_the_folder_has_an_absolute_path(tmp_path, monkeypatch):
    """Workers run in other folders."""
    monkeypatch.chdir(tmp_path)
    with replacing.replacing_folder(Path("store")) as temporary:
        assert temporary.parent == tmp_path
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_after_a_failure_all_is_as_before(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "zarr.json").touch()
    with pytest.raises(ZeroDivisionError):
        write(tmp_path / "store", ZeroDivisionError())
    assert [path.name for path in tmp_path.rglob("*")] == ["store", "zarr.json"]


def test_what_other_tasks_write_after_a_failure_is_removed(tmp_path, monkeypatch):
    folders, pauses = [], []

    def write_on(seconds):
        pauses.append(seconds)
        if len(pauses) in (1, 2, 5, 9):
            folders[0].mkdir()

    def fail():
        with replacing.replacing_folder(tmp_path / "store") as temporary:
            folders.append(temporary)
            raise ZeroDivisionError

    monkeypatch.setattr(replacing, "time", SimpleNamespace(sleep=write_on, monotonic=lambda: 0.0))
    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(pauses) > 9
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_disk_while_the_file_is_written_is_raised(tmp_path, monkeypatch):
    """The system tells it once: at the end it would say that all is there."""
    tried = []

    def fails_once(file):
        tried.append(file)
        if len(tried) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def write_on():
        with replacing.replacing(tmp_path / "out.bin") as stream:
            while not tried:
                stream.write(b"half")

    monkeypatch.setattr(replacing, "_TO_DISK_EVERY", 0.01)
    monkeypatch.setattr(os, "fsync", fails_once)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        write_on()
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------ what the killed leave
KILLED = """
import os, pathlib, signal
from daskclust.io import replacing
with replacing.{function}(pathlib.Path({target!r})) as temporary:
    {write}
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "write"),
    [("replacing", "temporary.write(b'half')"), ("replacing_folder", "(temporary / 'a').touch()")],
)
def test_what_a_killed_process_left_goes_with_the_next_attempt(tmp_path, function, write):
    target = tmp_path / "out[1].zarr"
    program = KILLED.format(function=function, target=str(target), write=write)
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -signal.SIGKILL
    [left] = tmp_path.iterdir()
    others = [left.with_name(left.name.replace("out", "other")), tmp_path / f"{left.name}.mine"]
    for other in others:
        other.touch()
    with getattr(replacing, function)(target) as temporary:
        assert sorted(tmp_path.iterdir()) == sorted([*others, *tmp_path.glob(".out?1?.zarr.*.tmp")])
        assert len(list(tmp_path.iterdir())) == 3  # with this attempt's own
        assert temporary
    assert sorted(tmp_path.iterdir()) == sorted([*others, target])


def test_what_a_process_still_writes_stays(tmp_path):
    target = tmp_path / "out"
    with replacing.replacing(target) as first:
        first.write(b"first")
        with replacing.replacing(target) as second:
            second.write(b"second")
        assert target.read_bytes() == b"second"
    assert target.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.slow
def test_a_folder_moved_aside_by_a_killed_process_goes_when_the_new_one_is_there(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    target = tmp_path / "store"
    old = replacing.beside(target, "old")
    old = old.with_name(old.name.replace(f"{os.getpid():08x}", f"{gone.pid:08x}"))
    old.mkdir()
    with pytest.raises(ZeroDivisionError):
        write(target, ZeroDivisionError())
    assert list(tmp_path.iterdir()) == [old]  # all that there is
    write(target)
    assert list(tmp_path.iterdir()) == [target]
