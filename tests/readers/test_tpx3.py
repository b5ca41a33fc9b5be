"""Raw Timepix3 files: against a plain decoder, real files, and damaged ones."""

from __future__ import annotations

import itertools
import logging
import pickle
import struct
import threading
from types import SimpleNamespace

import dask
import numpy as np
import pytest
import xarray as xr
from cases import tpx3_reference
from hypothesis import given, settings
from hypothesis import strategies as st

from daskclust.core.device.timesort import order_of_ticks
from daskclust.io import WordReader, open_tpx3, open_tpx3_triggers, time_of_flight, write_tpx3
from daskclust.io.timepix.tpx3.read import open_hits
from daskclust.io.timepix.tpx3.stream import WordDecoder
from daskclust.io.timepix.tpx3.xarray import Tpx3Entrypoint

SECOND = 640_000_000  # ticks
PLAIN = {"layout": "chips", "gap": 0, "disorder": 600_000.0, "phase_correction": False, "on_reset": "continue"}
COLUMNS = ("x", "y", "toa", "tot", "chip")


@pytest.fixture
def write(tmp_path):
    """Return a function that writes bytes to a new file; its index is never an earlier file's."""
    numbers = itertools.count()

    def write_bytes(data):
        path = tmp_path / f"{next(numbers)}.tpx3"
        path.write_bytes(data)
        return str(path)

    return write_bytes


# ---------------------------------------------------------------------------------------------------- words, by hand
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
    parts = [hits.piece(number).read() for number in range(len(hits.sizes))]
    for name in COLUMNS:
        np.testing.assert_array_equal(hits.whole().read()[name], wanted[name], err_msg=name)
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


# ----------------------------------------------------------------------------------------------------------- real files
def test_a_real_run(shared_data, caplog):
    path = str(shared_data / "timepix" / "sns_suann_socket_background_serval32.tpx3")
    with open(path, "rb") as file:
        data = file.read()
    with caplog.at_level(logging.WARNING, "daskclust.io"):
        ds = open_tpx3(path)
    assert np.bincount(ds["chip"]).tolist() == [2341, 2921, 4631, 88655]
    assert ds.sizes["hit"] == 98548
    assert ds.attrs["n_tdc"] == 28800
    assert np.ptp(ds["toa"].values) == 119_997_260_468.75
    assert ds.attrs["n_late"] > 0
    assert f"{ds.attrs['n_late']} of 98548 hits are later" in caplog.text
    assert f"disorder={ds.attrs['disorder']:g}" in caplog.text
    check(path, data, chunks=7000)
    check(path, data, chunks=1000, cell_words=100, window_hits=300)
    triggers = check_triggers(path, data)
    assert triggers.sizes["trigger"] == 28800
    # The source's 60 Hz to a tick, through the wraps of all counters, on every chip.
    for number in range(4):
        of_chip = triggers.isel(trigger=triggers["chip"].values == number)
        assert (np.diff(of_chip["number"].values.astype(int)) % 4096 == 1).all()
        period = np.diff(of_chip["time"])
        assert len(period) == 7199
        np.testing.assert_allclose(period, 16_666_527.46, rtol=0, atol=1.5625)


def test_a_rollover_does_not_make_times_jump(shared_data):
    path = shared_data / "timepix" / "sns_rollover_test_data.tpx3"
    ds = open_tpx3(path)
    assert ds.sizes["hit"] == 26
    assert np.ptp(ds["toa"].values) == 8_388_198_400.0
    check(str(path), path.read_bytes(), chunks=5, cell_words=3, window_hits=2)


