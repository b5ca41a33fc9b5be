"""Pictures have every point, in its place; files are whole and need no network."""

from __future__ import annotations

import html
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import holoviews as hv
import numpy as np
import pytest
import xarray as xr
from cases.elements import by_label, glyphs, options, save_all
from cases.lanes import quick_first
from panel.io.resources import set_resource_mode

from daskclust import datasets, plot


@pytest.fixture(scope="module")
def result() -> xr.Dataset:
    """Return 600 clustered hits on three layers."""
    return datasets.calorimeter(3, 200, size=80.0, rng=0).clust.clue(8.0, 5.0, delta_o=6.0)


@pytest.fixture(scope="module")
def many() -> xr.Dataset:
    """Return 200 000 clustered hits, of which noise alone is more than is drawn as markers."""
    return datasets.calorimeter(20, 10_000, noise=0.2, rng=0).clust.clue(5.0, 4.0)


def kinds(result: xr.Dataset, rhoc: float, delta_c: float, delta_o: float) -> dict[str, int]:
    dense, delta = result["density"].values >= rhoc, result["delta"].values
    seed, outlier = int((dense & (delta > delta_c)).sum()), int((~dense & (delta > delta_o)).sum())
    return {"follower": len(delta) - seed - outlier, "outlier": outlier, "seed": seed}


# ------------------------------------------------------------------------------------------------------------- decision
@pytest.mark.parametrize(("logx", "logy"), [(False, False), (True, False), (True, True)])
def test_decision_has_every_point(result: xr.Dataset, logx: bool, logy: bool) -> None:
    overlay = plot.decision(result, logx=logx, logy=logy)
    assert glyphs(overlay) == kinds(result, 5.0, 8.0, 6.0)
    assert glyphs(overlay)["seed"] == int(result["is_seed"].sum())
    drawn = np.concatenate([points.dimension_values(1) for points in by_label(overlay, hv.Points).values()])
    top = by_label(overlay, hv.Curve)["δ = ∞ (no higher in reach)"].dimension_values(1)[0]
    assert int((drawn == top).sum()) == int(np.isinf(result["delta"]).sum()) > 0
    finite = result["delta"].values[np.isfinite(result["delta"])]
    np.testing.assert_array_equal(np.sort(drawn[drawn < top]), np.sort(finite.astype(float)))
    assert top > max(finite.max(), 8.0)


def lines(overlay: Any) -> dict[str, tuple[float, float]]:
    curves = by_label(overlay, hv.Curve)
    return {label[:2]: tuple(curve.array()[0]) for label, curve in curves.items() if not label.startswith("δ =")}


def test_decision_lines(result: xr.Dataset) -> None:
    found = lines(plot.decision(result))
    assert (found[f"{plot.RHO}c"][0], found["δc"][1], found["δo"][1]) == (5.0, 8.0, 6.0)
    moved = plot.decision(result, rhoc=7.0, delta_c=4.0, delta_o=2.0)
    found = lines(moved)
    assert (found[f"{plot.RHO}c"][0], found["δc"][1], found["δo"][1]) == (7.0, 4.0, 2.0)
    assert glyphs(moved) == kinds(result, 7.0, 4.0, 2.0)
    assert list(by_label(plot.decision(result, delta_o=8.0), hv.Curve))[-1] == "δc = δo = 8"


def test_decision_of_results_without_parameters(result: xr.Dataset) -> None:
    bare = result.drop_attrs()
    overlay = plot.decision(bare)
    assert lines(overlay) == {}
    assert glyphs(overlay)["seed"] == int(result["is_seed"].sum())
    assert sum(glyphs(overlay).values()) == 600


def test_decision_with_a_threshold_for_each_point(result: xr.Dataset) -> None:
    ds = result.assign(limit=("hit", np.linspace(2.0, 9.0, 600)))
    for rhoc in ("limit", ds["limit"].values):
        clustered = ds.clust.clue(8.0, rhoc)
        overlay = plot.decision(clustered)
        assert glyphs(overlay)["seed"] == int(clustered["is_seed"].sum())
        assert list(lines(overlay)) == ["δc"]


def test_decision_draws_zeros_on_logarithmic_axes() -> None:
    ds = xr.Dataset({"x": ("hit", [0.0, 0.0, 3.0]), "y": ("hit", [0.0, 0.0, 0.0]), "energy": ("hit", [1.0, 2.0, 0.0])})
    overlay = plot.decision(ds.clust.clue(1.0, 1.0), logx=True, logy=True)
    assert glyphs(overlay) == {"follower": 1, "outlier": 1, "seed": 1}
    for points in by_label(overlay, hv.Points).values():
        assert (points.array() > 0).all()


