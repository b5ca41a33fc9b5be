"""Compile kernels beforehand: `python .ci/kernels [LEVEL ...]` writes the clone's `daskclust/machine_code/LEVEL.so`.

numba compiles what `uses.py` uses, in processes that believe to run on a processor of the level, so that the code runs
on all of its kind. It takes some minutes, and a C compiler.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the clone, installed or not
from library import compile_part, cpu_of, is_whole, link, linker_of

from daskclust.core.device.machine_code import shipped

HERE = Path(__file__).resolve().parent


def main():
    """Build libraries for the levels that are given, else for the best that this processor has."""
    known = *shipped.LEVELS, shipped.ARM
    parser = argparse.ArgumentParser("python .ci/kernels", description="Compile kernels beforehand.")
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
        if is_whole(level):
            print(f"{level}: nothing has changed")
            continue
        with tempfile.TemporaryDirectory(dir=shipped.FOLDER) as folder:
            compile_all(level, folder)
            print(link(level, folder))


def compile_all(level, folder):
    """Compile all kernels, on all cores; what numba has cached has no intermediate code."""
    settings = {"NUMBA_CPU_NAME": cpu_of(level), "NUMBA_CPU_FEATURES": "", shipped.SWITCH: "0"}
    parts = len(os.sched_getaffinity(0))
    started = []
    for part in map(str, range(parts)):
        command = [sys.executable, str(HERE), level, "--part", part, str(parts), folder]
        environment = {**os.environ, **settings, "NUMBA_CACHE_DIR": os.path.join(folder, f"cache.{part}")}
        started.append(subprocess.Popen(command, env=environment))
    if sum(process.wait() for process in started) != 0:
        raise SystemExit(f"kernels for {level} could not be compiled; the error is above")


main()
