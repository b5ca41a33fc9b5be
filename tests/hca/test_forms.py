"""The pruned form of the merges against the plain one, to the last bit, and what neither may depend on."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from cases.hca import DISTANCES, HARD, Case, cases, form, gaussians, hard_points
from cases.lanes import some_of
from hypothesis import given
from hypothesis import strategies as st
from oracles.hca_brute import RULES

from daskclust import MahalanobisHCA
from daskclust.core.device.kernels import kernel
from daskclust.hca.kernels.shapes import ALL, mean_pivot

COMBINATIONS = list(product(RULES, DISTANCES))


def assert_forms_agree(case, few=24):
    with form("plain"):
        wanted = case.fit()
    for most in (few, 256):
        with form("pruned", most):
            np.testing.assert_array_equal(case.fit().linkage_, wanted.linkage_)
    return wanted


@some_of(kind=HARD, combination=COMBINATIONS)
def test_forms_agree(kind, combination):
    """Boxes and float32 coordinates are for bounds alone, and slots may change at any time."""
    rng, (rule, distance) = np.random.default_rng(1), combination
    X = hard_points(rng, kind, 150 if distance == "full" or kind == "many channels" else 500)
    for threshold, normalize in ((0.03, False), (0.4, True), (3, False)):
        options = {"rule": rule, "distance": distance, "normalize": normalize}
        assert_forms_agree(Case(X, threshold, None, options), few=int(rng.integers(1, 80)))


@pytest.mark.parametrize("rule", RULES)
def test_forms_agree_on_many_points(rule):
    assert_forms_agree(Case(gaussians(np.random.default_rng(14), 1500, 14, parts=8), 20, None, {"rule": rule}))


@given(cases(most=120), st.integers(1, 60))
def test_forms_agree_on_drawn_cases(case, few):
    assert_forms_agree(case, few)


@pytest.mark.parametrize("distance", DISTANCES)
def test_precision_of_the_input_is_kept(distance):
    """float32 is not rounded again: the same numbers in float64 have the same answer."""
    X = gaussians(np.random.default_rng(3), 300, 5).astype(np.float32)
    wanted = Case(X.astype(np.float64), 0.1, None, {"distance": distance}).fit()
    np.testing.assert_array_equal(Case(X, 0.1, None, {"distance": distance}).fit().linkage_, wanted.linkage_)


@pytest.mark.parametrize("power", [-490, -150, -60, 150, 490])
def test_forms_agree_at_any_size_of_numbers(power):
    """Powers of covariances, and float32, have shorter ranges than coordinates."""
    rng = np.random.default_rng(3)
    for kind, threshold in (("plain", 0.04), ("constant", 0.3)):
        X = hard_points(rng, kind, 180)
        X = np.ldexp(X / abs(X).max(), power)
        for rule, distance in COMBINATIONS:
            wanted = assert_forms_agree(Case(X, threshold, None, {"rule": rule, "distance": distance}))
            assert np.isfinite(wanted.linkage_).all()


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("rule", ["euclid", "euclid_mahal"])
def test_units_play_no_part_where_determinants_are_one(rule, distance):
    """A power of two in place of the unit multiplies heights, and changes no merge."""
    X = gaussians(np.random.default_rng(4), 300, 3)
    options = {"rule": rule, "distance": distance, "normalize": True}
    wanted = Case(X, 0.1, None, options).fit().linkage_
    for power in (-400, -60, 400):
        got = Case(np.ldexp(X, power), 0.1, None, options).fit().linkage_
        np.testing.assert_array_equal(got[:, [0, 1, 3]], wanted[:, [0, 1, 3]])
        np.testing.assert_allclose(np.ldexp(got[:, 2], -power), wanted[:, 2], rtol=1e-12)


def test_a_constant_channel_far_from_zero_is_no_variance():
    """Sums of many equal numbers are rounded; the spread that seems to leave is not a shape."""
    rng = np.random.default_rng(5)
    X = gaussians(rng, 5000, 3)
    X[:, 1] = 0.1
    for distance, n in (("centroid", 5000), ("full", 800)):
        got = Case(X[:n], 0.01, None, {"distance": distance}).fit().linkage_
        flat = Case(X[:n] * [1, 0, 1], 0.01, None, {"distance": distance}).fit().linkage_
        np.testing.assert_array_equal(got[:, [0, 1, 3]], flat[:, [0, 1, 3]])
        np.testing.assert_allclose(got[:, 2], flat[:, 2], rtol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 14, 40])
@pytest.mark.parametrize("powers_of_ten", [0.1, 2, 7])
def test_root_of_the_determinant(d, powers_of_ten):
    """Channels may be in units as different as they like."""
    pivots = 10.0 ** np.random.default_rng(d).uniform(-powers_of_ten, powers_of_ten, d)
    found = np.empty(1)
    write_mean_pivot.run(1, np.diag(pivots).ravel(), np.empty(2 * d), d, found)
    assert found[0] == pytest.approx(np.exp(np.log(pivots).mean()), rel=1e-13)


@kernel
def write_mean_pivot(i, factor, numbers, d, found):
    found[i] = mean_pivot(factor, numbers, ALL, d)


@pytest.mark.parametrize("rule", ["thesis", "euclid"])
def test_memory_is_linear(rule):
    """At most nine arrays (n, d) of float64 at once: sums and centroids, as items, in slots and in new slots, and what
    these are made of; and some thirty numbers for each point. No table of pairs, and no matrix for each point.
    """
    peaks = {}
    for n, d in ((5000, 14), (20_000, 14), (20_000, 3)):
        X = gaussians(np.random.default_rng(6), n, d)
        MahalanobisHCA(rule=rule).fit(X[:400])  # what is imported and compiled once
        tracemalloc.start()
        MahalanobisHCA(rule=rule).fit(X)
        peaks[n, d] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peaks[n, d] < n * 8 * (9 * d + 40)
    assert peaks[20_000, 14] < 4.2 * peaks[5000, 14]
