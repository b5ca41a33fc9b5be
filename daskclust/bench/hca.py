"""Time Mahalanobis hierarchical clustering on data sets of the kinds that its thesis has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from daskclust.bench._report import check_kinds, floor_columns, table
from daskclust.bench._timing import kernel_threads, time_fit
from daskclust.bench.roofline import beside_floor, ceilings_of, hca_work

KINDS = ("gaussian", "cytometry", "apriori")
SIZES = (5000, 10_000, 20_000, 44_000)

_CHANNELS = {"gaussian": 14, "cytometry": 14, "apriori": 20}
_MIXED = 8  # Gaussians of a mixture

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

    Returns
    -------
    dict
        ``machine`` facts, ``ceilings`` of the machine, ``parameters``, ``runs`` and ``exponents``. A run is of a kind,
        a number of points and a number of threads: milliseconds in all, by kernel and by step, the height of the last
        merge, the peak of memory in bytes a point beyond the input, as `bench_dbscan` has it, and the work and its
        floor, as `daskclust.bench.roofline` has them. Of apriori clusters, which several threads work on at once, the
        times of kernels are added up over threads. ``exponents`` are those of time against the number of points, by
        kind and threads, where there are several sizes.

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
    runs, ceilings = [], ceilings_of(device)
    for kind in kinds:
        amounts: Sequence[Any] = groups if kind == "apriori" else sizes
        for amount in amounts:
            data = points_of(kind, amount)
            for number in numbers:
                what = {"kind": kind, "points": len(data.X), "channels": data.X.shape[1], "threads": number}
                if kind == "apriori":
                    what["groups"] = amount[0]
                with kernel_threads(number or most):
                    run = {**what, **_time(data, device, repeats)}
                runs.append(run | beside_floor(hca_work(*data.X.shape), run["total_ms"], ceilings))
    parameters = {"repeats": repeats, "dtype": "float32", "rule": "thesis", "distance": "centroid"}
    facts = {"device": device, "parameters": parameters, "machine": describe(), "ceilings": ceilings}
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

    def fit(X: Any) -> Any:
        return estimator.fit(X, apriori=data.apriori).linkage_

    def forget() -> None:
        del estimator.linkage_

    run = {"threshold": data.threshold, **time_fit(fit, (data.X,), device, repeats, forget)}
    run["us_per_merge"] = run["total_ms"] * 1e3 / max(len(data.X) - 1, 1)
    run["steps_ms"] = _steps_ms(run["kernels_ms"])
    run["last_height"] = float(estimator.linkage_[-1, 2])
    return run


def _steps_ms(kernels: dict[str, float]) -> dict[str, float]:
    steps = {step: sum(kernels.get(name, 0.0) for name in names) for step, names in _STEPS.items()}
    known = [name for names in _STEPS.values() for name in names]
    return {**steps, _OTHERS: sum(time for name, time in kernels.items() if name not in known)}


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
    on_cuda, floors = report["device"] == "cuda", floor_columns(report["runs"])
    steps = [*_STEPS, _OTHERS]
    head = ["points of", "points", "threads", *[f"{step} (ms)" for step in steps], "total (ms)", "us/merge"]
    head += ["host to host (ms)"] * on_cuda + ["peak (B/point)", *floors]
    rows = []
    for run in report["runs"]:
        kind = f"apriori, {run['groups']:,} clusters" if "groups" in run else run["kind"]
        row = [kind, f"{run['points']:,} x {run['channels']}", str(run["threads"] or "-")]
        row += [f"{run['steps_ms'][step]:.1f}" for step in steps]
        row += [f"{run['total_ms']:.1f}", f"{run['us_per_merge']:.1f}"]
        row += [f"{run['host_to_host_ms']:.1f}"] if on_cuda else []
        rows.append([*row, f"{run['peak_bytes_per_point']:.0f}", *(tell(run) for tell in floors.values())])
    words = []
    for each in report["exponents"]:
        on = f", threads {each['threads']}" if each["threads"] else ""
        words.append(f"{each['kind']}{on}: n^{each['exponent']:.2f}")
    return table(head, rows) + (f"\n\nTime grows as: {'; '.join(words)}" if words else "")
