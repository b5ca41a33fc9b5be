"""All systems on dask arrays with chunks on a GPU, and what goes over the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask.array as da
import numpy as np
import pytest
from laws.registry import RUNS, fit
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from daskclust.core.device import arrays
from daskclust.core.device.unionfind import flatten, start, unite_edges
from daskclust.systems import SYSTEMS, Sample


def lazy(cupy: Any, values: np.ndarray) -> Any:
    """Return an array as a dask array of three chunks on the device."""
    chunks = da.from_array(values, chunks=(len(values) // 3, *values.shape[1:]))
    return chunks.map_blocks(cupy.asarray, meta=cupy.empty((0,) * values.ndim, values.dtype))


def fit_lazily(cupy: Any, name: str, times: int = 1) -> tuple[Any, np.ndarray]:
    """Return the labels on the device, lazy, and those of the CPU, of so many times the sample."""
    system, run = RUNS[name]
    sample = system.sample(times * system.size, run, np.float32)
    on_device = sample.map(lambda values: lazy(cupy, values))
    return fit(name, on_device).labels_, fit(name, sample).labels_


def assert_points_stay(cupy: Any, name: str, times: int, monkeypatch: Any) -> None:
    """Demand the CPU's labels; what goes to the host or comes from there is of borders, clusters, and a few numbers."""
    found, wanted = fit_lazily(cupy, name, times)
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
    system, run = RUNS[name]
    works_there = (
        system.name in SYSTEMS and system.name != "hca"
    )  # merges of HCA, and the pages' examples, are on the host
    if works_there and run.parameters.get("variant", "local") == "local":
        points = [size for size in carried if size != 64 * 27]  # the table of which cells are within reach
        assert max(points) < 0.6 * times * system.size / 3, sorted(points)


def wrong_input(name: str, n: int = 60) -> Iterator[tuple[Sample, str]]:
    """Yield samples with values that are no numbers, or columns of wrong shapes, and the words that refuse them."""
    system, run = RUNS[name]
    sample = system.sample(n, run, np.float32)
    is_table = isinstance(sample.X, dict)
    for value in (np.nan, np.inf, -np.inf):
        X, row = (sample.X["toa"].copy(), 17) if is_table else (sample.X.copy(), (47, 1))
        X[row] = value
        yield sample._replace(X={**sample.X, "toa": X} if is_table else X), rf"\[{str(row).strip('()')}\] = {value}"
    if is_table:
        yield sample._replace(X={**sample.X, "y": sample.X["y"][:-1]}), f"y must have one value for each of the {n}"
        yield sample._replace(X={**sample.X, "x": sample.X["x"] + 0.5}), r"x must be whole numbers.*: x\[0\] = "
    else:
        yield sample._replace(X=sample.X[:, 0].copy()), rf"shape \(n, d\), got \({n},\)"
        yield sample.map(lambda values: values[:0]), "0 sample"
    for column, values in sample.columns.items():
        spoiled = np.where(np.arange(n) == 11, np.nan, values)
        yield sample._replace(columns={**sample.columns, column: spoiled}), rf"{column}\[11\] = nan"
        short = {**sample.columns, column: values[:-1]}
        yield sample._replace(columns=short), rf"{column} must have one \w+ for each of the {n} points"


def assert_wrong_input_is_refused(name: str, give: Any) -> None:
    """Demand the words of memory for arrays on a device."""
    for sample, words in wrong_input(name):
        with pytest.raises(ValueError, match=words):
            fit(name, sample.map(give))


# ---------------------------------------------------------------------------------------------------- parts of the core
def assert_running_sum(give: Any, n: int, dtype: Any = np.int32) -> None:
    """Demand NumPy's sums, in a new array and, of int32, in place."""
    values = np.random.default_rng(n).integers(-5 * (dtype is np.int32), 2, n).astype(dtype)
    given = give(values)
    device = arrays.device_of(given)
    source, sums = given, device.empty(n, np.int32)
    for into in (sums, source) if dtype is np.int32 else (sums,):
        device.running_sum(source, into)
        np.testing.assert_array_equal(device.to_host(into), np.cumsum(values))


def assert_union_find(give: Any, n: int, m: int) -> None:
    """Demand SciPy's components, named by their smallest members, of `m` random edges."""
    edges = np.random.default_rng(m).integers(0, n, (m, 2)).astype(np.int32)
    ends = [give(np.ascontiguousarray(edges[:, k])) for k in (0, 1)]
    device = arrays.device_of(ends[0])
    parent = device.empty(n, np.int32)
    device.run(start, n, parent)
    device.run(unite_edges, m, *ends, parent)
    device.run(flatten, n, parent)
    graph = coo_array((np.ones(m, bool), edges.T), shape=(n, n))
    _, first, group = np.unique(connected_components(graph)[1], return_index=True, return_inverse=True)
    np.testing.assert_array_equal(device.to_host(parent), first[group])
