"""CUDA's versions of `core/device/operations.py`: one point a thread.

What is missing here is the plain function of `operations.py`, compiled as it stands.
"""

# ruff: noqa: PLW0108 (compilers take functions of Python alone)
from __future__ import annotations

import numpy as np

from daskclust.core.device.cuda_compiler import cuda, own

point_at, like, select = own.point_at, own.like, own.select
power_of_two, atomic_load, fence = own.power_of_two, own.atomic_load, own.fence
square_root, _ = own.libdevice("__nv_sqrtf", "__nv_sqrt")
nearest_whole, _ = own.libdevice("__nv_rintf", "__nv_rint")
_, times = own.libdevice("__nv_fmul_rn", "__nv_dmul_rn")  # `mul.rn`, which the assembler may not fuse with an addition
bits_of = own.device(lambda condition: np.int64(condition))
atomic_add = own.device(lambda array, i, value: cuda.atomic.add(array, i, value))
atomic_min = own.device(lambda array, i, value: cuda.atomic.min(array, i, value))
atomic_max = own.device(lambda array, i, value: cuda.atomic.max(array, i, value))
atomic_cas = own.device(  # numba-cuda-mlir 0.6.0 casts neither
    lambda array, i, old, new: cuda.atomic.cas(array, i, array.dtype.type(old), array.dtype.type(new))
)
block_barrier = own.device(lambda: cuda.syncthreads())
lowest_bit = own.device(lambda mask: cuda.ffs(mask) - 1)
count_bits = own.device(lambda mask: cuda.popc(mask))


@own.device
def block_memory(size, spare):
    shared = cuda.shared.array(0, np.float64)  # as long as the launch says
    return ((shared if len(shared) >= size else spare),)


@own.device
def team_barrier(blocks, arrived):
    cuda.syncthreads()
    if blocks > 1:
        if cuda.threadIdx.x == 0:
            fence()
            before = np.uint32(cuda.atomic.add(arrived, 0, 1))
            wanted = before - before % np.uint32(blocks) + np.uint32(blocks)
            while np.uint32(atomic_load(arrived, 0)) < wanted:
                pass
            fence()
        cuda.syncthreads()


@own.device
def copy_four(source, at, target, to, least):
    mask = 0
    for k in range(4):
        target[to + k] = source[at + k]
        if source[at + k] >= least:
            mask |= 1 << k
    return mask
