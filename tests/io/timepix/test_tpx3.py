"""Raw Timepix3 files: against a plain decoder, real files, and damaged ones."""

from __future__ import annotations

import itertools
import logging

import numpy as np
import pytest
from cases.files import tpx3_reference
from cases.files.tpx3_words import (
    COLUMNS,
    OTHER_WORDS,
    SECOND,
    bytes_counted,
    check,
    check_triggers,
    chunk,
    fed,
    global_time,
    pixel,
    stream,
    tdc,
)
from hypothesis import given
from hypothesis import strategies as st

from daskclust.io import WordReader, open_tpx3, open_tpx3_triggers


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
    assert f"a disorder of {ds.attrs['disorder']:g} ns" in caplog.text
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
def test_sizes_of_cells_windows_and_chunks_do_not_matter(
    write, seed, cell_words, window_hits, chunks, step, jitter, start, phase
):
    data = stream(np.random.default_rng(seed), step=step, jitter=jitter, start=start)
    check(write(data), data, chunks, cell_words, window_hits, phase_correction=phase)


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


@given(seed=st.integers(0, 2**32), start=st.sampled_from([0, 250 * SECOND]))
def test_triggers_as_the_oracle_has_them(write, seed, start):
    data = stream(np.random.default_rng(seed), start=start)
    check_triggers(write(data), data)


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
        data = valid[number % 8]
        for _ in range(rng.integers(0, 6)):
            place, some = int(rng.integers(len(data))), int(rng.integers(1, 40))
            lost, new = [(1, rng.bytes(1)), (some, b""), (0, rng.bytes(some // 2)), (0, b"TPX3")][rng.integers(4)]
            data = data[:place] + new + data[place + lost :]
        data = data if number % 10 else rng.bytes(int(rng.integers(1, 200)))
        path = write(data)
        sizes = {"cell_words": int(rng.integers(1, 80)), "window_hits": int(rng.integers(1, 50))}
        if tpx3_reference.decode(data).counts["n_chunks"]:
            check(path, data, chunks=20, **sizes)
        else:
            refused += 1
            with pytest.raises(ValueError, match=f"{path} has no chunk of Timepix3 words"):
                open_tpx3(path)
        cut = int(rng.integers(len(data) + 1))
        readers = WordReader(), WordReader()
        hits = [fed(readers[0], data, cut, len(data)), fed(readers[1], data, len(data))]
        assert bytes_counted(readers[0].counts) == len(data)
        assert readers[0].counts == readers[1].counts
        np.testing.assert_array_equal(hits[0]["toa"], hits[1]["toa"])
    assert 200 < refused < 400  # most of those of random bytes, and hardly any others


WRONG = {"layout": ["row"], "gap": [-1, 65025, 1.5, "2"], "trigger": [0, 3]}


def test_a_file_without_hits(write):
    path = write(chunk([tdc(100), OTHER_WORDS[1]]))
    for chunks in (None, 10):
        ds = open_tpx3(path, chunks=chunks)
        assert ds.sizes["hit"] == 0
        assert (ds.attrs["n_tdc"], ds.attrs["n_control"], ds.attrs["n_pixel"]) == (1, 1, 0)
        assert {name: ds[name].compute().dtype for name in COLUMNS} == {
            "x": np.uint16, "y": np.uint16, "toa": np.float64, "tot": np.float32, "chip": np.uint8,
        }  # fmt: skip


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
