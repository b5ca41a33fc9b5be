"""Event building against brute force, all three definitions, in memory and however divided."""

import itertools
from unittest import mock

import numpy as np
import pytest
from cases.events import TICK, VARIANTS, Case, assert_labels, cases, tiny_pieces
from cases.lanes import in_long_lane, row_chunks
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.brute import in_time

from daskclust.core.device.unionfind import flatten
from daskclust.core.space.partition import Partition
from daskclust.events import matrix
from daskclust.events.kernels.pixels import Hits
from daskclust.events.matrix import MOST_CELLS
from daskclust.events.plan import EventPlan

PIECES = st.tuples(st.sampled_from([1, 2, 3, 10]), st.integers(2, 7))


# --------------------------------------------------------------------------------------------------------- brute force


@pytest.mark.parametrize("variant", VARIANTS)
def test_at_exactly_dt_max(variant):
    """One pixel every dt_max: one cluster, but of two hits each by the static rule; a tick less, and all are alone."""
    n = 9
    hits = {"x": np.full(n, 7), "y": np.full(n, 7), "toa": np.arange(n) * 64 * TICK}
    together = [0, 0, 1, 1, 2, 2, 3, 3, 4] if variant == "static" else [0] * n
    assert_labels(Case(hits, 64 * TICK, {"variant": variant}).fit(), np.array(together))
    assert_labels(Case(hits, 63 * TICK, {"variant": variant}).fit(), np.arange(n))
    assert_labels(Case(hits, np.nextafter(64 * TICK, 0), {"variant": variant}).fit(), np.arange(n))


def test_the_three_definitions_differ():
    """Of a cluster A (0, 80) and a pixel beside its first hit at 150, dt_max 100.

    No hit of a touching pixel is near (local); A's latest is (global), its earliest is not (static).
    """
    hits = {"x": np.array([0, 1, 2, 0]), "y": np.zeros(4, int), "toa": np.array([0.0, 40.0, 80.0, 150.0])}
    for variant, wanted in {"local": [0, 0, 0, 1], "global": [0, 0, 0, 0], "static": [0, 0, 0, 1]}.items():
        hits["x"][3] = -1
        case = Case(hits, 100.0, {"variant": variant})
        np.testing.assert_array_equal(case.answer(), wanted)
        assert_labels(case.fit(), np.array(wanted))


# -------------------------------------------------------------------------------------------------------------- windows


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_cluster_that_joins_others_late(variant):
    """Two clusters of many chunks ago become one by a hit between them; one of them began before the other's chunk."""
    n = 40
    x, toa = np.where(np.arange(n) % 2, 0, 2), np.arange(n) * 10.0
    x[-3] = 1
    case = Case({"x": x, "y": np.zeros(n, int), "toa": toa}, 25.0, {"variant": variant})
    wanted = case.answer()
    for rows in (1, 3, 8, 39):
        assert_labels(case.chunked(tuple([rows] * (n // rows) + [n % rows])), wanted)
    assert (wanted.max() == 0) == (variant != "static")


@settings(max_examples=in_long_lane(1000, otherwise=60))
@given(st.data(), cases(), PIECES)
def test_memory_chunks_and_windows_equal_brute_force(data, case, pieces):
    """In pieces for threads, too; chunks in the order of time, empty ones and ones shorter than dt_max among them.

    Windows are cut at any times, also those of hits, and before and after all of them.
    """
    wanted, n = case.answer(), len(case)
    assert_labels(case.fit(), wanted)
    with tiny_pieces(*pieces):
        assert_labels(case.fit(), wanted)
        times = [st.floats(-1e4, 1e4)] + ([st.sampled_from(case.hits["toa"].tolist())] if n else [])
        cuts = np.unique(data.draw(st.lists(st.one_of(times), max_size=6))).astype(float)
        partition = data.draw(st.sampled_from(["chunks", "windows", Partition(cuts=(cuts,), period=(0.0,))]))
        rows = data.draw(row_chunks(n))
        if partition == "chunks":  # within one, hits are in any order
            order, rng, ends = in_time(case.hits), np.random.default_rng(n), np.cumsum([0, *rows])
            case = case.reordered(np.concatenate([rng.permutation(order[a:b]) for a, b in itertools.pairwise(ends)]))
            wanted = case.answer()
        assert_labels(case.chunked(rows, partition), wanted)


# -------------------------------------------------------------------------------------------- fast kernels and the rule
def forest(plan, hits, cells_per_hit=64):
    """Return the roots that the plain rule gives, and the table that it was given."""
    parent = np.empty(len(hits.toa), np.int32)
    with mock.patch.multiple(matrix, _FEW_CELLS=0, _CELLS_PER_HIT=cells_per_hit):
        table, cells = matrix.make_matrix(matrix.extent_of(hits), plan._touching, len(parent))
    plan._join_in_order(np.array([0, len(parent)]), hits, table, cells, parent)
    flatten.run(len(parent), parent)
    return parent, table, cells


def as_hits(case):
    return Hits(case.hits["x"], case.hits["y"], case.hits.get("chip", np.empty(0, np.uint8)), case.hits["toa"])


@given(cases(most=250, variants=("local",), is_sorted=True), st.integers(1, 6))
def test_fast_local_kernels_equal_the_plain_one(case, pieces):
    n = len(case)
    if n == 0:
        return
    plan = EventPlan(case.dt_max, "local", case.others["connectivity"], 1)
    hits = as_hits(case)
    wanted, table, cells = forest(plan, hits, MOST_CELLS)
    begin = np.arange(pieces + 1) * n // pieces  # wherever borders are, empty pieces too
    fast = np.empty(n, np.int32)
    roots = plan._join_on_host(begin, hits, table, cells, fast)
    flatten.run(n, fast)
    np.testing.assert_array_equal(fast, wanted)
    own = (wanted == np.arange(n)).astype(int)
    if roots[0] >= 0:
        np.testing.assert_array_equal(roots, [own[a:b].sum() for a, b in itertools.pairwise(begin)])
    else:
        assert pieces > 1


@given(cases(most=250, is_sorted=True))
def test_a_hash_table_gives_what_a_table_of_all_pixels_gives(case):
    if len(case) == 0:
        return
    plan = EventPlan(case.dt_max, case.others["variant"], case.others["connectivity"], 1)
    wanted, _, cells = forest(plan, as_hits(case), MOST_CELLS)
    got, _, none = forest(plan, as_hits(case), 0)
    assert cells > 0
    assert none == 0
    np.testing.assert_array_equal(got, wanted)


@given(cases(), st.data())
def test_few_hits_of_very_many_pixels(case, data):
    """Columns, rows and chips with any gaps between them, in memory, by pieces and in chunks."""
    n, hits = len(case), case.hits
    for name in ("x", "y", "chip") if not case.quad else ("x", "y"):
        if name in hits:
            gap = data.draw(st.sampled_from([1, 2, 1000, 10**9]))
            hits[name] = hits[name].astype(np.int64) // 3 * gap + hits[name] % 3 - data.draw(st.integers(0, 10**9))
    rows, size = data.draw(row_chunks(n)), data.draw(st.integers(1, 30))
    wanted = case.answer()
    with mock.patch.multiple(matrix, _FEW_CELLS=0, _CELLS_PER_HIT=data.draw(st.sampled_from([0, 64]))):
        assert_labels(case.fit(), wanted)
        with tiny_pieces(size, 4):
            assert_labels(case.fit(), wanted)
        order = in_time(hits)
        assert_labels(case.reordered(order).chunked(rows), case.reordered(order).answer())
