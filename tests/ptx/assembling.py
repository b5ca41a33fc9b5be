"""Compile and assemble what was launched, without a GPU, and hold each kernel to its registers."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

from daskclust.core.device import cuda_compiler
from ptx.registers import Assembled, bound

ARCHITECTURES = [(8, 0), (9, 0)]
assembled: list[Assembled] = []
"""What the test that runs has assembled for the last architecture."""
_checked: set[tuple[str, str]] = set()  # kernels and types of their arguments, in this process


def without_device(monkeypatch):
    """Let numba compile for an architecture without a device."""
    if cuda_compiler.cuda.__name__.startswith("numba_cuda_mlir"):
        from numba_cuda_mlir import tools

        monkeypatch.setattr(tools, "_cached_cc", ARCHITECTURES[0])
        return
    import numba.cuda.dispatcher

    fake = SimpleNamespace(compute_capability=ARCHITECTURES[0])
    monkeypatch.setattr(numba.cuda.dispatcher, "get_current_device", lambda: fake)


def check(launched, folder, may_divide=("_place_by_order",)):
    """Compile and assemble what was launched; kernels named in `may_divide` have 64-bit keys to divide.

    Return the names of what was compiled.
    """
    from daskclust.core.device.machine_code.cuda_arguments import signature

    launches = {(launch.kernel.full_name, str(signature(launch.first, launch.args))): launch for launch in launched}
    for key in launches.keys() - _checked:
        launch, name = launches[key], launches[key].kernel.__name__
        for architecture, ptx in zip(ARCHITECTURES, compiled(launch.kernel, launch.first, launch.args), strict=True):
            assert not re.search(r"\bfma\.", ptx), f"{name} fuses a multiplication with an addition"
            assert not re.search(r"\b(div|rem)\.[su]64", ptx) or name in may_divide, name
            report = assemble(ptx, architecture, folder)
        assembled.append(Assembled.of(launch, report))
        _checked.add(key)
    beyond = {its.kernel: its.registers for its in assembled if its.registers > bound(its.kernel)}
    assert not beyond, f"more registers than before; if they are worth it, name them in registers.py: {beyond}"
    return {launch.kernel.__name__ for launch in launches.values()}


def compiled(kernel, n, args):
    """Return a kernel's PTX for each architecture; what is common to them, most of the time, is done once.

    numba's own `compile_ptx` does all for each.
    """
    from daskclust.core.device.machine_code.cuda_arguments import signature

    wanted, types = signature(n, args)
    function = kernel.dispatcher(cuda_compiler.own.rebuilding(wanted), n).py_func
    if cuda_compiler.cuda.__name__.startswith("numba_cuda_mlir"):
        made = [cuda_compiler.cuda.compile_ptx(function, types, cc=cc, device=False)[0] for cc in ARCHITECTURES]
        return [ptx.rstrip("\0") for ptx in made]
    from numba.cuda.compiler import _compile_pyfunc_with_fixup

    library, _ = _compile_pyfunc_with_fixup(function, types, device=False, abi="numba", cc=ARCHITECTURES[0])
    return [library.get_asm_str(cc=architecture) for architecture in ARCHITECTURES]


def assemble(ptx, architecture, folder):
    """Return ptxas's report; fail on an error or a spill."""
    source = folder / "kernel.ptx"
    source.write_text(ptx)
    target = f"sm_{architecture[0]}{architecture[1]}"
    command = [_assembler(), f"-arch={target}", "-v", "--warn-on-spills", "-O3", source, "-o", folder / "kernel.cubin"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    spilled = re.findall(r"(\d+) bytes spill (?:stores|loads)", done.stderr)
    assert all(int(count) == 0 for count in spilled), done.stderr
    return done.stderr


@functools.cache
def _assembler():
    import nvidia.cu13

    return Path(next(iter(nvidia.cu13.__path__))) / "bin" / "ptxas"
