"""What kernels compute on the stand-in: numba-cuda's operations give what they should, and what is unknown is named."""

import numpy as np
import pytest

pytestmark = [pytest.mark.host_cuda, pytest.mark.filterwarnings("ignore:Grid size")]


DTYPES = [np.int32, np.int64, np.uint32, np.uint64, np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_atomics(cupy, order, dtype):
    from numba import cuda

    @cuda.jit
    def apply(values, found):
        i = cuda.grid(1)
        cuda.atomic.add(found, 0, values[i])
        cuda.atomic.max(found, 1, values[i])
        cuda.atomic.min(found, 2, values[i])

    values = np.random.default_rng(0).integers(1, 100, 64).astype(dtype)
    found = cupy.asarray(np.array([0, 50, 50], dtype))
    apply[4, 16](cupy.asarray(values), found)
    wanted = [values.sum(), max(50, values.max()), min(50, values.min())]
    np.testing.assert_array_equal(found.get(), np.array(wanted, dtype))


@pytest.mark.parametrize("dtype", DTYPES[:4])
def test_compare_and_swap(cupy, order, dtype):
    from numba import cuda

    @cuda.jit
    def apply(values, found):
        i = cuda.grid(1)
        if cuda.atomic.cas(found, 0, 3, values[i]) == 3:
            found[1] = values[i]

    found = cupy.asarray(np.full(2, 3, dtype))
    apply[4, 16](cupy.asarray(np.arange(1000, 1064).astype(dtype)), found)
    first, winner = found.get()
    assert first == winner >= 1000  # one thread found the 3


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
