"""The lane itself: what it is there to find, it finds, and the test that does it fails."""

import numpy as np
import pytest

pytestmark = [pytest.mark.host_cuda, pytest.mark.filterwarnings("ignore:Grid size")]


class Somewhere:
    """What looks like bytes of a device at an address."""

    def __init__(self, address, n=8):
        self.__cuda_array_interface__ = {"data": (address, False), "shape": (n,), "typestr": "|u1", "version": 3}


def put():
    """Return a kernel that writes one element; a negative place counts from the end, once."""
    from numba import cuda

    @cuda.jit
    def put_one(array, place):
        array[place] = 7

    return put_one[1, 1]


def refused(call, *args):
    """Demand that the driver refuses a call."""
    with pytest.raises(Exception, match=r"CUDA_ERROR|stand-in driver"):
        call(*args)


# ---------------------------------------------------------------------------------------------------------- memory
@pytest.mark.parametrize("n", [1, 256, 1000])
def test_one_element_outside_of_an_array_is_found(cupy, faults, n):
    array = cupy.zeros(n, np.int16)
    put()(array, n - 1)
    assert faults() == []
    put()(array, n)
    assert faults() == [f"device 0: written outside of an allocation of {2 * n} bytes, 1 bytes behind it"]
    put()(array, -n - 1)
    assert faults() == [f"device 0: written outside of an allocation of {2 * n} bytes, 1 bytes before it"]
    assert faults() == []  # each once


def test_a_block_of_the_pool_is_guarded_where_its_array_ends(cupy, faults):
    cupy.zeros(400, np.uint8)  # its block, of 512 bytes, goes back to the pool
    array = cupy.zeros(390, np.uint8)
    put()(array, 390)
    assert "allocation of 390 bytes, 1 bytes behind" in faults()[0]


def test_new_memory_is_poison(cupy):
    cupy.zeros(100)
    for _ in range(2):  # the second time the pool's
        assert (cupy.empty(100, np.uint8).get() == 0xA5).all()


def test_memory_of_the_host_and_memory_that_was_given_back_are_refused(cupy, faults):
    host, array = np.zeros(8, np.uint8), cupy.zeros(8, np.uint8)
    address = array.data.ptr
    del array
    for place, words in (
        (host.ctypes.data, "no device's memory: the host's, or freed"),
        (address, "given back to the pool"),
    ):
        refused(put(), Somewhere(place), 0)
        assert words in faults()[0]
    assert not host.any()
    cupy.get_default_memory_pool().free_all_blocks()
    refused(put(), Somewhere(address), 0)
    assert "no device's memory" in faults()[0]


def test_copies_stay_within_an_allocation(cupy, faults):
    from fake_gpu.driver import LIBRARY

    array, host = cupy.zeros(8, np.uint8), np.zeros(9, np.uint8)
    assert LIBRARY.api_cuMemcpyHtoD(array.data.ptr, host.ctypes.data, 9) != 0
    assert "copy to the device of 9 bytes" in faults()[0]
    assert LIBRARY.api_cuMemcpyDtoH(host.ctypes.data, array.data.ptr + 1, 8) != 0
    assert "copy to the host of 8 bytes" in faults()[0]


# --------------------------------------------------------------------------------------------------------- devices
def test_memory_of_another_device_is_refused(cupy, faults):
    assert cupy.cuda.runtime.getDeviceCount() >= 2
    with cupy.cuda.Device(1):
        there = cupy.zeros(8, np.uint8)
        assert there.device.id == 1
        put()(there, 3)
    refused(put(), there, 3)
    assert "memory of device 1, while device 0 is current" in faults()[0]
    with pytest.raises(ValueError, match="an array of device 1 is used while device 0 is current"):
        there + 1
    assert there.get()[3] == 7  # copies to the host find their device, as CuPy's do


# -------------------------------------------------------------------------------------------------- threads that wait
def turned_round(cupy, waits):
    """Let each of 64 threads write its number to shared memory and read that of another."""
    from numba import cuda

    @cuda.jit
    def turn(out):
        shared = cuda.shared.array(64, np.int32)
        i = cuda.threadIdx.x
        shared[i] = i
        if waits:
            cuda.syncthreads()
        out[i] = shared[63 - i]

    out = cupy.zeros(64, np.int32)
    turn[1, 64](out)
    return out.get().tolist()


