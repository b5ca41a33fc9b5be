"""Suggestions find clusters that are known, comparisons tell what moved, figures and notebooks are what is seen."""

from __future__ import annotations

import html
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.explorer import DATA, STEPS, glyphs, made, view, written
from cases.lanes import quick_first
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import daskclust.app
from daskclust import datasets
from daskclust.app.code import code
from daskclust.app.opening import open_file
from daskclust.app.selection import ChosenBox
from daskclust.app.state import State
from daskclust.app.tools import suggest as tools
from daskclust.app.tools.compare import compare, contingency, match
from daskclust.app.tools.comparing import Changes, Kept, KeptPicture
from daskclust.app.tools.export import Seen, figure, figures, notebook
from daskclust.app.tools.suggest import Suggestion, suggest
from daskclust.app.tools.suggesting import Suggesting
from daskclust.app.views.picture import Picture
from daskclust.metrics import adjusted_rand_index


def points(X: Any, **attrs: Any) -> xr.Dataset:
    return xr.Dataset({name: ("hit", column) for name, column in zip("xyz", X.T, strict=False)}, attrs=attrs)


def suggested(ds: xr.Dataset, system: str) -> tuple[Suggestion, Any]:
    """Return the suggestion, and the labels with it."""
    state = State(ds, system)
    found = suggest(state.update())
    state.set(**found.values)
    return found, state.update().label


@pytest.mark.parametrize("seed", quick_first(range(3)))
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
    ("system", "words"),
    [
        ("clue", "No gap"),
        ("dbscan", "no knee"),
        ("fof", "no knee"),
        ("hca", "No merge"),
        ("hdbscan", "finds the distances itself"),
    ],
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
    side = float(np.ravel(ds.attrs["boxsize"])[0])
    length, _, _ = tools.length(np.stack([ds[name].values for name in "xyz"], axis=1), 7, np.full(3, side))
    assert length is not None
    assert found.values["b"] == pytest.approx(length / side * len(ds["x"]) ** (1 / 3), rel=1e-2)


def test_a_suggestion_is_shown_and_used() -> None:
    X, _ = make_blobs(1500, centers=4, random_state=0, cluster_std=0.5)
    explorer = daskclust.app.explore(points(X))
    suggesting = Suggesting(explorer.state, explorer.set_values, None, None)
    suggesting.latest.ask()
    words, curve, use = suggesting.shown.objects
    found = suggest(explorer.state.present)
    assert found.reason in html.unescape(words.object)
    assert f"rhoc = {found.values['rhoc']:g}" in words.object
    assert curve.object.renderers[1].data_source.data["x"] == [found.curve.at[0]]
    use.clicks += 1
    assert explorer.state.values["rhoc"] == found.values["rhoc"]
    assert explorer.state.present.n_clusters == 4


# ---------------------------------------------------------------------------------------------------------- comparisons


def labels(*runs: tuple[int, int]) -> Any:
    """Return labels of runs of points: cluster, number."""
    return np.concatenate([np.full(number, cluster, np.int64) for cluster, number in runs])


SAME = labels((0, 5), (1, 4), (-1, 2), (2, 1)), labels((2, 5), (0, 4), (-1, 2), (1, 1))
FEW = labels((0, 1000), (1, 1000)), labels((1, 4), (0, 996), (1, 1000))
MANY = (
    labels((0, 10), (0, 6), (1, 5), (2, 4), (-1, 3), (3, 2)),
    labels((0, 10), (1, 6), (2, 5), (2, 4), (3, 3), (-1, 2)),
)
ROWS = [("split", "0", "0, 1", 16), ("merged", "1, 2", "2", 9), ("appeared", "", "3", 3), ("vanished", "3", "", 2)]


@pytest.mark.parametrize(
    ("both", "moved", "rows", "words"),
    [
        (SAME, [], [], "ARI 1.00; 0 of 12 points moved (0.0%); clusters 3 → 3"),
        (FEW, range(4), [], "4 of 2,000 points moved (0.2%); clusters 2 → 2"),
        # the smaller part of each, and what was noise or is noise now
        (MANY, [*range(10, 16), *range(21, 30)], ROWS, "15 of 30 points moved (50.0%); clusters 4 → 4"),
    ],
)
def test_what_moved_was_split_or_merged(both: Any, moved: Any, rows: Any, words: str) -> None:
    found = compare(*both)
    assert np.flatnonzero(found.moved).tolist() == [*moved]
    assert [tuple(row) for row in found.changes.itertuples(index=False)] == rows
    assert found.ari == pytest.approx(adjusted_rand_index(*both), abs=1e-12)
    assert found.words.endswith(words)


@given(st.lists(st.tuples(st.integers(-1, 5), st.integers(-1, 4)), min_size=1, max_size=60))
def test_the_match_is_by_the_largest_number_of_points_in_common(pairs: list[tuple[int, int]]) -> None:
    """No pair that is left has more than a match of either of its clusters; the index is that of `metrics`."""
    before, after = np.array(pairs).T
    table = contingency(before, after)
    counts, found = table.toarray(), match(table)
    kept = found >= 0
    assert len(set(found[kept].tolist())) == kept.sum()
    of_row, of_column = np.zeros(counts.shape[0]), np.zeros(counts.shape[1])
    of_row[kept] = of_column[found[kept]] = counts[kept, found[kept]]
    assert (counts <= np.maximum(of_row[:, None], of_column)).all()
    assert compare(before, after).ari == pytest.approx(adjusted_rand_index(before, after), abs=1e-12)


