"""Find out what is launched on CUDA, without a GPU.

The CUDA plan of work runs on the CPU: a `Recorder` stands for the device, runs each kernel's body in a CPU loop and
remembers the launch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.arrays import Cuda, Host
from daskclust.core.device.kernels import BLOCK


class Launch(NamedTuple):
    """A kernel with its first argument, how many indices or blocks of a team, and the others."""

    kernel: Any
    first: int
    args: tuple[Any, ...]
    threads: int = BLOCK
    shared: int = 0


class Recorder(Host, Cuda):
    """A CUDA device whose arrays are numpy's and whose kernels run on the CPU."""

    name = "cuda"

    def __init__(self):
        self.launched = []

    def scratch(self, name, shape, dtype):
        return np.empty(shape, dtype)

    def run(self, kernel, n, *args, grain=0):
        self.launched.append(Launch(kernel, n, args))
        kernel.run(n, *args)

    def run_teams(self, kernel, teams, blocks, threads, *args, shared=0):
        self.launched.append(Launch(kernel, blocks, args, threads, shared))
        kernel.run(teams, *args, grain=1)

    def running_sum(self, values, sums):
        np.cumsum(values, out=sums, dtype=np.int32)

    def from_host(self, array):
        return np.array(array)


def stand_in(monkeypatch, *modules):
    """Let a recorder be the device of all arrays in some modules; return it."""
    recorder = Recorder()
    for module in modules:
        monkeypatch.setattr(module, "device_of", lambda array: recorder)
    return recorder


def names(launched):
    return {launch.kernel.__name__ for launch in launched}
