"""Words of Timepix3 readout files: what their bits say, and how times that wrap become times that do not.

All times are in ticks of 1.5625 ns. A time of arrival in a word wraps after 2**34 ticks (26.84 s), a TDC or global time
after 2**36 (107.4 s). A time is extended by the shortest way from the last one in the stream: by less than half of its
range, forward or back.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body
from daskclust.core.device.timesort import TICK

TDC_STEPS = 12
"""Fine steps of a TDC time in a coarse one, which is 2 ticks."""
TDC_STEP = 2 * TICK / TDC_STEPS
"""A fine step of a TDC time in ns."""
MAGIC = 0x33585054
"""The first four bytes of a chunk header, ``TPX3``."""

PIXEL_BITS = 34
PIXEL_RANGE = 1 << PIXEL_BITS
TDC_BITS = 36
TDC_RANGE = 1 << TDC_BITS

# What a word is. The numbers are places in a table of counts.
PIXEL, TDC, TIME_LOW, TIME_HIGH, CONTROL, COUNT_FB, UNKNOWN = range(7)
KINDS = 7


@body
def kind_of(word):
    """Say what a word is."""
    top = word >> np.uint64(56)
    half = word >> np.uint64(60)
    kind = UNKNOWN
    if half == np.uint64(0xB):
        kind = PIXEL
    elif half == np.uint64(0x6):
        if top == np.uint64(0x6F) or top == np.uint64(0x6A) or top == np.uint64(0x6E) or top == np.uint64(0x6B):
            kind = TDC
    elif top == np.uint64(0x44):
        kind = TIME_LOW
    elif top == np.uint64(0x45):
        kind = TIME_HIGH
    elif half == np.uint64(0x5) or half == np.uint64(0x7):
        kind = CONTROL
    elif half == np.uint64(0xA):
        kind = COUNT_FB
    return kind


@body
def pixel_at(address):
    """Return column and row of a pixel from the 16 bits of its address: double column, super-pixel, pixel in it."""
    address = np.int64(address)
    column = (address >> np.int64(8)) & np.int64(0xFE) | (address >> np.int64(2)) & np.int64(1)
    row = (address >> np.int64(1)) & np.int64(0xFC) | address & np.int64(3)
    return np.int32(column), np.int32(row)


@body
def pixel_ticks(word):
    """Return the time of arrival within its range; negative where the fine time borrows from the range before."""
    coarse = (word & np.uint64(0xFFFF)) << np.uint64(18) | (word >> np.uint64(30) & np.uint64(0x3FFF)) << np.uint64(4)
    return np.int64(coarse) - np.int64((word >> np.uint64(16)) & np.uint64(0xF))


@body
def column_phase(word, phase):
    """Return by how much the clock of a pixel's column is late, where `phase` is 15; 0 where `phase` is."""
    return np.int64(word >> np.uint64(53)) & phase


@body
def tdc_ticks(word):
    """Return the coarse time of a TDC word, whose unit is 2 ticks."""
    return np.int64((word >> np.uint64(9)) & np.uint64((1 << 35) - 1)) << np.int64(1)


@body
def low_ticks(word):
    """Return the time of a low word of global time, whose unit is 16 ticks."""
    return np.int64((word >> np.uint64(16)) & np.uint64(0xFFFFFFFF)) << np.int64(4)


@body
def shortest(difference, bits):
    """Return a difference of times that wrap after 2**bits as the shortest way, in [-2**(bits - 1), 2**(bits - 1))."""
    spare = np.int64(64 - bits)
    return (difference << spare) >> spare


@body
def ticks_after(word, reference, phase):
    """Return the time of a hit since a reference near it, with the phase of its column.

    The phase comes last: which range a time is of does not depend on it, so all words have one clock.
    """
    return shortest(pixel_ticks(word) - reference, PIXEL_BITS) + column_phase(word, phase)
