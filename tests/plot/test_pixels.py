"""Pictures of Timepix: every hit is in them, in its pixel, its time and its bin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import holoviews as hv
import numpy as np
import pytest
import xarray as xr
from cases.elements import layer, options, save_all
from cases.lanes import quick_first

from daskclust import datasets, plot, properties
from daskclust.plot._elements import COLORS


@pytest.fixture(scope="module")
def hits() -> xr.Dataset:
    """Return 30 000 hits of lead ions on a chip, labelled by their particle, some of them noise."""
    ds = datasets.timepix(30_000, kind="lead", rng=1)
    return ds.assign(label=ds["truth"].where(ds["truth"] % 5 > 0, -1).assign_attrs(ds["truth"].attrs))


@pytest.fixture(scope="module")
def table(hits: xr.Dataset) -> xr.Dataset:
    return properties.cluster_table(hits, "truth")


def pixels(hits: xr.Dataset, values: Any = None) -> np.ndarray:
    """Return sums in a matrix of 256 x 256, by row and column."""
    x, y = hits["x"].values, hits["y"].values
    return np.histogram2d(y, x, bins=256, range=[[-0.5, 255.5]] * 2, weights=values)[0]


# -------------------------------------------------------------------------------------------------------- event display
def test_event_display_has_every_hit(hits: xr.Dataset) -> None:
    some = hits.isel(hit=slice(0, 3000))
    image = plot.event_display(some)
    assert image.bounds.lbrt() == (-0.5, -0.5, 255.5, 255.5)
    np.testing.assert_array_equal(np.nan_to_num(layer(image, "hits")), pixels(some))
    np.testing.assert_array_equal(np.nan_to_num(layer(image, "tot")), pixels(some, some["tot"].values))
    assert (pixels(some) > 1).any()
    last = np.full((2, 256, 256), np.nan)
    for x, y, toa, label in zip(*(some[name].values for name in ("x", "y", "toa", "label")), strict=True):
        last[:, y, x] = toa, label
    np.testing.assert_array_equal(layer(image, "toa"), last[0])
    np.testing.assert_array_equal(layer(image, "label"), last[1])
    expected = np.where(last[1] == -1, len(COLORS), last[1] % len(COLORS))
    np.testing.assert_array_equal(layer(image, "color"), expected)
    assert image.vdims[0].name == "color", "noise is grey, clusters have nine colours"


def test_event_display_by_tot(hits: xr.Dataset) -> None:
    times = hits["toa"].values
    window = times[10], times[200]
    image = plot.event_display(hits, color="tot", window=window)
    assert image.vdims[0].pprint_label == "ToT (ns)"
    inside = hits.isel(hit=np.flatnonzero((times >= window[0]) & (times <= window[1])))  # both ends
    np.testing.assert_array_equal(np.nan_to_num(layer(image, "tot")), pixels(inside, inside["tot"].values))
    bare = plot.event_display(hits.drop_vars(["label", "truth"]), window=window)
    assert bare.vdims[0].name == "tot"


def test_a_pixel_with_a_time_over_threshold_that_is_no_number_has_none(hits: xr.Dataset) -> None:
    one = hits.isel(hit=[0, 0, 1]).copy(deep=True)
    one["tot"] = one["tot"].astype(float)
    one["tot"][0] = np.nan
    shown = layer(plot.event_display(one, color="tot"), "tot")
    assert np.count_nonzero(np.isfinite(shown)) == 1


def test_chosen_clusters_fill_the_picture(hits: xr.Dataset) -> None:
    label = hits["label"].values
    biggest = int(np.bincount(label[label >= 0]).argmax())
    image = plot.event_display(hits, clusters=[biggest])
    mine = hits.isel(hit=np.flatnonzero(label == biggest))
    assert np.nansum(layer(image, "hits")) == mine.sizes["hit"]
    left, low, right, high = image.bounds.lbrt()
    assert (left, right) == (max(mine["x"].min() - 3, 0) - 0.5, mine["x"].max() + 3.5)
    assert (low, high) == (max(mine["y"].min() - 3, 0) - 0.5, mine["y"].max() + 3.5)
    row, column = np.argwhere(layer(image, "hits") > 0).T
    found = {(int(x + left + 0.5), int(y + low + 0.5)) for x, y in zip(column, row, strict=True)}
    assert found == set(zip(mine["x"].values.tolist(), mine["y"].values.tolist(), strict=True))


def test_labels_may_be_chips_or_coordinates(hits: xr.Dataset) -> None:
    ds = datasets.timepix(2_000, chips=2, rng=0)
    pictures = plot.event_display(ds, "chip")
    assert pictures.keys() == [0, 1]
    assert set(np.unique(layer(pictures[1], "label"))[:-1]) == {1}
    some = hits.isel(hit=slice(0, 1000))
    for draw in (plot.event_display, plot.hit_map):
        np.testing.assert_array_equal(
            layer(draw(some.set_coords(["x", "y", "label", "tot"])), "hits"), layer(draw(some), "hits")
        )


class OnDevice:
    """An array of CuPy's name, that lives on a GPU and refuses to be looked at."""

    __module__ = "cupy"

    def __init__(self, values: Any) -> None:
        self.values, self.shape, self.dtype, self.ndim = values, values.shape, values.dtype, values.ndim

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("not on the host")

    __array__ = __array_function__ = __array_ufunc__ = _refuse

    def __getitem__(self, key: Any) -> Any:
        return OnDevice(self.values[key])

    def get(self) -> Any:
        return self.values