# ------------------------------------------------------------------------------------------------- against the oracle
@given(
    seed=st.integers(0, 2**32),
    cell_words=st.sampled_from([1, 2, 7, 16, 17, 33, 64, 500]),
    window_hits=st.sampled_from([1, 3, 20, 100, 10_000]),
    chunks=st.sampled_from([None, 1, 10, 77, 1000]),
    step=st.sampled_from([1, 100, 2000, SECOND // 100, SECOND, 12 * SECOND]),
    jitter=st.sampled_from([1, 3000, SECOND]),
    start=st.sampled_from([0, 25 * SECOND, 107 * SECOND, 250 * SECOND]),
    phase=st.booleans(),
)
@settings(max_examples=60)
def test_sizes_of_cells_windows_and_chunks_do_not_matter(
    tmp_path_factory, seed, cell_words, window_hits, chunks, step, jitter, start, phase
):
    data = stream(np.random.default_rng(seed), step=step, jitter=jitter, start=start)
    path = tmp_path_factory.mktemp("drawn") / "run.tpx3"
    path.write_bytes(data)
    check(str(path), data, chunks, cell_words, window_hits, phase_correction=phase)


def test_long_chunks_take_the_way_of_whole_groups(write):
    rng = np.random.default_rng(0)
    ticks = np.arange(20_000) * 30 + rng.integers(0, 4000, 20_000)
    words = [pixel(int(t), *(int(v) for v in rng.integers(0, 256, 2))) for t in ticks]
    words[500], words[7000], words[12_345] = pixel(3 * SECOND), OTHER_WORDS[0], tdc(int(ticks[12_344]))
    data = b"".join(chunk(words[k : k + 3000], 1) for k in range(0, len(words), 3000))
    for window_hits in (500, 100_000):
        hits = check(write(data), data, window_hits=window_hits, disorder=1000.0)
    assert hits.index.counts["n_late"] > 0
    check(write(data[8:]), data[8:])


def test_threads_do_not_matter(write, monkeypatch):
    """Two threads are held up until both have a piece, so they do work at once, on whatever machine."""
    from daskclust.io.timepix.tpx3 import decode as _tpx3_decode

    loop, both, scratches = _tpx3_decode.read_window.loop, threading.Barrier(2), []

    def held_loop(first, last, args):
        scratches.append(args[-2][0])
        if len(scratches) <= 2:
            both.wait(timeout=60)
        loop(first, last, args)

    data = stream(np.random.default_rng(8), chunks=400)
    path = write(data)
    alone = open_hits(path, **PLAIN, chunks=None, window_hits=100, cell_words=64)
    monkeypatch.setattr(_tpx3_decode, "thread_count", lambda: 2)
    monkeypatch.setattr(_tpx3_decode, "read_window", SimpleNamespace(loop=held_loop))
    found = alone.whole().read()
    assert len(alone.windows) > 20
    assert len(scratches) == 16  # pieces
    assert not np.shares_memory(*scratches[:2])
    monkeypatch.undo()
    wanted = check(path, data, window_hits=100, cell_words=64).whole().read()
    for name in COLUMNS:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)


@pytest.mark.parametrize("chips", [1, 4, 256])
def test_times_that_make_no_sense(write, chips):
    rng = np.random.default_rng(chips)
    words = [int(w) >> 4 | 0xB << 60 for w in rng.integers(0, 2**64, 3000, dtype=np.uint64)]
    words[::7] = [tdc(int(t)) for t in rng.integers(0, 2**36, len(words[::7]))]
    cuts = np.sort(rng.integers(0, len(words), 200))
    parts = [words[a:b] for a, b in itertools.pairwise([0, *cuts.tolist(), len(words)])]
    data = b"".join(chunk(part, int(rng.integers(chips))) for part in parts)
    check(write(data), data, chunks=100)
    check(write(data), data, chunks=1000, cell_words=50, window_hits=10)


def test_late_hits_are_in_order_and_told(write, caplog):
    ticks = [*range(0, 100_000, 10), 50, *range(100_000, 200_000, 10)]
    data = chunk([pixel(t) for t in ticks[:8000]]) + b"".join(
        chunk([pixel(t) for t in ticks[k : k + 8000]]) for k in range(8000, len(ticks), 8000)
    )
    path = write(data)
    with caplog.at_level(logging.WARNING, "daskclust.io"):
        ds = open_tpx3(path, disorder=1000.0)
    assert ds.attrs["n_late"] == 1
    assert ds.attrs["disorder"] == (99_990 - 50) * 1.5625
    assert "1 of 20001 hits" in caplog.text
    np.testing.assert_array_equal(ds["toa"], np.sort(ticks) * 1.5625)


def test_times_over_many_wraps_and_gaps(write):
    ticks = [k * 7 * SECOND for k in range(60)]
    data = chunk([pixel(t) for t in ticks])
    np.testing.assert_array_equal(open_tpx3(write(data))["toa"], np.array(ticks) * 1.5625)
    # A gap of 40 s, longer than pixels can tell: TDC words do.
    words = [pixel(SECOND), tdc(SECOND), tdc(41 * SECOND), pixel(41 * SECOND)]
    np.testing.assert_array_equal(open_tpx3(write(chunk(words)))["toa"], np.array([1, 41]) * 1e9)


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ([pixel(40 * SECOND)], 40 * SECOND - 2**34),
        ([pixel(40 * SECOND), tdc(40 * SECOND)], 40 * SECOND),
        ([pixel(300 * SECOND), tdc(300 * SECOND)], 300 * SECOND - 2 * 2**36),
        ([pixel(300 * SECOND), *global_time(300 * SECOND)], 300 * SECOND),
        ([tdc(300 * SECOND), pixel(300 * SECOND), *global_time(300 * SECOND)], 300 * SECOND),
        ([pixel(2**34 + 10), pixel(2**34 - 10)], 2**34 - 10),
        ([pixel(2**36 + 10), tdc(2**36 + 10), pixel(2**36 - 10)], 2**36 - 10),
    ],
)
def test_the_start_of_the_clock(write, words, first):
    assert open_tpx3(write(chunk(words)))["toa"].values[0] == first * 1.5625


