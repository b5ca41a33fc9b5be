"""Time CLUE on its paper's own points, step by step."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from daskclust.bench._report import floor_columns, table
from daskclust.bench._timing import kernel_threads, kernel_times, place_of, time_fit
from daskclust.bench.roofline import beside_floor, ceilings_of, clue_work, count_neighbours, mean_of

DC, DELTA, RHOC = 3.0, 5.0, 8.0
_LAYERS = 100

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
    "clusters": ("find_root", "_running_sum", "end_of_chain", "emit"),
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
        ``machine`` facts, ``ceilings`` of the machine, ``parameters`` and ``runs``: for each size milliseconds in all
        and by step, peak memory in bytes a point beyond the input, and the work and its floor, as
        `daskclust.bench.roofline` has them.
    """
    import numba

    from daskclust.machine import describe

    threads = threads or int(numba.get_num_threads())
    ceilings = ceilings_of(device)
    with kernel_threads(threads):
        runs = [_time_clue(n, device, repeats, ceilings) for n in sizes]
        machine = describe()
    parameters = {"layers": _LAYERS, "dc": DC, "delta_c": DELTA, "delta_o": DELTA, "rhoc": RHOC}
    facts = {"device": device, "threads": threads, "parameters": parameters, "machine": machine, "ceilings": ceilings}
    return {"system": "clue", **facts, "runs": runs}


def points_of(n: int) -> tuple[Any, Any, Any]:
    """Return coordinates, layers and weights of the paper's calorimeter, layer after layer."""
    from daskclust.datasets import calorimeter

    points = calorimeter(_LAYERS, max(1, n // _LAYERS), rng=0)
    X = np.stack([points["x"].values, points["y"].values], axis=1)
    return X, points["layer"].values.astype(np.int32), points["energy"].values


def fit_of(X: Any, layer: Any, weight: Any) -> Any:
    """Return CLUE fitted with the paper's parameters."""
    from daskclust import CLUE

    return CLUE(DC, RHOC, delta_c=DELTA, delta_o=DELTA).fit(X, layer=layer, sample_weight=weight)


def _time_clue(n: int, device: str, repeats: int, ceilings: dict[str, float]) -> dict[str, Any]:
    host, place, last = points_of(n), place_of(device), {}
    size = len(host[0])

    def fit(*arrays: Any) -> Any:
        last["clue"] = fit_of(*arrays)
        return last["clue"].labels_

    run = {"points": size, **time_fit(fit, host, device, repeats, last.clear)}
    del run["kernels_ms"]  # steps are made of them
    arrays = [place.take(array) for array in host]
    run["steps_ms"] = _steps_ms(lambda: fit(*arrays), place.finish, repeats)
    run["clusters"] = last["clue"].n_clusters_
    work = clue_work(size, 2, size * mean_of(_neighbours(host[0], host[1])) / 2)
    return run | beside_floor(work, run["total_ms"], ceilings)


def _neighbours(X: Any, layer: Any) -> Any:
    """Count the neighbours within dc: layers are so far apart along a third axis that they have none in others."""
    return count_neighbours(np.column_stack([X, 2.0 * DC * layer]), DC)


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
    on_cuda, floors = report["device"] == "cuda", floor_columns(report["runs"])
    head = ["points", "clusters", *[f"{step} (ms)" for step in steps], "total (ms)", "Mpoints/s"]
    head += ["host to host (ms)"] * on_cuda + ["peak (B/point)", *floors]
    rows = []
    for run in report["runs"]:
        row = [f"{run['points']:,}", f"{run['clusters']:,}", *[f"{run['steps_ms'][step]:.2f}" for step in steps]]
        row += [f"{run['total_ms']:.2f}", f"{run['points'] / run['total_ms'] / 1e3:.1f}"]
        row += [f"{run['host_to_host_ms']:.2f}"] if on_cuda else []
        row += [f"{run['peak_bytes_per_point']:.0f}", *(tell(run) for tell in floors.values())]
        rows.append(row)
    return table(head, rows, words=0)
