"""Compile and assemble every CUDA kernel that CLUE launches, without a GPU.

The CUDA path's results, as the recorder finds them on the CPU, are checked too.
"""

import re

import numpy as np
import pytest
from cases.clue import assert_same_results, results
from cases.steps import assert_steps

from ptx.assembling import ARCHITECTURES, assemble, check, compiled
from ptx.recorder import names, stand_in

pytestmark = pytest.mark.ptx
SHAPES = [*((d, np.float64) for d in (1, 2, 3, 4)), (2, np.float32), (3, np.float32)]


def points(dimensions, dtype, n=700):
    rng = np.random.default_rng(dimensions)
    return rng.uniform(0, 10, (n, dimensions)).astype(dtype), rng.integers(0, 3, n).astype(np.int32)


def run(monkeypatch, X, layer, blocks=False, **parameters):
    """Return what CLUE launches on CUDA for these points, after comparing its results with the CPU's."""
    from daskclust import CLUE
    from daskclust.clue import at_once, densities, new_points, plan
    from daskclust.core.space import extent

    expected = CLUE(**parameters).fit(X, layer=layer)
    new = X + X.dtype.type(0.05)
    labels = expected.predict(new, layer=layer)
    recorder = stand_in(monkeypatch, at_once, densities, new_points, plan, extent)
    monkeypatch.setattr("daskclust.clue.estimator.is_cuda", lambda array: True)
    got = CLUE(**parameters).fit(X, layer=layer)
    assert_same_results(got, expected)
    np.testing.assert_array_equal(got.predict(new, layer=layer), labels)
    if blocks:
        _run_in_blocks(got, X, layer)
    return recorder.launched


def _run_in_blocks(fitted, X, layer):
    """Run the plan on two blocks with halos: the kernels that mark borders and name exits."""
    from daskclust.core.space.partition import Partition

    plan = fitted._plan(tuple(range(X.shape[1])))
    cuts = (np.array([5.0]),) + (np.empty(0),) * (X.shape[1] - 1)
    partition = Partition(cuts=cuts, period=plan.period, halo=plan.halo)
    assert_steps(plan, partition.split({"X": X, "layer": layer}, 0), results(fitted))


@pytest.mark.parametrize(("dimensions", "dtype"), SHAPES)
def test_every_kernel_assembles(monkeypatch, tmp_path, dimensions, dtype):
    X, layer = points(dimensions, dtype)
    launched = run(monkeypatch, X, layer, dc=1.0, rhoc=2.0, delta_o=1.5, blocks=True)
    assert len(check(launched, tmp_path)) > 10


@pytest.mark.parametrize(("dimensions", "dtype"), SHAPES)
def test_trees_and_places_assemble(monkeypatch, tmp_path, dimensions, dtype):
    """Searches far beyond dc, and points that are equal."""
    from daskclust.clue.kernels import equal_points

    monkeypatch.setattr(equal_points, "MANY", 4)
    X, layer = points(dimensions, dtype)
    X, layer = np.concatenate([X, *3 * [X[::7]]]), np.concatenate([layer, *3 * [layer[::7]]])
    if dimensions > 2:
        X[0] = 1e6
    wrap = {0: 10.0} if dimensions == 2 else None
    launched = run(monkeypatch, X, layer, dc=0.25, rhoc=2.0, delta_c=5.0, kernel="gaussian", wrap=wrap)
    found = check(launched, tmp_path)
    assert any(name.startswith("search_tree") for name in found)
    assert found >= {"_join_equal", "follow", "_place_in_table" if dimensions < 3 else "_rank_axis"}


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "user"])
def test_density_kernels_assemble(monkeypatch, tmp_path, kernel):
    X, layer = points(2, np.float32)
    chosen = (lambda d: 1.0 / (1.0 + d)) if kernel == "user" else kernel
    launched = run(monkeypatch, X, layer, dc=1.0, rhoc=2.0, kernel=chosen, neighbor_weight=0.5)
    density = [entry for entry in launched if names([entry]) == {"density"}]
    assert check(density, tmp_path)


@pytest.mark.parametrize(
    ("kernel", "change"), [("mark_border", "period"), ("_number", "gaps in layers"), ("_place_by_order", "sparse grid")]
)
def test_other_kernels_assemble(monkeypatch, tmp_path, kernel, change):
    X, layer = points(2, np.float64 if change == "sparse grid" else np.float32)
    if change == "sparse grid":
        X[0] = 1e9
    is_periodic = change == "period"
    wrap = {1: 10.0} if is_periodic else None
    layer = 5 * layer if change == "gaps in layers" else layer
    launched = run(monkeypatch, X, layer, dc=1.0, rhoc=2.0, wrap=wrap, blocks=is_periodic)
    assert kernel in check(launched, tmp_path)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_homes_in_a_partition_assemble(monkeypatch, tmp_path, dtype):
    """What divides the points of a dask array into blocks, on their device."""
    from daskclust.core.space import partition

    X, _ = points(3, dtype)
    cuts = (np.array([2.0, 6.0]), [np.array([5.0])] * 3)
    blocks = partition.Partition(cuts=cuts, period=(10.0, 0.0, 0.0), halo=0.5)
    on_host = blocks.split({"X": X}, 0)
    recorder = stand_in(monkeypatch, partition)
    for mine, theirs in zip(blocks.split({"X": X}, 0), on_host, strict=True):
        np.testing.assert_array_equal(mine.ids, theirs.ids)
    found = check(recorder.launched, tmp_path)
    assert found >= {"find_home", "count_in_parts", "put_into_parts", "gather_rows"}


def test_indices_of_32_bits_and_of_64(tmp_path):
    """Beyond 2^31 indices, counting in 32 bits would never end."""
    from daskclust.core.device.arrays import gather

    args = (np.zeros(4), np.zeros(4, np.int32), np.zeros(4))
    narrow, wide = (compiled(gather, n, args) for n in (1 << 31, (1 << 31) + 1))
    for architecture, few, many in zip(ARCHITECTURES, narrow, wide, strict=True):
        assert not re.search(r"setp\.\w+\.s64", few)
        assert re.search(r"setp\.\w+\.s64", many)
        assemble(many, architecture, tmp_path)
