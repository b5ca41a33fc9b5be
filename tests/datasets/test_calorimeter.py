"""Calorimeters: what the generators say of them is true."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from daskclust import datasets
from daskclust.datasets._calorimeter import Deposits, _hexagons, sum_in_cells
from daskclust.io import read_hits


def test_calorimeter_is_what_it_says() -> None:
    ds = datasets.calorimeter(2, 10_000, rng=0)
    truth = ds["truth"].values.reshape(2, -1)
    assert (truth[:, 9500:] == -1).all()
    np.testing.assert_array_equal(truth[:, :9500], np.arange(1900).repeat(10).reshape(2, -1))
    np.testing.assert_array_equal(ds["layer"], np.repeat([0, 1], 10_000))
    points = np.stack([ds["x"].values, ds["y"].values], axis=1)[truth.reshape(-1) >= 0].reshape(1900, 10, 2)
    deviation = points - points.mean(axis=1, keepdims=True)
    # The standard deviation of 34200 degrees of freedom is known to 0.4 %; five times that is allowed.
    assert np.sqrt((deviation**2).sum() / (1900 * 9 * 2)) == pytest.approx(3.0, rel=0.02)
    assert np.abs(points).max() < 250 + 3 * 3


def test_calorimeter_looks_like_the_authors_file(shared_data: Path) -> None:
    real = read_hits(shared_data / "clue" / "toyDetector_10000.csv")
    ours = datasets.calorimeter(1, 10_000, sigma=2.0, rng=0)
    for radius in (1.0, 3.0, 8.0):
        mean = []
        for ds in (real, ours):
            xy = np.stack([ds["x"].values, ds["y"].values], axis=1)
            mean.append(cKDTree(xy).query_ball_point(xy, radius, return_length=True).mean())
        assert mean[0] == pytest.approx(mean[1], rel=0.05)
    assert float(abs(real["x"][:9500]).max()) == pytest.approx(float(abs(ours["x"][:9500]).max()), abs=5)
    assert float(abs(real["x"][9500:]).max()) == pytest.approx(float(abs(ours["x"][9500:]).max()), abs=2)


@given(n_layers=st.integers(0, 3), points=st.integers(0, 50), per_cluster=st.integers(1, 20), noise=st.floats(0, 1))
def test_calorimeter_of_any_numbers(n_layers: int, points: int, per_cluster: int, noise: float) -> None:
    ds = datasets.calorimeter(n_layers, points, points_per_cluster=per_cluster, noise=noise, rng=0)
    assert ds.sizes["hit"] == n_layers * points
    truth = ds["truth"].values
    assert (truth == -1).sum() == n_layers * (points - round(points * (1 - noise)))
    ids, counts = np.unique(truth[truth >= 0], return_counts=True)
    np.testing.assert_array_equal(ids, np.arange(len(ids)))
    assert counts.max(initial=1) <= per_cluster
    pairs = np.stack([truth, ds["layer"].values])[:, truth >= 0]
    assert np.unique(pairs, axis=1).shape[1] == len(ids)


def test_hgcal_event_is_what_it_says() -> None:
    ds = datasets.hgcal_event(rng=0)
    assert 40_000 < ds.sizes["hit"] < 60_000
    assert (np.diff(ds["layer"]) >= 0).all()
    assert set(np.unique(ds["layer"])) == set(range(47))
    assert ds["energy"].min() >= 0.003
    np.testing.assert_allclose(ds["phi"], np.arctan2(ds["y"], ds["x"]), rtol=1e-5)
    np.testing.assert_allclose(np.sinh(ds["eta"].values.astype(float)), ds["z"] / np.hypot(ds["x"], ds["y"]), rtol=1e-4)
    assert len(np.unique(ds["truth"])) > 120
    z = ds["z"].groupby(ds["layer"])
    np.testing.assert_array_equal(z.min(), z.max())


def test_hgcal_showers_point_to_the_origin_and_widen() -> None:
    ds = datasets.hgcal_event(40, hadronic=0.0, n_noise=0, energy_range=(80.0, 100.0), rng=3)
    frame = ds.to_dataframe()
    frame["u"], frame["v"] = frame["x"] / frame["z"], frame["y"] / frame["z"]
    middle = frame.groupby("truth")[["u", "v"]].median()
    off = np.hypot(*(frame[["u", "v"]].to_numpy() - middle.loc[frame["truth"]].to_numpy()).T) * frame["z"]
    assert off[frame["layer"] < 8].median() < off[frame["layer"] > 16].median()
    # Half of the hits lie within a few cells of the axis, which goes through the origin.
    assert off.median() < 3.0
    profile = frame.groupby("layer")["energy"].sum()
    assert 4 < profile.idxmax() < 16


def test_points_go_to_the_nearest_cell() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-3, 3, (2, 2000))
    column, row = _hexagons(x, y)
    rows, columns = np.mgrid[-8:9, -12:13]
    centres = np.stack([(columns + rows / 2).ravel(), (rows * np.sqrt(0.75)).ravel()], axis=1)
    nearest = cKDTree(centres).query(np.stack([x, y], axis=1))[1]
    np.testing.assert_array_equal(column, columns.ravel()[nearest])
    np.testing.assert_array_equal(row, rows.ravel()[nearest])


def test_energy_is_conserved_and_truth_is_the_main_source() -> None:
    deposits = Deposits(
        x=np.array([0.0, 0.1, 0.2, 5.0, 5.1, 0.0]),
        y=np.array([0.0, 0.1, 0.0, 0.0, 0.0, 0.0]),
        layer=np.array([0, 0, 0, 0, 0, 1]),
        energy=np.array([1.0, 2.0, 1.5, 0.5, 0.5, 0.25]),
        source=np.array([0, 1, 0, 4, -1, -1]),
    )
    cells = sum_in_cells(deposits, 1.0, 0.0)
    np.testing.assert_array_equal(cells["energy"], [4.5, 1.0, 0.25])
    np.testing.assert_array_equal(cells["truth"], [0, -1, -1])
    np.testing.assert_array_equal(cells["x"], [0.0, 5.0, 0.0])
    assert len(sum_in_cells(deposits, 1.0, 2.0)["energy"]) == 1