def test_hits_and_labels_on_a_gpu_are_drawn(hits: xr.Dataset) -> None:
    some = hits.isel(hit=slice(0, 1000))
    away = some.copy(data={name: OnDevice(some[name].values) for name in some.data_vars}).set_coords("x")
    np.testing.assert_array_equal(layer(plot.event_display(away), "tot"), layer(plot.event_display(some), "tot"))
    for label in (OnDevice(some["label"].values), some["label"], some["label"].chunk(hit=100).data):
        given = plot.event_display(some.drop_vars("label"), label)
        np.testing.assert_array_equal(layer(given, "label"), layer(plot.event_display(some), "label"))


def test_chips_have_a_picture_each() -> None:
    ds = datasets.timepix(5_000, chips=3, rng=0)
    for pictures in (plot.event_display(ds), plot.hit_map(ds)):
        assert isinstance(pictures, hv.NdLayout)
        assert pictures.keys() == [0, 1, 2]
        for number, image in pictures.items():
            expected = pixels(ds.isel(hit=np.flatnonzero(ds["chip"].values == number)))
            np.testing.assert_array_equal(np.nan_to_num(layer(image, "hits")), expected)
    for picture in (plot.event_display(ds, chip=1), plot.hit_map(ds, chip=1)):
        assert isinstance(picture, hv.Image)
        assert np.nansum(layer(picture, "hits")) == (ds["chip"] == 1).sum()


def test_a_quad_is_one_picture() -> None:
    ds = datasets.timepix(5_000, layout="quad", rng=0)
    for picture in (plot.event_display(ds), plot.hit_map(ds)):
        assert picture.bounds.lbrt() == (-0.5, -0.5, 511.5, 511.5)
        assert np.nansum(layer(picture, "hits")) == 5_000


def test_hit_map_counts(hits: xr.Dataset) -> None:
    image = plot.hit_map(hits)
    np.testing.assert_array_equal(np.nan_to_num(layer(image, "hits")), pixels(hits))
    assert np.isnan(layer(image, "hits")[pixels(hits) == 0]).all()
    without_chip = plot.hit_map(hits[["x", "y"]].chunk(hit=7000), log=False)
    np.testing.assert_array_equal(layer(without_chip, "hits"), layer(image, "hits"))


@pytest.mark.parametrize("n_hits", quick_first([0, 1]))
def test_hardly_any_hits(n_hits: int, tmp_path: Path) -> None:
    ds = datasets.timepix(n_hits, rng=0)
    clusters = xr.Dataset({"size": ("cluster", np.ones(n_hits, int)), "toa": ("cluster", ds["toa"].values)})
    displays = [plot.event_display(ds, "truth", clusters=chosen) for chosen in (None, [0])]
    spectra = [plot.rate(ds, clusters), plot.rate(ds, logy=True), plot.tot_spectrum(ds), plot.size_spectrum(clusters)]
    save_all([*displays, plot.event_display(ds, color="tot"), plot.hit_map(ds), *spectra], tmp_path)


# -------------------------------------------------------------------------------------------------------------- spectra
def contents(bars: hv.Histogram, width: float) -> np.ndarray:
    """Return how many values are in each bin of a picture whose bars are per `width`."""
    number = bars.dimension_values(1) * np.diff(bars.edges) / width
    np.testing.assert_allclose(number, number.round(), atol=1e-6)
    return number.round().astype(int)


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("bins", [1, 7, 60])
def test_tot_spectrum_counts_every_hit(hits: xr.Dataset, table: xr.Dataset, bins: int, log: bool) -> None:
    for ds, name in ((hits, "hits"), (table, "clusters")):
        bars = plot.tot_spectrum(ds, bins=bins, log=log)
        assert bars.kdims[0].pprint_label == f"ToT of a {name[:-1]} (ns)"
        assert bars.vdims[0].name == name
        assert len(bars.edges) <= bins + 3
        np.testing.assert_array_equal(bars.edges % 25, 12.5)
        values = ds["tot"].values.astype(float)
        expected = [((values > a) & (values < b)).sum() for a, b in zip(bars.edges[:-1], bars.edges[1:], strict=True)]
        np.testing.assert_array_equal(contents(bars, 25.0), expected)
        assert sum(expected) == values.size


