"""The explorer's widgets and views, without a browser: what is done to them is done to the state, and seen."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.explorer import DATA, glyphs, made, told, view

import daskclust.app
from daskclust import HDBSCAN, datasets
from daskclust.app import raster
from daskclust.app.code import code
from daskclust.app.layout import Explorer
from daskclust.app.look import LIGHT, parts
from daskclust.app.opening import open_file
from daskclust.app.selection import Branches, ChosenBox, ChosenClusters, Lasso, Range, mask_of
from daskclust.app.state import State
from daskclust.app.systems import Hierarchy
from daskclust.app.views.condensed import CondensedView
from daskclust.app.views.decision import DecisionPlot
from daskclust.app.views.dendrogram import Dendrogram
from daskclust.app.views.histogram import Histogram
from daskclust.app.views.picture import Picture
from daskclust.app.views.table import TableView
from daskclust.core import hierarchy as tree
from daskclust.core.merge.labels import same_partition
from daskclust.io import write_cells, write_hits
from daskclust.plot._look import COLORS

MANY = {"clue": lambda: datasets.calorimeter(3, 4000, rng=0)}


@pytest.mark.parametrize("name", DATA)
def test_every_system_is_shown(name: str) -> None:
    explorer = daskclust.app.explore((DATA | MANY)[name](), name)
    outcome = explorer.state.present
    assert f"{outcome.n_clusters:,} clusters" in explorer.head.object
    assert len(view(explorer, TableView).panel.value) == outcome.n_clusters
    assert glyphs(explorer, Histogram)[0]["top"].sum() == outcome.n_clusters
    pixels, marks, _ = glyphs(explorer, Picture)
    drawn = np.asarray(pixels["image"][0])
    if len(outcome.label) > 8000:
        assert np.count_nonzero(drawn) > 100
    else:
        assert not drawn.any()
        shown = outcome.label[mask_of(explorer.within, outcome.columns)] if explorer.within else outcome.label
        np.testing.assert_array_equal(np.sort(marks["color"]), np.sort(raster.kinds(shown)))
    assert any(isinstance(each, DecisionPlot) for each in explorer.views) == (name == "clue")


def test_sliders_lines_and_numbers_are_one() -> None:
    explorer = daskclust.app.explore(MANY["clue"]())
    control, decision = explorer.controls["rhoc"], view(explorer, DecisionPlot)
    before = explorer.state.present.n_clusters
    control.slider.value = np.log10(20.0)
    assert explorer.state.values["rhoc"] == 20.0
    assert control.number.value == 20.0
    assert decision.thresholds.place("rhoc") == pytest.approx(np.log10(20.0))
    assert explorer.state.present.n_clusters != before
    decision.thresholds.lines["rhoc"].location = np.log10(5.0)
    assert explorer.state.values["rhoc"] == 5.0
    assert control.number.value == 5.0
    control.number.value = 7.25
    assert explorer.state.values["rhoc"] == 7.25
    assert decision.thresholds.place("rhoc") == pytest.approx(np.log10(7.25))
    # seeds are stars where there are few, as in one layer
    assert not len(glyphs(explorer, DecisionPlot)[1]["x"])
    explorer.show_slice(explorer.state.slices.at(1, 1.0))
    stars, columns = glyphs(explorer, DecisionPlot)[1], explorer.state.present.columns
    assert len(stars["x"]) == np.count_nonzero(columns["is_seed"] & (columns["layer"] == 1))
    assert stars["x"].min() >= np.log10(7.25)


def test_chosen_points_are_in_all_views() -> None:
    explorer = daskclust.app.explore(DATA["events"]())
    state = explorer.state
    explorer.show_slice(None)
    explorer.choose(ChosenBox(("x", "y"), (0.0, 100.0), (0.0, 255.0)))
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
    explorer.choose(None)
    assert "selected" not in table.value
    assert np.all(glyphs(explorer, Picture)[1]["alpha"] == 1.0)


def test_another_system_axes_and_layer() -> None:
    ds = datasets.seed_spreader(1500, 2, n_clusters=4.0, rng=0)[["x", "y"]]
    explorer = daskclust.app.explore(ds)
    explorer.show_system("dbscan")
    assert explorer.state.present.request.system.name == "dbscan"
    assert list(explorer.controls) == ["eps", "min_samples"]
    explorer.draw(("y", "x"))
    np.testing.assert_array_equal(np.sort(glyphs(explorer, Picture)[1]["x"]), np.sort(ds["y"].values))
    layered = daskclust.app.explore(MANY["clue"]())
    layered.show_slice(layered.state.slices.at(1, 1.0))
    assert len(glyphs(layered, Picture)[1]["x"]) == 4000


def test_tables_as_files() -> None:
    explorer = daskclust.app.explore(MANY["clue"]())
    table = explorer.state.present.table.to_dataframe()
    pd.testing.assert_frame_equal(
        pd.read_parquet(io.BytesIO(explorer.exporting.table("parquet"))), table, check_index_type=False
    )
    text = io.StringIO(explorer.exporting.table("csv").decode())
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
    counts[cells.there] = cells.of_kinds(raster.kinds(np.arange(inside.sum()) % 12 - 1)).sum(axis=0)
    np.testing.assert_array_equal(counts, expected.ravel())


def test_pixels_of_a_detector_are_pixels_of_the_picture() -> None:
    x = np.repeat(np.arange(100, dtype=np.uint16), 100)
    hits = {"x": x, "y": np.tile(x[::100], 100), "toa": np.arange(10_000.0), "tot": np.full(10_000, 25.0)}
    explorer = daskclust.app.explore(xr.Dataset({name: ("hit", values) for name, values in hits.items()}))
    explorer.show_slice(None)
    pixels = glyphs(explorer, Picture)[0]
    image = np.asarray(pixels["image"][0])
    assert image.shape == (int(pixels["dh"][0]), int(pixels["dw"][0]))
    assert np.count_nonzero(image) == 10_000


def test_what_is_chosen_in_a_slice_is_of_the_slice() -> None:
    explorer = daskclust.app.explore(MANY["clue"]())
    state = explorer.state
    explorer.show_slice(explorer.state.slices.at(1, 1.0))
    explorer.choose_drawn(ChosenBox(("x", "y"), (-1e9, 1e9), (-1e9, 1e9)))
    np.testing.assert_array_equal(state.mask, state.ds["layer"].values == 1)
    np.testing.assert_array_equal(made(state)["inside"], state.mask)


def test_clicks_choose_a_cluster_and_light_its_row() -> None:
    explorer = daskclust.app.explore(DATA["clue"]())
    state, picture, table = explorer.state, view(explorer, Picture), view(explorer, TableView).panel
    number = int(state.present.label.max())
    first = int(np.flatnonzero(state.present.label == number)[0])
    whole = picture.canvas.ranges
    picture.click(*(float(state.ds[name].values[first]) for name in state.system.axes))
    np.testing.assert_array_equal(state.mask, state.present.label == number)
    assert table.value.index[table.selection].tolist() == [number]
    assert len(table.value) == state.present.n_clusters
    assert table.page == table.selection[0] // table.initial_page_size + 1
    assert picture.canvas.ranges == whole
    # with other parameters, the table has the clusters that have these points now
    explorer.change("rhoc", 1.1 * state.values["rhoc"])
    assert len(table.value) < state.present.n_clusters
    picture.click(1e9, 1e9)
    assert state.mask is None
    assert table.selection == []
    # a row zooms to its cluster, and to the layer in which it is
    explorer.player.length.value = 1.0
    number = int(state.present.label[state.ds["layer"].values == 2].max())
    table.selection = [table.value.index.get_loc(number)]
    assert explorer.player.part == Range("layer", 2, 2)
    (left, right), (low, high) = picture.canvas.ranges
    x, y = (state.ds[name].values[state.present.label == number] for name in state.system.axes)
    assert left < x.min() <= x.max() < right < whole[0][1] + left - whole[0][0]
    assert low < y.min() <= y.max() < high
    table.selection = []
    assert state.mask is None


def test_one_cluster_has_a_line_in_histograms_and_clear_goes_back_to_all() -> None:
    explorer = daskclust.app.explore(MANY["clue"]())
    state, table, picture = explorer.state, view(explorer, TableView).panel, view(explorer, Picture)
    whole = picture.canvas.ranges
    table.page = 2
    table.selection = [7]
    number = int(table.value.index[7])
    for each in (each for each in explorer.views if isinstance(each, Histogram)):
        lines = each.canvas.figure.renderers[2].data_source.data["x"]
        assert lines.tolist() == [float(state.present.table[each.title].values[number])]
    assert picture.canvas.ranges != whole
    explorer.clear()
    assert state.mask is None
    assert picture.canvas.ranges == whole
    assert (table.page, table.selection) == (1, [])
    assert not len(glyphs(explorer, Histogram)[2]["x"])


@pytest.mark.parametrize(
    ("longest", "unit", "wanted", "size"),
    [
        (900.0, "ns", "ns", 1.0),
        (3e7, "ns", "ms", 1e6),
        (9.0, "", "", 1.0),
    ],
)
def test_long_times_are_read_in_longer_units(longest: float, unit: str, wanted: str, size: float) -> None:
    """On axes and in the table; what is chosen is in the data's unit."""
    ds = DATA["events"]()
    toa = ds["toa"].values / ds["toa"].values.max() * longest
    explorer = daskclust.app.explore(ds.assign(toa=("hit", toa, {"units": unit} if unit else {})), dt_max=longest / 1e5)
    second = [each for each in explorer.views if isinstance(each, Picture)][1]
    axis = second.canvas.figure.xaxis[0]
    assert axis.axis_label == (f"toa ({wanted})" if wanted else "toa")
    assert axis.formatter.args["unit"] == size
    table = view(explorer, TableView).panel
    assert table.titles["toa"] == (f"toa ({wanted})" if wanted else "toa")
    np.testing.assert_allclose(table.value["toa"].sort_index() * size, explorer.state.present.table["toa"])


