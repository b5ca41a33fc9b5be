"""Raw files and streams of the Katherine readout of Timepix3: words of 6 bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.checks import check_whole
from daskclust.core.device.timesort import TICK
from daskclust.io.files import check_file
from daskclust.io.rows import check_hits_per_chunk
from daskclust.io.several import takes_several
from daskclust.io.timepix.ticks import COARSE, TOT_TICK, hits_of_ticks

_WORD = 6

_PIXEL, _OFFSET, _FRAME, _FINISHED, _LOST, _ABORTED = 0x4, 0x5, 0x7, 0xC, 0xD, 0xE
# Triggers (2, 3) and the start and end time of a frame (8 to B) say nothing about hits.
_KNOWN = (0x2, 0x3, _PIXEL, _OFFSET, _FRAME, 0x8, 0x9, 0xA, 0xB, _FINISHED, _LOST, _ABORTED)

_WINDOW = 1 << 14


@takes_several()
def open_katherine(
    path: str | os.PathLike[str],
    *,
    frame: int | Literal["all"] | None = None,
    fast_clock: bool = True,
    chunks: int | None = None,
) -> xr.Dataset:
    """Read hits from a raw file of the Katherine readout.

    Parameters
    ----------
    path : str or path, or list of these
        The file, or several, as of `read_hits`. Words of 6 bytes, little-endian, as the readout sent them, in the mode
        that measures ToA and ToT.
    frame : int or "all", optional
        Which frame to read, from 0; ``"all"``: each hit has its ``frame``. Times begin anew in every frame. By default
        all are read, with ``frame`` where more than one has hits.
    fast_clock : bool, default True
        Whether the acquisition ran with the fast clock (fToA). Without it, the 4 lowest bits of a word count hits
        and times are multiples of 25 ns.
    chunks : int, optional
        Hits per chunk of a Dataset of dask arrays. The file is read at once all the same.

    Returns
    -------
    xarray.Dataset
        Variables ``x``, ``y`` (pixel, uint16), ``toa`` (ns, float64), ``tot`` (ns, float32) and ``chip`` (0, as a
        readout has one chip), perhaps ``frame`` (int64), sorted by (frame, toa, order in the file), and in ``attrs``:
        ``n_words``, ``n_unsorted`` (hits that came after a later one), ``n_lost_pixels`` (what the readout says it
        lost), ``n_sent_pixels`` (what it says it sent), ``n_missing_pixels`` (what it sent of a frame and is not
        there), ``n_frames``, ``n_finished_frames``, ``n_aborted``, ``n_unknown_words`` and ``n_truncated_bytes`` (of
        an incomplete last word): of the whole file, whatever the frame.

    Raises
    ------
    OSError, ValueError
        Where `path` is no file or empty, or no word is a hit but some are unknown.

    See Also
    --------
    KatherineReader : The same of a running readout.

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
    check_file(name)
    reader = KatherineReader(fast_clock=fast_clock)
    found = reader._decode(np.fromfile(name, np.uint8))
    reader.close()
    attrs, of_hit = reader.counts, found.columns["frame"]
    if attrs["n_unknown_words"] and not reader._kinds[_PIXEL]:
        raise ValueError(
            f"{name} is not a Katherine file: none of its {attrs['n_words']} words of 6 bytes is a hit, and "
            f"{attrs['n_unknown_words']} are of unknown types; for other formats see open_tpx3, open_t3pa and read_hits"
        )
    if frame is None or (isinstance(frame, str) and frame == "all"):
        if frame is None and (not of_hit.size or of_hit[0] == of_hit[-1]):
            del found.columns["frame"]
    else:
        is_in = of_hit == check_whole(f"frame of {name}", frame, 0, max(reader._frame, 0))
        columns = {key: values[is_in] for key, values in found.columns.items() if key != "frame"}
        found = Decoded(columns, found.ticks[is_in], found.tot[is_in])
    return hits_of_ticks(found.columns, found.ticks, found.tot, source=path, attrs=attrs, chunks=rows)


class Decoded(NamedTuple):
    """Hits in the order of their words."""

    columns: dict[str, npt.NDArray[Any]]  # x, y, chip, frame
    ticks: npt.NDArray[np.int64]  # of 1.5625 ns
    tot: npt.NDArray[np.uint32]  # of 25 ns


