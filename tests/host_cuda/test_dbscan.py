"""Friends-of-friends and DBSCAN: what a fit asks of the driver, and that the order of threads does not matter."""

import numpy as np
import pytest
from cases.dbscan import Case, assert_answer

from daskclust import DBSCAN

pytestmark = pytest.mark.host_cuda


def crowds(n, d, dtype=np.float32):
    """Return points that crowd at a few places, and some between."""
    rng = np.random.default_rng(d)
    centers = rng.uniform(0, 8, (6, d))
    X = np.concatenate([centers[rng.integers(0, 6, 2 * n // 3)] + rng.normal(0, 0.2, (2 * n // 3, d))])
    return np.concatenate([X, rng.uniform(0, 8, (n - len(X), d))]).astype(dtype)


CASES = {
    "friends": (Case(crowds(3000, 3), 0.4, min_members=2), 20),
    "friends in a box": (Case(crowds(3000, 3), 0.4, 2, None, (8.0,) * 3, min_members=5), 20),
    "friends in five dimensions": (Case(crowds(1500, 5), 0.4, min_members=2), 11),
    "counts": (Case(crowds(3000, 3), 0.4, 6), 25),
    "counts in two dimensions": (Case(crowds(3000, 2, np.float64), 0.1, 6), 25),
    "counts in five dimensions": (Case(crowds(1500, 5), 0.4, 4), 15),
}


def fit(cupy, case):
    return case.estimator().fit(cupy.asarray(case.X))


@pytest.mark.parametrize("name", CASES)
def test_a_fit_asks_little_of_the_driver(cupy, counts, name):
    """The host reads the extent and the number of clusters; memory comes from the pool."""
    case, launches = CASES[name]
    for _ in range(2):  # what numba compiles holds arrays for a while
        fit(cupy, case)
    X = cupy.asarray(case.X)
    counts()
    case.estimator().fit(X)
    found = counts()
    assert found.launches <= launches, found.kernels
    assert found.to_host == 2
    assert found.allocations == found.frees == 0


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_threads_does_not_matter(cupy, order, name):
    case, _ = CASES[name]
    assert_answer(fit(cupy, case), case.fit())


@pytest.mark.parametrize(("d", "period"), [(2, ()), (3, (8.0,) * 3), (5, ())])
@pytest.mark.parametrize("min_samples", [2, 4])
def test_events_are_apart(cupy, d, period, min_samples):
    case = Case(crowds(900, d), 0.4, min_samples, None, period, event=np.arange(900) % 3 * 2**33 - 9)
    found = case.estimator().fit(cupy.asarray(case.X), event=cupy.asarray(case.event))
    assert_answer(found, case.answer())


def test_points_of_a_sphere(cupy):
    X = np.random.default_rng(0).uniform([-90, 0], [90, 360], (900, 2))
    kind = DBSCAN(4.0, metric="haversine", units="degrees")
    assert_answer(kind.fit(cupy.asarray(X)), DBSCAN(**kind.get_params()).fit(X))
