"""Measure what a launch costs in Python, without a GPU: ``python tests/host_cuda/launch_cost.py``.

Each way of launching is asked for the same kernels, of one thread that does nothing, on the stand-in for NVIDIA's
driver. What the driver itself takes is told first. Microseconds are those of a processor, the least of many repeats.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections import namedtuple

REPEATS, LAUNCHES = 30, 200


def measured(launch):
    """Return the microseconds of a launch."""
    launch()
    best = float("inf")
    for _ in range(REPEATS):
        began = time.thread_time()
        for _ in range(LAUNCHES):
            launch()
        best = min(best, time.thread_time() - began)
    return 1e6 * best / LAUNCHES


def accept_any_machine_code():
    """Let the stand-in driver load machine code of GPUs: its kernels do nothing."""
    from fake_gpu import driver, objects

    nothing = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value

    def load(place):
        return objects._load(place) or driver.LIBRARY.lane_make_kernel(b"nothing", nothing, b"", 0, 0)

    load.kept = driver.LOADER(load)
    driver.LIBRARY.lane_set_loader(load.kept)
    return load


def body_of(count):
    """Return a kernel's body that takes so many arguments."""
    names = ", ".join(f"a{k}" for k in range(count))
    scope = {}
    exec(f"def nothing(i, {names}):\n    return\n", scope)
    return scope["nothing"]


def ways(args):
    """Yield each way to launch a kernel of these arguments, by its name."""
    import cupy
    import numpy as np
    from cuda.bindings import driver
    from cuda.core import LaunchConfig, Stream, launch
    from numba import cuda

    from daskclust.core.device.kernels import kernel
    from daskclust.core.device.machine_code import launching

    body = body_of(len(args))
    ours = kernel(body)
    ours.bindings = {"x": min}  # nothing is kept on disk
    ours._launch((1, 1, 0), 1, args)
    (prepared,) = ours._prepared.values()
    stream, function = cupy.cuda.get_current_stream().ptr, driver.CUfunction(int(prepared.handle))
    words = np.zeros(512, np.int64)
    places = words.ctypes.data + 8 * np.arange(512)
    yield (
        "the driver alone",
        lambda: driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, places.ctypes.data, 0),
    )
    yield "daskclust, by cuda.core", lambda: ours._launch((1, 1, 0), 1, args)
    values = launching.flatten(args)[1]
    yield (
        "cuda.core alone",
        lambda: launch(Stream.from_handle(stream), LaunchConfig(grid=1, block=1), prepared, 1, *values),
    )
    own = cuda.jit(body)
    yield "numba-cuda: kernel[1, 1, stream](...)", lambda: own[1, 1, stream](1, *args)
    try:
        from numba_cuda_mlir import cuda as successor
        from numba_cuda_mlir import tools
    except ImportError:
        return
    tools._cached_cc = (9, 0)  # what it asks the stand-in for in vain
    its = successor.jit(body)
    yield "numba-cuda-mlir: kernel[1, 1, stream](...)", lambda: its[1, 1, stream](1, *args)


def main():
    """Print a table."""
    import cupy
    import numpy as np

    kept = accept_any_machine_code()
    assert kept
    Parts = namedtuple("Parts", "a b c")
    one, two = cupy.zeros(8, np.float32), cupy.zeros((2, 4), np.float32)
    cases = {
        "array, number": (one, 0.5),
        "10 arrays, 5 numbers": (one,) * 10 + (1,) * 5,
        "86 numbers in named tuples": (Parts(two, two, one),) * 10 + (1,) * 5,
    }
    for title, args in cases.items():
        sys.stdout.write(f"{title}\n")
        for name, way in ways(args):
            sys.stdout.write(f"  {name:45}{measured(way):8.1f} us\n")


if __name__ == "__main__":
    if os.environ.get("HOST_CUDA"):
        main()
    else:
        from run import prepared

        environment = prepared()
        if isinstance(environment, str):
            sys.exit(environment)
        environment["NUMBA_CUDA_ARRAY_INTERFACE_SYNC"] = "0"  # ours waits for no stream of an array either
        command = [sys.executable, "-W", "ignore", __file__]
        sys.exit(subprocess.run(command, env=environment, check=False).returncode)
