"""Formulas of the table of pixel clusters: one pass along the hits of a cluster, and the row that follows from it.

Pixels are whole numbers, so sums of them and of their squares are exact integers: the axes of a cluster do not depend
on how its hits are divided. Sums of ToT are exact, too, where it is a whole number of ticks, as Timepix gives it.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import select, square_root, times

FINITE = float(np.finfo(np.float64).max)
BY_NOTHING, BY_TOT, BY_ENERGY = 0, 1, 2  # what weighs the centroid

# Columns of n hits: x, y (unsigned integers, pixel), toa, tof (float64, ns), tot (float32 or float64, ns), energy
# (float32 or float64, keV); energy, chip and tof have length 0 where there are none.
Hits = namedtuple("Hits", "x y toa tot energy chip tof")

# What of a cluster can be added up or compared, and so merged; or arrays of that, one element a cluster. Sums of x, y,
# x * x, y * y and x * y, and x_min to y_max and seed are int64; wx and wy are sums of weight * x and weight * y.
Totals = namedtuple(
    "Totals",
    "size sx sy sxx syy sxy tot energy wx wy x_min x_max y_min y_max toa toa_last tof chip seed tot_max x_seed y_seed",
)

# The columns of the table; energy, chip and tof have length 0 where hits have none.
Columns = namedtuple(
    "Columns",
    "size tot energy x y x_plain y_plain length width angle toa toa_last tof x_min x_max y_min y_max chip seed tot_max "
    "x_seed y_seed",
)


# --------------------------------------------------------------------------------------------------- one cluster's hits
@body
def add_up(i, following, hits, start, by, bad):
    """Return the totals of hit `i`, the first of its cluster, of ``following[i]``, and so on until -1.

    Pixels are counted from that of hit `i`, so that clusters of one, the most frequent, have no sums to form.
    """
    i = np.uint32(i)  # unsigned: no place counts from the end
    x, y = np.int64(hits.x[i]), np.int64(hits.y[i])
    has_energy = len(hits.energy) > 0
    first, seed = i, i
    tot_max = hits.tot[i]
    toa, toa_last, toa_sum = hits.toa[i], hits.toa[i], hits.toa[i]
    tot = np.float64(tot_max)
    energy = np.float64(hits.energy[i]) if has_energy else 0.0
    least_tot, least_energy = tot, energy
    size = np.int64(1)
    sx, sy, sxx, syy, sxy = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    left, right, low, high = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    wx, wy = 0.0, 0.0
    after = following[i]
    while after >= 0:
        j = np.uint32(after)
        dx, dy = np.int64(hits.x[j]) - x, np.int64(hits.y[j]) - y
        w = np.float64(hits.tot[j])
        tot += w
        least_tot = min(least_tot, w)
        higher = hits.tot[j] > tot_max  # without branches: which hit is the highest cannot be foreseen
        tot_max = select(higher, hits.tot[j], tot_max)
        seed = select(higher, j, seed)
        if has_energy:
            e = np.float64(hits.energy[j])
            energy += e
            least_energy = min(least_energy, e)
            if by == BY_ENERGY:
                w = e
        wx += times(w, np.float64(dx))
        wy += times(w, np.float64(dy))
        size += 1
        sx += dx
        sy += dy
        sxx += dx * dx
        syy += dy * dy
        sxy += dx * dy
        left, right = min(left, dx), max(right, dx)
        low, high = min(low, dy), max(high, dy)
        t = hits.toa[j]
        toa_sum += t
        toa_last = max(toa_last, t)
        first = select(t < toa, j, first)
        toa = min(toa, t)
        after = following[j]
    # A number that is not finite makes its sum so: checked once a cluster, not once a hit.
    if not (least_tot >= 0 and least_energy >= 0 and tot <= FINITE and energy <= FINITE and abs(toa_sum) <= FINITE):
        bad[0] = 1
    weight = energy if by == BY_ENERGY else tot
    return Totals(
        size, sx + size * x, sy + size * y,
        sxx + 2 * x * sx + size * x * x, syy + 2 * y * sy + size * y * y, sxy + x * sy + y * sx + size * x * y,
        tot, energy, wx + times(weight, np.float64(x)), wy + times(weight, np.float64(y)),
        x + left, x + right, y + low, y + high, toa, toa_last,
        hits.tof[first] if len(hits.tof) > 0 else 0.0, hits.chip[first] if len(hits.chip) > 0 else 0,
        start + np.int64(seed), tot_max, hits.x[seed], hits.y[seed],
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ its shape
@body
def arc_tangent(ratio):
    """Return the arc tangent of a number from 0 to 1, to 2e-8 (Abramowitz and Stegun, 4.4.49)."""
    z = times(ratio, ratio)
    total = times(0.0028662257, z) - 0.0161657367
    total = times(total, z) + 0.0429096138
    total = times(total, z) - 0.0752896400
    total = times(total, z) + 0.1065626393
    total = times(total, z) - 0.1420889944
    total = times(total, z) + 0.1999355085
    total = times(total, z) - 0.3333314528
    return times(ratio, times(total, z) + 1.0)


@body
def half_angle(cosine, sine):
    """Return half the angle of the vector (cosine, sine), above -pi/2 and up to pi/2; 0 of no vector."""
    across = abs(cosine)
    along = abs(sine)
    longer = max(across, along)
    angle = arc_tangent(min(across, along) / select(longer > 0, longer, 1.0))
    angle = select(along > across, 0.5 * np.pi - angle, angle)
    angle = select(cosine < 0, np.pi - angle, angle)
    return 0.5 * select(sine < 0, -angle, angle)


@body
def spread(t):
    """Return 12 times the variances of x and y, and 12 times their covariance.

    From the corner of the bounding box the integers are small, and floats exact up to 2**53: nothing cancels.
    """
    n = np.float64(t.size)
    left, low = t.x_min, t.y_min
    mx, my = np.float64(t.sx - t.size * left), np.float64(t.sy - t.size * low)
    xx = times(n, np.float64(t.sxx - 2 * left * t.sx + t.size * left * left)) - times(mx, mx)
    yy = times(n, np.float64(t.syy - 2 * low * t.sy + t.size * low * low)) - times(my, my)
    xy = times(n, np.float64(t.sxy - left * t.sy - low * t.sx + t.size * left * low)) - times(mx, my)
    scale = 12.0 / times(n, n)
    return times(scale, xx), times(scale, yy), times(scale, xy)


@body
def axes(xx, yy, xy):
    """Return length, width and angle of the long axis of what `spread` gives."""
    half_sum = 0.5 * (xx + yy)
    half_difference = 0.5 * (xx - yy)
    radius = square_root(times(half_difference, half_difference) + times(xy, xy))
    length = square_root(half_sum + radius + 1.0)
    width = square_root(max(half_sum - radius, 0.0) + 1.0)
    return length, width, half_angle(half_difference, xy)


# ----------------------------------------------------------------------------------------------------------------- rows
@body
def write_row(row, t, by, c):
    """Write what follows from a cluster's totals to a row of the table, but for its axes."""
    c.size[row] = t.size
    c.tot[row] = t.tot
    if len(c.energy) > 0:
        c.energy[row] = t.energy
    share = 1.0 / np.float64(t.size) if t.size > 0 else np.nan
    x, y = times(np.float64(t.sx), share), times(np.float64(t.sy), share)
    c.x_plain[row] = x
    c.y_plain[row] = y
    weight = t.energy if by == BY_ENERGY else t.tot
    if by != BY_NOTHING and weight > 0:
        share = 1.0 / weight
        x, y = times(t.wx, share), times(t.wy, share)
    c.x[row] = x
    c.y[row] = y
    c.toa[row] = t.toa
    c.toa_last[row] = t.toa_last
    if len(c.tof) > 0:
        c.tof[row] = t.tof
    c.x_min[row] = t.x_min
    c.x_max[row] = t.x_max
    c.y_min[row] = t.y_min
    c.y_max[row] = t.y_max
    if len(c.chip) > 0:
        c.chip[row] = t.chip
    c.seed[row] = t.seed
    c.tot_max[row] = t.tot_max
    c.x_seed[row] = t.x_seed
    c.y_seed[row] = t.y_seed


