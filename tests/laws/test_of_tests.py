"""Tests do not fail by chance: a busy machine may take any time for anything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from daskclust.core.device.kernels import body

FOLDER = Path(__file__).parents[1]


CLOCKS = re.compile(r"\bassert\b.*\b(monotonic|perf_counter|process_time|thread_time|time\.time)(_ns)?\(")


def test_no_assertion_reads_a_clock() -> None:
    assert CLOCKS.search("    assert time.perf_counter() - x < 3")
    others = [path for path in FOLDER.rglob("*.py") if path != Path(__file__)]
    assert [path.name for path in others if CLOCKS.search(path.read_text())] == []


def test_answers_of_other_programs_are_small_and_named() -> None:
    files = [path for path in (FOLDER / "data").rglob("*.*") if path.suffix != ".pyc"]
    assert sum(path.stat().st_size for path in files) < 500_000


def test_no_kernel_runs_while_tests_are_collected(pytestconfig: pytest.Config) -> None:
    """Those of this run were collected so, see conftest.py; here the guard is seen at work."""
    guard = next(p for p in pytestconfig.pluginmanager.get_plugins() if hasattr(p, "one_dask_thread")).pytest_collection
    during = guard()
    next(during)
    with pytest.raises(RuntimeError, match="while tests are collected"):
        _ = body(_nothing).cpu
    with pytest.raises(StopIteration):
        next(during)
    assert body(_nothing).cpu is not None


def _nothing(i: int) -> None:
    pass
