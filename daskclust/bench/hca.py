"""Time Mahalanobis hierarchical clustering on data sets of the kinds that its thesis has."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from daskclust.bench._report import check_kinds, table
from daskclust.bench._timing import (
    kernel_threads,
    kernels_ms,
    median_ms,
    nothing_to_wait_for,
    peak_bytes,
    peak_device_bytes,
)
from daskclust.core.arrays import cupy_module

KINDS = ("gaussian", "cytometry", "apriori")
SIZES = (5000, 10_000, 20_000, 44_000)

_CHANNELS = {"gaussian": 14, "cytometry": 14, "apriori": 20}
_MIXED = 8  # Gaussians of a mixture
_MOST_FOR_SCIPY = 5000  # its memory is of the order of n^2

# kernels by what they are for; the sum of the others is a step, too
_STEPS = {"first neighbours": ("find_all",), "merges": ("merge_down_to", "link_sets")}
_OTHERS = "other kernels"


class _Data(NamedTuple):
    """Points, and how they are clustered."""

    X: Any  # (n, d) float32
    apriori: Any  # (n,) or None
    threshold: int | float


def bench_hca(
    sizes: Sequence[int] = SIZES,
    *,
    kinds: Sequence[str] = KINDS,
    groups: Sequence[tuple[int, int]] = ((100, 1000),),
    device: str = "cpu",
    threads: Sequence[int] = (1, 0),
    repeats: int = 3,
    peers: bool = True,
) -> dict[str, Any]:
    """Time Mahalanobis hierarchical clustering in memory, from float32 coordinates to the linkage.

    Parameters
    ----------
    sizes : sequence of int, default (5000, 10000, 20000, 44000)
        Numbers of points of the kinds without apriori clusters; 44 000 are the thesis's smallest data set.
    kinds : sequence of {"gaussian", "cytometry", "apriori"}
        Points: a mixture of 8 Gaussians in 14 dimensions; `daskclust.datasets.cytometry` with 14 channels, a threshold
        of half of all points for both; `daskclust.datasets.apriori_gaussians` with 20 channels, the size of its apriori
        clusters as the threshold.
    groups : sequence of (int, int), default ((100, 1000),)
        For ``"apriori"``: number and size of apriori clusters. (1000, 1000) and (1000, 2000) are the thesis's.
    device : {"cpu", "cuda"}
        Where the arrays are; on CUDA the copy from the host is in ``host_to_host_ms`` alone.
    threads : sequence of int, default (1, 0)
        Numbers of threads of CPU kernels; 0: as numba has it.
    repeats : int, default 3
        Runs of each after a warm-up; medians are reported.
    peers : bool, default True
        Whether other programs are timed too, where they are installed: fastcluster's ``linkage_vector`` and, up to 5000
        points, SciPy's ``linkage``, both with the method "centroid". It is another hierarchy, that of Euclidean
        distances: what they have in common is the number of merges. On the CPU, one run after a warm-up.

    Returns
    -------
    dict
        ``machine`` facts, ``parameters``, ``runs`` and ``exponents``. A run is of a kind, a number of points and a
        number of threads: milliseconds in all, by kernel and by step, the height of the last merge, the peak of memory
        in bytes a point beyond the input, as `bench_dbscan` has it, and ``peers_ms`` beside the first number of
        threads. Of apriori clusters, which several threads work on at once, the times of kernels are added up over
        threads. ``exponents`` are those of time against the number of points, by kind and threads, where there are
        several sizes.

    Raises
    ------
    ValueError
        For unknown kinds.
    """
    import numba

    from daskclust.machine import describe

    check_kinds(kinds, KINDS)
    most = int(numba.get_num_threads())
    numbers = list(dict.fromkeys(number or most for number in threads)) if device == "cpu" else [None]
    runs = []
    for kind in kinds:
        amounts: Sequence[Any] = groups if kind == "apriori" else sizes
        for amount in amounts:
            data = points_of(kind, amount)
            others = _peers_ms(data) if peers and device == "cpu" and kind != "apriori" else {}
            for number in numbers:
                what = {"kind": kind, "points": len(data.X), "channels": data.X.shape[1], "threads": number}
                if kind == "apriori":
                    what["groups"] = amount[0]
                with kernel_threads(number or most):
                    runs.append({**what, **_time(data, device, repeats), "peers_ms": others})
                others = {}
    parameters = {"repeats": repeats, "dtype": "float32", "rule": "thesis", "distance": "centroid"}
    facts = {"device": device, "parameters": parameters, "machine": describe()}
    return {"system": "hca", **facts, "runs": runs, "exponents": _exponents(runs)}


def points_of(kind: str, amount: Any) -> _Data:
    """Return points of a kind: so many, or so many clusters of a size."""
    from daskclust.datasets import apriori_gaussians, cytometry

    d = _CHANNELS[kind]
    if kind == "apriori":
        ds = apriori_gaussians(*amount, channels=d, rng=0)
        return _Data(ds["X"].values, ds["apriori"].values, amount[1])
    if kind == "cytometry":
        return _Data(cytometry(amount, d, rng=0)["X"].values, None, 0.5)
    rng = np.random.default_rng(0)
    mixing, center = rng.normal(size=(_MIXED, d, d)) / 4, rng.normal(scale=4, size=(_MIXED, d))
    which = rng.integers(0, _MIXED, amount)
    X = center[which] + np.einsum("nij,nj->ni", mixing[which], rng.normal(size=(amount, d)))
    return _Data(X.astype(np.float32), None, 0.5)


def _time(data: _Data, device: str, repeats: int) -> dict[str, Any]:
    from daskclust import MahalanobisHCA

    estimator = MahalanobisHCA(data.threshold)
    run: dict[str, Any] = {"threshold": data.threshold}
    X, finish, peak = data.X, nothing_to_wait_for, peak_bytes
    if device == "cuda":
        cupy = cupy_module()
        X, finish, peak = cupy.asarray(data.X), cupy.cuda.get_current_stream().synchronize, peak_device_bytes

        def host_to_host() -> None:
            estimator.fit(cupy.asarray(data.X), apriori=data.apriori)  # the linkage is on the host

        run["host_to_host_ms"] = median_ms(host_to_host, finish, repeats)

    def fit() -> None:
        estimator.fit(X, apriori=data.apriori)

    run["total_ms"] = median_ms(fit, finish, repeats)
    run["us_per_merge"] = run["total_ms"] * 1e3 / max(len(data.X) - 1, 1)
    run["kernels_ms"] = kernels_ms(fit, finish)
    run["steps_ms"] = _steps_ms(run["kernels_ms"])
    run["last_height"] = float(estimator.linkage_[-1, 2])
    del estimator.linkage_  # else that of the run before would count as input
    run["peak_bytes_per_point"] = peak(fit) / len(data.X)
    return run


def _steps_ms(kernels: dict[str, float]) -> dict[str, float]:
    steps = {step: sum(kernels.get(name, 0.0) for name in names) for step, names in _STEPS.items()}
    known = [name for names in _STEPS.values() for name in names]
    return {**steps, _OTHERS: sum(time for name, time in kernels.items() if name not in known)}


def _peers_ms(data: _Data) -> dict[str, float]:
    """Return the times of other programs that are installed."""
    calls: dict[str, Callable[[], Any]] = {}
    if importlib.util.find_spec("fastcluster") is not None:
        fastcluster = importlib.import_module("fastcluster")
        calls["fastcluster"] = lambda: fastcluster.linkage_vector(data.X, method="centroid")
    if len(data.X) <= _MOST_FOR_SCIPY:
        from scipy.cluster.hierarchy import linkage

        calls["SciPy"] = lambda: linkage(data.X, "centroid")
    return {name: median_ms(call, nothing_to_wait_for, 1) for name, call in calls.items()}


def _exponents(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the slopes of time against the number of points, both as logarithms."""
    exponents = []
    for kind, threads in dict.fromkeys((run["kind"], run["threads"]) for run in runs):
        mine = [run for run in runs if (run["kind"], run["threads"]) == (kind, threads)]
        n = [run["points"] for run in mine]
        if kind != "apriori" and len(set(n)) > 1:  # of apriori clusters two numbers make the time
            slope = np.polyfit(np.log(n), np.log([run["total_ms"] for run in mine]), 1)[0]
            exponents.append({"kind": kind, "threads": threads, "exponent": float(slope)})
    return exponents


