"""Event building of real data, of all kinds of columns, and of bad input: each error shows the value and the remedy."""

from __future__ import annotations

import tracemalloc

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.events import TICK, VARIANTS, Case, assert_labels, brute_force, dense
from sklearn.base import clone
from sklearn.utils import estimator_checks

from daskclust import EventBuilder
from daskclust.core.device.arrays import HOST
from daskclust.core.space.partition import Partition
from daskclust.io import open_tpx3

HITS = dense(90, 1)
WANTED = brute_force(HITS, 100.0)


def lazy(hits, rows=40):
    return {name: da.from_array(np.asarray(values), chunks=rows) for name, values in hits.items()}


# ------------------------------------------------------------------------------------------------------------ real data
@pytest.fixture(scope="module")
def run_file(shared_data):
    return shared_data / "timepix" / "sns_suann_socket_background_serval32.tpx3"


@pytest.fixture(scope="module", params=["chips", "quad"])
def real(request, run_file):
    return open_tpx3(run_file, layout=request.param)


def as_case(ds, dt_max, **others):
    return Case({name: ds[name].values for name in ("x", "y", "toa", "chip")}, dt_max, others, "quad" in ds.layout)


@pytest.mark.parametrize("dt_max", [TICK, 25.0, 200.0, 1e4, 3e5])
def test_real_data_equals_brute_force(real, dt_max):
    assert real.sizes["hit"] == 98_548
    case = as_case(real, dt_max)
    wanted = case.answer()
    assert_labels(EventBuilder(dt_max).fit(real), wanted)
    assert 1 < np.bincount(wanted).max() < len(wanted)


@pytest.mark.slow
@pytest.mark.parametrize("chunks", [300, 7000, 98_548])
def test_real_data_read_in_chunks(real, run_file, chunks):
    ds = open_tpx3(run_file, layout=real.layout, chunks=chunks)
    for dt_max in (200.0, 3e5):
        assert_labels(EventBuilder(dt_max, min_hits=2).fit(ds), as_case(real, dt_max, min_hits=2).answer())


@pytest.mark.parametrize("variant", ["global", "static"])
def test_other_definitions_on_real_data(real, variant):
    case = as_case(real, 2000.0, variant=variant, connectivity=4)
    wanted = case.answer()
    assert_labels(case.fit(), wanted)
    assert_labels(case.chunked((40_000, 8548, 50_000)), wanted)


# -------------------------------------------------------------------------------------------------------------- columns
@pytest.mark.parametrize(
    "dtype",
    [
        np.int64,
        *(pytest.param(dtype, marks=pytest.mark.slow) for dtype in (np.int8, np.uint64, np.float32, np.float64)),
    ],
)
def test_whole_coordinates_of_any_type(dtype):
    hits = {**HITS, "x": HITS["x"].astype(dtype), "y": HITS["y"].astype(dtype), "chip": HITS["chip"].astype(dtype)}
    assert_labels(EventBuilder(100.0).fit(hits), WANTED)
    assert_labels(EventBuilder(100.0).fit(lazy(hits)), WANTED)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint16])
def test_times_of_any_type(dtype):
    hits = {**HITS, "toa": np.round(HITS["toa"]).astype(dtype)}
    wanted = brute_force({**hits, "toa": hits["toa"].astype(float)}, 100.0)
    assert_labels(EventBuilder(100).fit(hits), wanted)
    assert_labels(EventBuilder(np.float32(100)).fit(lazy(hits)), wanted)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("spread", [1, 7, 10**6, 10**9])
