"""The explorer's page as a user has it: served by the command, opened in a Chromium."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip
_SECONDS = 600.0
_PLACE_OF_LINE = """([name, axis]) => {
    const views = []
    const find = (view) => { views.push(view); for (const child of view.children?.() ?? []) find(child) }
    for (const root of Bokeh.index.roots) find(root)
    const plot = views.find((view) => view.model.center?.some((each) => each.name == name))
    const line = plot.model.center.find((each) => each.name == name)
    const scale = axis == "x" ? plot.frame.x_scale : plot.frame.y_scale
    return scale.compute(line.location)
}"""


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a browser; LookupError where there is none."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise LookupError('no playwright here: pip install "daskclust[browser]"') from None
    found = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    path = next((each for each in found if each), None)
    if path is None:
        raise LookupError("no Chromium here: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def serving(path: Path, *arguments: str) -> Iterator[str]:
    """Yield where ``daskclust explore`` serves a file; it must end soon when it is asked to."""
    command = [sys.executable, "-u", "-m", "daskclust", "explore", str(path), "--no-browser", *arguments]
    with (
        tempfile.TemporaryFile("w+") as told,  # a pipe that nobody reads would stop the server when it is full
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=told, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            found = re.search(r"http://localhost:\d+/", line)
            if found is None:
                told.seek(0)
                raise AssertionError((line, told.read()))
            yield found[0]
            process.terminate()
            process.wait(_SECONDS)
        finally:
            process.kill()


@contextmanager
def opened(
    browser: Any,
    address: str,
    scheme: str = "light",
    size: tuple[int, int] = (1400, 1100),
    *,
    shown: str = "",
    before: str = "",
) -> Iterator[Page]:
    """Yield the page, at rest; when it is closed, there must have been no fault, and no other host asked.

    `before` is a script that runs before those of the page.
    """
    viewport = dict(zip(("width", "height"), size, strict=True))
    context = browser.new_context(viewport=viewport, accept_downloads=True, color_scheme=scheme)
    context.add_init_script(before)
    tab = context.new_page()
    asked: list[str] = []
    faults: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("console", lambda told: faults.append(told.text) if told.type == "error" else None)
    tab.goto(address, timeout=1000 * _SECONDS)
    tab.locator(".counts").wait_for(timeout=1000 * _SECONDS)
    page = Page(tab)
    page.until(tab.locator(f".counts.{shown or scheme}").count)
    page.at_rest()
    yield page
    context.close()
    assert not faults, faults
    # nothing but this machine is asked for anything
    assert not [url for url in asked if not url.startswith(("http://localhost", "ws://localhost", "data:", "blob:"))]


class Page:
    """What is on the page, and what a user does there."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def until(self, holds: Callable[[], Any]) -> Any:
        """Return what `holds` gives once it is true."""
        end = time.monotonic() + _SECONDS
        while not (value := holds()):
            if time.monotonic() > end:
                raise TimeoutError(f"still not so; the page tells {self.words}")
            self.page.wait_for_timeout(20)
        return value

    @property
    def words(self) -> str:
        return str(self.page.locator(".counts").inner_text())

    def at_rest(self) -> None:
        """Wait until nothing is under way."""
        for _ in range(2):
            self.page.wait_for_timeout(200)  # what was done to the page is not told at once
            self.until(self.page.locator(".rest").count)

    def settled(self, value: Callable[[], Any], other_than: Any) -> Any:
        """Return what `value` gives once it is another one, and stays: a busy server answers a key at a time."""
        last = self.until(lambda: (found := value()) != other_than and (found,))
        while True:
            self.at_rest()
            if last == (last := (value(),)):
                return last[0]

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

    def type(self, name: str, value: str) -> None:
        """Type a number beside a slider."""
        box = self.page.locator(f".number-{name} input")
        box.fill(value)
        box.press("Enter")

    def click(self, words: str) -> None:
        self.page.locator("button", has_text=words).click()

    def run_lines(self) -> dict[str, Any]:
        """Return what the Python lines that the page gives make."""
        self.click("Python lines")
        names: dict[str, Any] = {}
        exec(self.until(self.page.locator("textarea").input_value), names)
        return names

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

    def place_of(self, name: str, axis: str) -> float:
        """Return how far a line is from the left, or from the top, of its picture."""
        return float(self.page.evaluate(_PLACE_OF_LINE, [name, axis]))
