"""The explorer in a real browser, as a user has it: open, move, drag, select, compare, export, wait."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from app import pictures
from app.page import Page, opened, serving
from cases.explorer import DATA, written
from sklearn.datasets import make_blobs

from daskclust import datasets, io
from daskclust.app.look import DARK, LIGHT, LOOKS, parts
from daskclust.app.systems import SYSTEMS

pytestmark = pytest.mark.browser


def expected(hits_file: Path, page: Page) -> Any:
    """Return the clustering with the parameters that the page shows."""
    names = ("dc", "rhoc", "delta_c", "delta_o")
    return io.read_hits(hits_file).clust.clue(**{name: page.value(name) for name in names})


def counts(result: Any) -> tuple[int, float]:
    """Return the number of clusters and the share of noise, as the page tells them."""
    return int(result["label"].max()) + 1, round(100 * float((result["label"] < 0).mean()), 1)


def test_counts_follow_a_slider(page: Page, hits_file: Path) -> None:
    before = page.counts()
    assert before == counts(expected(hits_file, page))
    for name, pixels in (("rhoc", 25), ("delta_o", -30), ("dc", 20), ("delta_c", 15)):
        value = page.value(name)
        page.slide(name, pixels)
        page.at_rest()
        assert (page.value(name) > value) == (pixels > 0)
        page.until(lambda: page.counts() == counts(expected(hits_file, page)))  # values that are seen may change, too
    assert page.counts() != before


def test_a_line_of_the_decision_plot_is_dragged(page: Page, hits_file: Path) -> None:
    before, value = page.counts(), page.value("rhoc")
    x, y = page.frame(1)["x"] + page.place_of("rhoc", "x"), page.on(1, 0.0, 0.3)[1]
    page.drag((x, y), (x + 40, y))
    page.at_rest()
    assert page.value("rhoc") > value
    assert page.counts() != before
    result = expected(hits_file, page)
    assert page.counts()[0] == int(result["label"].max()) + 1


def test_a_box_a_lasso_and_none(page: Page) -> None:
    page.drag(page.on(0, 0.3, 0.3), page.on(0, 0.6, 0.6))
    inside = page.until(page.chosen)
    assert inside < 3000
    headers = page.page.locator(".tabulator-headers")
    page.until(lambda: "selected" in headers.inner_text())
    page.click("Clear selection")
    page.until(lambda: page.chosen() == 0)
    page.until(lambda: "selected" not in headers.inner_text())
    # a lasso around less
    page.page.locator(".bk-tool-icon-lasso-select").nth(0).click()
    page.drag(*(page.on(0, x, y) for x, y in ((0.3, 0.3), (0.6, 0.3), (0.6, 0.6), (0.3, 0.3))))
    assert 0 < page.until(page.chosen) < inside
    page.click("Clear selection")
    page.until(lambda: page.chosen() == 0)
    # a box in the decision plot chooses as well
    page.drag(page.on(1, 0.9, 0.2), page.on(1, 0.3, 0.45))
    page.until(page.chosen)
    page.click("Clear selection")
    page.until(lambda: page.chosen() == 0)
    # rows of the table
    page.at_rest()
    page.page.locator(".tabulator-row").nth(0).locator(".tabulator-cell").nth(1).click()
    size = page.until(page.chosen)
    assert size > 1


def test_table_and_lines_are_those_of_the_state(page: Page, hits_file: Path, tmp_path: Path) -> None:
    page.slide("rhoc", 20)
    page.at_rest()
    names = page.run_lines()
    assert page.counts()[0] == names["table"].sizes["cluster"]
    xs = expected(hits_file, page)
    np.testing.assert_array_equal(names["result"]["label"], xs["label"])
    with page.page.expect_download() as download:
        page.page.get_by_text("Table as CSV").click()
    target = tmp_path / "clusters.csv"
    download.value.save_as(target)
    table = pd.read_csv(target)
    np.testing.assert_array_equal(table["size"], names["table"]["size"])
    np.testing.assert_allclose(table["energy"], names["table"]["energy"])


def test_what_does_not_do_is_told_and_the_page_goes_on(page: Page, hits_file: Path) -> None:
    before, value = page.counts(), page.value("dc")
    alert = page.page.get_by_text("dc must be finite and positive, got -3.0")
    page.type("dc", "-3")
    page.until(alert.is_visible)
    assert "Traceback" not in page.page.content()
    assert page.counts() == before
    page.type("dc", f"{2 * value:g}")
    page.until(lambda: not alert.is_visible())
    page.at_rest()
    assert page.counts()[0] == int(expected(hits_file, page)["label"].max()) + 1


def test_a_box_on_a_histogram(page: Page, hits_file: Path) -> None:
    page.drag(page.on(2, 0.6, 0.3), page.on(2, 0.95, 0.7))
    inside = page.until(page.chosen)
    assert inside < 3000
    assert int(page.run_lines()["inside"].sum()) == inside


def test_the_cut_of_a_dendrogram_is_dragged(browser: Any, tmp_path: Path) -> None:
    cells = written("hca", datasets.cytometry(600, rng=0), tmp_path)
    with serving(cells) as address, opened(browser, address) as page:
        before = page.counts()
        assert before[0] == page.value("n_clusters")
        top = page.frame(1)["y"]
        x, y = page.on(1, 0.6, 0.0)[0], top + page.place_of("height", "y")
        page.drag((x, y), (x, y - 60))
        page.until(lambda: page.counts()[0] < before[0])
        page.at_rest()
        found = io.open_fcs(cells, transform=None).clust.hca(
            page.value("threshold"), height=page.value("height"), min_size=int(page.value("min_size"))
        )
        assert page.counts()[0] == int(found["label"].max()) + 1
        # the slider moves the line back
        low = page.place_of("height", "y")
        page.slide("height", -20)
        page.until(lambda: page.place_of("height", "y") > low)
        page.at_rest()
        # branches are chosen with a box
        page.drag(page.on(1, 0.2, 0.5), page.on(1, 0.4, 0.7))
        inside = page.until(page.chosen)
        assert inside < 600
        names = page.run_lines()
        assert int(names["inside"].sum()) == inside
        assert names["table"].sizes["cluster"] == page.counts()[0]


def test_another_system_and_other_axes(browser: Any, tmp_path: Path) -> None:
    path = written("dbscan", datasets.seed_spreader(2_000, 2, rng=0), tmp_path)
    with serving(path, "--system", "clue") as address, opened(browser, address) as page:
        for name in ("hca", "dbscan", "fof", "clue"):
            page.page.locator("select").nth(0).select_option(label=SYSTEMS[name].title)
            page.until(page.page.locator("b", has_text=SYSTEMS[name].title).count)
            page.at_rest()
            page.page.locator("select").nth(1).select_option("y")
            page.at_rest()
        wanted = io.read_hits(path, field="calorimeter").clust.clue(
            **{name: page.value(name) for name in ("dc", "rhoc", "delta_c", "delta_o")}
        )
        assert page.counts() == counts(wanted)


# -------------------------------------------------------------------------------------- suggestions, comparisons, files


@pytest.fixture(scope="module")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return where ``daskclust explore`` serves four blobs."""
    X, _ = make_blobs(1500, centers=4, random_state=0, cluster_std=0.5)
    path = tmp_path_factory.mktemp("explorer") / "points.csv"
    path.write_text("x,y\n" + "\n".join(f"{x!r},{y!r}" for x, y in X.tolist()) + "\n")
    with serving(path, "--system", "clue") as found:
        yield found


