"""The decision plot: density against distance to the nearest higher, with thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.checks import check_positive
from daskclust.core.merge.labels import NOISE
from daskclust.plot._data import dimension, in_memory, opened, source_of
from daskclust.plot._elements import FEW, MOST_GLYPHS, cloud, line, overlay
from daskclust.plot._look import COLORS, FOLLOWER_COLOR, INK, OUTLIER_COLOR, SEED_COLOR, Array, hv, log_ticks

_NEEDED, _WANTED = ("density", "delta"), ("label", "is_seed", "is_outlier")

RHO = "\N{GREEK SMALL LETTER RHO}"
SEED, OUTLIER, FOLLOWER = "seed", "outlier", "follower"

KIND_STYLES = {
    FOLLOWER: (FOLLOWER_COLOR, "circle", 3),
    OUTLIER: (OUTLIER_COLOR, "square", 4),
    SEED: (SEED_COLOR, "star", 9),
}
"""Colour, marker and size of points."""

LINE_STYLES = {"rhoc": (COLORS[0], "solid"), "delta_c": (COLORS[0], "dashed"), "delta_o": (COLORS[1], "dashed")}
"""Colour and dash of thresholds."""


def decision(
    data: Any,
    *,
    rhoc: float | None = None,
    delta_c: float | None = None,
    delta_o: float | Sequence[float] | None = None,
    logx: bool = False,
    logy: bool = False,
) -> hv.Overlay:
    """Draw the decision plot: density against distance to the nearest higher, with thresholds [1]_.

    Parameters
    ----------
    data : xarray.Dataset, DataFrame, mapping or fitted CLUE
        As of ``ds.clust.clue``: ``density``, ``delta``, ``label``, ``is_seed``.
    rhoc, delta_c : float, optional
    delta_o : float or sequence of float, optional
        Thresholds, as lines; points are coloured as seeds, outliers and followers under them. Default: those that
        `data` was clustered with; `delta_c` and `delta_o` may be up to the larger of its two. Of several `delta_o`
        each has a line, and points are coloured under the first. A threshold of each point has no line.
    logx, logy : bool, default False
        Logarithmic axes. Values that are not positive are drawn at half the smallest positive one.

    Returns
    -------
    holoviews.Overlay
        One `holoviews.Points` for each of "follower", "outlier" and "seed", and a `holoviews.Curve` for each line. Of
        more than 100 000 points, kinds of more than 10 000 are rasterized into counts (`holoviews.Image`, on
        logarithmic axes `holoviews.QuadMesh`), with one point at NaN for the legend. Points without a higher one within
        reach (``delta`` is inf) are on a dotted line of their own at the top.

    Raises
    ------
    ValueError
        For thresholds of distance beyond the reach of the clustering.

    References
    ----------
    .. [1] Rovere et al., figure 4, Front. Big Data 3 (2020) 591315, https://doi.org/10.3389/fdata.2020.591315
    """
    result = opened(data, _NEEDED, _WANTED)
    result = in_memory(result, _NEEDED, (*_WANTED, result["density"].attrs.get("rhoc_variable")))
    first, *others = list(delta_o) if isinstance(delta_o, Sequence | np.ndarray) else [delta_o]
    at_rhoc, limits = _thresholds(result, rhoc, delta_c, first)
    for other in others:
        _thresholds(result, rhoc, delta_c, other)
    members = _kinds(result, limits)
    _, low_x, high_x, density = _axis(result["density"].values, [at_rhoc], log=logx)
    level, low_y, high_y, delta = _axis(result["delta"].values, [*limits[1:], *others], log=logy)
    kdims = [dimension(result["density"], f"local density {RHO}"), dimension(result["delta"], "distance to higher δ")]
    elements: list[Any] = []
    if level is not None:
        elements.append(line((low_x, level), (high_x, level), kdims, "δ = ∞ (no higher in reach)", f"{INK} dotted"))
    frame: dict[str, Any] = {
        "limits": ((low_x, high_x), (low_y, high_y)),
        "pixels": (120, 90) if logx or logy else (180, 135),  # cells of a mesh take longer than those of an image
    }
    for kind in (FOLLOWER, OUTLIER, SEED):
        xy = (density[members[kind]], delta[members[kind]])
        raster = len(density) > MOST_GLYPHS and len(xy[0]) > FEW
        elements += cloud(xy, kdims, kind, *KIND_STYLES[kind], **frame, raster=raster, log=(logx, logy))
    if at_rhoc is not None:
        elements.append(
            line((at_rhoc, low_y), (at_rhoc, high_y), kdims, f"{RHO}c = {at_rhoc:g}", " ".join(LINE_STYLES["rhoc"]))
        )
    for value, words, style in _delta_lines(*limits[1:], *others):
        elements.append(line((low_x, value), (high_x, value), kdims, words, style))
    title = ", ".join(f"{int(members[kind].sum()):,} {kind}s" for kind in (SEED, OUTLIER, FOLLOWER))
    title += source_of(data)
    axes: dict[str, Any] = {"xlim": (low_x, high_x), "ylim": (low_y, high_y), "logx": logx, "logy": logy}
    ticks = {"xticks": log_ticks(low_x, high_x) if logx else None, "yticks": log_ticks(low_y, high_y) if logy else None}
    return overlay(elements, kdims, title, **axes, **ticks)


def _thresholds(
    result: xr.Dataset, rhoc: float | None, delta_c: float | None, delta_o: float | None
) -> tuple[float | None, tuple[Any, float | None, float | None]]:
    """Return the density for the line, and the thresholds: None where unknown, that of density maybe for each point."""
    attrs = result["delta"].attrs
    reach = max((attrs[name] for name in ("delta_c", "delta_o") if name in attrs), default=math.inf)
    for name, value in (("rhoc", rhoc), ("delta_c", delta_c), ("delta_o", delta_o)):
        if value is not None and check_positive(name, value, zero=True) > reach and name != "rhoc":
            raise ValueError(f"{name} = {value:g} is beyond the {reach:g} of the clustering; cluster again with it")
    line = rhoc if rhoc is not None else result["density"].attrs.get("rhoc")
    named = result["density"].attrs.get("rhoc_variable")  # has one for each point
    threshold = result[named].values if line is None and named is not None and named in result.variables else line
    delta_c = attrs.get("delta_c") if delta_c is None else delta_c
    delta_o = attrs.get("delta_o", delta_c) if delta_o is None else delta_o
    return line, (threshold, delta_c, delta_o)


def _kinds(result: xr.Dataset, thresholds: tuple[Any, float | None, float | None]) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which points are seeds, outliers, followers: by thresholds where they are known, else as clustered."""
    rhoc, delta_c, delta_o = thresholds
    delta = result["delta"].values
    if rhoc is not None and delta_c is not None and delta_o is not None:
        dense = result["density"].values >= rhoc
        seed, outlier = dense & (delta > delta_c), ~dense & (delta > delta_o)
    else:
        missing = [name for name in ("is_seed", "label") if name not in result]
        if missing:
            raise ValueError(f"without rhoc, delta_c and delta_o, the Dataset must have a variable {missing[0]!r}")
        seed = result["is_seed"].values.astype(bool)
        if "is_outlier" in result:
            outlier = result["is_outlier"].values.astype(bool)
        else:  # descendants of outliers are noise too, but near to their nearest higher
            outlier = ~seed & (result["label"].values == NOISE) & (delta > (0.0 if delta_o is None else delta_o))
    return {SEED: seed, OUTLIER: outlier, FOLLOWER: ~seed & ~outlier}