def test_triggers(write):
    times = [105 * SECOND, 108 * SECOND, 120 * SECOND, 120 * SECOND]
    words = [
        tdc(times[0], 1, 0x6F, 5),
        tdc(times[1], 12, 0x6A, 6),
        tdc(times[3], 0, 0x6B, 7),
        tdc(times[2], 3, 0x6E, 8),
    ]
    ds = open_tpx3_triggers(write(chunk([pixel(105 * SECOND), *words], chip=2)))
    fine = 3.125 / 12
    np.testing.assert_array_equal(
        ds["time"], [105e9, 108e9 + 11 * fine, 120e9, 120e9 + 2 * fine], err_msg="extended through the wrap at 107 s"
    )
    assert ds["channel"].values.tolist() == [1, 1, 2, 2]
    assert ds["is_rising"].values.tolist() == [True, False, False, True]
    assert ds["number"].values.tolist() == [5, 6, 7, 8]
    assert ds["chip"].values.tolist() == [2] * 4
    assert ds.attrs["n_tdc_errors"] == 1
    assert open_tpx3_triggers(write(chunk([pixel(0)]))).sizes["trigger"] == 0


@given(seed=st.integers(0, 2**32), start=st.sampled_from([0, 250 * SECOND]), cell_words=st.sampled_from([1, 64]))
def test_triggers_as_the_oracle_has_them(tmp_path_factory, seed, start, cell_words):
    data = stream(np.random.default_rng(seed), start=start)
    path = tmp_path_factory.mktemp("drawn") / "run.tpx3"
    path.write_bytes(data)
    check_triggers(path, data)


# -------------------------------------------------------------------------------------------------------- damaged files
@pytest.mark.slow
def test_files_cut_at_any_byte(write):
    rng = np.random.default_rng(3)
    data = stream(rng, chunks=8, longest=12)
    for cut in range(len(data)):
        if b"TPX3" in data[cut:]:
            check(write(data[cut:]), data[cut:], cell_words=7)
        if cut > 8:
            check(write(data[:cut]), data[:cut], cell_words=7)


def test_sizes_that_are_wrong(write):
    words = [pixel(t) for t in range(0, 500, 100)]
    good = chunk(words, 1)
    for bad in (
        chunk(words, 2, size=8), chunk(words, 2, size=48), chunk(words, 2, size=39), chunk(words, 2, size=65535),
        chunk(words, 2, size=0), chunk([]), good[:-3], b"TPX3", b"TPX3TPX3TPX3", chunk([0x33585054 | 16 << 48, 1, 2]),
    ):  # fmt: skip
        for data in (good + bad + good + good, bad + good, good + bad):
            check(write(data), data)


@pytest.mark.slow
def test_fuzz(write):
    rng = np.random.default_rng(11)
    valid = [stream(rng, chunks=12, longest=10) for _ in range(8)]
    refused = 0
    for number in range(3000):
        data = bytearray(valid[number % 8])
        for _ in range(rng.integers(0, 6)):
            place = int(rng.integers(len(data)))
            what = rng.integers(4)
            if what == 0:
                data[place] = rng.integers(256)
            elif what == 1:
                del data[place : place + int(rng.integers(1, 40))]
            elif what == 2:
                data[place:place] = rng.bytes(int(rng.integers(1, 20)))
            else:
                data[place:place] = b"TPX3"
        data = bytes(data) if number % 10 else rng.bytes(int(rng.integers(1, 200)))
        path = write(data)
        sizes = {"cell_words": int(rng.integers(1, 80)), "window_hits": int(rng.integers(1, 50))}
        if tpx3_reference.decode(data).counts["n_chunks"]:
            check(path, data, chunks=20, **sizes)
        else:
            refused += 1
            with pytest.raises(ValueError, match=f"{path} has no chunk of Timepix3 words"):
                open_tpx3(path)
        cut = int(rng.integers(len(data) + 1))
        counts, ticks = decoded(data[:cut], data[cut:])
        assert bytes_counted(counts) == len(data)
        assert (counts, ticks) == decoded(data)
    assert 200 < refused < 400  # most of those of random bytes, and hardly any others


def decoded(*pieces):
    """Return what a stream counts, and the times of its hits."""
    decoder = WordDecoder()
    hits = [*map(decoder.feed, pieces), decoder.close()]
    return decoder.counts, np.concatenate([part.tick for part in hits]).tolist()


