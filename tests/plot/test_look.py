"""All pictures look alike, on screens and on paper, and anybody can tell their colours apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import holoviews as hv
import numpy as np
import pytest
from bokeh.models import Axis, ColorBar, Legend, Plot, Title
from cases.lanes import quick_first
from cases.million import MANY
from cases.pictures import PICTURES

from daskclust import plot
from daskclust.plot import _look as look

FUNCTIONS = [name for name in plot.__all__ if name not in ("RHO", "save", "scatter3d")]  # the last is not for bokeh

# Machado, Oliveira and Fernandes 2009, doi:10.1109/TVCG.2009.113, for the strongest deficiency, on linear RGB
VISION = {
    "any": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
# Ottosson 2020: cones of linear RGB, and Oklab of their cube roots
CONES = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566]]
CONES += [[0.0883024619, 0.2817188376, 0.6299787005]]
OKLAB = [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099]]
OKLAB += [[0.0259040371, 0.7827717662, -0.808675766]]
WHITE, BLACK = "#FFFFFF", "#111111"  # the grounds of notebooks


def linear(colors: Any) -> np.ndarray:
    """Return linear RGB of colours as #RRGGBB."""
    shares = np.array([[int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)] for color in colors])
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def seen(colors: Any, vision: str) -> np.ndarray:
    """Return where colours are in Oklab, times 100: about 2 is the smallest difference that is seen."""
    rgb = np.clip(linear(colors) @ np.transpose(VISION[vision]), 0, 1)
    return 100 * np.cbrt(rgb @ np.transpose(CONES)) @ np.transpose(OKLAB)


def contrast(colors: Any, ground: str) -> np.ndarray:
    """Return the contrast of WCAG 2."""
    light = [linear(each) @ [0.2126, 0.7152, 0.0722] + 0.05 for each in (colors, [ground])]
    return np.maximum(light[0] / light[1], light[1] / light[0])


def mixed(color: str, ground: str, share: float) -> str:
    parts = [[int(each[k : k + 2], 16) for k in (1, 3, 5)] for each in (color, ground)]
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02X}" for a, b in zip(*parts, strict=True))


# ------------------------------------------------------------------------------------------------------------- colours
@pytest.mark.parametrize("vision", VISION)
def test_kinds_of_points_are_told_apart(vision: str) -> None:
    def apart(colors: Any) -> float:
        places = seen(colors, vision)
        return float(np.linalg.norm(places[:, None] - places, axis=-1)[np.triu_indices(len(places), 1)].min())

    assert apart(look.COLORS) > {"any": 12.5, "protanopia": 8.5, "deuteranopia": 8.5, "tritanopia": 7.5}[vision]
    assert apart([look.FOLLOWER_COLOR, look.OUTLIER_COLOR, look.SEED_COLOR]) > 8.0
    for ground in (WHITE, BLACK):
        grey = mixed(look.NOISE_COLOR, ground, look.NOISE_ALPHA)
        assert np.ptp([int(grey[k : k + 2], 16) for k in (1, 3, 5)]) == 0
        assert min(apart([*look.COLORS, grey]), apart([*look.COLORS, look.NOISE_COLOR])) > 7.0


def test_all_is_seen_on_white_and_on_black() -> None:
    for ground in (WHITE, BLACK):
        assert contrast(look.COLORS, ground).min() > 1.9
        assert contrast([look.INK], ground).min() > 4.0
        assert 1.3 < contrast([mixed(look.NOISE_COLOR, ground, look.NOISE_ALPHA)], ground).min() < 4.0, (
            "behind clusters"
        )


# ------------------------------------------------------------------------------------------------------- every picture
def test_every_function_is_drawn() -> None:
    assert {name.split()[0] for name in PICTURES} == set(FUNCTIONS)
    assert {name.split()[0] for name in MANY} == set(FUNCTIONS)


def figures(picture: Any) -> list[Plot]:
    """Return the figures of bokeh that a picture is drawn in."""
    return [model for model in hv.renderer("bokeh").get_plot(picture).state.references() if isinstance(model, Plot)]


