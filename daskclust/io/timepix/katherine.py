"""Raw files of the Katherine readout of Timepix3: words of 6 bytes."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.checks import check_whole
from daskclust.io.files import check_file
from daskclust.io.rows import check_hits_per_chunk
from daskclust.io.several import takes_several
from daskclust.io.timepix.ticks import COARSE, hits_of_ticks

_WORD = 6

_PIXEL, _OFFSET, _FRAME, _FINISHED, _LOST, _ABORTED = 0x4, 0x5, 0x7, 0xC, 0xD, 0xE
# Triggers (2, 3) and the start and end time of a frame (8 to B) say nothing about hits.
_KNOWN = (0x2, 0x3, _PIXEL, _OFFSET, _FRAME, 0x8, 0x9, 0xA, 0xB, _FINISHED, _LOST, _ABORTED)

_WINDOW = 1 << 14


@takes_several()
def open_katherine(
    path: str | os.PathLike[str], *, frame: int | None = None, fast_clock: bool = True, chunks: int | None = None
) -> xr.Dataset:
    """Read hits from a raw file of the Katherine readout.

    Parameters
    ----------
    path : str or path, or list of these
        The file, or several, as of `read_hits`. Words of 6 bytes, little-endian, as the readout sent them, in the mode
        that measures ToA and ToT.
    frame : int, optional
        Which frame to read, from 0. Times begin anew in every frame, so that a file with hits of several has no common
        order of time; None is for files with hits of one.
    fast_clock : bool, default True
        Whether the acquisition ran with the fast clock (fToA). Without it, the 4 lowest bits of a word count hits
        and times are multiples of 25 ns.
    chunks : int, optional
        Hits per chunk of a Dataset of dask arrays. The file is read at once all the same.

    Returns
    -------
    xarray.Dataset
        Variables ``x``, ``y`` (pixel, uint16), ``toa`` (ns, float64), ``tot`` (ns, float32) and ``chip`` (0, as a
        readout has one chip), sorted by (toa, order in the file), and in ``attrs``: ``n_words``, ``n_unsorted`` (hits
        that came after a later one), ``n_lost_pixels`` (what the readout says it lost), ``n_sent_pixels`` (what it
        says it sent), ``n_frames``, ``n_aborted``, ``n_unknown_words`` and ``n_truncated_bytes`` (of an incomplete
        last word): of the whole file, whatever the frame.

    Raises
    ------
    OSError, ValueError
        Where `path` is no file or empty, no word is a hit but some are unknown, or several frames have hits.

    Notes
    -----
    A word has its type in bits 44-47. A hit (4): x in 28-35, y in 36-43, ToA in 14-27 and ToT in 4-13 (25 ns), fToA in
    0-3. A time offset (5), 32 bits, counts windows of 2**14 ticks of 25 ns, and holds for the hits that follow in its
    frame: t = 25 * (2**14 * offset + ToA) - 1.5625 * fToA ns. A new frame (7) sets it to 0. Bits 0-43 of the end of
    a frame (C) and of lost pixels (D) are counts. E: the acquisition was aborted. The layout is that of the
    manufacturer's library libkatherine. Times are exact for the first 6.5 days. Memory: about 60 bytes a word.
    """
    rows = None if chunks is None else check_hits_per_chunk(chunks)
    name = os.fspath(path)
    low, high, rest = _words(name)
    kind = (high >> np.uint16(12)).astype(np.uint8)
    counts = np.bincount(kind, minlength=16)
    n_unknown = int(counts.sum() - counts[list(_KNOWN)].sum())
    if n_unknown and not counts[_PIXEL]:
        raise ValueError(
            f"{name} is not a Katherine file: none of its {kind.size} words of 6 bytes is a hit, and {n_unknown} are "
            "of unknown types; for other formats see open_tpx3, open_t3pa and read_hits"
        )
    value = low.astype(np.int64) | ((high & np.uint16(0xFFF)).astype(np.int64) << 32)
    attrs = {
        "n_words": int(kind.size),
        "n_frames": int(counts[_FRAME]),
        "n_lost_pixels": int(value[kind == _LOST].sum(dtype=object)),
        "n_sent_pixels": int(value[kind == _FINISHED].sum(dtype=object)),
        "n_aborted": int(counts[_ABORTED]),
        "n_unknown_words": n_unknown,
        "n_truncated_bytes": rest,
    }
    hits = _hits_of_frame(name, kind, frame)
    ticks = _ticks(kind, low, value, hits, fast_clock)
    low, high = low[hits], high[hits]
    columns = {
        "x": (low >> np.uint32(28)).astype(np.uint16) | ((high & np.uint16(0xF)) << np.uint16(4)),
        "y": (high >> np.uint16(4)) & np.uint16(0xFF),
        "chip": np.zeros(hits.size, np.uint8),
    }
    tot = (low >> np.uint32(4)) & np.uint32(0x3FF)
    return hits_of_ticks(columns, ticks, tot, source=path, attrs=attrs, chunks=rows)


def _words(path: str) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint16], int]:
    """Return bits 0-31 and 32-47 of all words, and the number of bytes after the last whole one."""
    check_file(path)
    data = np.fromfile(path, np.uint8)
    n, rest = divmod(data.size, _WORD)
    words = data[: n * _WORD].reshape(n, _WORD)
    low = np.ascontiguousarray(words[:, :4]).view("<u4").reshape(n)
    high = np.ascontiguousarray(words[:, 4:]).view("<u2").reshape(n)
    return low.astype(np.uint32, copy=False), high.astype(np.uint16, copy=False), rest


def _hits_of_frame(path: str, kind: npt.NDArray[np.uint8], frame: int | None) -> npt.NDArray[np.intp]:
    """Return where the hits of a frame are among the words."""
    hits: npt.NDArray[np.intp] = np.flatnonzero(kind == _PIXEL)
    starts = np.flatnonzero(kind == _FRAME)
    if hits.size and (not starts.size or hits[0] < starts[0]):
        starts = np.concatenate([[0], starts])  # the beginning of the first frame is not in the file
    of_hit = np.searchsorted(starts, hits, side="right") - 1
    if frame is None:
        if hits.size and of_hit[0] != of_hit[-1]:
            raise ValueError(
                f"{path} has hits in {np.unique(of_hit).size} frames, and times start again in each; "
                f"choose one with frame=0 to frame={starts.size - 1}"
            )
        return hits
    frame = check_whole(f"frame of {path}", frame, 0, max(starts.size, 1) - 1)
    chosen: npt.NDArray[np.intp] = hits[of_hit == frame]
    return chosen


def _ticks(
    kind: npt.NDArray[np.uint8],
    low: npt.NDArray[np.uint32],
    value: npt.NDArray[np.int64],
    hits: npt.NDArray[np.intp],
    fast_clock: bool,
) -> npt.NDArray[np.int64]:
    setters = np.flatnonzero((kind == _OFFSET) | (kind == _FRAME))
    offsets = np.where(kind[setters] == _OFFSET, value[setters] & 0xFFFFFFFF, 0)
    # Before the first setter the offset is 0.
    of_hit = np.concatenate([[0], offsets])[np.searchsorted(setters, hits)]
    chosen = low[hits]
    coarse = of_hit * _WINDOW + ((chosen >> np.uint32(14)) & np.uint32(_WINDOW - 1)).astype(np.int64)
    fine = (chosen & np.uint32(0xF)).astype(np.int64) if fast_clock else np.int64(0)
    return coarse * COARSE - fine