@pytest.fixture
def blob_page(browser: Any, blobs: str) -> Iterator[Page]:
    with opened(browser, blobs) as tab:
        yield tab


def test_a_suggestion_is_used_and_compared_with_what_was_there(blob_page: Page) -> None:
    before = blob_page.counts()[0]
    blob_page.click("Keep as A")
    blob_page.at_rest()
    blob_page.click("Suggest parameters")
    blob_page.until(lambda: "4 points stand out" in blob_page.page.locator(".suggestion").inner_text())
    blob_page.page.get_by_role("button", name="Use", exact=True).click()
    blob_page.until(lambda: blob_page.counts()[0] == 4)
    told = blob_page.page.locator(".compared")
    blob_page.until(lambda: f"clusters {before:,} → 4" in told.inner_text())
    blob_page.click("Choose the points that moved")
    blob_page.until(lambda: f"{blob_page.chosen():,} of 1,500 points moved" in told.inner_text())
    blob_page.click("Forget A")
    blob_page.at_rest()
    blob_page.until(lambda: not told.count())


def test_figures_and_a_notebook_are_downloaded(blob_page: Page, tmp_path: Path) -> None:
    begins = {"SVG": b"<?xml", "PNG, 300 dpi": b"\x89PNG"}
    for words, first in begins.items():
        with blob_page.page.expect_download() as download:
            blob_page.page.get_by_text(words, exact=True).click()
        download.value.save_as(tmp_path / "figure")
        assert (tmp_path / "figure").read_bytes().startswith(first)
    with blob_page.page.expect_download() as download:
        blob_page.page.get_by_text("Notebook", exact=True).click()
    download.value.save_as(tmp_path / "explored.ipynb")
    cells = json.loads((tmp_path / "explored.ipynb").read_text())["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(cell["source"], names)
    assert blob_page.counts()[0] == names["table"].sizes["cluster"]


def test_a_comparison_is_begun_and_ended_many_times(blob_page: Page) -> None:
    told = blob_page.page.locator(".compared")
    for _ in range(4):
        blob_page.click("Keep as A")
        told.wait_for()
        blob_page.click("Forget A")
        blob_page.until(lambda: not told.count())
    blob_page.at_rest()


def test_a_dark_browser_has_a_dark_page_each_time(browser: Any, tmp_path: Path) -> None:
    with serving(written("events", DATA["events"](), tmp_path)) as address:
        for _ in range(4):
            with opened(browser, address, "dark"):  # which waits for it
                pass


# ------------------------------------------------------------------------------------------------------------ long work


_POINTS = 500_000  # where all pairs are within dc, it takes longer than what begins without a question


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of hits of one layer."""
    x, y = np.random.default_rng(0).uniform(-250.0, 250.0, (2, _POINTS)).astype(np.float32)
    ones = {"layer": ("hit", np.zeros(_POINTS, np.int32)), "energy": ("hit", np.ones(_POINTS, np.float32))}
    ds = xr.Dataset({"x": ("hit", x), "y": ("hit", y), **ones})
    return written("clue", ds, tmp_path_factory.mktemp("long"))


@pytest.fixture(scope="module")
def large(large_file: Path) -> Iterator[str]:
    """Return where these are served."""
    with serving(large_file) as found:
        yield found


@pytest.fixture
def large_page(browser: Any, large: str) -> Iterator[Page]:
    with opened(browser, large) as tab:
        yield tab


def processes(served: Path) -> set[int]:
    """Return the processes that compute for the server of a file: other tests may have theirs at the same time."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"daskclust.app.worker" in (folder / "cmdline").read_bytes():
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                if os.fsencode(served) in Path("/proc", parent, "cmdline").read_bytes():
                    found.add(int(folder.name))
        except OSError:
            continue
    return found


def ended(served: Path, before: set[int], seconds: float = 600.0) -> bool:
    """Return whether there are soon no others than before."""
    end = time.monotonic() + seconds
    while processes(served) - before and time.monotonic() < end:
        time.sleep(0.1)
    return not processes(served) - before


def test_long_work_is_asked_for_and_cancelled(large_page: Page, large_file: Path) -> None:
    before, counts, value = processes(large_file), large_page.counts(), large_page.value("dc")
    status = large_page.page.get_by_text("dc = 700 needs")
    large_page.type("dc", "700")
    large_page.until(status.is_visible)
    large_page.at_rest()
    assert large_page.counts() == counts
    large_page.page.get_by_role("button", name=f"Back to {value:g}").click()
    large_page.until(lambda: not status.is_visible())
    large_page.until(lambda: large_page.value("dc") == value)
    # it is done where the user wants it, in a process that Cancel ends
    large_page.type("dc", "700")
    large_page.until(status.is_visible)
    large_page.page.get_by_role("button", name="Run anyway").click()
    cancel = large_page.page.get_by_role("button", name="Cancel")
    large_page.until(cancel.is_visible)
    assert large_page.counts() == counts
    assert large_page.value("dc") == 700
    large_page.until(lambda: processes(large_file) - before)
    cancel.click()
    large_page.until(lambda: large_page.value("dc") == value)
    large_page.at_rest()
    assert large_page.counts() == counts
    assert ended(large_file, before)
    # what is quick goes on as ever
    large_page.type("rhoc", f"{2 * large_page.value('rhoc'):g}")
    large_page.until(lambda: large_page.counts() != counts)


def test_a_page_that_is_closed_ends_its_work(browser: Any, large: str, large_file: Path) -> None:
    before = processes(large_file)
    with opened(browser, large) as page:
        page.type("dc", "700")
        page.page.get_by_role("button", name="Run anyway").click()
        page.until(lambda: processes(large_file) - before)
    assert ended(large_file, before)


# ---------------------------------------------------------------------------------------------------------------- looks


_PARTS = (".bk-Figure", ".bk-tool-icon", ".tabulator", ".noUi-target", "select", "button.bk-btn")
_ON_FIGURES = (".bk-tool-icon", "button.bk-btn")


def boxes(page: Page) -> list[tuple[str, dict[str, float]]]:
    """Return where parts of the page are that are seen."""
    seen = [(part, each) for part in _PARTS for each in page.page.locator(part).all() if each.is_visible()]
    found = [(part, each.bounding_box()) for part, each in seen]
    return [(part, box) for part, box in found if box and box["width"] and box["height"]]


def share(image: Any, color: str) -> float:
    """Return the share of pixels with a colour."""
    return float((np.asarray(image) == parts(color)).all(axis=2).mean())


@pytest.mark.parametrize("name", pictures.DATA)
def test_light_and_dark(name: str, browser: Any, tmp_path: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    with pictures.served(name, tmp_path) as address:
        for scheme in LOOKS:
            with opened(browser, address, scheme, pictures.SIZES[0]) as page:
                look_over(page, scheme)
                found = axe.Axe().run(page.page).response["violations"]
                assert [each for each in found if each["impact"] in ("serious", "critical")] == []


def look_over(page: Page, scheme: str) -> None:
    """Check a page as it was opened."""
    parts = boxes(page)
    assert len([part for part, _ in parts if part == ".bk-Figure"]) >= 2  # a picture, and a histogram
    for part, box in parts:
        assert box["x"] >= 0, part
        assert box["x"] + box["width"] <= pictures.SIZES[0][0], part
    for (one, a), (two, b) in itertools.combinations(parts, 2):
        if one == ".bk-Figure" and two in _ON_FIGURES:
            continue
        across = min(a["x"] + a["width"], b["x"] + b["width"]) - max(a["x"], b["x"])
        down = min(a["y"] + a["height"], b["y"] + b["height"]) - max(a["y"], b["y"])
        assert across <= 1 or down <= 1, (one, two)
    image, look = pictures.picture(page), LOOKS[scheme]
    assert share(image, look.page) > 0.2
    other = LIGHT if look is DARK else DARK
    assert share(image, other.page) < 0.02
    # how many there are is told above every picture that has clusters
    assert page.page.locator(".explorer-panel", has_text="clusters").count() >= 2
