"""The explorer's state: quick second runs give the answers of first ones, and so do its Python lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.explorer import DATA, STEPS, glyphs, made
from hypothesis import given
from hypothesis import strategies as st

import daskclust.app
from daskclust import CLUE, datasets, properties
from daskclust.app.code import code
from daskclust.app.parameters import Parameter
from daskclust.app.selection import ChosenBox, ChosenClusters, Lasso
from daskclust.app.slices import Layers, TimeWindows
from daskclust.app.state import State
from daskclust.app.systems import DELTA, DENSITY, SYSTEMS, Clue, names_for
from daskclust.app.views.picture import Picture
from daskclust.app.widgets import Player


def spread() -> xr.Dataset:
    return datasets.seed_spreader(1500, 2, n_clusters=4.0, rng=0)[["x", "y"]]


def test_there_is_data_for_each_system() -> None:
    assert set(DATA) == set(SYSTEMS) == set(STEPS)
    assert [names_for(DATA[name]())[0] for name in ("clue", "fof", "events", "hca")] == ["clue", "fof", "events", "hca"]
    assert names_for(spread()) == ["clue", "fof", "dbscan", "hdbscan", "hca"]


@pytest.mark.parametrize("name", DATA)
def test_lines_give_the_same_after_each_step(name: str) -> None:
    state = State(DATA[name](), name)
    for step in [{}, *STEPS[name]]:
        state.set(**step)
        outcome = state.update()
        names = made(state)
        np.testing.assert_array_equal(names["result"]["label"].values, outcome.label)
        xr.testing.assert_equal(names["table"], outcome.table)
        assert outcome.n_clusters == outcome.table.sizes["cluster"]
        assert outcome.n_clusters > 0


def test_thresholds_need_no_new_densities(monkeypatch: pytest.MonkeyPatch) -> None:
    state = State(DATA["clue"]())
    state.update()
    fits: list[float] = []
    fit = CLUE.fit
    monkeypatch.setattr(CLUE, "fit", lambda self, *args, **how: fits.append(self.dc) or fit(self, *args, **how))
    decision = state.present.ground
    for rhoc in (3.0, 8.0, 20.0):
        state.set(rhoc=rhoc, delta_c=rhoc / 4)
        assert state.update().ground is decision
    assert fits == []
    state.set(dc=9.0)
    assert state.update().ground is not decision
    assert fits == [9.0]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("fof", {"min_members": 50}),
        ("events", {"min_hits": 2}),
        ("hca", {"n_clusters": 4}),
        ("hdbscan", {"min_cluster_size": 20, "cluster_selection_method": "leaf", "cluster_selection_epsilon": 0.4}),
    ],
)
def test_cuts_need_no_new_clusters(name: str, step: dict[str, Any]) -> None:
    state = State(DATA[name](), name)
    state.update()
    state.set(**step)
    assert state.system.is_kept(state.values)


@pytest.mark.parametrize("name", DATA)
def test_chosen_points_and_their_lines(name: str) -> None:
    state = State(DATA[name](), name)
    columns = state.update().columns
    x, y = state.system.axes
    (left, right), (low, high) = (np.quantile(columns[axis], [0.2, 0.6]).tolist() for axis in (x, y))
    corners = ((left, low), (right, low), (right, high))
    for selection in (ChosenBox((x, y), (left, right), (low, high)), Lasso((x, y), corners), ChosenClusters((0, 1))):
        state.select(selection)
        assert state.mask is not None
        names = made(state)
        np.testing.assert_array_equal(names["inside"], state.mask)
        assert 0 < names["chosen"].sizes[names["result"]["label"].dims[0]] == state.mask.sum() < len(state.mask)
        table = state.present.rows(state.mask)
        assert int(table["selected"].sum()) == int((state.mask & (state.present.label >= 0)).sum())
        # what was chosen stays when clusters become others
        before = state.mask
        state.set(**STEPS[name][0])
        state.update()
        np.testing.assert_array_equal(made(state)["inside"], before)
        state.set(**{key: state.system.parameters[k].default for k, key in enumerate(state.values)})
        state.update()
    state.select(None)
    assert state.mask is None
    assert "inside" not in code(state)
    assert state.present.rows(state.mask).sizes["cluster"] == state.present.n_clusters


def test_chosen_in_the_decision_plot() -> None:
    state = State(DATA["clue"]())
    decision = state.update().ground
    assert decision is not None
    top = float(np.log10(decision.level))
    state.select(ChosenBox((DENSITY, DELTA), (-9.0, 9.0), (top - 1e-6, top + 1e-6)))
    assert state.mask is not None
    np.testing.assert_array_equal(state.mask, np.isinf(decision.delta))
    state.set(rhoc=20.0)
    state.update()
    np.testing.assert_array_equal(made(state)["inside"], state.mask)


def test_a_lasso_has_the_points_inside() -> None:
    grid = {"x": np.array([0.0, 1.0, 2.0, 1.0, 5.0]), "y": np.array([0.1, 0.5, 0.1, 3.0, 5.0])}
    lasso = Lasso(("x", "y"), ((-1.0, 0.0), (3.0, 0.0), (1.0, 1.0)))
    np.testing.assert_array_equal(lasso.mask(grid), [True, True, True, False, False])
    assert not Lasso(("x", "y"), ((0.0, 0.0), (9.0, 9.0))).mask(grid).any()


def test_systems_keep_their_parameters() -> None:
    state = State(spread(), "dbscan", eps=50.0)
    state.choose("clue")
    state.set(dc=77.0)
    state.choose("dbscan")
    assert state.values["eps"] == 50.0
    state.choose("clue")
    assert state.values["dc"] == 77.0
    assert isinstance(state.system, Clue)


def test_data_is_brought_to_memory_unchanged() -> None:
    ds, given = DATA["clue"](), DATA["clue"]().chunk(hit=200)
    state = State(given)
    xr.testing.assert_identical(state.ds, ds)
    np.testing.assert_array_equal(state.update().label, State(ds).update().label)
    assert state.present.table.equals(properties.cluster_table(state.present.result))
    xr.testing.assert_identical(given, ds)
    assert given.chunks


NOTHING = xr.Dataset({"x": ("hit", np.empty(0)), "y": ("hit", np.empty(0))})


@pytest.mark.parametrize(
    ("ds", "change", "words"),
    [
        (None, {"system": "kmeans"}, "'kmeans'"),
        (None, {"system": "events"}, "events needs x, y and toa; the data set has the variables x, y"),
        (None, {"eps": 3.0}, "there is no parameter 'eps'; there are dc"),
        (None, {"dc": "wide"}, "dc must be a number, got 'wide'"),
        (None, {"kernel": "box"}, "kernel must be one of 'flat'"),
        (None, {"rhoc": float("nan")}, "rhoc must be finite"),
        (xr.Dataset({"a": ("hit", [1.0])}), {}, "no system suits a data set with the variables a; rename positions"),
        (NOTHING, {}, "no points"),
    ],
)
def test_errors_tell_what_to_do(ds: xr.Dataset | None, change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        State(DATA["clue"]() if ds is None else ds, **change)


# ------------------------------------------------------------------------------------------ parameters that are given
GIVEN: list[tuple[str, dict[str, Any]]] = [
    ("clue", {"dc": 9.0, "rhoc": 5.0, "delta_c": 12.0}),
    ("clue", {"dc": 9.0, "rhoc": 5.0, "delta_o": 30.0, "kernel": "gaussian"}),
    ("events", {"dt_max": 50.0, "min_hits": 2, "variant": "global", "connectivity": 4}),
    ("dbscan", {"eps": 0.4, "min_samples": 7}),
    ("hdbscan", {"min_cluster_size": 10}),
    ("hdbscan", {"min_cluster_size": 9, "min_samples": 2, "cluster_selection_epsilon": 0.4}),
    ("fof", {"b": 0.25}),
    ("fof", {"linking_length": 0.5, "min_members": 9}),
    ("hca", {"threshold": 0.3, "n_clusters": 3, "min_size": 1}),
    ("hca", {"threshold": 40, "rule": "euclid", "distance": "full", "height": 3.0, "min_size": 1}),
]


@pytest.mark.parametrize(("name", "given"), GIVEN)
def test_given_parameters_have_the_answer_of_the_method(name: str, given: dict[str, Any]) -> None:
    """Those that are not given have the estimator's defaults."""
    state = State(DATA[name](), name, **given)
    wanted = getattr(DATA[name]().clust, name)(**given)
    np.testing.assert_array_equal(state.update().label, wanted["label"])
    np.testing.assert_array_equal(made(state)["result"]["label"], wanted["label"])