def test_coordinates_far_apart_and_negative(variant, spread):
    """Pixels in the same places, or in touching ones, however many lie between."""
    for name in ("x", "y", "chip"):
        values = HITS[name].astype(np.int64)
        hits = {**HITS, name: values // 2 * spread + values % 2 - 3 * spread}
        case = Case(hits, 100.0, {"variant": variant})
        wanted = case.answer()
        assert_labels(case.fit(), wanted)
        assert_labels(case.chunked((50, 40)), wanted)


def test_all_columns_far_apart():
    rng = np.random.default_rng(2)
    hits = {name: rng.choice([-(10**9), -1, 0, 1, 10**9, 10**9 + 1], 300) for name in ("x", "y")}
    hits |= {"chip": rng.choice([-5, 0, 10**12], 300), "toa": rng.uniform(0, 2000, 300)}
    assert_labels(EventBuilder(100.0).fit(hits), brute_force(hits, 100.0))


@pytest.mark.parametrize(
    "ends",
    [
        np.array([-(2**63), 2**63 - 1]),
        np.array([-(2**62), 2**62]),
        np.array([0, 2**63 - 1]),
        np.array([0, 2**64 - 1], np.uint64),
    ],
    ids=["int64", "63 bits", "not negative", "uint64"],
)
@pytest.mark.parametrize("name", ["x", "chip"])
def test_the_ends_of_the_coordinates_do_not_touch(name, ends):
    """The right answer or an error, but no other answer."""
    hits = {"x": np.zeros(2, int), "y": np.zeros(2, int), "toa": np.zeros(2), name: ends}
    try:
        builder = EventBuilder(1.0).fit(hits)
    except ValueError as error:
        assert name in str(error)  # noqa: PT017
        return
    assert_labels(builder, np.array([0, 1]))


def test_many_chips():
    rng = np.random.default_rng(3)
    hits = {**dense(3000, 4, pixels=3, ticks=3000), "chip": rng.integers(0, 5000, 3000).astype(np.uint16)}
    assert_labels(EventBuilder(1000.0).fit(hits), brute_force(hits, 1000.0))


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("connectivity", [4, 8])
def test_memory_does_not_grow_with_the_number_of_pixels(variant, connectivity):
    """A thousand chips of 448 x 512 pixels, and one plane of 1e5 x 1e5."""
    rng, n = np.random.default_rng(3), 4000
    at = rng.integers(0, 50, n)  # hits crowd at so many places
    plane = {"x": rng.integers(0, 10**5, 50)[at], "y": rng.integers(0, 10**5, 50)[at]}
    chips = {"x": plane["x"] % 448, "y": plane["y"] % 512, "chip": rng.integers(0, 1000, 50)[at]}
    for hits in (plane, chips):
        for name in ("x", "y"):
            hits[name] = hits[name] + rng.integers(0, 4, n)
        hits["toa"] = np.sort(rng.uniform(0, 30_000, n))
        case = Case(hits, 100.0, {"variant": variant, "connectivity": connectivity, "min_hits": 2})
        wanted = case.answer()
        assert 1 < wanted.max() < n // 3
        case.fit()  # compiled
        HOST.forget_scratch()
        tracemalloc.start()
        try:
            assert_labels(case.fit(), wanted)
            assert tracemalloc.get_traced_memory()[1] < 200 * n
        finally:
            tracemalloc.stop()
        assert_labels(case.chunked((1500, 0, 2000, 500)), wanted)


# ----------------------------------------------------------------------------------------------------------- containers
def test_classes_of_data():
    frame = pd.DataFrame({**HITS, "tot": np.ones(90)})[["tot", "toa", "chip", "y", "x"]]
    array = np.stack([HITS[name] for name in ("x", "y", "toa", "chip")], axis=1)
    ds = Case(HITS).dataset()
    for data in (
        frame,
        HITS,
        array,
        array.tolist(),
        xr.DataArray(array, dims=("hit", "column")),
        ds,
        frame[::-1][::-1],
    ):
        builder = EventBuilder(100.0)
        assert builder.fit(data) is builder
        assert type(builder.labels_) is np.ndarray
        assert isinstance(builder.n_clusters_, int)
        assert_labels(builder, WANTED)
    for data in (dd.from_pandas(frame, npartitions=3), da.from_array(array, chunks=(40, 4)), ds.chunk(hit=40)):
        builder = EventBuilder(100.0).fit(data)
        assert isinstance(builder.labels_, da.Array)
        assert isinstance(builder.n_clusters_, da.Array)
        assert_labels(builder, WANTED)
    np.testing.assert_array_equal(EventBuilder(100.0).fit_predict(HITS), WANTED)
    np.testing.assert_array_equal(ds.clust.events(100.0)["label"], WANTED)


def test_chips_from_elsewhere_or_none():
    plain = {name: values for name, values in HITS.items() if name != "chip"}
    one = brute_force(plain, 100.0)
    assert not np.array_equal(one, WANTED)
    assert_labels(EventBuilder(100.0).fit(plain), one)
    assert_labels(EventBuilder(100.0).fit(HITS, chip=None), one)
    assert_labels(EventBuilder(100.0).fit(plain, chip=HITS["chip"]), WANTED)
    assert_labels(EventBuilder(100.0).fit(lazy(plain), chip=list(HITS["chip"])), WANTED)
    quad = Case(HITS, quad=True).dataset()
    assert_labels(EventBuilder(100.0).fit(quad), one)
    assert_labels(EventBuilder(100.0).fit(quad, chip=HITS["chip"]), WANTED)


def test_some_columns_lazy():
    for name in HITS:
        assert_labels(EventBuilder(100.0).fit({**HITS, name: lazy(HITS)[name]}), WANTED)


def test_views_and_input_that_is_read_only():
    wide = np.stack([HITS[name].astype(float) for name in ("x", "y", "toa", "chip")] * 2, axis=1)
    wide.setflags(write=False)
    before = wide.copy()
    assert_labels(EventBuilder(100.0).fit(wide[:, 4:]), WANTED)
    backward = EventBuilder(100.0).fit(wide[::-1, :4])
    assert_labels(backward, brute_force({name: values[::-1] for name, values in HITS.items()}, 100.0))
    np.testing.assert_array_equal(wide, before)


# ------------------------------------------------------------------------------------------------------------- extremes
@pytest.mark.parametrize("variant", VARIANTS)
def test_few_and_equal_hits(variant):
    def labels(n, x=5, toa=7.5, min_hits=1):
        hits = {"x": np.full(n, x), "y": np.full(n, 3), "toa": np.full(n, toa)}
        got = EventBuilder(100.0, variant=variant, min_hits=min_hits).fit(hits)
        chunked = EventBuilder(100.0, variant=variant, min_hits=min_hits).fit(lazy(hits, 2 if n else 1))
        assert_labels(chunked, got.labels_)
        return got.labels_.tolist()

    assert labels(0) == []
    assert labels(1) == [0]
    assert labels(1, min_hits=2) == [-1]
    assert labels(9) == [0] * 9
    assert labels(9, x=-4, toa=-1e9, min_hits=9) == [0] * 9
    assert labels(9, min_hits=10) == [-1] * 9


def test_all_noise():
    case = Case({**HITS, "x": np.arange(90) * 2}, 100.0, {"min_hits": 2})
    assert_labels(case.fit(), np.full(90, -1))
    assert_labels(case.chunked((30, 30, 30)), np.full(90, -1))


def test_hits_earlier_than_zero_and_late():
    for shift in (-1e6, 2.0**40):
        assert_labels(EventBuilder(100.0).fit({**HITS, "toa": HITS["toa"] + shift}), WANTED)


# --------------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"dt_max": 0}, ValueError, "dt_max must be finite and positive, got 0"),
        ({"dt_max": -2.5}, ValueError, r"dt_max must be finite and positive, got -2\.5"),
        ({"dt_max": np.nan}, ValueError, "dt_max must be finite and positive, got nan"),
        ({"dt_max": np.inf}, ValueError, "dt_max must be finite and positive, got inf"),
        ({"dt_max": "wide"}, TypeError, "dt_max must be a number, got 'wide'"),
        ({"dt_max": None}, TypeError, "dt_max must be a number, got None"),
        ({"variant": "locale"}, ValueError, "variant must be 'local', 'global', 'static', got 'locale'"),
        ({"variant": None}, ValueError, "variant must be .*, got None"),
        ({"connectivity": 6}, ValueError, "connectivity must be 8 or 4 pixels, got 6"),
        ({"connectivity": "8"}, ValueError, "connectivity must be 8 or 4 pixels, got '8'"),
        ({"connectivity": True}, ValueError, "connectivity must be 8 or 4 pixels, got True"),
        ({"min_hits": 0}, ValueError, "min_hits must be 1 or more, got 0"),
        ({"min_hits": 2.0}, TypeError, r"min_hits must be a whole number, got 2\.0"),
        ({"min_hits": True}, TypeError, "min_hits must be a whole number, got True"),
    ],
)
def test_parameters(parameters, error, words):
    with pytest.raises(error, match=words):
        EventBuilder(**{"dt_max": 100.0, **parameters}).fit(HITS)


