"""Bodies and kernels, arithmetic and atomics of the CPU, threads."""

from __future__ import annotations

import itertools
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from cases.lanes import quick_first
from hypothesis import given
from hypothesis import strategies as st

from daskclust.clue.densities import square_below
from daskclust.clue.kernels import formulas as kernels
from daskclust.clue.kernels.density import user_kernel
from daskclust.clue.plan import CluePlan
from daskclust.core.device.exp import exp_of_negative
from daskclust.core.device.kernels import body, compiled_here, kernel, lane_kernel
from daskclust.core.device.machine_code.compiled import KernelCache
from daskclust.core.device.operations import atomic_add, atomic_cas, atomic_load, atomic_max, atomic_min, load, store
from daskclust.core.device.threads import in_threads, one_thread, thread_count
from daskclust.core.device.unionfind import start
from daskclust.core.space.grid import PAD


# -------------------------------------------------------------------------------------------------- bodies and kernels
def test_bind():
    weighted = kernels.density.bind(visit=kernels.add_weighted)
    bound = kernels.density.bind(visit=kernels.add_weighted, chi=kernels.gaussian)
    assert len({id(kernels.density), id(weighted), id(bound)}) == 3
    assert len({kernels.density.label, weighted.label, bound.label}) == 3
    assert kernels.density.bind(chi=kernels.gaussian, visit=kernels.add_weighted) is bound
    assert kernels.density.bind() is kernels.density
    assert kernels.density.bind(no_such_name=kernels.gaussian) is kernels.density
    assert kernels.density.bind(chi=kernels.gaussian) is kernels.density  # its `visit` has no use for one
    assert kernels.density.bind(visit=kernels.add_weighted, chi=kernels.gaussian, another=1) is bound


def _slope(distance):
    return 1.0 - 0.5 * distance


@body
def _twice(x):
    return x + x


@body
def _four_times(x):
    return _twice(_twice(x))


@kernel
def _write_four_times(i, x, out):
    out[i] = _four_times(x[i])


def test_bodies_are_swallowed_whole(monkeypatch):
    """They have no machine code of their own, and a kernel calls none of them."""
    monkeypatch.setattr(KernelCache, "load_overload", lambda *_: None)  # it has no assembly
    out = np.zeros(3)
    _write_four_times.run(3, np.full(3, 1.5), out)
    assert (out == 6.0).all()
    for each in (_twice, _four_times):
        (compiled,) = each.cpu.overloads.values()
        assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) == 0
    lines = [line for line in compiled_here[-1].library.get_asm_str().splitlines() if "NumbaEnv" not in line]
    assert len(lines) > 10
    assert not [line for line in lines if "_twice" in line or "_four_times" in line]


def test_bodies_and_plans_travel_by_name():
    bound = kernels.density.bind(visit=kernels.add_weighted, chi=kernels.exponential)
    for thing in (kernels.gaussian, kernels.density, bound, user_kernel(_slope)):
        assert pickle.loads(pickle.dumps(thing)) is thing
    for chi in (kernels.flat, user_kernel(_slope)):
        plan = CluePlan(1.0, 2.0, 1.0, 1.5, chi, 1.0, 0.5, (0.0, 6.0))
        again = pickle.loads(pickle.dumps(plan))
        assert again == plan
        assert again.chi is chi


def test_what_calls_user_kernels_is_not_kept_on_disk():
    assert kernels.density.bind(visit=kernels.add_weighted, chi=kernels.gaussian).cacheable
    assert not user_kernel(_slope).cacheable
    assert not kernels.density.bind(visit=kernels.add_weighted, chi=user_kernel(_slope)).cacheable


# ---------------------------------------------------------------------------------------------------------- arithmetic
@lane_kernel
def _exponential_of_lanes(i, m, row, x, out):
    store(out, i, m, exp_of_negative(load(x, i, m)))


