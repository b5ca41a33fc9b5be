"""Event building of real data, of all kinds of columns, and of bad input: each error shows the value and the remedy."""

import tracemalloc

import numpy as np
import pytest
from cases.events import HITS, TICK, VARIANTS, WANTED, Case, assert_labels, lazy
from cases.lanes import quick_first
from oracles.brute import events as brute_force

from daskclust import EventBuilder
from daskclust.core.device.arrays import HOST
from daskclust.io import open_tpx3


@pytest.fixture(scope="module")
def run_file(shared_data):
    return shared_data / "timepix" / "sns_suann_socket_background_serval32.tpx3"


@pytest.fixture(scope="module", params=["chips", "quad"])
def real(request, run_file):
    return open_tpx3(run_file, layout=request.param)


def as_case(ds, dt_max, **others):
    return Case({name: ds[name].values for name in ("x", "y", "toa", "chip")}, dt_max, others, "quad" in ds.layout)


@pytest.mark.parametrize("dt_max", quick_first([25.0, 3e5, TICK, 200.0, 1e4], 2))
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


@pytest.mark.parametrize(
    "ends",
    [np.array([-(2**63), 2**63 - 1]), np.array([-(2**62), 2**62]), np.array([0, 2**64 - 1], np.uint64)],
    ids=["int64", "63 bits", "uint64"],
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