@pytest.mark.parametrize("rows", quick_first([0, 1]))
def test_hardly_any_points(result: xr.Dataset, rows: int, tmp_path: Path) -> None:
    few = result.drop_vars(["label", "density", "delta", "nearest_higher", "is_seed"]).isel(hit=slice(0, rows))
    few = few.clust.clue(8.0, 0.5)
    assert sum(glyphs(plot.decision(few)).values()) == rows
    assert glyphs(plot.clusters(few, links=True)) == {"noise": 0, "member": rows, "seed": rows}
    save_all((plot.decision(few), plot.decision(few, logx=True, logy=True), plot.clusters(few, links=True)), tmp_path)


# ------------------------------------------------------------------------------------------------------------- clusters
def test_clusters_have_every_point(result: xr.Dataset) -> None:
    overlay = plot.clusters(result)
    assert [options(overlay)[name] for name in ("xlabel", "ylabel")] == ["x (cm)", "y (cm)"]
    noise, seeds = int((result["label"] == -1).sum()), int(result["is_seed"].sum())
    assert noise > 0
    assert glyphs(overlay) == {"noise": noise, "member": 600 - noise, "seed": seeds}
    assert [element.label for element in overlay.values()] == ["noise", "member", "seed"], "noise is below all"
    assert "seed" not in glyphs(plot.clusters(result, seeds=False))
    member = by_label(overlay, hv.Points)["member"]
    np.testing.assert_array_equal(member.dimension_values("label"), result["label"].values[result["label"] >= 0])


def test_one_layer(result: xr.Dataset) -> None:
    chosen = result.isel(hit=np.flatnonzero(result["layer"].values == 1))
    overlay = plot.clusters(result, layer=1, links=True)
    assert sum(glyphs(overlay).values()) == chosen.sizes["hit"] + int(chosen["is_seed"].sum())
    links = by_label(overlay, hv.Segments)["link"]
    assert len(links) == int(((chosen["label"] >= 0) & ~chosen["is_seed"]).sum())
    length = np.hypot(*(links.dimension_values(k + 2) - links.dimension_values(k) for k in (0, 1)))
    followers = (chosen["label"] >= 0) & ~chosen["is_seed"]
    np.testing.assert_allclose(length, chosen["delta"].values[followers], rtol=1e-4, atol=1e-4)


def test_links_across_the_seam_are_short() -> None:
    ds = xr.Dataset({"eta": ("hit", [1.0, 1.0]), "phi": ("hit", [-3.1, 3.1])})
    result = ds.clust.clue(0.2, 2.0, coordinates=("eta", "phi"), wrap={"phi": 2 * np.pi})
    links = by_label(plot.clusters(result, "eta", "phi", links=True), hv.Segments)["link"]
    start, stop = links.dimension_values(1), links.dimension_values(3)
    np.testing.assert_allclose(np.abs(stop - start), 2 * np.pi - 6.2)


def test_layers(result: xr.Dataset) -> None:
    grid = plot.layers(result, columns=2)
    assert isinstance(grid, hv.NdLayout)
    assert grid.keys() == [0, 1, 2]
    assert glyphs(grid[1]) == glyphs(plot.clusters(result, layer=1))
    bare = result.drop_vars("is_seed")
    assert list(glyphs(plot.layers(bare)[1])) == list(glyphs(plot.clusters(bare))) == ["noise", "member"]
    slider = plot.layers(result, [2, 0], slider=True)
    assert isinstance(slider, hv.HoloMap)
    assert sorted(slider.keys()) == [0, 2]


# --------------------------------------------------------------------------------------------------------------- raster
def test_many_points_are_rasterized(many: xr.Dataset, tmp_path: Path) -> None:
    for log in ({}, {"logx": True}, {"logx": True, "logy": True}):
        overlay = plot.decision(many, **log)
        grid = by_label(overlay, hv.QuadMesh if log else hv.Image)
        counted = {label: int(np.nansum(image.dimension_values("points"))) for label, image in grid.items()}
        expected = kinds(many, 4.0, 5.0, 5.0)
        assert {label: counted.get(label, 0) + glyphs(overlay)[label] for label in expected} == expected
        assert sum(glyphs(overlay).values()) <= 3 * 10_000
    overlay = plot.clusters(many, links=True)
    noise = by_label(overlay, hv.Image)["noise"]
    assert int(np.nansum(noise.dimension_values("points"))) == int((many["label"] == -1).sum())
    assert list(by_label(overlay, hv.RGB)) == ["member"]
    assert sum(glyphs(overlay).values()) == 0
    for name in ("clusters.html", "clusters.png"):
        plot.save(overlay, tmp_path / name, dpi=50)
    assert not overlay.traverse(lambda element: element, [hv.DynamicMap]), "no server is needed"


