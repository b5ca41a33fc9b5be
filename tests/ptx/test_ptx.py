"""Compile and assemble every CUDA kernel that CLUE launches, without a GPU.

What is launched, with which types, is found by running the CUDA plan of work on the CPU: `Recorder` stands for the
device, runs each kernel's body in a CPU loop and remembers the launch. So the CUDA path's results are checked too.
"""

import functools
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytestmark = pytest.mark.ptx

ARCHITECTURES = [(8, 0), (9, 0)]


@functools.cache
def assembler():
    import nvidia.cu13

    return Path(next(iter(nvidia.cu13.__path__))) / "bin" / "ptxas"


def make_recorder():
    from daskclust.core.arrays import Cuda

    class Recorder(Cuda):
        """A CUDA device whose arrays are numpy's and whose kernels run on the CPU."""

        def __init__(self):
            super().__init__(gives_cupy=False)
            self.launched = []

        def empty(self, shape, dtype):
            return np.empty(shape, dtype)

        def run(self, kernel, n, *args, grain=0):
            self.launched.append((kernel, args))
            kernel.run(n, *args)

        def running_sum(self, values, sums):
            self.launched.append(("running_sum", (values, sums)))
            np.cumsum(values, out=sums, dtype=np.int32)

        def to_host(self, array):
            return array

        def from_host(self, array):
            return np.array(array)

        def argument(self, array):
            return array

    return Recorder()


def points(dimensions, dtype, n=700):
    rng = np.random.default_rng(dimensions)
    return rng.uniform(0, 10, (n, dimensions)).astype(dtype), rng.integers(0, 3, n).astype(np.int32)


def run(monkeypatch, X, layer, blocks=False, **parameters):
    """Return what CLUE launches on CUDA for these points, after comparing its results with the CPU's."""
    from daskclust import CLUE
    from daskclust.clue import plan

    recorder = make_recorder()
    expected = CLUE(**parameters).fit(X, layer=layer)
    monkeypatch.setattr(plan, "device_of", lambda array: recorder)
    got = CLUE(**parameters).fit(X, layer=layer)
    for name in ("labels_", "density_", "delta_", "nearest_higher_", "is_seed_"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))
    if blocks:
        _run_in_blocks(recorder, got, X, layer)
    return recorder.launched


def _run_in_blocks(recorder, fitted, X, layer):
    """Run the plan on two blocks with halos: the kernels that mark borders and name exits."""
    from daskclust.core.partition import Partition

    plan = fitted._plan(tuple(range(X.shape[1])))
    cuts = (np.array([5.0]),) + (np.empty(0),) * (X.shape[1] - 1)
    partition = Partition(cuts=cuts, period=plan.period, halo=plan.halo)
    locals_, frontiers = zip(
        *(plan.local(plan.measure(c)) for c in partition.split({"X": X, "layer": layer}, 0)), strict=True
    )
    for local, mine in zip(locals_, plan.merge(list(frontiers)), strict=True):
        labels = plan.finish(local, mine)["labels"]
        np.testing.assert_array_equal(labels, fitted.labels_[plan.owned_ids(local)])


def assemble(ptx, architecture, folder):
    """Return ptxas's report; fail on an error or a spill."""
    source = folder / "kernel.ptx"
    source.write_text(ptx)
    target = f"sm_{architecture[0]}{architecture[1]}"
    command = [assembler(), f"-arch={target}", "-v", "--warn-on-spills", "-O3", source, "-o", folder / "kernel.cubin"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    spilled = re.findall(r"(\d+) bytes spill (?:stores|loads)", done.stderr)
    assert all(int(count) == 0 for count in spilled), done.stderr
    return done.stderr


def check(launched, folder, monkeypatch):
    import numba.cuda.dispatcher
    from numba import cuda
    from numba.cuda import types
    from numba.cuda.typing.typeof import typeof

    from daskclust.core import scan

    seen = set()
    for architecture in ARCHITECTURES:
        fake = SimpleNamespace(compute_capability=architecture)
        monkeypatch.setattr(numba.cuda.dispatcher, "get_current_device", lambda fake=fake: fake)
        for kernel, args in launched:
            if kernel == "running_sum":
                totals = typeof(args[1])
                sources = [
                    (scan._scan_blocks.py_func, (typeof(args[0]), totals, totals, types.int64)),
                    (scan._add_before.py_func, (totals, totals, types.int64)),
                ]
            else:
                sources = [(kernel.grid.py_func, (types.int64, typeof(args)))]
            for function, signature in sources:
                key = (architecture, function.__name__, str(signature))
                if key in seen:
                    continue
                seen.add(key)
                ptx, _ = cuda.compile_ptx(function, signature, cc=architecture, device=False)
                assert not re.search(r"\bfma\.", ptx), f"{function.__name__} fuses a multiplication with an addition"
                divides = re.search(r"\b(div|rem)\.[su]64", ptx)
                assert not divides or function.__name__.startswith("_place_by_order"), function.__name__  # 64-bit keys
                assemble(ptx, architecture, folder)
    return seen


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
def test_every_kernel_assembles(monkeypatch, tmp_path, dimensions, dtype):
    X, layer = points(dimensions, dtype)
    launched = run(monkeypatch, X, layer, dc=1.0, rhoc=2.0, delta_o=1.5, blocks=True)
    names = {key[1] for key in check(launched, tmp_path, monkeypatch)}
    assert len(names) > 10


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "user"])
def test_density_kernels_assemble(monkeypatch, tmp_path, kernel):
    X, layer = points(2, np.float32)
    chosen = (lambda d: 1.0 / (1.0 + d)) if kernel == "user" else kernel
    launched = run(monkeypatch, X, layer, dc=1.0, rhoc=2.0, kernel=chosen, neighbor_weight=0.5)
    density = [entry for entry in launched if entry[0] != "running_sum" and entry[0].__name__ == "density"]
    assert check(density, tmp_path, monkeypatch)


def test_periodic_axes_assemble(monkeypatch, tmp_path):
    X, layer = points(2, np.float32)
    launched = run(monkeypatch, X, layer, dc=1.0, rhoc=2.0, wrap={1: 10.0}, blocks=True)
    assert check(launched, tmp_path, monkeypatch)


def test_sparse_grid_assembles(monkeypatch, tmp_path):
    X, layer = points(2, np.float64)
    X[0] = 1e9
    launched = run(monkeypatch, X, layer, dc=1.0, rhoc=2.0)
    assert any(entry[0] != "running_sum" and "place_by_order" in entry[0].__name__ for entry in launched)
    assert check(launched, tmp_path, monkeypatch)