def test_size_spectrum_counts_every_cluster(table: xr.Dataset) -> None:
    bars = plot.size_spectrum(table, bins=20)
    assert contents(bars, 1.0).sum() == table.sizes["cluster"]
    assert contents(bars, 1.0)[0] == (table["size"] == 1).sum()
    gaps = plot.size_spectrum(xr.Dataset({"size": ("cluster", [0, 3, 0, 1])}))
    assert contents(gaps, 1.0).sum() == 2
    assert options(gaps)["title"] == "2 clusters, 2 without points"
    for backend in ("bokeh", "matplotlib"):
        found = options(bars, backend)
        assert found["logx"]
        assert found["logy"]
        assert found["ylim"][0] < bars.dimension_values(1)[bars.dimension_values(1) > 0].min()


def test_values_that_are_missing_are_told() -> None:
    values = np.array([25.0, 50.0, np.nan, np.inf])
    ds = xr.Dataset({name: ("hit", values, {"units": "ns"}) for name in ("toa", "tot")})
    ds = ds.assign(energy=("cluster", values, {"units": "keV"}))
    for picture, what in (
        (plot.rate(ds), "2 hits, 2 without toa"),
        (plot.tot_spectrum(ds), "2 hits, 2 without tot"),
        (plot.energy_spectrum(ds), "2 clusters, 2 without energy"),
        (plot.energy_spectrum(ds, log=False), "2 clusters, 2 without energy"),
    ):
        assert options(picture)["title"] == what
    assert plot.energy_spectrum(ds).kdims[0].pprint_label == "energy of a cluster (keV)"


def test_times_are_in_the_unit_that_they_name(hits: xr.Dataset) -> None:
    """The same hits with times in other units give the same pictures."""
    expected, hits = hits, hits.copy()
    for name, unit, size in (("toa", "s", 1e-9), ("tot", "us", 1e-3)):
        hits[name] = (expected[name].astype(float) * size).assign_attrs(units=unit)
    shown, wanted = (plot.event_display(ds, window=(0.0, 50_000.0)) for ds in (hits, expected))
    for name in ("hits", "toa", "tot"):
        np.testing.assert_allclose(layer(shown, name), layer(wanted, name))
    assert options(shown)["title"] == options(wanted)["title"]
    shown, wanted = (plot.tot_spectrum(ds) for ds in (hits, expected))
    assert shown.kdims[0].pprint_label == wanted.kdims[0].pprint_label
    np.testing.assert_allclose(shown.edges, wanted.edges)
    shown, wanted = (plot.rate(ds, bins=7).get(0) for ds in (hits, expected))
    assert [str(each.pprint_label) for each in shown.dimensions()] == ["time (ms)", "rate (1/µs)"]
    np.testing.assert_allclose(shown.array(), wanted.array(), rtol=1e-3)


def test_rates(hits: xr.Dataset, table: xr.Dataset) -> None:
    picture = plot.rate(hits, table, bins=13)
    curves = {curve.label: curve for curve in picture.values()}
    assert list(curves) == ["hits", "clusters"]
    times = {"hits": hits["toa"].values, "clusters": table["toa"].values}
    low, high = times["hits"].min(), times["hits"].max()
    for name, curve in curves.items():
        number = np.histogram(times[name], 13, range=(low, high))[0]
        ends = [0, *range(13), 12]  # the first and the last interval are drawn to their ends
        np.testing.assert_allclose(curve.dimension_values("rate"), number[ends] / ((high - low) / 13 * 1e-3))
        middle = low + (np.arange(13) + 0.5) * (high - low) / 13
        np.testing.assert_allclose(curve.dimension_values("time"), np.array([low, *middle, high]) / 1e6)
    assert curves["hits"].kdims[0].pprint_label == "time (ms)"
    assert curves["hits"].vdims[0].pprint_label == "rate (1/µs)"
    mean = np.mean(curves["hits"].dimension_values("rate")[1:-1])
    assert mean == pytest.approx(30_000 / (high - low) * 1e3)


@pytest.mark.parametrize(("span", "unit", "expected"), [(1e9, "1/s", 100.0), (1e6, "1/ms", 100.0), (1e4, "1/µs", 10.0)])
def test_rates_have_a_unit_that_suits(span: float, unit: str, expected: float) -> None:
    ds = xr.Dataset({"toa": ("hit", np.linspace(0.0, span, 100), {"units": "ns"})})
    curve = plot.rate(ds, bins=1).get(0)
    assert curve.vdims[0].unit == unit
    np.testing.assert_allclose(curve.dimension_values("rate"), expected)


def test_intervals_without_hits_are_gaps_on_a_logarithmic_axis(tmp_path: Path) -> None:
    ds = xr.Dataset({"toa": ("hit", [0.0, 1.0, 100.0])})
    curve = plot.rate(ds, bins=4, logy=True).get(0)
    np.testing.assert_array_equal(np.isnan(curve.dimension_values("rate")[1:-1]), [False, True, True, False])
    plot.save(plot.rate(ds, bins=4, logy=True), tmp_path / "gaps.png", dpi=40)
