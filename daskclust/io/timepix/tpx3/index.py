"""What is known of a Timepix3 file after one pass over it, and its division into windows of time.

A window holds the hits from one time to the next, whatever their place in the file. It lists the cells that have such
hits, so hits that came early or late are in the right one however large the disorder of the readout is.
"""

from __future__ import annotations

import functools
import logging
import mmap
import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.device.timesort import TICK, order_of_ticks
from daskclust.io.files import check_file
from daskclust.io.timepix.tpx3 import scan as table
from daskclust.io.timepix.tpx3 import state as places
from daskclust.io.timepix.tpx3.decode import count_hits
from daskclust.io.timepix.tpx3.jumps import jumps_told, tell_jumps
from daskclust.io.timepix.tpx3.scan import scan
from daskclust.io.timepix.tpx3.state import Ints, named_counts, new_tables
from daskclust.io.timepix.tpx3.words import PIXEL_RANGE, TDC_RANGE

logger = logging.getLogger(__name__)

CELL_WORDS = 4096
_CELLS_AT_ONCE = 1 << 12
_LARGE = 1 << 28
# Bits for the time between the first hits of a window's cells, and for the chip: with what a cell spans (2**29 ticks) a
# hit's time in the window then takes one bit more, which a record has.
_SPAN_AND_CHIP_BITS = 37


def give_back(data: npt.NDArray[np.uint8]) -> None:
    """Let the pages of a large mapped file go: a worker would count them as memory of its own."""
    memory = getattr(data.base, "obj", None)
    if len(data) > _LARGE and isinstance(memory, mmap.mmap):
        memory.madvise(mmap.MADV_DONTNEED)


class FileState(NamedTuple):
    """A file as it was when it was indexed: whoever reads it later checks that it is the same."""

    path: str
    size: int
    changed: int
    number: int

    @classmethod
    def of(cls, path: str) -> FileState:
        """Look at a file."""
        found = check_file(path, "give one .tpx3 file")
        return cls(os.path.abspath(path), found.st_size, found.st_mtime_ns, found.st_ino)

    def data(self) -> npt.NDArray[np.uint8]:
        """Map the file's bytes into memory, read-only."""
        with open(self.path, "rb") as stream:
            found = os.fstat(stream.fileno())
            if (found.st_size, found.st_mtime_ns, found.st_ino) != self[1:]:
                raise ValueError(
                    f"{self.path} has changed since it was opened (from {self.size} to {found.st_size} bytes); "
                    "open it again"
                )
            return np.frombuffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.uint8)


@dataclass(frozen=True)
class Index:
    """What one pass over a file tells. Times are in ticks of 1.5625 ns."""

    file: FileState
    cells: Ints  # the table of cells, (cells, CELL)
    counts: dict[str, int]  # by the names of attributes
    chips: Ints  # hits of each of 256 chips
    shift: int  # to subtract from TDC and global times
    base: int  # to add to all times, so that none is negative
    jumps: Ints  # of global time, (k, JUMP)
    delay: int  # by which the hit that is most out of order comes late
    phase: int  # 15 where times are corrected by the phase of the column's clock, else 0

    @property
    def attrs(self) -> dict[str, Any]:
        """Counts, and where global time jumps, as attributes of a data set."""
        return self.counts | jumps_told(self.jumps)

    @property
    def n_hits(self) -> int:
        """Number of hits."""
        return self.counts["n_pixel"]

    @functools.cached_property
    def chip_bits(self) -> int:
        """Bits that the largest chip number takes."""
        used = np.flatnonzero(self.chips)
        return int(used[-1]).bit_length() if len(used) else 0


def index_file(
    path: str, disorder: float, phase: int = 0, cell_words: int = CELL_WORDS, tell: bool = True, restarts: bool = False
) -> Index:
    """Return the index of a file, one of the last few; late hits and jumps of global time are logged if `tell`."""
    index = _index(FileState.of(path), min(int(disorder / TICK), 1 << 60), phase, cell_words, restarts)
    late = index.counts["n_late"]
    if late and tell:
        logger.warning(
            "%s: %d of %d hits are later than the bound of %g ns allows; they are sorted all the same; "
            "a disorder of %g ns covers them",
            path, late, index.n_hits, disorder, index.delay * TICK,
        )  # fmt: skip
    if len(index.jumps) and tell:
        tell_jumps(path, index.counts["n_clock_jumps"], index.jumps[0], restarts)
    return index


@functools.lru_cache(maxsize=8)
def _index(file: FileState, bound: int, phase: int, cell_words: int, restarts: bool) -> Index:
    state, counts, lows, jumps = new_tables(phase, restarts)
    chips, cells = np.zeros(256, dtype=np.int64), np.zeros((_CELLS_AT_ONCE, table.CELL), dtype=np.int64)
    data, done = file.data(), []
    while not state[places.DONE]:
        scan.run(1, data, state, counts, chips, lows, jumps, cells, cell_words, bound)
        full = int(state[places.ROWS]) - 1  # the last goes on
        done.append(cells[:full].copy())
        cells[0] = cells[full]
        state[places.ROWS] = 1
        give_back(data)
    if counts[places.CHUNKS] == 0:
        raise ValueError(
            f"{file.path} has no chunk of Timepix3 words: it begins with {bytes(data[:8])!r}, and no header (the "
            f"bytes 'TPX3', chip, mode, size) stands in its {file.size} bytes; give a raw .tpx3 file"
        )
    found = np.concatenate([*done, cells[:1]])
    shift, delay = max(int(state[places.SHIFT]), 0), int(state[places.DELAY])
    return Index(
        file, found[found[:, table.WORDS] > 0], named_counts(counts), chips, shift, _base(state),
        jumps[: counts[places.JUMPED]], delay, phase,
    )  # fmt: skip