class KatherineReader:
    """Hits of a running Katherine readout, from its words of 6 bytes, cut anywhere.

    Parameters
    ----------
    fast_clock : bool, default True
        As of `daskclust.io.open_katherine`.
    frames : bool, default False
        Whether hits have their ``frame``, from 0, as `daskclust.EventBuilder` without ``dt_max`` takes them.

    Notes
    -----
    Times begin anew with each frame. Without `frames`, hits of a second frame are an error: in the data-driven mode an
    acquisition has one.

    Examples
    --------
    >>> reader = KatherineReader()
    >>> hits = reader.feed((4 << 44 | 7 << 36 | 5 << 28 | 2 << 14).to_bytes(6, "little"))
    >>> int(hits["x"][0]), int(hits["y"][0]), float(hits["toa"][0])
    (5, 7, 50.0)
    """

    def __init__(self, *, fast_clock: bool = True, frames: bool = False) -> None:
        self._fast_clock, self._gives_frames = fast_clock, frames
        self._rest = b""
        self._kinds = np.zeros(16, np.int64)  # words of each
        self._sums = {"n_lost_pixels": 0, "n_sent_pixels": 0, "n_missing_pixels": 0, "n_truncated_bytes": 0}
        self._frame, self._offset = -1, 0
        self._received = 0  # hits since the last begin or end of a frame
        self._first: int | None = None  # the first frame with hits
        self._error: ValueError | None = None

    @property
    def counts(self) -> Mapping[str, int]:
        """What came so far, by the names in the attributes of `daskclust.io.open_katherine`."""
        kinds = self._kinds.tolist()
        return {
            "n_words": sum(kinds),
            "n_frames": kinds[_FRAME],
            "n_finished_frames": kinds[_FINISHED],
            "n_aborted": kinds[_ABORTED],
            "n_unknown_words": sum(kinds) - sum(kinds[kind] for kind in _KNOWN),
            **self._sums,
        }

    def feed(self, data: bytes | bytearray | memoryview) -> dict[str, npt.NDArray[Any]]:
        """Return the hits in more bytes; a word that is not complete waits.

        Parameters
        ----------
        data : bytes-like
            What came next.

        Returns
        -------
        dict of numpy.ndarray, shape (n,)
            Columns ``x``, ``y`` (pixel), ``toa``, ``tot`` (ns), ``chip`` and perhaps ``frame``, in the order in which
            hits came.

        Raises
        ------
        ValueError
            Without `frames`, after hits of a second frame.
        """
        if self._error is not None:  # what came before was given first
            raise self._error
        columns, ticks, tot = self._decode(np.frombuffer(self._rest + bytes(data), np.uint8))
        found = {**columns, "toa": ticks * TICK, "tot": tot.astype(np.float32) * np.float32(TOT_TICK)}
        if self._gives_frames:
            return found
        frame = found.pop("frame")
        if frame.size and self._first is None:
            self._first = int(frame[0])
        if frame.size and frame[-1] != self._first:
            self._error = ValueError(
                f"the readout has hits of frame {frame[-1]} after those of frame {self._first}, and times begin anew "
                "in each; leave dt_max out, and give a KatherineReader frames=True"
            )
            return {name: values[frame == self._first] for name, values in found.items()}
        return found

    def close(self) -> dict[str, npt.NDArray[Any]]:
        """Say that no more bytes come, or that those which come do not go on where these ended.

        Returns
        -------
        dict of numpy.ndarray, shape (0,)
            No hits, as of `feed`; a word that was cut is counted.
        """
        self._sums["n_truncated_bytes"] += len(self._rest)
        self._rest = b""
        return self.feed(b"")

    def _decode(self, data: npt.NDArray[np.uint8]) -> Decoded:
        """Return the hits of all whole words, and keep what is left."""
        n, rest = divmod(data.size, _WORD)
        self._rest = data[data.size - rest :].tobytes()
        words = data[: n * _WORD].reshape(n, _WORD)
        low = np.ascontiguousarray(words[:, :4]).view("<u4").reshape(n).astype(np.uint32, copy=False)
        high = np.ascontiguousarray(words[:, 4:]).view("<u2").reshape(n).astype(np.uint16, copy=False)
        kind = (high >> np.uint16(12)).astype(np.uint8)
        self._kinds += np.bincount(kind, minlength=16)
        hits, special = np.flatnonzero(kind == _PIXEL), np.flatnonzero(kind != _PIXEL)  # of these there are few
        kinds = kind[special]
        value = low[special].astype(np.int64) | ((high[special] & np.uint16(0xFFF)).astype(np.int64) << 32)
        of_hit = self._of_frame(hits, special[kinds == _FRAME])
        is_setter = (kinds == _OFFSET) | (kinds == _FRAME)
        offsets = np.where(kinds[is_setter] == _OFFSET, value[is_setter] & 0xFFFFFFFF, 0)
        offsets = np.concatenate([[self._offset], offsets])
        offset, self._offset = offsets[np.searchsorted(special[is_setter], hits)], int(offsets[-1])
        self._count(hits, special, kinds, value)
        low, high = low[hits], high[hits]
        columns = {
            "x": (low >> np.uint32(28)).astype(np.uint16) | ((high & np.uint16(0xF)) << np.uint16(4)),
            "y": (high >> np.uint16(4)) & np.uint16(0xFF),
            "chip": np.zeros(hits.size, np.uint8),
            "frame": of_hit,
        }
        coarse = offset * _WINDOW + ((low >> np.uint32(14)) & np.uint32(_WINDOW - 1)).astype(np.int64)
        fine = (low & np.uint32(0xF)).astype(np.int64) if self._fast_clock else np.int64(0)
        return Decoded(columns, coarse * COARSE - fine, (low >> np.uint32(4)) & np.uint32(0x3FF))

    def _of_frame(self, hits: npt.NDArray[np.intp], starts: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
        if self._frame < 0 and hits.size and (not starts.size or hits[0] < starts[0]):
            self._frame = 0  # its begin did not come
        of_hit = self._frame + np.searchsorted(starts, hits, side="right")
        self._frame += starts.size
        return of_hit.astype(np.int64, copy=False)

    def _count(
        self,
        hits: npt.NDArray[np.intp],
        special: npt.NDArray[np.intp],
        kinds: npt.NDArray[np.uint8],
        value: npt.NDArray[np.int64],
    ) -> None:
        """Count pixels that the readout lost and sent, and those of ended frames that did not come."""
        is_border, is_end = (kinds == _FRAME) | (kinds == _FINISHED), kinds == _FINISHED
        upto = np.searchsorted(hits, special[is_border])
        received = np.diff(np.concatenate([[-self._received], upto]))[is_end[is_border]]
        self._received = hits.size - int(upto[-1]) if upto.size else self._received + hits.size
        many = {
            "n_lost_pixels": value[kinds == _LOST],
            "n_sent_pixels": value[is_end],
            "n_missing_pixels": (value[is_end] - received).clip(min=0),
        }
        for name, values in many.items():
            self._sums[name] += int(values.sum(dtype=object))