def test_what_is_no_tpx3_file(write, tmp_path):
    with pytest.raises(ValueError, match=r"0\.tpx3 is empty \(0 bytes\)"):
        open_tpx3(write(b""))
    with pytest.raises(ValueError, match="has no chunk of Timepix3 words: it begins with b'x,y,toa"):
        open_tpx3(write(b"x,y,toa\n1,2,3\n"))
    with pytest.raises(FileNotFoundError, match=r"no such file: .*none\.tpx3"):
        open_tpx3(tmp_path / "none.tpx3")
    with pytest.raises(IsADirectoryError, match="is a directory"):
        open_tpx3(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "row"}, "unknown layout 'row'; known: chips, quad"),
        ({"gap": -1}, "gap must be a number of pixels .* got -1"),
        ({"gap": 1.5}, "gap must be a number of pixels .* got 1.5"),
        ({"disorder": -1.0}, "disorder must be a time in ns, not negative, got -1.0"),
        ({"disorder": np.nan}, "disorder must be a time in ns"),
        ({"chunks": 0}, "chunks must be a positive number of hits, 'auto' or None, got 0"),
        ({"chunks": "many"}, "chunks must be a positive number of hits"),
        ({"layout": "quad"}, "has 2 hits of chip 7, and a quad has chips 0 to 3; use layout='chips'"),
    ],
)
def test_wrong_parameters(write, options, message):
    with pytest.raises(ValueError, match=message):
        open_tpx3(write(chunk([pixel(5), pixel(6)], chip=7)), **options)


def test_a_file_without_hits(write):
    path = write(chunk([tdc(100), OTHER_WORDS[1]]))
    for chunks in (None, 10):
        ds = open_tpx3(path, chunks=chunks)
        assert ds.sizes["hit"] == 0
        assert (ds.attrs["n_tdc"], ds.attrs["n_control"], ds.attrs["n_pixel"]) == (1, 1, 0)
        assert {name: ds[name].compute().dtype for name in COLUMNS} == {
            "x": np.uint16, "y": np.uint16, "toa": np.float64, "tot": np.float32, "chip": np.uint8,
        }  # fmt: skip


# ---------------------------------------------------------------------------------------------- layout, units, phase
def test_quad(write):
    data = b"".join(chunk([pixel(16 * chip, 10, 20)], chip) for chip in range(4))
    ds = open_tpx3(write(data), layout="quad", gap=3)
    assert ds["x"].values.tolist() == [10 + 256 + 3, 511 + 3 - 10, 255 - 10, 10]
    assert ds["y"].values.tolist() == [20, 511 + 3 - 20, 511 + 3 - 20, 20]
    assert (ds.attrs["layout"], ds.attrs["gap"]) == ("quad", 3)
    assert open_tpx3(write(data)).attrs["layout"] == "chips"
    assert {name: ds[name].attrs["units"] for name in COLUMNS} == {
        "x": "pixel", "y": "pixel", "toa": "ns", "tot": "ns", "chip": "1",
    }  # fmt: skip


