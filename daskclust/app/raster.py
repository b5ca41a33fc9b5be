"""Many points as a picture: counts of pixels by datashader, in the colours of clusters.

A picture is red, green, blue and opacity (height, width, 4) in uint8; the first row is the lowest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.app.look import LIGHT, Look, parts
from daskclust.plot._look import COLORS

Array = npt.NDArray[Any]
Pixels = npt.NDArray[np.uint8]
Ranges = tuple[tuple[float, float], tuple[float, float]]

_NOISE = len(COLORS)  # kind of noise, after those of clusters
_FAINT = 0.75  # share of colour in pixels with one point
_FEW = 0.02  # share of pixels with points, below which all of them grow


def kinds(label: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
    """Return the number of each point's colour, that of noise after those of clusters."""
    return np.where(label < 0, _NOISE, label % _NOISE).astype(np.int8)


def paint(
    xy: tuple[Array, Array],
    kind: npt.NDArray[np.int8],
    chosen: npt.NDArray[np.bool_] | None,
    ranges: Ranges,
    pixels: tuple[int, int],
    *,
    look: Look = LIGHT,
    spread: bool = True,
) -> Pixels:
    """Return points as a picture in the colours of their kinds, noise below; those that are not chosen are pale."""
    picture = np.zeros((pixels[1], pixels[0], 4), np.uint8)
    if chosen is not None:
        cover(picture, count(xy, None, ranges, pixels)[..., None], (look.pale,), look)
        xy, kind = (xy[0][chosen], xy[1][chosen]), kind[chosen]
    counts = count(xy, kind, ranges, pixels)
    cover(picture, counts[..., _NOISE:], (look.noise,), look)
    cover(picture, counts[..., :_NOISE], COLORS, look)
    return grown(picture) if spread else picture


def count(xy: tuple[Array, Array], kind: npt.NDArray[np.int8] | None, ranges: Ranges, pixels: tuple[int, int]) -> Array:
    """Return how many points are in each pixel (height, width), or, by kind, (height, width, 10)."""
    import datashader
    import pandas as pd

    frame = pd.DataFrame({"x": xy[0], "y": xy[1]})
    canvas = datashader.Canvas(*pixels, x_range=ranges[0], y_range=ranges[1])
    if kind is None:
        return np.asarray(canvas.points(frame, "x", "y", datashader.count()).values)
    frame["kind"] = pd.Categorical.from_codes(kind, list(range(_NOISE + 1)))
    by_kind = canvas.points(frame, "x", "y", datashader.by("kind", datashader.count()))
    return np.asarray(by_kind.transpose(..., "kind").values)


def cover(picture: Pixels, counts: Array, colors: Sequence[str], look: Look) -> None:
    """Paint pixels with points (height, width, kinds) in the mean colour of their kinds, stronger where more are."""
    of_kind = np.array([[*parts(color), 1] for color in colors], np.float32)
    sums = counts.reshape(-1, len(colors)).astype(np.float32) @ of_kind  # of red, green, blue, and points
    total, paper = np.maximum(sums[:, 3:], 1), np.array(parts(look.paper), np.float32)
    mean = sums[:, :3] / total - paper
    mean *= 1.0 - (1.0 - _FAINT) / total
    mean += paper + np.float32(0.5)
    there, flat = sums[:, 3:] > 0, picture.reshape(-1, 4)
    np.copyto(flat[:, :3], mean, where=there, casting="unsafe")
    flat[:, 3:][there] = 255


def grown(picture: Pixels) -> Pixels:
    """Return a picture whose lone pixels have grown until they are seen."""
    import datashader.transfer_functions as tf

    packed = np.ascontiguousarray(picture).view(np.uint32)[..., 0]
    image, share = tf.Image(packed, dims=("y", "x")), np.count_nonzero(packed) / packed.size
    if share < _FEW:  # clumps are lone, too
        spread = tf.spread(image, px=1 if share > _FEW / 4 else 2)
    else:
        spread = tf.dynspread(image, threshold=0.7, max_px=2)
    return np.ascontiguousarray(spread.values)[..., None].view(np.uint8)


def as_columns(columns: Mapping[str, Array], axes: tuple[str, str]) -> tuple[Array, Array]:
    """Return the columns of two axes, as numbers that can be drawn."""
    x, y = (columns[name].astype(np.uint8) if columns[name].dtype == np.bool_ else columns[name] for name in axes)
    return x, y
