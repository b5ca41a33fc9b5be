"""Find out what is launched on CUDA, and compile and assemble it, without a GPU.

What is launched, with which types, is found by running the CUDA plan of work on the CPU: `Recorder` stands for the
device, runs each kernel's body in a CPU loop and remembers the launch.
"""

import functools
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np

ARCHITECTURES = [(8, 0), (9, 0)]


@functools.cache
def assembler():
    import nvidia.cu13

    return Path(next(iter(nvidia.cu13.__path__))) / "bin" / "ptxas"


def make_recorder():
    from daskclust.core.device.arrays import Cuda

    class Recorder(Cuda):
        """A CUDA device whose arrays are numpy's and whose kernels run on the CPU."""

        def __init__(self):
            self.launched = []

        def empty(self, shape, dtype):
            return np.empty(shape, dtype)

        def full(self, shape, value, dtype):
            return np.full(shape, value, dtype)

        def count_up(self, n):
            return np.arange(n)

        def scratch(self, name, shape, dtype):
            return np.empty(shape, dtype)

        def run(self, kernel, n, *args, grain=0, limit=None):
            self.launched.append((kernel, args))
            kernel.run(n, *args)

        def run_teams(self, kernel, teams, blocks, threads, *args, shared=0):
            self.launched.append((kernel, args))
            kernel.run(teams, *args, grain=1)

        def running_sum(self, values, sums):
            np.cumsum(values, out=sums, dtype=np.int32)

        def take(self, array, rows):
            return array[rows]

        def order_of(self, values):
            return np.argsort(values, kind="stable")

        def to_host(self, array):
            return array

        def from_host(self, array):
            return np.array(array)

        def argument(self, array):
            return array

    return Recorder()


def stand_in(monkeypatch, *modules):
    """Let a recorder be the device of all arrays in some modules; return it."""
    recorder = make_recorder()
    for module in modules:
        monkeypatch.setattr(module, "device_of", lambda array: recorder)
    return recorder


def names(launched):
    return {kernel if isinstance(kernel, str) else kernel.__name__ for kernel, _ in launched}


def assemble(ptx, architecture, folder):
    """Return ptxas's report; fail on an error or a spill."""
    source = folder / "kernel.ptx"
    source.write_text(ptx)
    target = f"sm_{architecture[0]}{architecture[1]}"
    command = [assembler(), f"-arch={target}", "-v", "--warn-on-spills", "-O3", source, "-o", folder / "kernel.cubin"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    spilled = re.findall(r"(\d+) bytes spill (?:stores|loads)", done.stderr)
    assert all(int(count) == 0 for count in spilled), done.stderr
    return done.stderr


def check(launched, folder, monkeypatch, may_divide=("_place_by_order",)):
    """Compile and assemble what was launched; kernels named in `may_divide` have 64-bit keys to divide.

    Return the names of what was compiled.
    """
    import numba.cuda.dispatcher

    fake = SimpleNamespace(compute_capability=ARCHITECTURES[0])
    monkeypatch.setattr(numba.cuda.dispatcher, "get_current_device", lambda: fake)
    sources = {(function.__name__, str(types)): (function, types) for function, types in sources_of(launched)}
    for (name, _), source in sources.items():
        for architecture, ptx in zip(ARCHITECTURES, compiled(*source), strict=True):
            assert not re.search(r"\bfma\.", ptx), f"{name} fuses a multiplication with an addition"
            assert not re.search(r"\b(div|rem)\.[su]64", ptx) or name.startswith(may_divide), name
            assemble(ptx, architecture, folder)
    return {name.split("_grid_")[0] for name, _ in sources}


def sources_of(launched):
    """Yield functions of what was launched, and the types of their arguments."""
    from daskclust.core.device.machine_code.cuda_arguments import rebuilding, signature

    for kernel, args in launched:
        wanted, types = signature(args)
        yield kernel.dispatcher(rebuilding(wanted), 1).py_func, types


def compiled(function, types):
    """Return a kernel's PTX for each architecture; what is common to them, most of the time, is done once.

    numba's own `compile_ptx` does all for each.
    """
    from numba.cuda.compiler import _compile_pyfunc_with_fixup

    library, _ = _compile_pyfunc_with_fixup(function, types, device=False, abi="numba", cc=ARCHITECTURES[0])
    return [library.get_asm_str(cc=architecture) for architecture in ARCHITECTURES]
