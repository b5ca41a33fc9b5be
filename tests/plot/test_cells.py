"""Pictures of hierarchies and of cells: merges and clusters are where they are, sizes and medians are right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import holoviews as hv
import numpy as np
import pytest
import xarray as xr
from cases.elements import by_label, options, save_all
from cases.lanes import quick_first
from scipy.cluster import hierarchy

from daskclust import metrics, plot
from daskclust.core import hierarchy as tree

NAMES = ["CD3", "CD4(Er168)", "HLA-DR / x", "CD45_RA"]


@pytest.fixture(scope="module")
def cells() -> xr.Dataset:
    """Return 340 cells of three clusters in four channels, and stray ones."""
    rng = np.random.default_rng(0)
    clouds = [rng.normal(0, 1, (size, 4)) @ rng.normal(size=(4, 4)) / 4 for size in (200, 100, 30)]
    X = np.concatenate([cloud + 8 * rng.normal(size=4) for cloud in clouds] + [rng.uniform(-30, 30, (10, 4))])
    return xr.Dataset({"X": (("cell", "channel"), X, {"units": "asinh"})}, {"channel": NAMES})


@pytest.fixture(scope="module", name="Z")
def linkage_of_cells(cells: xr.Dataset) -> Any:
    return hierarchy.linkage(cells["X"].values, "centroid")


@pytest.fixture(scope="module")
def labels(Z: Any) -> Any:
    found = tree.cut(Z, n_clusters=3, min_size=20)
    assert (np.bincount(found + 1) >= 5).all()
    return found


def lines_of(element: Any) -> set[tuple[float, ...]]:
    return {tuple(line) for line in np.round(element.array().astype(float), 6).tolist()}


# ----------------------------------------------------------------------------------------------------------- dendrogram
def test_dendrogram_is_that_of_scipy(cells: xr.Dataset) -> None:
    Z = hierarchy.linkage(cells["X"].values, "average")
    drawn = hierarchy.dendrogram(Z, 12, "lastp", no_plot=True)
    picture = by_label(plot.dendrogram(Z, 12))
    assert list(picture) == ["several clusters"]
    expected = set()
    for xs, ys in zip(drawn["icoord"], drawn["dcoord"], strict=True):
        x = [(each - 5) / 10 for each in xs]  # SciPy's leaves are at 5, 15, ...
        expected.add((x[0], ys[1], x[3], ys[2]))
        expected |= {(x[0], ys[0], x[0], ys[1]), (x[3], ys[3], x[3], ys[2])}
    assert lines_of(picture["several clusters"]) == {tuple(np.round(line, 6).tolist()) for line in expected}
    ticks = options(plot.dendrogram(Z, 12))["xticks"]
    assert [int(text.replace(",", "")) for _, text in ticks] == [
        int(text.strip("()")) if "(" in text else 1 for text in drawn["ivl"]
    ]


def test_dendrogram_of_inversions() -> None:
    Z = np.array([[0, 1, 2.0, 2], [2, 3, 1.0, 3]])
    lines = lines_of(by_label(plot.dendrogram(Z))["several clusters"])
    assert (1.5, 1.0, 1.5, 2.0) in lines, "the leg from the pair at 2 goes down to the merge at 1"
    assert options(plot.dendrogram(Z))["ylim"] == (0.0, 2.1)


def test_dendrogram_has_colours_of_clusters(Z: Any, labels: Any) -> None:
    picture = by_label(plot.dendrogram(Z, 25, labels=labels))
    sizes = np.bincount(labels[labels >= 0])
    assert list(picture) == ["several clusters", "noise", *(f"cluster {k}: {size:,}" for k, size in enumerate(sizes))]
    for k, size in enumerate(sizes):
        for backend in ("bokeh", "matplotlib"):
            assert options(picture[f"cluster {k}: {size:,}"], backend, "style")["color"] == plot._elements.COLORS[k]
    assert sum(len(element) for element in picture.values()) == 3 * 24


def test_dendrogram_without_small_clusters(Z: Any, labels: Any) -> None:
    top = tree.condense(Z, 30, 20)
    assert len(top.noise) > 0
    overlay = plot.dendrogram(Z, min_size=20, labels=labels)
    dots = by_label(overlay)["left out"]
    assert sorted(dots.dimension_values(1)) == sorted(top.noise_heights)
    assert sorted(dots.dimension_values("points")) == sorted(len(tree.members(Z, node)) for node in top.noise)
    k = len(top.linkage) + 1
    title = options(overlay)["title"].replace("\n", " ")
    left_out = len(labels) - int(top.sizes[:k].sum())
    assert title == f"340 points, {k} clusters at the top, {len(top.noise)} smaller ones of {left_out} points left out"
    assert len(options(overlay)["xticks"]) == k


def test_many_clusters_share_colours(Z: Any) -> None:
    many = plot.dendrogram(Z, 200, labels=np.arange(340))
    assert set(by_label(many)) == {"several clusters", *(f"clusters {k}, {k + 9}, ..." for k in range(9))}
    assert sum(len(element) for element in many.values()) == 3 * 199
    assert not any(options(element)["show_legend"] for element in many.values()), "no legend of 200 clusters"
    assert options(many)["xticks"] == [(0, "")]


# -------------------------------------------------------------------------------------------------------- point heights
def test_heights_of_points(cells: xr.Dataset, Z: Any) -> None:
    other = hierarchy.linkage(cells["X"].values, "average")
    overlay = plot.point_height_scatter(Z, other, names=("CMD", "FMD"))
    points = by_label(overlay)["points"]
    np.testing.assert_array_equal(points.dimension_values(0), tree.point_heights(Z))
    np.testing.assert_array_equal(points.dimension_values(1), tree.point_heights(other))
    (begin, end) = by_label(overlay)["equal heights"].array().tolist()
    assert begin[0] == begin[1] < end[0] == end[1]
    found = options(overlay)
    assert found["title"] == f"340 points, correlation {metrics.point_height_correlation(Z, other):.4f}"
    assert (found["xlabel"], found["ylabel"]) == ("height of a point, CMD", "height of a point, FMD")
    assert found["xlim"] == found["ylim"]
    far = plot.point_height_scatter(Z, Z * [1, 1, 1000, 1])
    assert options(far)["ylim"][0] > options(far)["xlim"][1]
    assert "equal heights" not in by_label(far)


# ------------------------------------------------------------------------------------------------------------- ellipses
@pytest.mark.parametrize("sigma", [1.0, 2.5])
def test_ellipses_are_at_sigma(cells: xr.Dataset, labels: Any, sigma: float) -> None:
    overlay = plot.ellipses(cells, labels, "CD4(Er168)", "CD45_RA", sigma=sigma)
    picture = by_label(overlay)
    assert len(picture["noise"]) == (labels == -1).sum()
    np.testing.assert_array_equal(picture["member"].dimension_values("label"), labels[labels >= 0])
    paths = picture["ellipse"].split(datatype="dictionary")
    assert [path["cluster"] for path in paths] == [0, 1, 2]
    for path in paths:
        inside = cells["X"].values[labels == path["cluster"]][:, [1, 3]]
        assert path["cells"] == len(inside)
        away = np.stack([path["channel_1"], path["channel_3"]], axis=1) - inside.mean(axis=0)
        inverse = np.linalg.inv(np.cov(inside.T, bias=True))
        np.testing.assert_allclose(np.einsum("ij,jk,ik->i", away, inverse, away), sigma**2)
    assert picture["number"].dimension_values("number").tolist() == ["0", "1", "2"]
    found = options(overlay)
    assert (found["xlabel"], found["ylabel"]) == ("CD4(Er168) (asinh)", "CD45_RA (asinh)")
    assert found["title"].startswith(f"3 clusters, {(labels == -1).sum()} of 340 cells noise; ellipses at {sigma:g} ")


def test_only_the_largest_have_ellipses(cells: xr.Dataset, labels: Any) -> None:
    sizes = np.bincount(labels[labels >= 0])
    picture = by_label(plot.ellipses(cells, labels, 0, 1, most=2))
    drawn = [path["cluster"] for path in picture["ellipse"].split(datatype="dictionary")]
    assert drawn == sorted(np.argsort(-sizes)[:2])


def test_pairs_of_channels(cells: xr.Dataset, labels: Any) -> None:
    def axes(layout: Any) -> list[tuple[str, str]]:
        return [tuple(options(panel)[name].split(" (as")[0] for name in ("xlabel", "ylabel")) for panel in layout]

    assert axes(plot.ellipse_grid(cells, labels)) == [(NAMES[0], NAMES[1]), (NAMES[2], NAMES[3])]
    three = cells.isel(channel=slice(0, 3))
    assert axes(plot.ellipse_grid(three, labels)) == [(NAMES[0], NAMES[1]), (NAMES[1], NAMES[2])]
    assert axes(plot.ellipse_grid(cells, labels, [3, 0, "HLA-DR / x"])) == [
        (NAMES[3], NAMES[0]),
        (NAMES[3], NAMES[2]),
        (NAMES[0], NAMES[2]),
    ]
    assert axes(plot.ellipse_grid(cells, labels, [("CD3", 3)])) == [(NAMES[0], NAMES[3])]
    assert len(plot.ellipse_grid(np.zeros((340, 30)), labels)) == 12


# -------------------------------------------------------------------------------------------------------------- medians
def test_medians_are_in_the_order_of_the_tree(cells: xr.Dataset, Z: Any, labels: Any) -> None:
    order = [int(label) for label in dict.fromkeys(labels[tree.leaf_order(Z)].tolist()) if label >= 0]
    for given, expected in ((None, [0, 1, 2, -1]), (Z, [*order, -1])):
        picture = plot.channel_medians(cells, labels, Z=given)
        rows = [f"{'noise' if k == -1 else k}: {(labels == k).sum()}" for k in expected]
        assert list(dict.fromkeys(picture.dimension_values("cluster"))) == rows
        values = {tuple(row[:2]): row[2] for row in zip(*(picture.dimension_values(k) for k in range(3)), strict=True)}
        for label, word in zip(expected, rows, strict=True):
            medians = np.median(cells["X"].values[labels == label], axis=0)
            np.testing.assert_array_equal([values[name, word] for name in NAMES], medians)
        assert picture.vdims[0].pprint_label == "median (asinh)"


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0], [1, 2, 3, 0], [10, 2, 1, 0]])
def test_rows_of_medians_have_their_own_names(order: list[int]) -> None:
    """HoloViews draws rows in another order than it names them, where names are not sorted."""
    labels = np.sort(order)
    Z, union = [], int(np.searchsorted(labels, order[0]))
    for step, label in enumerate(order[1:]):
        Z.append((union, np.searchsorted(labels, label), step + 1.0, step + 2))
        union = len(order) + step
    X = np.stack([labels, labels + 100.0], axis=1)
    picture = plot.channel_medians(X, labels, Z=Z)
    axes = hv.render(picture, backend="matplotlib").axes[0]
    drawn = axes.collections[0].get_array()
    named = {
        int(text.get_text().split(":")[0]): drawn[int(y)].tolist()
        for text, y in zip(axes.get_yticklabels(), axes.get_yticks(), strict=True)
    }
    assert named == {label: [label, label + 100] for label in order}
    from_below = axes.get_ylim()[1] > axes.get_ylim()[0]
    assert list(named) == (order[::-1] if from_below else order)
    figure = hv.render(picture, backend="bokeh")
    source = figure.renderers[0].data_source.data
    by_name = {
        (str(a), str(b)): float(c)
        for a, b, c in zip(source["channel"], source["cluster"], source["median"], strict=True)
    }
    assert by_name == {(f"channel {k}", f"{label}: 1"): label + 100 * k for label in order for k in (0, 1)}
    assert [int(name.split(":")[0]) for name in figure.y_range.factors] == order[::-1], "from bottom to top"


def test_scaled_medians(cells: xr.Dataset, labels: Any) -> None:
    picture = plot.channel_medians(cells, labels, scaled=True)
    values = picture.dimension_values("median").reshape(4, 4)
    np.testing.assert_array_equal((values.min(axis=0), values.max(axis=0)), [[0] * 4, [1] * 4])
    flat = plot.channel_medians(np.ones((3, 2)), [0, 0, 1], scaled=True)
    assert set(flat.dimension_values("median")) == {0.0}


# ----------------------------------------------------------------------------------------------------------------- save
@pytest.mark.parametrize("n", quick_first([1, 0, 2]))
def test_hardly_any_cells(n: int, tmp_path: Path) -> None:
    X = np.arange(2 * n, dtype=float).reshape(n, 2)
    for labels in (np.zeros(n, int), np.full(n, -1)):
        pictures = [plot.ellipses(X, labels, 0, 1)]
        if n:
            Z = np.array([[0, 1, 0.0, 2]])[: n - 1]
            pictures += [plot.dendrogram(Z, labels=labels), plot.dendrogram(Z, min_size=n)]
            pictures += [plot.point_height_scatter(Z, Z), plot.channel_medians(X, labels, Z=Z)]
        save_all(pictures, tmp_path)
