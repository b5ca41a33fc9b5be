"""The explorer's widgets and views, without a browser: what is done to them is done to the state, and seen."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.explorer import DATA, glyphs, made, view

import daskclust.app
from daskclust import datasets
from daskclust.app import raster
from daskclust.app.look import LIGHT, parts
from daskclust.app.selection import ChosenBox
from daskclust.app.state import Request
from daskclust.app.views.decision import DecisionPlot
from daskclust.app.views.histogram import Histogram
from daskclust.app.views.picture import Picture
from daskclust.app.views.table import TableView
from daskclust.app.worker import Latest
from daskclust.core.device.machine_code import compiling
from daskclust.plot._look import COLORS

MANY = {"clue": lambda: datasets.calorimeter(3, 4000, rng=0)}


@pytest.mark.parametrize("name", DATA)
def test_every_system_is_shown(name: str) -> None:
    explorer = daskclust.app.explore((DATA | MANY)[name](), name)
    outcome = explorer.state.present
    assert f"{outcome.n_clusters:,} clusters" in explorer._head.object
    assert len(view(explorer, TableView).panel.value) == outcome.n_clusters
    assert glyphs(explorer, Histogram)[0]["top"].sum() == outcome.n_clusters
    pixels, marks, _ = glyphs(explorer, Picture)
    drawn = np.asarray(pixels["image"][0])
    if len(outcome.label) > 8000:
        assert np.count_nonzero(drawn) > 100
    else:
        assert not drawn.any()
        part, slices = explorer._slice, explorer.state.slices
        shown = outcome.label if part is None else outcome.label[slices.inside(part, outcome.columns)]
        np.testing.assert_array_equal(np.sort(marks["color"]), np.sort(raster.kinds(shown)))
    assert any(isinstance(each, DecisionPlot) for each in explorer._views) == (name == "clue")


def test_sliders_lines_and_numbers_are_one() -> None:
    explorer = daskclust.app.explore(MANY["clue"]())
    control, decision = explorer._controls["rhoc"], view(explorer, DecisionPlot)
    before = explorer.state.present.n_clusters
    control._inner.value = np.log10(20.0)
    assert explorer.state.values["rhoc"] == 20.0
    assert control._number.value == 20.0
    assert decision._lines.place("rhoc") == pytest.approx(np.log10(20.0))
    assert explorer.state.present.n_clusters != before
    decision._lines._lines["rhoc"].location = np.log10(5.0)
    assert explorer.state.values["rhoc"] == 5.0
    assert control._number.value == 5.0
    control._number.value = 7.25
    assert explorer.state.values["rhoc"] == 7.25
    assert decision._lines.place("rhoc") == pytest.approx(np.log10(7.25))
    stars = glyphs(explorer, DecisionPlot)[1]
    assert len(stars["x"]) == explorer.state.present.n_clusters
    assert stars["x"].min() >= np.log10(7.25)


def test_chosen_points_are_in_all_views() -> None:
    explorer = daskclust.app.explore(DATA["events"]())
    state = explorer.state
    explorer._on_slice(None)
    explorer._on_choice(ChosenBox(("x", "y"), (0.0, 100.0), (0.0, 255.0)))
    inside = state.ds["x"].values <= 100
    np.testing.assert_array_equal(state.mask, inside)
    marks = glyphs(explorer, Picture)[1]
    assert np.count_nonzero(marks["alpha"] == 1.0) == inside.sum()
    table = view(explorer, TableView).panel
    assert table.value["selected"].sum() == inside.sum()
    assert glyphs(explorer, Histogram)[1]["top"].sum() == len(table.value) < state.present.n_clusters
    # a click on the first row, then none
    first = table.value.index[0]
    table.selection = [0]
    np.testing.assert_array_equal(state.mask, state.present.label == first)
    assert int(np.count_nonzero(state.mask)) == int(table.value["size"].iloc[0])
    explorer._on_choice(None)
    assert "selected" not in table.value
    assert np.all(glyphs(explorer, Picture)[1]["alpha"] == 1.0)


def test_another_system_axes_and_layer() -> None:
    ds = datasets.seed_spreader(1500, 2, n_clusters=4.0, rng=0)[["x", "y"]]
    explorer = daskclust.app.explore(ds)
    explorer._on_system("dbscan")
    assert explorer.state.present.request.system.name == "dbscan"
    assert list(explorer._controls) == ["eps", "min_samples"]
    explorer._draw(("y", "x"))
    np.testing.assert_array_equal(np.sort(glyphs(explorer, Picture)[1]["x"]), np.sort(ds["y"].values))
    layered = daskclust.app.explore(MANY["clue"]())
    layered._on_slice(1)
    assert len(glyphs(layered, Picture)[1]["x"]) == 4000


def test_tables_as_files() -> None:
    explorer = daskclust.app.explore(MANY["clue"]())
    table = explorer.state.present.table.to_dataframe()
    pd.testing.assert_frame_equal(pd.read_parquet(explorer.exporting.table("parquet")), table, check_index_type=False)
    text = io.StringIO(explorer.exporting.table("csv").getvalue().decode())
    np.testing.assert_array_equal(pd.read_csv(text)["size"], table["size"])
    explorer.exporting.tell_lines()
    assert "ds.clust.clue(dc=" in explorer.exporting.lines.value


def test_pixels_have_colours_of_clusters_and_noise() -> None:
    x = np.array([0.1, 0.1, 0.9])
    kind = raster.kinds(np.array([10, 10, -1]))
    cells = raster.RasterCells.of((x, x), ((0.0, 1.0), (0.0, 1.0)), (2, 2))
    picture = raster.paint(cells, kind, None)
    assert picture.shape == (2, 2, 4)
    color = np.array([int(COLORS[1][k : k + 2], 16) for k in (1, 3, 5)])
    np.testing.assert_array_equal(picture[0, 0, :3], np.floor(255.5 + (color - 255) * 0.875))  # of two points
    grey = np.array(parts(LIGHT.noise))
    np.testing.assert_array_equal(picture[1, 1, :3], np.floor(255.5 + (grey - 255) * 0.75))  # of one
    assert picture[0, 1, 3] == picture[1, 0, 3] == 0
    chosen = raster.paint(cells, kind, np.array([False, False, True]))
    assert chosen[0, 0, 0] == chosen[0, 0, 1] > 220


def test_points_of_pixels_are_those_of_numpy() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 20_000))
    ranges, size = ((-1.0, 2.0), (-0.5, 1.0)), (40, 30)
    expected = np.histogram2d(y, x, bins=size[::-1], range=ranges[::-1])[0]
    np.testing.assert_array_equal(raster.count((x, y), ranges, size), expected)
    inside = (x >= -1) & (x <= 2) & (y >= -0.5) & (y <= 1)
    cells = raster.RasterCells.of((x[inside], y[inside]), ranges, size)
    counts = np.zeros(expected.size)
    counts[cells.there] = cells.of_kinds(raster.kinds(np.arange(inside.sum()) % 12 - 1)).sum(axis=1)
    np.testing.assert_array_equal(counts, expected.ravel())


def test_only_the_newest_wish_counts() -> None:
    done: list[int] = []
    shows: list[Any] = []
    wish = [0]
    gate = threading.Event()

    def begin() -> Iterator[Any]:
        mine = wish[0]

        def steps() -> Iterator[Any]:
            gate.wait()
            yield lambda: done.append(mine)
            yield lambda: done.append(-mine)

        return steps()

    latest = Latest(begin, lambda error: None, lambda: done.append(99), shows.append)
    for wish[0] in range(1, 8):
        latest.ask()
    gate.set()
    while latest.is_busy:
        while shows:
            shows.pop(0)()
        time.sleep(0.001)
    assert done == [1, 7, -7, 99]
    assert latest.runs == 2


def test_a_fault_is_told_and_the_next_wish_is_done() -> None:
    told: list[Exception] = []

    def begin() -> Iterator[Any]:
        if not told:
            raise ValueError("too few")
        yield lambda: None

    latest = Latest(begin, told.append, lambda: None, None)
    latest.ask()
    assert [str(error) for error in told] == ["too few"]
    latest.ask()
    assert not latest.is_busy
    assert len(told) == 1


def test_pixels_of_a_detector_are_pixels_of_the_picture() -> None:
    x = np.repeat(np.arange(100, dtype=np.uint16), 100)
    hits = {"x": x, "y": np.tile(x[::100], 100), "toa": np.arange(10_000.0), "tot": np.full(10_000, 25.0)}
    explorer = daskclust.app.explore(xr.Dataset({name: ("hit", values) for name, values in hits.items()}))
    explorer._on_slice(None)
    pixels = glyphs(explorer, Picture)[0]
    image = np.asarray(pixels["image"][0])
    assert image.shape == (int(pixels["dh"][0]), int(pixels["dw"][0]))
    assert np.count_nonzero(image) == 10_000


def test_what_is_chosen_in_a_slice_is_of_the_slice() -> None:
    explorer = daskclust.app.explore(MANY["clue"]())
    state = explorer.state
    explorer._on_slice(1)
    explorer._on_picture(ChosenBox(("x", "y"), (-1e9, 1e9), (-1e9, 1e9)))
    np.testing.assert_array_equal(state.mask, state.ds["layer"].values == 1)
    np.testing.assert_array_equal(made(state)["inside"], state.mask)


def test_compiling_is_told_beside_the_time_of_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = daskclust.app.explore(MANY["clue"]())
    words: list[str] = []
    compute = Request.outcome

    def compiled_and_computed(request: Request) -> Any:
        with compiling.expecting(16):
            for is_busy, seconds in ((True, 0.0), (False, 1e4)):
                compiling.heard("a worker", compiling.Compiling(6, 16, is_busy=is_busy, kernels=6, seconds=seconds))
                words.append(explorer._head.object)
        return compute(request)

    monkeypatch.setattr(Request, "outcome", compiled_and_computed)
    monkeypatch.setattr(compiling, "seconds_of", {compiling.HERE: 0.0})
    explorer._controls["rhoc"]._inner.value = np.log10(20.0)
    assert "compiling kernels for this machine, once: 6 of about 16 …" in words[0]
    assert "working …" in words[1]
    assert "0 ms · compiling 10000.0 s, once" in explorer._head.object
    assert not compiling.listeners
