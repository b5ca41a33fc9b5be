"""Hits of a Timepix3 or Timepix4 detector, and the order in which its readout delivers them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from daskclust.core.data.checks import check_whole
from daskclust.core.data.fields import SIDES
from daskclust.core.data.units import HITS

from ._arguments import RNG, Array, Int, given, not_negative
from ._pixel_shapes import KINDS, PixelShapes, make_shapes

Particle = Literal[
    "gamma", "pion0", "pion45", "pion75", "lead", "lead50", "lead90", "lead_subset", "lead50_subset", "lead90_subset"
]  # fmt: skip

_TOT_TICK = 25.0  # ns
_MOST_TOT = 1022  # ticks; 1023 is kept for overflow
_BLOCK = 1 << 20  # hits that are drawn at a time: they and what is computed from them fit a cache better than all
_LEAST_SHAPES = 500
_WALK_TOT = 8.0  # ticks of ToT in which time walk falls to 1/e
_CLOCKS = {"timepix3": (1.5625, _TOT_TICK), "timepix4": (0.1953125, 1.5625)}  # steps of ToA and ToT, ns
_UNITS = {**HITS, "truth": "1"}
_QUAD = np.array([[3, 0], [2, 1]], dtype=np.uint8)  # the chips of a quad: below and above, from left to right


class _Hits(NamedTuple):
    """Some hits; ToA in ticks, ToT in ticks, chip of the particle, and the particle's number in the order of time."""

    x: Array  # uint16
    y: Array
    tick: Array  # int64
    tot: Array  # uint16
    chip: Array  # uint8
    particle: Array  # int64


class _Times(NamedTuple):
    """What a generator's times are made of, in ticks: longest drift, time walk, and the number of hits per tick."""

    drift: float
    walk: float
    rate: float
    tots: float = 1.0  # ticks of ToT in 25 ns