def markdown(report: dict[str, Any]) -> str:
    """Return a report's figures as a Markdown table, and the exponents below it."""
    on_cuda = report["device"] == "cuda"
    peers = list(dict.fromkeys(name for run in report["runs"] for name in run["peers_ms"]))
    steps = [*_STEPS, _OTHERS]
    head = ["points of", "points", "threads", *[f"{step} (ms)" for step in steps], "total (ms)", "us/merge"]
    head += ["host to host (ms)"] * on_cuda + ["peak (B/point)"] + [f"{name} (ms)" for name in peers]
    rows = []
    for run in report["runs"]:
        kind = f"apriori, {run['groups']:,} clusters" if "groups" in run else run["kind"]
        row = [kind, f"{run['points']:,} x {run['channels']}", str(run["threads"] or "-")]
        row += [f"{run['steps_ms'][step]:.1f}" for step in steps]
        row += [f"{run['total_ms']:.1f}", f"{run['us_per_merge']:.1f}"]
        row += [f"{run['host_to_host_ms']:.1f}"] if on_cuda else []
        row += [f"{run['peak_bytes_per_point']:.0f}"]
        rows.append([*row, *[f"{run['peers_ms'][name]:.1f}" if name in run["peers_ms"] else "-" for name in peers]])
    words = []
    for each in report["exponents"]:
        on = f", threads {each['threads']}" if each["threads"] else ""
        words.append(f"{each['kind']}{on}: n^{each['exponent']:.2f}")
    return table(head, rows) + (f"\n\nTime grows as: {'; '.join(words)}" if words else "")
