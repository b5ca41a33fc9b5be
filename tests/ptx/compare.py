"""Compile every CUDA kernel with numba-cuda and with numba-cuda-mlir, without a GPU, and compare what comes of it.

``python tests/ptx/compare.py OUT.json [--architectures 80 90 100] [pytest's arguments]`` runs the tests of this folder
once for each compiler. They find every kernel and the arguments that it is launched with; each is compiled to PTX and
assembled. OUT.json has a line for each, with registers, spilled bytes, seconds of compiling, or why it did not compile.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
COMPILERS = ("numba-cuda", "numba-cuda-mlir")


# ------------------------------------------------------------------------------------------- within a run of the tests
class Comparing:
    """pytest's plugin that compiles what tests launch with one compiler, and takes down how it went."""

    def __init__(self, out: Path, architectures: list[int], all_kinds: bool) -> None:
        self.out, self.architectures, self.all_kinds, self.seen = out, architectures, all_kinds, set()

    def check(self, launched, folder, may_divide=()):
        """Stand for `assembling.check`."""
        from daskclust.core.device.machine_code.cuda_arguments import signature

        for launch in launched:
            kinds = str(signature(launch.first, launch.args))
            key = launch.kernel.full_name, kinds if self.all_kinds else ""
            if key not in self.seen:
                self.seen.add(key)
                for architecture in self.architectures:
                    row = {"kernel": launch.kernel.full_name, "kinds": kinds, "architecture": architecture}
                    row |= self._compiled(launch, architecture, folder)
                    with self.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")
        return {launch.kernel.__name__ for launch in launched}

    def _compiled(self, launch, architecture, folder):
        from daskclust.core.device.cuda_compiler import cuda, own
        from daskclust.core.device.machine_code.cuda_arguments import signature
        from ptx.assembling import _assembler

        wanted, types = signature(launch.first, launch.args)
        cc = divmod(architecture, 10)
        began = time.process_time()
        try:
            function = launch.kernel.dispatcher(own.rebuilding(wanted), launch.first).py_func
            ptx, _ = cuda.compile_ptx(function, types, cc=cc, device=False)
            ptx = ptx.rstrip("\0")  # numba-cuda-mlir ends that of sm_100 so
        except Exception as error:
            words = " | ".join(line.strip() for line in str(error).splitlines() if line.strip())
            return {"error": f"{type(error).__name__}: {words[:600]}"}
        seconds = time.process_time() - began
        body = ptx[ptx.index(".entry") :].partition("\n}\n")[0]
        source = folder / "kernel.ptx"
        source.write_text(ptx)
        command = [_assembler(), f"-arch=sm_{architecture}", "-v", "-O3", source, "-o", folder / "kernel.cubin"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if done.returncode:
            return {"error": f"ptxas: {done.stderr[:600]}"}
        entry = done.stderr.split("Compiling entry function", 1)[-1].split("Function properties for", 2)[1]
        return {
            "registers": int(re.search(r"Used (\d+) registers", done.stderr.split("Compiling entry function")[1])[1]),
            "spilled": sum(map(int, re.findall(r"(\d+) bytes spill", entry))),
            "stack": int(re.search(r"(\d+) bytes stack frame", entry)[1]),
            "seconds": round(seconds, 3),
            "fused": len(re.findall(r"\bfma\.", body)),
            "divisions": len(re.findall(r"\b(?:div|rem)\.[su]64", body)),
            "calls": len(re.findall(r"\bcall\b", body)),
            "functions": ptx.count(".func "),
            "instructions": len(re.findall(r";$", body, re.M)),
        }


def pytest_configure(config):
    """Put the comparison in the place of the check."""
    from ptx import assembling

    architectures = [int(each) for each in os.environ["COMPARE_ARCHITECTURES"].split()]
    all_kinds = os.environ["COMPARE_KINDS"] == "all"
    assembling.check = Comparing(Path(os.environ["COMPARE_OUT"]), architectures, all_kinds).check


# ------------------------------------------------------------------------------------------------------------ both runs
def main() -> None:
    """Run the tests once for each compiler, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--architectures", nargs="+", default=["90"])
    parser.add_argument("--only", choices=COMPILERS)
    parser.add_argument("--kinds", choices=("all", "first"), default="all", help="of arguments of each kernel")
    ours, given = parser.parse_known_args()
    rows = {}
    for compiler in COMPILERS:
        part = ours.out.with_suffix(f".{compiler}.jsonl")
        if ours.only in (None, compiler):
            part.unlink(missing_ok=True)
            environment = os.environ | {
                "COMPARE_OUT": str(part),
                "COMPARE_KINDS": ours.kinds,
                "COMPARE_ARCHITECTURES": " ".join(ours.architectures),
                "DASKCLUST_CUDA_COMPILER": compiler,
                "PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")]),
            }
            tests = [] if any("test_" in each for each in given) else [str(HERE)]
            command = [sys.executable, "-m", "pytest", "-q", "-p", "ptx.compare", "-m", "ptx", *given, *tests]
            subprocess.run(command, env=environment, check=False)
        for line in part.read_text().splitlines() if part.exists() else ():
            row = json.loads(line)
            rows.setdefault((row["kernel"], row["kinds"], row["architecture"]), {})[compiler] = row
    ours.out.write_text(json.dumps([{"key": key, **both} for key, both in rows.items()], indent=1) + "\n")
    sys.stdout.writelines(f"{line}\n" for line in summary(rows))


def summary(rows):
    """Yield lines on both compilers, system by system: kernels, then the median of numba-cuda and its successor."""
    yield "| system | sm | kernels | compiled by both | spills | registers | instructions | seconds |"
    yield "|---|---|---|---|---|---|---|---|"
    for system, architecture in sorted({(key[0].split(".")[1], key[2]) for key in rows}):
        its = [both for key, both in rows.items() if (key[0].split(".")[1], key[2]) == (system, architecture)]
        good = [[both[n] for n in COMPILERS] for both in its if all("registers" in both.get(n, {}) for n in COMPILERS)]
        cells = [
            system,
            architecture,
            len(its),
            len(good),
            ", ".join(str(sum(p[k]["spilled"] > 0 for p in good)) for k in (0, 1)),
        ]
        for fact in ("registers", "instructions", "seconds"):
            cells.append(", ".join(f"{median([pair[k][fact] for pair in good] or [0]):.3g}" for k in (0, 1)))
        yield "| " + " | ".join(map(str, cells)) + " |"


if __name__ == "__main__":
    main()
