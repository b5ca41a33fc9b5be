"""Machine code of kernels that was made beforehand: the same answers, and compiled here where it does not fit."""

import json
import re
import shutil
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from daskclust.core.device import kernels
from daskclust.core.device.kernels import kernel
from daskclust.core.device.machine_code import compiled, shipped
from daskclust.core.device.machine_code.arguments import HEADER, flatten

Pair = namedtuple("Pair", "left right")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")


@pytest.mark.parametrize(
    ("args", "kinds"),
    [
        ((1, 2.0, True), ("i8", "f8", "b1")),
        ((np.int32(1), np.float32(2), np.uint64(3), np.bool_(0)), ("i4", "f4", "u8", "b1")),
        ((np.zeros(3), np.zeros((2, 3), np.float32)), ("f8[1,C]", "f4[2,C]")),
        ((np.zeros((2, 3)).T, np.zeros((4, 4))[::2, ::2]), ("f8[2,F]", "f8[2,A]")),
        ((Pair(1, (2.0,)),), ("Pair(", "i8", "tuple(", "f8", ")", ")")),
    ],
)
def test_types_of_arguments(args, kinds):
    assert flatten(args)[0] == kinds


@kernel
def mix(i, out, table, pair, small, wide, real, double, yes):
    """Use an argument of each kind."""
    value = pair.left[i] * wide + table[i, 1] * real + small
    if yes:
        value += double * pair.right[0]
    out[i] = value


def arguments(n):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(n, 5))[:, ::2]
    left = rng.integers(0, 9, n).astype(np.uint8)
    return table, Pair(left, (2.5,)), np.int16(-3), -(2**40), np.float32(0.1), 0.7, np.bool_(True)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder in which machine code is looked for."""
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    monkeypatch.setattr(kernels, "compiled_here", [])
    monkeypatch.setenv(shipped.SWITCH, "here")
    forget()
    yield tmp_path
    monkeypatch.undo()
    forget()


@pytest.fixture
def expected(folder, monkeypatch):
    """Ship the machine code of `mix`, and return what the kernel that numba compiled gave."""
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / ".ci" / "kernels")
    from library import link, object_code

    out = np.zeros(100)
    monkeypatch.setattr(compiled.KernelCache, "load_overload", lambda *_: None)  # it has no intermediate code
    mix.run(100, out, *arguments(100))
    (made,) = kernels.compiled_here
    name = shipped.symbol(made.kernel.full_name, made.kinds)
    (folder / f"{name}.0.o").write_bytes(object_code(made, name, ""))
    (folder / "sources.0").write_text("\n".join(mix.sources))
    link("here", str(folder))
    forget()
    kernels.compiled_here.clear()
    return out


def forget():
    """Let machine code be looked for again."""
    for remembered in (shipped._found, shipped.library, shipped._source_digest):
        remembered.cache_clear()
    mix._code.clear()


def run_mix():
    out = np.zeros(100)
    mix.run(100, out, *arguments(100))
    return out


def test_machine_code_takes_each_kind_of_argument(expected):
    assert (run_mix() == expected).all()
    assert not kernels.compiled_here
    from library import is_whole

    assert is_whole("here")
    assert "1 kernels for here" in shipped.describe()


def as_sent(array):
    """Return an array as a worker gets it from another: neither to be written nor where numba expects it."""
    memory = np.zeros(array.nbytes + 3, np.uint8)
    sent = np.ndarray(array.shape, array.dtype, memory, 3, array.strides)
    sent[...] = array
    sent.flags.writeable = False
    return sent


def test_machine_code_takes_arrays_that_come_from_other_processes(expected):
    out, (table, pair, *rest) = np.zeros(100), arguments(100)
    wide = as_sent(table.base)
    mix.run(100, out, wide[:, ::2], pair._replace(left=as_sent(pair.left)), *rest)
    assert not wide.flags.aligned
    assert (out == expected).all()
    assert not kernels.compiled_here


def break_code(folder):
    code = folder / "here.so"
    code.write_bytes(code.read_bytes()[:-1] + b"\1")


def break_list(folder):
    (folder / "here.json").write_text("{")


def another_python(folder):
    made = json.loads((folder / "here.json").read_text())
    (folder / "here.json").write_text(json.dumps(made | {"header": HEADER + 8}))


def change_sources(folder):
    made = json.loads((folder / "here.json").read_text())
    made["sources"] = dict.fromkeys(made["sources"], "0")
    (folder / "here.json").write_text(json.dumps(made))


def remove(folder):
    (folder / "here.so").unlink()
    (folder / "here.json").unlink()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (break_code, "here.so is damaged; install daskclust again, or in a clone run python .ci/kernels"),
        (break_list, "here.so is damaged"),
        (another_python, "here.so is for another kind of Python"),
        (change_sources, "changed since, and compiled here: .*kernels.py"),
        (remove, "none: first fits take seconds; in a clone, python .ci/kernels makes them"),
    ],
)
def test_what_does_not_fit_is_compiled_here(folder, expected, harm, said):
    harm(folder)
    forget()
    assert (run_mix() == expected).all()
    assert len(kernels.compiled_here) == 1
    from library import is_whole

    assert not is_whole("here")
    assert re.search(said, shipped.describe())
