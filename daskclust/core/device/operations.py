"""The few words that kernels are written in, beside plain arithmetic.

A kernel body is written once and compiled for two targets. Where a target needs code of its own it is behind one of
these names: `cpu.py` gives the CPU's version (16 points in SIMD lanes), `cuda.py` CUDA's (one point a
thread). The functions here are their meaning for one point, in plain Python.

Arithmetic is the same to the last bit on every target: no fused multiply-add (`times`), square roots rounded correctly,
exponentials made of additions and multiplications only (`core/device/exp.py`). So labels do not depend on the device.
"""

from __future__ import annotations

import numpy as np


def load(array, i, m):
    """Return elements `i` to `i + m - 1` in `m` lanes (surplus lanes repeat element `i`)."""
    return array[i]


def store(array, i, m, value):
    """Write the first `m` lanes to elements `i` to `i + m - 1`."""
    array[i] = value


def point_at(positions, i, m, axes):
    """Return the coordinates of points `i` to `i + m - 1` as a tuple with one entry for each of `axes`."""
    return tuple(positions[k, i] for k in range(len(axes)))


def places(i, value):
    """Return `i`, `i` + 1, ... in as many lanes as `value` has."""
    return i


def like(value, number):
    """Return `number` in every lane, in the type of `value`."""
    return type(value)(number)


def select(condition, yes, no):
    """Return `yes` in the lanes where `condition` holds, `no` in the others; of two scalars, in the type of `no`."""
    return yes if condition else no


def bits_of(condition):
    """Return an int64 with a bit for each lane, set where `condition` holds."""
    return int(condition)


def lane_width():
    """Return how many points a vector holds."""
    return 1


def lowest(value):
    """Return the smallest of the lanes, none of which is NaN."""
    return value


def highest(value):
    """Return the largest of the lanes, none of which is NaN."""
    return value


def times(a, b):
    """Return the product of `a` and `b`, rounded on its own.

    CUDA would fuse ``a * b + c`` into one operation with one rounding; a sum of products written with `times` has the
    same bits on every target.
    """
    return a * b


def add_square(total, step):
    """Return `total` and the square of `step`, in one rounding where the target is fastest so: for bounds only."""
    return total + step * step


def square_root(value):
    """Return the square root, correctly rounded."""
    return np.sqrt(value)


def nearest_whole(value):
    """Return the nearest whole number, the even one of two."""
    return np.rint(value)


def power_of_two(exponent):
    """Return 2 to the power of `exponent`, a whole floating-point number in the range of normal ones."""
    return np.ldexp(type(exponent)(1), int(exponent))


def copy_four(source, at, target, to, least):
    """Copy four elements of `source` from `at` on to `target` from `to` on; return a bit for each not below `least`."""
    mask = 0
    for k in range(4):
        target[to + k] = source[at + k]
        mask |= int(source[at + k] >= least) << k
    return mask


def word_at(data, place):
    """Return the little-endian 64-bit word that begins at byte `place`, which need not be aligned."""
    word = np.uint64(0)
    for k in range(8):
        word |= np.uint64(data[place + k]) << np.uint64(8 * k)
    return word


def lowest_bit(mask):
    """Return the number of the lowest bit that is set in `mask`, which has one."""
    mask = int(mask)
    return (mask & -mask).bit_length() - 1


def count_bits(mask):
    """Return how many bits are set in the int64 `mask`."""
    return (int(mask) & 0xFFFFFFFFFFFFFFFF).bit_count()


def team_barrier(blocks, arrived):
    """Wait for the other threads of the team, of so many `blocks`; `arrived` (1,) counts those that are there."""


def block_barrier():
    """Wait for the other threads of the block, and see what they wrote."""


def block_memory(size, spare):
    """Return an array for `size` float64 that the threads of a block share, in a tuple: numba wants that.

    On CUDA it is the memory of the block's multiprocessor where the launch gave that much, else, as on other targets,
    the array `spare`.
    """
    return (spare,)


def atomic_add(array, i, value):
    """Add `value` to ``array[i]`` at once and return the element before."""
    before = array[i]
    array[i] = before + value
    return before


def atomic_min(array, i, value):
    """Lower ``array[i]`` to `value` if that is smaller, at once; return the element before."""
    before = array[i]
    array[i] = min(before, value)
    return before


def atomic_max(array, i, value):
    """Raise ``array[i]`` to `value` if that is larger, at once; return the element before."""
    before = array[i]
    array[i] = max(before, value)
    return before


def atomic_cas(array, i, old, new):
    """Write `new` to ``array[i]`` if it equals `old`, at once; return the element before."""
    before = array[i]
    if before == old:
        array[i] = new
    return before


def atomic_load(array, i):
    """Read ``array[i]`` from memory even where other threads write it."""
    return array[i]