# ---------------------------------------------------------------------------------------------------------- hierarchies


@pytest.fixture
def cells() -> Explorer:
    return daskclust.app.explore(datasets.cytometry(400, rng=0))


def linkage(cells: Explorer) -> Any:
    assert isinstance(cells.state.present.ground, Hierarchy)
    return cells.state.present.ground.linkage


def test_branches_have_the_colours_of_their_clusters(cells: Explorer) -> None:
    data, outcome = glyphs(cells, Dendrogram)[0], cells.state.present
    clusters = outcome.n_clusters
    assert set(data["color"]) <= {*range(min(clusters, len(COLORS))), len(COLORS), len(COLORS) + 1}
    assert set(range(clusters)) <= set(data["color"])
    # all merges of several clusters, and no others, are above the cut
    top = tree.condense(linkage(cells), 30, outcome.request.values["min_size"])
    bars = (data["y0"] == data["y1"]) & (data["x0"] != data["x1"])
    assert np.count_nonzero(bars) == len(top.linkage)
    assert np.count_nonzero(bars & (data["color"] == len(COLORS) + 1)) == clusters - 1
    sizes = [
        int(words.replace(",", ""))
        for words in view(cells, Dendrogram).canvas.figure.xaxis[0].major_label_overrides.values()
    ]
    assert sorted(sizes) == sorted(top.sizes[: len(top.linkage) + 1].tolist())


