"""Slices of a data set, numbers as a slider tells them, hidden pixels: what the explorer's controls stand on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.explorer import DATA, glyphs, made, view
from hypothesis import given
from hypothesis import strategies as st

import daskclust.app
from daskclust import datasets
from daskclust.app.code import code
from daskclust.app.parameters import Parameter
from daskclust.app.selection import ChosenBox
from daskclust.app.slices import Layers, TimeWindows
from daskclust.app.views.picture import Picture
from daskclust.app.views.table import TableView
from daskclust.app.widgets import Player


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=30), st.data())
def test_each_time_is_in_the_window_of_its_position_only(times: list[float], data: st.DataObject) -> None:
    toa = np.array(times)
    windows = TimeWindows(toa, "ns")
    length = data.draw(st.sampled_from(list(windows.lengths.values())))
    place = windows.position(times[0], length)
    assert 0 <= place < windows.count(length)
    for other in {place - 1, place, place + 1} & set(range(windows.count(length))):
        part = windows.at(other, length)
        assert windows.inside(part, {"toa": toa[:1]})[0] == (other == place)
        np.testing.assert_array_equal(
            windows.range(part, {"toa": toa}).mask({"toa": toa}), windows.inside(part, {"toa": toa})
        )
    part = windows.at(place, length)
    assert windows.of_key(windows.key(part)) == part
    assert windows.at(0, length)[0] <= toa.min()
    assert windows.at(windows.count(length) - 1, length)[1] > toa.max()


@pytest.mark.parametrize(
    ("high", "unit", "part", "words"),
    [
        (5e7, "ns", (12.4e6, 13.1e6), "12.40 - 13.10 ms"),
        (5e7, "ns", (0.0, 2e4), "0.000 - 0.020 ms"),
        (3e9, "ns", (1e9, 2e9), "1.0 - 2.0 s"),
        (900.0, "ns", (100.0, 200.0), "100 - 200 ns"),
        (90.0, "", (10.0, 20.0), "10 - 20"),
    ],
)
def test_windows_are_called_by_their_times(high: float, unit: str, part: tuple[float, float], words: str) -> None:
    assert TimeWindows(np.array([0.0, high]), unit).words(part) == words


def test_layers_need_not_follow_each_other() -> None:
    layers = Layers(np.array([7, 3, 3, 40]))
    assert [layers.at(k, 1.0) for k in range(layers.count(1.0))] == [3, 7, 40]
    assert layers.position(40.0, 1.0) == 2
    assert layers.words(40) == "layer 40"
    assert layers.of_key(layers.key(40)) == 40
    with pytest.raises(ValueError, match="slice must be a layer, got '4'"):
        layers.of_key("4")


def test_slices_are_stepped_and_played_around() -> None:
    chosen: list[Any] = []
    busy = [False]
    player = Player(Layers(np.arange(3)), None, chosen.append, lambda: busy[0], 240)
    player._length.value = 1.0
    for _ in range(3):
        player._tick()
    assert chosen == [0, 1, 2, 0]
    busy[0] = True  # the last picture is not there yet
    player._tick()
    assert chosen[-1] == 0
    player.go_to(2.0)
    player._length.value = 0.0
    assert chosen[-2:] == [2, None]


def test_a_window_of_another_length_begins_where_the_last_one_did() -> None:
    explorer = daskclust.app.explore(DATA["events"]())
    player = explorer._player
    short, *_, long = player._slices.lengths.values()
    player._length.value = short
    player._place.value = player._place.end
    begin = player.part[0]
    player._length.value = long
    assert player.part[0] <= begin < player.part[1]
    assert explorer._slice == player.part


@pytest.mark.parametrize("scale", ["linear", "log"])
@given(low=st.floats(1e-6, 1e6), ratio=st.floats(1.01, 1e6), place=st.floats(0, 1))
def test_short_numbers_tell_each_step_from_the_next(scale: Any, low: float, ratio: float, place: float) -> None:
    parameter = Parameter("p", scale, low, low, low * ratio)
    steps = np.geomspace(low, low * ratio, 201) if scale == "log" else np.linspace(low, low * ratio, 201)
    one, two = steps[int(place * 199) : int(place * 199) + 2]
    assert parameter.short(one) < parameter.short(two)
    assert abs(parameter.short(one) - one) <= 0.51 * parameter.digit(one)
    assert parameter.digit(one) <= 1.01 * (two - one)


def test_numbers_that_are_typed_stay_as_they_are() -> None:
    explorer = daskclust.app.explore(DATA["clue"]())
    explorer._controls["dc"]._number.value = 7.123456789
    assert explorer.state.values["dc"] == 7.123456789
    explorer._controls["dc"]._number.value = 0.1 + 0.2  # as arrow keys add
    assert explorer.state.values["dc"] == explorer._controls["dc"]._number.value == 0.3


def noisy() -> tuple[xr.Dataset, np.ndarray]:
    """Return hits, and which are of a pixel with 300 of them."""
    ds = datasets.timepix(2_000, rng=0)
    is_noisy = np.arange(2_000) % 7 == 0
    x, y = ds["x"].values.copy(), ds["y"].values.copy()
    x[is_noisy], y[is_noisy] = 100, 100
    is_noisy |= (x == 100) & (y == 100)
    return ds.assign(x=("hit", x), y=("hit", y)), is_noisy


def test_hits_of_noisy_pixels_are_in_no_cluster_and_no_picture() -> None:
    ds, is_noisy = noisy()
    explorer = daskclust.app.explore(ds)
    state = explorer.state
    assert state.present.hidden is None
    assert "isel" not in code(state)
    explorer._on_slice(None)
    explorer._on_choice(ChosenBox(("x", "y"), (0.0, 200.0), (0.0, 200.0)))
    explorer._on_parameter("max_pixel_hits", 50.0)
    assert state.mask is None  # points were chosen among others
    np.testing.assert_array_equal(state.present.hidden, is_noisy)
    wanted = ds.isel(hit=~is_noisy).clust.events(dt_max=200.0)
    np.testing.assert_array_equal(state.present.label[~is_noisy], wanted["label"])
    assert (state.present.label[is_noisy] == -1).all()
    count = int((~is_noisy).sum())
    assert f"{count:,} points · 0.0% noise · {2_000 - count} hits of noisy pixels hidden" in explorer._head.object
    assert len(glyphs(explorer, Picture)[1]["x"]) == count
    explorer._on_choice(ChosenBox(("x", "y"), (0.0, 200.0), (0.0, 200.0)))
    names = made(state)
    np.testing.assert_array_equal(names["result"]["label"], wanted["label"])
    xr.testing.assert_equal(names["table"], state.present.table)
    assert names["inside"].sum() == state.mask.sum()
    explorer._on_parameter("max_pixel_hits", 5_000.0)
    assert state.present.hidden is None


def test_clicks_choose_a_cluster_and_light_its_row() -> None:
    explorer = daskclust.app.explore(DATA["clue"]())
    state, picture, table = explorer.state, view(explorer, Picture), view(explorer, TableView).panel
    number = int(state.present.label.max())
    first = int(np.flatnonzero(state.present.label == number)[0])
    whole = picture._canvas.ranges
    picture._on_click(*(float(state.ds[name].values[first]) for name in state.system.axes))
    np.testing.assert_array_equal(state.mask, state.present.label == number)
    assert table.value.index[table.selection].tolist() == [number]
    assert len(table.value) == state.present.n_clusters
    assert table.page == table.selection[0] // table.initial_page_size + 1
    assert picture._canvas.ranges == whole
    # with other parameters, the table has the clusters that have these points now
    explorer._on_parameter("rhoc", 1.1 * state.values["rhoc"])
    assert len(table.value) < state.present.n_clusters
    picture._on_click(1e9, 1e9)
    assert state.mask is None
    assert table.selection == []
    # a row zooms to its cluster, and to the layer in which it is
    explorer._player._length.value = 1.0
    number = int(state.present.label[state.ds["layer"].values == 2].max())
    table.selection = [table.value.index.get_loc(number)]
    assert explorer._slice == 2
    (left, right), (low, high) = picture._canvas.ranges
    x, y = (state.ds[name].values[state.present.label == number] for name in state.system.axes)
    assert left < x.min() <= x.max() < right < whole[0][1] + left - whole[0][0]
    assert low < y.min() <= y.max() < high
    table.selection = []
    assert state.mask is None
