"""Hits of Timepix: what the generator says of them is true."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.lanes import quick_first, some_of
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import label as label_image
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from daskclust import datasets
from daskclust.core.merge.labels import same_partition
from daskclust.datasets._pixel_shapes import KINDS, make_shapes

# Mean and standard deviation of cluster sizes, figure 3 of the paper.
FIGURE_3 = {
    "gamma": (2.46, 2.15),
    "pion0": (7.22, 27.35),
    "pion45": (23.33, 33.47),
    "pion75": (60.27, 64.33),
    "lead": (131.84, 500.51),
    "lead50": (26.51, 274.99),
    "lead90": (20.45, 356.57),
    "lead_subset": (2231.45, 363.69),
    "lead50_subset": (3622.54, 860.56),
    "lead90_subset": (7258.26, 5105.26),
}
COLUMNS = {"x": ("uint16", "pixel"), "y": ("uint16", "pixel"), "toa": ("float64", "ns"), "tot": ("float32", "ns")}
COLUMNS |= {"chip": ("uint8", "1"), "truth": ("int64", "1")}


@pytest.mark.parametrize("kind", quick_first(KINDS, 2))
def test_hits_conform(kind: Any) -> None:
    n_hits = 100_000 if kind.endswith("subset") else 20_000  # some particles for each chip
    ds = datasets.timepix(n_hits, kind=kind, chips=3, rng=1)
    xr.testing.assert_identical(ds, datasets.timepix(n_hits, kind=kind, chips=3, rng=np.random.default_rng(1)))
    assert not ds["toa"].equals(datasets.timepix(n_hits, kind=kind, chips=3, rng=2)["toa"])
    assert {name: (str(ds[name].dtype), ds[name].attrs["units"]) for name in ds} == COLUMNS
    assert dict(ds.sizes) == {"hit": n_hits}
    assert [ds.attrs[name] for name in ("field", "layout", "kind", "chips")] == ["timepix", "chips", kind, 3]
    assert set(np.unique(ds["chip"])) == {0, 1, 2}
    assert max(int(ds["x"].max()), int(ds["y"].max())) < 256
    toa, tot = ds["toa"].values, ds["tot"].values
    assert (np.diff(toa) >= 0).all()
    assert toa[0] >= 0
    np.testing.assert_array_equal(toa % 1.5625, 0)
    np.testing.assert_array_equal(tot % 25, 0)
    assert tot.min() >= 25
    assert tot.max() <= 1022 * 25
    first = np.unique(ds["truth"], return_index=True)
    np.testing.assert_array_equal(first[0], np.arange(len(first[0])))
    assert (np.diff(first[1]) > 0).all(), "numbered in the order of first hits"


@pytest.mark.parametrize("kind", KINDS)
def test_cluster_sizes_are_those_of_the_paper(kind: Any) -> None:
    mean, deviation = FIGURE_3[kind]
    shapes = make_shapes(np.random.default_rng(3), KINDS[kind], KINDS[kind].shapes)
    size = np.diff(shapes.start)
    assert size.mean() == pytest.approx(mean, rel=0.004)
    assert size.std() == pytest.approx(deviation, rel=0.015)
    n_hits = 400_000
    drawn = np.bincount(datasets.timepix(n_hits, kind=kind, rng=5)["truth"])
    # Three standard errors of a mean over as many clusters as there are.
    assert drawn.mean() == pytest.approx(mean, abs=3 * deviation / np.sqrt(len(drawn)))


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_are_connected_and_have_no_pixel_twice(kind: Any) -> None:
    shapes = make_shapes(np.random.default_rng(0), KINDS[kind], min(500, KINDS[kind].shapes))
    for k, (begin, end) in enumerate(pairwise(shapes.start)):
        x, y = shapes.x[begin:end], shapes.y[begin:end]
        image = np.zeros((shapes.height[k], shapes.width[k]), int)
        np.add.at(image, (y, x), 1)
        assert image.max() == 1
        assert max(image.shape) <= 256
        assert label_image(image, np.ones((3, 3)))[1] == 1
    assert shapes.delay.min() >= 0
    assert shapes.delay.max() <= 1


def brute_force(ds: xr.Dataset, dt_max: float) -> np.ndarray:
    """Return connected components of all pairs of hits that touch within dt_max."""
    x, y, chip = (ds[name].values.astype(float) for name in ("x", "y", "chip"))
    chip = chip if ds.attrs["layout"] != "quad" else 0 * chip
    pairs = cKDTree(np.stack([x, y, chip * 1000], axis=1)).query_pairs(1.0, p=np.inf, output_type="ndarray")
    near = np.abs(np.subtract(*ds["toa"].values[pairs.T])) <= dt_max
    i, j = pairs[near].T
    n = ds.sizes["hit"]
    return connected_components(coo_array((np.ones(len(i)), (i, j)), (n, n)), directed=False)[1]


@some_of(7, kind=KINDS, layout=["chips", "quad", "timepix4"])
def test_truth_is_what_touches_within_200_ns(kind: Any, layout: Any) -> None:
    # Few enough hits a second that no two particles touch.
    ds = datasets.timepix(3_000, kind=kind, rate=1e4, layout=layout, rng=4)
    labels = brute_force(ds, 200.0)
    # The last particle may have lost hits that come after the end.
    last = ds["truth"].values == ds["truth"].values[-1]
    assert same_partition(labels[~last], ds["truth"].values[~last])
    duration = ds["toa"].groupby(ds["truth"]).max() - ds["toa"].groupby(ds["truth"]).min()
    assert duration.max() <= 60 + 75 + 3 * 1.5625


def test_quad_has_common_coordinates() -> None:
    ds = datasets.timepix(50_000, kind="lead", layout="quad", rng=0)
    x, y, chip = (ds[name].values for name in ("x", "y", "chip"))
    assert ds.attrs["chips"] == 4
    assert max(x.max(), y.max()) == 511
    for number, (left, low) in enumerate([(256, 0), (256, 256), (0, 256), (0, 0)]):
        inside = (x >= left) & (x < left + 256) & (y >= low) & (y < low + 256)
        np.testing.assert_array_equal(chip == number, inside)
    chips_of = ds["chip"].groupby(ds["truth"])
    assert (chips_of.max() != chips_of.min()).any(), "some clusters cross a seam"


def test_rate_and_uniform_arrival() -> None:
    ds = datasets.timepix(400_000, rate=2e6, rng=0)
    _, first = np.unique(ds["truth"], return_index=True)
    times = ds["toa"].values[first]
    assert len(times) / times[-1] == pytest.approx(2e6 * 1e-9 / 2.46, rel=0.02)
    gaps = np.diff(times)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.02), "a Poisson process"
    counts, _, _ = np.histogram2d(ds["x"].values[first], ds["y"].values[first], bins=8, range=[[0, 256], [0, 256]])
    assert np.abs(counts - counts.mean()).max() < 6 * np.sqrt(counts.mean())


def test_small_signals_are_late() -> None:
    ds = datasets.timepix(50_000, drift=0.0, timewalk=75.0, rate=1e5, rng=0)
    hits = ds.to_dataframe()
    late = hits["toa"] - hits.groupby("truth")["toa"].transform("min")
    assert late[hits["tot"] <= 50].mean() > 40
    assert late[hits["tot"] > 1000].mean() < 3
    still = datasets.timepix(50_000, drift=0.0, timewalk=0.0, rate=1e5, rng=0).to_dataframe()
    assert (still["toa"] - still.groupby("truth")["toa"].transform("min")).max() <= 2 * 1.5625


@given(
    n_hits=st.integers(0, 300), kind=st.sampled_from(list(KINDS)[:5]), chips=st.integers(1, 5), parts=st.integers(1, 3)
)
def test_parts_follow_each_other(n_hits: int, kind: Any, chips: int, parts: int) -> None:
    random, start, times = np.random.default_rng(0), 0.0, [0.0]
    for _ in range(parts):
        ds = datasets.timepix(n_hits, kind=kind, chips=chips, start=start, rng=random)
        assert ds.sizes["hit"] == n_hits
        times += ds["toa"].values.tolist()
        start = times[-1]
    assert (np.diff(times) >= 0).all()


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskclust.datasets._timepix._BLOCK", 500)
    ds = datasets.timepix(20_000, kind="pion45", rate=1e8, rng=0)
    assert (np.diff(ds["toa"]) >= 0).all()
    assert len(np.unique(np.stack([ds[v].values for v in ("x", "y", "truth")]), axis=1)[0]) == 20_000
    size = np.bincount(ds["truth"])
    mean, deviation = FIGURE_3["pion45"]
    assert size.mean() == pytest.approx(mean, abs=3 * deviation / np.sqrt(len(size)))


@given(disorder=st.floats(0, 1e5), seed=st.integers(0, 5))
def test_readout_order(disorder: float, seed: int) -> None:
    ds = datasets.timepix(500, rng=seed)
    order = datasets.readout_order(ds, disorder, rng=seed)
    np.testing.assert_array_equal(np.sort(order), np.arange(500))
    raw = ds["toa"].values[order]
    assert (np.maximum.accumulate(raw) - raw).max() <= disorder
    np.testing.assert_array_equal(order, datasets.readout_order(ds, disorder, rng=seed))
    if disorder == 0:
        np.testing.assert_array_equal(order, np.arange(500))