def test_a_missing_barrier_shows_in_another_order(cupy):
    from fake_gpu import driver

    found = {True: set(), False: set()}
    for order in driver.ORDERS:
        with driver.in_order(order):
            for waits, answers in found.items():
                answers.add(tuple(turned_round(cupy, waits)))
    assert found[True] == {tuple(range(63, -1, -1))}
    assert len(found[False]) == 3


def test_a_barrier_that_some_threads_miss_is_found(cupy, faults):
    from numba import cuda

    @cuda.jit
    def some_wait(out):
        if cuda.threadIdx.x < 3:
            cuda.syncthreads()
        out[cuda.threadIdx.x] = 1

    refused(some_wait[2, 32], cupy.zeros(32))
    assert faults() == ["some_wait: 3 of 32 threads of a block wait at a barrier; the others have ended"]
    turned_round(cupy, waits=True)  # the driver goes on


def test_shared_memory_ends(cupy, faults):
    from numba import cuda

    @cuda.jit
    def too_much(out):
        shared = cuda.shared.array(0, np.int32)
        shared[cuda.threadIdx.x] = 1
        cuda.syncthreads()
        out[cuda.threadIdx.x] = shared[cuda.threadIdx.x]

    too_much[1, 32, 0, 4 * 32](cupy.zeros(32))
    assert faults() == []
    refused(too_much[1, 33, 0, 4 * 32], cupy.zeros(33))
    assert "written behind the 128 bytes of shared memory" in faults()[0]


def grid_barrier():
    """Return a kernel whose blocks wait for each other, and then read what the next one wrote."""
    from numba import cuda

    @cuda.jit
    def all_wait(arrived, mine, out):
        block, blocks = cuda.blockIdx.x, cuda.gridDim.x
        shared = cuda.shared.array(1, np.int32)
        if cuda.threadIdx.x == 0:
            shared[0] = mine[block] = block
            cuda.threadfence()
            cuda.atomic.add(arrived, 0, 1)
            while cuda.atomic.add(arrived, 0, 0) < blocks:
                pass
        cuda.syncthreads()
        out[cuda.grid(1)] = 100 * mine[(block + 1) % blocks] + shared[0]

    return all_wait


def test_blocks_wait_for_each_other(cupy, order):
    arrived, mine, out = cupy.zeros(1, np.int32), cupy.zeros(8, np.int32), cupy.zeros(8 * 5, np.int32)
    grid_barrier()[8, 5](arrived, mine, out)
    blocks = np.arange(8)
    np.testing.assert_array_equal(out.get().reshape(8, 5), (100 * ((blocks + 1) % 8) + blocks)[:, None].repeat(5, 1))


def test_blocks_that_do_not_fit_side_by_side_wait_for_ever(cupy, faults):
    refused(grid_barrier()[9, 5], cupy.zeros(1, np.int32), cupy.zeros(9, np.int32), cupy.zeros(45, np.int32))
    assert faults() == ["all_wait: all threads wait, and none goes on; 8 blocks of 9 fit side by side"]


def test_a_thread_that_waits_without_a_barrier_is_found(cupy, faults):
    from numba import cuda

    @cuda.jit
    def first_waits(flag):
        if cuda.threadIdx.x == 0:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
        else:
            cuda.atomic.add(flag, 0, 1)

    refused(first_waits[1, 2], cupy.zeros(1, np.int32))
    assert "a thread waits for another one that never comes" in faults()[0]


# ------------------------------------------------------------------------------------------------------- the plugin
BAD_TEST = """
import numpy as np, pytest
from numba import cuda

@cuda.jit
def put(array):
    array[cuda.grid(1)] = 1

@pytest.mark.parametrize("n", [31, 32])
@pytest.mark.filterwarnings("ignore:Grid size")
def test_of_a_kernel(n):
    import cupy
    put[1, 32](cupy.zeros(n, np.int8))
"""


def test_a_test_that_writes_outside_of_memory_fails(pytester):
    pytester.makepyfile(test_bad=BAD_TEST)
    done = pytester.runpytest_inprocess("-p", "fake_gpu.plugin")
    done.assert_outcomes(passed=2, errors=1)
    done.stdout.fnmatch_lines(["*written outside of an allocation of 31 bytes, 1 bytes behind it"])
