"""Windows of a Timepix3 file as sorted columns: words decoded, sorted by time, fields taken apart."""

from __future__ import annotations

import queue
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import word_at
from daskclust.core.device.radix import DIGIT, sort_records
from daskclust.core.device.threads import in_threads, thread_count
from daskclust.core.device.timesort import TICK
from daskclust.io.timepix.quad import on_quad
from daskclust.io.timepix.ticks import TOT_TICK
from daskclust.io.timepix.tpx3.scan import BEGIN, CHIP, FIRST, GROUP, HITS, LAST, REFERENCE, REST, WORDS
from daskclust.io.timepix.tpx3.state import Ints, chunk_size
from daskclust.io.timepix.tpx3.words import TDC, TDC_BITS, kind_of, pixel_at, shortest, tdc_ticks, ticks_after

# A record is all of a hit in 64 bits: time since the window began, chip, address, time over threshold. Sorting moves it
# as a whole, so nothing has to be looked up afterwards.
TOT_BITS, ADDRESS_BITS = 10, 16

_PIECES = 8  # a thread: windows are handed out in so many, as threads do not get on equally

DTYPES: dict[str, type[np.generic]] = {
    "x": np.uint16, "y": np.uint16, "toa": np.float64, "tot": np.float32, "chip": np.uint8,
}  # fmt: skip


class Setup(NamedTuple):
    """How fields become columns: ticks to add to times, bits of a chip number, the layout and gap, column phases."""

    base: int
    chip_bits: int
    is_quad: bool
    gap: int
    phase: int


@body
def next_stretch(data, walk):
    """Go to the next words of a cell that follow each other, in ``walk = place, bytes left, chip``."""
    place, left, chip = walk
    while left == 0 and place + 8 <= len(data):
        chip = np.int64(data[place + 4])
        left = chunk_size(data, place)
        place += 8
    return place, min(left, (len(data) - place) & np.int64(-8)), chip


@body
def record_of(word, since, chip, time_place):
    """Return the record of a pixel word; the bits of its chip are in place."""
    fields = ((word >> np.uint64(44)) & np.uint64(0xFFFF)) << np.uint64(TOT_BITS)
    return (since << time_place) | chip | fields | ((word >> np.uint64(20)) & np.uint64(0x3FF))


@body
def take_hits(data, cell, low, width, setup, records, n):
    """Append the records of a cell's hits from time `low` on, up to `low` + `width`; return how many there are then."""
    base = cell[REFERENCE] - low
    width = np.uint64(width)
    phase = setup.phase
    whole = False
    reference = cell[REFERENCE]
    words = cell[WORDS]
    walk = (cell[BEGIN], cell[REST], cell[CHIP])
    room = len(records) - 1
    chip_place = np.uint64(TOT_BITS + ADDRESS_BITS)
    time_place = np.uint64(TOT_BITS + ADDRESS_BITS + setup.chip_bits)
    while words > 0:
        place, left, chip = next_stretch(data, walk)
        m = min(left >> 3, words)
        if m <= 0:
            break
        high_bits = np.uint64(chip) << chip_place
        m = min(m, room - n)
        if m >= GROUP:
            m = GROUP
            odd = np.uint64(0)
            last = np.uint64(0)
            for j in range(GROUP):
                word = word_at(data, place + 8 * j)
                since = np.uint64(base + ticks_after(word, reference, phase))
                records[n + j] = record_of(word, since, high_bits, time_place)
                odd |= (word >> np.uint64(60)) ^ np.uint64(0xB)
                last = max(last, since)
            whole = odd == 0 and last < width
        if m < GROUP or not whole:
            for j in range(m):
                word = word_at(data, place + 8 * j)
                since = np.uint64(base + ticks_after(word, reference, phase))
                records[n] = record_of(word, since, high_bits, time_place)
                n += np.int64((word >> np.uint64(60) == np.uint64(0xB)) & (since < width))
        else:
            n += GROUP
        if m == 0:
            break
        words -= m
        walk = (place + 8 * m, left - 8 * m, chip)
    return n


@body
def put_hit(columns, k, address, ticks, counts, number, is_quad, gap):
    """Write a hit to row `k` of the columns: its pixel, its time, its ToT in ticks of 25 ns, and its chip."""
    x, y, toa, tot, chip = columns
    column, row = pixel_at(address)
    if is_quad:
        column, row = on_quad(column, row, number, np.int32(gap))
    x[k] = np.uint16(column)
    y[k] = np.uint16(row)
    toa[k] = np.float64(ticks) * TICK
    tot[k] = np.float32(counts) * np.float32(TOT_TICK)
    chip[k] = np.uint8(number)


@body
def spread(records, n, low, setup, start, columns):
    """Write `n` sorted records to the columns, from row `start` on."""
    tot_mask = np.uint64((1 << TOT_BITS) - 1)
    chip_mask = (np.uint64(1) << np.uint64(setup.chip_bits)) - np.uint64(1)
    time_place = np.uint64(TOT_BITS + ADDRESS_BITS + setup.chip_bits)
    begin = low + setup.base
    for k in range(n):
        record = records[k]
        number = np.int32((record >> np.uint64(TOT_BITS + ADDRESS_BITS)) & chip_mask)
        ticks, counts = begin + np.int64(record >> time_place), np.int32(record & tot_mask)
        put_hit(columns, start + k, record >> np.uint64(TOT_BITS), ticks, counts, number, setup.is_quad, setup.gap)


