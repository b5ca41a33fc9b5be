"""Time import, first and second fit of each system: `python .ci/first_fit.py [shipped | compiled | cached]`.

Each is in a process of its own, with a new folder of numba's compiled kernels. `compiled` leaves shipped kernels aside;
`cached` too, after a process has compiled. Fails if numba is imported where shipped kernels are asked for.
"""

import json
import os
import subprocess
import sys
import tempfile
import time


def main() -> None:
    """Print a table."""
    from daskclust.systems import SYSTEMS

    mode = sys.argv[1] if len(sys.argv) > 1 else "shipped"
    switch = {} if mode == "shipped" else {"DASKCLUST_SHIPPED": "0"}
    print(f"| {mode}: seconds of CPU (of the clock) | import | first fit | second fit | numba |\n|---|---|---|---|---|")
    with_numba = []
    for system in SYSTEMS:
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(1 + (mode == "cached")):
                command = [sys.executable, os.path.abspath(__file__), "--here", system]
                settings = os.environ | switch | {"NUMBA_CACHE_DIR": folder}
                shown = subprocess.run(command, env=settings, cwd=folder, stdout=subprocess.PIPE, check=True).stdout
        times, numba = json.loads(shown)
        cells = [f"{cpu:.3f} ({wall:.3f})" for cpu, wall in times]
        print(f"| {system} | {' | '.join(cells)} | {'imported' if numba else 'no'} |", flush=True)
        with_numba += [system] if numba else []
    if with_numba and mode == "shipped":
        raise SystemExit(f"numba was imported for {', '.join(with_numba)}")


def fit(name: str) -> None:
    """Time a system in this process."""
    marks = [_now()]
    import numpy as np

    from daskclust.systems import SYSTEMS

    system, run = SYSTEMS[name], SYSTEMS[name].runs[0]
    estimator = system.estimator(**run.parameters)
    marks.append(_now())
    sample = system.sample(240, run, np.float64)
    times = [[b - a for a, b in zip(*marks, strict=True)]]
    for _ in range(2):
        began = _now()
        estimator.fit(sample.X, **sample.columns)
        times.append([b - a for a, b in zip(began, _now(), strict=True)])
    print(json.dumps([times, "numba" in sys.modules]))


def _now() -> tuple[float, float]:
    return time.process_time(), time.perf_counter()


if __name__ == "__main__":
    fit(sys.argv[2]) if sys.argv[1:2] == ["--here"] else main()
