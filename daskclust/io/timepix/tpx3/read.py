"""A Timepix3 file in pieces: which windows of time belong to a chunk, and how a worker reads one."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.checks import check_positive
from daskclust.core.device.threads import one_thread
from daskclust.core.device.timesort import TICK
from daskclust.core.run.graph import ChunkSteps
from daskclust.io.timepix.quad import LAYOUTS, QUAD_CHIPS, check_layout
from daskclust.io.timepix.tpx3.decode import DTYPES, Setup, read_columns
from daskclust.io.timepix.tpx3.index import CELL_WORDS, FileState, Index, Windows, divide, index_file
from daskclust.io.timepix.tpx3.jumps import check_on_reset
from daskclust.io.timepix.tpx3.state import Ints

WINDOW_HITS = 1 << 15  # measured: records of so many hits, twice, stay in a core's second-level cache
AUTO_HITS = 2_000_000
_CACHED_PIECES = 3


@dataclass(frozen=True)
class Piece:
    """What a worker needs to read one chunk: the file, and windows of time with the cells that they need."""

    file: FileState
    windows: Windows
    setup: Setup

    def read(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the columns of the chunk, by name."""
        return read_columns(self.file.data(), self.windows, self.setup)


@dataclass(frozen=True, eq=False)
class HitFile:
    """A file after one pass over it, to be read in chunks of about `chunks` hits (None: in one), window by window."""

    index: Index
    setup: Setup
    chunks: int | None
    window_hits: int

    @functools.cached_property
    def windows(self) -> Windows:
        """All windows."""
        return divide(self.index, self.index.file.data(), self.window_hits)

    @functools.cached_property
    def cuts(self) -> Ints:
        """The windows with which chunks begin, and the number of windows."""
        groups = self.windows.starts[:-1] // (self.chunks or max(self.index.n_hits, 1))
        return np.concatenate([[0], np.flatnonzero(np.diff(groups)) + 1, [len(self.windows)]])

    @property
    def starts(self) -> Ints:
        """The rows with which chunks begin, and the number of hits."""
        return self.windows.starts[self.cuts]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Hits of each chunk."""
        return tuple(np.diff(self.starts).tolist())

    def piece(self, number: int) -> Piece:
        """Return what is needed to read a chunk."""
        return Piece(self.index.file, self.windows.cut(self.cuts[number], self.cuts[number + 1]), self.setup)

    def whole(self) -> Piece:
        """Return what is needed to read all hits."""
        return Piece(self.index.file, self.windows, self.setup)

    def attrs(self, path: str) -> dict[str, Any]:
        """Return the attributes of the data set."""
        told: dict[str, Any] = {"field": "timepix", "source": path, "layout": LAYOUTS[int(self.setup.is_quad)]}
        if self.setup.is_quad:
            told["gap"] = self.setup.gap
        return told | self.index.attrs | {"disorder": self.index.delay * TICK}


def open_hits(
    path: str,
    *,
    layout: str,
    gap: int,
    disorder: float,
    phase_correction: bool,
    on_reset: str,
    chunks: int | None = None,
    cell_words: int | None = None,
    window_hits: int | None = None,
) -> HitFile:
    """Index a file, with the options of `daskclust.io.open_tpx3`; nothing is decoded yet."""
    check_layout(layout, gap)
    bound, restarts = check_positive("disorder", disorder, zero=True), check_on_reset(on_reset)
    wanted = min(window_hits or WINDOW_HITS, chunks or WINDOW_HITS)
    # Windows begin where cells do: smaller chunks need smaller cells.
    words = cell_words or max(64, min(CELL_WORDS, 1 << max(wanted // 4, 1).bit_length()))
    index = index_file(path, bound, phase=15 if phase_correction else 0, cell_words=words, restarts=restarts)
    if layout == "quad" and index.chips[QUAD_CHIPS:].any():
        chip = QUAD_CHIPS + int(np.argmax(index.chips[QUAD_CHIPS:] > 0))
        raise ValueError(
            f"{path} has {index.chips[chip]} hits of chip {chip}, and a quad has chips 0 to 3; use layout='chips'"
        )
    return HitFile(index, Setup(index.base, index.chip_bits, layout == "quad", int(gap), index.phase), chunks, wanted)


def lazy_columns(hits: HitFile) -> dict[str, Any]:
    """Return the columns as dask arrays: one task a chunk reads all of them."""
    pieces = [hits.piece(number) for number in range(len(hits.sizes))]
    return ChunkSteps("io-", pieces).read("read", [(Piece.read, piece) for piece in pieces], hits.sizes, DTYPES)


# ------------------------------------------------------------------------------------------------------- rows on demand
@functools.lru_cache(maxsize=_CACHED_PIECES)
def kept_piece(hits: HitFile, number: int) -> Mapping[str, npt.NDArray[Any]]:
    """Read a chunk, or take it from the last few: variables of a chunk are asked for one after the other."""
    with one_thread():  # there is a task on every other
        return hits.piece(number).read()


def read_rows(hits: HitFile, name: str, start: int, stop: int) -> npt.NDArray[Any]:
    """Return rows `start` to `stop` - 1 of a column; only the chunks that have them are read."""
    if stop <= start:
        return np.empty(0, dtype=DTYPES[name])
    first, last = np.searchsorted(hits.starts, [start, stop - 1], side="right") - 1
    begin = int(hits.starts[first])
    rows = np.concatenate([kept_piece(hits, number)[name] for number in range(first, last + 1)])
    return rows[start - begin : stop - begin]
