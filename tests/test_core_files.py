"""Folders that are there completely or not at all."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import pytest

from daskclust.core import files


def write(folder, error=None):
    with files.replacing_folder(folder) as temporary:
        (temporary / "part").write_text("new")
        if error:
            raise error


def test_a_folder_takes_the_place_of_another(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "old").touch()
    write(tmp_path / "store")
    assert [path.name for path in tmp_path.rglob("*")] == ["store", "part"]


def test_the_folder_has_an_absolute_path(tmp_path, monkeypatch):
    """Workers run in other folders."""
    monkeypatch.chdir(tmp_path)
    with files.replacing_folder(Path("store")) as temporary:
        assert temporary.parent == tmp_path
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_after_a_failure_all_is_as_before(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "old").touch()
    with pytest.raises(ZeroDivisionError):
        write(tmp_path / "store", ZeroDivisionError())
    assert [path.name for path in tmp_path.rglob("*")] == ["store", "old"]


def test_what_other_tasks_write_after_a_failure_is_removed(tmp_path):
    made, others = [], []

    def go_on(temporary):
        for k in range(5):
            time.sleep(0.03)
            temporary.mkdir(exist_ok=True)
            made.append(k)

    def fail():
        with files.replacing_folder(tmp_path / "store") as temporary:
            others.append(threading.Thread(target=go_on, args=(temporary,)))
            others[0].start()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    others[0].join()
    assert made == [0, 1, 2, 3, 4]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_removed_does_not_hide_the_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_PATIENCE", 0.2)
    monkeypatch.setattr(shutil, "rmtree", lambda folder, ignore_errors: None)  # as on a disk that is read-only by then
    with pytest.raises(ZeroDivisionError):
        write(tmp_path / "store", ZeroDivisionError())
