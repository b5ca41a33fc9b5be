"""How soon the explorer answers: ``PYTHONPATH=tests python tests/app/response.py OUT.json [--points 1e5 1e6 1e7]``.

Files are generated, served by ``daskclust explore`` and opened in Chromium. A time is measured in the page, from what
the user does to the frame that shows the new picture and the new header; of repeated ones, the median is kept. The
machine should have nothing else to do.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xarray as xr
from app.page import Page, chromium, opened, serving

from daskclust import datasets, io, machine

_ROUNDS = 5
DATA: dict[str, tuple[str, Callable[[int], xr.Dataset], Callable[[xr.Dataset, Path], Any]]] = {
    "clue": ("hits.parquet", lambda n: datasets.calorimeter(100, n // 100, rng=0).drop_vars("truth"), io.write_hits),
    "events": ("pixels.parquet", lambda n: datasets.timepix(n, rng=0), io.write_hits),
    "fof": ("box.hdf5", lambda n: datasets.cosmology_box(n, rng=0), io.write_particles),
    "hdbscan": ("box.hdf5", lambda n: datasets.cosmology_box(n, rng=0), io.write_particles),
}
PARAMETERS = {
    "clue": ("rhoc", "PageUp", "dc", 1.1),
    "events": ("min_hits", "ArrowRight", "dt_max", 0.5),
    "fof": ("min_members", "PageUp", "b", 0.9),
    "hdbscan": ("min_cluster_size", "PageUp", "min_samples", 1.3),
}
"""The threshold, which needs no new clusters, a key for its slider; what needs new ones, a length or number, and its
steps."""

_FIRST = """
const look = () => {
    if (window.Bokeh?.documents[0]?.is_idle) requestAnimationFrame(() => { window.first = performance.now() })
    else requestAnimationFrame(look)
}
look()
"""
# what a frame shows is known as the next one begins
_WATCH = """() => {
    const views = []
    const find = (view) => { views.push(view); for (const child of view.children?.() ?? []) find(child) }
    for (const root of Bokeh.index.roots) find(root)
    const shown = {began: 0, picture: 0, header: 0}
    window.shown = shown
    const now = (what) => requestAnimationFrame(() => requestAnimationFrame(() => { shown[what] = performance.now() }))
    const plot = views.find((view) => view.model.type == "Figure").model
    for (const each of plot.renderers) each.data_source.change.connect(() => now("picture"))
    const header = views.find((view) => view.model.text?.includes?.("counts")).model
    const words = () => header.text.split("now")[0]  // without what is under way, and how long it took
    let before = words()
    header.change.connect(() => { if (words() != before) { before = words(); now("header") } })
    for (const kind of ["keydown", "pointerup", "wheel"])
        document.addEventListener(kind, () => { shown.began = performance.now() }, true)
}"""
_RESET = "Object.assign(window.shown, {began: 0, picture: 0, header: 0})"


def main() -> None:
    """Measure, and write a record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--points", type=float, nargs="+", default=[1e5, 1e6, 1e7])
    parser.add_argument("--systems", nargs="+", default=list(DATA), choices=list(DATA))
    asked = parser.parse_args()
    runs = []
    with chromium() as browser:
        for points in asked.points:
            for name in asked.systems:
                runs.append({"system": name, "points": int(points), "seconds": measured(browser, name, int(points))})
                sys.stdout.write(f"{json.dumps(runs[-1])}\n")
    record = {"machine": machine.describe(), "browser": browser_version(), "runs": runs}
    asked.out.write_text(json.dumps(record, indent=1) + "\n")


def browser_version() -> str:
    """Return the version of Chromium."""
    with chromium() as browser:
        return str(browser.version)


def measured(browser: Any, name: str, points: int) -> dict[str, float]:
    """Return seconds of each thing that a user does."""
    file, make, write = DATA[name]
    threshold, key, length, factor = PARAMETERS[name]
    with tempfile.TemporaryDirectory() as folder:
        write(make(points), Path(folder) / file)
        began = time.perf_counter()
        with serving(Path(folder) / file, "--system", name) as address:
            seconds = {"served": time.perf_counter() - began}
            for _ in range(2):  # the first page of a server is not the usual one
                with opened(browser, address, before=_FIRST) as page:
                    seconds["first picture"] = page.page.evaluate("window.first") / 1e3
            with opened(browser, address, before=_FIRST) as page:
                page.page.evaluate(_WATCH)
                first = f"{page.value(threshold):g}"
                handle = page.page.locator(f".slider-{threshold} .noUi-handle")
                handle.focus()
                seconds["threshold"] = median(page, lambda k: page.page.keyboard.press(key))
                page.type(threshold, first)
                page.at_rest()
                value, digits = page.value(length), ".0f" if length == "min_samples" else ".4g"
                seconds["length"] = median(page, lambda k: page.type(length, f"{value * factor ** (k + 1):{digits}}"))
                page.page.mouse.move(*page.on(0, 0.5, 0.5))
                seconds["zoom"] = median(page, lambda k: page.page.mouse.wheel(0, -100), "picture")
                seconds["box"] = median(
                    page, lambda k: page.drag(page.on(0, 0.3, 0.3), page.on(0, 0.5 + 0.05 * k, 0.6))
                )
    return {what: round(value, 3) for what, value in seconds.items()}


def median(page: Page, do: Callable[[int], Any], needed: str = "header") -> float:
    """Return the median of the seconds until what is done is seen; a picture that stays as it is needs no time."""
    seconds = []
    for number in range(_ROUNDS):
        page.page.evaluate(_RESET)
        do(number)
        page.until(lambda: page.page.evaluate(f"window.shown.{needed}"))
        page.at_rest()
        shown = page.page.evaluate("window.shown")
        seconds.append((max(shown["picture"], shown["header"]) - shown["began"]) / 1e3)
    return statistics.median(seconds)


if __name__ == "__main__":
    main()