def test_phase_correction(write):
    columns = [0, 1, 2, 31, 32, 255]
    data = chunk([pixel(1000 * k, x) for k, x in enumerate(columns)])
    toa = [open_tpx3(write(data), phase_correction=phase)["toa"].values for phase in (False, True)]
    np.testing.assert_array_equal((toa[1] - toa[0]) / 1.5625, [x // 2 % 16 for x in columns])


def test_a_time_before_the_clock_within_a_whole_group_moves_corrected_hits_too(write):
    data = chunk([pixel(5), *(pixel(t) for t in range(20, 60)), pixel(-3, 10), *(pixel(t) for t in range(60, 100))])
    path = write(data)
    for phase in (False, True):
        check(path, data, phase_correction=phase)
    assert open_tpx3(path)["toa"].values[0] == (2**34 - 3) * 1.5625
    assert open_tpx3(path, phase_correction=True)["toa"].values[0] == (2**34 + 2) * 1.5625


@pytest.mark.parametrize("start", [-3, 8 * SECOND + 1, 2**34 - 3, 2**36 - 3])
def test_triggers_and_corrected_hits_have_one_clock(write, start):
    """Only some times before the correction are before the clock's start, or beyond half of its range."""
    words = [pixel(start, 10), tdc(start + 103), pixel(start + 203), pixel(start + 203 + 2**33 - 5, 30)]
    path = write(chunk(words))
    plain, corrected = (open_tpx3(path, phase_correction=phase) for phase in (False, True))
    np.testing.assert_array_equal(corrected["toa"] - plain["toa"], plain["x"] // 2 % 16 * 1.5625)
    time = open_tpx3_triggers(path)["time"].values
    np.testing.assert_array_equal(corrected["toa"] - time, np.array([-98, 100, 2**33 + 110]) * 1.5625)


# --------------------------------------------------------------------------------------------------- lazy, xarray, dask
@pytest.fixture
def run(write):
    """Return a file of some thousand hits."""
    return write(stream(np.random.default_rng(5), chunks=200, longest=60))


def test_lazy_reading_decodes_nothing_before_it_is_computed(run, monkeypatch):
    whole = open_tpx3(run)
    lazy = open_tpx3(run, chunks=500)
    assert lazy.chunks["hit"] == tuple(len(block) for block in dask.compute(*lazy["x"].data.to_delayed()))
    assert len(lazy.chunks["hit"]) > 4
    xr.testing.assert_identical(lazy.compute(), whole)
    xr.testing.assert_identical(open_tpx3(run, chunks="auto").compute(), whole)
    monkeypatch.setattr("daskclust.io.timepix.tpx3.read.read_columns", None)
    open_tpx3(run, chunks=500)
    xr.open_dataset(run, engine=Tpx3Entrypoint, chunks={})


def test_one_task_reads_all_columns_of_a_chunk(run, monkeypatch):
    from daskclust.io.timepix.tpx3 import read as _tpx3_read

    read, calls = _tpx3_read.read_columns, []
    monkeypatch.setattr(_tpx3_read, "read_columns", lambda *args: (calls.append(1), read(*args))[1])
    lazy = open_tpx3(run, chunks=500)
    lazy.compute()
    assert len(calls) == len(lazy.chunks["hit"])
    calls.clear()
    backed = xr.open_dataset(run, engine=Tpx3Entrypoint, hits_per_chunk=100_000)
    backed.load()
    assert len(calls) == 1


def test_xarray_engine(run):
    whole = open_tpx3(run)
    backed = xr.open_dataset(run, engine=Tpx3Entrypoint, hits_per_chunk=700)
    for rows in (
        slice(None),
        slice(5, 3000, 7),
        slice(None, None, -3),
        slice(4, 4),
        [3, 2000, 5],
        -1,
        slice(2000, 10, -9),
    ):
        for name in ("x", "toa"):
            np.testing.assert_array_equal(backed[name][rows], whole[name][rows])
    xr.testing.assert_identical(pickle.loads(pickle.dumps(backed)).load(), whole)
    lazy = xr.open_dataset(run, engine=Tpx3Entrypoint, hits_per_chunk=700, chunks={})
    assert lazy.chunks["hit"] == open_tpx3(run, chunks=700).chunks["hit"]
    xr.testing.assert_identical(lazy.compute(), whole)
    xr.testing.assert_identical(xr.open_dataset(run, engine=Tpx3Entrypoint, group="tdc"), open_tpx3_triggers(run))
    dropped = xr.open_dataset(run, engine=Tpx3Entrypoint, drop_variables=["tot"])
    assert "tot" not in dropped
    with pytest.raises(ValueError, match="unknown group 'hits'"):
        xr.open_dataset(run, engine=Tpx3Entrypoint, group="hits")
    guess = Tpx3Entrypoint().guess_can_open
    assert [guess("a.tpx3"), guess("A.TPX3"), guess("a.nc"), guess(3)] == [True, True, False, False]


def test_xarray_finds_the_engine_by_its_name(run):
    """The entry point of the installed package: if this fails, install it with ``pip install -e .``."""
    whole = open_tpx3(run)
    assert isinstance(xr.backends.list_engines()["tpx3"], Tpx3Entrypoint)
    xr.testing.assert_identical(xr.open_dataset(run, engine="tpx3").load(), whole)
    xr.testing.assert_identical(xr.open_dataset(run).load(), whole)  # guessed by its extension
    lazy = xr.open_dataset(run, engine="tpx3", chunks={}, hits_per_chunk=500)
    assert lazy.chunks["hit"] == open_tpx3(run, chunks=500).chunks["hit"]
    xr.testing.assert_identical(lazy.compute(), whole)
    xr.testing.assert_identical(xr.open_dataset(run, engine="tpx3", group="tdc"), open_tpx3_triggers(run))
    quad = xr.open_dataset(run, engine="tpx3", layout="quad", gap=2, phase_correction=True).load()
    xr.testing.assert_identical(quad, open_tpx3(run, layout="quad", gap=2, phase_correction=True))


def test_the_engine_tells_what_is_no_file_of_it(write, tmp_path):
    with pytest.raises(ValueError, match=r"is empty \(0 bytes\)"):
        xr.open_dataset(write(b""), engine="tpx3")
    with pytest.raises(ValueError, match="has no chunk of Timepix3 words"):
        xr.open_dataset(write(b"x,y,toa\n1,2,3\n"))
    with pytest.raises(FileNotFoundError, match="no such file"):
        xr.open_dataset(tmp_path / "none.tpx3", engine="tpx3")


@pytest.mark.parametrize("hits", [0, -5, 2.5, True, "many", None])
def test_the_engine_checks_the_size_of_chunks(run, hits):
    with pytest.raises(ValueError, match=f"hits_per_chunk must be a positive number of hits, got {hits!r}"):
        xr.open_dataset(run, engine=Tpx3Entrypoint, hits_per_chunk=hits)


@pytest.mark.slow
def test_the_engine_on_a_worker_process(run):
    from distributed import Client, LocalCluster

    options = {"n_workers": 1, "threads_per_worker": 2, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        lazy = xr.open_dataset(run, engine="tpx3", chunks={}, hits_per_chunk=900)
        assert len(lazy.chunks["hit"]) > 3
        xr.testing.assert_identical(lazy.compute(scheduler=client), open_tpx3(run))
        total = lazy["tot"].sum(dtype=np.float64).compute(scheduler=client)
        assert total == open_tpx3(run)["tot"].sum(dtype=np.float64)


def test_on_a_cluster(run):
    from distributed import Client

    whole = open_tpx3(run)
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0"):
        xr.testing.assert_identical(open_tpx3(run, chunks=900).compute(scheduler="distributed"), whole)
        lazy = xr.open_dataset(run, engine=Tpx3Entrypoint, hits_per_chunk=900, chunks={})
        xr.testing.assert_identical(lazy.compute(scheduler="distributed"), whole)


def test_a_file_that_changes_is_not_read(run):
    lazy = open_tpx3(run, chunks=500)
    with open(run, "ab") as file:
        file.write(b"more")
    with pytest.raises(ValueError, match="has changed since it was opened"):
        lazy.compute()


# ------------------------------------------------------------------------------------------------------- time of flight
def test_time_of_flight():
    import dask.array as da

    rng = np.random.default_rng(2)
    times, marks = rng.uniform(0, 1000, 300), np.sort(rng.uniform(100, 900, 20))
    times[:20] = marks
    want = np.array([t - max((m for m in marks if m <= t), default=np.nan) for t in times])
    np.testing.assert_array_equal(time_of_flight(times, marks), want)
    lazy = time_of_flight(da.from_array(times, chunks=70), marks)
    np.testing.assert_array_equal(lazy.compute(), want)
    named = time_of_flight(xr.DataArray(times, dims="hit", attrs={"units": "ns"}), rng.permutation(marks))
    assert (named.name, named.attrs["units"], named.dims) == ("tof", "ns", ("hit",))
    np.testing.assert_array_equal(named, want)
    assert np.isnan(time_of_flight(times, [])).all()
    triggers = xr.Dataset(
        {
            "time": ("trigger", marks),
            "channel": ("trigger", np.arange(20) % 2 + 1),
            "is_rising": ("trigger", np.arange(20) % 4 < 2),
        }
    )
    np.testing.assert_array_equal(time_of_flight(times, triggers), time_of_flight(times, marks[0::4]))
    falling = time_of_flight(times, triggers, channel=2, rising=False)
    np.testing.assert_array_equal(falling, time_of_flight(times, marks[3::4]))
    with pytest.raises(ValueError, match="channel must be 1 or 2, got 3"):
        time_of_flight(times, triggers, channel=3)
    with pytest.raises(ValueError, match="triggers have no variable is_rising"):
        time_of_flight(times, triggers.drop_vars("is_rising"))
    with pytest.raises(ValueError, match="must be finite and 1-D"):
        time_of_flight(times, [1.0, np.nan])


# --------------------------------------------------------------------------------------------------------------- writer
def hits_of(ticks, rng, chips=3):
    n = len(ticks)
    columns = {
        "x": rng.integers(0, 256, n).astype(np.uint16), "y": rng.integers(0, 256, n).astype(np.uint16),
        "toa": np.asarray(ticks) * 1.5625, "tot": (rng.integers(0, 1024, n) * 25).astype(np.float32),
        "chip": rng.integers(0, chips, n).astype(np.uint8),
    }  # fmt: skip
    return xr.Dataset({name: ("hit", values) for name, values in columns.items()})


@pytest.mark.parametrize("span", [1, 10_000, 30 * SECOND, 1000 * SECOND, 1_000_000 * SECOND])
@pytest.mark.parametrize("words_per_chunk", [1, 100, 8191])
def test_what_is_written_is_read_again(tmp_path, span, words_per_chunk):
    rng = np.random.default_rng(span)
    n = 300 if span < 1e14 else 3
    ds = hits_of(np.sort(rng.integers(0, span, n)) + span, rng)
    steps = 12 * np.sort(rng.integers(0, 2 * span, 50)) + np.arange(50)  # of the fine count
    triggers = xr.Dataset(
        {
            "time": ("trigger", steps // 12 * 3.125 + steps % 12 * (3.125 / 12)),
            "channel": ("trigger", rng.integers(1, 3, 50).astype(np.uint8)),
            "is_rising": ("trigger", rng.integers(0, 2, 50).astype(bool)),
            "number": ("trigger", np.arange(50, dtype=np.uint16)),
            "chip": ("trigger", rng.integers(0, 3, 50).astype(np.uint8)),
        }
    )
    if span > 1e14:
        triggers = None
    path = tmp_path / "run.tpx3"
    write_tpx3(ds, path, triggers=triggers, words_per_chunk=words_per_chunk)
    back = open_tpx3(path, disorder=1e6)
    xr.testing.assert_equal(back, ds)
    assert (back.attrs["n_chunks_cut"], back.attrs["n_unknown"], back.attrs["disorder"]) == (0, 0, 0.0)
    write_tpx3(ds.chunk(hit=37), path, triggers=triggers, words_per_chunk=words_per_chunk)
    xr.testing.assert_equal(open_tpx3(path), ds)
    if triggers is not None:
        xr.testing.assert_equal(open_tpx3_triggers(path), triggers)


def test_what_cannot_be_written(tmp_path):
    ds = hits_of([1, 2, 3], np.random.default_rng(0))
    path = tmp_path / "run.tpx3"
    bad = [
        ({"x": ("hit", [0, 256, 0])}, r"x must be from 0 to 255, got .*256.* \(hit 1 of its block\)"),
        ({"toa": ("hit", [0.0, -5.0, 0.0])}, "toa must be from 0"),
        ({"toa": ("hit", [0.0, np.nan, 0.0])}, "toa must be from 0"),
        ({"tot": ("hit", [0.0, 1e6, 0.0])}, "tot must be from 0 to 25575"),
    ]
    for change, message in bad:
        with pytest.raises(ValueError, match=message):
            write_tpx3(ds.assign(change), path)
    with pytest.raises(ValueError, match="layout 'quad'"):
        write_tpx3(ds.assign_attrs(layout="quad"), path)
    with pytest.raises(ValueError, match="has no variable tot"):
        write_tpx3(ds.drop_vars("tot"), path)
    for words in (9000, 0, 2.5, True, "10"):
        with pytest.raises(ValueError, match=f"words_per_chunk must be a whole number from 1 to 8191, got {words!r}"):
            write_tpx3(ds, path, words_per_chunk=words)
    triggers = xr.Dataset({"time": ("trigger", [0.0, 10.0])})
    for change, message in [
        ({"channel": ("trigger", [1, 0])}, r"channel must be from 1 to 2, got .*0.* \(trigger 1\)"),
        ({"channel": ("trigger", [3, 1])}, r"channel must be from 1 to 2, got .*3.* \(trigger 0\)"),
        ({"number": ("trigger", [0, 4096])}, r"number must be from 0 to 4095, got .*4096.* \(trigger 1\)"),
        ({"time": ("trigger", [np.nan, 10.0])}, r"time must be from 0 to .* got .*nan.* \(trigger 0\)"),
        ({"chip": ("trigger", [-1, 10])}, r"chip must be from 0 to 255, got .*-1.* \(trigger 0\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_tpx3(ds, path, triggers=triggers.assign(change))
    assert not path.exists()
    write_tpx3(ds.isel(hit=slice(0)), path)
    assert path.stat().st_size == 0


def test_triggers_without_numbers_are_counted_in_the_order_of_time(tmp_path):
    path = tmp_path / "run.tpx3"
    triggers = xr.Dataset({"time": ("trigger", [300.0, 100.0, 200.0]), "chip": ("trigger", [3, 1, 2])})
    write_tpx3(hits_of([10, 400], np.random.default_rng(0)), path, triggers=triggers)
    found = open_tpx3_triggers(path)
    assert (found["time"].values.tolist(), found["chip"].values.tolist()) == ([100.0, 200.0, 300.0], [1, 2, 3])
    assert (found["number"].values.tolist(), found["channel"].values.tolist()) == ([0, 1, 2], [1, 1, 1])


# -------------------------------------------------------------------------------------------------------------- streams
@given(
    seed=st.integers(0, 2**32),
    start=st.sampled_from([0, 250 * SECOND]),
    steps=st.lists(st.sampled_from([0, 1, 3, 8, 100, 5000]), min_size=1, max_size=6).filter(any),
)
def test_a_stream_gives_what_the_file_does(seed, start, steps):
    rng = np.random.default_rng(seed)
    given_bytes = rng.bytes(int(rng.integers(0, 30))) + stream(rng, start=start)
    want = tpx3_reference.decode(given_bytes)
    decoder, place, parts = WordDecoder(), 0, []
    for step in itertools.cycle(steps):
        if place >= len(given_bytes):
            break
        parts.append(decoder.feed(given_bytes[place : place + step]))
        place += step
    parts.append(decoder.close())
    counts = {name: value for name, value in decoder.counts.items() if name in want.counts}
    assert counts == want.counts
    assert (decoder.base or 0) == want.base
    table = np.array(want.hits, dtype=np.int64).reshape(-1, 5)
    for k, name in enumerate(("tick", "chip", "x", "y")):
        np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), table[:, k])
    np.testing.assert_array_equal(np.concatenate([part.tot for part in parts]), table[:, 4] * 25.0)
    triggers = [row for part in parts for row in zip(part.trigger_tick, part.trigger_chip, strict=True)]
    assert triggers == [(row[0], row[2]) for row in want.triggers]


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ([pixel(300 * SECOND), tdc(300 * SECOND), pixel(301 * SECOND)], 0),
        ([pixel(300 * SECOND), *global_time(300 * SECOND), pixel(301 * SECOND)], 0),
        ([global_time(300 * SECOND)[0], pixel(300 * SECOND), global_time(300 * SECOND)[1], pixel(301 * SECOND)], 0),
        ([tdc(300 * SECOND), pixel(300 * SECOND), *global_time(300 * SECOND)], 0),
        ([tdc(300 * SECOND), *global_time(300 * SECOND), pixel(300 * SECOND), pixel(301 * SECOND)], 2 * 2**36),
        ([*global_time(300 * SECOND), tdc(300 * SECOND), pixel(300 * SECOND)], 2 * 2**36),
    ],
)
def test_how_a_stream_is_cut_does_not_change_its_clock(words, known):
    """What came before the first hit decides, in whatever pieces it came."""
    data, found = chunk(words), []
    for step in (1, 8, len(data)):
        reader = WordReader(trigger=1)
        parts = [reader.feed(data[k : k + step]) for k in range(0, len(data), step)]
        found.append((np.concatenate([part["toa"] for part in parts]).tolist(), reader.triggers(-np.inf).tolist()))
    assert found[0] == found[1] == found[2]
    is_first_timed = words[0] >> 60 == 0xB
    assert found[0][0][0] == (300 * SECOND % (2**34 if is_first_timed else 2**36) + known) * 1.5625


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "row"}, "unknown layout 'row'; known: chips, quad"),
        ({"layout": "quad", "gap": -1}, "gap must be a number of pixels from 0 to 65024, got -1"),
        ({"layout": "quad", "gap": 1.5}, "gap must be a number of pixels .* got 1.5"),
        ({"gap": "2"}, "gap must be a number of pixels .* got '2'"),
        ({"trigger": 0}, "trigger must be the TDC input 1 or 2, got 0"),
    ],
)
def test_wrong_parameters_of_a_stream(options, message):
    with pytest.raises(ValueError, match=message):
        WordReader(**options)


