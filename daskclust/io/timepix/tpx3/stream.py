"""Words of a running Timepix3 readout, decoded as they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.timesort import TICK
from daskclust.io.timepix.ticks import TOT_TICK
from daskclust.io.timepix.tpx3 import scan as table
from daskclust.io.timepix.tpx3.index import Ints, check_disorder, named_counts, new_tables
from daskclust.io.timepix.tpx3.jumps import check_on_reset
from daskclust.io.timepix.tpx3.scan import (
    AT_CHIP,
    BASE,
    CHUNKS,
    CUT,
    ERRORS,
    IS_ABSOLUTE,
    LEFT,
    POS,
    SHIFT,
    SKIPPED,
    TRUNCATED,
    chunk_size,
    extended,
    is_header,
    note_global,
    note_order,
)  # fmt: skip
from daskclust.io.timepix.tpx3.words import PIXEL, TDC, TDC_STEPS, TIME_HIGH, TIME_LOW, kind_of, pixel_at, word_at

# The state has more places: odd bytes at the end of the present chunk, whether a header is to be looked for, and what
# BASE was when the first hit came.
ODD, IS_LOST, START = range(table.STATE, table.STATE + 3)
STATE = table.STATE + 3


class Hits(NamedTuple):
    """Hits, and the triggers between them, in the order in which they came; times in ticks of 1.5625 ns do not wrap."""

    tick: npt.NDArray[np.int64]
    x: npt.NDArray[np.uint16]
    y: npt.NDArray[np.uint16]
    tot: npt.NDArray[np.float32]  # ns
    chip: npt.NDArray[np.uint8]
    trigger_tick: npt.NDArray[np.int64]  # the coarse time
    trigger_word: npt.NDArray[np.uint64]  # has the fine time, the input and the edge
    trigger_chip: npt.NDArray[np.uint8]  # in whose chunk it came


class WordDecoder:
    """Decode the bytes of a readout, given piece by piece, cut anywhere.

    On an undamaged stream hits are those of `daskclust.io.open_tpx3`, with two differences, as what follows is not
    known. Times are given before all is known that tells of multiples of 26.84 s: add `base` for those of `open_tpx3`;
    they are negative where the first hits come out of order across the wrap. And the size that a header claims is
    believed: where no header follows the chunk, bytes are skipped up to one whose chunk ends at another.
    """

    def __init__(self, *, disorder: float = 600_000.0, on_reset: Literal["continue", "restart"] = "continue") -> None:
        check_disorder(disorder)
        self._bound = int(disorder / TICK)
        self._tables = new_tables(STATE, 0, check_on_reset(on_reset))
        self._state, self._counts, _, self._jumps = self._tables
        self._rest = b""
        self._n_bytes = 0

    @property
    def counts(self) -> Mapping[str, int]:
        """What came so far, by the names in the attributes of `daskclust.io.open_tpx3`, and ``n_bytes``."""
        return named_counts(self._counts) | {"n_bytes": self._n_bytes}

    @property
    def jumps(self) -> Ints:
        """Where global time jumped so far, shape (k, 3): hits before it, global time before and after it in ticks."""
        return self._jumps[: self._counts[table.JUMPED]]

    @property
    def base(self) -> int | None:
        """Ticks to add for absolute times, as global time or TDC words tell; None while nothing tells."""
        if self._state[IS_ABSOLUTE]:
            return int(self._state[BASE])
        return int(self._state[SHIFT]) if self._state[SHIFT] >= 0 else None

    @property
    def start(self) -> int:
        """Ticks to add for times as global time before the first hit tells them, 0 where none came before it."""
        return int(self._state[START])

    def feed(self, data: bytes | bytearray | memoryview) -> Hits:
        """Decode more bytes."""
        return self._decode(data, is_end=False)

    def close(self) -> Hits:
        """Say that no more bytes come; what is left of a word is counted, and so are bytes that were no chunk."""
        return self._decode(b"", is_end=True)

    def _decode(self, data: bytes | bytearray | memoryview, *, is_end: bool) -> Hits:
        given = memoryview(data).cast("B")
        self._n_bytes += len(given)
        joined = given if not self._rest and len(given) else self._rest + bytes(given)
        bytes_ = np.frombuffer(joined, dtype=np.uint8)
        bytes_.setflags(write=False)
        most = len(bytes_) // 8 + 1
        types = (np.int64, np.uint16, np.uint16, np.float32, np.uint8, np.int64, np.uint64, np.uint8)
        columns: list[npt.NDArray[Any]] = [np.empty(most, dtype=dtype) for dtype in types]
        found = np.zeros(2, dtype=np.int64)
        self._state[POS] = 0
        decode_stream.run(1, bytes_, *self._tables, self._bound, is_end, tuple(columns[:5]), tuple(columns[5:]), found)
        self._rest = bytes(joined[int(self._state[POS]) :])
        n, m = int(found[0]), int(found[1])
        return Hits(*[column[:n] for column in columns[:5]], *[column[:m] for column in columns[5:]])


@body
def enter_next(data, state, counts, is_end):
    """Go on to the words of the next chunk; return whether that needs bytes that are not there yet."""
    size = np.int64(len(data))
    odd = min(state[ODD], size - state[POS])
    counts[TRUNCATED] += odd
    state[POS] += odd
    state[ODD] -= odd
    place = state[POS]
    waits = False
    if size - place < 8:
        waits = True
        if is_end:
            counts[TRUNCATED] += size - place
            state[POS] = size
    elif state[IS_LOST] == 1:
        waits = seek_header(data, state, counts, is_end)
    elif is_header(data, place):
        claimed = chunk_size(data, place)
        state[AT_CHIP] = np.int64(data[place + 4])
        state[LEFT] = claimed - claimed % 8
        state[ODD] = claimed % 8
        state[POS] = place + 8
        counts[CHUNKS] += 1
        counts[CUT] += np.int64(claimed % 8 != 0)
    else:
        state[IS_LOST] = 1
        counts[CUT] += np.int64(counts[CHUNKS] > 0)
    return waits


@body
def seek_header(data, state, counts, is_end):
    """Skip to a header at whose chunk's end is another; return whether that needs bytes that are not there yet."""
    size = np.int64(len(data))
    place = state[POS]
    waits = False
    unsure = np.int64(-1)  # the first header whose chunk goes on beyond the data
    while place + 8 <= size:
        if is_header(data, place):
            end = place + 8 + chunk_size(data, place)
            if end + 4 <= size or (is_end and end <= size):
                if is_header(data, end):
                    break
            elif not is_end:
                waits = True
                break
            elif unsure < 0:
                unsure = place
        place += 1
    if place + 8 > size:
        waits = not is_end
        if is_end:
            place = size if unsure < 0 else unsure
    counts[SKIPPED] += place - state[POS]
    state[POS] = place
    if not waits:
        state[IS_LOST] = 0
    return waits