@pytest.mark.parametrize("name", quick_first(PICTURES, 12))
def test_screens(name: str) -> None:
    for figure in figures(PICTURES[name]()):
        assert figure.background_fill_color is figure.border_fill_color is None, "the ground is that of the notebook"
        if figure.toolbar is not None:  # pictures side by side have one for all
            assert figure.toolbar.logo is None
            assert figure.toolbar.active_scroll in (None, "auto"), "a notebook is scrolled, not the picture"
        assert figure.output_backend == "canvas"
        axes = list(figure.select(Axis))
        assert {axis.axis_label_text_color for axis in axes} == {look.INK}
        assert {axis.axis_label_text_font_style for axis in axes} == {"normal"}
        assert all(axis.axis_label for axis in axes) or name == "channel_medians"  # names of channels need no label
        assert (figure.frame_width or 0) <= 520
        for bar in figure.select(ColorBar):
            assert bar.title
            assert bar.major_label_text_color == look.INK
        for legend in figure.select(Legend):
            assert legend in figure.right or not legend.items, "a legend covers no data"
        for title in figure.select(Title):
            assert title.text_color == look.INK


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PICTURES if "slider" not in name])
def test_paper(name: str) -> None:
    from matplotlib import pyplot

    figure = hv.renderer("matplotlib").get_plot(PICTURES[name]()).state
    try:
        figure.canvas.draw()
        sizes = set()
        for axes in figure.axes:
            words = [axes.xaxis.label, axes.yaxis.label, *axes.get_xticklabels(), *axes.get_yticklabels()]
            sizes |= {word.get_fontsize() for word in words if word.get_text() and word.get_visible()}
            assert axes.xaxis.label.get_text() or axes.yaxis.label.get_text() or axes is not figure.axes[0]
        assert sizes <= {8.0, 9.0}, "of one size, in single pictures and in panels"
        space = ("clusters", "event_display", "hit_map", "projected_density", "halo_circles", "layers")
        if name.split(maxsplit=1)[0] in space and name != "clusters side":
            assert float(figure.axes[0].get_aspect()) == 1.0
    finally:
        pyplot.close(figure)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["decision", "clusters", "energy_spectrum", "projected_density", "dendrogram", "ellipse_grid"]
)
def test_columns_of_papers(name: str, tmp_path: Path) -> None:
    from matplotlib.image import imread

    plot.save(PICTURES[name](), tmp_path / "column.png", dpi=100, width=3.4)
    assert imread(tmp_path / "column.png").shape[1] == pytest.approx(340, abs=15)


@pytest.mark.parametrize("low", [1e-9, 0.003, 1.0, 37.0, 2e4, 1.3e12])
@pytest.mark.parametrize("factor", [1.5, 3.0, 30.0, 99.0])
def test_ticks_of_short_logarithmic_axes(low: float, factor: float) -> None:
    ticks = look.log_ticks(low, factor * low)
    if ticks is None:
        assert factor <= 3
        return
    assert 2 <= len(ticks) <= 7
    upright = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    for place, words in ticks:
        assert low <= place <= factor * low
        digit, cross, power = words.rpartition("10") if words[-1] in "⁰¹²³⁴⁵⁶⁷⁸⁹" else (words, "", "0")
        value = float(digit.rstrip("\N{MULTIPLICATION SIGN}") or 1) * 10.0 ** float(power.translate(upright))
        assert value == pytest.approx(place), (words, cross)


def test_long_logarithmic_axes_have_powers_of_ten() -> None:
    assert look.log_ticks(1.0, 1000.0) is None
    assert look.log_ticks(0.0, 1.0) is None
    assert look.log_ticks(1.0, 1.0) is None


# ----------------------------------------------------------------------------------------------------------- very many
@pytest.mark.parametrize("name", MANY)
def test_many_points_are_rasterized(name: str) -> None:
    marked = MANY[name](100_001).traverse(lambda each: each, [hv.Points, hv.Segments, hv.Contours])
    assert sum(map(len, marked)) <= 40_000


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_pages_of_many_points_are_small(name: str, tmp_path: Path) -> None:
    empty, page = tmp_path / "empty.html", tmp_path / "page.html"
    plot.save(hv.Curve([]), empty)
    plot.save(MANY[name](200_000), page)
    assert page.stat().st_size - empty.stat().st_size < 2_500_000
