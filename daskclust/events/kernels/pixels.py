"""Where event building looks up the last hit of a pixel: in a table of all pixels, or in a hash table of those hit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body

EIGHT, FOUR = 0x777, 0x272  # a bit for each of the pixels that touch one, three rows of four
ROW, OWN = 12, 5  # bits of the three rows; the bit of the pixel itself
FARTHEST = 1 << 62  # coordinates are nearer to 0: 64 bits hold their differences
FREE, CLOSED = -1, -2  # no hit of this pixel yet; CLOSED - j: hit j, which no later hit may join


class Matrix(NamedTuple):
    """Where pixels stand in a table that has one free column and row around each chip."""

    x0: int  # smallest coordinates
    y0: int
    chip0: int
    stride: int  # from one row to the next
    plane: int  # from one chip to the next
    touching: int  # EIGHT or FOUR


class Hits(NamedTuple):
    """Hits in the order of time, as arrays (n,); `chip` is empty where there is one chip only."""

    x: Any
    y: Any
    chip: Any
    toa: Any


@body
def bit_of(hits, i, j):
    """Return the bit that stands for hit j's pixel beside hit i's, 0 where it does not touch."""
    column = np.uint64(np.int64(hits.x[j]) - np.int64(hits.x[i]) + 1)  # below 3 where pixels touch
    row = np.uint64(np.int64(hits.y[j]) - np.int64(hits.y[i]) + 1)
    if column > 2 or row > 2 or (len(hits.chip) and hits.chip[i] != hits.chip[j]):
        return 0
    return 1 << np.int64(row * np.uint64(4) + column)


# ------------------------------------------------------------------------------------------------ a table of all pixels
@body
def pixel(hits, i, matrix):
    """Place of hit i's pixel in the table."""
    place = (np.int64(hits.y[i]) - matrix.y0 + 1) * matrix.stride + np.int64(hits.x[i]) - matrix.x0 + 1
    if len(hits.chip):
        place += (np.int64(hits.chip[i]) - matrix.chip0) * matrix.plane
    return place


@body
def beside(place, bit, stride):
    """Place of the pixel that a bit stands for, beside one."""
    return place + ((bit >> 2) - 1) * stride + (bit & 3) - 1


@body
def table_of(piece, begin, cells):
    """Return where the table of a piece of the hits begins, and its length."""
    return piece * cells, cells


@body
def place_beside(place, hits, i, bit, matrix, last, first, size):
    """Return the place of the pixel that a bit stands for, beside that of hit i, in a piece's table of last hits."""
    return first + beside(place, bit, matrix.stride)


# ------------------------------------------------------------------------------------- a hash table of pixels with hits
PLACES = 2  # of a table for each hit: half of them stay free, so that a search is short


@body
def hashed_table(piece, begin, cells):
    """`table_of` with room for the hits of the piece, whatever number of pixels there are."""
    return PLACES * begin[piece], PLACES * (begin[piece + 1] - begin[piece])


@body
def mixed(bits):
    """Return 64 bits that each depend on all of the given ones (the end of MurmurHash3)."""
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return bits ^ (bits >> np.uint64(33))


@body
def hashed_place(place, hits, i, bit, matrix, last, first, size):
    """`place_beside` in a hash table: the pixel's place, or a free one that is to be its; pixels are told by hits."""
    x, y = np.int64(hits.x[i]) + (bit & 3) - 1, np.int64(hits.y[i]) + (bit >> 2) - 1
    chip = np.int64(hits.chip[i]) if len(hits.chip) else np.int64(0)
    bits = mixed(mixed(mixed(np.uint64(x)) ^ np.uint64(y)) ^ np.uint64(chip))
    at = np.int64(((bits >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))
    while True:
        j = last[first + at]
        if j == FREE:
            return first + at
        j = CLOSED - j if j < 0 else j
        is_chip = len(hits.chip) == 0 or np.int64(hits.chip[j]) == chip
        if is_chip and np.int64(hits.x[j]) == x and np.int64(hits.y[j]) == y:
            return first + at
        at = at + 1 if at + 1 < size else np.int64(0)


HASHED = {"table_of": hashed_table, "place_beside": hashed_place}
