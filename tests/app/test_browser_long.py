"""Long work of the explorer in a real browser: it is asked for, told of, cancelled, and pages that close end it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from app.page import Page, opened, serving
from cases.explorer import written

pytestmark = pytest.mark.browser

_POINTS = 500_000  # where all pairs are within dc, it takes longer than what begins without a question


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return where hits of one layer are served."""
    x, y = np.random.default_rng(0).uniform(-250.0, 250.0, (2, _POINTS)).astype(np.float32)
    ones = {"layer": ("hit", np.zeros(_POINTS, np.int32)), "energy": ("hit", np.ones(_POINTS, np.float32))}
    ds = xr.Dataset({"x": ("hit", x), "y": ("hit", y), **ones})
    with serving(written("clue", ds, tmp_path_factory.mktemp("long"))) as found:
        yield found


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Page]:
    with opened(browser, address) as tab:
        yield tab


def processes() -> set[int]:
    """Return the processes beside explorers that compute."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"daskclust.app.worker" in (folder / "cmdline").read_bytes():
                found.add(int(folder.name))
        except OSError:
            continue
    return found


def ended(before: set[int], seconds: float = 600.0) -> bool:
    """Return whether there are soon no others than before."""
    end = time.monotonic() + seconds
    while processes() - before and time.monotonic() < end:
        time.sleep(0.1)
    return not processes() - before


def test_long_work_is_asked_for_and_cancelled(page: Page) -> None:
    before, counts, value = processes(), page.counts(), page.value("dc")
    status = page.page.get_by_text("dc = 700 needs")
    page.type("dc", "700")
    page.until(status.is_visible)
    page.at_rest()
    assert page.counts() == counts
    page.page.get_by_role("button", name=f"Back to {value:g}").click()
    page.until(lambda: not status.is_visible())
    page.until(lambda: page.value("dc") == value)
    # it is done where the user wants it, in a process that Cancel ends
    page.type("dc", "700")
    page.until(status.is_visible)
    page.page.get_by_role("button", name="Run anyway").click()
    cancel = page.page.get_by_role("button", name="Cancel")
    page.until(cancel.is_visible)
    assert page.counts() == counts
    assert page.value("dc") == 700
    page.until(lambda: processes() - before)
    cancel.click()
    page.until(lambda: page.value("dc") == value)
    page.at_rest()
    assert page.counts() == counts
    assert ended(before)
    # what is quick goes on as ever
    page.type("rhoc", f"{2 * page.value('rhoc'):g}")
    page.until(lambda: page.counts() != counts)


def test_a_page_that_is_closed_ends_its_work(browser: Any, address: str) -> None:
    before = processes()
    with opened(browser, address) as page:
        page.type("dc", "700")
        page.page.get_by_role("button", name="Run anyway").click()
        page.until(lambda: processes() - before)
    assert ended(before)