def test_a_line_that_is_dragged_is_a_cut_by_height(cells: Explorer) -> None:
    state, line = cells.state, view(cells, Dendrogram).thresholds
    kept = linkage(cells)
    assert state.values["cut"] == "number"
    assert cells.controls["n_clusters"].panel.visible
    assert not cells.controls["height"].panel.visible
    # where the line is, a cut by height has as many clusters
    n_clusters, place = state.present.n_clusters, line.place("height")
    line.lines["height"].location = place * 1.0001
    assert state.values["cut"] == "height"
    assert state.present.n_clusters == n_clusters
    assert not cells.controls["n_clusters"].panel.visible
    assert cells.controls["height"].number.value == state.values["height"]
    line.lines["height"].location = 1.5 * place
    assert state.present.n_clusters < n_clusters
    assert linkage(cells) is kept
    wanted = tree.cut(kept, height=state.values["height"], min_size=state.values["min_size"])
    np.testing.assert_array_equal(state.present.label, wanted)
    # a slider moves the line, and the other cut begins where this one is
    cells.change("height", 0.7 * place)
    assert line.place("height") == pytest.approx(0.7 * place)
    found = state.present.n_clusters
    cells.change("cut", "number")
    assert state.values["n_clusters"] == found
    assert same_partition(state.present.label, tree.cut(kept, n_clusters=found, min_size=state.values["min_size"]))


def test_a_box_and_a_lasso_choose_branches(cells: Explorer) -> None:
    state, dendrogram = cells.state, view(cells, Dendrogram)
    leaves = dendrogram.leaves
    for selection in (
        ChosenBox(("x0", "y0"), (-0.5, 2.5), (0.0, 1.0)),
        Lasso(("x0", "y0"), ((0.0, 0.0), (2.2, 1.0), (1.0, 5.0))),
    ):
        dendrogram.choose(selection)
        assert state.chosen.selection == Branches(tuple(leaves[:3].tolist()))
        members = np.concatenate([tree.members(linkage(cells), node) for node in leaves[:3]])
        np.testing.assert_array_equal(np.flatnonzero(state.mask), np.sort(members))
    # other views show them, and the dendrogram the branches to them
    marks = glyphs(cells, Picture)[1]
    assert np.count_nonzero(marks["alpha"] == 1.0) == len(members)
    data = glyphs(cells, Dendrogram)[0]
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


