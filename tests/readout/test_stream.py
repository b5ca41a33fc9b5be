"""Event building online: rounds do not matter, nothing is lost, and a source that is too fast has to wait."""

import time

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from daskclust import EventBuilder, EventStream
from daskclust.datasets import readout_order, timepix
from daskclust.io import WordReader, open_tpx3, open_tpx3_triggers, time_of_flight, write_tpx3
from daskclust.properties import cluster_table

DISORDER = 3000.0


def hits_along(**columns):
    return xr.Dataset({name: ("hit", values) for name, values in columns.items()}, attrs={"field": "timepix"})


def dense(seed, n=600, pixels=12, ticks=9000):
    """Return dense hits in the order of time, and the order in which a readout delivers them."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, pixels, (2, n)).astype(np.uint16)
    tot, chip = (rng.integers(1, 40, n) * 25).astype(np.float32), rng.integers(0, 2, n).astype(np.uint8)
    ds = hits_along(x=x, y=y, toa=np.sort(rng.integers(0, ticks, n)) * 1.5625, tot=tot, chip=chip)
    delivered = ds.isel(hit=np.argsort(ds["toa"].values + rng.uniform(0, DISORDER, n), kind="stable"))
    in_time = delivered.isel(hit=np.argsort(delivered["toa"].values, kind="stable"))
    return delivered, in_time


def offline(hits, builder):
    builder.fit(hits)
    return cluster_table(hits, builder.labels_, n_clusters=builder.n_clusters_)


def cut(ds, sizes):
    """Return the Dataset in pieces of the given sizes, again and again."""
    pieces, start, k = [], 0, 0
    while start < ds.sizes["hit"]:
        pieces.append(ds.isel(hit=slice(start, start + sizes[k % len(sizes)])))
        start, k = start + sizes[k % len(sizes)], k + 1
    return pieces


def pieces_of(path, step):
    """Return the bytes of a file in pieces."""
    data = path.read_bytes()
    return [data[k : k + step] for k in range(0, len(data), step)]


def assert_same_tables(tables, expected):
    got = xr.concat(tables, "cluster")
    np.testing.assert_array_equal(got["cluster"], expected["cluster"])
    for name in expected.data_vars:
        if "seed" not in name:  # the place of a seed is counted along the stream
            np.testing.assert_array_equal(got[name].values, expected[name].values, err_msg=name)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 5),
    variant=st.sampled_from(["local", "global", "static"]),
    min_hits=st.integers(1, 3),
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=4),
    buffer=st.sampled_from([1, 20, 150, 10_000]),
)
def test_rounds_do_not_matter(seed, variant, min_hits, sizes, buffer):
    delivered, in_time = dense(seed)
    builder = EventBuilder(100.0, variant=variant, min_hits=min_hits)
    expected = offline(in_time, builder)
    stream = EventStream(cut(delivered, sizes), builder, disorder=DISORDER, buffer=buffer)
    batches = list(stream.batches())
    assert_same_tables([batch.clusters for batch in batches], expected)
    counters = stream.counters
    assert counters.hits_in == counters.hits_out == in_time.sizes["hit"]
    assert counters.clusters == expected.sizes["cluster"]
    assert counters.late_hits == counters.split_clusters == counters.backlog == 0
    hits = xr.concat([batch.hits for batch in batches], "hit")
    sizes_of = np.bincount(hits["label"].values[hits["label"].values >= 0], minlength=counters.clusters)
    np.testing.assert_array_equal(sizes_of, expected["size"])
    assert counters.noise_hits == int((hits["label"] < 0).sum())


def test_seed_is_a_place_among_the_hits_put_out():
    delivered, _ = dense(3)
    stream = EventStream(cut(delivered, [90]), EventBuilder(100.0), disorder=DISORDER, buffer=90)
    batches = list(stream.batches())
    table = xr.concat([batch.clusters for batch in batches], "cluster")
    hits = xr.concat([batch.hits for batch in batches], "hit")
    np.testing.assert_array_equal(hits["label"].values[table["seed"].values], table["cluster"].values)
    np.testing.assert_array_equal(hits["tot"].values[table["seed"].values], table["tot_max"].values)


@pytest.mark.parametrize("step", [7, 1000, 10**6])
def test_raw_bytes_cut_anywhere(tmp_path, step):
    made = timepix(3000, chips=2, rng=1)
    path = tmp_path / "run.tpx3"
    write_tpx3(made.isel(hit=readout_order(made, disorder=20e3, rng=2)), path)
    expected = offline(open_tpx3(path), EventBuilder(200.0))
    stream = EventStream(pieces_of(path, step), EventBuilder(200.0), disorder=20e3, buffer=500)
    assert_same_tables(list(stream), expected)
    assert stream.reader.counts["n_pixel"] == stream.counters.hits_out == 3000


@pytest.mark.parametrize("step", [500, 10**6])
def test_times_of_flight(tmp_path, step):
    made = timepix(3000, rng=5)
    triggers = xr.Dataset({"time": ("trigger", np.arange(3000.0, made["toa"].max(), 7000.0))})
    path = tmp_path / "run.tpx3"
    write_tpx3(made.isel(hit=readout_order(made, disorder=5e3, rng=6)), path, triggers=triggers)
    hits = open_tpx3(path)
    hits["tof"] = time_of_flight(hits["toa"], open_tpx3_triggers(path))
    expected = offline(hits, EventBuilder(200.0))
    pieces, reader = pieces_of(path, step), WordReader(trigger=1)
    tables = list(EventStream(pieces, EventBuilder(200.0), disorder=20e3, buffer=200, reader=reader))
    assert_same_tables(tables, expected)
    assert np.isnan(tables[0]["tof"].values[0])  # before the first trigger


def test_quad_clusters_cross_the_seam(tmp_path):
    path = tmp_path / "quad.tpx3"
    write_tpx3(hits_along(x=[255, 255], y=[9, 0], toa=[0.0, 25.0], tot=[25.0, 25.0], chip=[3, 2]), path)
    at_once = open_tpx3(path, layout="quad")
    stream = EventStream([path.read_bytes()], EventBuilder(200.0), reader=WordReader(layout="quad"), chip=False)
    (table,) = list(stream)
    np.testing.assert_array_equal(table["x_max"].max(), at_once["x"].max())
    assert_same_tables([table], offline(at_once, EventBuilder(200.0)))


def hits_of_times(toa, x):
    return hits_along(x=x, y=0 * x, toa=toa, tot=np.full(len(toa), 25.0, np.float32))


def test_late_hits_are_kept_and_counted():
    toa = np.concatenate([np.arange(0, 100_000, 100.0), [5.0], np.arange(100_000, 200_000, 100.0)])
    n = len(toa)
    ds = hits_of_times(toa, np.arange(n) % 50 * 3)
    stream = EventStream(cut(ds, [200]), EventBuilder(10.0), disorder=1000.0, buffer=200)
    sizes = sum(int(table["size"].sum()) for table in stream)
    assert stream.counters.late_hits == 1
    assert sizes == stream.counters.hits_in == stream.counters.hits_out == n


def test_a_pixel_that_fires_without_end_is_cut(caplog):
    n = 5000
    ds = hits_of_times(np.arange(n) * 50.0, np.zeros(n, int))
    stream = EventStream(cut(ds, [100]), EventBuilder(200.0), disorder=0.0, buffer=100, max_open=1000)
    assert sum(int(table["size"].sum()) for table in stream) == n
    assert stream.counters.split_clusters >= 3
    assert stream.counters.largest_backlog <= 1200
    assert "max_open" in caplog.text


def test_the_source_has_to_wait():
    given_out = []

    def source():
        for piece in cut(dense(0)[0], [10]):
            given_out.append(len(given_out))
            yield piece

    tables = iter(EventStream(source(), EventBuilder(100.0), disorder=DISORDER, buffer=10))
    next(tables)
    time.sleep(0.5)
    taken = len(given_out)
    assert taken < 40  # of 60: what the first table needed, and a few ahead
    list(tables)
    assert len(given_out) == 60


def test_an_empty_stream_has_the_columns_of_its_items():
    nothing = dense(0)[0].isel(hit=slice(0)).assign(energy=("hit", np.empty(0, np.float32)))
    (table,) = list(EventStream([nothing], EventBuilder(100.0)))
    assert table.sizes["cluster"] == 0
    assert "energy" in table


def test_items_may_be_lazy():
    _, in_time = dense(0)
    pieces = [piece.chunk({"hit": 40}) for piece in cut(in_time, [150])]
    for prepare in (None, lambda hits: hits.assign(tot=2 * hits["tot"])):
        tables = list(EventStream(pieces, EventBuilder(200.0), disorder=0.0, buffer=200, prepare=prepare))
        expected = in_time if prepare is None else prepare(in_time)
        assert_same_tables(tables, offline(expected, EventBuilder(200.0)))


def test_other_columns_are_refused():
    delivered, _ = dense(0)
    with pytest.raises(ValueError, match="give all the same"):
        list(EventStream([delivered, delivered.drop_vars("chip")], EventBuilder(100.0), disorder=DISORDER))
    with pytest.raises(ValueError, match="toa must be finite"):
        list(EventStream([delivered.assign(toa=delivered["toa"] * np.nan)], EventBuilder(100.0)))


@pytest.mark.parametrize("source", [[], [b""], [b"no readout"]])
def test_a_stream_without_hits_has_an_empty_table(source):
    (table,) = list(EventStream(source, EventBuilder(100.0)))
    assert table.sizes["cluster"] == 0
    assert "length" in table


def test_prepare_runs_before_clustering():
    delivered, _ = dense(1)

    def prepare(ds):
        return ds.assign(energy=(ds["tot"] * 2).assign_attrs(units="keV"))

    stream = EventStream([delivered], EventBuilder(100.0), disorder=DISORDER, prepare=prepare)
    table = xr.concat(list(stream), "cluster")
    np.testing.assert_array_equal(table["energy"], 2 * table["tot"])


@pytest.mark.parametrize("cause", ["item", "source", "prepare"])
@pytest.mark.parametrize("buffer", [1, 100, 10_000])
@pytest.mark.parametrize("after", [0, 1, 7])
def test_an_error_comes_after_all_that_came_before(cause, buffer, after):
    """The clusters are those of the hits before it, at once."""
    delivered, _ = dense(3)
    pieces = cut(delivered, [50])
    given = xr.concat(pieces[:after], "hit") if after else delivered.isel(hit=slice(0))

    def source():
        yield from pieces[:after]
        if cause == "source":
            raise ConnectionResetError
        yield {"x": [1], "y": [1], "toa": [np.nan]} if cause == "item" else pieces[after]
        yield from pieces[after + 1 :]

    def prepare(hits):
        if cause == "prepare" and after < len(pieces) and hits.equals(pieces[after].drop_vars([])):
            raise ZeroDivisionError
        return hits

    kinds = {"item": ValueError, "source": ConnectionResetError, "prepare": ZeroDivisionError}
    options = {"prepare": prepare} if cause == "prepare" else {}
    stream = EventStream(source(), EventBuilder(100.0), disorder=DISORDER, buffer=buffer, **options)
    batches = []
    with pytest.raises(kinds[cause]):
        batches.extend(stream.batches())
    n = sum(batch.hits.sizes["hit"] for batch in batches)
    assert n == stream.counters.hits_in == stream.counters.hits_out == given.sizes["hit"]
    if n:
        in_time = given.isel(hit=np.argsort(given["toa"].values, kind="stable"))
        assert_same_tables([batch.clusters for batch in batches], offline(in_time, EventBuilder(100.0)))
        assert stream.complete_to == float(given["toa"].max()) - DISORDER - 100.0


@pytest.mark.parametrize("variant", ["local", "global", "static"])
def test_clusters_before_complete_to_are_complete(variant):
    """Wherever a stream ends, they are those of all hits."""
    delivered, in_time = dense(2)
    builder = EventBuilder(100.0, variant=variant)
    whole = offline(in_time, builder)
    for n in range(20, 600, 60):
        stream = EventStream(cut(delivered.isel(hit=slice(n)), [30]), builder, disorder=DISORDER)
        part = xr.concat(list(stream), "cluster")
        assert stream.counters.late_hits == 0
        for name in ("size", "toa_last", "tot"):
            found, wanted = (
                table[name].values[table["toa_last"].values < stream.complete_to] for table in (part, whole)
            )
            np.testing.assert_array_equal(found, wanted, err_msg=name)
