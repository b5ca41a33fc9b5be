"""Windows of hits from host memory in lanes of a GPU: the CPU's answers, and its words for what is refused."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.events import VARIANTS, bursts, dense

from daskclust import EventBuilder, EventStream
from daskclust.datasets import readout_order, timepix
from daskclust.io import write_tpx3
from daskclust.readout import stream
from daskclust.readout.gpu import cluster_on_gpu, quiet_windows

pytestmark = pytest.mark.gpu


def assert_as_on_the_host(hits, builder, **options):
    wanted = builder.fit(hits)
    labels, count = cluster_on_gpu(hits, builder, **options)
    assert type(labels) is np.ndarray
    np.testing.assert_array_equal(labels, wanted.labels_, strict=True)
    assert count == wanted.n_clusters_


@pytest.mark.parametrize("lanes", [1, 2, 5])
@pytest.mark.parametrize("min_hits", [1, 3])
@pytest.mark.parametrize("variant", VARIANTS)
def test_windows_and_lanes_do_not_matter(variant, min_hits, lanes):
    hits, builder = bursts(), EventBuilder(100.0, variant=variant, min_hits=min_hits)
    assert len(quiet_windows(hits["toa"], 100.0, 150)) > 10
    for window in (150, 1000, 1 << 22):
        assert_as_on_the_host(hits, builder, window=window, lanes=lanes)


@pytest.mark.parametrize("variant", VARIANTS)
def test_without_quiet_gaps_there_is_one_window(variant):
    hits = dense(2000, 1)
    assert quiet_windows(hits["toa"], 100.0, 50).tolist() == [0, 2000]
    assert_as_on_the_host(hits, EventBuilder(100.0, variant=variant), window=50)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_hits(n):
    assert_as_on_the_host(dense(n), EventBuilder(100.0), window=1)


def test_other_columns():
    """Without chips, whole floats in one array, pixels that no table has."""
    hits = bursts()
    wide = {**hits, "x": hits["x"].astype(np.int64) * 10**12 - 5, "y": hits["y"].astype(np.int64)}
    matrix = np.stack([hits[name].astype(float) for name in ("x", "y", "toa")], axis=1)
    for given in (wide, matrix):
        assert_as_on_the_host(given, EventBuilder(100.0, connectivity=4), window=200)


def test_chips_are_apart_but_on_a_quad():
    data, builder = timepix(2000, chips=4, rng=2).drop_vars("truth"), EventBuilder(2000.0)
    found = []
    for layout in ("chips", "quad"):
        assert_as_on_the_host(data.assign_attrs(layout=layout), builder, window=100)
        found.append(cluster_on_gpu(data.assign_attrs(layout=layout), builder)[1])
    assert found[0] > found[1]


def wrong(**changes):
    """Return bursts of which hit 1234 has other values; it is in a window after the first."""
    hits = {name: values.astype(np.float64 if name == "toa" else np.int64) for name, values in bursts().items()}
    for name, value in changes.items():
        hits[name][1234] = value
    return hits


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_wrong_in_a_later_window_is_named(variant, lanes):
    builder = EventBuilder(100.0, variant=variant)
    assert np.searchsorted(quiet_windows(bursts()["toa"], 100.0, 300), 1234) > 3
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match=rf"toa must be finite, got toa\[1234\] = {value}; remove"):
            cluster_on_gpu(wrong(toa=value), builder, window=300, lanes=lanes)
    with pytest.raises(ValueError, match=r"order of time, got toa\[1234\] = 1.0 after .*; sort"):
        cluster_on_gpu(wrong(toa=1.0), builder, window=300, lanes=lanes)
    with pytest.raises(ValueError, match="x must lie between") as on_the_host:
        builder.fit(wrong(x=2**62))
    with pytest.raises(ValueError, match="x must lie between") as on_the_device:
        cluster_on_gpu(wrong(x=2**62), builder, window=300, lanes=lanes)
    assert str(on_the_device.value) == str(on_the_host.value)
    assert_as_on_the_host(bursts(), builder, window=300, lanes=lanes)  # the lanes go on


def test_hits_in_reverse_order_end_soon():
    """Each would look back through all others if it took them to be in the order of time."""
    hits = bursts(200_000, 200_000, pixels=4096)
    with pytest.raises(ValueError, match=r"order of time, got toa\[1\] = "):
        cluster_on_gpu({**hits, "toa": hits["toa"][::-1] * 1e-9}, EventBuilder(100.0))


def test_two_callers_share_the_lanes():
    """Each caller's windows are taken in their order, so none waits for one that waits."""
    builder = EventBuilder(100.0)
    made = [bursts(3000, every) for every in (50, 80, 110, 140)]
    wanted = [builder.fit(hits).labels_ for hits in made]
    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(lambda hits: cluster_on_gpu(hits, builder, window=60, lanes=2)[0], made))
    for labels, each in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(labels, each)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_stream(variant, monkeypatch):
    """Its tables, hits and counters are those of the CPU, of rounds of several windows and with late hits."""
    monkeypatch.setattr(stream, "_WINDOW", 300)
    made = timepix(20_000, kind="pion45", chips=2, rng=1).drop_vars("truth")
    delivered = made.isel(hit=readout_order(made, disorder=20e3, rng=2))
    parts = [delivered.isel(hit=slice(k, k + 1500)) for k in range(0, 20_000, 1500)]
    builder = EventBuilder(200.0, variant=variant, min_hits=2)
    for disorder in (20e3, 2e3):
        here, there = (EventStream(parts, builder, disorder=disorder, buffer=3000, cuda=cuda) for cuda in (False, True))
        for wanted, found in zip(here.batches(), there.batches(), strict=True):
            for one, other in zip(wanted, found, strict=True):
                xr.testing.assert_identical(one, other)
        assert here.counters == replace(there.counters, waiting=here.counters.waiting)
        assert (here.counters.late_hits > 0) == (disorder == 2e3)


@pytest.mark.parametrize("source", ["file", "followed"])
def test_the_command_line(command, tmp_path, monkeypatch, source):
    """Tables of clusters and of hits are written, window after window, as on the CPU, to the last bit."""
    monkeypatch.setattr("daskclust.cli.pixels.in_time.ROUND", 700)
    made = timepix(3000, chips=2, rng=3)
    write_tpx3(made.isel(hit=readout_order(made, disorder=20e3, rng=4)), tmp_path / "run.tpx3")
    more = ("--follow", "--idle", 0.1) if source == "followed" else ()
    written = []
    for cuda in ((), ("--cuda",)):
        outputs = [tmp_path / f"{name}{len(cuda)}.parquet" for name in ("table", "hits")]
        options = ("--dt-max", 200, "--disorder", 20, "--min-hits", 2, "--table", outputs[0], "-o", outputs[1])
        code, _, err = command("events", tmp_path / "run.tpx3", *options, *more, *cuda)
        assert (code, err) == (0, "")
        written.append([pd.read_parquet(path) for path in outputs])
    for one, other in zip(*written, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