def test_all_points_equal_are_rasterized() -> None:
    n = 100_001
    column = ("hit", np.zeros(n))
    ds = xr.Dataset({"x": column, "y": column, "label": column, "is_seed": ("hit", np.zeros(n, bool))})
    ds = ds.assign(label=ds["label"].astype(int), density=("hit", np.ones(n)), delta=("hit", np.full(n, np.inf)))
    assert int(np.nansum(by_label(plot.decision(ds), hv.Image)["follower"].dimension_values("points"))) == n
    assert list(by_label(plot.clusters(ds), hv.RGB)) == ["member"]


# ----------------------------------------------------------------------------------------------------------- histograms
@pytest.mark.parametrize("energy", [[], [0.0, 0.0], [2.0], [0.0, 1.0, 5.0], np.geomspace(0.1, 90.0, 99)])
def test_energies_count_every_cluster(energy: Any, tmp_path: Path) -> None:
    table = xr.Dataset({"energy": ("cluster", np.array(energy), {"units": "GeV"})})
    for log in (True, False):
        picture = plot.energy_spectrum(table, bins=7, log=log)
        assert int(picture.dimension_values("clusters").sum()) == len(energy)
        assert picture.kdims[0].pprint_label == "energy of a cluster (GeV)"
    plot.save(picture, tmp_path / "energies.png", dpi=40)


# ----------------------------------------------------------------------------------------------------------------- save
@pytest.mark.parametrize("files", ["cdn", "server"])  # of Panel's own models, which a session of the explorer imports
def test_html_needs_no_network(result: xr.Dataset, tmp_path: Path, files: str) -> None:
    importlib.import_module("panel.models.tabulator")
    pictures = {"decision": plot.decision(result), "slider": plot.layers(result, slider=True)}
    for name, picture in pictures.items():
        with set_resource_mode(files):
            plot.save(picture, tmp_path / f"{name}.html")
        page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        assert not re.search(r"<(script|link|img|iframe)\b[^>]*\b(src|href)\s*=\s*[\"']?(static/|(https?:)?//)", page)
        assert "Bokeh" in page


def objects(part: Any) -> Iterator[dict[str, Any]]:
    """Return the models of a page of bokeh, where each is for the first time."""
    if isinstance(part, dict) and part.get("type") == "object" and "attributes" in part:
        yield part
    for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from objects(each)


def test_slider_shows_one_frame(result: xr.Dataset, tmp_path: Path) -> None:
    file = tmp_path / "slider.html"
    plot.save(plot.layers(result, slider=True), file)
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', file.read_text(), re.DOTALL)
    assert found is not None
    models = list(objects(json.loads(html.unescape(found.group(1)))))
    (slider,) = (model["attributes"] for model in models if model["name"] == "Slider")
    assert (slider["title"], slider["end"]) == ("layer 0", 2)
    figures = [model["attributes"] for model in models if model["name"] == "Figure"]
    assert [figure.get("visible", True) for figure in figures] == [True, False, False]
    titles = [figure["title"]["attributes"]["text"] for figure in figures]
    assert [title.split(":")[0] for title in titles] == ["layer 0", "layer 1", "layer 2"]


def test_png_svg_and_pdf(result: xr.Dataset, tmp_path: Path) -> None:
    plot.save(plot.clusters(result), tmp_path / "clusters.pdf")
    assert (tmp_path / "clusters.pdf").read_bytes().startswith(b"%PDF")
    plot.save(plot.clusters(result, links=True), tmp_path / "clusters.PNG", dpi=50)
    assert (tmp_path / "clusters.PNG").read_bytes().startswith(b"\x89PNG")
    plot.save(plot.layers(result, [0, 1]), tmp_path / "layers.svg")
    assert b"<svg" in (tmp_path / "layers.svg").read_bytes()


def test_save_is_all_or_nothing(result: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "picture.png"
    file.write_bytes(b"old")
    picture = plot.clusters(result)
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", Mock(side_effect=OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            plot.save(picture, file, dpi=40)
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]
    plot.save(picture, file, dpi=40)
    assert file.read_bytes() != b"old"


def test_import_chooses_no_backend() -> None:
    code = "import daskclust.plot, holoviews, sys; print(holoviews.Store.loaded_backends(), 'bokeh' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[]")


def test_pictures_with_equal_scales_are_not_tall() -> None:
    n = 500
    rng = np.random.default_rng(0)
    ds = xr.Dataset({"x": ("hit", rng.uniform(0, 10, n)), "y": ("hit", rng.uniform(0, 16, n))})
    ds = ds.assign(label=("hit", np.zeros(n, int)))
    found = options(plot.clusters(ds, seeds=False))
    assert found["data_aspect"] == 1
    assert found["frame_width"] == pytest.approx(520 * 10 / 16, abs=3)
    found = options(plot.clusters(ds, "y", "x", seeds=False))
    assert found["frame_width"] == 520
