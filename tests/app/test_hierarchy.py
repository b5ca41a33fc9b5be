"""The dendrogram of the explorer: its cut is dragged, its branches are chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.explorer import glyphs, made, view

import daskclust.app
from daskclust import datasets
from daskclust.app.layout import Explorer
from daskclust.app.look import DARK, LIGHT, parts
from daskclust.app.selection import Branches, ChosenBox, Lasso
from daskclust.app.state import State
from daskclust.app.systems import Hierarchy
from daskclust.app.views.dendrogram import Dendrogram
from daskclust.app.views.picture import Picture
from daskclust.core import hierarchy as tree
from daskclust.core.merge.labels import same_partition
from daskclust.plot._look import COLORS, NOISE_COLOR


@pytest.fixture
def explorer() -> Explorer:
    return daskclust.app.explore(datasets.cytometry(400, rng=0))


def linkage(explorer: Explorer) -> Any:
    assert isinstance(explorer.state.present.ground, Hierarchy)
    return explorer.state.present.ground.linkage


def test_branches_have_the_colours_of_their_clusters(explorer: Explorer) -> None:
    data, outcome = glyphs(explorer, Dendrogram)[0], explorer.state.present
    clusters = outcome.n_clusters
    assert set(data["color"]) <= {*range(min(clusters, len(COLORS))), len(COLORS), len(COLORS) + 1}
    assert set(range(clusters)) <= set(data["color"])
    # all merges of several clusters, and no others, are above the cut
    top = tree.condense(linkage(explorer), 30, outcome.request.values["min_size"])
    bars = (data["y0"] == data["y1"]) & (data["x0"] != data["x1"])
    assert np.count_nonzero(bars) == len(top.linkage)
    assert np.count_nonzero(bars & (data["color"] == len(COLORS) + 1)) == clusters - 1
    sizes = [
        int(words.replace(",", ""))
        for words in view(explorer, Dendrogram)._canvas.figure.xaxis[0].major_label_overrides.values()
    ]
    assert sorted(sizes) == sorted(top.sizes[: len(top.linkage) + 1].tolist())


def test_a_line_that_is_dragged_is_a_cut_by_height(explorer: Explorer) -> None:
    state, line = explorer.state, view(explorer, Dendrogram)._lines
    kept = linkage(explorer)
    assert state.values["cut"] == "number"
    assert explorer._controls["n_clusters"].panel.visible
    assert not explorer._controls["height"].panel.visible
    # where the line is, a cut by height has as many clusters
    n_clusters, place = state.present.n_clusters, line.place("height")
    line._lines["height"].location = place * 1.0001
    assert state.values["cut"] == "height"
    assert state.present.n_clusters == n_clusters
    assert not explorer._controls["n_clusters"].panel.visible
    assert explorer._controls["height"]._number.value == state.values["height"]
    line._lines["height"].location = 1.5 * place
    assert state.present.n_clusters < n_clusters
    assert linkage(explorer) is kept
    wanted = tree.cut(kept, height=state.values["height"], min_size=state.values["min_size"])
    np.testing.assert_array_equal(state.present.label, wanted)
    # a slider moves the line, and the other cut begins where this one is
    explorer._on_parameter("height", 0.7 * place)
    assert line.place("height") == pytest.approx(0.7 * place)
    found = state.present.n_clusters
    explorer._on_parameter("cut", "number")
    assert state.values["n_clusters"] == found
    assert same_partition(state.present.label, tree.cut(kept, n_clusters=found, min_size=state.values["min_size"]))


def test_a_box_and_a_lasso_choose_branches(explorer: Explorer) -> None:
    state, dendrogram = explorer.state, view(explorer, Dendrogram)
    leaves = dendrogram._leaves
    for selection in (
        ChosenBox(("x0", "y0"), (-0.5, 2.5), (0.0, 1.0)),
        Lasso(("x0", "y0"), ((0.0, 0.0), (2.2, 1.0), (1.0, 5.0))),
    ):
        dendrogram._on_choice(selection)
        assert state.selection == Branches(tuple(leaves[:3].tolist()))
        members = np.concatenate([tree.members(linkage(explorer), node) for node in leaves[:3]])
        np.testing.assert_array_equal(np.flatnonzero(state.mask), np.sort(members))
    # other views show them, and the dendrogram the branches to them
    marks = glyphs(explorer, Picture)[1]
    assert np.count_nonzero(marks["alpha"] == 1.0) == len(members)
    data = glyphs(explorer, Dendrogram)[0]
    legs = (data["x0"] == data["x1"]) & (data["y0"] == 0)
    assert set(data["x0"][legs & (data["alpha"] == 1.0)]) == {0.0, 1.0, 2.0}
    np.testing.assert_array_equal(made(state)["inside"], state.mask)
    # another hierarchy: the branches are those of the one in which they were chosen
    before = state.mask
    state.set(distance="full")
    state.update()
    again = made(state)
    assert "before" in again
    np.testing.assert_array_equal(again["inside"], before)
    np.testing.assert_array_equal(again["result"]["label"], state.present.label)


@pytest.mark.parametrize("form", ["named", "plain", "apriori", "flat", "transposed"])
def test_every_form_of_cells(form: str) -> None:
    ds = datasets.apriori_gaussians(4, 40, channels=3, rng=1)
    if form == "plain":
        ds = xr.Dataset({"X": (("cell", "axis"), ds["X"].values)})
    elif form == "named":
        ds = ds.drop_vars("apriori")
    elif form == "flat":
        ds = xr.Dataset({name: ("cell", ds["X"].values[:, k]) for k, name in enumerate("xy")})
    elif form == "transposed":
        ds = ds.transpose("channel", "cell")
    state = State(ds, "hca", n_clusters=3)
    outcome = state.update()
    assert outcome.n_clusters == 3
    x, y = state.system.axes
    state.select(ChosenBox((x, y), (-1.0, 2.0), (-1.0, 2.0)))
    names = made(state)
    np.testing.assert_array_equal(names["result"]["label"], outcome.label)
    np.testing.assert_array_equal(names["inside"], state.mask)
    xr.testing.assert_equal(names["table"], outcome.table)


def test_a_cell_far_away_that_is_left_out_is_within_the_axes() -> None:
    ds = datasets.cytometry(200, rng=0)
    X = ds["X"].values.copy()
    X[0] += 1e4
    explorer = daskclust.app.explore(ds.assign(X=(ds["X"].dims, X)), min_size=5, n_clusters=1)
    dendrogram = view(explorer, Dendrogram)
    highest, top = linkage(explorer)[-1, 2], dendrogram._canvas.figure.y_range.end
    assert top > highest
    assert top > dendrogram._lines.place("height")  # the cut can be dragged
    assert glyphs(explorer, Dendrogram)[0]["y1"].max() == highest


def test_channels_of_one_name() -> None:
    ds = datasets.cytometry(50, rng=0).isel(channel=[0, 1, 1])
    with pytest.raises(ValueError, match=r"names of channels must differ, got .*; rename some of them"):
        State(ds, "hca")


def test_dark_pages_have_the_same_colours(explorer: Explorer) -> None:
    assert parts(NOISE_COLOR) < parts(LIGHT.noise)
    assert parts(NOISE_COLOR) > parts(DARK.noise)
    explorer._dress(DARK)
    mapper = view(explorer, Picture)._marks.glyph.fill_color.transform
    assert mapper.palette == [*COLORS, DARK.noise]
    assert view(explorer, Dendrogram)._canvas.figure.background_fill_color == DARK.paper


def test_branches_of_data_that_hold_another_hierarchy() -> None:
    """Lines make the hierarchy that branches were chosen in, not the one that came with the data."""
    data = datasets.cytometry(400, rng=0)
    state = State(data.clust.hca(rule="euclid"), "hca")
    ground = state.update().ground
    assert isinstance(ground, Hierarchy)
    state.select(Branches((len(ground.linkage) + 400 - 3,)))
    chosen = state.mask
    state.set(n_clusters=7, rule="mahal0")
    state.update()
    np.testing.assert_array_equal(made(state)["inside"], chosen)