# ------------------------------------------------------------------------------------------------------ condensed trees


def shapes_of(explorer: daskclust.app.Explorer) -> list[tuple[np.ndarray, float, float]]:
    """Return along the points the corners of each shape, its colour and its opacity."""
    data = glyphs(explorer, CondensedView)[0]
    found = []
    for xs, color, alpha in zip(data["xs"], data["color"], data["alpha"], strict=True):
        corners = int(np.isnan(xs).argmax())
        found += [(each[:corners], color, alpha) for each in xs.reshape(-1, corners + 1)]
    return found


def test_chosen_clusters_have_their_colours_in_the_condensed_tree() -> None:
    explorer = daskclust.app.explore(DATA["hdbscan"](), "hdbscan", min_cluster_size=12)
    state, shown = explorer.state, view(explorer, CondensedView)
    shapes, count = shapes_of(explorer), state.present.n_clusters
    assert 3 < count < len(shapes)
    chosen = [xs for xs, color, alpha in shapes if color < len(COLORS) and alpha == 1.0]
    assert len(chosen) == count
    assert min(np.ptp(xs) for xs in chosen) >= 12
    # a box chooses the clusters below it, and others are pale
    middle = float(np.mean(chosen[0]))
    shown.choose(ChosenBox(("xs", "ys"), (middle, middle), (0.0, 1.0)))
    assert isinstance(state.chosen.selection, ChosenClusters)
    (label,) = state.chosen.selection.numbers
    np.testing.assert_array_equal(state.mask, state.present.label == label)
    ((xs, color, _),) = (each for each in shapes_of(explorer) if each[2] == 1.0)
    np.testing.assert_array_equal(xs, chosen[0])
    assert color == label % len(COLORS)


def test_the_cut_of_a_condensed_tree_is_dragged() -> None:
    explorer = daskclust.app.explore(DATA["hdbscan"](), "hdbscan", min_cluster_size=8)
    state, line = explorer.state, view(explorer, CondensedView).thresholds
    name, tree = "cluster_selection_epsilon", state.system._kept[1]
    assert "cluster_selection_epsilon=0.0" in code(state)  # at its lower end there is no cut
    before = state.present.n_clusters
    line.lines[name].location = 0.0
    assert state.values[name] == 1.0
    assert state.present.n_clusters < before
    wanted = HDBSCAN(8, cluster_selection_epsilon=1.0).fit(state.ds)
    np.testing.assert_array_equal(state.present.label, wanted.labels_)
    np.testing.assert_array_equal(made(state)["result"]["label"], wanted.labels_)
    explorer.change(name, 0.1)
    assert line.place(name) == pytest.approx(-1.0)
    explorer.change("min_cluster_size", 20)
    assert state.system._kept[1] is tree
    np.testing.assert_array_equal(
        state.present.label, HDBSCAN(20, min_samples=8, cluster_selection_epsilon=0.1).fit(state.ds).labels_
    )


# ---------------------------------------------------------------------------------------------------------------- forms


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
    cells = daskclust.app.explore(ds.assign(X=(ds["X"].dims, X)), min_size=5, n_clusters=1)
    dendrogram = view(cells, Dendrogram)
    highest, top = linkage(cells)[-1, 2], dendrogram.canvas.figure.y_range.end
    assert top > highest
    assert top > dendrogram.thresholds.place("height")  # the cut can be dragged
    assert glyphs(cells, Dendrogram)[0]["y1"].max() == highest


def test_channels_of_one_name() -> None:
    ds = datasets.cytometry(50, rng=0).isel(channel=[0, 1, 1])
    with pytest.raises(ValueError, match=r"names of channels must differ, got .*; rename some of them"):
        State(ds, "hca")


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


