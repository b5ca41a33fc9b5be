"""Looks into pictures: elements, options, files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import holoviews as hv
import numpy as np

from daskclust import plot


def by_label(picture: Any, kind: type = hv.Element) -> dict[str, Any]:
    """Return elements of a kind by label."""
    return {element.label: element for element in picture.values() if isinstance(element, kind)}


def glyphs(overlay: Any) -> dict[str, int]:
    """Return the number of points that are drawn as markers, by label."""
    found = by_label(overlay, hv.Points)
    return {label: int(np.isfinite(points.dimension_values(0)).sum()) for label, points in found.items()}


def layer(image: hv.Image, name: str) -> np.ndarray:
    """Return a layer of an image by row and column."""
    return image.dimension_values(name, flat=False)


def options(picture: Any, backend: str = "bokeh", group: str = "plot") -> dict[str, Any]:
    return dict(hv.Store.lookup_options(backend, picture, group).kwargs)


def save_all(pictures: Iterable[Any], folder: Path) -> None:
    """Write pictures as both backends draw them."""
    for picture in pictures:
        for name in ("picture.html", "picture.png"):
            plot.save(picture, folder / name, dpi=40)
            assert (folder / name).stat().st_size > 1000