def with_value(name, row, value):
    values = HITS[name].astype(float)
    values[row] = value
    return {**HITS, name: values}


@pytest.mark.parametrize("make", [dict, lazy], ids=["memory", "dask"])
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("toa", np.nan, r"toa must be finite, got toa\[47\] = nan; remove"),
        ("toa", np.inf, r"toa\[47\] = inf"),
        ("toa", -np.inf, r"toa\[47\] = -inf"),
        ("x", 1.5, r"x must be whole numbers, got float64; .*: x\[47\] = 1\.5"),
        ("y", np.nan, r"y\[47\] = nan"),
        ("y", np.inf, r"y\[47\] = inf"),
        ("chip", 0.25, r"chip\[47\] = 0\.25"),
        ("x", 1e19, r"x\[47\] = 1e\+19"),
    ],
)
def test_values(make, name, value, words):
    with pytest.raises(ValueError, match=words):
        np.asarray(EventBuilder(100.0).fit(make(with_value(name, 47, value))).labels_)


@pytest.mark.parametrize("name", ["x", "y", "toa", "chip"])
@pytest.mark.parametrize("make", [dict, lazy], ids=["memory", "dask"])
def test_lengths(make, name):
    with pytest.raises(ValueError, match=r"must have one value for each of the \d+ points.*\(\d+,\)"):
        EventBuilder(100.0).fit(make({**HITS, name: HITS[name][:-1]}))


