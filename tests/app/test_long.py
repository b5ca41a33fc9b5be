"""Long work of the explorer: what it takes is known before, it can be ended, and what was there comes back."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.explorer import DATA, STEPS, told
from cases.lanes import quick_first
from scipy.spatial import cKDTree

import daskclust.app
from daskclust import datasets
from daskclust.app import live
from daskclust.app.state import State, prepared_system
from daskclust.app.systems import SYSTEMS, Workload
from daskclust.app.systems._scale import ScalePairs
from daskclust.app.worker import Latest, Worker


def identity(ds: Any, value: Any) -> Any:
    return ds, value, os.getpid()


def fault(ds: Any) -> None:
    raise ValueError("too few")


def end(ds: Any) -> None:
    os._exit(7)


def say_nothing(told: Any) -> None:
    pass


# ------------------------------------------------------------------------------------------------------------- estimate
@pytest.mark.parametrize("layers", [1, 20])
def test_pairs_are_counted_on_a_sample(layers: int) -> None:
    ds = datasets.calorimeter(layers, 40_000 // layers, rng=0)
    X, group = np.stack([ds["x"].values, ds["y"].values], axis=1), ds["layer"].values
    for radius in (5.0, 50.0, 1000.0):
        trees = [cKDTree(X[group == k]) for k in range(layers)]
        exact = sum(tree.count_neighbors(tree, radius) for tree in trees)
        assert ScalePairs(X, group).within(radius) == pytest.approx(exact, rel=0.1)
    few = np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 0.0]])
    assert ScalePairs(few).within(2.0) == 5
    assert ScalePairs(few[:1]).within(2.0) == 1


@pytest.mark.parametrize("name", DATA)
def test_what_is_kept_takes_no_time(name: str) -> None:
    state = State(DATA[name](), name)
    state.update()
    assert state.system.seconds(state.values) == Workload(0.0)
    cut = {"clue": "rhoc", "hca": "n_clusters"}.get(name, state.system.cut)
    if cut is not None:
        state.set(**{cut: state.values[cut] + 1})
        assert state.system.seconds(state.values) == Workload(0.0)
    state.set(**STEPS[name][{"clue": 3, "hca": 3, "dbscan": 0, "hdbscan": 3}.get(name, 1)])
    assert state.system.seconds(state.values).seconds > 0


def test_a_radius_of_everything_is_known_to_take_minutes() -> None:
    n = 1_000_000
    x, y = np.random.default_rng(0).uniform(-250.0, 250.0, (2, n)).astype(np.float32)
    state = State(xr.Dataset({"x": ("hit", x), "y": ("hit", y)}), "clue", dc=2.0, delta_c=2.0, delta_o=2.0)
    usual = state.system.seconds(state.values)
    state.set(dc=1000.0)
    work = state.system.seconds(state.values)
    assert usual.seconds < live.LONG < live.MINUTES < work.seconds
    assert work.words == "1e12 pairs"


def test_estimates_learn_from_runs() -> None:
    state = State(DATA["clue"]())
    state.set(dc=500.0)
    before = state.system.seconds(state.values).seconds
    state.system.learn(10.0, 30.0)
    assert state.system.seconds(state.values).seconds == pytest.approx(3 * before)
    state.system.learn(30.0, 0.001)  # kernels were not there, or results were
    assert state.system.seconds(state.values).seconds == pytest.approx(3 * before)


# --------------------------------------------------------------------------------------------------------------- worker


def test_only_the_newest_request_counts() -> None:
    done: list[int] = []
    begun: list[int] = []
    shows: list[Any] = []
    wanted = [0]
    gate = threading.Event()

    def begin() -> Iterator[Any]:
        mine = wanted[0]
        begun.append(mine)

        def steps() -> Iterator[Any]:
            gate.wait()
            yield lambda: done.append(mine)
            yield lambda: done.append(-mine)

        return steps()

    latest = Latest(begin, lambda error: None, lambda: done.append(99), shows.append)
    for wanted[0] in range(1, 8):
        latest.ask()
    gate.set()
    while latest.is_busy:
        while shows:
            shows.pop(0)()
        time.sleep(0.001)
    assert done == [1, 7, -7, 99]
    assert begun == [1, 7]


def test_a_fault_is_told_and_the_next_request_is_done() -> None:
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


def test_a_process_computes_fails_and_ends() -> None:
    process = Worker(np.arange(3))
    data, value, mine = process.call(identity, 5, compiles=say_nothing)
    np.testing.assert_array_equal(data, np.arange(3))
    assert value == 5
    assert mine != os.getpid()
    with pytest.raises(ValueError, match="too few"):
        process.call(fault, compiles=say_nothing)
    assert process.call(identity, 6, compiles=say_nothing)[2] == mine  # it goes on
    with pytest.raises(MemoryError, match="ended with code 7"):
        process.call(end, compiles=say_nothing)
    assert process.call(identity, 7, compiles=say_nothing)[1] == 7  # another one
    process.stop()


@pytest.mark.parametrize("name", quick_first(DATA))
def test_a_process_has_the_results_of_this_one(name: str) -> None:
    ds = DATA[name]()
    process, here, there = Worker(ds), State(ds, name), State(ds, name)
    try:
        there.take(process.call(prepared_system, name, compiles=say_nothing))
        assert there.system.parameters == here.system.parameters
        for state in (here, there):
            state.set(**STEPS[name][-1])
        there.take(process.call(prepared_system, there.request(), compiles=say_nothing))
        assert there.system.is_kept(there.values)
        xr.testing.assert_identical(there.update().result, here.update().result)
        assert there.system.seconds(there.values) == Workload(0.0)
    finally:
        process.stop()


def test_a_twin_goes_its_own_way() -> None:
    state = State(DATA["clue"]())
    outcome = state.update()
    twin = state.twin()
    assert twin.present.result is outcome.result
    assert twin.present.request == twin.request() != state.request()
    twin.set(dc=9.0)
    twin.update()
    assert state.present is outcome
    assert state.values["dc"] != 9.0
    assert state.system.is_kept(state.values)


# ----------------------------------------------------------------------------------------------------------------- page
class Loop:
    """A thread of widgets: what is to be done in it is done as `run` is called."""

    def __init__(self) -> None:
        self.shows: list[Any] = []

    def until(self, holds: Any, seconds: float = 600.0) -> None:
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                raise TimeoutError("still not so")
            while self.shows:
                self.shows.pop(0)()
            time.sleep(0.005)


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    found = Loop()
    monkeypatch.setattr(live, "later_in", lambda document: found.shows.append)
    return found


def at_rest(explorer: Any) -> bool:
    return not explorer.latest.is_busy and "now rest" in explorer.head.object


def seen(explorer: Any) -> dict[str, Any]:
    """Return what is seen: numbers, the header, rows of the table and bars."""
    return {
        "values": {name: each.number.value for name, each in explorer.controls.items() if hasattr(each, "number")},
        "counts": explorer.head.object.split("<span class='now")[0],
        "former": "former" in explorer.board.__panel__().css_classes,
    }


def test_long_work_is_done_in_a_process_and_can_be_cancelled(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_SEEN", 0.0)
    explorer = daskclust.app.explore(DATA["clue"]())
    loop.until(lambda: at_rest(explorer))
    before, outcome = seen(explorer), explorer.state.present
    # nothing is quick any more
    monkeypatch.setattr(live, "LONG", 0.0)
    explorer.controls["dc"].number.value = 9.0
    loop.until(lambda: explorer.job and explorer.work.visible)
    assert seen(explorer) == before | {"values": before["values"] | {"dc": 9.0}, "former": True}
    assert not at_rest(explorer)
    process = None

    def begun() -> Any:
        return explorer.worker.process

    loop.until(begun)
    process = begun()
    explorer.cancel.clicks += 1
    loop.until(lambda: at_rest(explorer))
    assert process.poll() is not None
    assert seen(explorer) == before
    assert explorer.state.present is outcome
    assert not explorer.work.visible
    # the next one comes to its end; a zoom meanwhile does not end it
    explorer.controls["dc"].number.value = 9.0
    loop.until(begun)
    process = begun()
    explorer.choose(None)
    loop.until(lambda: explorer.state.present.request.values["dc"] == 9.0)
    loop.until(lambda: at_rest(explorer))
    assert begun() is process
    xr.testing.assert_identical(
        explorer.state.present.result, State(DATA["clue"](), **explorer.state.values).update().result
    )
    assert not seen(explorer)["former"]
    explorer.close()
    assert process.poll() is not None


def test_minutes_are_not_begun_without_a_question(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = daskclust.app.explore(DATA["clue"]())
    before, words = seen(explorer), explorer.work[0]
    number = explorer.controls["dc"].number
    back = number.value
    monkeypatch.setattr(SYSTEMS["clue"], "work", lambda self, values: Workload(360.0, "3e11 pairs"))
    number.value = 500.0
    loop.until(lambda: explorer.work.visible)
    loop.until(lambda: at_rest(explorer))
    assert "dc = 500 needs about 6 min (3e11 pairs)" in words.object
    assert explorer.run_anyway.visible
    assert explorer.cancel.name == f"Back to {back:g}"
    assert seen(explorer)["former"]
    assert seen(explorer)["counts"] == before["counts"]
    explorer.cancel.clicks += 1
    loop.until(lambda: at_rest(explorer))
    assert seen(explorer) == before
    number.value = 500.0
    loop.until(lambda: explorer.work.visible)
    monkeypatch.setattr(live, "_SEEN", 0.0)
    explorer.run_anyway.clicks += 1
    loop.until(lambda: explorer.work.visible and explorer.cancel.name == "Cancel")
    assert not at_rest(explorer)
    loop.until(lambda: explorer.state.present.request.values["dc"] == 500.0)
    loop.until(lambda: at_rest(explorer))
    assert not explorer.work.visible
    explorer.close()


def test_another_system_is_prepared_in_a_process(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = daskclust.app.explore(DATA["dbscan"](), "dbscan")
    monkeypatch.setattr(live, "LONG", 0.0)
    explorer.chooser.value = "fof"
    loop.until(lambda: explorer.job)
    assert SYSTEMS["dbscan"].title in explorer.head.object
    explorer.cancel.clicks += 1
    loop.until(lambda: at_rest(explorer))
    assert explorer.chooser.value == "dbscan"
    assert not explorer.state.knows("fof")
    explorer.chooser.value = "fof"
    loop.until(lambda: explorer.state.system.name == "fof")
    loop.until(lambda: at_rest(explorer))
    assert SYSTEMS["fof"].title in explorer.head.object
    assert list(explorer.controls) == ["by", "b", "linking_length", "min_members"]
    explorer.close()


def test_a_warning_goes_with_its_cause(loop: Loop) -> None:
    explorer = daskclust.app.explore(DATA["dbscan"](), "dbscan")
    good = explorer.state.values["eps"]
    for bad, leave in (
        (-1.0, lambda: explorer.change("eps", good)),
        (float("nan"), lambda: explorer.change("eps", good)),
        (-1.0, lambda: setattr(explorer.chooser, "value", "fof")),
    ):
        explorer.change("eps", bad)
        loop.until(lambda: bool(told(explorer)))
        explorer.show_slice(None)
        loop.until(lambda: at_rest(explorer))
        assert "eps must be" in told(explorer)
        leave()
        assert not told(explorer)
        loop.until(lambda: at_rest(explorer))
        assert not told(explorer)
