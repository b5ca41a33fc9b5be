"""Generators of particles: what they say is true, and the numbers by index that they are made from."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from daskclust import datasets
from daskclust.datasets._indexed import directions, normals, random_bits, uniforms

# Numbers by index


@given(n=st.integers(1, 3000), seed=st.integers(0, 100))
def test_an_order_has_every_number_once(n: int, seed: int) -> None:
    order = datasets.apriori_gaussians(n, 1, channels=1, shuffle=True, rng=seed)["apriori"].values
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    assert n < 21 or np.count_nonzero(order == np.arange(n)) < 10


def test_an_order_is_random() -> None:
    order = datasets.apriori_gaussians(100_000, 1, channels=1, shuffle=True, rng=0)["apriori"].values.astype(float)
    # The correlation of independent numbers is normal with a deviation of 1 / sqrt(n) = 0.003.
    assert abs(np.corrcoef(order[1:], order[:-1])[0, 1]) < 0.016
    assert abs(np.corrcoef(order, np.arange(100_000))[0, 1]) < 0.016


def test_numbers_by_index_are_those_of_splitmix64() -> None:
    # The first numbers of the reference implementation with the seed 1234567.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    found = random_bits(np.uint64(1234567), np.arange(1, 5, dtype=np.uint64))
    np.testing.assert_array_equal(found, np.array(expected, np.uint64))


def test_numbers_by_index_are_uniform_and_normal() -> None:
    keys = np.random.default_rng(1).integers(0, 1 << 64, 4, dtype=np.uint64)
    index = np.arange(200_000, dtype=np.uint64)
    u = np.stack([uniforms(key, index) for key in keys])
    assert u.min() >= 0
    assert u.max() < 1
    assert all(stats.kstest(row, "uniform").pvalue > 1e-4 for row in u)
    z = normals(keys, index)
    assert all(stats.kstest(row, "norm").pvalue > 1e-4 for row in z)
    assert np.abs(np.corrcoef(np.concatenate([u, z])) - np.eye(8))[:4, :4].max() < 0.012
    assert np.abs(np.corrcoef(z) - np.eye(4)).max() < 0.012
    v = directions(keys, index, 3)
    np.testing.assert_allclose((v * v).sum(axis=0), 1)
    assert stats.kstest(v[2], "uniform", (-1, 2)).pvalue > 1e-4  # Archimedes


# The box


def test_the_box_is_what_it_says() -> None:
    n = 200_000
    ds = datasets.cosmology_box(n, separation=0.5, shuffle=False, rng=0)
    side = 0.5 * np.cbrt(n)
    assert ds.attrs["boxsize"] == pytest.approx(side)
    halo = ds["halo"].values
    assert (halo == -1).sum() == round(0.36 * n)
    X = np.stack([ds[axis].values for axis in "xyz"])
    assert X.min() >= 0
    assert X.max() < side
    background = X[:, halo == -1] / side
    assert all(stats.kstest(row, "uniform").pvalue > 1e-4 for row in background)
    assert float(ds["mass"][0]) == pytest.approx(0.3 * 2.775366e11 * 0.5**3)
    sizes = np.bincount(halo[halo >= 0])
    assert sizes[:-1].min() >= 5
    assert sizes.max() <= 2e-3 * n
    # Halos of more than ten times the smallest: 10**-0.9 of them by the power law, less those beyond the largest.
    low, high = 5**-0.9, 400**-0.9
    share = (50**-0.9 - high) / (low - high)
    error = np.sqrt(share * (1 - share) / len(sizes))
    assert (sizes >= 50).mean() == pytest.approx(share, abs=5 * error)


def test_halos_are_round_and_virial() -> None:
    ds = datasets.cosmology_box(400_000, shuffle=False, largest=0.01, rng=4)
    side, halo = ds.attrs["boxsize"], ds["halo"].values
    sizes = np.bincount(halo[halo >= 0])
    for number in np.argsort(sizes)[-3:]:
        N = sizes[number]
        own = ds.isel(particle=halo == number)
        X = np.stack([own[axis].values for axis in "xyz"]).astype(float)
        X = (X - X[:, :1] + side / 2) % side
        # The median is the centre to about the size of the core by sqrt(N).
        r = np.sqrt(((X - np.median(X, axis=1, keepdims=True)) ** 2).sum(axis=0))
        radius = np.cbrt(N / (200 * 4 / 3 * np.pi))
        assert r.max() < radius * 1.1
        # NFW with a concentration of 8: half of the mass is within the root of m(8 x) = m(8) / 2.
        x = np.linspace(0, 1, 1001)[1:]
        m = np.log1p(8 * x) - 8 * x / (1 + 8 * x)
        half = x[np.searchsorted(m, m[-1] / 2)]
        assert (r < half * radius).mean() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(N) + 0.02)
        mass = N * 0.3 * 2.775366e11
        expected = np.sqrt(4.30091e-9 * mass / (2 * radius))
        V = np.stack([own[f"v{axis}"].values for axis in "xyz"]).astype(float)
        assert V.std() > 0
        assert np.sqrt(V.var(axis=1).mean()) == pytest.approx(expected, rel=5 / np.sqrt(6 * N))
    background = ds.isel(particle=halo == -1)
    assert float(background["vx"].std()) == pytest.approx(200, rel=0.02)


def test_extremes_of_the_box() -> None:
    assert datasets.cosmology_box(500, slope=1.0, rng=0).sizes == {"particle": 500}
    equal = datasets.cosmology_box(10_000, smallest=100, largest=0.0, background=0.0, rng=0)
    np.testing.assert_array_equal(np.bincount(equal["halo"]), np.full(100, 100))


def test_filaments() -> None:
    """The more halos lie along them, the more particles have many in their cell of the box."""
    crowds = []
    for filaments in (0.0, 0.3, 1.0):
        ds = datasets.cosmology_box(100_000, filaments=filaments, rng=0)
        cell = np.floor(np.stack([ds[axis] for axis in "xyz"]) / ds.attrs["boxsize"] * 16).astype(int)
        crowds.append((np.bincount(cell[0] * 256 + cell[1] * 16 + cell[2]) ** 2).sum())
    assert 4 * crowds[0] < 2 * crowds[1] < crowds[2]
    xr.testing.assert_identical(datasets.cosmology_box(1000, rng=0), datasets.cosmology_box(1000, filaments=0.6, rng=0))


def test_a_web_moves_halos_as_wholes_and_empties_voids() -> None:
    smooth, web = (datasets.cosmology_box(100_000, filaments=0.0, web=web, shuffle=False, rng=0) for web in (0.0, 0.03))
    side, halo = web.attrs["boxsize"], web["halo"].values
    np.testing.assert_array_equal(smooth["halo"], halo)
    assert smooth["vx"].equals(web["vx"])
    moved = np.stack([(web[axis] - smooth[axis]).values for axis in "xyz"]).astype(float)
    moved -= side * np.rint(moved / side)
    assert np.abs(moved).max() < 5 * 0.03 * side
    background = moved[:, halo < 0]
    np.testing.assert_allclose(np.sqrt((background**2).mean(axis=1)), 0.03 * side, rtol=0.2)
    first = np.flatnonzero(np.diff(halo, prepend=-2) > 0)
    np.testing.assert_allclose(moved[:, halo >= 0], moved[:, first[halo[halo >= 0]]], atol=1e-5 * side)
    empty = []
    for ds in (smooth, web):
        cell = np.floor(np.stack([ds[axis] for axis in "xyz"]) / side * 16).astype(int)
        empty.append((np.bincount(cell[0] * 256 + cell[1] * 16 + cell[2], minlength=4096) < 5).mean())
    assert 3 * empty[0] < empty[1]


# The seed spreader


def test_spots_of_the_spreader() -> None:
    for d in (1, 2, 3, 7):
        ds = datasets.seed_spreader(20_000, d, shuffle=False, noise=0.0, size=1e5, rng=d)
        X = ds["X"].values if d > 3 else np.stack([ds[axis].values for axis in "xyz"[:d]], axis=1)
        assert X.min() >= 0
        assert X.max() <= 1e5
        truth = ds["truth"].values
        assert (np.bincount(truth) > 0).all()
        first = truth == 0
        spots = X[first][: first.sum() // 100 * 100].reshape(-1, 100, d).astype(float)
        middle = spots.mean(axis=1)
        # Mirrors bring points of a spot nearer, never apart; float32 has 0.004 at 1e5.
        spread = np.sqrt(((spots - spots[:, :1]) ** 2).sum(axis=2)).max()
        assert spread <= 200.1
        inner = ((spots > 1000) & (spots < 99_000)).all(axis=(1, 2))
        steps = np.sqrt(((middle[1:] - middle[:-1]) ** 2).sum(axis=1))[inner[1:] & inner[:-1]]
        # Of the mean of 100 points in a ball of radius 100, each axis is known to 10 / sqrt(d + 2).
        assert np.abs(steps - 50 * d).max(initial=0) < 80


def test_walks_and_densities_of_the_spreader() -> None:
    walks = [int(datasets.seed_spreader(5000, 2, rng=seed)["truth"].max()) for seed in range(100)]
    # The number of walks but the first is that of restarts among n points with the chance 10 / n, nearly Poisson.
    assert np.mean(walks) == pytest.approx(10, abs=5 * np.sqrt(10 / 100))
    ds = datasets.seed_spreader(50_000, 3, density="varying", n_clusters=20, noise=0.2, shuffle=False, rng=1)
    truth = ds["truth"].values
    assert (truth == -1).sum() == 10_000
    assert all(stats.kstest(ds[axis].values[truth == -1] / 1e5, "uniform").pvalue > 1e-4 for axis in "xyz")
    X = np.stack([ds[axis].values for axis in "xyz"], axis=1).astype(float)
    for walk in range(min(12, truth.max())):
        spot = X[truth == walk][:100]
        reach = np.sqrt(((spot - spot.mean(axis=0)) ** 2).sum(axis=1)).max()
        if len(spot) == 100 and spot.min() > 2000 and spot.max() < 98_000:
            assert reach / (100 * (walk % 10 + 1)) == pytest.approx(1.0, abs=0.25)
