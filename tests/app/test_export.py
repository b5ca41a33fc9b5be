"""Figures for a paper, and the session as a notebook that runs from top to bottom."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.explorer import DATA, STEPS, written
from cases.lanes import quick_first
from PIL import Image

import daskclust.app
from daskclust.app.opening import open_file
from daskclust.app.selection import ChosenBox
from daskclust.app.state import State
from daskclust.app.tools.export import Seen, figure, figures, notebook
from daskclust.app.views.picture import Picture


def explorer_of(name: str, **parameters: Any) -> Any:
    return daskclust.app.explore(DATA[name](), name, **parameters)


def zoomed(explorer: Any) -> Seen:
    """Return what is seen when the middle of the picture is zoomed to."""
    picture = next(each for each in explorer._views if isinstance(each, Picture))
    (left, right), (low, high) = picture._canvas.ranges
    quarter = (right - left) / 4, (high - low) / 4
    picture._canvas.show(((left + quarter[0], right - quarter[0]), (low + quarter[1], high - quarter[1])))
    found: Seen = explorer._seen()
    return found


@pytest.mark.parametrize("name", quick_first(DATA))
def test_figures_of_each_system(name: str) -> None:
    explorer = explorer_of(name)
    seen = zoomed(explorer)
    names = figures(explorer.state)
    assert names == ["picture", *{"clue": ["decision plot"], "hca": ["dendrogram"]}.get(name, [])]
    for each in names:
        svg = figure(explorer.state, seen, each, "svg").decode()
        assert "<svg" in svg
        picture = Image.open(io.BytesIO(figure(explorer.state, seen, each, "png")))
        assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1)
        assert picture.size[0] == pytest.approx(6.8 * 300, rel=0.05)


def test_a_figure_has_the_points_of_the_zoom_and_the_slice() -> None:
    explorer = explorer_of("clue")
    explorer._on_slice(1)
    seen = zoomed(explorer)
    result = explorer.state.present.result
    (left, right), (low, high) = seen.ranges["picture"]
    x, y = result["x"].values, result["y"].values
    inside = (x >= left) & (x <= right) & (y >= low) & (y <= high) & (result["layer"].values == 1)
    assert 0 < inside.sum() < (result["layer"].values == 1).sum()
    svg = figure(explorer.state, seen, "picture", "svg").decode()
    assert "<image" not in svg  # few points are vectors
    assert svg.count("<use") > inside.sum()  # each point, and marks of axes


def test_many_points_are_a_raster_between_vector_axes() -> None:
    xy = np.random.default_rng(0).uniform(0.0, 1.0, (2, 120_000))
    ds = xr.Dataset({name: ("hit", values) for name, values in zip("xy", xy, strict=True)})
    state = State(ds, "dbscan", eps=0.002)
    seen = Seen(("x", "y"), {"picture": ((0.0, 1.0), (0.0, 1.0))})
    svg = figure(state, seen, "picture", "svg")
    assert b"<image" in svg
    assert b"<path" in svg
    assert len(svg) < 3_000_000


@pytest.mark.parametrize("name", quick_first(STEPS))
def test_the_notebook_runs_from_top_to_bottom(name: str, tmp_path: Path) -> None:
    ds, line = open_file(written(name, DATA[name](), tmp_path), name)
    explorer = daskclust.app.layout.Explorer(State(ds, name, source=(line,), **STEPS[name][0]))
    state = explorer.state
    x, y = state.system.axes
    columns = state.present.columns
    low, high = np.quantile(columns[x], [0.1, 0.6]).tolist()
    state.select(ChosenBox((x, y), (low, high), (float(columns[y].min()), float(columns[y].max()))))
    text = notebook(state, zoomed(explorer))
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.reads(text, as_version=4))
    cells = json.loads(text)["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(cell["source"], names)
    np.testing.assert_array_equal(names["result"]["label"], state.present.label)
    np.testing.assert_array_equal(names["inside"], state.mask)
    drawn = [cell["source"] for cell in cells if "plot." in cell["source"] and cell["cell_type"] == "code"]
    assert len(drawn) >= (2 if name in ("clue", "hca") else 1)
    for source in drawn[1:]:
        lines = source.splitlines()
        exec("\n".join(lines[:-1]), names)
        assert eval(lines[-1], names) is not None


def test_a_notebook_without_a_source_asks_for_data() -> None:
    explorer = explorer_of("clue", rhoc=12.0)
    text = json.loads(notebook(explorer.state, explorer._seen()))["cells"][0]["source"]
    assert "`ds` must be the data set" in text
    assert "`rhoc = 12.0`" in text
    assert re.search(r"\d+ clusters of 900 points", text)
