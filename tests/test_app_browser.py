"""The explorer in a real browser, as a user has it: open, move, drag, select, export."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from daskclust import datasets, io

pytestmark = pytest.mark.browser

_ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip
_SECONDS = 60.0
_PLACE_OF_LINE = """() => {
    const line = Bokeh.documents[0].get_model_by_name("rhoc")
    const views = []
    const find = (view) => { views.push(view); for (const child of view.children?.() ?? []) find(child) }
    for (const root of Bokeh.index.roots) find(root)
    const plot = views.find((view) => view.model.center?.includes(line))
    return plot.frame.x_scale.compute(line.location)
}"""


def missing(what: str) -> None:
    """Skip where a browser is missing; in CI that is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a Chromium."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing('no playwright here: pip install "daskclust[browser]"')
    found = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    path = next((each for each in found if each), None)
    if path is None:
        missing("no Chromium here: apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(_ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def hits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of 3000 hits of a calorimeter."""
    path = tmp_path_factory.mktemp("explorer") / "hits.parquet"
    io.write_hits(datasets.calorimeter(3, 1000, size=120.0, rng=0).drop_vars("truth"), path)
    return path


@pytest.fixture(scope="module")
def address(hits: Path) -> Iterator[str]:
    """Return where ``daskclust explore`` serves the file."""
    command = [sys.executable, "-u", "-m", "daskclust", "explore", str(hits), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://localhost:\d+/", line)
        if found is None:
            process.kill()
            raise AssertionError((line, process.communicate()))
        yield found[0]
        process.terminate()


class Page:
    """The explorer's page."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def until(self, holds: Callable[[], Any]) -> Any:
        """Return what `holds` gives once it is true."""
        end = time.monotonic() + _SECONDS
        while not (value := holds()):
            assert time.monotonic() < end, f"still not so; the page tells {self.words}"
            self.page.wait_for_timeout(20)
        return value

    @property
    def words(self) -> str:
        return str(self.page.locator(".counts").inner_text())

    def at_rest(self) -> None:
        """Wait until nothing is under way."""
        self.until(lambda: "ms" in self.page.locator(".now").inner_text())
        self.page.wait_for_timeout(300)
        self.until(lambda: "ms" in self.page.locator(".now").inner_text())

    def counts(self) -> tuple[int, float]:
        """Return the number of clusters and the share of noise that are told."""
        found = re.search(r"([\d,]+) clusters .* ([\d.]+)% noise", self.words)
        assert found is not None, self.words
        return int(found[1].replace(",", "")), float(found[2])

    def chosen(self) -> int:
        found = re.search(r"([\d,]+) points chosen", self.words)
        return int(found[1].replace(",", "")) if found else 0

    def value(self, name: str) -> float:
        """Return what stands beside a slider."""
        return float(self.page.locator(f".number-{name} input").input_value().replace(",", ""))

    def drag(self, start: tuple[float, float], *way: tuple[float, float]) -> None:
        mouse = self.page.mouse
        mouse.move(*start)
        mouse.down()
        for place in way:
            mouse.move(*place, steps=6)
        mouse.up()

    def slide(self, name: str, pixels: float) -> None:
        box = self.page.locator(f".slider-{name} .noUi-handle").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.drag((x, y), (x + pixels, y))

    def frame(self, number: int) -> dict[str, float]:
        """Return where a picture is on the page."""
        return dict(self.page.locator(".bk-Figure .bk-events").nth(number).bounding_box())

    def on(self, number: int, x: float, y: float) -> tuple[float, float]:
        """Return a place on a picture, by shares of its width and height."""
        box = self.frame(number)
        return box["x"] + x * box["width"], box["y"] + y * box["height"]


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 1100}, accept_downloads=True)
    tab = context.new_page()
    asked: list[str] = []
    faults: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.goto(address)
    tab.locator(".counts").wait_for(timeout=1000 * _SECONDS)
    opened = Page(tab)
    opened.at_rest()
    yield opened
    context.close()
    assert not faults
    # nothing but this machine is asked for anything
    assert not [url for url in asked if not url.startswith(("http://localhost", "ws://localhost", "data:", "blob:"))]


def expected(hits: Path, page: Page) -> Any:
    """Return the clustering with the parameters that the page shows."""
    names = ("dc", "rhoc", "delta_c", "delta_o")
    return io.read_hits(hits).clust.clue(**{name: page.value(name) for name in names})


def test_counts_follow_a_slider(page: Page, hits: Path) -> None:
    before = page.counts()
    result = expected(hits, page)
    assert before == (int(result["label"].max()) + 1, round(100 * float((result["label"] < 0).mean()), 1))
    for name, pixels in (("rhoc", 25), ("delta_o", -30), ("dc", 20), ("delta_c", 15)):
        value = page.value(name)
        page.slide(name, pixels)
        page.at_rest()
        assert (page.value(name) > value) == (pixels > 0)
        result = expected(hits, page)
        wanted = int(result["label"].max()) + 1, round(100 * float((result["label"] < 0).mean()), 1)
        page.until(lambda wanted=wanted: page.counts() == wanted)
    assert page.counts() != before


def test_a_line_of_the_decision_plot_is_dragged(page: Page, hits: Path) -> None:
    before, value = page.counts(), page.value("rhoc")
    x, y = page.page.evaluate(_PLACE_OF_LINE), page.on(1, 0.0, 0.3)[1]
    x += page.frame(1)["x"]
    page.drag((x, y), (x + 40, y))
    page.at_rest()
    assert page.value("rhoc") > value
    assert page.counts() != before
    result = expected(hits, page)
    assert page.counts()[0] == int(result["label"].max()) + 1


def test_a_box_a_lasso_and_none(page: Page) -> None:
    page.drag(page.on(0, 0.3, 0.3), page.on(0, 0.6, 0.6))
    inside = page.until(page.chosen)
    assert inside < 3000
    headers = page.page.locator(".tabulator-headers")
    page.until(lambda: "selected" in headers.inner_text())
    page.page.locator("button", has_text="Clear selection").click()
    page.until(lambda: page.chosen() == 0)
    page.until(lambda: "selected" not in headers.inner_text())
    # a lasso around less
    page.page.locator(".bk-tool-icon-lasso-select").nth(0).click()
    page.drag(*(page.on(0, x, y) for x, y in ((0.3, 0.3), (0.6, 0.3), (0.6, 0.6), (0.3, 0.3))))
    assert 0 < page.until(page.chosen) < inside
    page.page.locator("button", has_text="Clear selection").click()
    page.until(lambda: page.chosen() == 0)
    # a box in the decision plot chooses as well
    page.drag(page.on(1, 0.9, 0.2), page.on(1, 0.3, 0.45))
    page.until(page.chosen)
    page.page.locator("button", has_text="Clear selection").click()
    page.until(lambda: page.chosen() == 0)
    # rows of the table
    page.page.locator(".tabulator-row").nth(0).locator(".tabulator-cell").nth(1).click()
    size = page.until(page.chosen)
    assert size > 1


def test_table_and_lines_are_those_of_the_state(page: Page, hits: Path, tmp_path: Path) -> None:
    page.slide("rhoc", 20)
    page.at_rest()
    names: dict[str, Any] = {}
    page.page.locator("button", has_text="Python lines").click()
    lines = page.until(lambda: page.page.locator("textarea").input_value())
    exec(lines, names)
    assert page.counts()[0] == names["table"].sizes["cluster"]
    xs = expected(hits, page)
    np.testing.assert_array_equal(names["result"]["label"], xs["label"])
    with page.page.expect_download() as download:
        page.page.get_by_text("Table as CSV").click()
    target = tmp_path / "clusters.csv"
    download.value.save_as(target)
    table = pd.read_csv(target)
    np.testing.assert_array_equal(table["size"], names["table"]["size"])
    np.testing.assert_allclose(table["energy"], names["table"]["energy"])
