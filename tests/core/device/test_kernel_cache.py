"""Machine code that processes keep in the same files: none may be run for the signature of another."""

import errno
import os

import numpy as np
import pytest

from daskclust.core.device.machine_code import kernel_cache
from daskclust.core.device.machine_code.kernel_cache import cached_on_disk


@pytest.fixture
def processes(tmp_path, kernel_folder):
    """Three dispatchers of one function, as three processes have them, with their files in one folder."""
    import numba

    kernel_folder(tmp_path)

    def kilo(x):
        return x * 1000

    return [cached_on_disk(numba.njit(kilo)) for _ in range(3)]


def test_two_signatures_compiled_at_the_same_time(processes, monkeypatch):
    one, other, later = processes
    files = one._cache._cache_file
    written = files._save_index
    monkeypatch.setattr(other._cache._cache_file, "_load_index", dict)  # it looked before the first had written

    def meanwhile(overloads):
        written(overloads)
        assert other(np.float32(1.5)) == 1500

    monkeypatch.setattr(files, "_save_index", meanwhile)
    assert one(np.int64(2)) == 2000
    assert len(files._load_index()) == 1, "one entry was dropped"

    assert later(np.float32(1.5)) == 1500
    assert later(np.int64(2)) == 2000
    assert sum(later.stats.cache_hits.values()) == 1
    assert len(files._load_index()) == 2


def test_an_index_never_names_a_file_that_is_not_there(processes, monkeypatch):
    files = processes[0]._cache._cache_file
    written, seen = files._save_index, []

    def look(overloads):
        seen.extend(files._load_data(name) for name in overloads.values())
        written(overloads)

    monkeypatch.setattr(files, "_save_index", look)
    assert processes[0](3) == 3000
    assert len(seen) == len(files._load_index()) == 1


@pytest.fixture
def told(monkeypatch, caplog):
    """Return a function that gives what users were told."""
    monkeypatch.setattr(kernel_cache, "_told", [])
    return lambda: caplog.messages


def no_place(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_cache_that_cannot_be_written_is_told_once(processes, told, tmp_path, monkeypatch):
    for process, value in ((processes[0], 2), (processes[1], 2.5)):
        monkeypatch.setattr(process._cache._cache_file, "_save_data", no_place)
        assert process(value) == value * 1000
    (message,) = told()
    assert message.startswith("compiled kernels cannot be kept on disk, so each process compiles them again: ")
    assert f"{tmp_path} No space left on device; set NUMBA_CACHE_DIR to a folder" in message


def test_where_no_folder_can_be_written(told, monkeypatch, kernel_folder):
    import numba
    from numba.core.caching import _CacheLocator

    kernel_folder("")
    monkeypatch.setattr(_CacheLocator, "ensure_cache_path", no_place)
    for factor in (10, 100):
        assert cached_on_disk(numba.njit(lambda x, factor=factor: x * factor))(3) == 3 * factor
    (message,) = told()
    assert f"{os.path.dirname(__file__)}/__pycache__ cannot be written; set NUMBA_CACHE_DIR" in message
