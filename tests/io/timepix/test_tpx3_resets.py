"""Clocks of Timepix3 readouts that jump within a run."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import xarray as xr
from cases.files import tpx3_reference
from cases.files.tpx3_words import SECOND, check, check_triggers, chunk, fed, global_time, pixel, tdc
from cases.lanes import in_long_lane
from hypothesis import given, settings
from hypothesis import strategies as st

from daskclust import EventBuilder, EventStream
from daskclust.cli import app
from daskclust.cli._run import run
from daskclust.io import WordReader, open_tpx3

MODES = ("continue", "restart")


def words_of(starts, rng, length=60 * SECOND, n=40):
    """Return the words of runs one after the other, whose clocks begin at `starts`, each with global time and TDCs."""
    words = []
    for start in starts:
        words += [*global_time(start), tdc(start)]
        for tick in np.sort(rng.integers(start, start + length, n)).tolist():
            x, y = rng.integers(0, 256, 2).tolist()
            words += [*global_time(tick), pixel(tick, x, y), *([tdc(tick)] if rng.random() < 0.3 else [])]
    return words


def chunks_of(words, rng, chips=3, pairs_kept=1.0):
    """Return the bytes of chunks of a few words, of some chips, without some of the words of global time."""
    out, place = [], 0
    while place < len(words):
        some = words[place : (place := place + int(rng.integers(1, 30)))]
        kept = [word for word in some if word >> 60 != 4 or rng.random() < pairs_kept]
        out.append(chunk(kept, int(rng.integers(chips))))
    return b"".join(out)


@pytest.fixture
def file(tmp_path):
    """Return a file of a clock that is set anew after 61 091 s, with 20 hits before and 30 after."""
    before = [61_090 * SECOND + k * SECOND // 20 for k in range(20)]
    after = [8 * SECOND // 10 + k * SECOND // 20 for k in range(30)]
    words = [*global_time(before[0]), *map(pixel, before), *global_time(61_091 * SECOND)]
    words += [*global_time(after[0]), *map(pixel, after), *global_time(3 * SECOND)]
    path = tmp_path / "run.tpx3"
    path.write_bytes(chunk(words[:11]) + chunk(words[11:]))
    return path, np.array(before) * 1.5625, np.array(after) * 1.5625


def test_a_clock_that_is_set_anew_is_told(file, caplog):
    path, before, after = file
    with caplog.at_level(logging.WARNING, "daskclust.io"):
        ds = open_tpx3(path)
    assert "jumps, 1 times so far, from 61091 s to 0.8 s after 20 hits" in caplog.text
    assert "on_reset='restart' gives global time" in caplog.text
    assert ds.attrs["n_clock_jumps"] == 1
    told = [ds.attrs[f"clock_jump_{name}"] for name in ("hits", "from", "to")]
    assert told == [[20], [61_091e9], [0.8e9]]
    np.testing.assert_array_equal(ds["toa"][:20], before)
    np.testing.assert_array_equal(ds["toa"][20:] - ds["toa"][20], after - after[0])
    assert ds["toa"][20] > before[-1]
    restarted = open_tpx3(path, on_reset="restart")
    np.testing.assert_array_equal(restarted["toa"], [*after, *before])
    assert restarted.attrs["n_late"] == 0
    assert {**ds.attrs, "n_late": 0, "disorder": 0} == {**restarted.attrs, "disorder": 0}
    assert xr.Dataset(attrs=ds.attrs).to_dict()["attrs"]["clock_jump_hits"] == [20]


@pytest.mark.parametrize(
    ("ticks", "count"),
    [
        ([100 * SECOND, 101 * SECOND, 102 * SECOND], 0),
        ([30 * SECOND, 1 * SECOND, 2 * SECOND], 1),  # less than a low word tells
        ([30 * SECOND, 30 * SECOND - 640, 31 * SECOND], 0),  # 1 us out of order
        ([100 * SECOND, 250 * SECOND, 251 * SECOND], 1),  # nothing came for long
        ([1000 * SECOND, 1 * SECOND, 900 * SECOND, 2 * SECOND], 3),
    ],
)
def test_what_is_a_jump(write, ticks, count):
    path = write(chunk([word for tick in ticks for word in (*global_time(tick), pixel(tick))]))
    restarted = open_tpx3(path, on_reset="restart")
    np.testing.assert_array_equal(restarted["toa"], np.sort(ticks) * 1.5625)
    assert restarted.attrs["n_clock_jumps"] == open_tpx3(path).attrs["n_clock_jumps"] == count


@settings(max_examples=in_long_lane(1000, otherwise=10))
@given(
    seed=st.integers(0, 2**32),
    starts=st.lists(st.sampled_from([0, 1, 40, 107, 300, 5000, 61_091]), min_size=1, max_size=4),
    pairs_kept=st.sampled_from([1.0, 0.9, 0.3]),
    chunks=st.sampled_from([None, 1, 30]),
    cell_words=st.sampled_from([1, 16, 500]),
    phase=st.booleans(),
)
def test_files_and_streams_agree(write, seed, starts, pairs_kept, chunks, cell_words, phase):
    rng = np.random.default_rng(seed)
    words = words_of([start * SECOND for start in starts], rng)
    data = chunks_of(words, rng, pairs_kept=pairs_kept)
    path = write(data)
    for mode in MODES:
        check(path, data, chunks, cell_words, window_hits=20, phase_correction=phase, on_reset=mode)
        check_triggers(path, data, mode)
        whole, engine = open_tpx3(path, on_reset=mode), xr.open_dataset(path, engine="tpx3", on_reset=mode)
        xr.testing.assert_identical(engine.load(), whole)
        xr.testing.assert_equal(open_tpx3(path, on_reset=mode, chunks=7).compute(), whole)
        reader = WordReader(on_reset=mode)
        got = fed(reader, data, int(rng.integers(1, 500)))["toa"]
        want = tpx3_reference.decode(data, restart=mode == "restart")
        ticks = np.array([hit[0] for hit in want.hits]) * 1.5625
        np.testing.assert_array_equal(got - got[0], ticks - ticks[0])
        assert reader.counts["n_clock_jumps"] == whole.attrs["n_clock_jumps"]
        assert reader.clock_jumps == {key: whole.attrs[key] for key in whole.attrs if key.startswith("clock_jump")}


def test_two_clocks_of_one_file_are_not_mixed_up(file):
    """Chunks and kept rows of one way of reading are not those of the other."""
    path = file[0]
    read = [xr.open_dataset(path, engine="tpx3", on_reset=mode)["toa"].values for mode in MODES * 2]
    lazy = [open_tpx3(path, on_reset=mode, chunks=100)["toa"].data for mode in MODES]
    assert lazy[0].name != lazy[1].name
    np.testing.assert_array_equal(read[0], read[2])
    np.testing.assert_array_equal(read[1], read[3])
    assert (read[0] != read[1]).any()


def test_events_of_a_readout_whose_clock_is_set_anew(file, caplog, capsys):
    path = file[0]
    want = EventBuilder(1000.0).fit(open_tpx3(path)).n_clusters_
    with caplog.at_level(logging.WARNING, "daskclust.io"):
        stream = EventStream([path.read_bytes()], EventBuilder(1000.0))
        assert sum(table.sizes["cluster"] for table in stream) == want
    assert "the readout: global time jumps, 1 times so far" in caplog.text
    assert run(app, ["events", str(path), "--dt-max", "1000", "--json", "--on-reset", "restart"]) == 0
    out = capsys.readouterr()
    assert '"n_clock_jumps": 1' in out.out
    assert "note:" in out.err


def test_a_run_without_jumps_says_nothing(tmp_path, shared_data, caplog):
    name = next((shared_data / "timepix").glob("*serval32.tpx3"))
    ds = open_tpx3(name, disorder=2e6)
    assert ds.attrs["n_global_time"] > 0
    assert (ds.attrs["n_clock_jumps"], [key for key in ds.attrs if key.startswith("clock")]) == (0, [])
    assert not caplog.text