@pytest.mark.parametrize("name", ["x", "y", "toa"])
@pytest.mark.parametrize("make", [dict, pd.DataFrame, lazy, lambda hits: Case(hits).dataset()])
def test_missing_columns(make, name):
    hits = {key: values for key, values in HITS.items() if key != name}
    with pytest.raises(ValueError, match=rf"there is no column '{name}'; needed are x, y, toa, there are .*chip"):
        EventBuilder(100.0).fit(make(hits))


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (np.zeros((5, 2)), ValueError, r"shape \(n, 3\): x, y, toa.*got \(5, 2\)"),
        (np.zeros((5, 5)), ValueError, r"got \(5, 5\)"),
        ([1.0, 2.0, 3.0], ValueError, r"got \(3,\)"),
        (np.zeros(5), TypeError, "hits must be a Dataset.*ndarray"),
        ("run.tpx3", TypeError, "hits must be a Dataset.*str"),
        (None, TypeError, "hits must be a Dataset.*NoneType"),
        ({**HITS, "toa": HITS["toa"].astype(str)}, ValueError, "toa must be numbers, got dtype <U"),
        ({**HITS, "toa": HITS["toa"].astype("M8[ns]")}, ValueError, "toa must be numbers, got dtype datetime64"),
        ({**HITS, "toa": HITS["toa"] + 0j}, ValueError, "Complex data not supported: toa is complex128"),
        ({**HITS, "x": HITS["x"].astype(str)}, ValueError, "x must be numbers, got dtype <U"),
        ({**HITS, "x": HITS["x"] > 2}, ValueError, "x must be whole numbers, got bool"),
        ({**HITS, "toa": HITS["toa"][:, None]}, ValueError, r"toa must have one dimension, got shape \(90, 1\)"),
        ({**HITS, "y": np.zeros((90, 2), int)}, ValueError, r"y must have one value for each.*\(90, 2\)"),
    ],
)
def test_shapes_and_types(data, error, words):
    with pytest.raises(error, match=words):
        EventBuilder(100.0).fit(data)


