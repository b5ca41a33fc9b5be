"""The explorer's state: quick second runs give the answers of first ones, and so do its Python lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.explorer import DATA, STEPS, made

from daskclust import CLUE, datasets, properties
from daskclust.app.code import code
from daskclust.app.selection import ChosenBox, ChosenClusters, Lasso
from daskclust.app.state import State
from daskclust.app.systems import DELTA, DENSITY, SYSTEMS, Clue, names_for


def spread() -> xr.Dataset:
    return datasets.seed_spreader(1500, 2, n_clusters=4.0, rng=0)[["x", "y"]]


def test_there_is_data_for_each_system() -> None:
    assert set(DATA) == set(SYSTEMS) == set(STEPS)
    assert [names_for(DATA[name]())[0] for name in ("clue", "fof", "events", "hca")] == ["clue", "fof", "events", "hca"]
    assert names_for(spread()) == ["clue", "fof", "dbscan", "hca"]


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
    ("name", "step"), [("fof", {"min_members": 50}), ("events", {"min_hits": 2}), ("hca", {"n_clusters": 4})]
)
def test_cuts_need_no_new_clusters(name: str, step: dict[str, Any]) -> None:
    state = State(DATA[name](), name)
    state.update()
    kept = state.system._kept[1]
    state.set(**step)
    state.update()
    assert state.system._kept[1] is kept


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
