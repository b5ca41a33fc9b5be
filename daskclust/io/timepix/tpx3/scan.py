"""One pass over the bytes of a Timepix3 file: chunks, kinds of words, extended times, and where each stretch begins.

The pass divides the words into cells: runs of words that can be decoded alone, because every time in a cell is near its
reference time. What is kept of a cell is one row of a table (`CELL`): where it begins, how many words and hits it has,
and the first and last time of its hits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import word_at
from daskclust.io.timepix.tpx3.words import (
    CONTROL,
    COUNT_FB,
    KINDS,
    MAGIC,
    PIXEL,
    PIXEL_BITS,
    TDC,
    TDC_BITS,
    TDC_RANGE,
    TDC_STEPS,
    TIME_HIGH,
    TIME_LOW,
    UNKNOWN,
    column_phase,
    kind_of,
    low_ticks,
    pixel_ticks,
    shortest,
    tdc_ticks,
    ticks_after,
)

GROUP = 16  # words that are looked at together
NEAR = 1 << 26  # ticks (0.1 s): a cell ends at a time that is farther from its reference, if it has FEW words
FEW = 64
FAR = 1 << 28  # ticks (0.4 s): a cell ends here however short it is

# Columns of the table of cells: the byte of the first word, how many bytes of its chunk remain there, the chip; numbers
# of words, hits and TDC words; the reference time (the first in the cell), and the range of the times of hits.
BEGIN, REST, CHIP, WORDS, HITS, TDCS, REFERENCE, FIRST, LAST, HAS_TIME = range(10)
CELL = 10

# The state of the pass. RESUME: byte at which to go on when the chunk ends, or -1; LATEST: time of the last timed word;
# SHIFT: what to subtract from TDC and global times, -1 while unknown; TOP: the largest time of a hit so far; LEAST: the
# smallest of any word; DELAY: the largest TOP - time of a hit; BASE: what to add to all times, where IS_ABSOLUTE;
# PHASE: see `column_phase`; LATEST and LEAST are without it. AWAY: global time less that of the words; RESTARTS:
# whether words follow global time where it jumps; MOVED: the sum of these jumps.
(
    POS, LEFT, AT_CHIP, RESUME, IS_TIMED, LATEST, SHIFT, TOP, LEAST, DELAY, IS_ABSOLUTE, BASE, ROWS, DONE, PHASE, AWAY,
    RESTARTS, MOVED,
) = range(18)  # fmt: skip
STATE = 18

# Counts, after those of the kinds of words.
CHUNKS, CUT, SKIPPED, TRUNCATED, LATE, ERRORS, JUMPED = range(KINDS, KINDS + 7)
COUNTS = KINDS + 7

# Of each chip's last low word of global time: whether there is one, its ticks, its time without MOVED, that of the one
# before (its own, of the first), and whether it is earlier than that one.
IS_THERE, LOW, TIME, BEFORE, IS_BACK = range(5)
LOWS = 5

# Of each jump of global time: hits before it in the file, global time before and after it; of so many jumps.
JUMP = 3
MOST_JUMPS = 100


Ints = npt.NDArray[np.int64]


def new_tables(places: int, phase: int, restarts: bool) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the state of a pass that has not begun, and its counts, low words of chips, and jumps of global time."""
    state, counts = np.zeros(places, dtype=np.int64), np.zeros(COUNTS, dtype=np.int64)
    state[[RESUME, SHIFT]] = -1
    state[[PHASE, RESTARTS]] = phase, restarts
    state[[TOP, LEAST]] = -(1 << 62), 1 << 62
    lows, jumps = np.zeros((256, LOWS), dtype=np.int64), np.zeros((MOST_JUMPS, JUMP), dtype=np.int64)
    return state, counts, lows, jumps


def named_counts(counts: Ints) -> dict[str, int]:
    """Return counts by the names of attributes."""
    places = {
        "n_pixel": PIXEL, "n_tdc": TDC, "n_tdc_errors": ERRORS, "n_control": CONTROL, "n_count_fb": COUNT_FB,
        "n_unknown": UNKNOWN, "n_chunks": CHUNKS, "n_chunks_cut": CUT, "n_bytes_skipped": SKIPPED,
        "n_bytes_truncated": TRUNCATED, "n_late": LATE,
        "n_clock_jumps": JUMPED,
    }  # fmt: skip
    named = {name: int(counts[place]) for name, place in places.items()}
    return named | {"n_global_time": int(counts[TIME_LOW] + counts[TIME_HIGH])}


@body
def is_header(data, place):
    """Say whether a header, or the end of the data, is at a byte; of a header cut short all that is there counts."""
    there = min(np.int64(4), len(data) - place)
    same = there >= 0
    for k in range(there):
        if data[place + k] != np.uint8((MAGIC >> (8 * k)) & 0xFF):
            same = False
    return same


@body
def chunk_size(data, place):
    """Return the size in bytes that a header claims for the words after it."""
    return np.int64(data[place + 6]) | (np.int64(data[place + 7]) << np.int64(8))


@body
def find_header(data, place, must_fit):
    """Return the first byte from `place` on where a header stands at whose chunk's end is another, or the data's end.

    Without `must_fit` a header whose chunk goes on beyond the data will do. If there is none, the data's end.
    """
    found = np.int64(len(data))
    while place + 8 <= len(data):
        if data[place] == np.uint8(MAGIC & 0xFF) and is_header(data, place):
            end = place + 8 + chunk_size(data, place)
            fits = not must_fit if end > len(data) else must_fit and is_header(data, end)
            if fits:
                found = place
                break
        place += 1
    return found


