"""Equal rows and equal distances in Mahalanobis clustering: the merges are those of all pairs, the cost is not."""

import dask.array as da
import numpy as np
import pytest
from cases.hca import DISTANCES, Case, form
from hypothesis import given
from hypothesis import strategies as st
from oracles.hca_brute import RULES

from daskclust import MahalanobisHCA
from daskclust.core.device.kernels import body
from daskclust.hca import levels
from daskclust.hca.kernels.clusters import first_alive as usual_first_alive
from daskclust.hca.kernels.search import scan_block as usual_scan_block


def of_all_pairs(case):
    """Return the linkage without the merges of equal rows beforehand: each merge is the least of all pairs."""
    usual = levels.merge_equal_clusters
    levels.merge_equal_clusters = lambda *_: None
    try:
        with form("plain"):
            return case.fit().linkage_
    finally:
        levels.merge_equal_clusters = usual


@st.composite
def cases(draw):
    """Draw points in few places, in eighths, so that sums are exact; some have apriori clusters, of two levels too."""
    n, d, places = draw(st.integers(2, 70)), draw(st.integers(1, 3)), draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    reach = draw(st.sampled_from([2, 64]))
    X = (rng.integers(-reach, reach, (places, d)) / draw(st.sampled_from([1, 8])))[rng.integers(0, places, n)]
    X[rng.random(n) < draw(st.sampled_from([0.0, 0.5]))] = 0
    fine = rng.integers(-1, draw(st.integers(1, 9)), n)
    apriori = draw(st.sampled_from([None, fine, np.stack([fine, np.where(fine < 0, -1, fine // 3)], axis=1)]))
    options = {
        "rule": draw(st.sampled_from(RULES)),
        "distance": draw(st.sampled_from(DISTANCES)),
        "normalize": draw(st.booleans()),
        "order": draw(st.sampled_from(["height", "groups"])),
    }
    return Case(X, draw(st.sampled_from([0.1, 0.5, 1.0, 1, 2, 3, 7])), apriori, options)


@given(cases())
def test_merges_are_those_of_all_pairs(case):
    wanted = of_all_pairs(case)
    for name in ("plain", "pruned"):
        with form(name, 24):
            np.testing.assert_array_equal(case.fit().linkage_, wanted)
    np.testing.assert_array_equal(case.chunked(11).linkage_.compute(scheduler="synchronous"), wanted)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("rule", RULES)
def test_the_centroid_of_equal_rows_is_the_row(rule, distance):
    """Three times x, divided by three, may not be x: that decides nothing."""
    rng = np.random.default_rng(0)
    of_point = rng.permutation(np.repeat(np.arange(40), np.arange(40) % 13 + 1))
    X = rng.normal(size=(40, 3))[of_point]
    Z = Case(X, 5, None, {"rule": rule, "distance": distance}).fit().linkage_
    zeros = len(X) - len(np.unique(of_point))
    assert np.count_nonzero(Z[:, 2] == 0) == zeros
    numbers = Case(of_point[:, None] * 1.0, 5).fit().linkage_
    np.testing.assert_array_equal(Z[:zeros], numbers[:zeros])


def half_clipped(n):
    rng = np.random.default_rng(0)
    return np.where(rng.random((n, 1)) < 0.5, 0, rng.normal(size=(n, 5)))


@pytest.mark.parametrize("rule", ["thesis", "mahal"])
def test_any_share_of_equal_rows_in_the_time_of_different_ones(rule):
    """Where time grows with the cube of their number, this takes days."""
    n = 20_000
    X = half_clipped(n)
    Z = MahalanobisHCA(20, rule=rule).fit(X).linkage_
    zeros = np.count_nonzero(~X.any(axis=1)) - 1
    assert np.count_nonzero(Z[:, 2]) == n - 1 - zeros
    lazy = da.from_array(X, chunks=(3000, 5))
    np.testing.assert_array_equal(MahalanobisHCA(20, rule=rule).fit(lazy).linkage_.compute(), Z)
    apriori = np.arange(n) % 3 - 1
    wanted = MahalanobisHCA(20, rule=rule).fit(X, apriori=apriori).linkage_
    got = MahalanobisHCA(20, rule=rule).fit(lazy, apriori=da.from_array(apriori, chunks=3000)).linkage_
    np.testing.assert_array_equal(got.compute(), wanted)


# Steps are counted in the last element of `slot_of`, which is no cluster's: there is one union less than points.
@body
def first_alive(clusters, ident):
    clusters.slot_of[len(clusters.slot_of) - 1] += 1
    return usual_first_alive(clusters, ident)


@body
def scan_block(block, slot, own, rule, clusters, shapes, blocks, d):
    clusters.slot_of[len(clusters.slot_of) - 1] += 1
    usual_scan_block(block, slot, own, rule, clusters, shapes, blocks, d)


class Counting:
    """Merges as usual, and counts looks at partners and at blocks."""

    def __init__(self, usual):
        self.bound, self.steps = usual.bind(first_alive=first_alive, scan_block=scan_block), 0

    def run(self, once, count, rule, clusters, *others):
        clusters.slot_of[-1] = 0
        self.bound.run(once, count, rule, clusters, *others)
        self.steps += int(clusters.slot_of[-1])


def grid(n, d):
    side = round(n ** (1 / d))
    return np.stack(np.meshgrid(*[np.arange(side)] * d), axis=-1).reshape(-1, d).astype(float)


@pytest.mark.slow  # the kernel that counts is compiled
@pytest.mark.parametrize("d", [2, 1, 3])
def test_steps_among_equal_distances(d, monkeypatch):
    """In a grid all neighbours are at the same distance: eight times as many points take not 64 times the steps."""
    steps = []
    for n in (1024, 8192):
        counting = Counting(levels.merge_down_to)
        with monkeypatch.context() as patched:
            patched.setattr(levels, "merge_down_to", counting)
            MahalanobisHCA().fit(grid(n, d))
        steps.append(counting.steps)
    assert steps[1] < 8 * 2 * steps[0]


@pytest.mark.parametrize("name", ["plain", "pruned"])
@pytest.mark.parametrize(
    ("x", "merges"),
    [
        ([0, 10, 11, 1], [[0, 3], [1, 2]]),  # the smaller id of a pair comes first
        ([0, 50, 1, -1], [[0, 2], [3, 4]]),  # then the larger one
    ],
)
def test_of_equal_distances_the_smallest_ids_are_merged(x, merges, name):
    with form(name):
        linkage = MahalanobisHCA(threshold=9).fit(np.array(x, float)[:, None]).linkage_
    assert linkage[:2, :2].astype(int).tolist() == merges