def test_datasets_with_more_dimensions():
    ds = Case(HITS).dataset()
    np.testing.assert_array_equal(
        EventBuilder(100.0).fit(ds.assign(image=(("a", "b"), np.ones((2, 3))))).labels_, WANTED
    )
    with pytest.raises(ValueError, match=r"toa must have one dimension, got shape \(90, 2\)"):
        EventBuilder(100.0).fit(ds.assign(toa=(("hit", "edge"), np.zeros((90, 2)))))


def test_unknown_chunk_sizes():
    columns = lazy(HITS)
    few = {name: values[columns["x"] > 2] for name, values in columns.items()}
    with pytest.raises(ValueError, match=r"unknown chunk sizes; call \.compute_chunk_sizes\(\)"):
        EventBuilder(100.0).fit(few)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("order", [(1, 0), (1, 0, 2), (0, 2, 1), (0, 1, 3, 2)])
def test_chunks_out_of_order(variant, order):
    """The last chunk too."""
    parts = np.array_split(np.arange(90), len(order))
    sizes = tuple(len(parts[k]) for k in order)
    case = Case(HITS, 100.0, {"variant": variant}).reordered(np.concatenate([parts[k] for k in order]))
    with pytest.raises(ValueError, match=r'hit \d+ has a hit at toa .*, earlier than .*partition="windows"'):
        case.chunked(sizes).labels_.compute()
    assert_labels(case.chunked(sizes, "windows"), case.answer())


@pytest.mark.parametrize(
    ("partition", "words"),
    [
        ("space", 'partition must be "auto", "chunks", "windows" or a Partition, got .space'),
        (None, "got None"),
        (Partition(groups=2), "hits are divided by cuts across one axis"),
        (Partition(cuts=(np.array([1.0]), np.array([1.0])), period=(0.0, 0.0)), "across one axis"),
        (Partition(cuts=(np.array([1.0]),), period=(5.0,)), "without a period"),
    ],
)
def test_partitions(partition, words):
    with pytest.raises(ValueError, match=words):
        EventBuilder(100.0).fit(lazy(HITS), partition=partition)


# ----------------------------------------------------------------------------------------------- scikit-learn's customs
CHECKS = [
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_mixin_order",
]


@pytest.mark.parametrize("check", CHECKS)
def test_estimator_checks(check):
    """Those that feed no matrices of any floats, which are no hits."""
    getattr(estimator_checks, check)("EventBuilder", EventBuilder(100.0))


def test_parameters_are_stored_as_given():
    builder = EventBuilder(200, variant="static", connectivity=4, min_hits=np.int64(3))
    assert builder.get_params() == {"dt_max": 200, "variant": "static", "connectivity": 4, "min_hits": 3}
    assert clone(builder).get_params() == builder.get_params()
    assert builder.set_params(dt_max=7).dt_max == 7
    assert repr(EventBuilder(200, min_hits=2)) == "EventBuilder(dt_max=200, min_hits=2)"
    with pytest.raises(ValueError, match="Invalid parameter 'window'"):
        builder.set_params(window=3)


def test_whole_times_beyond_float64():
    hits = {**HITS, "toa": np.arange(90) + 2**60}
    for given in (hits, lazy(hits)):
        with pytest.raises(ValueError, match=r"toa\[\d+\] = \d+ is beyond 2\*\*53"):
            np.asarray(EventBuilder(100.0).fit(given).labels_)
    small = {**HITS, "toa": np.round(HITS["toa"]).astype(np.int64)}
    wanted = EventBuilder(100.0).fit({**small, "toa": small["toa"].astype(float)}).labels_
    assert_labels(EventBuilder(100.0).fit(small), wanted)
