"""Words of Timepix3 readouts (SPIDR, SERVAL), written here from times that never start anew.

The standard: ToA has 14 bits of 25 ns, less 4 bits of 1.5625 ns, and SPIDR's 16 bits of 409.6 us: it starts anew after
26.8 s. TDC: 35 bits of 3.125 ns and twelfths of it, anew after 107.4 s. Global time: two words, 48 bits of 25 ns.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from cases.lanes import some_of

from daskclust.io import open_tpx3, open_tpx3_triggers

SECOND = 640_000_000  # ticks of 1.5625 ns
PIXEL_TURN, TDC_TURN = 2**34, 2**36
EDGES = {0x6F: (1, True), 0x6A: (1, False), 0x6E: (2, True), 0x6B: (2, False)}
OTHERS = {"n_control": 0x50 << 56, "n_count_fb": 0xA << 60, "n_unknown": 0x13 << 56}
HITS = 240

STARTS = [0, PIXEL_TURN - 99, TDC_TURN - 99, 3 * TDC_TURN + PIXEL_TURN // 2, 500_000 * SECOND]
GAPS = [40, SECOND // 50, 12 * SECOND]  # the most between two hits
DISORDERS = [0, 5_000, SECOND // 2]
CLOCKS = ["none", "tdc", "global", "both"]


def pixel(tick: int, x: int, y: int, tot: int) -> int:
    coarse = -(-tick // 16)
    address = (x // 2) << 9 | (y // 4) << 3 | (x % 2) << 2 | y % 4
    time = coarse % 2**14 << 30 | (16 * coarse - tick) << 16 | coarse >> 14 & 0xFFFF
    return 0xB << 60 | address << 44 | tot << 20 | time


def tdc(tick: int, fine: int, edge: int, number: int) -> int:
    return edge << 56 | number << 44 | tick // 2 % 2**35 << 9 | fine << 5


def global_time(tick: int) -> list[int]:
    steps = tick // 16
    return [0x44 << 56 | steps % 2**32 << 16, 0x45 << 56 | steps // 2**32 << 16]


def readout(start: int, gap: int, disorder: int, clock: str, chips: int, per: int, seed: int) -> dict[str, Any]:
    """Return the bytes of a readout; its hits (tick, x, y, tot, chip) and triggers as they come; numbers of words."""
    rng = np.random.default_rng(seed)
    ticks = start + np.cumsum(rng.integers(0, gap, HITS))
    ticks = ticks[np.argsort(ticks + rng.integers(0, disorder + 1, HITS), kind="stable")].tolist()
    hits, triggers, data = [], [], b""
    counts = dict.fromkeys(OTHERS, 0)
    for first in range(0, HITS, per):
        chip, words = int(rng.integers(chips)), list[int]()
        if clock in ("global", "both"):
            words += global_time(max(ticks[: first + 1]))  # when it is sent: it never falls
        for tick in ticks[first : first + per]:
            if clock in ("tdc", "both") and (not hits or rng.random() < 0.2):
                edge, fine, number = int(rng.choice(list(EDGES))), int(rng.integers(1, 13)), len(triggers) % 4096
                words.append(tdc(tick, fine, edge, number))
                triggers.append((tick // 2 * 2, fine - 1, *EDGES[edge], number, chip))
            if rng.random() < 0.1:
                name = str(rng.choice(list(OTHERS)))
                words.append(OTHERS[name])
                counts[name] += 1
            x, y, tot = (int(v) for v in rng.integers(0, [256, 256, 1024]))
            words.append(pixel(tick, x, y, tot))
            hits.append((tick, x, y, tot, chip))
        data += b"TPX3" + struct.pack("<BBH", chip, 0, 8 * len(words)) + struct.pack(f"<{len(words)}Q", *words)
    counts |= {"n_pixel": HITS, "n_tdc": len(triggers), "n_chunks": -(-HITS // per)}
    return {"data": data, "hits": np.array(hits), "triggers": triggers, "counts": counts}


@some_of(
    40, start=STARTS, gap=GAPS, disorder=DISORDERS, clock=CLOCKS, chips=[1, 4], per=[1, 17, HITS], chunks=[None, 50]
)
def test_what_a_readout_sends_is_read(
    tmp_path: Path, start: int, gap: int, disorder: int, clock: str, chips: int, per: int, chunks: int | None
) -> None:
    run = readout(start, gap, disorder, clock, chips, per, start % 1000 + gap)
    path = tmp_path / "a.tpx3"
    path.write_bytes(run["data"])
    ticks, x, y, tot, chip = run["hits"].T
    least = min([*ticks, *(row[0] for row in run["triggers"])])
    known = {"none": PIXEL_TURN, "tdc": TDC_TURN}.get(clock)  # what is told of the time at which the run began
    shift = 0 if known is None else least - least % known
    order = np.argsort(ticks, kind="stable")
    late = np.maximum.accumulate(ticks) - ticks

    ds = open_tpx3(path, chunks=chunks)
    assert {name: ds.attrs[name] for name in run["counts"]} == run["counts"]
    assert (ds.attrs["disorder"], ds.attrs["n_late"]) == (late.max() * 1.5625, np.count_nonzero(late * 1.5625 > 6e5))
    assert [ds.attrs[f"n_{name}"] for name in ("clock_jumps", "bytes_skipped", "chunks_cut", "tdc_errors")] == [0] * 4
    ds = ds.compute()
    np.testing.assert_array_equal(ds["toa"], (ticks[order] - shift) * 1.5625)
    for name, values in {"x": x, "y": y, "tot": 25 * tot, "chip": chip}.items():
        np.testing.assert_array_equal(ds[name], values[order], err_msg=name)

    found = open_tpx3_triggers(path)
    rows = [((tick - shift) * 1.5625 + fine * (3.125 / 12), *rest) for tick, fine, *rest in run["triggers"]]
    rows.sort(key=lambda row: row[0])
    assert found.sizes["trigger"] == len(rows)
    for k, name in enumerate(("time", "channel", "is_rising", "number", "chip")):
        wanted = np.array([row[k] for row in rows], np.float64)
        np.testing.assert_allclose(found[name].values.astype(float), wanted, rtol=1e-15, atol=0, err_msg=name)
