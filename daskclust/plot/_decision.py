"""The decision plot's numbers: thresholds, which points are seeds and outliers under them, and what axes show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.labels import NOISE

Array = npt.NDArray[Any]

RHO = "\N{GREEK SMALL LETTER RHO}"
SEED, OUTLIER, FOLLOWER = "seed", "outlier", "follower"


def rhoc_variable(result: xr.Dataset) -> str | None:
    """Return the variable with a threshold of density for each point, if the clustering had one."""
    return result["density"].attrs.get("rhoc_variable") if "density" in result.variables else None


def thresholds(
    result: xr.Dataset, rhoc: float | None, delta_c: float | None, delta_o: float | None
) -> tuple[float | None, tuple[Any, float | None, float | None]]:
    """Return the density for the line, and the thresholds: None where unknown, that of density maybe for each point."""
    attrs = result["delta"].attrs
    reach = max((attrs[name] for name in ("delta_c", "delta_o") if name in attrs), default=math.inf)
    for name, value in (("rhoc", rhoc), ("delta_c", delta_c), ("delta_o", delta_o)):
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be finite and not negative, got {value!r}")
        if value is not None and name != "rhoc" and value > reach:
            raise ValueError(f"{name} = {value:g} is beyond the {reach:g} of the clustering; cluster again with it")
    line = rhoc if rhoc is not None else result["density"].attrs.get("rhoc")
    named = rhoc_variable(result)
    threshold = result[named].values if line is None and named is not None and named in result.variables else line
    delta_c = attrs.get("delta_c") if delta_c is None else delta_c
    delta_o = attrs.get("delta_o", delta_c) if delta_o is None else delta_o
    return line, (threshold, delta_c, delta_o)


def kinds(result: xr.Dataset, thresholds: tuple[Any, float | None, float | None]) -> dict[str, npt.NDArray[np.bool_]]:
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
        # descendants of outliers are noise too, but near to their nearest higher
        outlier = ~seed & (result["label"].values == NOISE) & (delta > (0.0 if delta_o is None else delta_o))
    return {SEED: seed, OUTLIER: outlier, FOLLOWER: ~seed & ~outlier}


def axis(values: Array, lines: Sequence[float | None], *, log: bool) -> tuple[float | None, float, float, Array]:
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


def delta_lines(delta_c: float | None, delta_o: float | None) -> list[tuple[float, str, str]]:
    """Return height, label, and colour with dash of each threshold of distance."""
    if delta_c is not None and delta_c == delta_o:
        return [(delta_c, f"δc = δo = {delta_c:g}", "#D55E00 solid")]
    lines = [(delta_c, "δc", "#0072B2 dashed"), (delta_o, "δo", "#D55E00 dashed")]
    return [(value, f"{words} = {value:g}", style) for value, words, style in lines if value is not None]
