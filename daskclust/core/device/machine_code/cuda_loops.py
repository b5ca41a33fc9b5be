"""How a CUDA kernel goes from one index to the next: templates, which `kernels.Kernel` copies for each body.

In a copy `body` is the compiled body, `arguments` makes its arguments of flattened ones, `number` reads n, which may be
on the device, and `whole` is the type of indices.
"""

# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations


def itself(n):
    return n


def in_memory(n):
    return n[0]


def team_grid(blocks, flat):
    args = arguments(flat)
    team = whole(cuda.blockIdx.x) // whole(blocks)
    size = blocks * cuda.blockDim.x
    body(team, cuda.grid(1) - team * size, size, *args)


def grid(n, flat):
    args = arguments(flat)
    i, last = whole(cuda.grid(1)), whole(number(n))
    while i < last:
        body(i, *args)
        i = whole(i + whole(cuda.gridsize(1)))


def lane_grid(n, flat):
    args = arguments(flat)
    i, last = whole(cuda.grid(1)), whole(number(n))
    while i < last:
        body(i, 1, *args)
        i = whole(i + whole(cuda.gridsize(1)))