@kernel
def decode_stream(i, data, state, counts, lows, jumps, bound, is_end, hits, triggers, found):
    """Decode all words that are complete; POS is where the next bytes go on."""
    tick, x, y, tot, chip = hits
    n = np.int64(0)
    m = np.int64(0)
    size = np.int64(len(data))
    waits = False
    while not waits:
        words = min(state[LEFT], size - state[POS]) >> 3
        for _ in range(words):
            word = word_at(data, state[POS])
            kind = kind_of(word)
            counts[kind] += 1
            if kind == PIXEL:
                t = extended(word, kind, state)
                note_order(t, state, counts, bound)
                tick[n] = t
                column, row = pixel_at(word >> np.uint64(44))
                x[n] = np.uint16(column)
                y[n] = np.uint16(row)
                tot[n] = np.float32(np.int32((word >> np.uint64(20)) & np.uint64(0x3FF))) * np.float32(TOT_TICK)
                chip[n] = np.uint8(state[AT_CHIP])
                n += 1
            elif kind == TDC:
                triggers[0][m] = extended(word, kind, state)
                triggers[1][m] = word
                triggers[2][m] = np.uint8(state[AT_CHIP])
                fine = (word >> np.uint64(5)) & np.uint64(0xF)
                counts[ERRORS] += np.int64(fine < 1 or fine > TDC_STEPS)
                m += 1
            elif kind in (TIME_LOW, TIME_HIGH):
                if kind == TIME_LOW:
                    extended(word, kind, state)
                note_global(word, kind, state, counts, lows, jumps)
                if counts[PIXEL] == 0:
                    state[START] = state[BASE]
            state[POS] += 8
            state[LEFT] -= 8
        if state[LEFT] > 0:
            waits = True
            if is_end:
                counts[CUT] += 1
                counts[TRUNCATED] += size - state[POS]
                state[POS] = size
                state[LEFT] = 0
        else:
            waits = enter_next(data, state, counts, is_end)
    found[0] = n
    found[1] = m
