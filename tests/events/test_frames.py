"""Hits of frames: the clusters of scipy's images of each frame, in memory, in chunks and from a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.events import VARIANTS, assert_labels
from cases.lanes import in_long_lane, row_chunks
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from daskclust import EventBuilder, EventStream, datasets, io
from daskclust.core.space.partition import Partition
from daskclust.properties import cluster_table

Hits = dict[str, np.ndarray[Any, Any]]


def drawn(n: int, seed: int, *, frames: int = 9, pixels: int = 12) -> Hits:
    """Return hits of frames in any order, some of one pixel."""
    rng = np.random.default_rng(seed)
    return {
        "x": rng.integers(0, pixels, n),
        "y": rng.integers(0, pixels, n),
        "frame": 3 * rng.integers(-frames, frames, n) - 1,
        "chip": rng.integers(0, 2, n),
    }


def in_images(hits: Hits, connectivity: int = 8, min_hits: int = 1) -> np.ndarray[Any, Any]:
    """Return the labels of hits: those of the image of each frame and chip, numbered by (frame, order)."""
    n = len(hits["x"])
    group, within = np.zeros(n, int), np.zeros(n, int)
    _, which = np.unique(np.stack([hits["frame"], hits["chip"]]), axis=1, return_inverse=True)
    for number in range(which.max(initial=-1) + 1):
        own = which == number
        image = np.zeros((hits["y"].max() + 1, hits["x"].max() + 1), bool)
        image[hits["y"][own], hits["x"][own]] = True
        labelled, _ = ndimage.label(image, np.ones((3, 3)) if connectivity == 8 else None)
        group[own], within[own] = number, labelled[hits["y"][own], hits["x"][own]]
    order = np.argsort(hits["frame"], kind="stable")
    labels, known = np.full(n, -1), dict[tuple[int, int], int]()
    pairs = list(zip(group.tolist(), within.tolist(), strict=True))
    for k in order.tolist():
        if pairs.count(pairs[k]) >= min_hits:
            labels[k] = known.setdefault(pairs[k], len(known))
    return labels


def in_order(hits: Hits) -> Hits:
    order = np.argsort(hits["frame"], kind="stable")
    return {name: values[order] for name, values in hits.items()}


def dataset(hits: Hits) -> xr.Dataset:
    return xr.Dataset({name: ("hit", values) for name, values in hits.items()}, attrs={"field": "timepix"})


@settings(max_examples=in_long_lane(500, otherwise=40))
@given(
    st.data(),
    st.sampled_from([0, 1, 2, 50, 150]),
    st.integers(0, 2**32),
    st.sampled_from([1, 2, 9]),
    st.sampled_from([4, 8]),
    st.sampled_from([1, 3]),
)
def test_equals_images_in_memory_chunks_and_windows(data, n, seed, frames, connectivity, min_hits):
    hits = drawn(n, seed, frames=frames)
    builder = EventBuilder(connectivity=connectivity, min_hits=min_hits, variant=data.draw(st.sampled_from(VARIANTS)))
    wanted = in_images(hits, connectivity, min_hits)
    assert_labels(builder.fit(hits), wanted)
    rows = data.draw(row_chunks(n))
    cuts = np.unique(data.draw(st.lists(st.integers(-30, 30), max_size=5))).astype(float)
    for partition in ("windows", Partition(cuts=(cuts,), period=(0.0,))):
        assert_labels(builder.fit(dataset(hits).chunk(hit=rows), partition=partition), wanted)
    hits = in_order(hits)
    assert_labels(builder.fit(dataset(hits).chunk(hit=rows)), in_images(hits, connectivity, min_hits))


@pytest.mark.parametrize("buffer", [1, 60, 10_000])
def test_a_stream_gives_the_clusters_of_frames_that_are_complete(buffer):
    hits = in_order(drawn(600, 1))
    items = [{name: values[k : k + 23] for name, values in hits.items()} for k in range(0, 600, 23)]
    stream = EventStream(items, EventBuilder(), buffer=buffer)
    batches = list(stream.batches())
    labels = np.concatenate([batch.hits["label"].values for batch in batches])
    np.testing.assert_array_equal(labels, in_images(hits))
    table = xr.concat([batch.clusters for batch in batches], "cluster")
    wanted = cluster_table(dataset(hits), labels)
    for name in ("size", "frame", "chip", "x", "length", "seed"):
        np.testing.assert_array_equal(table[name], wanted[name], err_msg=name)
    assert stream.complete_to == hits["frame"].max() - 0.5
    late = [items[5], items[0], items[-1]]
    stream = EventStream(late, EventBuilder(), buffer=1, latency=60.0)
    assert sum(int(table["size"].sum()) for table in stream) == sum(len(item["x"]) for item in late)
    assert stream.counters.late_hits == len(items[0]["x"])


def test_tables_have_frames_and_need_no_times():
    hits = dataset(in_order(drawn(200, 2))).drop_vars("chip").assign(tot=("hit", np.ones(200)))
    found = hits.clust.events(connectivity=4)
    assert found.attrs["events"] == "dt_max=None, variant=local, connectivity=4, min_hits=1"
    table, lazy = cluster_table(found), cluster_table(found.chunk(hit=37)).compute()
    assert "toa" not in table
    xr.testing.assert_equal(table, lazy[list(table)])
    np.testing.assert_array_equal(table["frame"], hits["frame"][np.unique(found["label"], return_index=True)[1]])
    timed = found.assign(toa=("hit", np.arange(200.0), {"units": "ns"}))
    again = cluster_table(timed.drop_vars("label").clust.events(connectivity=4))
    np.testing.assert_array_equal(again["toa"], np.unique(found["label"], return_index=True)[1])
    xr.testing.assert_equal(again[list(table)], table)


def test_frames_and_times_are_not_mixed():
    hits, words = drawn(9, 3), "dt_max must be left out for hits with frames, .* got 200"
    timed = {**hits, "toa": np.arange(9.0)}
    for call in (EventBuilder(200.0).fit, lambda hits: list(EventStream([hits], EventBuilder(200.0)))):
        with pytest.raises(ValueError, match=words):
            call(timed)
    for call in (EventBuilder().fit, lambda hits: list(EventStream([hits], EventBuilder()))):
        with pytest.raises(ValueError, match=r"dt_max must be the largest .*, got None; .* column frame"):
            call({name: timed[name] for name in ("x", "y", "toa")})
    with pytest.raises(ValueError, match="frame must be whole numbers"):
        EventBuilder().fit({**hits, "frame": hits["frame"] + 0.5})
    without = {name: timed[name] for name in ("x", "y", "toa", "chip")}
    same = EventBuilder(200.0).fit(without).labels_
    np.testing.assert_array_equal(EventBuilder(200.0).fit(timed, frame=None).labels_, same)
    np.testing.assert_array_equal(EventBuilder().fit(without, frame=hits["frame"]).labels_, in_images(hits))
    lazy = dataset({name: values[::-1] for name, values in in_order(hits).items()}).chunk(hit=3)
    with pytest.raises(ValueError, match=r"has a hit at frame .*, earlier than"):
        EventBuilder().fit(lazy).labels_.compute()


def test_files_without_times_are_read_and_frames_go_on(tmp_path):
    hits = dataset(in_order(drawn(50, 4)))
    for number in range(2):
        io.write_hits(hits, tmp_path / f"run_{number}.csv")
    both = io.read_hits(tmp_path / "run_*.csv")
    wanted = in_images({name: hits[name].values for name in hits})
    np.testing.assert_array_equal(both.clust.events()["label"], [*wanted, *(wanted + wanted.max() + 1)])
    with pytest.raises(ValueError, match="has no column for 'toa'"):
        io.to_dataset({"x": [1], "y": [1]}, field="timepix")


def test_one_chip_full_of_hits_in_every_frame():
    """Every pixel of a frame fires, twice: one cluster each, in linear time."""
    y, x = np.divmod(np.arange(256 * 256), 256)
    hits = {"x": np.tile(x, 6), "y": np.tile(y, 6), "frame": np.repeat(np.arange(3), 2 * 256 * 256)}
    assert_labels(EventBuilder().fit(hits), hits["frame"])
    made = datasets.timepix(5000, rng=0)
    whole = made.assign(frame=("hit", (made["toa"].values // 1e6).astype(int)))
    columns = {name: whole[name].values for name in ("x", "y", "frame", "chip")}
    assert_labels(EventBuilder().fit(whole), in_images(columns))