@body
def write_empty(row, c):
    """Write the row of a number that no hit has."""
    nan = np.nan
    t = Totals(0, 0, 0, 0, 0, 0, 0.0, 0.0, nan, nan, 0, 0, 0, 0, nan, nan, nan, 0, -1, nan, 0, 0)
    write_row(row, t, BY_NOTHING, c)
    c.length[row] = nan
    c.width[row] = nan
    c.angle[row] = nan


@kernel
def finish_row(i, many, by, columns):
    """Write row i, of the cluster with totals i of arrays."""
    t = Totals(
        many.size[i], many.sx[i], many.sy[i], many.sxx[i], many.syy[i], many.sxy[i], many.tot[i], many.energy[i],
        many.wx[i], many.wy[i], many.x_min[i], many.x_max[i], many.y_min[i], many.y_max[i], many.toa[i],
        many.toa_last[i], many.tof[i], many.chip[i], many.seed[i], many.tot_max[i], many.x_seed[i], many.y_seed[i],
    )  # fmt: skip
    write_row(i, t, by, columns)
    write_axes(i, t, columns)


@body
def write_axes(row, t, c):
    """Write the axes that follow from a cluster's totals to a row of the table."""
    xx, yy, xy = spread(t)
    length, width, angle = axes(xx, yy, xy)
    c.length[row] = length
    c.width[row] = width
    c.angle[row] = angle


@body
def write_totals(row, t, many):
    """Write the totals of a cluster to a row of arrays."""
    many.size[row] = t.size
    many.sx[row] = t.sx
    many.sy[row] = t.sy
    many.sxx[row] = t.sxx
    many.syy[row] = t.syy
    many.sxy[row] = t.sxy
    many.tot[row] = t.tot
    many.energy[row] = t.energy
    many.wx[row] = t.wx
    many.wy[row] = t.wy
    many.x_min[row] = t.x_min
    many.x_max[row] = t.x_max
    many.y_min[row] = t.y_min
    many.y_max[row] = t.y_max
    many.toa[row] = t.toa
    many.toa_last[row] = t.toa_last
    many.tof[row] = t.tof
    many.chip[row] = t.chip
    many.seed[row] = t.seed
    many.tot_max[row] = t.tot_max
    many.x_seed[row] = t.x_seed
    many.y_seed[row] = t.y_seed
