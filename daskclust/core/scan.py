"""Running sums on CUDA: three launches, shared memory within a block. (On the CPU `numpy.cumsum` serves.)

Imported only where there is CUDA or its simulator.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from daskclust.core.jit import SIMULATED

WIDTH = 8 if SIMULATED else 512  # threads a block, each with one element; the sums of the blocks are summed likewise


@cuda.jit
def _scan_blocks(values, sums, n):  # type: ignore[no-untyped-def]
    """Replace each element by the sum of its block up to it; `sums` takes the total of each block."""
    shared = cuda.shared.array(WIDTH, np.int32)
    thread = cuda.threadIdx.x
    i = cuda.blockIdx.x * WIDTH + thread
    shared[thread] = values[i] if i < n else 0
    cuda.syncthreads()
    step = 1
    while step < WIDTH:
        earlier = shared[thread - step] if thread >= step else 0
        cuda.syncthreads()
        shared[thread] += earlier
        cuda.syncthreads()
        step *= 2
    if i < n:
        values[i] = shared[thread]
    if thread == WIDTH - 1:
        sums[cuda.blockIdx.x] = shared[thread]


@cuda.jit
def _add_before(values, sums, n):  # type: ignore[no-untyped-def]
    """Add to each element the total of the blocks before its own."""
    i = cuda.blockIdx.x * WIDTH + cuda.threadIdx.x
    if cuda.blockIdx.x > 0 and i < n:
        values[i] += sums[cuda.blockIdx.x - 1]


def running_sum(device: Any, values: Any, n: int, level: int = 0) -> None:
    """Replace int32 ``values[:n]``, on a CUDA device, by their running sum."""
    blocks = -(-n // WIDTH)
    if blocks == 0:
        return
    sums = device.scratch(f"scan {level}", blocks, np.int32)
    _scan_blocks[blocks, WIDTH](values, sums, n)
    if blocks > 1:
        running_sum(device, sums, blocks, level + 1)
        _add_before[blocks, WIDTH](values, sums, n)
