"""Names, units and addresses that are HTML, in a real browser: each place shows them, and no script runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from app.page import Page, opened, serving
from cases.explorer import DATA
from cases.texts import ADDRESS, NAME, opened_with, written

pytestmark = pytest.mark.browser

_ALL = """() => {
    const found = {marks: [], ran: window.ran ?? null}
    const walk = (root) => {
        for (const each of root.querySelectorAll("*")) {
            if (each.matches("img[src=q]") || [...each.attributes].some((a) => a.name.startsWith("on")))
                found.marks.push(each.outerHTML)
            if (each.shadowRoot) walk(each.shadowRoot)
        }
    }
    walk(document)
    return found
}"""
_FIGURES = """() => {
    const words = []
    const find = (view) => {
        for (const axis of view.model.below ?? []) words.push(axis.axis_label)
        for (const child of view.children?.() ?? []) find(child)
    }
    for (const root of Bokeh.index.roots) find(root)
    return words.join(" ")
}"""


def _lines(page: Page) -> str:
    page.click("Python lines")
    return str(page.until(page.page.locator("textarea").input_value))


def _words(name: str) -> Callable[[Page], str]:
    return lambda page: " ".join(page.page.locator(name).all_inner_texts())


def _saved(words: str) -> Callable[[Page], str]:
    def text(page: Page) -> str:
        with page.page.expect_download() as download:
            page.page.get_by_text(words, exact=True).click()
        return Path(download.value.path()).read_text()

    return text


# where a text of data, of a file's name or of the address is shown: what is read there, and for which systems
PLACES: dict[str, tuple[Callable[[Page], str], tuple[str, ...]]] = {
    "title of the page": (lambda page: page.page.title(), tuple(DATA)),
    "what is ignored in the address": (_words("text=Ignored in the address"), tuple(DATA)),
    "choices of axes": (_words("select option"), tuple(DATA)),
    "titles of columns": (_words(".tabulator-col-title"), ("hca",)),
    "labels of axes": (lambda page: page.page.evaluate(_FIGURES), tuple(DATA)),
    "Python lines": (_lines, tuple(DATA)),
    "the table as CSV": (_saved("Table as CSV"), ("hca",)),
    "the notebook": (_saved("Notebook"), tuple(DATA)),
    "the figure": (_saved("SVG"), ("hca",)),
}


@pytest.fixture(scope="module", params=DATA)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Return a system, and where its data with such names are served."""
    path = written(request.param, tmp_path_factory.mktemp("texts"))
    with serving(path, "--system", request.param) as address:
        yield request.param, address


def test_no_text_is_taken_for_html(served: tuple[str, str], browser: Any) -> None:
    """Of the data or of the address; while it is opened, and after all that a user does with it."""
    system, address = served
    with opened(browser, address + opened_with(ADDRESS)) as page:
        read = {place: what(page) for place, (what, systems) in PLACES.items() if system in systems and "ign" in place}
        _is_clean(page)
        selects = page.page.locator("select")
        for number in range(selects.count()):
            options = selects.nth(number).locator("option").all_inner_texts()
            if (mine := next((each for each in options if NAME in each), None)) is not None:
                selects.nth(number).select_option(mine)
                page.at_rest()
        page.drag(page.on(0, 0.1, 0.1), page.on(0, 0.9, 0.9))
        page.at_rest()
        for words in ("Keep as A", "Suggest parameters"):
            page.click(words)
            page.at_rest()
        page.page.locator(".suggestion").wait_for()
        page.click("Forget A")
        page.at_rest()
        read |= {
            place: what(page) for place, (what, systems) in PLACES.items() if system in systems and place not in read
        }
        _is_clean(page)
    marks = {
        "Python lines": repr(NAME)[1:-1],
        "the figure": "onerror",
        "the table as CSV": NAME.replace(chr(34), 2 * chr(34)),
    }
    shown = {place: NAME in text.replace("\\", "") or marks.get(place, NAME) in text for place, text in read.items()}
    assert shown == dict.fromkeys(read, True)


def _is_clean(page: Page) -> None:
    assert page.page.evaluate(_ALL) == {"marks": [], "ran": None}
