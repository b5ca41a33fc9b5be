"""Memory that the host keeps between calls."""

import threading

import numpy as np

from daskclust.core.device import arrays
from daskclust.core.device.arrays import HOST


def kept():
    return [len(memory) for memory in arrays._local.kept]


def test_no_two_arrays_in_use_share_memory():
    rng, held = np.random.default_rng(0), {}
    for turn in range(2000):
        if held and rng.random() < 0.5:
            number = rng.choice(list(held))
            assert (held.pop(number) == number).all()
        shape = tuple(rng.integers(1, 300, 2).tolist())
        array = HOST.scratch(shape, rng.choice([np.int16, np.int32, np.float64]))
        assert array.shape == shape
        array[:] = turn
        held[turn] = [array, array.T, array[::2, 1:], array.reshape(-1).view(array.dtype)][turn % 4]
        assert sum(kept()) <= arrays._KEPT_BYTES
    for number, part in held.items():
        assert (part == number).all()


def test_memory_goes_back_when_no_part_is_held():
    HOST.forget_scratch()
    array = HOST.scratch((3, 100_000), np.float32)
    address, part = array.ctypes.data, array[1:, 5:]
    del array
    assert kept() == []
    del part
    assert kept() == [1_200_000]
    again = HOST.scratch(250_000, np.float32)
    assert again.ctypes.data == address
    assert kept() == []
    HOST.forget_scratch()


def test_small_and_very_large_arrays_are_not_kept(monkeypatch):
    monkeypatch.setattr(arrays, "_KEPT_BYTES", 1 << 20)
    HOST.forget_scratch()
    for size in (10, (1 << 20) + 1):
        HOST.scratch(size, np.uint8)
    assert kept() == []
    for size in (700_000, 300_000, 100_000):  # the first, kept longest, goes: together they are too much
        HOST.scratch(size, np.uint8)
    assert kept() == [300_000, 100_000]
    HOST.forget_scratch()


def test_each_thread_keeps_its_own():
    HOST.forget_scratch()
    found = []

    def work():
        HOST.scratch(100_000, np.uint8)
        found.append(kept())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert (found, kept()) == ([[100_000]], [])
