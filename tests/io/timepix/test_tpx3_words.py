"""Words of Timepix3 that are written, come from a running readout, or are triggers."""

from __future__ import annotations

import numpy as np
import pint
import pytest
import xarray as xr
from cases.files import tpx3_reference
from cases.files.tpx3_words import SECOND, chunk, fed, global_time, pixel, stream, tdc
from hypothesis import given
from hypothesis import strategies as st

from daskclust.io import WordReader, open_tpx3, open_tpx3_triggers, time_of_flight, write_tpx3


def along(dim, **columns):
    return xr.Dataset({name: (dim, values) for name, values in columns.items()})


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
    triggers = along("trigger", time=marks, channel=np.arange(20) % 2 + 1, is_rising=np.arange(20) % 4 < 2)
    np.testing.assert_array_equal(time_of_flight(times, triggers), time_of_flight(times, marks[0::4]))
    falling = time_of_flight(times, triggers, channel=2, rising=False)
    np.testing.assert_array_equal(falling, time_of_flight(times, marks[3::4]))
    us = pint.UnitRegistry().us
    named = [xr.DataArray(each / 1000, dims="n", attrs={"units": "us"}) for each in (times, marks)]
    for late, early in (named, (times / 1000 * us, marks / 1000 * us), (times, marks / 1000 * us)):
        np.testing.assert_allclose(time_of_flight(late, early), want, atol=1e-6)
    other = triggers.assign(time=("trigger", marks / 1000, {"units": "us"}))
    np.testing.assert_allclose(time_of_flight(times, other), time_of_flight(times, triggers), atol=1e-6)


def hits_of(ticks, rng):
    n = len(ticks)
    x, y = rng.integers(0, 256, (2, n)).astype(np.uint16)
    tot, chip = (rng.integers(0, 1024, n) * 25).astype(np.float32), rng.integers(0, 3, n).astype(np.uint8)
    return along("hit", x=x, y=y, toa=np.asarray(ticks) * 1.5625, tot=tot, chip=chip)


@pytest.mark.parametrize("span", [1, 10_000, 30 * SECOND, 1000 * SECOND, 1_000_000 * SECOND])
@pytest.mark.parametrize("words_per_chunk", [1, 100, 8191])
def test_what_is_written_is_read_again(tmp_path, span, words_per_chunk):
    rng = np.random.default_rng(span)
    n = 300 if span < 1e14 else 3
    ds = hits_of(np.sort(rng.integers(0, span, n)) + span, rng)
    steps = 12 * np.sort(rng.integers(0, 2 * span, 50)) + np.arange(50)  # of the fine count
    triggers = along(
        "trigger",
        time=steps // 12 * 3.125 + steps % 12 * (3.125 / 12),
        channel=rng.integers(1, 3, 50).astype(np.uint8),
        is_rising=rng.integers(0, 2, 50).astype(bool),
        number=np.arange(50, dtype=np.uint16),
        chip=rng.integers(0, 3, 50).astype(np.uint8),
    )
    triggers = None if span > 1e14 else triggers
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
    ds, path = hits_of([1, 2, 3], np.random.default_rng(0)), tmp_path / "run.tpx3"

    def with_hits(**columns):
        return {"ds": ds.assign(along("hit", **columns))}

    def with_triggers(time=(0.0, 10.0), **columns):
        return {"triggers": along("trigger", time=list(time), **columns)}

    wrong = [
        *(with_hits(x=[0, value, 0]) for value in (256, -1)), *(with_hits(toa=[0.0, t, 0.0]) for t in (-5.0, np.nan)),
        with_hits(tot=[0.0, 1e6, 0.0]), {"ds": ds.assign_attrs(layout="quad")}, {"ds": ds.drop_vars("tot")},
        *({"words_per_chunk": words} for words in (9000, 0, 2.5, True)), with_triggers(time=[np.nan, 10.0]),
        *(with_triggers(channel=[1, value]) for value in (0, 3)), with_triggers(number=[0, 4096]),
        with_triggers(chip=[-1, 10]),
    ]  # fmt: skip
    for change in wrong:
        with pytest.raises((TypeError, ValueError), match=r"must be|layout 'quad'|the variable 'tot'"):
            write_tpx3(**{"ds": ds, "path": path} | change)
    assert not path.exists()
    write_tpx3(ds.isel(hit=slice(0)), path)
    assert path.stat().st_size == 0


def test_triggers_without_numbers_are_counted_in_the_order_of_time(tmp_path):
    path = tmp_path / "run.tpx3"
    triggers = along("trigger", time=[300.0, 100.0, 200.0], chip=[3, 1, 2])
    write_tpx3(hits_of([10, 400], np.random.default_rng(0)), path, triggers=triggers)
    found = open_tpx3_triggers(path)
    assert (found["time"].values.tolist(), found["chip"].values.tolist()) == ([100.0, 200.0, 300.0], [1, 2, 3])
    assert (found["number"].values.tolist(), found["channel"].values.tolist()) == ([0, 1, 2], [1, 1, 1])


@given(
    seed=st.integers(0, 2**32),
    start=st.sampled_from([0, 250 * SECOND]),
    steps=st.lists(st.sampled_from([0, 1, 3, 8, 100, 5000]), min_size=1, max_size=6).filter(any),
)
def test_a_stream_gives_what_the_file_does(seed, start, steps):
    rng = np.random.default_rng(seed)
    given_bytes = rng.bytes(int(rng.integers(0, 30))) + stream(rng, start=start)
    want, reader = tpx3_reference.decode(given_bytes), WordReader(trigger=seed % 2 + 1)
    hits = fed(reader, given_bytes, *steps)
    assert reader.counts == want.counts
    table = np.array(want.hits, dtype=np.int64).reshape(-1, 5)
    for k, name in enumerate(("chip", "x", "y"), start=1):
        np.testing.assert_array_equal(hits[name], table[:, k])
    np.testing.assert_array_equal(hits["tot"], table[:, 4] * 25.0)
    base = hits["toa"][0] - table[0, 0] * 1.5625 if len(table) else 0.0
    assert base in (0.0, want.base * 1.5625)  # the second where global time comes before the first hit
    np.testing.assert_array_equal(hits["toa"], table[:, 0] * 1.5625 + base)
    triggers = [t * 1.5625 + fine * 3.125 / 12 for t, fine, _, *told, _ in want.triggers if told == [reader.trigger, 1]]
    np.testing.assert_array_equal(reader.triggers(-np.inf), np.sort(triggers) + base)


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
        found.append((fed(reader, data, step)["toa"].tolist(), reader.triggers(-np.inf).tolist()))
    assert found[0] == found[1] == found[2]
    is_first_timed = words[0] >> 60 == 0xB
    assert found[0][0][0] == (300 * SECOND % (2**34 if is_first_timed else 2**36) + known) * 1.5625


def test_a_stream_goes_on_after_damage():
    good = [chunk([pixel(100 * k + j) for j in range(5)]) for k in range(10)]
    reader = WordReader()
    hits = fed(reader, b"".join([*good[:4], b"junk!", *good[4:]]), len(good[0]))
    np.testing.assert_array_equal(hits["toa"], [(100 * k + j) * 1.5625 for k in range(10) for j in range(5)])
    assert (reader.counts["n_bytes_skipped"], reader.counts["n_chunks_cut"]) == (5, 1)
