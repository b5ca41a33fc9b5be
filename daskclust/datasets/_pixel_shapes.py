"""The shapes of particles on a pixel detector: a library of clusters, of which a generator takes copies.

Numbers are chosen so that sizes have the means and standard deviations of figure 3 of Celko et al. (2025). The aim is
data of the right shape (sizes, tails, density), not a simulation of charge in silicon.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ._arguments import Array, Float, Int

_REACH = 100  # pixels that a shape reaches to each side of its first one at most: all fit a chip of 256
_MOST_CORE = 20_000  # pixels of a core: a disc within the reach
_PATTERNS = 64  # discs or tracks that cores are the beginnings of


class Kind(NamedTuple):
    """A sort of particle.

    A shape has a core, a disc or a track, and with some probability fibres: delta rays that wander away from it.
    Sizes are mean and variance of the core, of which a fraction is a large disc (mean and variance of its size).
    """

    core: tuple[float, float]
    track: bool = False
    fibre: tuple[float, float] = (0.0, 0.0)  # probability, mean length in pixels
    large: tuple[float, float, float] = (0.0, 0.0, 0.0)  # fraction, mean, variance
    light: float = 3.0  # logarithm of the median ToT in ticks of 25 ns
    stretch: float = 1.0  # length by width of discs
    shapes: int = 8_000  # in a library at most


KINDS = {
    "gamma": Kind((2.46, 4.62), light=2.9),
    "pion0": Kind((4.0, 3.6), fibre=(0.02747, 117.2)),
    "pion45": Kind((20.0, 9.0), track=True, fibre=(0.01976, 168.5)),
    "pion75": Kind((55.0, 20.0), track=True, fibre=(0.01340, 393.0)),
    "lead": Kind((5.0, 12.0), large=(0.09, 1414.0, 970_000.0), light=3.2),
    "lead50": Kind((6.6, 20.0), large=(0.0055, 3655.0, 832_000.0), light=3.2, stretch=1.2),
    "lead90": Kind((8.7, 40.0), large=(0.001628, 9260.0, 122_500_000.0), light=3.2, stretch=2.0),
}
"""What particles there are, by name."""

# large clusters alone, which the paper chose from the others; few shapes make many hits
_LARGE = {"lead": (1.0, 2232.0, 134_000.0), **{name: (1.0, *KINDS[name].large[1:]) for name in ("lead50", "lead90")}}
KINDS |= {f"{name}_subset": KINDS[name]._replace(large=large, shapes=200) for name, large in _LARGE.items()}


class PixelShapes(NamedTuple):
    """A library of shapes, one after the other."""

    start: Int  # (n_shapes + 1,): where the pixels of each shape begin
    x: npt.NDArray[np.int16]  # pixels, from 0 in each shape
    y: npt.NDArray[np.int16]
    delay: npt.NDArray[np.float32]  # when a pixel's charge arrives, as a fraction of the drift time: 0 to 1
    light: npt.NDArray[np.float32]  # logarithm of the median ToT in ticks
    width: Int  # (n_shapes,): extent in pixels
    height: Int


def make_shapes(random: np.random.Generator, kind: Kind, n_shapes: int) -> PixelShapes:
    """Draw a library of shapes, each connected by pixels that touch at a side or a corner."""
    core, is_large, fibre = _sizes(random, kind, n_shapes)
    core_shape = np.repeat(np.arange(n_shapes), core)
    place = np.arange(core.sum()) - np.repeat(np.cumsum(core) - core, core)  # of a pixel in its core
    patterns = _tracks(random, int(core.max())) if kind.track else _discs(random, int(core.max()), kind.stretch)
    pattern = random.integers(0, _PATTERNS, n_shapes)[core_shape]
    x, y = patterns[0][pattern, place], patterns[1][pattern, place]
    share = place / core[core_shape]
    # Along a track depth grows evenly; in a disc the radius, which is the root of the number of pixels within.
    delay = share if kind.track else np.sqrt(share)
    light = kind.light + np.where(is_large[core_shape], 1.2 * (1.0 - delay), 0.0)
    # One fibre, or several of some 30 pixels in large shapes, each from somewhere in the core.
    number = np.where(is_large, np.maximum(fibre // 30, 1), np.minimum(fibre, 1))
    owner = np.repeat(np.arange(n_shapes), number)
    begin = (np.cumsum(core) - core)[owner] + random.integers(0, core[owner])
    fibres = _fibres(random, owner, (x[begin], y[begin]), (2 * fibre // np.maximum(number, 1))[owner])
    parts = [(core_shape, x, y, delay, light), (*fibres, np.full(len(fibres[0]), kind.light))]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return _library(columns, core + fibre)


def _sizes(random: np.random.Generator, kind: Kind, n: int) -> tuple[Int, npt.NDArray[np.bool_], Int]:
    """Return the size of each core, whether it is a large one, and how many pixels of fibres each shape has.

    Sizes are quantiles at even steps, in random order: a library of few thousand has the moments it should have.
    """
    from scipy.stats import nbinom, norm

    shuffled = random.permutation(n)
    n_large = round(kind.large[0] * n)
    is_large = shuffled < n_large
    core = np.empty(n, dtype=np.int64)
    quantile = _even_quantiles(random, n - n_large)
    mean, variance = kind.core
    if kind.track:
        core[~is_large] = np.maximum(2, np.round(norm.ppf(quantile, mean, np.sqrt(variance))))
    else:
        core[~is_large] = 1 + nbinom.ppf(quantile, (mean - 1) ** 2 / (variance - mean + 1), (mean - 1) / variance)
    fibre = np.zeros(n, dtype=np.int64)
    if n_large:
        _, mean, variance = kind.large
        sigma2 = np.log1p(variance / mean**2)
        size = mean * np.exp(norm.ppf(_even_quantiles(random, n_large), -sigma2 / 2, np.sqrt(sigma2)))
        size = np.minimum(size, _MOST_CORE).round().astype(np.int64)
        fibre[is_large] = size // 4
        core[is_large] = size - size // 4
    probability, length = kind.fibre
    with_fibre = random.permutation(n) < round(probability * n)
    fibre[with_fibre] = np.round(-length * np.log1p(-_even_quantiles(random, int(with_fibre.sum()))))
    return core, is_large, fibre


def _even_quantiles(random: np.random.Generator, n: int) -> Float:
    """Return n numbers at even steps in 0 to 1, in random order."""
    return random.permutation((np.arange(n) + 0.5) / max(n, 1))


def _discs(random: np.random.Generator, most: int, stretch: float) -> tuple[Int, Int]:
    """Return the `most` pixels nearest to each of some points within a pixel, nearest first: arrays (patterns, most).

    Distances along x are shorter by `stretch`, so that the disc is an ellipse. Of each pixel but the first, the
    neighbour towards the point is nearer: the first k are connected for any k.
    """
    radius = np.sqrt(most / np.pi)
    width, height = (int(radius * side) + 3 for side in (np.sqrt(stretch), 1 / np.sqrt(stretch)))
    y, x = (axis.ravel() for axis in np.mgrid[-height : height + 1, -width : width + 1])
    centre = random.uniform(-0.5, 0.5, (_PATTERNS, 2, 1))
    order = np.argsort(((x - centre[:, 0]) / stretch) ** 2 + (y - centre[:, 1]) ** 2, axis=1)[:, :most]
    return x[order], y[order]


def _tracks(random: np.random.Generator, most: int) -> tuple[Int, Int]:
    """Return the first `most` pixels of each of some straight tracks, one to two wide: arrays (patterns, most)."""
    angle = random.normal(0.0, 0.03, (_PATTERNS, 1))  # a beam comes from one side
    step = np.arange(most)
    along = np.concatenate([step, step])
    # A second row where charge is shared, that is, where the track passes near to a border of pixels.
    offset = random.uniform(0.0, 1.0, (_PATTERNS, 1)) + along * np.tan(angle)
    row = np.floor(offset).astype(np.int64)
    second = np.where(offset - row < 0.5, -1, 1) * (step.size <= np.arange(along.size))
    shared = np.abs(offset - row - 0.5) > random.uniform(0.0, 0.5, offset.shape)
    order = np.argsort(along + 0.5 * (second != 0) + np.where(shared | (second == 0), 0, along.size), axis=1)
    order = order[:, :most]
    return along[order], np.take_along_axis(row + second, order, axis=1)


def _fibres(random: np.random.Generator, owner: Int, begin: tuple[Int, Int], size: Int) -> tuple[Int, Int, Int, Float]:
    """Return shape, x, y and delay of the pixels along fibres of some size, step by step.

    Those of a shape, their `owner`, grow side by side. There are more steps than pixels, as fibres cross themselves and
    the core.
    """
    length = size + np.sqrt(size).astype(np.int64) + 8
    fibre = np.repeat(np.arange(len(owner)), length)
    first = (np.cumsum(length) - length)[fibre]
    step = np.arange(len(fibre)) - first
    angle = np.cumsum(random.normal(0.0, 0.35, len(fibre)))
    angle += random.uniform(0.0, 2.0 * np.pi, len(owner))[fibre] - angle[first]
    pixels = []
    for start, move in zip(begin, (np.cos(angle), np.sin(angle)), strict=True):
        path = np.cumsum(move)
        path -= path[first]
        pixels.append(_folded(np.round(path).astype(np.int64) + start[fibre]))
    order = np.lexsort((step, owner[fibre]))
    shape = owner[fibre][order]
    return shape, pixels[0][order], pixels[1][order], (step / length[fibre])[order]


def _folded(place: Int) -> Int:
    """Return places that turn back at the ends of the reach; neighbours stay neighbours."""
    return np.abs((place - _REACH) % (4 * _REACH) - 2 * _REACH) - _REACH


def _library(columns: list[Array], size: Int) -> PixelShapes:
    """Return shapes of their first `size` different pixels, moved to 0."""
    shape, x, y, delay, light = columns
    n_shapes = len(size)
    span = 4 * _REACH
    _, first = np.unique((shape * span + y + 2 * _REACH) * span + x + 2 * _REACH, return_index=True)
    first = first[np.lexsort((first, shape[first]))]
    count = np.bincount(shape[first], minlength=n_shapes)
    start = np.cumsum(count) - count
    keep = first[np.arange(len(first)) - np.repeat(start, count) < np.repeat(size, count)]
    shape = shape[keep]
    count = np.bincount(shape, minlength=n_shapes)
    start = np.concatenate([[0], np.cumsum(count)])
    corner = [np.minimum.reduceat(axis[keep], start[:-1]) for axis in (x, y)]
    x, y = ((axis[keep] - low[shape]).astype(np.int16) for axis, low in zip((x, y), corner, strict=True))
    width, height = (np.maximum.reduceat(axis, start[:-1]).astype(np.int64) + 1 for axis in (x, y))
    return PixelShapes(start, x, y, delay[keep].astype(np.float32), light[keep].astype(np.float32), width, height)
