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
    """A kernel and its arguments; the first says how many indices or blocks of a team there are, or where that is."""

    kernel: Any
    first: Any
    args: tuple[Any, ...]
    threads: int = BLOCK
    shared: int = 0


class Recorder(Host, Cuda):
    """A CUDA device whose arrays are numpy's and whose kernels run on the CPU, or not at all."""

    name = "cuda"

    def __init__(self, runs=True, launched=None):
        self.runs, self.launched = runs, [] if launched is None else launched

    def empty(self, shape, dtype):
        return np.zeros(shape, dtype)

    zeros = empty

    def scratch(self, shape, dtype):
        return np.empty(shape, dtype)

    def run(self, kernel, n, *args, grain=0, limit=None):
        if n:
            self.launched.append(Launch(kernel, n if limit is None else limit, args))
            if self.runs:
                kernel.run(n if limit is None else min(n, int(limit)), *_numbers(args))

    def run_teams(self, kernel, teams, blocks, threads, *args, shared=0):
        self.launched.append(Launch(kernel, blocks, args, threads, shared))
        kernel.run(teams, *_numbers(args), grain=1)

    def running_sum(self, values, sums):
        np.cumsum(values, out=sums, dtype=np.int32)

    def from_host(self, array):
        return np.array(array)


def _numbers(args):
    """Return arguments as kernels take them on the CPU: arrays without axes, which stay on a device, as numbers."""
    return tuple(
        (type(each)(*_numbers(each)) if hasattr(each, "_fields") else _numbers(each))
        if isinstance(each, tuple)
        else each[()]
        if isinstance(each, np.ndarray) and not each.ndim
        else each
        for each in args
    )


def stand_in(monkeypatch, *modules):
    """Let a recorder be the device of all arrays in some modules; return it.

    Modules that know of CUDA only have kernels that a CPU's vectors cannot run: they are recorded.
    """
    recorder = Recorder()
    for module in modules:
        its = Recorder(False, recorder.launched) if hasattr(module, "CUDA") else recorder
        monkeypatch.setattr(module, "device_of", lambda array, its=its: its)
        if its is not recorder:
            monkeypatch.setattr(module, "CUDA", its)
    return recorder


def names(launched):
    return {launch.kernel.__name__ for launch in launched}
