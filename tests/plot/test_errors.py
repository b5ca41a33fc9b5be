"""What cannot be drawn is refused in words that show the value and say what would do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.cluster import hierarchy

from daskclust import DBSCAN, EMST, FriendsOfFriends, datasets, plot

CLUE = datasets.calorimeter(1, 40, size=40.0, rng=0).drop_vars("truth")
HITS = datasets.timepix(300, kind="lead", rng=1)
FAR = HITS.assign({name: HITS[name] * 0 + np.uint16(65535) for name in ("x", "y")})
COLUMNS = {name: ("cluster", np.arange(1.0, 4.0)) for name in ("mass", "x", "y", "z", "r_max", "energy", "toa")}
HALOS = xr.Dataset(COLUMNS | {"size": ("cluster", [1, 2, 3]), "tot": ("cluster", [25.0, 50.0, 75.0])})
CELLS = xr.Dataset({"X": (("cell", "channel"), np.eye(6, 4))}, {"channel": ["CD3", "CD4", "CD8", "CD19"]})
LABELS = np.zeros(6, int)


def clustered() -> xr.Dataset:
    return CLUE.clust.clue(8.0, 5.0)


def fof() -> FriendsOfFriends:
    return FriendsOfFriends(1.0).fit([[0.0, 0.0], [0.5, 0.0]])


ERRORS: list[tuple[Callable[[], Any], str]] = [
    # any data
    (lambda: plot.clusters(fof()), r"FriendsOfFriends keeps its results \(is_core, label\) and not .* no 'x'"),
    (lambda: plot.clusters(np.zeros((2, 2)), labels=DBSCAN()), r"DBSCAN\(\) has no labels_ to draw; fit it first"),
    (lambda: plot.clusters(np.zeros((3, 2)), labels=fof()), r"labels have shape \(2,\), the points \(3,\)"),
    (lambda: plot.clusters(pd.DataFrame({"a": [1]})), "DataFrame has no column 'x', which .*; it has a"),
    # of one field each
    (lambda: plot.decision(clustered(), delta_c=9.0), "delta_c = 9 is beyond the 8 of the clustering"),
    (lambda: plot.event_display(HITS, window=(5.0, 1.0)), r"window must be .* got \(5.0, 1.0\)"),
    (lambda: plot.hit_map(FAR), "a picture of 65536 x 65536 pixels is too large; are x and y pixel numbers"),
    (lambda: plot.rate(HITS.assign(toa=HITS["toa"].assign_attrs(units="cm"))), "toa has the unit 'cm', which cannot"),
    (lambda: plot.halo_circles(HALOS.assign_attrs(boxsize=9.0, boxsize_units="Mpc")), "boxsize'] has the unit 'Mpc'"),
    (lambda: plot.ellipses(CELLS, LABELS, "CD3", "CD7"), "there is no channel 'CD7'; there are CD3, CD4"),
    (lambda: plot.channel_medians(CELLS, LABELS, Z=hierarchy.linkage(np.eye(5))), "same cells, got 5 for 6 labels"),
    (lambda: plot.condensed_tree(np.eye(4)), "a fitted HDBSCAN or its condensed_tree_, got ndarray"),
    (lambda: plot.spanning_tree(np.eye(4, 3), np.eye(4)), "a fitted EMST or HDBSCAN, got ndarray"),
    (lambda: plot.spanning_tree(np.eye(2), EMST().fit(np.eye(3))), "the tree has 3 points, the data 2"),
    (lambda: plot.dendrogram(fof()), "has no linkage_ to draw; give a fitted MahalanobisHCA"),
    # files
    (lambda: plot.save(hv.Curve([]), "a.jpg"), r"unknown extension '\.jpg' .* known: \.html, \.png, \.svg, \.pdf"),
    (lambda: plot.save(hv.Curve([]), "a.html", width=3), r"width=3 is for \.png"),
    (lambda: plot.save(plot.layers(clustered(), slider=True), "a.png"), "slider"),
]


@pytest.mark.parametrize(("draw", "words"), ERRORS, ids=[words for _, words in ERRORS])
def test_words(draw: Callable[[], Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((TypeError, ValueError), match=words):
        draw()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "draw", [plot.tot_spectrum, plot.rate, plot.size_spectrum, plot.energy_spectrum, plot.mass_function]
)
def test_no_bins(draw: Callable[..., Any]) -> None:
    for bins in (0, 2.5):
        with pytest.raises((TypeError, ValueError), match=rf"bins must be (a whole number|1 or more), got {bins}"):
            draw(HALOS, bins=bins)