@body
def next_header(data, place, unclaimed):
    """Return where to go on from `place`; bytes from `unclaimed` on are no chunk's, so there any header will do."""
    found = find_header(data, place, True)
    if found == len(data):
        found = find_header(data, unclaimed, False)
    return found


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
def enter_chunk(data, state, counts, cells):
    """Go on to the words of the next chunk; count what is no chunk."""
    size = np.int64(len(data))
    place = state[POS]
    if state[RESUME] >= 0:
        place = state[RESUME]
        state[RESUME] = -1
        state[POS] = place
        open_cell(state, cells, state[POS], state[LEFT])
    if size - place < 8:
        counts[TRUNCATED] += size - place
        state[POS] = size
        state[DONE] = 1
    elif not is_header(data, place):
        found = next_header(data, place, place)
        counts[SKIPPED] += found - place
        state[POS] = found
        open_cell(state, cells, state[POS], state[LEFT])
    else:
        begin = place + 8
        claimed = chunk_size(data, place)
        end = begin + claimed
        counts[CHUNKS] += 1
        state[AT_CHIP] = np.int64(data[place + 4])
        state[POS] = begin
        if end > size or claimed % 8 != 0 or not is_header(data, end):
            counts[CUT] += 1
            found = end
            if end > size or not is_header(data, end):
                found = next_header(data, begin, min(end, size))
                end = min(end, found)
            counts[SKIPPED] += found - end
            counts[TRUNCATED] += (end - begin) % 8
            state[RESUME] = found
            claimed = (end - begin) - (end - begin) % 8
        state[LEFT] = claimed
        if state[RESUME] >= 0:
            open_cell(state, cells, state[POS], state[LEFT])


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
def note_order(t, state, counts, bound):
    """Compare the time of a hit with the largest so far."""
    if t >= state[TOP]:
        state[TOP] = t
    else:
        delay = state[TOP] - t
        state[DELAY] = max(state[DELAY], delay)
        if delay > bound:
            counts[LATE] += 1


@body
def extended(word, kind, state):
    """Return the time of a timed word in ticks, a hit's without the phase of its column; let the next one follow it."""
    latest = state[LATEST]
    if kind == PIXEL:
        raw = pixel_ticks(word)
        t = latest + shortest(raw - latest, PIXEL_BITS)
        if state[IS_TIMED] == 0:
            t = raw
    else:
        raw = tdc_ticks(word) if kind == TDC else low_ticks(word)
        if state[IS_TIMED] == 0:
            t = raw
            state[SHIFT] = 0
        elif state[SHIFT] < 0:
            # The first word that tells more than a pixel: it says which of the ranges of pixel time this is.
            t = latest + shortest(raw - latest, PIXEL_BITS)
            state[SHIFT] = (raw - t) & np.int64(TDC_RANGE - 1)
        else:
            t = latest + shortest(raw - state[SHIFT] - latest, TDC_BITS)
    state[IS_TIMED] = 1
    state[LATEST] = t
    state[LEAST] = min(state[LEAST], t)
    return t


@body
def note_global(word, kind, state, counts, lows, jumps):
    """Learn the absolute time from the first low and high word of one chip, and jumps of the clock from later ones."""
    chip = state[AT_CHIP]
    if kind == TIME_LOW:
        t = state[LATEST] - state[MOVED]
        lows[chip, BEFORE] = lows[chip, TIME] if lows[chip, IS_THERE] == 1 else t
        lows[chip, IS_THERE] = 1
        lows[chip, LOW] = low_ticks(word)
        lows[chip, TIME] = t
        lows[chip, IS_BACK] = np.int64(t < lows[chip, BEFORE] - NEAR)
    elif lows[chip, IS_THERE] == 1:
        told = (np.int64((word >> np.uint64(16)) & np.uint64(0xFFFF)) << np.int64(TDC_BITS)) + lows[chip, LOW]
        if state[IS_ABSOLUTE] == 0:
            state[IS_ABSOLUTE] = 1
            state[BASE] = told - lows[chip, TIME]
        away = told - (lows[chip, TIME] + state[MOVED] + state[BASE])
        if away != state[AWAY] or lows[chip, IS_BACK] == 1:
            k = counts[JUMPED]
            if k < len(jumps):
                jumps[k, 0] = counts[PIXEL]
                jumps[k, 1] = lows[chip, BEFORE] + state[MOVED] + state[BASE] + state[AWAY]
                jumps[k, 2] = told
            counts[JUMPED] += 1
            lows[chip, IS_BACK] = 0
            if state[RESTARTS] == 1:
                state[LATEST] += away
                state[MOVED] += away
                state[TOP] = state[LATEST]
            else:
                state[AWAY] = away


@body
def take_word(word, state, counts, lows, jumps, bound):
    """Count the next word, and let the clock follow it; return what it is, and its time (0 where it has none)."""
    kind = kind_of(word)
    counts[kind] += 1
    t = np.int64(0)
    if kind == PIXEL:
        t = extended(word, kind, state) + column_phase(word, state[PHASE])
        note_order(t, state, counts, bound)
    elif kind == TDC:
        t = extended(word, kind, state)
        fine = (word >> np.uint64(5)) & np.uint64(0xF)
        counts[ERRORS] += np.int64(fine < 1 or fine > TDC_STEPS)
    elif kind == TIME_LOW:
        t = extended(word, kind, state)
    if kind in (TIME_LOW, TIME_HIGH):
        note_global(word, kind, state, counts, lows, jumps)
    state[POS] += 8
    state[LEFT] -= 8
    return kind, t


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
            enter_chunk(data, state, counts, cells)
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
