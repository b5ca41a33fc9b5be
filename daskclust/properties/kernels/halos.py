"""Formulas of the table of halos: two passes over the particles of a halo, and the row that follows from them.

The first pass finds centre and velocity, from the offsets to the first particle; the second adds up around them. So no
digits cancel, however far from the origin a halo is or how fast it moves.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import atomic_add, nearest_whole, select, square_root, times

FINITE = float(np.finfo(np.float64).max)
NAN = float("nan")
_SWEEPS = 8  # of Jacobi's method at most: each squares the error, and four or five are enough for float64
_LITTLE = 1e-17  # of the trace: what is not on the diagonal changes nothing any more

# Columns of n particles, float32 or float64; of length 0 where there are none.
Particles = namedtuple("Particles", "x y z vx vy vz mass")

# What the first pass finds of m halos: arrays of shape (m,), float64 but for size, which is int64. The centre is in the
# image next to 0: one particle is at its own centre, to the last digit.
Means = namedtuple("Means", "size mass x y z vx vy vz")

# What the second pass adds up: arrays of shape (m,), float64. Sums of mass times two offsets from the means, of mass
# times the square of the velocity's offset, and of mass times the cross product of both; the largest squared distance.
Spreads = namedtuple("Spreads", "xx yy zz xy xz yz vv jx jy jz r2")

# The columns of the table that follow from both: arrays of shape (m,), float64.
Columns = namedtuple("Columns", "x y z vx vy vz sigma_v r_rms r_max jx jy jz spin b_to_a c_to_a")


# ------------------------------------------------------------------------------------------------------------ particles
@body
def value(column, i):
    """Return element i, 0 of a column that is not there."""
    return np.float64(column[i]) if len(column) > 0 else 0.0


@body
def is_finite(column, i):
    """Return whether element i is neither NaN nor infinite."""
    return abs(value(column, i)) <= FINITE


@body
def mass_of(particles, i):
    """Return the mass of particle i, 1 where there are none."""
    return np.float64(particles.mass[i]) if len(particles.mass) > 0 else 1.0


@body
def nearest(offset, side):
    """Return the shortest image of an offset; `side` is the box's length and its inverse, both 0 where it is open."""
    return offset - times(side[0], nearest_whole(times(offset, side[1])))


@body
def within(position, side):
    """Return the image of a position from 0 to the length of the box, which itself is excluded."""
    moved = position - times(side[0], np.float64(math.floor(times(position, side[1]))))
    return select(side[0] > 0 and not (moved >= 0 and moved < side[0]), 0.0, moved)


@body
def place(column, i, side):
    """Return the image of particle i next to 0: offsets of images far away would have fewer digits."""
    return nearest(value(column, i), side)


@kernel
def survey_particles(block, width, labels, particles, highest, noise_size, noise_mass, bad):
    """Find the largest label of a block of `width` particles, add up its noise, and say if a value cannot be."""
    high, size, total, good = np.int64(-1), 0, 0.0, True
    p = particles
    for i in range(block * width, min((block + 1) * width, len(labels))):
        high = max(high, labels[i])
        m = mass_of(p, i)
        if labels[i] < 0:
            size += 1
            total += m
        good = good and labels[i] >= -1 and m >= 0 and m <= FINITE
        good = good and is_finite(p.x, i) and is_finite(p.y, i) and is_finite(p.z, i)
        good = good and is_finite(p.vx, i) and is_finite(p.vy, i) and is_finite(p.vz, i)
    highest[block] = high
    noise_size[block] = size
    noise_mass[block] = total
    if not good:
        bad[0] = 1


