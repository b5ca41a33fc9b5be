"""Compile kernels beforehand, for `daskclust/core/device/shipped.py` to find: a library for each level of processors.

numba compiles what systems, readers and tables use on a few points, in a process that believes to run on a processor of
the level, so that the code runs on all of its kind.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys

from daskclust.core.device import shipped


def main() -> None:
    """Build libraries for the levels that are given, else for the best that this processor has."""
    parser = argparse.ArgumentParser("python -m daskclust.build_kernels", description="Compile kernels beforehand.")
    parser.add_argument("levels", nargs="*", metavar="LEVEL", help="x86-64-v2, -v3 or -v4; default: the best one here")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # in the process for a level
    given = parser.parse_args()
    levels = given.levels or shipped.levels_here()[:1]
    unknown = [level for level in levels if level not in shipped.LEVELS]
    if unknown or not levels:
        parser.error(
            f"levels are {', '.join(shipped.LEVELS)}; got {', '.join(unknown) or 'none, and here is none of them'}"
        )
    if shutil.which("cc") is None:
        parser.error("a C compiler links the kernels, and there is no cc here; install gcc or clang")
    if given.here:
        from daskclust.build_kernels.library import build

        sys.stdout.write(build(levels[0]) + "\n")
        return
    for level in levels:
        compiler = {
            "NUMBA_CPU_NAME": level,
            "NUMBA_CPU_FEATURES": "",
            "NUMBA_DISABLE_CACHING": "1",
            shipped.SWITCH: "0",
        }
        command = [sys.executable, "-m", "daskclust.build_kernels", "--here", level]
        ended = subprocess.run(command, env=os.environ | compiler, check=False)
        if ended.returncode:
            raise SystemExit(ended.returncode)


main()
