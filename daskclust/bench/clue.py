"""Time CLUE on its paper's own points, step by step."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from daskclust.bench._report import table
from daskclust.bench._timing import kernel_threads, kernel_times, median_ms, nothing_to_wait_for, peak_bytes
from daskclust.core.arrays import cupy_module

# kernels by the step of the paper's table 2 that they do
_CLUE_STEPS = {
    "build grid": (
        "_survey_piece", "_survey_point", "_survey_group", "_cell_numbers", "_count_descents", "_count_buckets",
        "_to_buckets", "_sort_bucket", "_end", "gather", "fill", "_copy", "_count_cell", "_take_slot", "_rank", "_key",
        "_place_by_order",
    ),
    "density": ("density",),
    "nearest higher": ("nearest_higher",),
    "seeds, outliers": ("classify",),
    "clusters": ("find_root", "_running_sum", "emit"),
}  # fmt: skip


def bench_clue(sizes: list[int], *, device: str = "cpu", threads: int = 0, repeats: int = 7) -> dict[str, Any]:
    """Time CLUE on the paper's calorimeter: 100 layers, dc 3 cm, delta 5 cm, rhoc 8.

    Parameters
    ----------
    sizes : list of int
        Numbers of points in all.
    device : {"cpu", "cuda"}
        Where the arrays are; on CUDA the time includes the copies from and to the host in ``host_to_host``.
    threads : int, default 0
        Threads of CPU kernels; 0: as numba has it.
    repeats : int, default 7
        Runs of each size after a warm-up; medians are reported.

    Returns
    -------
    dict
        ``machine`` facts, ``parameters`` and ``runs``: for each size milliseconds in all and by step, and peak
        memory in bytes a point beyond the input.
    """
    import numba

    from daskclust.machine import describe

    threads = threads or int(numba.get_num_threads())
    with kernel_threads(threads):
        runs = [_time_clue(n, device, repeats) for n in sizes]
        machine = describe()
    parameters = {"layers": 100, "dc": 3.0, "delta_c": 5.0, "delta_o": 5.0, "rhoc": 8.0}
    facts = {"device": device, "threads": threads}
    return {"system": "clue", **facts, "parameters": parameters, "machine": machine, "runs": runs}


def _time_clue(n: int, device: str, repeats: int) -> dict[str, Any]:
    from daskclust import CLUE
    from daskclust.datasets import calorimeter

    points = calorimeter(100, max(1, n // 100), rng=0)
    X = np.stack([points["x"].values, points["y"].values], axis=1)
    host = [X, points["layer"].values.astype(np.int32), points["energy"].values]
    clue = CLUE(3.0, 8.0, delta_c=5.0, delta_o=5.0)
    run: dict[str, Any] = {"points": len(X)}
    arrays, finish = host, nothing_to_wait_for
    if device == "cuda":
        cupy = cupy_module()
        finish = cupy.cuda.get_current_stream().synchronize
        arrays = [cupy.asarray(array) for array in host]

        def host_to_host() -> None:
            X, layer, weight = (cupy.asarray(array) for array in host)
            clue.fit(X, layer=layer, sample_weight=weight)
            cupy.asnumpy(clue.labels_)

        run["host_to_host_ms"] = median_ms(host_to_host, finish, repeats)

    def fit() -> None:
        clue.fit(arrays[0], layer=arrays[1], sample_weight=arrays[2])

    run["total_ms"] = median_ms(fit, finish, repeats)
    run["steps_ms"] = _steps_ms(fit, finish, repeats)
    run["clusters"] = clue.n_clusters_
    if device == "cpu":
        run["peak_bytes_per_point"] = peak_bytes(fit) / len(X)
    return run


def _steps_ms(call: Callable[[], None], finish: Callable[[], None], repeats: int) -> dict[str, float]:
    """Return the median time of each step; the device waits after each kernel: on CUDA their sum is no total."""
    runs = []
    for _ in range(repeats):
        with kernel_times(finish) as seconds:
            call()
        runs.append(seconds)
    return {
        step: statistics.median(sum(run[name] for name in kernels) for run in runs) * 1e3
        for step, kernels in _CLUE_STEPS.items()
    }


def markdown(report: dict[str, Any]) -> str:
    """Return a report's figures as a Markdown table."""
    steps = list(_CLUE_STEPS)
    memory = report["device"] == "cpu"
    head = ["points", "clusters", *[f"{step} (ms)" for step in steps], "total (ms)", "Mpoints/s"]
    head += ["peak (B/point)"] if memory else ["host to host (ms)"]
    rows = []
    for run in report["runs"]:
        row = [f"{run['points']:,}", f"{run['clusters']:,}", *[f"{run['steps_ms'][step]:.2f}" for step in steps]]
        row += [f"{run['total_ms']:.2f}", f"{run['points'] / run['total_ms'] / 1e3:.1f}"]
        row += [f"{run['peak_bytes_per_point']:.0f}" if memory else f"{run['host_to_host_ms']:.2f}"]
        rows.append(row)
    return table(head, rows, words=0)
