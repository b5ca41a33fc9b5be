"""The explorer's page: one screen, panels that are arranged, and an address that opens the same view."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import Any

import pytest
from app.page import Page, opened
from cases.explorer import DATA

import daskclust.app
import daskclust.app.page.served
from daskclust.app import layout
from daskclust.app.page.address import Address
from daskclust.app.page.board import Arrangement
from daskclust.app.state import State

SIZES = ((1280, 720), (1280, 800), (1400, 905), (1920, 1080))
_TITLES = """() => {
    const inner = (each) => each.shadowRoot ? all(each.shadowRoot) : []
    const all = (root) => [...root.querySelectorAll("*")].flatMap((each) => [each, ...inner(each)])
    const texts = all(document).filter((each) => !each.children.length && each.clientWidth
        && /^[\\d,]+ (clusters|seeds)/.test(each.textContent))
    return texts.map((each) => [each.textContent, each.scrollWidth <= each.clientWidth + 1])
}"""
_UNITS = """() => {
    const find = (view) => view.model.renderers ? [view.model] : [...view.children?.() ?? []].flatMap(find)
    const [{x_range, y_range, inner_width, inner_height}] = [...Bokeh.index.roots].flatMap(find)
    return [(x_range.end - x_range.start) / inner_width, (y_range.end - y_range.start) / inner_height]
}"""


class Location:
    """What Panel knows of an address."""

    def __init__(self, search: str) -> None:
        self.search = search


def areas(explorer: Any) -> dict[str, str]:
    """Return where each panel is that is seen: rows and columns of the grid."""
    cards = explorer.board.cards
    return {name: card.styles["grid-area"] for name, card in cards.items() if card.visible}


def test_panels_fill_the_grid_however_they_are_arranged() -> None:
    explorer = daskclust.app.explore(DATA["clue"]())
    board = explorer.board
    first = areas(explorer)
    assert list(first) == ["picture", "table", "decision plot", "size", "energy"]
    board.arrange(board.arrangement.exchanged("table"))
    assert areas(explorer) == first | {"table": first["decision plot"], "decision plot": first["table"]}
    board.arrange(replace(board.arrangement, hidden=frozenset({"table", "size", "energy"})))
    assert set(areas(explorer)) == {"picture", "decision plot"}
    board.arrange(replace(board.arrangement, hidden=frozenset(first) - {"picture"}))
    assert areas(explorer) == {"picture": "1 / 1 / 121 / 2"}
    assert "minmax(0, 0fr)" in board.__panel__().styles["grid-template-columns"]
    board.arrange(replace(board.arrangement, hidden=frozenset(first)))
    assert areas(explorer) == {}
    board.arrange(Arrangement(enlarged="size"))
    assert areas(explorer) == {"size": "1 / 1 / 121 / 3"}
    board.arrange(Arrangement())
    assert areas(explorer) == first


@pytest.mark.parametrize(
    ("search", "faults"),
    [
        ("?rhoc=abc&dc=-3&kernel=cubic&width=1000&slice=9", ["rhoc must", "'abc'", "got -3.0", "kernel", "'9'"]),
        ("?system=hdbscan&rhoc=inf&%ff=%&&=&rho=3", ["system must be one of clue", "rhoc must be finite", "rho=3"]),
        ("?rhoc&slice=all&chip=1", ["rhoc must be a number, got ''", "there is no chip=1"]),
    ],
)
def test_what_is_broken_in_an_address_is_told_and_ignored(search: str, faults: list[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(layout, "Address", lambda _: Address(Location(search)))
    state = State(DATA["clue"]())
    before = state.values
    explorer = layout.Explorer(state)
    assert state.values == before
    assert state.present.n_clusters
    note = html.unescape(explorer.ignored.object) if explorer.ignored.visible else ""
    assert note.startswith("Ignored in the address: ")
    assert [fault for fault in faults if fault not in note] == []


# ------------------------------------------------------------------------------------------------------- in a browser
def panels(page: Page) -> list[dict[str, float]]:
    """Return where panels are that are seen."""
    found = [each.bounding_box() for each in page.page.locator(".explorer-panel").all() if each.is_visible()]
    return [box for box in found if box]


def lengths(page: Page) -> list[int]:
    """Return how wide and how high all of the page is."""
    return list(page.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"))


@pytest.mark.browser
def test_one_screen_without_scrolling(browser: Any, explorer_address: str) -> None:
    with opened(browser, explorer_address) as page:
        for width, height in SIZES:
            page.page.set_viewport_size({"width": width, "height": height})
            page.at_rest()
            assert lengths(page) == [width, height]
            boxes = panels(page)
            assert len(boxes) == 5
            covered = sum(box["width"] * box["height"] for box in boxes)
            assert covered > 0.94 * (width - 260) * (height - 40)
            # units are as long across as up
            across, up = page.page.evaluate(_UNITS)
            assert across == pytest.approx(up, rel=1e-6)
        page.page.set_viewport_size({"width": 900, "height": 500})
        assert lengths(page) == [960, 560]
        # a phone has the picture alone
        page.page.set_viewport_size({"width": 420, "height": 800})
        page.at_rest()
        (picture,) = panels(page)
        assert lengths(page) == [420, 800]
        assert picture["width"] > 400
        assert picture["height"] > 700
        assert not page.page.locator(".explorer-side").is_visible()


@pytest.mark.browser
def test_panels_of_a_comparison_are_not_small_and_titles_not_cut(browser: Any, explorer_address: str) -> None:
    with opened(browser, explorer_address, size=SIZES[0]) as page:
        whole = len(panels(page))
        titles = page.page.evaluate(_TITLES)
        assert len(titles) >= 2
        assert [words for words, is_whole in titles if not is_whole] == []
        page.click("Keep as A")
        page.page.locator(".compared").wait_for()
        page.at_rest()
        assert min(box["height"] for box in panels(page)) >= 200
        titles = page.page.evaluate(_TITLES)
        assert len(titles) >= 2
        assert [words for words, is_whole in titles if not is_whole] == []
        page.click("Forget A")
        page.until(lambda: len(panels(page)) == whole)


@pytest.mark.browser
def test_a_decimal_comma_is_read(browser: Any, explorer_address: str) -> None:
    with opened(browser, explorer_address) as page:
        before = page.counts()
        box = page.page.locator(".number-rhoc input")
        box.fill("")
        page.page.keyboard.type("12,5")
        page.page.keyboard.press("Enter")
        page.until(lambda: page.counts() != before)
        assert box.input_value() == "12.5"


@pytest.mark.browser
def test_an_address_opens_the_same_view(browser: Any, explorer_address: str) -> None:
    with opened(browser, explorer_address) as page:
        tab = page.page
        page.type("rhoc", "8")
        page.at_rest()
        for name in ("Hide table", "Move picture"):  # with the keyboard
            tab.get_by_role("button", name=name).press("Enter")
            page.until(lambda name=name: name.split()[-1] in tab.url)
        page.until(lambda: len(panels(page)) == 4)
        page.click("Light or dark")
        page.until(tab.locator(".counts.dark").count)
        page.at_rest()
        seen, counts, url = panels(page), page.counts(), tab.url
        assert tab.evaluate("history.length") <= 2
    with opened(browser, url, "light", shown="dark") as page:
        assert panels(page) == seen
        assert page.counts() == counts
        assert page.value("rhoc") == 8.0
        # one panel fills the grid, and goes back
        page.page.get_by_role("button", name="Enlarge size").click()
        page.until(lambda: len(panels(page)) == 1)
        page.at_rest()
        page.page.get_by_role("button", name="Enlarge size").click()
        page.until(lambda: panels(page) == seen)
        page.page.get_by_label("table").check()
        page.until(lambda: len(panels(page)) == 5)
    with opened(browser, url.replace("rhoc=8", "rhoc=many"), "light", shown="dark") as page:
        note = page.page.get_by_text("Ignored in the address: rhoc must be a number, got 'many")
        page.until(note.is_visible)
        page.type("rhoc", "9")
        page.until(lambda: not note.is_visible())
