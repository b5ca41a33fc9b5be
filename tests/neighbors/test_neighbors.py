"""Neighbours of points are SciPy's, in boxes too, and do not depend on chunks."""

import itertools

import awkward as ak
import dask.array as da
import numpy as np
import pytest
from scipy.spatial import cKDTree

from daskclust.neighbors import count_within, nearest, pairs_within


def points_in(box, n, d, seed, dtype=np.float64):
    """Return clumped points of which some lie on a lattice and some are equal."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, box, (n, d))
    X[: n // 3] = rng.normal(box / 2, box / 40, (n // 3, d)) % box
    X[n // 3 : n // 2] = rng.integers(0, int(box), (n // 2 - n // 3, d))
    return X.astype(dtype)


CASES = list(itertools.product([1, 2, 3, 5], [False, True]))


@pytest.mark.parametrize(("d", "is_periodic"), CASES)
def test_neighbours_are_those_of_scipy(d, is_periodic):
    X = points_in(16.0, 700, d, seed=d, dtype=np.float32 if d == 2 else np.float64)
    box, options = (16.0, {"boxsize": 16.0}) if is_periodic else (None, {})
    theirs = cKDTree(X.astype(np.float64), boxsize=box)
    for eps in (0.25, 1.0, 2.0, 7.0):  # squares are exact: points of the lattice are at these distances
        expected = theirs.query_ball_point(X, eps, return_length=True)
        np.testing.assert_array_equal(count_within(X, eps, **options), expected)
        pairs = theirs.query_pairs(eps, output_type="ndarray")
        np.testing.assert_array_equal(pairs_within(X, eps, **options), pairs[np.lexsort(pairs.T[::-1])])
    others = points_in(16.0, 300, d, seed=9)
    index, distance = nearest(X, others, **options)
    expected = cKDTree(others, boxsize=box).query(X.astype(np.float64))
    np.testing.assert_allclose(distance, expected[0], rtol=1e-15)
    step = np.abs(X.astype(np.float64)[:, None] - others)
    step = np.minimum(step, 16.0 - step) if is_periodic else step
    d2 = sum(step[..., k] * step[..., k] for k in range(d))
    np.testing.assert_array_equal(index, d2.argmin(axis=1))  # the first of equally near ones
    np.testing.assert_array_equal(distance, np.sqrt(d2.min(axis=1)))
    limited = nearest(X, others, max_distance=1.0, **options)
    np.testing.assert_array_equal(limited.index, np.where(d2.min(axis=1) <= 1.0, index, -1))
    np.testing.assert_array_equal(np.isinf(limited.distance), limited.index < 0)


@pytest.mark.parametrize("chunks", [(700,), (100,) * 7, (1, 0, 650, 49)])
def test_chunks_do_not_matter(chunks):
    X, others = points_in(16.0, 700, 3, seed=5), points_in(16.0, 300, 3, seed=6)
    lazy, lazy_others = da.from_array(X, chunks=(chunks, 3)), da.from_array(others, chunks=(64, 2))
    for boxsize in (None, 16.0, (16.0, None, 16.0)):
        counts = count_within(lazy, 1.0, boxsize=boxsize)
        assert counts.chunks == (chunks,)
        np.testing.assert_array_equal(counts.compute(), count_within(X, 1.0, boxsize=boxsize))
        expected = nearest(X, others, boxsize=boxsize)
        for each, of in ((lazy, others), (lazy, lazy_others), (X, lazy_others)):
            found = nearest(each, of, boxsize=boxsize)
            for mine, right in zip(found, expected, strict=True):
                assert isinstance(mine, da.Array)
                assert mine.dtype == right.dtype
                np.testing.assert_array_equal(mine.compute(), right)


def test_many_equal_points_are_counted_at_once():
    X = np.zeros((20_000, 3))
    assert (count_within(X, 1.0) == len(X)).all()
    index, distance = nearest(X + 1, X)
    assert (index == 0).all()
    assert (distance == np.sqrt(3.0)).all()


def test_flat_awkward_points_are_one_set():
    X = points_in(16.0, 60, 2, seed=1)
    flat = ak.zip({"x": X[:, 0], "y": X[:, 1]})
    assert isinstance(count_within(flat, 1.0), ak.Array)
    np.testing.assert_array_equal(count_within(flat, 1.0), count_within(X, 1.0))
    np.testing.assert_array_equal(pairs_within(flat, 1.0), pairs_within(X, 1.0))
    for found, wanted in zip(nearest(flat, flat[:9]), nearest(X, X[:9]), strict=True):
        assert isinstance(found, ak.Array)
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(TypeError, match="one set, got awkward lists"):
        count_within(ak.unflatten(flat, [20, 40]), 1.0)


def test_messages():
    X = np.zeros((4, 2))
    with pytest.raises(TypeError, match=r"compute\(\)"):
        pairs_within(da.from_array(X), 1.0)
    with pytest.raises(ValueError, match="as many coordinates, got 2 and 3"):
        nearest(X, np.zeros((4, 3)))
    with pytest.raises(ValueError, match="eps must be finite and positive, got -1"):
        count_within(X, -1)
    for name, points in {"X": (X[:0], X), "of": (X, X[:0])}.items():
        with pytest.raises(ValueError, match=f"^{name} has no points; give one or more$"):
            nearest(*points)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"X\[3, 1\] = nan"):
        nearest(da.from_array(X, chunks=(2, 2)), np.zeros((4, 2)))[0].compute()