@kernel
def _exponential_of_scalar(i, x, out):
    out[i] = exp_of_negative(x[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponential(dtype):
    rng = np.random.default_rng(8)
    parts = [rng.uniform(-87, 0, 100_000), -(10.0 ** rng.uniform(-12, 1.9, 100_000)), np.arange(-87, 1), [-1e-40, -0.0]]
    x = np.concatenate(parts).astype(dtype)
    n = len(x)
    padded, row = np.concatenate([x, np.zeros(PAD, dtype)]), np.zeros(n + PAD, np.int32)
    lanes, scalar = np.empty(n, dtype), np.empty(n, dtype)
    _exponential_of_lanes.run(n, row, padded, lanes)
    _exponential_of_scalar.run(n, x, scalar)
    np.testing.assert_array_equal(lanes, scalar)
    right = np.exp(x.astype(np.longdouble))
    assert np.finfo(np.longdouble).eps < np.finfo(np.float64).eps
    assert np.abs((lanes - right) / np.spacing(right.astype(dtype))).max() < 4
    assert lanes[x == 0].min() == 1
    assert lanes.max() <= 1
    below = np.concatenate([np.array([-87.001, -88, -1e4, -np.inf]), np.zeros(PAD)]).astype(dtype)
    out = np.empty(4, dtype)
    _exponential_of_lanes.run(4, row, below, out)
    assert out.tolist() == [0.0] * 4


@given(st.one_of(st.floats(1e-12, 1e12), st.floats(0, exclude_min=True, allow_infinity=False)))
def test_squares_below_a_distance(distance):
    for dtype in (np.float32, np.float64):
        with np.errstate(all="ignore"):
            if not np.isfinite(dtype(distance)) or dtype(distance) == 0:
                continue
            square = square_below(distance, dtype)
            above = np.nextafter(square, dtype(np.inf))
            assert square.dtype == dtype
            assert np.sqrt(square) <= dtype(distance)
            assert np.sqrt(above) > dtype(distance)


# ------------------------------------------------------------------------------------------------------------- atomics
@kernel
def _add_often(i, array, times_each):
    k = 0
    while k < times_each:
        atomic_add(array, k & 1, 1)
        k += 1


@kernel
def _take_number(i, counter, taken):
    number = atomic_add(counter, 0, 1)
    taken[number] += 1


@kernel
def _extremes(i, values, low, high):
    atomic_min(low, i % len(low), values[i])
    atomic_max(high, i % len(high), values[i])


@kernel
def _add_by_swapping(i, array, times_each):
    k = 0
    while k < times_each:
        before = atomic_load(array, 0)
        if atomic_cas(array, 0, before, before + 1) == before:
            k += 1


@pytest.mark.parametrize(
    ("dtype", "repeats"), quick_first([(np.int32, 2_000_000), (np.int64, 100_000), (np.float64, 100_000)])
)
def test_atomic_additions_lose_nothing(threads, dtype, repeats):
    """4e7 of them on two threads: fewer pass with plain additions, too (shared/gpu.md)."""
    threads(2)
    counters = np.zeros(2, dtype)
    _add_often.run(20, counters, repeats, grain=1)
    assert counters.tolist() == [10 * repeats] * 2


def test_atomic_additions_return_what_was_before(threads):
    threads(2)
    counter, taken = np.zeros(1, np.int64), np.zeros(1_000_000, np.int8)
    _take_number.run(len(taken), counter, taken, grain=1000)
    assert counter[0] == len(taken)
    assert (taken == 1).all()


@pytest.mark.parametrize("dtype", quick_first([np.uint32, np.float64, np.int32, np.int64, np.float32], 2))
def test_atomic_extremes(threads, dtype):
    threads(2)
    values = np.random.default_rng(9).integers(0, 2**31, 1_000_000).astype(dtype)
    if dtype is np.uint32:
        values *= 2
    elif dtype is not np.uint32:
        values -= dtype(2**30)
    low, high = np.full(4, values[0], dtype), np.full(4, values[0], dtype)
    _extremes.run(len(values), values, low, high, grain=1000)
    for k in range(4):
        assert low[k] == min(values[k::4].min(), values[0])
        assert high[k] == max(values[k::4].max(), values[0])


@pytest.mark.parametrize("dtype", quick_first([np.int32, np.int64]))
def test_compare_and_swap(threads, dtype):
    threads(2)
    counter = np.zeros(1, dtype)
    _add_by_swapping.run(20, counter, 100_000, grain=1)
    assert counter[0] == 2_000_000


# ------------------------------------------------------------------------------------------------------------- threads
EXTENDED = """
import threading, types
import numpy as np
from numba.core import entrypoints
from numba.core.compiler_lock import global_compiler_lock
from daskclust import CLUE

def told():
    print(global_compiler_lock.is_locked(), threading.current_thread() is threading.main_thread())

extension = types.SimpleNamespace(load=lambda: told)
installed = types.SimpleNamespace(select=lambda group, name: [extension])
entrypoints.importlib_metadata = types.SimpleNamespace(entry_points=lambda: installed)
CLUE(1, 1).fit(np.zeros((100_000, 2)))
"""


@pytest.mark.slow
def test_extensions_of_numba_are_loaded_before_threads_compile():
    """Numba loads them at the first call, without its lock; a thread that compiled meanwhile failed now and then."""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2", "DASKCLUST_SHIPPED": "0"}
    done = subprocess.run([sys.executable, "-c", EXTENDED], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"


# ------------------------------------------------------------------------------------------------------------- threads
def test_every_task_is_done_once():
    for count, workers in itertools.product((0, 1, 2, 100), (1, 2, 5)):
        done: list[int] = []
        in_threads(done.append, count, workers)
        assert sorted(done) == list(range(count))


def test_exceptions_reach_the_caller():
    for bad in (0, 3, 9):
        with pytest.raises(ZeroDivisionError):
            in_threads(lambda k, bad=bad: time.sleep(0.001) or 1 / (k - bad), 10, 2)
        in_threads(lambda k: None, 10, 2)  # the pool serves on


def test_one_thread(threads):
    threads(2)
    seen = []
    assert thread_count() == 2
    with one_thread():
        assert thread_count() == 1
        with one_thread():
            assert thread_count() == 1
        assert thread_count() == 1
        other = threading.Thread(target=lambda: seen.append(thread_count()))
        other.start()
        other.join()
        with pytest.raises(KeyError), one_thread():
            raise KeyError
        assert thread_count() == 1
    assert thread_count() == 2
    assert seen != [1]


@pytest.mark.slow
@pytest.mark.parametrize(("given", "kept"), [({}, "passive"), ({"OMP_WAIT_POLICY": "active"}, "active")])
def test_threads_of_openmp_sleep_unless_the_user_says_otherwise(given, kept):
    others = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    code = "import os; from daskclust import CLUE; print(os.environ['OMP_WAIT_POLICY'])"
    run = subprocess.run([sys.executable, "-c", code], env=others | given, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == kept


def test_kernels_run_every_index_once(threads):
    for count, n in itertools.product((1, 2), (0, 1, 2, 15, 16, 17, 100)):
        threads(count)
        parent = np.full(n, -1, np.int32)
        start.run(n, parent, grain=3)
        np.testing.assert_array_equal(parent, np.arange(n))