def timepix(
    n_hits: int = 1_000_000,
    *,
    kind: Particle = "gamma",
    rate: float = 10e6,
    chips: int | None = None,
    layout: Literal["chips", "quad", "timepix4"] = "chips",
    drift: float = 60.0,
    timewalk: float = 75.0,
    start: float = 0.0,
    rng: RNG = None,
) -> xr.Dataset:
    """Make hits of particles on a Timepix3 or Timepix4 pixel detector, ordered by time.

    Parameters
    ----------
    n_hits : int, default 1000000
        Number of hits.
    kind : str, default "gamma"
        Particles: "gamma", photons of 59.6 keV; "pion0", "pion45", "pion75", pions of 40 GeV/c under 0, 45 and 75
        degrees; "lead", "lead50", "lead90", lead ions under 0, 50 and 90 degrees; "lead_subset", "lead50_subset",
        "lead90_subset", of these the large clusters only.
    rate : float, default 10e6
        Hits per second, on all chips together.
    chips : int, optional
        Number of chips, at most 256. Default: 1, or the 4 that a quad has.
    layout : {"chips", "quad", "timepix4"}, default "chips"
        Whether chips are detectors of their own, with ``x`` and ``y`` from 0 to 255 on each, or four form one detector
        without gap, with common coordinates from 0 to 511 and clusters across the seams. Or chips are Timepix4, each a
        detector of 448 columns and 512 rows.
    drift, timewalk : float
        Longest drift time of charge, and delay of the smallest signals, which falls exponentially with ToT, to 1/e at
        200 ns; in ns.
    start : float, default 0.0
        Time before all hits, in ns, a multiple of the clock's step: long runs can be made in parts.
    rng : int, numpy.random.Generator or None, default None
        Seed or generator.

    Returns
    -------
    xarray.Dataset
        Along ``hit``, in the order of ``toa``: ``x``, ``y`` (pixel, uint16), ``toa`` (ns, float64, multiples of
        1.5625; of a Timepix4 of 0.1953125), ``tot`` (ns, float32, multiples of 25; of a Timepix4 of 1.5625), ``chip``
        (uint8), ``truth`` (int64): the particle, numbered from 0 in the order of first hits. The arguments are in
        ``attrs``.

    Notes
    -----
    Cluster sizes have about the means and standard deviations of the paper's figure 3: gamma 2.46 and 2.15, pions 7.2
    and 27 (0 degrees), 23 and 33 (45), 60 and 64 (75), lead 132 and 501 (0), 26.5 and 275 (50), 20.5 and 357 (90), its
    subsets 2231 and 364, 3623 and 861, 7258 and 5105. Measured over ten seeds: 26.5 and 275, 20.5 and 357, 2231 and
    363, 3621 and 866, 7250 and 5087; discs of lead are longer than wide by 1.2 at 50 degrees and by 2 at 90, and none
    is longer than 201 pixels. Particles come at random (a Poisson process)
    and fall uniformly where their whole cluster is on the detector, so every one is connected; close ones may touch.
    ToT is log-normal, larger in the middle of a large cluster. Time and memory are O(n_hits).

    References
    ----------
    Celko, Mráz, Bergmann and Mánek, "Parallel CPU- and GPU-based connected component algorithms for event building for
    hybrid pixel detectors" (2025).

    Examples
    --------
    >>> ds = timepix(1000, kind="pion45", rng=0)
    >>> ds.sizes["hit"], bool((ds["toa"].diff("hit") >= 0).all()), bool((ds["toa"] % 1.5625 == 0).all())
    (1000, True, True)
    """
    attrs = given("timepix", locals())
    if layout not in SIDES:
        raise ValueError(f"layout must be one of {', '.join(SIDES)}, got {layout!r}")
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(get_args(Particle))}, got {kind!r}")
    toa_step, tot_step = _CLOCKS["timepix4" if layout == "timepix4" else "timepix3"]
    if start % toa_step:
        raise ValueError(f"start must be a multiple of {toa_step} ns, got {start!r}")
    if chips is None:
        chips = 4 if layout == "quad" else 1
    check_whole("chips", chips, 1, 256)  # their numbers are of 8 bits
    if layout == "quad" and chips != 4:
        raise ValueError(f"a quad has 4 chips, got chips={chips}; leave chips out, or use layout='chips'")
    attrs["chips"] = chips
    random = np.random.default_rng(rng)
    most = KINDS[kind].shapes
    n_shapes = int(np.clip(4 * n_hits / KINDS[kind].core[0], min(_LEAST_SHAPES, most), most))
    shapes = make_shapes(random, KINDS[kind], n_shapes)
    times = _Times(drift / toa_step, timewalk / toa_step, rate * toa_step * 1e-9, _TOT_TICK / tot_step)
    hits, done = _empty(n_hits), 0
    blocks = _blocks(random, shapes, times, chips, SIDES[layout])
    while done < n_hits:
        block = next(blocks)
        for whole, part in zip(hits, block, strict=True):
            whole[done : done + len(part)] = part[: n_hits - done]
        done += len(block.x)
    side = SIDES["chips"][0]
    columns = {
        "x": hits.x,
        "y": hits.y,
        "toa": hits.tick * toa_step + start,
        "tot": hits.tot * np.float32(tot_step),
        "chip": _QUAD[hits.y // side, hits.x // side] if layout == "quad" else hits.chip,
        "truth": pd.factorize(hits.particle)[0],
    }
    attrs |= {"field": "timepix"} | ({"gap": 0} if layout == "quad" else {})
    return xr.Dataset({name: ("hit", v, {"units": _UNITS[name]}) for name, v in columns.items()}, attrs=attrs)


def _empty(n: int) -> _Hits:
    return _Hits(*(np.empty(n, dtype) for dtype in (np.uint16, np.uint16, np.int64, np.uint16, np.uint8, np.int64)))


def _blocks(
    random: np.random.Generator, shapes: PixelShapes, times: _Times, chips: int, sides: tuple[int, int]
) -> Iterator[_Hits]:
    """Yield hits without end, in blocks that are ordered by time and follow each other.

    A block keeps its hits back from the time on when the next block's first particle may come.
    """
    mean_size = shapes.start[-1] / (len(shapes.start) - 1)
    n_particles = int(np.clip(_BLOCK / mean_size, 1, _BLOCK))
    kept, begin, number = _empty(0), 0.0, 0
    while True:
        when = begin + np.cumsum(random.exponential(mean_size / times.rate, n_particles))
        drawn = _draw(random, shapes, when, times, chips, sides)
        drawn = drawn._replace(particle=drawn.particle + number)
        begin, number = float(when[-1]), number + n_particles
        hits = _Hits(*(np.concatenate(pair) for pair in zip(kept, drawn, strict=True)))
        order = np.argsort(hits.tick, kind="stable")
        hits = _Hits(*(column[order] for column in hits))
        complete = int(np.searchsorted(hits.tick, int(begin)))
        kept = _Hits(*(column[complete:] for column in hits))
        yield _Hits(*(column[:complete] for column in hits))


def _draw(
    random: np.random.Generator,
    shapes: PixelShapes,
    when: npt.NDArray[np.float64],
    times: _Times,
    chips: int,
    sides: tuple[int, int],
) -> _Hits:
    """Return the hits of particles that come at some times, particle after particle."""
    shape = random.integers(0, len(shapes.width), len(when))
    size = np.diff(shapes.start)[shape]
    particle = np.repeat(np.arange(len(when)), size)
    pixel = np.arange(len(particle)) + np.repeat(shapes.start[shape] - (np.cumsum(size) - size), size)
    extents = zip(sides, (shapes.width, shapes.height), strict=True)
    corner = [random.integers(0, side - extent[shape] + 1) for side, extent in extents]
    x, y = (
        axis[pixel] + low.astype(np.int16)[particle] for axis, low in zip((shapes.x, shapes.y), corner, strict=True)
    )
    chip = random.integers(0, chips, len(when)).astype(np.uint8)[particle]
    spread = random.standard_normal(len(particle), dtype=np.float32) * np.float32(0.8)
    tot = np.clip(times.tots * np.exp(shapes.light[pixel] + spread), 1, times.tots * _MOST_TOT).astype(np.uint16)
    late = times.drift * shapes.delay[pixel] + times.walk * np.exp(tot * np.float32(-1 / (times.tots * _WALK_TOT)))
    late += random.random(len(particle), dtype=np.float32) * np.float32(2.0)  # the clock's phase and noise
    tick = np.floor(when[particle] + late).astype(np.int64)
    return _Hits(x.astype(np.uint16), y.astype(np.uint16), tick, tot, chip, particle)


def readout_order(ds: xr.Dataset, disorder: float = 20_000.0, *, rng: RNG = None) -> Int:
    """Return the order in which a readout would deliver hits: by time, but for some disorder.

    Parameters
    ----------
    ds : xarray.Dataset
        Hits with ``toa``, in memory.
    disorder : float, default 20000.0
        No hit comes after one that is later by more than this, in ns. Columns of a Timepix3 are read out in turn, so
        that hits of a busy chip wait for up to some hundred microseconds.
    rng : int, numpy.random.Generator or None, default None
        Seed or generator.

    Returns
    -------
    numpy.ndarray of int64, shape (n_hits,)
        ``ds.isel(hit=order)`` is what comes out of the readout.

    Raises
    ------
    ValueError
        For a negative `disorder`, and without ``toa``.

    Examples
    --------
    >>> ds = timepix(1000, rng=0)
    >>> raw = ds.isel(hit=readout_order(ds, 500.0, rng=0))
    >>> late = raw["toa"].values.copy()
    >>> bool((np.diff(late) < 0).any()), bool((np.maximum.accumulate(late) - late).max() <= 500.0)
    (True, True)
    """
    not_negative("disorder", disorder)
    if "toa" not in ds:
        raise ValueError(f"the Dataset has no variable 'toa'; it has {', '.join(map(str, ds)) or 'none'}")
    toa = np.asarray(ds["toa"].values)
    delivered = toa + np.random.default_rng(rng).uniform(0.0, disorder, toa.size)
    return np.argsort(delivered, kind="stable")