# ------------------------------------------------------------------------------------------------------------- channels
def tube(n: int = 300) -> xr.Dataset:
    """Return cells of two populations that differ in two of four markers, with scatter and time."""
    rng = np.random.default_rng(0)
    columns = rng.normal(0.0, 100.0, (n, 4))
    columns[: n // 2, 1:3] += 20_000.0
    columns = np.column_stack([columns, rng.uniform(1e4, 2e5, (n, 2)), np.arange(n)])
    names = ["CD1", "CD2", "CD3", "CD4", "FSC-A", "SSC-H", "Time"]
    return xr.Dataset({"X": (("cell", "channel"), columns)}, {"channel": names})


@pytest.mark.parametrize("file", [None, *(f"cells.{each}" for each in ("fcs", "csv", "parquet", "h5", "npz", "zarr"))])
def test_scatter_and_time_are_not_clustered_until_they_are_ticked(file: str | None, tmp_path: Path) -> None:
    ds = tube()
    if file is not None:
        write_cells(ds, tmp_path / file)
        ds = open_file(tmp_path / file, "hca")[0]
        xr.testing.assert_identical(ds, open_file(tmp_path / file)[0])  # what it holds is found out
    explorer = daskclust.app.explore(ds, "hca", min_size=1, n_clusters=2)
    state, ticks = explorer.state, explorer.controls["channels"].slider
    assert ticks.value == ["CD1", "CD2", "CD3", "CD4"]
    assert set(state.system.axes) == {"CD2", "CD3"}
    assert {"FSC-A", "Time"} <= set(explorer.state.present.columns)  # which can be looked at
    for chosen in (["CD1", "Time"], ["CD2"], list(ticks.options)):
        ticks.value = chosen
        how = {name: state.values[name] for name in ("threshold", "rule", "distance", "n_clusters", "min_size")}
        apriori = None if state.values["apriori"] == "none" else state.values["apriori"]
        with warnings.catch_warnings(record=True, action="always") as caught:
            alone = ds.sel(channel=chosen).drop_attrs(deep=False).clust.hca(**how, apriori=apriori)
            np.testing.assert_array_equal(made(state)["result"]["label"], alone["label"])
        np.testing.assert_array_equal(state.present.label, alone["label"])
        assert told(explorer) == "".join({str(each.message) for each in caught})
    before = state.present
    ticks.value = []
    assert "channels must be one or more of CD1, CD2" in told(explorer)
    assert state.present is before
    parameter = explorer.controls["channels"].parameter
    assert parameter.checked(parameter.read(parameter.written(("CD2", "Time")))) == ("CD2", "Time")


def test_a_warning_of_the_estimator_is_shown_beside_the_sliders() -> None:
    ds = tube()
    ds["X"].values[0, 0] = 1e9
    explorer = daskclust.app.explore(ds, "hca", n_clusters=2, min_size=1, apriori="none")
    assert "the spread of channel 'CD1'" in told(explorer)
    explorer.controls["channels"].slider.value = ["CD2", "CD3"]
    assert not told(explorer)


# ---------------------------------------------------------------------------------------------------------------- chips
@pytest.mark.parametrize("layout", ["chips", "quad"])
def test_chips_are_looked_at_one_by_one(layout: Any, tmp_path: Path) -> None:
    """At first one of those that are apart, and all of a quad; what is chosen is of the chip that is shown."""
    write_hits(datasets.timepix(4_000, layout=layout, chips=4, rng=0), tmp_path / "hits.parquet")
    ds = open_file(tmp_path / "hits.parquet", pixels={"layout": layout})[0]
    explorer = daskclust.app.explore(ds)
    state, chooser, chip = explorer.state, explorer.chip_chooser, ds["chip"].values
    explorer.show_slice(None)
    assert list(chooser.options) == ["all chips", "chip 0", "chip 1", "chip 2", "chip 3"]
    assert len(glyphs(explorer, Picture)[1]["x"]) == (len(chip) if layout == "quad" else (chip == 0).sum())
    chooser.value = chooser.options["chip 2"]
    assert len(glyphs(explorer, Picture)[1]["x"]) == (chip == 2).sum()
    assert "chip 2: " in view(explorer, Picture).caption.object
    explorer.choose_drawn(ChosenBox(("x", "y"), (0.0, 1e9), (0.0, 1e9)))
    np.testing.assert_array_equal(state.mask, chip == 2)
    np.testing.assert_array_equal(made(state)["inside"], state.mask)
    # a row goes to the chip in which its cluster is
    table = view(explorer, TableView).panel
    explorer.choose(None)
    number = int(state.present.label[chip == 3].max())
    table.selection = [table.value.index.get_loc(number)]
    assert chooser.value == Range("chip", 3, 3)
    chooser.value = None
    assert len(glyphs(explorer, Picture)[1]["x"]) < len(chip)  # it is zoomed to