# --------------------------------------------------------------------------------- slices, short numbers, hidden pixels


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=30), st.data())
def test_each_time_is_in_the_window_of_its_position_only(times: list[float], data: st.DataObject) -> None:
    toa = np.array(times)
    windows = TimeWindows(toa, "ns")
    length = data.draw(st.sampled_from(list(windows.lengths.values())))
    place = windows.position(times[0], length)
    assert 0 <= place < windows.count(length)
    for other in {place - 1, place, place + 1} & set(range(windows.count(length))):
        part = windows.at(other, length)
        assert part.mask({"toa": toa[:1]})[0] == (other == place)
        assert eval(part.words({"toa": "toa"}))[0] == (other == place)
    part = windows.at(place, length)
    assert windows.of_key(windows.key(part)) == part
    assert windows.at(0, length).low <= toa.min()
    assert windows.at(windows.count(length) - 1, length).high > toa.max()


def test_layers_need_not_follow_each_other() -> None:
    layers = Layers(np.array([7, 3, 3, 40]))
    assert [layers.at(k, 1.0).low for k in range(layers.count(1.0))] == [3, 7, 40]
    assert layers.position(40.0, 1.0) == 2
    part = layers.at(2, 1.0)
    assert layers.words(part) == "layer 40"
    assert layers.of_key(layers.key(part)) == part
    with pytest.raises(ValueError, match="there is no layer '4'"):
        layers.of_key("4")


