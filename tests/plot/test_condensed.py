"""The condensed tree and the minimum spanning tree as they are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases.elements import by_label, options
from cases.pictures import densities

from daskclust import EMST, HDBSCAN, plot
from daskclust.plot._condensed import nodes_of_labels, shapes, tree_of
from daskclust.plot._look import COLORS, NOISE_COLOR


def random_fit(seed: int, **parameters: Any) -> HDBSCAN:
    """Return a fit of points on a lattice, with noise, some of them twice."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(k, 0.3, (40, 2)).round(1) for k in range(3)] + [rng.uniform(-1, 4, (30, 2))])
    return HDBSCAN(6, min_samples=3, **parameters).fit(X)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_widths_are_numbers_of_points(seed: int, log: bool) -> None:
    """At each corner a shape is as wide as there are points that leave its cluster, or one within it, no earlier."""
    tree = tree_of(random_fit(seed).condensed_tree_)
    drawn = shapes(tree, 1000, log=log)
    assert len(drawn.node) == len(tree.parent)
    highest = drawn.lambdas.max()
    for place, node in enumerate(drawn.node.tolist()):
        if tree.death[node] < (1 + 1e-12) * tree.birth[node]:  # heights that differ by rounding alone
            continue
        within = [node]
        for other in range(node + 1, len(tree.parent)):
            within += [other] if tree.parent[other] in within else []
        left = np.minimum(np.where(tree.cluster == node, tree.left, np.inf), highest)
        there = np.isin(tree.cluster, within)
        for at, size in zip(drawn.lambdas[place, 1:-1], drawn.sizes[place, 1:-1], strict=True):
            assert size == np.count_nonzero(there & (left >= at))
        assert drawn.sizes[place, 0] == there.sum()
    x, y = drawn.outlines()
    assert x.shape == y.shape == (len(drawn.node), 130)
    np.testing.assert_allclose(x.max(axis=1) - x.min(axis=1), drawn.sizes[:, 0])


def test_children_are_side_by_side_below_their_parent() -> None:
    drawn = shapes(tree_of(densities()[1]), 100)
    left, right = (drawn.middle + side * drawn.sizes[:, 0] / 2 for side in (-1, 1))
    for parent in range(len(drawn.node)):
        below = np.flatnonzero(drawn.parent == parent)
        if len(below):
            below = below[np.argsort(left[below])]
            np.testing.assert_allclose(right[below[:-1]], left[below[1:]])
            half = drawn.sizes[parent, -1] / 2  # what the parent has in the end
            assert left[below[0]] >= drawn.middle[parent] - half - 1e-9
            assert right[below[-1]] <= drawn.middle[parent] + half + 1e-9
            np.testing.assert_array_equal(drawn.lambdas[below, 0], drawn.lambdas[parent, -1])


@pytest.mark.parametrize(
    "how",
    [{}, {"cluster_selection_method": "leaf"}, {"cluster_selection_epsilon": 0.4}, {"allow_single_cluster": True}],
)
def test_chosen_clusters_hold_their_points(how: dict[str, Any]) -> None:
    """The cluster of a label has all its points, and no cluster within it has all of them."""
    for seed in range(4):
        fit = random_fit(seed, **how)
        for tree in (tree_of(fit), tree_of(fit.condensed_tree_)):
            for label, node in enumerate(nodes_of_labels(tree, fit.labels_).tolist()):
                members = tree.cluster[fit.labels_ == label]
                above = [set() for _ in tree.parent]
                for each in range(len(above)):
                    above[each] = {each} | (above[tree.parent[each]] if each else set())
                assert max(set.intersection(*(above[each] for each in members.tolist()))) == node


def test_chosen_clusters_have_their_colours() -> None:
    fit = densities()[1]
    picture = by_label(plot.condensed_tree(fit))
    labels = {f"cluster {k}: {size}": k for k, size in enumerate(np.bincount(fit.labels_ + 1)[1:])}
    assert set(picture) == {"not chosen", *labels}
    for backend, name in (("bokeh", "color"), ("matplotlib", "facecolor")):
        assert options(picture["not chosen"], backend, "style")[name] == NOISE_COLOR
        for words, label in labels.items():
            assert options(picture[words], backend, "style")[name] == COLORS[label]
    title = options(plot.condensed_tree(fit, 5))["title"]
    assert "3 clusters of" in title
    assert "the largest 5 drawn" in title.replace("\n", " ")


def test_edges_across_a_face_are_not_drawn() -> None:
    X = np.array([[0.1, 1.0], [9.9, 1.0], [0.1, 3.0], [0.1, 4.0]])
    picture = plot.spanning_tree(X, EMST(boxsize=10.0).fit(X))
    np.testing.assert_allclose(picture["length"], [1.0, 2.0])
    assert "3 edges, 3.2 in all, 1 across a face not drawn" in options(picture)["title"].replace("\n", " ")
