"""How many registers each kernel may take, and what share of a multiprocessor's threads these leave room for."""

from __future__ import annotations

import re
from typing import NamedTuple

ALL_THREADS = 32
"""Registers with which a multiprocessor runs all the threads that it can: 65536 over 2048."""

BOUNDS = {}
"""Of kernels with more, by module and name, on sm_90; multiples of 8, as they are given to threads."""


def bound(kernel):
    """Return how many registers a kernel may take: a change that needs more names it here, and is seen."""
    return BOUNDS.get(kernel, ALL_THREADS)


class Assembled(NamedTuple):
    """A kernel's cost on a multiprocessor, for arguments of some types; `shared` and `spilled` in bytes."""

    system: str
    kernel: str
    registers: int
    occupancy: int
    shared: int
    spilled: int

    @classmethod
    def of(cls, launch, report):
        """Return what ptxas reports of a launched kernel."""
        registers = int(re.search(r"Used (\d+) registers", report)[1])
        shared = launch.shared + sum(map(int, re.findall(r"(\d+) bytes smem", report)))
        spilled = sum(map(int, re.findall(r"(\d+) bytes spill", report)))
        _, system, *_ = launch.kernel.__module__.split(".")
        name = f"{system}.{launch.kernel.__name__}"
        return cls(system, name, registers, occupancy(registers, launch.threads, shared), shared, spilled)


def occupancy(registers, threads, shared):
    """Return the percentage of an sm_90's 2048 threads that run at once in blocks of so many threads."""
    warps = -(-threads // 32)
    of_a_warp = -(-32 * registers // 256) * 256  # given 256 at a time, in each of four parts of 16384
    by_registers = 4 * (16384 // of_a_warp) // warps
    by_shared = 233_472 // (shared + 1024)  # each block takes 1 kB for the system
    return 100 * min(by_registers, by_shared, 64 // warps, 32) * warps // 64


def table(rows):
    """Return lines on all kernels by system, each as it needs most."""
    worst = {}
    for row in sorted(map(Assembled._make, rows), key=lambda row: row.registers):
        worst[row.kernel] = row
    yield f"{'kernel, on sm_90':42}registers  occupancy  shared bytes  spilled bytes"
    for row in sorted(worst.values(), key=lambda row: (row.system, -row.registers, row.kernel)):
        yield f"{row.kernel:42}{row.registers:9}{row.occupancy:9} %{row.shared:14}{row.spilled:15}"
