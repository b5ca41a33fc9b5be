"""What is odd or wrong: the explorer says it in words, and goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.explorer import hits, points, told, view
from cases.lanes import some_of

import daskclust.app
from daskclust.app.selection import ChosenBox
from daskclust.app.systems import SYSTEMS
from daskclust.app.views.histogram import Histogram
from daskclust.app.views.table import TableView


@pytest.fixture(autouse=True)
def no_fault_of_ours(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    # distributed tells of a busy machine: that is no fault of the explorer
    assert not [
        each for each in caplog.get_records("call") if each.name.split(".")[0] not in ("distributed", "tornado")
    ]


@some_of(8, name=SYSTEMS, few=[(1, 10.0), (2, 10.0), (3, 10.0), (2, 0.0), (5, 0.0)])
def test_very_few_points_are_shown(name: str, few: tuple[int, float]) -> None:
    count, apart = few
    ds = hits(count) if name == "events" else points(count, apart)
    explorer = daskclust.app.explore(ds, name)
    assert not told(explorer)
    explorer.choose(ChosenBox(explorer.state.system.axes, (-1e9, 1e9), (-1e9, 1e9)))
    assert int(explorer.state.mask.sum()) == count
    assert len(view(explorer, TableView).panel.value) == explorer.state.present.n_clusters
    assert not told(explorer)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("clue", {"rhoc": 100.0, "dc": 1.0, "delta_c": 1.0, "delta_o": 1.0}),
        ("dbscan", {"eps": 1.0}),
        ("fof", {"linking_length": 1.0}),
        ("hca", {"cut": "height", "height": 0.001, "min_size": 5}),
    ],
)
def test_all_noise(name: str, parameters: dict[str, Any]) -> None:
    explorer = daskclust.app.explore(points(400), name, **parameters)
    assert explorer.state.present.n_clusters == 0
    assert "0 clusters" in explorer.head.object
    assert "100.0% noise" in explorer.head.object
    assert len(view(explorer, TableView).panel.value) == 0
    view(explorer, Histogram).choose(ChosenBox(("value", "clusters"), (0.0, 1e9), (0.0, 1.0)))
    assert explorer.state.mask is None
    assert b"cluster" in explorer.exporting.table("csv")
    assert not told(explorer)


def test_every_point_a_cluster() -> None:
    explorer = daskclust.app.explore(points(100_000), "dbscan", eps=1.0, min_samples=1)
    assert explorer.state.present.n_clusters == 100_000
    assert len(view(explorer, TableView).panel.value) == 100_000
    view(explorer, Histogram).choose(ChosenBox(("value", "clusters"), (0.5, 1.5), (0.0, 1.0)))
    assert int(explorer.state.mask.sum()) == 100_000
    explorer.exporting.tell_lines()
    assert len(explorer.exporting.lines.value) < 2_000  # a range, not a hundred thousand numbers
    assert not told(explorer)


@pytest.mark.parametrize(
    ("name", "parameter", "value", "words"),
    [
        ("clue", "dc", -1.0, "dc must be"),
        ("dbscan", "min_samples", 0, "min_samples"),
        ("fof", "linking_length", float("nan"), "linking_length must be finite"),
        ("hca", "n_clusters", 500, "at most 100 clusters"),
        ("events", "dt_max", -5.0, "dt_max must"),
    ],
)
def test_numbers_out_of_range(name: str, parameter: str, value: Any, words: str) -> None:
    parameters = {"min_size": 1} if name == "hca" else {}
    ds = hits(100) if name == "events" else points(100)
    explorer = daskclust.app.explore(ds, name, **parameters)
    before, good = explorer.state.present, explorer.state.values[parameter]
    explorer.change(parameter, value)
    assert words in told(explorer)
    assert explorer.state.present is before
    assert "working" not in explorer.head.object
    explorer.change(parameter, good)
    assert not told(explorer)
    assert explorer.state.present is before


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", SYSTEMS)
def test_what_is_no_number_is_refused_at_once(name: str, bad: float) -> None:
    ds = hits(50).astype(float) if name == "events" else points(50)
    column = "toa" if name == "events" else "x"
    values = ds[column].values.copy()
    values[7] = bad
    with pytest.raises(ValueError, match=r"(?i)nan|inf|finite"):
        daskclust.app.serve(ds.assign({column: (ds[column].dims, values)}), name, show=False, start=False)


def test_a_system_that_cannot_is_told_and_the_old_one_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = daskclust.app.explore(points(50), "clue")

    def refuse(self: Any, ds: xr.Dataset) -> None:
        raise ValueError("too few friends; take more")

    monkeypatch.setattr(SYSTEMS["fof"], "__init__", refuse)
    explorer.chooser.value = "fof"
    assert told(explorer) == "too few friends; take more"
    assert explorer.chooser.value == "clue"
    explorer.change("rhoc", 1.0)
    assert not told(explorer)
    assert explorer.state.present.request.values["rhoc"] == 1.0
