"""Compile kernels beforehand, for `core/device/machine_code/shipped.py` to find: a library for a level of processors.

numba compiles what systems, readers and tables use on a few points, in processes that believe to run on a processor of
the level, so that the code runs on all of its kind.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

from daskclust.build_kernels.library import compile_part, cpu_of, link, linker_of
from daskclust.core.device.machine_code import shipped


def main() -> None:
    """Build libraries for the levels that are given, else for the best that this processor has."""
    known = *shipped.LEVELS, shipped.ARM
    parser = argparse.ArgumentParser("python -m daskclust.build_kernels", description="Compile kernels beforehand.")
    parser.add_argument("levels", nargs="*", metavar="LEVEL", help=f"{', '.join(known)}; default: the best one here")
    parser.add_argument("--part", nargs=3, help=argparse.SUPPRESS)  # in a process of its own: number, of, folder
    given = parser.parse_args()
    levels = given.levels or shipped.levels_here()[:1]
    unknown = [level for level in levels if level not in known]
    if unknown or not levels:
        parser.error(f"levels are {', '.join(known)}; got {', '.join(unknown) or 'none, and here is none of them'}")
    for compiler in map(linker_of, levels):
        if shutil.which(compiler) is None:
            parser.error(f"a C compiler links the kernels, and there is no {compiler} here; install gcc")
    if given.part:
        part, parts, folder = given.part
        compile_part(levels[0], int(part), int(parts), folder)
        return
    shipped.FOLDER.mkdir(exist_ok=True)
    for level in levels:
        if shipped.is_whole(level):
            sys.stdout.write(f"{level}: nothing has changed\n")
            continue
        with tempfile.TemporaryDirectory(dir=shipped.FOLDER) as folder:
            _compile(level, folder)
            sys.stdout.write(link(level, folder) + "\n")


def _compile(level: str, folder: str) -> None:
    """Compile all kernels, on all cores; what numba has cached has no intermediate code."""
    settings = {"NUMBA_CPU_NAME": cpu_of(level), "NUMBA_CPU_FEATURES": "", shipped.SWITCH: "0"}
    parts = len(os.sched_getaffinity(0))
    started = []
    for part in map(str, range(parts)):
        command = [sys.executable, "-m", "daskclust.build_kernels", level, "--part", part, str(parts), folder]
        environment = {**os.environ, **settings, "NUMBA_CACHE_DIR": os.path.join(folder, f"cache.{part}")}
        started.append(subprocess.Popen(command, env=environment))
    if sum(process.wait() for process in started) != 0:
        raise SystemExit(f"kernels for {level} could not be compiled; the error is above")


main()
