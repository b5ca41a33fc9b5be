"""Many points as a picture: the points of each pixel are counted, and painted in the colours of their clusters.

A picture is red, green, blue and opacity (height, width, 4) in uint8; the first row is the lowest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

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
    of_label = np.append(np.arange(label.max(initial=-1) + 1) % _NOISE, _NOISE).astype(np.int8)
    return of_label[label]  # the last is that of -1


class RasterCells(NamedTuple):
    """The pixel of each point; it does not depend on the clusters."""

    number: npt.NDArray[np.int64]
    """Of each point: that of its pixel among those that have points."""
    there: npt.NDArray[np.int64]
    """Of each pixel with points: its place in the picture, row by row."""
    pixels: tuple[int, int]

    @classmethod
    def of(cls, xy: tuple[Array, Array], ranges: Ranges, pixels: tuple[int, int]) -> RasterCells:
        """Return the pixels of points that are all within the ranges."""
        place = _places(xy, ranges, pixels)
        is_there = np.zeros(pixels[0] * pixels[1], np.bool_)
        is_there[place] = True
        return cls((np.cumsum(is_there) - 1)[place], np.flatnonzero(is_there), pixels)

    def of_kinds(self, kind: Array, chosen: Any = ...) -> Array:
        """Return how many chosen points of each kind there are in each pixel with points (10, pixels)."""
        n_kinds, n = _NOISE + 1, len(self.there)
        keys = (kind.astype(np.int64) * n + self.number)[chosen]
        return np.bincount(keys, minlength=n_kinds * n).reshape(n_kinds, n)


def paint(
    cells: RasterCells,
    kind: npt.NDArray[np.int8],
    chosen: npt.NDArray[np.bool_] | None,
    *,
    look: Look = LIGHT,
    spread: bool = True,
) -> Pixels:
    """Return points as a picture in the colours of their kinds, noise below; those that are not chosen are pale."""
    picture = np.zeros((cells.pixels[1], cells.pixels[0], 4), np.uint8)
    if chosen is not None:
        cover(picture, cells.of_kinds(kind).sum(0), (look.pale,), look, cells.there)
    counts = cells.of_kinds(kind, ... if chosen is None else chosen)
    cover(picture, counts[_NOISE], (look.noise,), look, cells.there)
    cover(picture, counts[:_NOISE], COLORS, look, cells.there)
    return grown(picture) if spread else picture


def count(xy: tuple[Array, Array], ranges: Ranges, pixels: tuple[int, int]) -> Array:
    """Return how many points are in each pixel (height, width)."""
    inside = np.ones(len(xy[0]), np.bool_)
    for values, (low, high) in zip(xy, ranges, strict=True):
        inside &= (values >= low) & (values <= high)
    places = _places((xy[0][inside], xy[1][inside]), ranges, pixels)
    return np.bincount(places, minlength=pixels[0] * pixels[1]).reshape(pixels[::-1])


def _places(xy: tuple[Array, Array], ranges: Ranges, pixels: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Return the pixel of each point, row by row; all points are within the ranges."""
    column, row = (_steps(*each) for each in zip(xy, ranges, pixels, strict=True))
    return row * pixels[0] + column


def _steps(values: Array, ends: tuple[float, float], number: int) -> npt.NDArray[np.int64]:
    """Return in which of equal steps from one end to the other values are; the last one has its end."""
    steps = ((values - ends[0]) * (number / (ends[1] - ends[0]))).astype(np.int64)
    return np.clip(steps, 0, number - 1)


def cover(picture: Pixels, counts: Array, colors: Sequence[str], look: Look, there: Any = ...) -> None:
    """Paint the pixels that are there (kinds, n) in the mean colour of their points' kinds, stronger where more are."""
    of_kind = np.array([[*parts(color), 1] for color in colors], np.float32)
    numbers = counts.reshape(len(colors), -1).astype(np.float32)
    *sums, total = np.einsum("kp,kc->cp", numbers, of_kind)  # not by BLAS: its threads would go on waiting for more
    painted = np.flatnonzero(total)
    total = total[painted]
    strength = 1.0 - (1.0 - _FAINT) / total
    flat = picture.reshape(-1, 4)
    where = painted if there is ... else there[painted]
    flat[where, 3] = 255
    for channel, paper in enumerate(parts(look.paper)):
        flat[where, channel] = (sums[channel][painted] / total - paper) * strength + (paper + 0.5)


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
