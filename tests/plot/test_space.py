"""Pictures in three dimensions: every point in its place and colour, by plotly and by matplotlib."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import holoviews as hv
import numpy as np
import pytest
import xarray as xr
from cases import pictures as made
from cases.elements import options, save_all

from daskclust import plot
from daskclust.plot import _space
from daskclust.plot._look import COLORS, INK, NOISE_COLOR


def cube(n: int, *, units: str = "cm") -> xr.Dataset:
    """Return points of many clusters, a third of them noise."""
    rng = np.random.default_rng(n)
    columns = {name: ("hit", rng.uniform(0, 10, n), {"units": units}) for name in "xyz"}
    return xr.Dataset(columns | {"label": ("hit", np.maximum(rng.integers(-10, 20, n), -1))})


def figure(picture: Any) -> dict[str, Any]:
    """Return what plotly draws."""
    found: dict[str, Any] = hv.renderer("plotly").get_plot(picture).state
    return found


def test_every_point_is_in_its_place_and_colour() -> None:
    ds = cube(500)
    (trace,), layout = (figure(plot.scatter3d(ds))[name] for name in ("data", "layout"))
    for name in "xyz":
        np.testing.assert_array_equal(trace[name], ds[name])
    assert trace["type"] == "scatter3d"
    marker, labels = trace["marker"], ds["label"].values
    scale = {round(share * len(COLORS), 9): color for share, color in marker["colorscale"]}
    assert (marker["cmin"], marker["cmax"]) == (0, len(COLORS))
    expected = [NOISE_COLOR if label < 0 else COLORS[label % len(COLORS)] for label in labels]
    assert [scale[color] for color in marker["color"].tolist()] == expected
    assert marker["size"][labels < 0].max() < marker["size"][labels >= 0].min()
    np.testing.assert_array_equal(trace["customdata"], labels)
    assert layout["paper_bgcolor"] == "rgba(0,0,0,0)"
    assert layout["font"]["color"] == INK
    assert layout["title"]["text"] == f"20 clusters, {(labels < 0).sum()} of 500 points noise"
    assert [layout["scene"][f"{name}axis"]["title"]["text"] for name in "xyz"] == ["x (cm)", "y (cm)", "z (cm)"]


def test_third_axis() -> None:
    ds = cube(20)
    toa = ("hit", np.linspace(5e9, 5e9 + 9e3, 20), {"units": "ns"})
    picture = plot.scatter3d(ds.drop_vars("z").assign(toa=toa, layer=ds["label"]))
    assert picture.kdims[2].pprint_label == "toa since the first (µs)"
    np.testing.assert_allclose(picture.dimension_values("toa"), np.linspace(0, 9, 20))
    assert [dim.name for dim in plot.scatter3d(ds.assign(toa=toa), "y", "x").kdims] == ["y", "x", "z"]
    assert plot.scatter3d(ds.drop_vars("z").assign(layer=ds["label"])).kdims[2].name == "layer"
    assert plot.scatter3d(ds.assign(toa=toa), z="toa").kdims[2].name == "toa"
    with pytest.raises(ValueError, match="no variable 'z', which the picture needs"):
        plot.scatter3d(ds.drop_vars("z"))


def test_of_more_points_some_are_drawn() -> None:
    ds = cube(2_000)
    picture, again = (plot.scatter3d(ds, most=150) for _ in range(2))
    np.testing.assert_array_equal(picture.array(), again.array())
    rows = {tuple(row) for row in np.stack([ds[name].values for name in ("x", "y", "z", "label")], axis=1)}
    assert len(picture) == len({tuple(row) for row in picture.array()} & rows) == 150
    title = options(picture, "plotly")["title"].replace("<br>", " ")
    assert title.endswith(f"20 clusters, {int((ds['label'] < 0).sum())} of 2,000 points noise, 150 drawn")
    assert "drawn" not in options(plot.scatter3d(ds, most=2_000), "plotly")["title"]
    with pytest.raises(ValueError, match="most must be 1 or more, got 0"):
        plot.scatter3d(ds, most=0)


def test_scales() -> None:
    def ratio(ds: xr.Dataset) -> list[float]:
        return list(figure(plot.scatter3d(ds))["layout"]["scene"]["aspectratio"].values())

    ds = cube(2_000)
    assert ratio(ds.assign(z=2 * ds["z"])) == pytest.approx([0.5, 0.5, 1.0], abs=0.01)
    assert ratio(ds.assign(z=ds["z"].assign_attrs(units="mm"))) == [1, 1, 1]
    assert ratio(ds.assign(z=9 * ds["z"])) == [1, 1, 1]


@pytest.mark.parametrize("rows", [0, 1, 40])
def test_files(rows: int, tmp_path: Path) -> None:
    ds = cube(rows)
    save_all([plot.scatter3d(ds), plot.scatter3d(ds.assign(label=0 * ds["label"] - 1))], tmp_path)
    page = (tmp_path / "picture.html").read_text(encoding="utf-8")
    assert "Plotly.newPlot" in page
    assert "<title>picture</title>" in page
    assert not re.search(r"<(script|link|img|iframe)\b[^>]*\b(src|href)\s*=\s*[\"']?(static/|(https?:)?//)", page)


def test_fields_and_files_of_paper(tmp_path: Path) -> None:
    for each in (made.event(), made.particles(), made.hits()):
        plot.save(plot.scatter3d(each), tmp_path / "picture.pdf", width=3.4)
        assert (tmp_path / "picture.pdf").stat().st_size > 1000
    frames = hv.HoloMap({k: plot.scatter3d(cube(9)) for k in range(2)}, kdims=["frame"])
    for suffix in (".html", ".png"):
        with pytest.raises(ValueError, match="slider"):
            plot.save(frames, tmp_path / f"frames{suffix}")


def test_without_plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    _space._load_plotly.cache_clear()
    monkeypatch.setitem(sys.modules, "holoviews.plotting.plotly", None)
    with pytest.raises(ImportError, match=r'need plotly: pip install "daskclust\[app\]"'):
        plot.scatter3d(cube(9))
