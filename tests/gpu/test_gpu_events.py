"""Event building on a GPU with cupy: the CPU's answer."""

import re

import dask.array as da
import numpy as np
import pytest
from cases.events import VARIANTS, assert_labels, dense
from cases.events import Case as EventCase
from cases.events import cases as event_cases
from cases.lanes import size
from hypothesis import given, settings

pytestmark = pytest.mark.gpu


def fit_events(case):
    """Fit a Dataset of cupy arrays; the labels must be one."""
    import cupy

    hits = case.dataset().map(lambda values: values.copy(data=cupy.asarray(values.data)), keep_attrs=True)
    builder = case.estimator().fit(hits)
    assert type(builder.labels_) is cupy.ndarray
    assert type(builder.n_clusters_) is int
    return builder


@settings(max_examples=20)
@given(event_cases())
def test_drawn_events(case):
    assert_labels(fit_events(case), case.answer())


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("ticks", [20, 400])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_many_hits(variant, ticks, is_sorted):
    n = size(1_000_000, on_host=5000)
    hits = dense(n, 1, pixels=256, ticks=ticks * n, chips=4)
    case = EventCase(hits, 200.0, {"variant": variant, "min_hits": 2})
    if not is_sorted:
        case = case.reordered(np.random.default_rng(2).permutation(len(case)))
    wanted = case.fit().labels_
    for _ in range(3):
        assert_labels(fit_events(case), wanted)


@pytest.mark.parametrize("variant", VARIANTS)
def test_windows_of_cupy(cupy, variant):
    """Empty chunks, chunks as they are, and windows of hits in any order."""
    case = EventCase(dense(3000, 2, ticks=20_000), 50.0, {"variant": variant, "min_hits": 2})
    shuffled = case.reordered(np.random.default_rng(3).permutation(3000))
    for drawn, rows, partition in ((case, (1000, 0, 1999, 1), "chunks"), (shuffled, (1500, 1500), "windows")):
        lazy = {name: da.from_array(values, chunks=(rows,)).map_blocks(cupy.asarray, meta=cupy.empty(0, values.dtype))
                for name, values in drawn.hits.items()}  # fmt: skip
        builder = drawn.estimator().fit(lazy, partition=partition)
        assert type(builder.labels_.compute()) is cupy.ndarray
        assert_labels(builder, drawn.answer())


def test_other_classes_of_hits(cupy):
    case = EventCase(dense(500, 4), 50.0)
    wanted = case.answer()
    assert_labels(case.estimator().fit({name: cupy.asarray(values) for name, values in case.hits.items()}), wanted)
    matrix = np.stack([case.hits[name].astype(float) for name in ("x", "y", "toa", "chip")], axis=1)
    assert_labels(case.estimator().fit(cupy.asarray(matrix)), wanted)
    case.hits["x"] = case.hits["x"].astype(np.int64) * 10**12  # no table of pixels is needed
    case.hits["y"] = case.hits["y"].astype(np.int64)
    assert_labels(fit_events(case), case.answer())


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("name", "value"), [("toa", np.nan), ("toa", -np.inf), ("y", -(2**62)), ("chip", 2**62)])
def test_what_is_refused_in_the_words_of_the_cpu(cupy, variant, name, value):
    """Hits in any order, in memory and in the second of two chunks, where the hit is named by its place among all."""
    case = EventCase(dense(500, 4), 50.0, {"variant": variant}).reordered(np.random.default_rng(3).permutation(500))
    case.hits = {each: values.astype(values.dtype if each == "toa" else np.int64) for each, values in case.hits.items()}
    case.hits[name][321] = value
    here, there = ({each: wrap(values) for each, values in case.hits.items()} for wrap in (np.asarray, cupy.asarray))
    lazy = {each: da.from_array(values, chunks=(300, 200)).map_blocks(cupy.asarray, meta=cupy.empty(0, values.dtype))
            for each, values in here.items()}  # fmt: skip
    with pytest.raises(ValueError, match=rf"toa\[321\] = {value}" if name == "toa" else f"{name} must lie") as wanted:
        case.estimator().fit(here)
    with pytest.raises(ValueError, match=re.escape(str(wanted.value))):
        case.estimator().fit(there)
    words = str(wanted.value) if name == "toa" else f"{name} must lie between"  # of a chunk's own extent
    with pytest.raises(ValueError, match=re.escape(words)):
        case.estimator().fit(lazy).labels_.compute()
