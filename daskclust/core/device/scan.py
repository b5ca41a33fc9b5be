"""Running sums on CUDA: three launches, shared memory within a block; on the CPU `numpy.cumsum` serves.

Imported only where there is CUDA or its simulator.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, types

from daskclust.core.device.kernels import SIMULATED

WIDTH = 8 if SIMULATED else 512  # threads a block, each with one element; the sums of the blocks are summed likewise


@cuda.jit
def _scan_blocks(values, sums, totals, n):  # type: ignore[no-untyped-def]
    """Write to `sums` the sum of each element's block up to it; `totals` takes that of each block."""
    shared = cuda.shared.array(0, types.int32)  # size 0: as much as the launch gives
    thread = cuda.threadIdx.x
    i = cuda.blockIdx.x * WIDTH + thread
    shared[thread] = np.int32(values[i]) if i < n else np.int32(0)
    cuda.syncthreads()
    step = 1
    while step < WIDTH:
        earlier = shared[thread - step] if thread >= step else 0
        cuda.syncthreads()
        shared[thread] += earlier
        cuda.syncthreads()
        step *= 2
    if i < n:
        sums[i] = shared[thread]
    if thread == WIDTH - 1:
        totals[cuda.blockIdx.x] = shared[thread]


@cuda.jit
def _add_before(sums, totals, n):  # type: ignore[no-untyped-def]
    """Add to each element the total of the blocks before its own."""
    i = cuda.blockIdx.x * WIDTH + cuda.threadIdx.x
    if cuda.blockIdx.x > 0 and i < n:
        sums[i] += totals[cuda.blockIdx.x - 1]


def running_sum(device: Any, values: Any, sums: Any, stream: Any, level: int = 0) -> None:
    """Write the sum of all `values` up to each to int32 `sums`; both are on a CUDA device and may be the same array."""
    n = len(values)
    blocks = -(-n // WIDTH)
    if blocks == 0:
        return
    totals = device.scratch(f"scan {level}", blocks, np.int32)
    # Shared memory comes with the launch: in the simulator, two threads that ask for an array at once may each get one.
    _scan_blocks[blocks, WIDTH, stream, 4 * WIDTH](values, sums, totals, n)
    if blocks > 1:
        running_sum(device, totals, totals, stream, level + 1)
        _add_before[blocks, WIDTH, stream](sums, totals, n)
