"""Suggested parameters: they find clusters that are known, and none are suggested where nothing stands out."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
import pytest
import xarray as xr
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import daskclust.app
from daskclust import datasets
from daskclust.app.state import State
from daskclust.app.tools import suggest as tools
from daskclust.app.tools.suggest import Suggestion, suggest
from daskclust.app.tools.suggesting import Suggesting


def points(X: Any, **attrs: Any) -> xr.Dataset:
    return xr.Dataset({name: ("hit", column) for name, column in zip("xyz", X.T, strict=False)}, attrs=attrs)


def suggested(ds: xr.Dataset, system: str) -> tuple[Suggestion, Any]:
    """Return the suggestion, and the labels with it."""
    state = State(ds, system)
    found = suggest(state.update())
    state.set(**found.values)
    return found, state.update().label


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("system", ["clue", "dbscan", "fof"])
def test_blobs_are_found(system: str, seed: int) -> None:
    X, truth = make_blobs(1500, centers=4, random_state=seed, cluster_std=0.5)
    found, label = suggested(points(X), system)
    assert found.values
    assert adjusted_rand_score(truth, label) > 0.9
    assert found.curve.at is not None
    assert found.reason.endswith(".")


@pytest.mark.parametrize("count", [3, 6])
def test_blobs_that_are_apart_are_the_cut(count: int) -> None:
    angle = 2 * np.pi * np.arange(count) / count
    centers = 10 * count * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X, truth = make_blobs(1500, centers=centers, random_state=0)
    found, label = suggested(points(X), "hca")
    assert found.values == {"cut": "number", "n_clusters": count}
    assert adjusted_rand_score(truth, label) > 0.9


@pytest.mark.parametrize(
    ("system", "words"), [("clue", "No gap"), ("dbscan", "no knee"), ("fof", "no knee"), ("hca", "No merge")]
)
@pytest.mark.parametrize("dims", [2, 3])
def test_points_spread_evenly_suggest_nothing(system: str, words: str, dims: int) -> None:
    found, _ = suggested(points(np.random.default_rng(0).uniform(0.0, 1.0, (2000, dims))), system)
    assert not found.values
    assert found.curve.at is None
    assert words in found.reason


@pytest.mark.parametrize("system", ["clue", "dbscan", "fof"])
def test_few_points_suggest_nothing(system: str) -> None:
    found, _ = suggested(points(np.arange(6.0).reshape(3, 2)), system)
    assert not found.values
    assert found.reason


def test_the_knee_is_farthest_from_the_chord() -> None:
    assert tools.knee(np.array([0.0, 0.1, 0.2, 0.3, 2.0, 4.0])) == 3


def test_distances_are_to_all_points_across_the_box() -> None:
    X = np.random.default_rng(1).uniform(0.0, 10.0, (300, 2))
    away = np.abs(X[:, None] - X[None])
    for box in (None, np.array([10.0, 0.0]), np.array([10.0, 10.0])):
        apart = away if box is None else np.where(box > 0, np.minimum(away, 10.0 - away), away)
        expected = np.sort(np.sort(np.sqrt((apart**2).sum(axis=2)), axis=1)[:, 4])
        np.testing.assert_allclose(tools.neighbour_distances(X, 5, box), expected)


def test_nearest_denser_is_that_of_brute_force() -> None:
    rng = np.random.default_rng(2)
    X, density = rng.normal(size=(257, 2)), rng.integers(0, 20, 257).astype(float)
    index = np.arange(257)
    higher = (density[None] > density[:, None]) | ((density[None] == density[:, None]) & (index[None] > index[:, None]))
    away = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    expected = np.where(higher, away, np.inf).min(axis=1)
    np.testing.assert_allclose(tools.nearest_denser(X, density, index), expected)


def test_times_between_are_those_of_brute_force() -> None:
    ds = datasets.timepix(400, rng=0)
    x, y, toa = (ds[name].values.astype(float) for name in ("x", "y", "toa"))
    order = np.argsort(toa, kind="stable")
    x, y, toa = x[order] % 8, y[order] % 8, toa[order]
    touch = (np.abs(x[:, None] - x[None]) <= 1) & (np.abs(y[:, None] - y[None]) <= 1)
    since = np.where(touch & np.tri(len(x), k=-1, dtype=bool), toa[:, None] - toa[None], np.inf).min(axis=1)
    found = tools.times_between(x, y, toa)
    np.testing.assert_array_equal(found, since[np.isfinite(since)])


def test_a_time_between_particles_and_chance() -> None:
    ds = datasets.timepix(20_000, rng=0)
    found, label = suggested(ds, "events")
    assert found.values
    assert adjusted_rand_score(ds["truth"].values, label) > 0.9
    # shuffled times are chance alone
    toa = np.random.default_rng(0).permutation(ds["toa"].values)
    found, _ = suggested(ds.assign(toa=(ds["toa"].dims, toa)), "events")
    assert not found.values


def test_thresholds_have_the_seeds_that_are_told() -> None:
    X, _ = make_blobs(1500, centers=5, random_state=7, cluster_std=0.4)
    state = State(points(X))
    found = suggest(state.update())
    count = int(found.reason.split()[0])
    state.set(**found.values)
    assert state.update().n_clusters == count


def test_layers_do_not_shadow_each_other() -> None:
    X, truth = make_blobs(1200, centers=3, random_state=1, cluster_std=0.4)
    two = xr.concat([points(X).assign(layer=("hit", np.full(1200, k))) for k in (0, 1)], "hit")
    found, label = suggested(two, "clue")
    assert found.values
    assert adjusted_rand_score(np.concatenate([truth, truth + 3]), label) > 0.9


def test_a_length_in_a_box_is_by_the_mean_separation() -> None:
    ds = datasets.cosmology_box(4000, smallest=20, rng=0)
    found, _ = suggested(ds, "fof")
    length, _, _ = tools.length(*tools._points(ds)[:1], 7, tools._points(ds)[1])
    assert length is not None
    side = float(np.ravel(ds.attrs["boxsize"])[0])
    assert found.values["b"] == pytest.approx(length / side * len(ds["x"]) ** (1 / 3), rel=1e-2)


def test_a_suggestion_is_shown_and_used() -> None:
    X, _ = make_blobs(1500, centers=4, random_state=0, cluster_std=0.5)
    explorer = daskclust.app.explore(points(X))
    suggesting = Suggesting(explorer.state, explorer._set, None, None)
    suggesting._latest.ask()
    words, curve, use = suggesting._shown.objects
    found = suggest(explorer.state.present)
    assert found.reason in html.unescape(words.object)
    assert f"rhoc = {found.values['rhoc']:g}" in words.object
    assert curve.object.renderers[1].data_source.data["x"] == [found.curve.at[0]]
    use.clicks += 1
    assert explorer.state.values["rhoc"] == found.values["rhoc"]
    assert explorer.state.present.n_clusters == 4
