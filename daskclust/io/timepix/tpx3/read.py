"""A Timepix3 file in pieces: which windows of time belong to a chunk, and how a worker reads one."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.device.threads import one_thread
from daskclust.core.device.timesort import TICK
from daskclust.io.lazy import check_hits_per_chunk
from daskclust.io.timepix.quad import LAYOUTS, QUAD_CHIPS, check_layout
from daskclust.io.timepix.tpx3.decode import DTYPES, Setup, read_columns
from daskclust.io.timepix.tpx3.index import (
    CELL_WORDS,
    FileState,
    Index,
    Ints,
    Windows,
    check_disorder,
    divide,
    index_file,
)
from daskclust.io.timepix.tpx3.jumps import check_on_reset

WINDOW_HITS = 1 << 15  # measured: records of so many hits, twice, stay in a core's second-level cache
AUTO_HITS = 2_000_000
_CACHED_PIECES = 3


@dataclass(frozen=True)
class Piece:
    """What a worker needs to read one chunk: the file, windows of time, and the cells that they need."""

    file: FileState
    cells: Ints
    windows: Windows
    setup: Setup

    def read(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the columns of the chunk, by name."""
        if self.file.size == 0 or not len(self.windows):
            return {name: np.empty(0, dtype=dtype) for name, dtype in DTYPES.items()}
        with self.file.mapped() as (data, _):
            columns = read_columns(data, self.cells, self.windows, self.setup)
            del data
        return columns


def read_piece(piece: Piece) -> Mapping[str, npt.NDArray[Any]]:
    """Read a chunk on one thread: there is a task on every other."""
    with one_thread():
        return piece.read()


@dataclass(frozen=True, eq=False)
class IndexedFile:
    """A file after one pass over it."""

    index: Index
    setup: Setup

    def attrs(self, path: str) -> dict[str, Any]:
        """Return the attributes of the data set."""
        layout = LAYOUTS[int(self.setup.is_quad)]
        told: dict[str, Any] = {"field": "timepix", "source": path, "layout": layout}
        if self.setup.is_quad:
            told["gap"] = self.setup.gap
        return told | self.index.attrs | {"disorder": self.index.delay * TICK}


@dataclass(frozen=True, eq=False)
class HitFile(IndexedFile):
    """An indexed file, divided into chunks."""

    windows: Windows
    cuts: Ints  # the windows with which chunks begin, and the number of windows

    @functools.cached_property
    def starts(self) -> Ints:
        """The rows with which chunks begin, and the number of hits."""
        return self.windows.starts[self.cuts]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Hits of each chunk."""
        return tuple(int(size) for size in np.diff(self.starts))

    @property
    def token(self) -> tuple[Any, ...]:
        """What tells this data set from any other."""
        return (*self.index.file, *self.setup, self.index.phase, self.index.cell_words, self.index.restarts, self.sizes)

    def piece(self, number: int) -> Piece:
        """Return what is needed to read a chunk."""
        windows, cells = self.windows.cut(int(self.cuts[number]), int(self.cuts[number + 1]), self.index.cells)
        return Piece(self.index.file, cells, windows, self.setup)

    def whole(self) -> Piece:
        """Return what is needed to read all hits."""
        return Piece(self.index.file, self.index.cells, self.windows, self.setup)


def index_hits(
    path: str, *, layout: str, gap: int, disorder: float, phase_correction: bool, on_reset: str, cell_words: int
) -> IndexedFile:
    """Index a file, with the options of `daskclust.io.open_tpx3`; nothing is decoded yet."""
    check_layout(layout, gap)
    check_disorder(disorder)
    restarts, phase = check_on_reset(on_reset), 15 if phase_correction else 0
    index = index_file(path, float(disorder), phase=phase, cell_words=cell_words, restarts=restarts)
    if layout == "quad" and index.chips[QUAD_CHIPS:].any():
        chip = QUAD_CHIPS + int(np.argmax(index.chips[QUAD_CHIPS:] > 0))
        raise ValueError(
            f"{path} has {index.chips[chip]} hits of chip {chip}, and a quad has chips 0 to 3; use layout='chips'"
        )
    return IndexedFile(index, Setup(index.base, index.chip_bits, layout == "quad", int(gap), index.phase))


def open_hits(
    path: str,
    *,
    chunks: int | None,
    cell_words: int | None = None,
    window_hits: int | None = None,
    **options: Any,
) -> HitFile:
    """Index a file and divide it into chunks of about `chunks` hits, None for one.

    The sizes of what is decoded and sorted at once, `cell_words` and `window_hits`, are for tests.
    """
    wanted = min(window_hits or WINDOW_HITS, chunks or WINDOW_HITS)
    # Windows begin where cells do: smaller chunks need smaller cells.
    words = cell_words or max(64, min(CELL_WORDS, 1 << max(wanted // 4, 1).bit_length()))
    found = index_hits(path, cell_words=words, **options)
    with found.index.file.mapped() as (data, memory):
        windows = divide(found.index, data, wanted, memory)
        del data
    groups = windows.starts[:-1] // (chunks or max(found.index.n_hits, 1))
    cuts = np.flatnonzero(np.diff(groups, prepend=-1)) if len(windows) else np.zeros(1, dtype=np.int64)
    return HitFile(found.index, found.setup, windows, np.append(cuts, len(windows)))


def check_chunks(chunks: Any) -> int | None:
    """Return the number of hits per chunk, None for all at once."""
    if chunks is None:
        return None
    if isinstance(chunks, str) and chunks == "auto":
        return AUTO_HITS
    return check_hits_per_chunk(chunks, also=", 'auto' or None")


def lazy_columns(hits: HitFile) -> dict[str, Any]:
    """Return the columns as dask arrays: one task a chunk reads all of them."""
    import dask
    import dask.array as da
    from dask.base import tokenize

    token = tokenize(hits.token)
    read = dask.delayed(read_piece, pure=True)
    blocks = []
    for number, size in enumerate(hits.sizes):
        key = f"daskclust-io-tpx3-{token}-{number}"
        blocks.append((read(hits.piece(number), dask_key_name=key), size))
    columns = {}
    for name, dtype in DTYPES.items():
        meta = np.empty(0, dtype=dtype)
        parts = [da.from_delayed(block[name], (size,), meta=meta) for block, size in blocks]
        columns[name] = da.concatenate(parts)
    return columns


# ------------------------------------------------------------------------------------------------------- rows on demand
@functools.lru_cache(maxsize=_CACHED_PIECES)
def kept_piece(hits: HitFile, number: int) -> Mapping[str, npt.NDArray[Any]]:
    """Read a chunk, or take it from the last few: variables of a chunk are asked for one after the other."""
    return read_piece(hits.piece(number))


def read_rows(hits: HitFile, name: str, start: int, stop: int) -> npt.NDArray[Any]:
    """Return rows `start` to `stop` - 1 of a column; only the chunks that have them are read."""
    starts = hits.starts
    first, last = np.searchsorted(starts, [start, max(stop - 1, start)], side="right") - 1
    parts = []
    for number in range(int(first), min(int(last) + 1, len(starts) - 1)):
        begin = int(starts[number])
        parts.append(kept_piece(hits, number)[name][max(start - begin, 0) : max(stop - begin, 0)])
    return np.concatenate([np.empty(0, dtype=DTYPES[name]), *parts])