# ------------------------------------------------------------------------------------------------------- whose they are
@kernel
def count_piece(piece, labels, place):
    """Count the particles of each halo in a piece of them, on the CPU; `place` (pieces, halos) was 0."""
    n, pieces = len(labels), len(place)
    for i in range(n * piece // pieces, n * (piece + 1) // pieces):
        if labels[i] >= 0:
            place[piece, labels[i]] += 1


@kernel
def move_piece(piece, labels, place, particles, members):
    """Write a piece of the particles to the next place of their halo: one line of memory, not one for each column."""
    n, pieces = len(labels), len(place)
    for i in range(n * piece // pieces, n * (piece + 1) // pieces):
        if labels[i] >= 0:
            k = place[piece, labels[i]]
            place[piece, labels[i]] += 1
            move(particles.x, i, members.x, k)
            move(particles.y, i, members.y, k)
            move(particles.z, i, members.z, k)
            move(particles.vx, i, members.vx, k)
            move(particles.vy, i, members.vy, k)
            move(particles.vz, i, members.vz, k)
            move(particles.mass, i, members.mass, k)


@body
def move(column, i, to, k):
    """Write element i of a column, where there is one, to place k."""
    if len(column) > 0:
        to[k] = column[i]


@body
def member(order, k):
    """Return which particle stands at place k: that itself where particles were moved there."""
    return order[k] if len(order) > 0 else np.int32(k)


@kernel
def count_members(i, labels, first):
    """Count the particles of halo c in ``first[c + 1]``, noise in ``first[0]``."""
    atomic_add(first, labels[i] + 1, 1)


# ----------------------------------------------------------------------------------------------------------- two passes
@body
def write_means(row, first, order, particles, box, means):
    """Write mass, centre and velocity of the particles ``order[first[row]]`` to ``order[first[row + 1] - 1]``."""
    p = particles
    begin, end = first[row], first[row + 1]
    x, y, z, vx, vy, vz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    sx, sy, sz, svx, svy, svz, mass = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if end > begin:
        i = member(order, begin)
        x, y, z = place(p.x, i, box[0]), place(p.y, i, box[1]), place(p.z, i, box[2])
        vx, vy, vz = value(p.vx, i), value(p.vy, i), value(p.vz, i)
    for k in range(begin, end):
        i = member(order, k)
        m = mass_of(p, i)
        mass += m
        sx += times(m, nearest(place(p.x, i, box[0]) - x, box[0]))
        sy += times(m, nearest(place(p.y, i, box[1]) - y, box[1]))
        sz += times(m, nearest(place(p.z, i, box[2]) - z, box[2]))
        svx += times(m, value(p.vx, i) - vx)
        svy += times(m, value(p.vy, i) - vy)
        svz += times(m, value(p.vz, i) - vz)
    share = 1.0 / mass if mass > 0 else 0.0
    means.size[row] = end - begin
    means.mass[row] = mass
    means.x[row] = x + times(sx, share)
    means.y[row] = y + times(sy, share)
    means.z[row] = z + times(sz, share)
    means.vx[row] = vx + times(svx, share)
    means.vy[row] = vy + times(svy, share)
    means.vz[row] = vz + times(svz, share)


@body
def write_spreads(row, first, order, particles, box, means, spreads):
    """Write what the same particles add up to around their means."""
    p = particles
    x, y, z = means.x[row], means.y[row], means.z[row]
    vx, vy, vz = means.vx[row], means.vy[row], means.vz[row]
    xx, yy, zz, xy, xz, yz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    vv, jx, jy, jz, r2 = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(first[row], first[row + 1]):
        i = member(order, k)
        m = mass_of(p, i)
        dx = nearest(place(p.x, i, box[0]) - x, box[0])
        dy = nearest(place(p.y, i, box[1]) - y, box[1])
        dz = nearest(place(p.z, i, box[2]) - z, box[2])
        ux, uy, uz = value(p.vx, i) - vx, value(p.vy, i) - vy, value(p.vz, i) - vz
        mx, my, mz = times(m, dx), times(m, dy), times(m, dz)
        xx += times(mx, dx)
        yy += times(my, dy)
        zz += times(mz, dz)
        xy += times(mx, dy)
        xz += times(mx, dz)
        yz += times(my, dz)
        vv += times(m, times(ux, ux) + times(uy, uy) + times(uz, uz))
        jx += times(my, uz) - times(mz, uy)
        jy += times(mz, ux) - times(mx, uz)
        jz += times(mx, uy) - times(my, ux)
        r2 = max(r2, times(dx, dx) + times(dy, dy) + times(dz, dz))
    s = spreads
    s.xx[row], s.yy[row], s.zz[row], s.xy[row], s.xz[row], s.yz[row] = xx, yy, zz, xy, xz, yz
    s.vv[row], s.jx[row], s.jy[row], s.jz[row], s.r2[row] = vv, jx, jy, jz, r2


@kernel
def find_means(row, first, order, particles, box, means):
    """Make the first pass for one halo."""
    write_means(row, first, order, particles, box, means)


@kernel
def find_spreads(row, first, order, particles, box, means, spreads):
    """Make the second pass for one halo."""
    write_spreads(row, first, order, particles, box, means, spreads)


@kernel
def find_both(row, first, order, particles, box, means, spreads):
    """Make both passes for one halo, while its particles are in the cache."""
    write_means(row, first, order, particles, box, means)
    write_spreads(row, first, order, particles, box, means, spreads)


# ---------------------------------------------------------------------------------------------------------------- shape
@body
def turned(pp, qq, pq, rp, rq):
    """Return pp, qq, rp, rq of a symmetric matrix after the rotation of the axes p and q that makes pq 0 (Jacobi)."""
    slope = 0.0
    if pq != 0:
        ratio = (qq - pp) / (2.0 * pq)
        steep = 1.0 / (abs(ratio) + square_root(times(ratio, ratio) + 1.0))
        slope = select(ratio < 0, -steep, steep)
    cosine = 1.0 / square_root(times(slope, slope) + 1.0)
    sine = times(slope, cosine)
    change = times(slope, pq)
    return pp - change, qq + change, times(cosine, rp) - times(sine, rq), times(sine, rp) + times(cosine, rq)


@body
def principal(xx, yy, zz, xy, xz, yz):
    """Return the eigenvalues of a symmetric matrix that has none below 0, descending."""
    little = times(_LITTLE, xx + yy + zz)
    sweep = 0
    while sweep < _SWEEPS and abs(xy) + abs(xz) + abs(yz) > little:
        xx, yy, xz, yz = turned(xx, yy, xy, xz, yz)
        xy = 0.0
        xx, zz, xy, yz = turned(xx, zz, xz, xy, yz)
        xz = 0.0
        yy, zz, xy, xz = turned(yy, zz, yz, xy, xz)
        yz = 0.0
        sweep += 1
    largest, least = max(max(xx, yy), zz), min(min(xx, yy), zz)
    middle = max(min(xx, yy), min(max(xx, yy), zz))
    return max(largest, 0.0), max(middle, 0.0), max(least, 0.0)


# ----------------------------------------------------------------------------------------------------------------- rows
@kernel
def finish_halo(row, box, axes, gravity, means, spreads, columns):
    """Write what follows from both passes; NaN where a halo has no particles, or none with a mass."""
    c, s = columns, spreads
    mass = means.mass[row]
    share = 1.0 / mass if mass > 0 else NAN
    known = select(mass > 0, 0.0, NAN)
    c.x[row] = within(means.x[row], box[0]) + known
    c.y[row] = within(means.y[row], box[1]) + known
    c.z[row] = within(means.z[row], box[2]) + known
    c.vx[row], c.vy[row], c.vz[row] = means.vx[row] + known, means.vy[row] + known, means.vz[row] + known
    c.sigma_v[row] = square_root(times(s.vv[row], share) / axes)
    c.r_rms[row] = square_root(times(s.xx[row] + s.yy[row] + s.zz[row], share))
    radius = square_root(s.r2[row])
    c.r_max[row] = radius + known
    jx, jy, jz = times(s.jx[row], share), times(s.jy[row], share), times(s.jz[row], share)
    c.jx[row], c.jy[row], c.jz[row] = jx, jy, jz
    circular = times(times(2.0 * gravity, mass), radius)
    j = square_root(times(jx, jx) + times(jy, jy) + times(jz, jz))
    c.spin[row] = j / square_root(circular) if circular > 0 else NAN
    aa, bb, cc = principal(s.xx[row], s.yy[row], s.zz[row], s.xy[row], s.xz[row], s.yz[row])
    c.b_to_a[row] = square_root(bb / aa) if aa > 0 else NAN
    c.c_to_a[row] = square_root(cc / aa) if aa > 0 else NAN
