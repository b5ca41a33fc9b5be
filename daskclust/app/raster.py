"""Many points as a picture: counts of pixels by datashader, in the colours of clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.app.kernels import mix, number_color
from daskclust.app.look import LIGHT, Look, parts
from daskclust.core.device.arrays import HOST
from daskclust.plot._look import COLORS

Array = npt.NDArray[Any]
Ranges = tuple[tuple[float, float], tuple[float, float]]

_NOISE = len(COLORS)  # kind of noise, after those of clusters
_FAINT = 0.75  # share of colour in pixels with one point


def kinds(label: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
    """Return the number of each point's colour, that of noise after those of clusters."""
    kind = np.empty(len(label), np.int8)
    HOST.run(number_color, len(label), label, _NOISE, kind)
    return kind


def paint(
    xy: tuple[Array, Array],
    kind: npt.NDArray[np.int8],
    chosen: npt.NDArray[np.bool_] | None,
    ranges: Ranges,
    pixels: tuple[int, int],
    *,
    look: Look = LIGHT,
    spread: bool = True,
) -> npt.NDArray[np.uint8]:
    """Return points as a picture.

    Parameters
    ----------
    xy : tuple of numpy.ndarray
        Positions.
    kind : numpy.ndarray of int8
        As of `kinds`.
    chosen : numpy.ndarray of bool or None
        Points in colour; others are pale. None: all.
    ranges : tuple of pairs of float
        What the picture spans.
    pixels : tuple of int
        Width and height.
    look : Look
        Colours.
    spread : bool, default True
        Let lone pixels grow until they are seen.

    Returns
    -------
    numpy.ndarray of uint8, shape (height, width, 4)
        Red, green, blue, opacity; the first row is the lowest.
    """
    picture = np.zeros((pixels[1] * pixels[0], 4), np.uint8)
    if chosen is not None:
        cover(picture, count(xy, None, ranges, pixels)[..., None], (look.pale,), look)
        xy, kind = (xy[0][chosen], xy[1][chosen]), kind[chosen]
    counts = count(xy, kind, ranges, pixels)
    cover(picture, counts, (*COLORS, look.noise), look, _NOISE)
    cover(picture, counts, COLORS, look)
    return finished(picture, pixels, spread=spread)


def count(
    xy: tuple[Array, Array], kind: npt.NDArray[np.int8] | None, ranges: Ranges, pixels: tuple[int, int]
) -> npt.NDArray[np.uint32]:
    """Return how many points are in each pixel (height, width), or, by kind, (height, width, 10)."""
    import datashader
    import pandas as pd

    canvas = datashader.Canvas(*pixels, x_range=ranges[0], y_range=ranges[1])
    columns: dict[str, Any] = {"x": xy[0], "y": xy[1]}
    if kind is None:
        return np.asarray(canvas.points(pd.DataFrame(columns), "x", "y", datashader.count()).values)
    columns["kind"] = pd.Categorical.from_codes(kind, list(range(_NOISE + 1)))
    frame = pd.DataFrame(columns)
    found = canvas.points(frame, "x", "y", datashader.by("kind", datashader.count()))
    return np.asarray(found.transpose(..., "kind").values)


def cover(picture: npt.NDArray[np.uint8], counts: Array, colors: tuple[str, ...], look: Look, first: int = 0) -> None:
    """Paint pixels (n, 4) with points in the mean colour of their kinds, stronger where there are more.

    Parameters
    ----------
    picture : numpy.ndarray of uint8, shape (n, 4)
        What is painted over.
    counts : numpy.ndarray, shape (..., kinds)
        Points of each kind, n times.
    colors : tuple of str
        Of the kinds.
    look : Look
        What they are painted on.
    first : int, default 0
        Kinds before this one, and those without a colour, are left out.
    """
    by_pixel = np.ascontiguousarray(counts).reshape(len(picture), -1)
    HOST.run(mix, len(picture), by_pixel, first, len(colors), _rgb(colors), _rgb((look.paper,))[0], _FAINT, picture)


def finished(picture: npt.NDArray[np.uint8], pixels: tuple[int, int], *, spread: bool = True) -> npt.NDArray[np.uint8]:
    """Return what was painted as bytes (height, width, 4), lone pixels grown until they are seen."""
    whole = picture.reshape(pixels[1], pixels[0], 4)
    return _spread(whole) if spread else whole


def _rgb(colors: tuple[str, ...]) -> npt.NDArray[np.float64]:
    return np.array([parts(color) for color in colors], np.float64)


def _spread(picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Let lone pixels grow until they are seen."""
    import datashader.transfer_functions as tf
    import xarray as xr

    packed = np.ascontiguousarray(picture).view(np.uint32)[..., 0]
    grown = tf.dynspread(tf.Image(xr.DataArray(packed, dims=("y", "x")).data, dims=("y", "x")), threshold=0.7, max_px=2)
    height, width = packed.shape
    return np.ascontiguousarray(grown.values).view(np.uint8).reshape(height, width, 4)


def as_columns(columns: Mapping[str, Array], axes: tuple[str, str]) -> tuple[Array, Array]:
    """Return the columns of two axes, as numbers that can be drawn."""
    x, y = (columns[name] for name in axes)
    return (x.astype(np.uint8) if x.dtype == np.bool_ else x), (y.astype(np.uint8) if y.dtype == np.bool_ else y)