@pytest.mark.parametrize("disorder", [-1.0, np.nan, np.inf, True, "600", None])
def test_wrong_bounds_of_disorder(write, disorder):
    message = f"disorder must be a time in ns, not negative, got {disorder!r}"
    with pytest.raises(ValueError, match=message):
        open_tpx3(write(chunk([pixel(5)])), disorder=disorder)
    with pytest.raises(ValueError, match=message):
        WordDecoder(disorder=disorder)


def test_a_stream_goes_on_after_damage():
    good = [chunk([pixel(100 * k + j) for j in range(5)]) for k in range(10)]
    decoder = WordDecoder()
    ticks = np.concatenate([decoder.feed(part).tick for part in (*good[:4], b"junk!", *good[4:])])
    np.testing.assert_array_equal(ticks, [100 * k + j for k in range(10) for j in range(5)][: len(ticks)])
    ticks = np.concatenate([ticks, decoder.close().tick])
    assert len(ticks) == 50
    assert (decoder.counts["n_bytes_skipped"], decoder.counts["n_chunks_cut"]) == (5, 1)


# --------------------------------------------------------------------------------------------------------- sort by time
@given(
    n=st.sampled_from([0, 1, 2, 5, 100, 3000]),
    spread=st.sampled_from([1, 2, 1000, 2**30, 2**62]),
    start=st.integers(-(2**60), 2**60),
    seed=st.integers(0, 2**32),
)
def test_order_of_ticks_is_that_of_a_stable_sort(n, spread, start, seed):
    ticks = start + np.random.default_rng(seed).integers(0, spread, n)
    np.testing.assert_array_equal(order_of_ticks(ticks), np.argsort(ticks, kind="stable"))
