"""A plain decoder of raw Timepix3 bytes, written from the description of the format: an oracle for `daskclust.io`."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import lru_cache

WRAP, LONG_WRAP = 2**34, 2**36


@dataclass
class Decoded:
    """Hits (tick, chip, x, y, tot), triggers (tick, fine, chip, channel, rising, number), as they stand in the file."""

    hits: list = field(default_factory=list)
    triggers: list = field(default_factory=list)
    counts: dict = field(default_factory=dict)
    jumps: list = field(default_factory=list)
    base: int = 0


def header_at(data: bytes, place: int) -> bool:
    return place <= len(data) and data[place : place + 4] == b"TPX3"[: len(data) - place]


def size_at(data: bytes, place: int) -> int:
    return struct.unpack_from("<H", data, place + 6)[0]


def next_header(data: bytes, place: int, unclaimed: int) -> int:
    for start, fits in ((place, True), (unclaimed, False)):
        q = data.find(b"TPX3", start)
        while q >= 0 and q + 8 <= len(data):
            end = q + 8 + size_at(data, q)
            if (end <= len(data) and header_at(data, end)) if fits else end > len(data):
                return q
            q = data.find(b"TPX3", q + 1)
    return len(data)


def chunks_of(data: bytes, counts: dict):
    """Yield (chip, words)."""
    place = 0
    while len(data) - place >= 8:
        if not header_at(data, place):
            found = next_header(data, place, place)
            counts["n_bytes_skipped"] += found - place
            place = found
            continue
        counts["n_chunks"] += 1
        begin = place + 8
        size = size_at(data, place)
        end = found = begin + size
        ends_well = end <= len(data) and header_at(data, end)
        if size % 8 or not ends_well:
            counts["n_chunks_cut"] += 1
        if not ends_well:
            found = next_header(data, begin, min(end, len(data)))
            end = min(end, found)
            counts["n_bytes_skipped"] += found - end
        whole = (end - begin) // 8
        counts["n_bytes_truncated"] += (end - begin) % 8
        yield data[place + 4], struct.unpack_from(f"<{whole}Q", data, begin)
        place = found
    counts["n_bytes_truncated"] += len(data) - place


def kind_of(word: int) -> str:
    top, half = word >> 56, word >> 60
    if half == 0xB:
        return "n_pixel"
    if top in (0x6F, 0x6A, 0x6E, 0x6B):
        return "n_tdc"
    if top in (0x44, 0x45):
        return "n_global_time"
    if half in (5, 7):
        return "n_control"
    return "n_count_fb" if half == 0xA else "n_unknown"


def nearest(difference: int, wrap: int) -> int:
    """Return a difference modulo `wrap` in [-wrap/2, wrap/2)."""
    return (difference + wrap // 2) % wrap - wrap // 2


@lru_cache(maxsize=4)
def decode(data: bytes, bound: float = 600_000.0, phase: bool = False, restart: bool = False) -> Decoded:
    names = (
        "n_pixel n_tdc n_tdc_errors n_global_time n_control n_count_fb n_unknown n_chunks n_chunks_cut "
        "n_bytes_skipped n_bytes_truncated n_late n_clock_jumps"
    )
    counts = dict.fromkeys(names.split(), 0)
    out = Decoded(counts=counts)
    last = shift = absolute = top = None
    apart = moved = 0
    lows: dict = {}
    times = []
    for chip, words in chunks_of(data, counts):
        for word in words:
            kind = kind_of(word)
            counts[kind] += 1
            if kind == "n_pixel":
                address = word >> 44 & 0xFFFF
                x = 2 * (address >> 9) + (address & 7) // 4
                y = 4 * (address >> 3 & 0x3F) + (address & 3)
                raw = (((word & 0xFFFF) * 2**14 + (word >> 30 & 0x3FFF)) * 16) - (word >> 16 & 15)
                last = raw if last is None else last + nearest(raw - last, WRAP)
                times.append(last)
                time = last + (x // 2 % 16 if phase else 0)
                out.hits.append((time, chip, x, y, word >> 20 & 0x3FF))
                counts["n_late"] += top is not None and (top - time) * 1.5625 > bound
                top = time if top is None else max(top, time)
            elif kind == "n_tdc" or word >> 56 == 0x44:
                raw = (word >> 9 & 2**35 - 1) * 2 if kind == "n_tdc" else (word >> 16 & 2**32 - 1) * 16
                if last is None:
                    last, shift = raw, 0
                elif shift is None:
                    last += nearest(raw - last, WRAP)
                    shift = (raw - last) % LONG_WRAP
                else:
                    last += nearest(raw - shift - last, LONG_WRAP)
                times.append(last)
                if kind == "n_tdc":
                    fine = word >> 5 & 15
                    counts["n_tdc_errors"] += not 1 <= fine <= 12
                    edge = word >> 56 & 15
                    told = (1 if edge in (0xF, 0xA) else 2, edge in (0xF, 0xE), word >> 44 & 0xFFF)
                    out.triggers.append((last, fine - 1 if 1 <= fine <= 12 else 0, chip, *told))
                else:
                    before = lows[chip][1] if chip in lows else last - moved
                    lows[chip] = (raw, last - moved, before, last - moved < before - 2**26)
            elif kind == "n_global_time" and chip in lows:
                low, at, before, is_back = lows[chip]
                told = (word >> 16 & 0xFFFF) * LONG_WRAP + low
                if absolute is None:
                    absolute = told - at
                away = told - absolute - at - moved
                if away != apart or is_back:
                    out.jumps.append((len(out.hits), before + moved + absolute + apart, told))
                    counts["n_clock_jumps"] += 1
                    lows[chip] = (low, at, before, False)
                    if restart:
                        last, moved = last + away, moved + away
                        top = last
                    else:
                        apart = away
    out.base = absolute if absolute is not None else shift or 0
    unit = WRAP if shift is None else LONG_WRAP
    while times and min(times) + out.base < 0:
        out.base += -((min(times) + out.base) // unit) * unit
    return out
