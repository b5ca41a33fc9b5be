"""What hands do in the explorer, in a real browser: grab lines, press keys, click clusters and rows, play."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from app.page import Page, opened, serving
from cases.explorer import written
from PIL import Image

from daskclust import datasets

pytestmark = pytest.mark.browser


def cursor(page: Page) -> str:
    """Return how the mouse looks over the decision plot."""
    return str(page.page.locator(".bk-Figure .bk-events").nth(1).evaluate("element => element.style.cursor"))


def dark(page: Page, x: float, y: float) -> int:
    """Return how many pixels around a place are not those of the paper."""
    clip = {"x": x - 8, "y": y - 1, "width": 16, "height": 2}
    image = np.asarray(Image.open(io.BytesIO(page.page.screenshot(clip=clip))).convert("RGB"))
    return int(np.count_nonzero(np.ptp(image[0], axis=1) > 60))


@pytest.mark.parametrize("name", ["rhoc", "delta_c"])
def test_a_line_is_grabbed_within_12_pixels(page: Page, name: str) -> None:
    frame, mouse = page.frame(1), page.page.mouse
    along = "x" if name == "rhoc" else "y"
    page.type("delta_o", f"{4 * page.value('delta_c'):g}")  # out of the way
    page.at_rest()

    def at(offset: float) -> tuple[float, float]:
        place = frame[along] + page.place_of(name, along) + offset
        return (place, page.on(1, 0, 0.7)[1]) if along == "x" else (page.on(1, 0.3, 0)[0], place)

    for offset in (-14, *range(-12, 13, 4), 14):
        start, near = at(offset), abs(offset) <= 12
        mouse.move(*at(60))
        mouse.move(*start)
        page.page.wait_for_timeout(50)
        assert (cursor(page) == ("ew-resize" if along == "x" else "ns-resize")) == near, offset
        before, place = page.value(name), page.place_of(name, along)
        mouse.down()
        page.page.wait_for_timeout(400 if offset == 8 else 0)  # a hand may rest before it drags
        mouse.move(start[0] + 9 * (along == "x"), start[1] + 9 * (along == "y"), steps=3)
        mouse.up()
        page.at_rest()
        assert (page.value(name) != before) == near, offset
        assert page.place_of(name, along) - place == pytest.approx(9 if near else 0, abs=1.5), offset


def test_a_line_thickens_under_the_mouse(page: Page) -> None:
    x, y = page.frame(1)["x"] + page.place_of("rhoc", "x"), page.on(1, 0, 0.7)[1]
    thin = dark(page, x, y)
    page.page.mouse.move(x + 30, y)
    page.page.mouse.move(x + 11, y, steps=3)
    page.until(lambda: dark(page, x, y) >= thin + 3)
    page.page.mouse.move(x + 14, y, steps=3)
    page.until(lambda: dark(page, x, y) == thin)


def test_of_two_lines_the_nearest_is_grabbed(page: Page) -> None:
    page.type("delta_o", f"{1.15 * page.value('delta_c'):g}")
    page.at_rest()
    top = page.frame(1)["y"]
    high, low = top + page.place_of("delta_o", "y"), top + page.place_of("delta_c", "y")
    assert 5 < low - high < 20
    x = page.on(1, 0.3, 0)[0]
    for name, start in (("delta_c", low - 0.4 * (low - high)), ("delta_o", high + 0.4 * (low - high))):
        values = {each: page.value(each) for each in ("delta_c", "delta_o")}
        page.drag((x, start), (x, start + (30 if name == "delta_c" else -30)))
        page.at_rest()
        assert [each for each, value in values.items() if page.value(each) != value] == [name]


def test_keys_move_a_line(page: Page) -> None:
    keys = page.page.keyboard
    x, y = page.frame(1)["x"] + page.place_of("rhoc", "x"), page.on(1, 0, 0.7)[1]
    page.page.mouse.move(x + 40, y)
    page.page.mouse.move(x + 5, y)
    page.page.mouse.click(x + 5, y)
    places = [page.place_of("rhoc", "x")]
    for key in ("ArrowRight", "Shift+ArrowRight", "ArrowLeft"):
        keys.press(key)
        places.append(page.settled(lambda: page.place_of("rhoc", "x"), places[-1]))
    step = places[2] - places[3]
    assert step > 0
    assert places[2] - places[1] == pytest.approx(10 * step, rel=0.1)
    # the next control by Tab: a number, and its slider
    value = page.value("delta_c")
    keys.press("Tab")
    keys.press("ArrowUp")
    page.until(lambda: page.value("delta_c") > value)
    keys.press("Tab")
    place = page.place_of("delta_c", "y")
    keys.press("Shift+ArrowLeft")
    page.until(lambda: page.place_of("delta_c", "y") > place + 3)


def test_numbers_are_as_short_as_a_slider_tells(page: Page) -> None:
    box = page.page.locator(".number-delta_c input")
    for _ in range(9):
        box.press("ArrowUp")
    page.at_rest()
    shown = [box.input_value()]
    page.slide("delta_c", 33)
    page.at_rest()
    shown.append(box.input_value())
    y = page.frame(1)["y"] + page.place_of("delta_c", "y")
    page.drag((page.on(1, 0.3, 0)[0], y), (page.on(1, 0.3, 0)[0], y - 21))
    page.at_rest()
    shown.append(box.input_value())
    assert max(len(each.replace(".", "").lstrip("0")) for each in shown) <= 3, shown
    assert f"delta_c={float(shown[-1])!r}" in str(page.run_lines() and page.page.locator("textarea").input_value())
    page.type("delta_c", "7.123456")
    page.at_rest()
    assert box.input_value() == "7.123456"


def rows(page: Page) -> list[str]:
    """Return the sizes of the clusters whose rows are lit."""
    lit = page.page.locator(".tabulator-row.tabulator-selected [tabulator-field=size]")
    return [each.inner_text() for each in lit.all() if each.is_visible()]


_RANGES = """() => {
    const {x_range, y_range} = [...Bokeh.index.query((view) => view.model.type == "Figure")][0].model
    return [x_range.start, x_range.end, y_range.start, y_range.end]
}"""
_PLACES = """() => {
    const view = [...Bokeh.index.query((view) => view.model.type == "Figure")][0]
    const marks = view.model.renderers[1].data_source.data, {x_scale, y_scale} = view.frame
    const {x, y, alpha, color} = marks
    return Array.from(x, (_, k) => [x_scale.compute(x[k]), y_scale.compute(y[k]), alpha[k], color[k]])
}"""


def places(page: Page) -> np.ndarray:
    """Return where points are on the page, how opaque they are, and the numbers of their colours."""
    found, frame = np.array(page.page.evaluate(_PLACES)), page.frame(0)
    return np.asarray(found + np.array([frame["x"], frame["y"], 0, 0]))


def test_a_click_on_a_cluster_shows_its_row_and_one_on_the_ground_none(page: Page) -> None:
    at, mouse = places(page), page.page.mouse
    first = at[at[:, 3] < 8][7]
    mouse.click(*first[:2])
    inside = page.until(page.chosen)
    assert page.until(lambda: rows(page)) == [str(inside)]
    assert page.page.locator(".tabulator-row").count() > 1  # among others
    assert int(page.run_lines()["inside"].sum()) == inside
    box = page.frame(0)
    grid = np.stack(np.meshgrid(np.linspace(80, box["width"] - 40, 40), np.linspace(50, box["height"] - 60, 40)), -1)
    ground = grid.reshape(-1, 2) + np.array([box["x"], box["y"]])
    away = np.hypot(*(ground[:, None, :] - at[None, :, :2]).transpose(2, 0, 1)).min(axis=1)
    assert away.max() > 11
    mouse.click(*ground[away.argmax()])
    page.until(lambda: page.chosen() == 0 and not rows(page))


def test_a_click_on_a_row_zooms_to_its_cluster_and_reset_comes_back(page: Page) -> None:
    whole = page.page.evaluate(_RANGES)
    page.page.locator(".tabulator-row").nth(2).locator(".tabulator-cell").nth(1).click()
    inside = page.until(page.chosen)
    page.until(lambda: page.page.evaluate(_RANGES) != whole)
    page.at_rest()
    left, right, *_ = page.page.evaluate(_RANGES)
    assert right - left < 0.6 * (whole[1] - whole[0])
    at, box = places(page), page.frame(0)
    mine = at[at[:, 2] == 1]
    assert len(mine) == inside
    assert ((mine[:, 0] > box["x"]) & (mine[:, 0] < box["x"] + box["width"])).all()
    assert len(rows(page)) == 1
    page.page.locator(".bk-tool-icon-reset").nth(0).click()
    page.until(lambda: np.allclose(page.page.evaluate(_RANGES), whole, atol=2))


def test_a_box_begins_beside_a_line(page: Page) -> None:
    x = page.frame(1)["x"] + page.place_of("rhoc", "x")
    value = page.value("rhoc")
    page.page.mouse.move(x + 60, page.on(1, 0, 0.3)[1])
    page.drag((x + 16, page.on(1, 0, 0.75)[1]), (x - 90, page.on(1, 0, 0.6)[1]))
    assert page.until(page.chosen) < 3000
    assert page.value("rhoc") == value


def test_windows_of_time_have_units_and_are_played(browser: Any, tmp_path: Path) -> None:
    ds = datasets.timepix(20_000, rng=0)
    with serving(written("events", ds, tmp_path)) as address, opened(browser, address) as page:
        words = page.page.locator(".slice-words")

        def ends() -> tuple[float, float]:
            found = re.fullmatch(r"([\d.]+) - ([\d.]+) (ns|us|ms|s)", words.inner_text().strip())
            assert found is not None, words.inner_text()
            size = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}[found[3]]
            return float(found[1]) * size, float(found[2]) * size

        low, high = ends()
        toa = ds["toa"].values
        assert len(places(page)) == ((toa >= low) & (toa < high)).sum() > 0
        page.page.get_by_role("button", name="Step").click()
        page.until(lambda: ends()[0] == pytest.approx(high))
        page.at_rest()
        page.page.get_by_role("button", name="Back").click()
        page.until(lambda: ends()[0] == pytest.approx(low))
        for _ in range(2):
            page.page.get_by_role("button", name="Faster").click()
        page.page.get_by_role("button", name="Play").click()
        seen = {ends()}
        page.until(lambda: seen.add(ends()) or len(seen) >= 4)
        page.page.get_by_role("button", name="Pause").click()
        page.at_rest()
        last = ends()
        page.page.wait_for_timeout(600)
        assert ends() == last
        assert len(places(page)) == ((toa >= last[0]) & (toa < last[1])).sum()
        page.page.get_by_label("shown").select_option("all times")
        page.until(lambda: "all times" in words.inner_text())


def test_noisy_pixels_are_hidden(browser: Any, tmp_path: Path) -> None:
    ds = datasets.timepix(4_000, rng=0)
    n = 500
    noisy = ds.isel(hit=np.linspace(0, 3_999, n).astype(int)).assign(
        x=("hit", np.full(n, 77, np.uint16)), y=("hit", np.full(n, 99, np.uint16))
    )
    ds = xr.concat([ds, noisy], "hit").sortby("toa")
    with serving(written("events", ds, tmp_path)) as address, opened(browser, address) as page:
        assert "4,500 points" in page.words
        page.type("max_pixel_hits", "100")
        page.until(lambda: "4,000 points" in page.words)
        assert f"{n} hits of noisy pixels hidden" in page.words
        page.at_rest()
        names = page.run_lines()
        assert names["ds"].sizes["hit"] == 4_000
        assert page.counts()[0] == names["table"].sizes["cluster"]
