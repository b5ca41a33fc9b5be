"""Kernels that were compiled beforehand: machine code in a library within the package, called without numba.

In a clone ``python .ci/kernels`` writes, for a level of processors, ``machine_code/LEVEL.so`` and a list with digests
of the source files it was made from. A kernel is found by its name and the types of its arguments. One that is
not there, or whose sources have changed since, is compiled by numba. The answer is the same to the last bit.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterable
from pathlib import Path

from daskclust.core.device.machine_code.arguments import HEADER, Kinds

PACKAGE = Path(__file__).parents[3]
FOLDER = PACKAGE / "machine_code"
SWITCH = "DASKCLUST_SHIPPED"
"""Environment variable: 0 compiles all kernels here; a level takes that one and no other."""

LEVELS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {"abm", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"},
    "x86-64-v2": {"popcnt", "sse4_2", "ssse3"},
}
"""Levels of x86-64, the fastest first, with the features each needs beyond the next, as Linux calls them."""
ARM = "aarch64"
"""The one level of 64-bit ARM."""

Loop = Callable[[int, int, bytes], int]
"""``loop(first, last, arguments)``, which returns 0."""


class Library:
    """Machine code for a level of processors."""

    def __init__(self, level: str) -> None:
        self.level = level
        code = FOLDER / f"{level}.so"
        try:
            made = json.loads(code.with_suffix(".json").read_text())
            self.kernels, self.sources = int(made["kernels"]), dict(made["sources"])
            is_damaged = digest(str(code)) != made["library"]
        except (ValueError, KeyError, TypeError):
            is_damaged = True
        if is_damaged:
            raise ValueError(f"{code.name} is damaged; install daskclust again, or in a clone run python .ci/kernels")
        if made["header"] != HEADER:
            raise ValueError(f"{code.name} is for another kind of Python")
        self._code = ctypes.CDLL(str(code))

    def loop(self, name: str, sources: Iterable[str]) -> Loop | None:
        """Return the machine code of this name, if it is there and `sources` are what they were."""
        if any(self.sources.get(name_in_package(file)) != _source_digest(file) for file in sources):
            return None
        try:
            function = self._code[name]
        except AttributeError:
            return None
        function.argtypes = ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p
        function.restype = ctypes.c_int32
        return function

    def changed(self) -> list[str]:
        """Return the source files that are not what they were."""
        return [file for file, known in self.sources.items() if _source_digest(str(PACKAGE / file)) != known]


def symbol(label: str, kinds: Kinds) -> str:
    """Return the name of a kernel for arguments of these types."""
    return "kernel_" + hashlib.blake2s(f"{label} {' '.join(kinds)}".encode(), digest_size=12).hexdigest()


@functools.cache
def library() -> Library | None:
    """Return the best library for this processor, None where there is none."""
    return _found()[0]


def describe() -> str:
    """Say which machine code is used, and why not where none is."""
    found, reason = _found()
    if found is None:
        return reason
    changed = found.changed()
    stale = f"; changed since, and compiled here: {', '.join(changed)}" if changed else ""
    return f"{found.kernels} kernels for {found.level}{stale}"


@functools.cache
def _found() -> tuple[Library | None, str]:
    wanted = os.environ.get(SWITCH)
    if wanted == "0":
        return None, f"none: {SWITCH}=0"
    reasons = []
    for level in [wanted] if wanted else levels_here():
        try:
            return Library(level), ""
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            reasons.append(f"{level}: {error}")
    missing = "first fits take seconds; in a clone, python .ci/kernels makes them"
    return None, "none: " + ("; ".join(reasons) or missing)


def levels_here() -> list[str]:
    """Return the levels that this processor has, the best first."""
    if platform.system() != "Linux":
        return []
    if platform.machine() == ARM:
        return [ARM]
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    features = set(next((line for line in lines if line.startswith("flags")), "").split())
    levels = list(LEVELS)
    return [level for k, level in enumerate(levels) if set().union(*(LEVELS[each] for each in levels[k:])) <= features]


def digest(file: str) -> str:
    """Return a digest of a file; of one that is not there, nothing."""
    try:
        return hashlib.blake2s(Path(file).read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return ""


_source_digest = functools.cache(digest)


def name_in_package(file: str) -> str:
    return os.path.relpath(file, PACKAGE)