def _axis(values: Array, lines: Sequence[float | None], *, log: bool) -> tuple[float | None, float, float, Array]:
    """Return the level for infinite values (None if there are none), lower and upper limit, and values to draw."""
    values = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(values)
    known = np.concatenate([values[finite], [line for line in lines if line is not None]])
    if log:
        positive = known[known > 0]
        floor, top = (float(positive.min()), float(positive.max())) if positive.size else (0.1, 1.0)
        floor = floor if known.size == positive.size else floor / 2
        steps = max(math.log10(top / floor), 0.5)
        level, margin = top * 10 ** (0.08 * steps), 10 ** (0.04 * steps)
        low, high = floor / margin, (top if finite.all() else level) * margin
        drawn = np.maximum(values, floor)
    else:
        top = float(known.max(initial=0.0)) or 1.0
        bottom = min(0.0, float(known.min(initial=0.0)))
        level, margin = top + 0.08 * (top - bottom), 0.04 * (top - bottom)
        low, high = bottom - margin, (top if finite.all() else level) + margin
        drawn = values
    return None if finite.all() else level, low, high, np.where(finite, drawn, level)


def _delta_lines(delta_c: float | None, *deltas_o: float | None) -> list[tuple[float, str, str]]:
    """Return height, label, and colour with dash of each threshold of distance."""
    if delta_c is not None and (delta_c,) == deltas_o:
        return [(delta_c, f"δc = δo = {delta_c:g}", f"{LINE_STYLES['delta_o'][0]} solid")]
    lines = [(delta_c, "δc", LINE_STYLES["delta_c"]), *((each, "δo", LINE_STYLES["delta_o"]) for each in deltas_o)]
    return [(value, f"{words} = {value:g}", " ".join(style)) for value, words, style in lines if value is not None]