def test_a_player_chooses_one_slice_or_all() -> None:
    chosen: list[Any] = []
    player = Player(Layers(np.array([3, 7, 40])), None, chosen.append)
    player.length.value = 1.0
    player.player.value = 1
    player.go_to(40.0)
    player.length.value = 0.0
    assert [part and part.low for part in chosen] == [3, 7, 40, None]


def test_a_window_of_another_length_begins_where_the_last_one_did() -> None:
    explorer = daskclust.app.explore(DATA["events"]())
    player = explorer.player
    short, *_, long = explorer.state.slices.lengths.values()
    player.length.value = short
    player.player.value = player.player.end
    begin = player.part.low
    player.length.value = long
    assert player.part.low <= begin < player.part.high
    assert explorer.within == (player.part,)


@pytest.mark.parametrize("scale", ["linear", "log"])
@given(low=st.floats(1e-6, 1e6), ratio=st.floats(1.01, 1e6), place=st.floats(0, 1))
def test_short_numbers_tell_each_step_from_the_next(scale: Any, low: float, ratio: float, place: float) -> None:
    parameter = Parameter("p", scale, low, low, low * ratio)
    steps = np.geomspace(low, low * ratio, 201) if scale == "log" else np.linspace(low, low * ratio, 201)
    one, two = steps[int(place * 199) : int(place * 199) + 2]
    assert parameter.short(one) < parameter.short(two)
    assert abs(parameter.short(one) - one) <= 0.51 * parameter.digit(one)
    assert parameter.digit(one) <= 1.01 * (two - one)


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
    explorer.show_slice(None)
    explorer.choose(ChosenBox(("x", "y"), (0.0, 200.0), (0.0, 200.0)))
    explorer.change("max_pixel_hits", 50.0)
    assert state.mask is None  # points were chosen among others
    np.testing.assert_array_equal(state.present.hidden, is_noisy)
    wanted = ds.isel(hit=~is_noisy).clust.events(dt_max=200.0)
    np.testing.assert_array_equal(state.present.label[~is_noisy], wanted["label"])
    assert (state.present.label[is_noisy] == -1).all()
    count = int((~is_noisy).sum())
    assert f"{count:,} points · 0.0% noise · {2_000 - count} hits of noisy pixels hidden" in explorer.head.object
    assert len(glyphs(explorer, Picture)[1]["x"]) == count
    explorer.choose(ChosenBox(("x", "y"), (0.0, 200.0), (0.0, 200.0)))
    names = made(state)
    np.testing.assert_array_equal(names["result"]["label"], wanted["label"])
    xr.testing.assert_equal(names["table"], state.present.table)
    assert names["inside"].sum() == state.mask.sum()
    explorer.change("max_pixel_hits", 5_000.0)
    assert state.present.hidden is None
