"""The explorer in a real browser, as a user has it: open, move, drag, select, export."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from app.page import Page, opened, serving
from cases.explorer import written

from daskclust import datasets, io
from daskclust.app.systems import SYSTEMS

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def hits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of 3000 hits of a calorimeter."""
    ds = datasets.calorimeter(3, 1000, size=120.0, rng=0).drop_vars("truth")
    return written("clue", ds, tmp_path_factory.mktemp("explorer"))


@pytest.fixture(scope="module")
def address(hits: Path) -> Iterator[str]:
    """Return where ``daskclust explore`` serves the hits."""
    with serving(hits) as found:
        yield found


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Page]:
    with opened(browser, address) as tab:
        yield tab


def expected(hits: Path, page: Page) -> Any:
    """Return the clustering with the parameters that the page shows."""
    names = ("dc", "rhoc", "delta_c", "delta_o")
    return io.read_hits(hits).clust.clue(**{name: page.value(name) for name in names})


def counts(result: Any) -> tuple[int, float]:
    """Return the number of clusters and the share of noise, as the page tells them."""
    return int(result["label"].max()) + 1, round(100 * float((result["label"] < 0).mean()), 1)


def test_counts_follow_a_slider(page: Page, hits: Path) -> None:
    before = page.counts()
    assert before == counts(expected(hits, page))
    for name, pixels in (("rhoc", 25), ("delta_o", -30), ("dc", 20), ("delta_c", 15)):
        value = page.value(name)
        page.slide(name, pixels)
        page.at_rest()
        assert (page.value(name) > value) == (pixels > 0)
        page.until(lambda: page.counts() == counts(expected(hits, page)))  # values that are seen may change, too
    assert page.counts() != before


def test_a_line_of_the_decision_plot_is_dragged(page: Page, hits: Path) -> None:
    before, value = page.counts(), page.value("rhoc")
    x, y = page.frame(1)["x"] + page.place_of("rhoc", "x"), page.on(1, 0.0, 0.3)[1]
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


def test_table_and_lines_are_those_of_the_state(page: Page, hits: Path, tmp_path: Path) -> None:
    page.slide("rhoc", 20)
    page.at_rest()
    names = page.run_lines()
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


def test_what_does_not_do_is_told_and_the_page_goes_on(page: Page, hits: Path) -> None:
    before, value = page.counts(), page.value("dc")
    alert = page.page.get_by_text("dc must be finite and positive, got -3.0")
    page.type("dc", "-3")
    page.until(alert.is_visible)
    assert "Traceback" not in page.page.content()
    assert page.counts() == before
    page.type("dc", f"{2 * value:g}")
    page.until(lambda: not alert.is_visible())
    page.at_rest()
    assert page.counts()[0] == int(expected(hits, page)["label"].max()) + 1


def test_a_box_on_a_histogram(page: Page, hits: Path) -> None:
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