@kernel
def read_window(i, data, cells, bounds, parts, starts, setup, scratch, columns):
    """Decode, sort and write window i."""
    records, other, digits = scratch
    low = bounds[i, 0]
    width = bounds[i, 1] - low
    n = np.int64(0)
    for part in range(parts[i], parts[i + 1]):
        n = take_hits(data, cells[part], low, width, setup, records, n)
    bits = np.int64(0)
    while (width - 1) >> bits > 0:
        bits += 1
    moved = sort_records(records, other, n, TOT_BITS + ADDRESS_BITS + setup.chip_bits, bits, digits)
    n = min(n, starts[i + 1] - starts[i])
    spread(records if moved == 0 else other, n, low, setup, starts[i] - starts[0], columns)


def read_columns(data: npt.NDArray[np.uint8], windows: Any, setup: Setup) -> Mapping[str, npt.NDArray[Any]]:
    """Return the hits of windows as columns, sorted by time, and by place in the file where times are equal."""
    sizes = np.diff(windows.starts)
    columns = {name: np.empty(int(sizes.sum()), dtype=dtype) for name, dtype in DTYPES.items()}
    if not len(sizes):
        return columns
    threads = min(thread_count(), len(sizes))
    free: queue.SimpleQueue[tuple[npt.NDArray[Any], ...]] = queue.SimpleQueue()
    for _ in range(threads):
        records, other = np.empty((2, int(sizes.max()) + 1), dtype=np.uint64)
        free.put((records, other, np.empty(1 << DIGIT, dtype=np.int32)))
    tables = (data, windows.cells, windows.bounds, windows.parts, windows.starts, setup)
    pieces = min(len(sizes), _PIECES * threads)
    borders = [len(sizes) * k // pieces for k in range(pieces + 1)]

    def read(piece: int) -> None:
        scratch = free.get()
        read_window.prepared((*tables, scratch, tuple(columns.values())))(borders[piece], borders[piece + 1])
        free.put(scratch)

    in_threads(read, pieces, threads)
    return columns


# ------------------------------------------------------------------------------------------------- every word of a cell
@body
def visit(state, word, chip, context):
    """Bound to what a kernel does with a word of a cell; it returns its state."""
    return state


@body
def fold_words(data, cell, state, context):
    """Return the state after the visits of all words of a cell."""
    words = cell[WORDS]
    walk = (cell[BEGIN], cell[REST], cell[CHIP])
    while words > 0:
        place, left, chip = next_stretch(data, walk)
        m = min(left >> 3, words)
        if m <= 0:
            break
        j = np.int64(0)
        while j < m:
            state = visit(state, word_at(data, place + 8 * j), chip, context)
            j += 1
        words -= m
        walk = (place + 8 * m, left - 8 * m, chip)
    return state


@body
def count_hit(n, word, chip, context):
    """Count the word if it is a hit within bounds of time."""
    reference, low, high, phase = context
    t = reference + ticks_after(word, reference, phase)
    return n + np.int64((word >> np.uint64(60) == np.uint64(0xB)) & (t >= low) & (t < high))


@kernel
def count_part(i, data, cells, low, high, phase, found):
    """Count the hits of a cell within bounds of time; its `visit` is `count_hit`."""
    cell = cells[i]
    if cell[FIRST] >= low[i] and cell[LAST] < high[i]:
        found[i] = cell[HITS]
    else:
        found[i] = fold_words(data, cell, np.int64(0), (cell[REFERENCE], low[i], high[i], phase))


def count_hits(data: npt.NDArray[np.uint8], cells: Ints, low: Ints, high: Ints, phase: int) -> Ints:
    """Return how many hits each cell has from its time `low` on, before its `high`."""
    found = np.empty(len(cells), dtype=np.int64)
    count_part.bind(visit=count_hit).run(len(cells), data, cells, low, high, phase, found, grain=16)
    return found


@body
def take_trigger(n, word, chip, context):
    """Write the word as the n-th trigger, if it is a TDC word."""
    reference, shift, end, words_found, chip_found, ticks = context
    if kind_of(word) == TDC and n < end:
        words_found[n] = word
        chip_found[n] = np.uint8(chip)
        ticks[n] = reference + shortest(tdc_ticks(word) - shift - reference, TDC_BITS)
        n += 1
    return n


@kernel
def take_triggers(i, data, cells, starts, shift, words_found, chip_found, ticks):
    """Write the TDC words of cell i, their chips and their times in ticks; its `visit` is `take_trigger`."""
    cell = cells[i]
    context = (cell[REFERENCE], shift, starts[i + 1], words_found, chip_found, ticks)
    fold_words(data, cell, starts[i], context)
