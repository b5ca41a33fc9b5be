"""The demonstrations: the lines on each page are those that were run, and the page is one for any reader and screen."""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import holoviews
import numpy as np
import pytest
from cases.lanes import quick_first

from daskclust import demo
from daskclust.demo.cases import CASES, Case
from daskclust.demo.page import write_page
from daskclust.plot._look import load_backends
from daskclust.systems import SYSTEMS

SMALL = {"rng": "40, n_noise=2_000, rng", "300_000": "3_000", "60_000": "3_000", "4_000": "1_000", "5_000": "1_000"}
FACTS = {"points": 3000, "clusters": 12, "noise": 7, "purity": 0.9, "completeness": 0.8}
FACTS |= {"seconds_dask": 1.0, "seconds_memory": 0.1, "equal": True}


class Page(HTMLParser):
    """A page's tags, and the words of its headings and blocks of code."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)
        self.words.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.open:
            self.words[self.open[-1]][-1] += data


def small(case: Case) -> Case:
    """Return a demonstration of fewer points."""
    word = next(word for word in ("300_000", "60_000", "5_000", "4_000", "rng") if word in case.data)
    return case._replace(data=case.data.replace(word, SMALL[word], 1))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that writes the page of a system, once, of few points that are clustered in this process."""
    folder = tmp_path_factory.mktemp("demo")

    def page_of(system: str) -> Path:
        page = folder / f"{system}.html"
        if not page.exists():
            case = small(CASES[system])
            found = case.run(case.cluster, ds=case.run(case.data.format(seed=1)))
            names = case.names(found, case.run(case.table, found=found))
            write_page(page, case, FACTS, 2, 1, names, folder / f"{system}.parquet")
        return page

    return page_of


def test_every_system_has_one() -> None:
    assert list(CASES) == [name for name, system in SYSTEMS.items() if system.explorer_at]


@pytest.mark.parametrize("system", quick_first(CASES, 2))
def test_pages(system: str, pages: Callable[[str], Path]) -> None:
    page, case = Page(pages(system)), CASES[system]
    found = dict(page.tags)
    assert found["html"]["lang"] == "en"
    assert found["meta"]["content"] == "width=device-width, initial-scale=1"
    assert page.words["title"] == [f"{case.title} - daskclust"]
    assert page.words["h1"] == [case.title]
    headings = [picture.heading for picture in case.pictures]
    assert page.words["h2"] == [*headings, "What was found", "Data and parameters", "What to try next"]
    assert [attrs["aria-label"] for tag, attrs in page.tags if tag == "figure"] == headings
    for attrs in (attrs for _, attrs in page.tags):
        assert not re.match("(https?:)?//", attrs.get("src") or attrs.get("href") or "")
    shown = [unescape(each) for each in page.words["pre"]]
    n = len(case.pictures)
    assert [picture.line for picture in case.pictures] == shown[:n]
    names: dict[str, Any] = {}
    exec(shown[n], names)  # the page is a script, from its imports to the last picture
    assert all(eval(line, names) is not None for line in shown[:n])


@pytest.mark.parametrize("system", [system for system, case in CASES.items() if any(p.points for p in case.pictures)])
def test_points_in_3d(system: str, pages: Callable[[str], Path]) -> None:
    """They are where the points of clusters are, in the colours of these; a shower has one through all layers."""
    canvas = next(attrs for tag, attrs in Page(pages(system)).tags if tag == "canvas")
    scene = json.loads(str(canvas["data-scene"]))
    case = small(CASES[system])
    found = case.run(case.cluster, ds=case.run(case.data.format(seed=1)))
    names = case.names(found, case.run(case.table, found=found))
    points = case.run(str(case.pictures[0].points), **names)
    points = points.isel({points["label"].dims[0]: np.flatnonzero(points["label"].values >= 0)})
    numbers = np.frombuffer(base64.b64decode(scene["points"]), "<u2").reshape(4, -1)
    np.testing.assert_array_equal(numbers[3], points["label"].values % len(scene["colors"]))
    for axis, name in enumerate("xyz"):
        low, high = float(points[name].min()), float(points[name].max())
        step = (high - low) / scene["sides"][axis] / 65_535
        np.testing.assert_allclose(low + step * numbers[axis], points[name], atol=step)
    if system == "clue":
        layers = points["layer"].groupby(points["label"]).map(lambda each: each.max() - each.min())
        assert float(layers.median()) > 10


@pytest.mark.parametrize("system", CASES)
def test_commands_of_pages_run(system: str, tmp_path: Path, command: Any) -> None:
    """Both commands read the file that the demonstration wrote, and the parameters of the first are the page's."""
    case = small(CASES[system])
    ds = case.run(case.data.format(seed=1))
    case.write(ds, tmp_path / "points.parquet")
    clusters = []
    for line in (case.command, case.other):
        _, *words = shlex.split(line.replace("FILE", str(tmp_path / "points.parquet")))
        code, out, err = command(*words, "--json")
        assert code == 0, err
        facts = json.loads(out)
        clusters.append(facts.get("clusters", facts.get("halos")))
    found = case.run(case.cluster, ds=ds)
    assert clusters[0] == int(found["label"].max()) + 1
    assert clusters[0] != clusters[1], "another value has another result"


@pytest.mark.slow
@pytest.mark.parametrize("system", CASES)
def test_demonstrations(system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever draws the pictures of a notebook in this process."""
    load_backends()
    monkeypatch.setattr(holoviews.Store, "current_backend", "matplotlib")
    monkeypatch.setitem(CASES, system, small(CASES[system]))
    steps: list[str] = []
    table, facts = demo.run_demo(system, tmp_path, 2, 1, steps.append)
    assert facts["equal"]
    assert facts["clusters"] == table.sizes["cluster"] > 1
    assert 0.5 < facts["purity"] <= 1
    assert {path.name for path in tmp_path.iterdir()} == {f"{system}.html", f"{system}.parquet"}
    page = Page(Path(facts["page"]))
    assert f"{facts['clusters']:,}" in page.words["dd"]
    assert system != "clue" or "Decision plot" in page.text
    assert steps[-1] == "drawing"


@pytest.mark.browser
@pytest.mark.parametrize("system", CASES)
@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_pages_in_a_browser(browser: Any, pages: Callable[[str], Path], system: str, width: int) -> None:
    """Pictures are as wide as the page lets them, nothing is beside the page, and the console is silent."""
    for scheme, ground in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(21, 24, 28)")):
        tab = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        told: list[str] = []
        tab.on(
            "console",
            lambda message, told=told: told.append(message.text) if message.type in ("error", "warning") else None,
        )
        tab.on("pageerror", lambda error, told=told: told.append(str(error)))
        tab.goto(pages(system).as_uri())
        tab.wait_for_function(
            "n => document.querySelectorAll('.bk-Figure, canvas[data-scene]').length >= n",
            arg=len(CASES[system].pictures),
        )
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == ground
        frames = tab.evaluate(
            "[...document.querySelectorAll('figure')].map(f => [f, f.querySelector('.bk-Figure, canvas')]"
            ".map(e => e.getBoundingClientRect().width))"
        )
        assert all(0.8 * outer < np.float64(inner) <= outer for outer, inner in frames)
        assert told == []
        tab.close()
