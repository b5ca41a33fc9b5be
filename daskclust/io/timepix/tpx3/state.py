"""The state machine of Timepix3 bytes: chunks and words one after the other, in a file and from a running readout.

`enter_chunk` goes from the words of one chunk to those of the next, `take_word` lets the clock follow a word.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from daskclust.core.device.kernels import body
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
)

NEAR = 1 << 26  # ticks (0.1 s): times that are farther from each other are not near

# The state. POS: the next byte; LEFT: bytes of words that remain in the chunk; BEHIND: bytes to pass over after these;
# IS_LOST: whether a header is to be looked for; LATEST: time of the last timed word; SHIFT: what to subtract from TDC
# and global times, -1 while unknown; TOP: the largest time of a hit so far; LEAST: the smallest of any word; DELAY: the
# largest TOP - time of a hit; BASE: what to add to all times, where IS_ABSOLUTE; START: what BASE was when the first
# hit came; PHASE: see `column_phase`; LATEST and LEAST are without it. AWAY: global time less that of the words;
# RESTARTS: whether words follow global time where it jumps; MOVED: the sum of these jumps. ROWS, DONE: see `scan`.
(
    POS, LEFT, AT_CHIP, BEHIND, IS_LOST, IS_TIMED, LATEST, SHIFT, TOP, LEAST, DELAY, IS_ABSOLUTE, BASE, START, PHASE,
    AWAY, RESTARTS, MOVED, ROWS, DONE,
) = range(20)  # fmt: skip
STATE = 20

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


def new_tables(phase: int, restarts: bool) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the state before any bytes, and its counts, low words of chips, and jumps of global time."""
    state, counts = np.zeros(STATE, dtype=np.int64), np.zeros(COUNTS, dtype=np.int64)
    state[SHIFT] = -1
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
def seek_header(data, state, counts, is_end):
    """Skip to a header at whose chunk's end is another; return whether that needs bytes that are not there yet."""
    size = np.int64(len(data))
    place = state[POS]
    waits = not is_end
    if is_end:
        place = next_header(data, place, place)
    else:
        found = False
        while place + 8 <= size and not found:
            end = place + 8 + chunk_size(data, place)
            waits = end + 4 > size
            found = is_header(data, place) and (waits or is_header(data, end))
            place += np.int64(not found)
        waits = waits or not found
    counts[SKIPPED] += place - state[POS]
    state[POS] = place
    state[IS_LOST] = np.int64(waits)
    return waits


@body
def enter_chunk(data, state, counts, is_end, believes):
    """Go on to the words of the next chunk, and count what is none.

    Return whether it needs bytes that are not there, and whether the chunk begins right here with the words it claims.
    The size in a header is taken as it is (`believes`), as of a readout, where what follows may not have come yet; or
    the words end at the next header, as of a file.
    """
    size = np.int64(len(data))
    follows = state[BEHIND] == 0
    if not follows:
        behind = min(state[BEHIND], size - state[POS])
        counts[TRUNCATED] += behind * np.int64(believes)
        state[POS] += behind
        state[BEHIND] -= behind
    place = state[POS]
    waits = False
    if size - place < 8:
        waits = True
        if is_end:
            counts[TRUNCATED] += size - place
            state[POS] = size
    elif believes and state[IS_LOST] == 1:
        follows = False
        waits = seek_header(data, state, counts, is_end)
    elif is_header(data, place):
        begin = place + 8
        claimed = chunk_size(data, place)
        end = begin + claimed
        counts[CHUNKS] += 1
        state[AT_CHIP] = np.int64(data[place + 4])
        state[POS] = begin
        state[LEFT] = claimed
        fits = believes or (end <= size and is_header(data, end))
        if not fits or claimed & np.int64(7) != 0:
            follows = False
            counts[CUT] += 1
            found = end
            if not fits:
                found = next_header(data, begin, min(end, size))
                end = min(end, found)
            state[LEFT] = (end - begin) - (end - begin) % 8
            state[BEHIND] = found - begin - state[LEFT]
            if not believes:
                counts[SKIPPED] += found - end
                counts[TRUNCATED] += (end - begin) % 8
    else:
        follows = False
        if believes:
            state[IS_LOST] = 1
            counts[CUT] += np.int64(counts[CHUNKS] > 0)
        else:
            seek_header(data, state, counts, True)
    return waits, follows


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