def _base(state: Ints) -> int:
    """Return what to add to all times: what global time, else TDC time, tells; never a negative time."""
    shift, unit = int(state[places.SHIFT]), TDC_RANGE
    base = 0
    if state[places.IS_ABSOLUTE]:
        base = int(state[places.BASE])
    elif shift >= 0:
        base = shift
    else:
        unit = PIXEL_RANGE
    least = int(state[places.LEAST]) + base
    return base if least >= 0 or not state[places.IS_TIMED] else base + -(least // unit) * unit


@dataclass(frozen=True)
class Windows:
    """Windows of time, in order, and the cells that each needs."""

    bounds: Ints  # first time, and the one after the last, in ticks: (windows, 2)
    cells: Ints  # rows of the table of cells, in the order of the file within a window, several times where needed
    parts: Ints  # where the cells of each begin, and the number of these
    starts: Ints  # hits before each, and all hits

    def __len__(self) -> int:
        return len(self.bounds)

    def cut(self, first: int, last: int) -> Windows:
        """Return windows `first` to `last` - 1, for use elsewhere."""
        parts, starts = (places[first : last + 1] for places in (self.parts, self.starts))
        cells = self.cells[parts[0] : parts[-1]]
        return Windows(self.bounds[first:last], cells, parts - parts[0], starts - starts[0])


def divide(index: Index, data: npt.NDArray[np.uint8], hits: int) -> Windows:
    """Divide the hits into windows of about `hits`.

    Windows are larger where the disorder is so large that they would need many more words than they have hits.
    """
    held = index.cells[index.cells[:, table.HITS] > 0]
    order = order_of_ticks(held[:, table.FIRST])
    first, before = held[order, table.FIRST], np.cumsum(held[order, table.HITS]) - held[order, table.HITS]
    while True:
        borders = _borders(first, before, hits, 1 << (_SPAN_AND_CHIP_BITS - index.chip_bits))
        low = np.searchsorted(borders, held[:, table.FIRST], side="right") - 1
        high = np.searchsorted(borders, held[:, table.LAST], side="right") - 1
        touched = high - low + 1
        work = int((touched * held[:, table.WORDS]).sum())
        if len(borders) == 1 or work <= 2 * int(held[:, table.WORDS].sum()) or hits > index.n_hits:
            break
        hits *= 2
    return _windows(data, held, borders, low, touched, index.phase)


def _borders(first: Ints, before: Ints, hits: int, longest: int) -> Ints:
    """Return the times at which windows begin: first times of cells, one for every `hits`, none too far apart."""
    ends = np.append(np.flatnonzero(np.diff(before // hits)) + 1, len(first))
    after = ends[np.searchsorted(ends, np.arange(len(first)), side="right")]
    after = np.minimum(after, np.searchsorted(first, first + longest, side="right")).tolist()
    chosen, place = [], 0
    while place < len(first):
        chosen.append(place)
        place = after[place]
    return np.unique(first[chosen])


def _windows(data: npt.NDArray[np.uint8], held: Ints, borders: Ints, low: Ints, touched: Ints, phase: int) -> Windows:
    """List the cells of each window, of which one touches so many from window `low` on, and count its hits."""
    offset = np.arange(touched.sum()) - np.repeat(np.cumsum(touched) - touched, touched)
    window = np.repeat(low, touched) + offset
    order = order_of_ticks(window)
    cells, window = np.repeat(held, touched, axis=0)[order], window[order]
    ends = np.append(borders[1:], np.int64(1) << np.int64(62))
    counts = np.empty(len(cells), dtype=np.int64)
    for first in range(0, len(cells), _CELLS_AT_ONCE):
        part = slice(first, first + _CELLS_AT_ONCE)
        counts[part] = count_hits(data, cells[part], borders[window[part]], ends[window[part]], phase)
        give_back(data)
    kept = counts > 0
    cells, window, counts = cells[kept], window[kept], counts[kept]
    full, parts = np.unique(window, return_index=True)
    bounds = np.empty((len(full), 2), dtype=np.int64)
    bounds[:, 0] = np.maximum(borders[full], np.minimum.reduceat(cells[:, table.FIRST], parts))
    bounds[:, 1] = np.minimum(ends[full], np.maximum.reduceat(cells[:, table.LAST], parts) + 1)
    starts = np.concatenate([[0], np.cumsum(np.add.reduceat(counts, parts))]).astype(np.int64)
    return Windows(bounds, cells, np.append(parts, len(cells)).astype(np.int64), starts)
