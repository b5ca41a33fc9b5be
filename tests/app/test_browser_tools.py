"""Suggestions, comparisons and files to take along, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from app.page import Page, opened, serving
from cases.explorer import DATA, written
from sklearn.datasets import make_blobs

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return where ``daskclust explore`` serves four blobs."""
    X, _ = make_blobs(1500, centers=4, random_state=0, cluster_std=0.5)
    path = tmp_path_factory.mktemp("explorer") / "points.csv"
    path.write_text("x,y\n" + "\n".join(f"{x!r},{y!r}" for x, y in X.tolist()) + "\n")
    with serving(path, "--system", "clue") as found:
        yield found


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Page]:
    with opened(browser, address) as tab:
        yield tab


def test_a_suggestion_is_used_and_compared_with_what_was_there(page: Page) -> None:
    before = page.counts()[0]
    page.click("Keep as A")
    page.at_rest()
    page.click("Suggest parameters")
    page.until(lambda: "4 points stand out" in page.page.locator(".suggestion").inner_text())
    page.page.get_by_role("button", name="Use", exact=True).click()
    page.until(lambda: page.counts()[0] == 4)
    told = page.page.locator(".compared")
    page.until(lambda: f"clusters {before:,} → 4" in told.inner_text())
    page.click("Choose the points that moved")
    page.until(lambda: f"{page.chosen():,} of 1,500 points moved" in told.inner_text())
    page.click("Forget A")
    page.at_rest()
    page.until(lambda: not told.count())


def test_figures_and_a_notebook_are_downloaded(page: Page, tmp_path: Path) -> None:
    begins = {"SVG": b"<?xml", "PNG, 300 dpi": b"\x89PNG"}
    for words, first in begins.items():
        with page.page.expect_download() as download:
            page.page.get_by_text(words, exact=True).click()
        download.value.save_as(tmp_path / "figure")
        assert (tmp_path / "figure").read_bytes().startswith(first)
    with page.page.expect_download() as download:
        page.page.get_by_text("Notebook", exact=True).click()
    download.value.save_as(tmp_path / "explored.ipynb")
    cells = json.loads((tmp_path / "explored.ipynb").read_text())["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(cell["source"], names)
    assert page.counts()[0] == names["table"].sizes["cluster"]


def test_a_comparison_is_begun_and_ended_many_times(page: Page) -> None:
    told = page.page.locator(".compared")
    for _ in range(4):
        page.click("Keep as A")
        told.wait_for()
        page.click("Forget A")
        page.until(lambda: not told.count())
    page.at_rest()


def test_a_dark_browser_has_a_dark_page_each_time(browser: Any, tmp_path: Path) -> None:
    with serving(written("events", DATA["events"](), tmp_path)) as address:
        for _ in range(4):
            with opened(browser, address, "dark"):  # which waits for it
                pass
