"""What hands do in the explorer, in a real browser: grab lines, press keys, click clusters and rows, play."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from app.page import Page, opened, serving
from cases.explorer import written
from PIL import Image

from daskclust import datasets

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return where ``daskclust explore`` serves 3000 hits of a calorimeter."""
    ds = datasets.calorimeter(3, 1000, size=120.0, rng=0).drop_vars("truth")
    with serving(written("clue", ds, tmp_path_factory.mktemp("hands"))) as found:
        yield found


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Page]:
    with opened(browser, address) as tab:
        yield tab


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
        page.until(lambda: page.place_of("rhoc", "x") != places[-1])
        page.at_rest()
        places.append(page.place_of("rhoc", "x"))
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
