"""Time DBSCAN and friends-of-friends on the points that programs for them are compared on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from daskclust.bench._report import check_kinds, floor_columns, table
from daskclust.bench._timing import kernel_threads, time_fit
from daskclust.bench.roofline import beside_floor, ceilings_of, count_neighbours, dbscan_work, mean_of

KINDS = ("cosmo", "ss2d", "ss3d", "uniform2d")


def bench_dbscan(
    sizes: Sequence[int],
    *,
    kinds: Sequence[str] = KINDS,
    min_samples: Sequence[int] | None = (10,),
    device: str = "cpu",
    threads: Sequence[int] = (0,),
    repeats: int = 5,
) -> dict[str, Any]:
    """Time DBSCAN, or friends-of-friends, in memory, from float32 coordinates to labels.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of points.
    kinds : sequence of {"cosmo", "ss2d", "ss3d", "uniform2d"}
        Points: of `daskclust.datasets.cosmology_box`, eps 0.168 mean separations, in an open box; of
        `daskclust.datasets.seed_spreader` with varying density, eps 100 in two dimensions and 400 in three; uniform in
        a square, where eps is such that a point has 12.6 neighbours in the mean.
    min_samples : sequence of int or None, default (10,)
        As of `daskclust.DBSCAN`; None times `daskclust.FriendsOfFriends`.
    device : {"cpu", "cuda"}
        Where the arrays are; on CUDA the copies from and to the host are in ``host_to_host_ms`` alone.
    threads : sequence of int, default (0,)
        Numbers of threads of CPU kernels; 0: as numba has it.
    repeats : int, default 5
        Runs of each after a warm-up; medians are reported.

    Returns
    -------
    dict
        ``machine`` facts, ``ceilings`` of the machine, ``parameters`` and ``runs``: for each kind, size, number of
        threads and `min_samples` milliseconds in all and by kernel; the peak of memory in bytes a point beyond the
        input, results included, as measured: that of NumPy's arrays, or what CuPy's memory pool took from the device,
        without scratch arrays kept from the call before; and the work and its floor, as `daskclust.bench.roofline` has
        them.

    Raises
    ------
    ValueError
        For unknown kinds.
    """
    import numba

    from daskclust.machine import describe

    check_kinds(kinds, KINDS)
    asked = (None,) if min_samples is None else tuple(min_samples)
    numbers = [number or int(numba.get_num_threads()) for number in threads] if device == "cpu" else [None]
    runs, ceilings = [], ceilings_of(device)
    for kind in kinds:
        for size in sizes:
            X, eps = points_of(kind, size)
            neighbours = count_neighbours(X, eps)
            for number in numbers:
                with kernel_threads(number or int(numba.get_num_threads())):
                    for least in asked:
                        what = {"kind": kind, "points": len(X), "eps": eps, "min_samples": least, "threads": number}
                        run = {**what, **_time(X, eps, least, device, repeats)}
                        needed = len(X) * mean_of(np.minimum(neighbours, (least or 2) - 1))
                        work = dbscan_work(len(X), X.shape[1], needed)
                        runs.append(run | beside_floor(work, run["total_ms"], ceilings))
    system = "fof" if min_samples is None else "dbscan"
    parameters = {"repeats": repeats, "dtype": "float32", "boxsize": None}
    facts = {"device": device, "parameters": parameters, "machine": describe(), "ceilings": ceilings}
    return {"system": system, **facts, "runs": runs}


def points_of(kind: str, n: int) -> tuple[Any, float]:
    """Return coordinates and the distance of neighbours."""
    from daskclust.datasets import cosmology_box, seed_spreader

    if kind == "cosmo":
        ds, eps = cosmology_box(n, rng=0), 0.168
    elif kind == "uniform2d":  # noise alone
        ds, eps = seed_spreader(n, 2, noise=1.0, rng=0), 200.0 * math.sqrt(1e6 / max(n, 1))
    else:
        d = {"ss2d": 2, "ss3d": 3}[kind]
        ds, eps = seed_spreader(n, d, density="varying", rng=0), {2: 100.0, 3: 400.0}[d]
    return np.stack([ds[axis].values for axis in "xyz" if axis in ds], axis=1), eps


def estimator_of(eps: float, min_samples: int | None) -> Any:
    """Return what is timed: friends-of-friends where `min_samples` is None."""
    from daskclust import DBSCAN, FriendsOfFriends

    return FriendsOfFriends(eps) if min_samples is None else DBSCAN(eps, min_samples=min_samples)


def _time(host: Any, eps: float, min_samples: int | None, device: str, repeats: int) -> dict[str, Any]:
    estimator = estimator_of(eps, min_samples)

    def forget() -> None:
        del estimator.labels_, estimator.is_core_

    run = time_fit(lambda X: estimator.fit(X).labels_, (host,), device, repeats, forget)
    run["mpoints_per_second"] = len(host) / run["total_ms"] / 1e3
    run["clusters"], run["noise"] = int(estimator.n_clusters_), int((estimator.labels_ < 0).sum())
    return run


def markdown(report: dict[str, Any]) -> str:
    """Return a report's figures as a Markdown table."""
    on_cuda, floors = report["device"] == "cuda", floor_columns(report["runs"])
    head = ["points of", "points", "eps", "min_samples", "threads", "clusters", "total (ms)", "Mpoints/s"]
    head += ["host to host (ms)"] * on_cuda + ["peak (B/point)", *floors]
    rows = []
    for run in report["runs"]:
        least, threads = run["min_samples"] or "FoF", run["threads"] or "-"
        row = [run["kind"], f"{run['points']:,}", f"{run['eps']:g}", str(least), str(threads), f"{run['clusters']:,}"]
        row += [f"{run['total_ms']:.1f}", f"{run['mpoints_per_second']:.2f}"]
        row += [f"{run['host_to_host_ms']:.1f}"] if on_cuda else []
        rows.append([*row, f"{run['peak_bytes_per_point']:.0f}", *(tell(run) for tell in floors.values())])
    return table(head, rows)
