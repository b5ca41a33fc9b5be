"""What is said where CUDA kernels cannot be compiled: numba-cuda is missing, or the NumPy beside it is too new."""

import json
from importlib import metadata

import pytest

from daskclust import machine
from daskclust.core.device import cuda_compiler
from daskclust.core.device.arrays import fill


@pytest.fixture
def environment(monkeypatch):
    """Return a function that lets an environment have these versions of packages."""
    known, find = metadata.version, cuda_compiler.importlib.util.find_spec

    def set_(numba_cuda, numpy):
        versions = {"numba-cuda": numba_cuda, "numpy": numpy}
        monkeypatch.setattr(metadata, "version", lambda package: versions.get(package) or known(package))
        there = {"numba_cuda": numba_cuda or None, "numba_cuda_mlir": None}
        monkeypatch.setattr(
            cuda_compiler.importlib.util, "find_spec", lambda name: there[name] if name in there else find(name)
        )
        for name in cuda_compiler.NAMES:
            monkeypatch.delitem(vars(cuda_compiler), name, raising=False)

    return set_


def test_each_version_beside_each():
    for numpy in ("1.26.4", "2.0.0", "2.4.6"):
        assert cuda_compiler.misfit("0.30.4", numpy) == ""
    for numpy in ("2.5.0.dev0+git", "2.5.0rc1", "2.10.0", "3.0.0"):
        told = cuda_compiler.misfit("0.31.0rc1", numpy)
        assert told == f'numba-cuda 0.31.0rc1 compiles no kernels beside NumPy {numpy}: pip install "numpy<2.5"'


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        (("", "2.4.6"), r'numba-cuda, .* is missing: pip install "daskclust\[gpu\]"'),
        (("0.30.4", "2.5.5"), r'0\.30\.4 .* beside NumPy 2\.5\.5; pip install "numpy<2\.5"$'),
    ],
)
def test_the_first_kernel_says_so(environment, versions, words):
    environment(*versions)
    with pytest.raises(ImportError, match=words):
        fill.launch(3, None, 0)


def test_info_and_workers_say_so(environment, command, monkeypatch):
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda name: True)
    environment("0.30.4", "2.5.5")
    words = 'numba-cuda 0.30.4 compiles no kernels beside NumPy 2.5.5: pip install "numpy<2.5"'
    code, out, _ = command("info", "--json")
    assert (code, json.loads(out)["gpu"]["numba-cuda"]) == (0, words)
    assert words in machine.missing_for_cuda()
    with pytest.raises(machine.NoGPUError, match=r"beside NumPy 2\.5\.5; .*pip install \"numpy<2\.5\"$"):
        machine.check_gpu()
    environment("0.30.4", "2.4.6")
    assert machine.describe()["gpu"]["numba-cuda"] == "installed"


def test_the_other_compiler_has_its_own_remedy(environment, monkeypatch):
    environment("0.30.4", "2.5.5")
    monkeypatch.setenv("DASKCLUST_CUDA_COMPILER", "numba-cuda-mlir")
    with pytest.raises(ImportError, match=r'^numba-cuda-mlir, .* is missing: pip install "numba-cuda-mlir\[cu13\]"$'):
        fill.launch(3, None, 0)
    assert cuda_compiler.misfit_here() == ""


def test_a_compiler_that_is_not_known_is_refused(environment, monkeypatch):
    environment("0.30.4", "2.4.6")
    monkeypatch.setenv("DASKCLUST_CUDA_COMPILER", "nvcc")
    with pytest.raises(ValueError, match=r"^DASKCLUST_CUDA_COMPILER must be one of \['numba-cuda', .*, got 'nvcc'$"):
        fill.launch(3, None, 0)
