"""Machine code that processes keep in the same files: none may be run for the signature of another."""

import numpy as np
import pytest

from daskclust.core.kept import kept


@pytest.fixture
def twins(tmp_path, monkeypatch):
    """Two dispatchers of one function, as two processes have them, with their files in one folder."""
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def kilo(x):
        return x * 1000

    return [kept(numba.njit(kilo)) for _ in range(2)]


def test_two_signatures_compiled_at_the_same_time(twins, tmp_path, monkeypatch):
    first, second = (twin._cache._cache_file for twin in twins)
    read, written = first._load_index, first._save_index
    monkeypatch.setattr(second, "_load_index", dict)  # the other process looked before the first had written

    def meanwhile(overloads):
        written(overloads)
        assert twins[1](np.float32(1.5)) == 1500

    monkeypatch.setattr(first, "_save_index", meanwhile)
    assert twins[0](np.int64(2)) == 2000
    assert len(read()) == 1, "one entry was dropped"

    third = kept(type(twins[0])(twins[0].py_func, targetoptions=twins[0].targetoptions))
    assert third(np.float32(1.5)) == 1500
    assert third(np.int64(2)) == 2000
    assert sum(third.stats.cache_hits.values()) == 1
    assert len(third._cache._cache_file._load_index()) == 2


def test_an_index_never_names_a_file_that_is_not_there(twins, tmp_path, monkeypatch):
    files = twins[0]._cache._cache_file
    written = files._save_index

    def look(overloads):
        assert all(files._load_data(name) for name in overloads.values())
        written(overloads)

    monkeypatch.setattr(files, "_save_index", look)
    assert twins[0](3) == 3000
    assert list(tmp_path.rglob("*.nbi"))