@pytest.mark.parametrize("other", [labels((-1, 6)), labels((0, 6)), labels((0, 3), (1, 3))])
def test_all_noise_on_one_side(other: Any) -> None:
    noise = labels((-1, 6))
    for one, two in ((noise, other), (other, noise)):
        found = compare(one, two)
        assert found.moved.sum() == np.count_nonzero(other >= 0)
        assert set(found.changes["change"]) <= {"appeared", "vanished"}


def test_a_kept_clustering_is_seen_beside_the_present_one() -> None:
    explorer = daskclust.app.explore(DATA["clue"]())
    before = explorer.state.present.label
    explorer.compare(Kept(explorer.state.present))
    explorer.set_values({"rhoc": 20.0})
    after = explorer.state.present.label
    assert compare(before, after).words in view(explorer, Changes).words.object
    kept, present = view(explorer, KeptPicture), view(explorer, Picture)
    for one, two in ((kept, present), (present, kept)):
        one.canvas.figure.x_range.start -= 1.0
        one.canvas.figure.y_range.end += 2.0
        assert one.canvas.ranges == two.canvas.ranges
    # clusters that match have one colour in both
    marks = [sorted(zip(each["x"], each["y"], each["color"], strict=True)) for each in marks_of(explorer)]
    alike = ~compare(before, after).moved
    same = sum(one == two for one, two in zip(*marks, strict=True))
    assert alike.sum() <= same < len(alike)
    explorer.compare(None)
    assert not any(isinstance(each, KeptPicture) for each in explorer.views)


def marks_of(explorer: Any) -> list[dict[str, Any]]:
    """Return the points of the present picture, and of the one that was kept."""
    return [glyphs(explorer, kind)[1] for kind in (Picture, KeptPicture)]


def test_points_that_moved_are_chosen_and_made_by_lines() -> None:
    explorer = daskclust.app.explore(DATA["clue"]())
    kept = Kept(explorer.state.present)
    explorer.compare(kept)
    explorer.set_values({"rhoc": 20.0})
    explorer.choose(kept.moved())
    state = explorer.state
    np.testing.assert_array_equal(state.mask, compare(kept.outcome.label, state.present.label).moved)
    np.testing.assert_array_equal(made(state)["inside"], state.mask)
    state.set(rhoc=5.0)
    state.update()
    np.testing.assert_array_equal(made(state)["inside"], state.mask)


def test_a_kept_clustering_of_another_system() -> None:
    explorer = daskclust.app.explore(DATA["dbscan"](), "dbscan")
    before = explorer.state.present.label
    explorer.compare(Kept(explorer.state.present))
    explorer.show_system("fof")
    assert compare(before, explorer.state.present.label).words in view(explorer, Changes).words.object
    explorer.draw(("y", "z"))
    assert view(explorer, KeptPicture).axes == ("y", "z")


# ------------------------------------------------------------------------------------------------ figures and notebooks


def explorer_of(name: str, **parameters: Any) -> Any:
    return daskclust.app.explore(DATA[name](), name, **parameters)


def zoomed(explorer: Any) -> Seen:
    """Return what is seen when the middle of the picture is zoomed to."""
    picture = next(each for each in explorer.views if isinstance(each, Picture))
    (left, right), (low, high) = picture.canvas.ranges
    quarter = (right - left) / 4, (high - low) / 4
    picture.canvas.show(((left + quarter[0], right - quarter[0]), (low + quarter[1], high - quarter[1])))
    found: Seen = explorer.seen()
    return found


@pytest.mark.parametrize("name", quick_first(DATA))
def test_figures_of_each_system(name: str) -> None:
    explorer = explorer_of(name)
    seen = zoomed(explorer)
    names = figures(explorer.state)
    assert names == [
        "picture",
        *{"clue": ["decision plot"], "hca": ["dendrogram"], "hdbscan": ["condensed tree"]}.get(name, []),
    ]
    for each in names:
        svg = figure(explorer.state, seen, each, "svg").decode()
        assert "<svg" in svg
        picture = Image.open(io.BytesIO(figure(explorer.state, seen, each, "png")))
        assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1)
        assert picture.size[0] == pytest.approx(6.8 * 300, rel=0.05)


def test_a_figure_has_the_points_of_the_zoom_and_the_slice() -> None:
    explorer = explorer_of("clue")
    explorer.show_slice(explorer.state.slices.at(1, 1.0))
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
    alone: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(cell["source"], names)
    exec(code(state), alone)
    for each in (names, alone):
        np.testing.assert_array_equal(each["result"]["label"], state.present.label)
        np.testing.assert_array_equal(each["inside"], state.mask)
        xr.testing.assert_equal(each["table"], state.present.table)
    drawn = [cell["source"] for cell in cells if "plot." in cell["source"] and cell["cell_type"] == "code"]
    assert len(drawn) >= (2 if name in ("clue", "hca") else 1)
    for source in drawn[1:]:
        lines = source.splitlines()
        exec("\n".join(lines[:-1]), names)
        assert eval(lines[-1], names) is not None
