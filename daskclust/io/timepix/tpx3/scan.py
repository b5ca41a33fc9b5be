"""One pass over the bytes of a Timepix3 file, and where each stretch of words begins.

The pass divides the words into cells: runs of words that can be decoded alone, because every time in a cell is near its
reference time. What is kept of a cell is one row of a table (`CELL`): where it begins, how many words and hits it has,
and the first and last time of its hits.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import word_at
from daskclust.io.timepix.tpx3.state import (
    AT_CHIP,
    DELAY,
    DONE,
    IS_TIMED,
    LATEST,
    LEAST,
    LEFT,
    NEAR,
    PHASE,
    POS,
    ROWS,
    TOP,
    enter_chunk,
    note_order,
    take_word,
)
from daskclust.io.timepix.tpx3.words import (
    PIXEL,
    PIXEL_BITS,
    TDC,
    TIME_LOW,
    column_phase,
    pixel_ticks,
    shortest,
    ticks_after,
)

GROUP = 16  # words that are looked at together
FEW = 64  # words: a cell that has so many ends at a time that is not NEAR its reference
FAR = 1 << 28  # ticks (0.4 s): a cell ends here however short it is

# Columns of the table of cells: the byte of the first word, how many bytes of its chunk remain there, the chip; numbers
# of words, hits and TDC words; the reference time (the first in the cell), and the range of the times of hits.
BEGIN, REST, CHIP, WORDS, HITS, TDCS, REFERENCE, FIRST, LAST, HAS_TIME = range(10)
CELL = 10


@body
def open_cell(state, cells, place, left):
    """End the present cell, and begin one at a word, with so many bytes left of its chunk."""
    row = state[ROWS] - 1
    if row < 0 or cells[row, WORDS] > 0:
        row += 1
        state[ROWS] = row + 1
    cells[row, BEGIN] = place
    cells[row, REST] = left
    cells[row, CHIP] = state[AT_CHIP]
    cells[row, WORDS] = 0
    cells[row, HITS] = 0
    cells[row, TDCS] = 0
    cells[row, REFERENCE] = state[LATEST]
    cells[row, FIRST] = np.int64(1) << np.int64(62)
    cells[row, LAST] = -(np.int64(1) << np.int64(62))
    cells[row, HAS_TIME] = state[IS_TIMED]


@body
def scan_group(data, state, counts, chips, cells, bound):
    """Take the next `GROUP` words if they are hits at times near the cell's reference; return whether they were."""
    begin = state[POS]
    row = state[ROWS] - 1
    latest = state[LATEST]
    phase = state[PHASE]
    odd = np.uint64(0)
    low = np.int64(1) << np.int64(60)
    high = -low
    least = low
    for j in range(GROUP):
        word = word_at(data, begin + 8 * j)
        odd |= (word >> np.uint64(60)) ^ np.uint64(0xB)
        away = shortest(pixel_ticks(word) - latest, PIXEL_BITS)
        least = min(least, away)
        away += column_phase(word, phase)
        low = min(low, away)
        high = max(high, away)
    low += latest
    high += latest
    reference = cells[row, REFERENCE]
    taken = odd == 0 and low - reference > -NEAR and high - reference < NEAR
    if taken:
        top = max(state[TOP], high)
        if top - low > min(bound, state[DELAY]):
            for j in range(GROUP):
                note_order(latest + ticks_after(word_at(data, begin + 8 * j), latest, phase), state, counts, bound)
        final = pixel_ticks(word_at(data, begin + 8 * (GROUP - 1)))
        state[TOP] = top
        state[LATEST] = latest + shortest(final - latest, PIXEL_BITS)
        state[LEAST] = min(state[LEAST], latest + least)
        state[POS] = begin + 8 * GROUP
        state[LEFT] -= 8 * GROUP
        counts[PIXEL] += GROUP
        chips[state[AT_CHIP]] += GROUP
        cells[row, WORDS] += GROUP
        cells[row, HITS] += GROUP
        cells[row, FIRST] = min(cells[row, FIRST], low)
        cells[row, LAST] = max(cells[row, LAST], high)
    return taken


@body
def scan_word(data, state, counts, chips, lows, jumps, cells, bound):
    """Take the next word into the present cell, or into a new one where its time is far from the reference."""
    place, left = state[POS], state[LEFT]
    kind, t = take_word(word_at(data, place), state, counts, lows, jumps, bound)
    row = state[ROWS] - 1
    if kind in (PIXEL, TDC, TIME_LOW):
        away = abs(t - cells[row, REFERENCE])
        if cells[row, HAS_TIME] == 1 and (away >= FAR or (away >= NEAR and cells[row, WORDS] >= FEW)):
            open_cell(state, cells, place, left)
            row = state[ROWS] - 1
        if cells[row, HAS_TIME] == 0:
            cells[row, HAS_TIME] = 1
            cells[row, REFERENCE] = t
        if kind == PIXEL:
            chips[state[AT_CHIP]] += 1
            cells[row, HITS] += 1
            cells[row, FIRST] = min(cells[row, FIRST], t)
            cells[row, LAST] = max(cells[row, LAST], t)
        cells[row, TDCS] += np.int64(kind == TDC)
    cells[row, WORDS] += 1


@kernel
def scan(i, data, state, counts, chips, lows, jumps, cells, cell_words, bound):
    """Go on with the pass until the table of cells is full; `DONE` at the end of the data."""
    room = len(cells) - GROUP - 4
    if state[ROWS] == 0:
        open_cell(state, cells, state[POS], state[LEFT])
    while state[DONE] == 0 and state[ROWS] < room:
        if state[LEFT] == 0:
            waits, follows = enter_chunk(data, state, counts, True, False)
            if waits:
                state[DONE] = 1
            elif not follows:
                open_cell(state, cells, state[POS], state[LEFT])
        while state[LEFT] > 0 and state[ROWS] < room:
            row = state[ROWS] - 1
            free = cell_words - cells[row, WORDS]
            if free <= 0:
                open_cell(state, cells, state[POS], state[LEFT])
            elif (
                state[LEFT] < 8 * GROUP
                or free < GROUP
                or cells[row, HAS_TIME] == 0
                or not scan_group(data, state, counts, chips, cells, bound)
            ):
                for _ in range(min(state[LEFT] >> 3, free, GROUP)):
                    scan_word(data, state, counts, chips, lows, jumps, cells, bound)
