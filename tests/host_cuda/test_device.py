"""What kernels compute on the stand-in: numba-cuda's operations give what they should, and what is unknown is named."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = [pytest.mark.host_cuda, pytest.mark.filterwarnings("ignore:Grid size")]


def test_threads_and_blocks_of_three_dimensions(cupy, order):
    from numba import cuda

    @cuda.jit
    def number(out):
        x, y, z = cuda.grid(3)
        out[x, y, z] += (cuda.gridsize(3)[1] * 100 + cuda.gridDim.z) * 1000 + cuda.blockIdx.y * cuda.blockDim.x

    out = cupy.zeros((4, 6, 4), np.int64)
    number[(2, 3, 2), (2, 2, 2)](out)
    wanted = np.broadcast_to((602_000 + 2 * (np.arange(6) // 2))[None, :, None], out.shape)
    np.testing.assert_array_equal(out.get(), wanted)


DTYPES = [np.int32, np.int64, np.uint32, np.uint64, np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_atomics(cupy, order, dtype):
    from numba import cuda

    @cuda.jit
    def apply(values, found):
        i = cuda.grid(1)
        cuda.atomic.add(found, 0, values[i])
        cuda.atomic.sub(found, 1, values[i])
        cuda.atomic.max(found, 2, values[i])
        cuda.atomic.min(found, 3, values[i])

    values = np.random.default_rng(0).integers(1, 100, 64).astype(dtype)
    found = cupy.asarray(np.array([0, 10_000, 50, 50], dtype))
    apply[4, 16](cupy.asarray(values), found)
    wanted = [values.sum(), 10_000 - int(values.sum()), max(50, values.max()), min(50, values.min())]
    np.testing.assert_array_equal(found.get(), np.array(wanted, dtype))


@pytest.mark.parametrize("dtype", DTYPES[:4])
def test_exchanges(cupy, order, dtype):
    from numba import cuda

    @cuda.jit
    def apply(values, found):
        i = cuda.grid(1)
        found[2 + i] = cuda.atomic.exch(found, 0, values[i])
        if cuda.atomic.cas(found, 1, 3, values[i]) == 3:
            found[66] = values[i]

    values = np.arange(1000, 1064).astype(dtype)
    found = cupy.asarray(np.full(67, 3, dtype))
    apply[4, 16](cupy.asarray(values), found)
    last, first, *seen, winner = found.get()
    assert first == winner >= 1000  # one thread found the 3
    assert sorted([last, *seen]) == [3, *values]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_is_fused(cupy, dtype):
    """One rounding in place of two would give other bits than the CPU's kernels."""
    from numba import cuda

    @cuda.jit
    def apply(a, b, out):
        i = cuda.grid(1)
        out[i] = a[i] * b[i] + out[i]

    a, b, c = np.random.default_rng(2).normal(size=(3, 1000)).astype(dtype)
    out = cupy.asarray(c)
    apply[10, 100](cupy.asarray(a), cupy.asarray(b), out)
    np.testing.assert_array_equal(out.get(), a * b + c)


def test_loads_past_the_cache(cupy):
    from numba import cuda

    @cuda.jit
    def apply(values, out):
        i = cuda.grid(1)
        cuda.stcg(out, i, cuda.ldcg(values, i) + cuda.ldcv(values, i))

    for dtype in (np.int32, np.int64, np.float64):
        out = cupy.zeros(32, dtype)
        apply[1, 32](cupy.arange(32, dtype=dtype), out)
        np.testing.assert_array_equal(out.get(), 2 * np.arange(32))


# ---------------------------------------------------------------------------------------------------------- warps
def test_warps(cupy, order):
    from numba import cuda

    @cuda.jit
    def apply(values, out):
        i, everyone = cuda.grid(1), 0xFFFFFFFF
        total = values[i]
        step = 16
        while step:
            total += cuda.shfl_down_sync(everyone, total, step)
            step //= 2
        out[i, 0] = cuda.shfl_sync(everyone, total, 0)
        out[i, 1] = cuda.shfl_up_sync(everyone, values[i], 1)
        out[i, 2] = cuda.shfl_xor_sync(everyone, values[i], 5)
        out[i, 3] = cuda.ballot_sync(everyone, values[i] > 50)
        out[i, 4] = cuda.any_sync(everyone, values[i] > 98) + 2 * cuda.all_sync(everyone, values[i] > 0)
        out[i, 5] = cuda.laneid
        cuda.syncwarp()
        out[i, 6] = cuda.match_any_sync(everyone, np.int32(values[i]) % 3)

    values = np.random.default_rng(3).integers(1, 100, 64)
    out = cupy.zeros((64, 7), np.int64)
    apply[1, 64](cupy.asarray(values), out)
    lanes, powers = np.arange(32), 1 << np.arange(32, dtype=np.int64)
    for found, v in zip(out.get().reshape(2, 32, 7), values.reshape(2, 32), strict=True):
        assert (found[:, 0] == v.sum()).all()
        np.testing.assert_array_equal(found[:, 1], np.r_[v[0], v[:-1]])
        np.testing.assert_array_equal(found[:, 2], v[lanes ^ 5])
        assert (found[:, 3] & 0xFFFFFFFF == powers[v > 50].sum()).all()
        assert (found[:, 4] == 2 + (v > 98).any()).all()
        np.testing.assert_array_equal(found[:, 5], lanes)
        np.testing.assert_array_equal(found[:, 6] & 0xFFFFFFFF, [powers[v % 3 == m].sum() for m in v % 3])


def test_lanes_of_a_warp_that_have_ended_are_not_waited_for(cupy, faults):
    from numba import cuda

    @cuda.jit
    def half_meet(out):
        if cuda.threadIdx.x < 16:
            out[0] = cuda.ballot_sync(0xFFFFFFFF, True)

    with pytest.raises(Exception, match="CUDA_ERROR"):
        half_meet[1, 32](cupy.zeros(1, np.int64))
    assert faults() == ["half_meet: lanes 0xffff of a warp wait for lanes 0xffff0000, which have ended"]


def test_counts_at_a_barrier(cupy, order):
    from numba import cuda

    @cuda.jit
    def apply(values, out):
        i = cuda.threadIdx.x
        yes = np.int32(values[i] > 5)
        out[i] = cuda.syncthreads_count(yes) * 100 + cuda.syncthreads_or(yes) * 10 + cuda.syncthreads_and(yes)

    out = cupy.zeros(50, np.int32)
    apply[1, 50](cupy.arange(50), out)
    assert (out.get() == 4410).all()


# ----------------------------------------------------------------------------------------------- what is not known
def test_an_unknown_intrinsic_is_named(cupy):
    from numba import cuda
    from numba.cuda import libdevice

    @cuda.jit
    def unknown_function(out):
        out[0] = libdevice.j0(out[1])

    @cuda.jit
    def unknown_assembly(out):
        out[0] = cuda.activemask()

    with pytest.raises(NotImplementedError, match="does not know __nv_j0, which unknown_function calls"):
        unknown_function[1, 1](cupy.zeros(2))
    with pytest.raises(NotImplementedError, match=r"inline assembly 'activemask.b32 \$0;'"):
        unknown_assembly[1, 1](cupy.zeros(2))
