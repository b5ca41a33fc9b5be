"""Hits and triggers as words of a raw Timepix3 file."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.checks import check_whole
from daskclust.core.device.timesort import TICK, order_of_times
from daskclust.io.blocks import Block, blocks_of, native_block, to_write
from daskclust.io.replacing import replacing
from daskclust.io.timepix.hitwise import hits_with
from daskclust.io.timepix.ticks import TOT_TICK
from daskclust.io.timepix.tpx3.words import MAGIC, TDC_STEP, TDC_STEPS

_COLUMNS = ("x", "y", "toa", "tot", "chip")
_MOST_WORDS = 0xFFFF // 8
_GAP = round(13e9 / TICK)  # ticks, less than half of the range of pixel time: global time is written after longer gaps
_REMIND = round(40e9 / TICK)  # ticks, less than half of the range of the low words of global time
_LATEST = (1 << 52) - 16  # ticks (81 days): as far as global time goes

Words = npt.NDArray[np.void]  # as of `_stated`


def write_tpx3(
    ds: xr.Dataset,
    path: str | os.PathLike[str],
    *,
    triggers: xr.Dataset | None = None,
    words_per_chunk: int = 1000,
    global_time: bool = True,
) -> None:
    """Write hits as a raw Timepix3 file, in the order of the data set.

    Parameters
    ----------
    ds : xarray.Dataset
        Hits: ``x``, ``y`` (pixel, 0 to 255, of the chip), ``toa`` (ns, not negative; rounded to 1.5625 ns), ``tot``
        (ns; rounded to 25 ns, at most 25575), and ``chip`` (0 to 255; 0 where there is none), numpy or dask.
    path : str or path
        The file. One that exists is replaced, when all is written.
    triggers : xarray.Dataset, optional
        TDC words to write between the hits, before the first hit that is not earlier: ``time`` (ns; rounded to
        0.26 ns), and ``channel``, ``is_rising``, ``number``, ``chip`` where they are not 1, True, counted, 0.
    words_per_chunk : int, default 1000
        Most words of a chunk, up to 8191. A chunk holds words of one chip.
    global_time : bool, default True
        Write global time words at the start, and in gaps of 13 s and more: without them times later than 26.8 s, or
        after such gaps, are read as earlier ones.

    Raises
    ------
    TypeError, ValueError
        For arrays on a GPU, missing variables, values that the words cannot hold, and common coordinates of a quad.

    Notes
    -----
    What is written here and read by `daskclust.io.open_tpx3` is equal where ``toa`` are multiples of 1.5625 ns and
    ``tot`` of 25 ns, and hits are sorted by time. Memory holds one dask chunk, or a million hits, and the triggers.
    """
    words_per_chunk = check_whole("words_per_chunk", words_per_chunk, 1, _MOST_WORDS)
    ds = to_write(ds)
    if ds.attrs.get("layout", "chips") != "chips":
        raise ValueError(
            f"x and y have layout {ds.attrs['layout']!r}, but a raw file needs pixels of each chip; "
            "read the hits with layout='chips'"
        )
    names = [name for name in _COLUMNS if name != "chip" or name in ds.variables]
    ds = hits_with(ds.reset_coords(), names, "write_tpx3")[names]
    extra, times = _trigger_words(xr.Dataset({"time": ("trigger", [])}) if triggers is None else triggers)
    latest, done = None, 0
    with replacing(Path(path)) as stream:
        nothing = native_block(ds.isel({ds["toa"].dims[0]: slice(0)}).compute())
        for block in itertools.chain(blocks_of(ds, str(ds["toa"].dims[0])), [nothing]):
            words = _pixel_words(block)
            last = np.inf if block is nothing else words["tick"].max(initial=-1)
            due = max(done, int(np.searchsorted(times, last, side="right")))
            places = np.searchsorted(np.maximum.accumulate(words["tick"]), times[done:due], side="left")
            words, done = np.insert(words, places, extra[done:due]), due
            if global_time:
                words = _with_global_time(words, latest)
            latest = int(words["tick"][-1]) if len(words) else latest
            stream.write(_in_chunks(words, words_per_chunk).tobytes())


def _stated(words: Any, chips: Any, ticks: Any) -> Words:
    """Return words with their chips, and their times in ticks."""
    stated = np.empty(len(words), [("word", "<u8"), ("chip", np.uint8), ("tick", np.int64)])
    stated["word"], stated["chip"], stated["tick"] = words, chips, ticks
    return stated


def _whole(
    values: Any, name: str, largest: int, unit: float = 1.0, *, least: int = 0, row: str = "hit {} of its block"
) -> npt.NDArray[np.int64]:
    """Return values in whole units from `least` to `largest`; `row` says for the message which one is not."""
    values = np.asarray(values)
    with np.errstate(invalid="ignore"):
        scaled = np.rint(values / unit)
        wrong = ~((scaled >= least) & (scaled <= largest))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise ValueError(
            f"{name} must be from {least} to {largest * unit:g}, got {values[first]!r} ({row.format(first)}); leave "
            "such rows out, or correct them"
        )
    return scaled.astype(np.int64)


def _pixel_words(block: Block) -> Words:
    x, y = (_whole(block[name], name, 255).astype(np.uint64) for name in ("x", "y"))
    ticks = _whole(block["toa"], "toa", _LATEST, TICK)
    tot = _whole(block["tot"], "tot", 1023, TOT_TICK).astype(np.uint64)
    chips = _whole(block.get("chip", np.zeros(len(x))), "chip", 255)
    coarse = (ticks + 15) >> 4  # the fine time counts backwards from it
    fine = ((coarse << 4) - ticks).astype(np.uint64)
    spidr, toa = ((coarse >> 14) & 0xFFFF).astype(np.uint64), (coarse & 0x3FFF).astype(np.uint64)
    one, three = np.uint64(1), np.uint64(3)
    address = (x >> one) << np.uint64(9) | (y >> np.uint64(2)) << three | (x & one) << np.uint64(2) | y & three
    words = np.uint64(0xB) << np.uint64(60) | address << np.uint64(44) | toa << np.uint64(30)
    return _stated(words | tot << np.uint64(20) | fine << np.uint64(16) | spidr, chips, ticks)


def _trigger_words(triggers: xr.Dataset) -> tuple[Words, npt.NDArray[np.float64]]:
    """Return TDC words sorted by time, and their times in ticks and parts of these."""
    if "time" not in triggers.variables:
        raise ValueError("triggers have no variable time; give what open_tpx3_triggers returns")
    triggers = triggers[[n for n in ("time", "channel", "is_rising", "number", "chip") if n in triggers.variables]]
    triggers = triggers.reset_coords().compute()
    time = np.asarray(triggers["time"].values, dtype=np.float64)
    n, row = len(time), "trigger {}"
    steps = _whole(time, "time", 1 << 55, TDC_STEP, row=row)
    order = order_of_times(time)
    given = {"channel": np.ones(n), "is_rising": np.ones(n), "number": np.empty(n), "chip": np.zeros(n)}
    given["number"][order] = np.arange(n) & 0xFFF
    given |= {name: triggers[name].values for name in given if name in triggers.variables}
    channel = _whole(given["channel"], "channel", 2, least=1, row=row)
    rising = np.asarray(given["is_rising"], dtype=bool)
    kind = np.where(channel == 1, np.where(rising, 0x6F, 0x6A), np.where(rising, 0x6E, 0x6B)).astype(np.uint64)
    number = _whole(given["number"], "number", 0xFFF, row=row).astype(np.uint64)
    chip = _whole(given["chip"], "chip", 255, row=row)
    coarse = ((steps // TDC_STEPS) & ((1 << 35) - 1)).astype(np.uint64)
    fine = (steps % TDC_STEPS + 1).astype(np.uint64)
    words = kind << np.uint64(56) | number << np.uint64(44) | coarse << np.uint64(9) | fine << np.uint64(5)
    return _stated(words, chip, np.floor(time / TICK))[order], time[order] / TICK


def _with_global_time(words: Words, latest: int | None) -> Words:
    """Put global time words at the start of the file and into long gaps, so that every time can be extended."""
    ticks = words["tick"]
    places, times = ([0], [int(ticks[0])]) if latest is None and len(ticks) else ([], [])
    steps = np.diff(ticks, prepend=ticks[:1] if latest is None else latest)
    for gap in np.flatnonzero(np.abs(steps) >= _GAP):
        start, step = int(ticks[gap]) - int(steps[gap]), int(steps[gap])
        parts = abs(step) // _REMIND + 1
        places += [int(gap)] * parts
        times += [start + step * (k + 1) // parts for k in range(parts)]
    counts = np.repeat(np.array(times, dtype=np.int64) >> 4, 2)
    low = np.uint64(0x44) << np.uint64(56) | (counts & 0xFFFFFFFF).astype(np.uint64) << np.uint64(16)
    high = np.uint64(0x45) << np.uint64(56) | (counts >> 32).astype(np.uint64) << np.uint64(16)
    both = np.where(np.arange(len(counts)) % 2 == 0, low, high)
    where = np.repeat(np.array(places, dtype=np.int64), 2)
    return np.insert(words, where, _stated(both, words["chip"][where], counts << 4))


def _in_chunks(words: Words, most: int) -> npt.NDArray[np.uint64]:
    """Return the bare words with headers before runs of one chip."""
    chips = words["chip"]
    run = np.flatnonzero(np.diff(chips.astype(np.int64), prepend=-1))
    lengths = np.diff(run, append=len(words))
    pieces = -(-lengths // most)
    offset = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begins = np.repeat(run, pieces) + offset * most
    sizes = np.diff(begins, append=len(words)).astype(np.uint64)
    header = (
        np.uint64(MAGIC) | chips[begins].astype(np.uint64) << np.uint64(32) | (sizes * np.uint64(8)) << np.uint64(48)
    )
    return np.insert(words["word"], begins, header)
