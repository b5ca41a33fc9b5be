"""Bytes of Timepix3 readouts, word by word, and what a file of them must be read as."""

import itertools
import struct
from fractions import Fraction

import numpy as np
from cases.files import tpx3_reference

from daskclust.io import open_tpx3_triggers
from daskclust.io.timepix.tpx3.read import open_hits

SECOND = 640_000_000  # ticks
PLAIN = {"layout": "chips", "gap": 0, "disorder": 600_000.0, "phase_correction": False, "on_reset": "continue"}
COLUMNS = ("x", "y", "toa", "tot", "chip")


def rows_of(ds, *names):
    """Return the rows of a data set, whose first column is of times, as tuples of exact numbers."""
    return [
        (Fraction(first), *rest) for first, *rest in zip(*(ds[name].values.tolist() for name in names), strict=True)
    ]


def pixel(tick, x=0, y=0, tot=4):
    coarse = -(-tick // 16)
    address = (x // 2) << 9 | (y // 4) << 3 | (x % 2) << 2 | y % 4
    fields = (coarse & 0x3FFF) << 30 | tot << 20 | (coarse * 16 - tick) << 16 | coarse >> 14 & 0xFFFF
    return 0xB << 60 | address << 44 | fields


def tdc(tick, fine=1, kind=0x6F, number=0):
    return kind << 56 | number << 44 | (tick // 2 & 2**35 - 1) << 9 | fine << 5


def global_time(tick):
    return 0x44 << 56 | (tick // 16 & 2**32 - 1) << 16, 0x45 << 56 | (tick // 2**36 & 0xFFFF) << 16


def chunk(words, chip=0, size=None):
    size = 8 * len(words) if size is None else size
    return b"TPX3" + struct.pack("<BBH", chip, 0, size) + struct.pack(f"<{len(words)}Q", *words)


OTHER_WORDS = [0xA << 60 | 77 << 20, 0x50 << 56, 0x7145 << 48, 0x60 << 56, 0x13 << 56, 0, 2**64 - 1, 0x33585054]


def stream(rng, chunks=30, longest=40, step=2000, jitter=3000, start=0):
    """Return bytes of chunks whose words are a little out of order, of some chips, with words of all kinds between."""
    tick, out = start + 5000, []
    for _ in range(chunks):
        words = []
        for _ in range(rng.integers(0, longest)):
            tick += int(rng.integers(0, step))
            t = max(0, tick - int(rng.integers(0, jitter)))
            choice = rng.integers(0, 20)
            if choice == 0:
                words.append(OTHER_WORDS[rng.integers(len(OTHER_WORDS))])
            elif choice == 1:
                words.append(tdc(t, int(rng.integers(0, 14)), int(rng.choice([0x6F, 0x6A, 0x6E, 0x6B])), len(out)))
            elif choice == 2 and start:
                words += global_time(t)
            else:
                words.append(pixel(t, *(int(v) for v in rng.integers(0, 256, 2)), int(rng.integers(0, 1024))))
        out.append(chunk(words, int(rng.integers(0, 4))))
    return b"".join(out)


def fed(reader, data, *steps):
    """Return the hits of a readout whose bytes come in pieces of these sizes, over and over, and then end."""
    place, parts = 0, []
    for step in itertools.cycle(steps):
        if place >= len(data):
            break
        parts.append(reader.feed(data[place : place + step]))
        place += step
    parts.append(reader.close())
    return {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}


def bytes_counted(counts):
    words = sum(counts[f"n_{kind}"] for kind in ("pixel", "tdc", "global_time", "control", "count_fb", "unknown"))
    return 8 * (words + counts["n_chunks"]) + counts["n_bytes_skipped"] + counts["n_bytes_truncated"]


def check(path, data, chunks=None, cell_words=None, window_hits=None, **options):
    """Compare a file with the plain decoder, every byte of it accounted for; return the data set."""
    options = PLAIN | options
    hits = open_hits(path, chunks=chunks, cell_words=cell_words, window_hits=window_hits, **options)
    restart = options["on_reset"] == "restart"
    want = tpx3_reference.decode(data, options["disorder"], options["phase_correction"], restart)
    assert hits.index.counts == want.counts
    assert hits.index.jumps.tolist() == [list(jump) for jump in want.jumps[:100]]
    assert bytes_counted(want.counts) == len(data)
    rows = sorted(want.hits, key=lambda hit: hit[0])  # stable
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    wanted = {"toa": (table[:, 0] + want.base) * 1.5625, "chip": table[:, 1], "x": table[:, 2], "y": table[:, 3]}
    wanted["tot"] = table[:, 4] * 25.0
    whole, parts = hits.whole().read(), [hits.piece(number).read() for number in range(len(hits.sizes))]
    for name in COLUMNS:
        np.testing.assert_array_equal(whole[name], wanted[name], err_msg=name)
        np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), wanted[name], err_msg=name)
    return hits


def check_triggers(path, data, on_reset="continue"):
    """Compare the triggers of a file with the plain decoder; return them."""
    ds = open_tpx3_triggers(path, on_reset=on_reset)
    want = tpx3_reference.decode(data, restart=on_reset == "restart")
    rows = [((t + want.base) * 1.5625 + fine * 3.125 / 12, channel, rising, number, chip)
            for t, fine, chip, channel, rising, number in want.triggers]  # fmt: skip
    rows.sort(key=lambda row: row[0])
    found = zip(*(ds[name].values.tolist() for name in ("time", "channel", "is_rising", "number", "chip")), strict=True)
    assert list(found) == rows
    return ds
