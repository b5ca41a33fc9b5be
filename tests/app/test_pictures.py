"""How the explorer looks in a real browser, light and dark: nothing lies on anything else, and all can be read."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from app.page import Page, opened
from app.pictures import DATA, SIZES, picture, served

from daskclust.app.look import DARK, LIGHT, LOOKS, parts

axe = pytest.importorskip("axe_playwright_python.sync_playwright")

pytestmark = pytest.mark.browser

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


@pytest.mark.parametrize("name", DATA)
def test_light_and_dark(name: str, browser: Any, tmp_path: Path) -> None:
    with served(name, tmp_path) as address:
        for scheme in LOOKS:
            with opened(browser, address, scheme, SIZES[0]) as page:
                look_over(page, scheme)
                found = axe.Axe().run(page.page).response["violations"]
                assert [each for each in found if each["impact"] in ("serious", "critical")] == []


def look_over(page: Page, scheme: str) -> None:
    """Check a page as it was opened."""
    parts = boxes(page)
    assert len([part for part, _ in parts if part == ".bk-Figure"]) >= 2  # a picture, and a histogram
    for part, box in parts:
        assert box["x"] >= 0, part
        assert box["x"] + box["width"] <= SIZES[0][0], part
    for (one, a), (two, b) in itertools.combinations(parts, 2):
        if one == ".bk-Figure" and two in _ON_FIGURES:
            continue
        across = min(a["x"] + a["width"], b["x"] + b["width"]) - max(a["x"], b["x"])
        down = min(a["y"] + a["height"], b["y"] + b["height"]) - max(a["y"], b["y"])
        assert across <= 1 or down <= 1, (one, two)
    image, look = picture(page), LOOKS[scheme]
    assert share(image, look.page) > 0.2
    other = LIGHT if look is DARK else DARK
    assert share(image, other.page) < 0.02
    # how many there are is told above every picture that has clusters
    assert page.page.locator(".explorer-panel", has_text="clusters").count() >= 2
