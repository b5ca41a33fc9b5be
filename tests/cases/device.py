"""All systems on dask arrays with chunks on a device, in the simulator or on a GPU, and what goes over the host."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np

from daskclust import CLUE, DBSCAN, EventBuilder, FriendsOfFriends, MahalanobisHCA
from daskclust.core.device import arrays
from daskclust.datasets import timepix

CELLS = 45

NAMES = ("clue", "clue, layers", "fof", "dbscan", "dbscan, weights", "events", "events, larger", "hca")


def case_of(name: str, n: int) -> tuple[Any, Any, dict[str, np.ndarray]]:
    """Return an estimator, `n` points in a long strip, of which few are near the planes between blocks, and columns."""
    rng = np.random.default_rng(0)
    strip = np.stack([rng.uniform(0, n / 6, n), rng.uniform(0, 2, n)], axis=1).astype(np.float32)
    weight = rng.integers(0, 4, n) / 2
    if name.startswith("events"):
        hits = timepix(n, rng=0, rate=2e4)
        builder = EventBuilder(100.0, min_hits=2 if name.endswith("larger") else 1)
        return builder, {column: hits[column].values for column in ("x", "y", "toa")}, {}
    if name == "hca":
        return MahalanobisHCA(0.3, n_clusters=3), rng.normal(size=(CELLS, 3)), {"apriori": np.arange(CELLS) % 3}
    if name.startswith("clue"):
        return CLUE(dc=0.6, rhoc=2.0), strip, {"layer": np.repeat([0, 1, 2], n // 3)} if "layers" in name else {}
    if name == "fof":
        return FriendsOfFriends(0.4), strip, {}
    return DBSCAN(0.4, min_samples=3), strip, {"sample_weight": weight} if "weights" in name else {}


def lazy(cupy: Any, values: np.ndarray) -> Any:
    """Return an array as a dask array of three chunks on the device."""
    chunks = da.from_array(values, chunks=(len(values) // 3, *values.shape[1:]))
    return chunks.map_blocks(cupy.asarray, meta=cupy.empty((0,) * values.ndim, values.dtype))


def fit(cupy: Any, name: str, n: int) -> tuple[Any, np.ndarray]:
    """Return the labels on the device, lazy, and those of the CPU."""
    estimator, X, columns = case_of(name, n)
    labels = estimator.fit(X, **columns).labels_
    on_device = {key: lazy(cupy, column) for key, column in columns.items()}
    X = {key: lazy(cupy, column) for key, column in X.items()} if isinstance(X, dict) else lazy(cupy, X)
    return estimator.fit(X, **on_device).labels_, labels


def assert_points_stay(cupy: Any, name: str, n: int, monkeypatch: Any) -> None:
    """Demand the CPU's labels; what goes to the host or comes from there is of borders, clusters, and a few numbers."""
    found, wanted = fit(cupy, name, n)
    carried: list[int] = []

    def counted(carry: Any) -> Any:
        def call(device: Any, array: Any) -> Any:
            carried.append(int(np.size(array) if isinstance(array, np.ndarray) else array.size))
            return carry(device, array)

        return call

    for way in ("to_host", "from_host"):
        monkeypatch.setattr(arrays.Cuda, way, counted(getattr(arrays.Cuda, way)))
    found = found.compute(scheduler="synchronous")
    assert type(found) is cupy.ndarray
    np.testing.assert_array_equal(found.get(), wanted)
    assert wanted.max() > 1
    if name != "hca":  # whose merges are put in order on the host
        points = [size for size in carried if size != 64 * 27]  # the table of which cells are within reach
        assert max(points) < 0.6 * n / 3, sorted(points)
