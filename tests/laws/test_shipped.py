"""The answer does not depend on who compiled the kernels: shipped machine code of each level, and numba here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dask
import numpy as np
import pytest
from laws.registry import results_of

from daskclust import EventBuilder, systems, workers
from daskclust.core.device.machine_code import shipped
from daskclust.datasets import timepix
from daskclust.io import open_tpx3, write_tpx3
from daskclust.systems import SYSTEMS

PROGRAM = """
import hashlib, sys
import dask, numpy as np
from daskclust import systems
from laws.registry import results_of

dask.config.set(scheduler="synchronous")
for use, (name, run, dtype) in enumerate(systems.uses(systems.SYSTEMS)):
    for number, fitted in enumerate(systems.run_one(systems.SYSTEMS[name], run, dtype, np.asarray, 600)):
        for result in sorted(results_of(fitted)):
            value = np.asarray(dask.compute(getattr(fitted, result))[0])
            content = value.tobytes() if value.dtype != object else repr(value).encode()
            print(name, use, number, result, value.dtype, value.shape, hashlib.sha256(content).hexdigest())
print("numba" in sys.modules, file=sys.stderr)
"""
LEVELS = [level for level in shipped.levels_here() if (shipped.FOLDER / f"{level}.so").exists()]

needs_kernels = pytest.mark.skipif(not LEVELS, reason="no shipped kernels here; python .ci/kernels makes them")


def results(switch: str) -> tuple[str, bool]:
    """Return digests of all results of all systems, and whether numba was imported for them."""
    environment = os.environ | {shipped.SWITCH: switch, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr.splitlines()[-1] == "True"


@pytest.fixture(scope="module")
def compiled_here() -> str:
    found, with_numba = results("0")
    assert with_numba
    assert {line.split()[0] for line in found.splitlines()} == set(SYSTEMS)
    return found


@needs_kernels
@pytest.mark.parametrize("level", LEVELS)
def test_shipped_kernels_give_the_same_bits_without_numba(compiled_here: str, level: str) -> None:
    found, with_numba = results(level)
    assert found == compiled_here
    assert not with_numba


@needs_kernels
def test_workers_need_no_numba(tmp_path: Path) -> None:
    """Arrays that they get from others may not be written to, or begin anywhere: numba takes these for other types."""
    file = tmp_path / "hits.tpx3"
    write_tpx3(timepix(5000, rng=0), file)
    with workers.start(2, dashboard=None) as client:
        dask.compute(EventBuilder(100.0).fit(open_tpx3(file, chunks=1000)).labels_)
        for name, run, dtype in systems.uses(SYSTEMS):
            for fitted in systems.run_one(SYSTEMS[name], run, dtype, np.asarray, 600):
                dask.compute([getattr(fitted, result) for result in results_of(fitted)])
                assert not any(client.run(lambda: "numba" in sys.modules).values()), (name, run)
