"""DBSCAN in more than three dimensions on the CPU: float32 sifts pairs of points, float64 decides."""

import numpy as np
from cases.dbscan import Case, as_sklearn, assert_answer
from cases.lanes import in_long_lane, some_of
from hypothesis import given, settings
from hypothesis import strategies as st

from daskclust import DBSCAN


@st.composite
def cases(draw):
    """Points of which many are at a distance of eps but for some units in the last place, anywhere, in any unit."""
    d = draw(st.sampled_from([4, 5, 6, 9, 13, 20]))
    n = draw(st.sampled_from([1, 16, 17, 300, 300, 300]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(0, draw(st.sampled_from([2, 3, 4])), (n, d)).astype(np.float64)
    X *= draw(st.sampled_from([1.0, 1 + 2**-23, 1 - 2**-30, 1 - 2**-52]))
    eps = draw(st.sampled_from([1.0, *np.sqrt([2.0, 3.0, 5.0]), 2.0]))
    period = ()
    if draw(st.integers(0, 2)) == 0:
        period = tuple(rng.choice([0.0, 2 * eps, 7.0, 1e6], d))
    else:
        far = draw(st.sampled_from([0.0, 300.7, 300.7, 1e7]))
        X += rng.choice([0.0, 1000.0, 1e8], d) + rng.choice([0.0, far], (n, 1))
    unit = draw(st.sampled_from([1.0, 1.0, 2.0**-70, 2.0**300]))
    X = (X * unit).astype(draw(st.sampled_from([np.float64, np.float32])) if 1e-10 < unit < 1e10 else np.float64)
    weight = rng.integers(draw(st.sampled_from([-2, 0])), 5, n) / 4 if draw(st.integers(0, 3)) == 0 else None
    return Case(X, eps * unit, draw(st.sampled_from([1, 2, 2, 3, 8])), weight, tuple(cycle * unit for cycle in period))


@settings(max_examples=in_long_lane(1000, otherwise=60))
@given(cases())
def test_distances_near_eps(case):
    assert_answer(case.fit(), case.answer())


@some_of(9, d=[4, 7, 12, 20], min_samples=[2, 3, 10], scatter=[0.0, 1e-3, 1e9])
def test_as_sklearn(d, min_samples, scatter):
    """Clumps with tails, on any scale of distances between them, with points of which some are equal."""
    rng = np.random.default_rng([d, min_samples])
    X = np.repeat(rng.normal(0, 1, (12, d)), 60, axis=0) * scatter + rng.normal(0, 1, (720, d)).round(2)
    X = X[rng.permutation(np.append(np.arange(720), np.arange(80)))]
    distances = np.sort(np.linalg.norm(X[:50, None] - X, axis=2), axis=1)
    for neighbours in (2, 12, 200):
        eps = float(np.median(distances[:, neighbours])) * (1 + 1e-9) + 1e-6
        assert_answer(DBSCAN(eps, min_samples=min_samples).fit(X), as_sklearn(X, eps, min_samples))
