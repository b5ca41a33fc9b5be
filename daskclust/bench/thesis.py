"""The experiments of the thesis on Mahalanobis hierarchical clustering that are not about speed against n.

How many nearest clusters each cluster should know of (figure 3.1), how time depends on the size of apriori clusters of
a given number of points (figure 3.5), and how alike the hierarchies of two rules are (figures 3.6 and 3.7).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from daskclust.bench._report import table
from daskclust.bench._timing import kernel_threads, median_ms, nothing_to_wait_for
from daskclust.bench.hca import points_of

NEIGHBOURS = (1, 2, 3)
GROUP_SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000)
_SAMPLE = 4400  # the thesis compares hierarchies of a tenth of its smallest data set


def bench_thesis(
    size: int = 44_000,
    *,
    total: int = 1_000_000,
    group_sizes: Sequence[int] = GROUP_SIZES,
    threads: int = 0,
    repeats: int = 1,
) -> dict[str, Any]:
    """Redo three experiments of the thesis on the CPU.

    Parameters
    ----------
    size : int, default 44_000
        Points of the data sets whose clusters know of 1, 2 or 3 nearest ones.
    total : int, default 1_000_000
        Points that are divided into apriori clusters; the thesis has 5 000 000.
    group_sizes : sequence of int
        Sizes of the apriori clusters, which are the threshold too; those larger than `total` are left out.
    threads : int, default 0
        Threads of kernels; 0: as numba has it.
    repeats : int, default 1
        Runs of each after a warm-up; medians are reported.

    Returns
    -------
    dict
        ``machine`` facts, ``parameters``, and the lists ``neighbours``, ``ratios`` and ``heights``. The last has the
        correlation of the point heights (definition 20) of the rules ``"thesis"`` and ``"mahal"``, for points on their
        own and for apriori clusters, with thresholds of half the points and of the size of the apriori clusters.
    """
    import numba

    from daskclust.machine import describe

    with kernel_threads(threads or int(numba.get_num_threads())):
        report = {
            "system": "thesis",
            "device": "cpu",
            "parameters": {"size": size, "total": total, "repeats": repeats, "threads": int(numba.get_num_threads())},
            "machine": describe(),
            "neighbours": _neighbours(size, repeats),
            "ratios": _ratios(total, group_sizes, repeats),
            "heights": _heights(min(size, _SAMPLE)),
        }
    return report


def _neighbours(size: int, repeats: int) -> list[dict[str, Any]]:
    from daskclust import MahalanobisHCA

    runs = []
    for kind in ("gaussian", "cytometry"):
        data = points_of(kind, size)
        for known in NEIGHBOURS:
            with _known(known):
                time = median_ms(functools.partial(MahalanobisHCA().fit, data.X), nothing_to_wait_for, repeats)
            runs.append({"kind": kind, "points": size, "neighbours": known, "total_ms": time})
    return runs


@contextmanager
def _known(count: int) -> Iterator[None]:
    """Let each cluster know of so many nearest ones; the answer is the same."""
    from daskclust.hca import levels as level

    before, level.NEIGHBOURS = level.NEIGHBOURS, count
    try:
        yield
    finally:
        level.NEIGHBOURS = before


def _ratios(total: int, group_sizes: Sequence[int], repeats: int) -> list[dict[str, Any]]:
    from daskclust import MahalanobisHCA

    runs = []
    for size in (size for size in group_sizes if size <= total):
        data = points_of("apriori", (total // size, size))
        fit = functools.partial(MahalanobisHCA(size).fit, data.X, apriori=data.apriori)
        time = median_ms(fit, nothing_to_wait_for, repeats)
        runs.append({"size": size, "groups": len(data.X) // size, "points": len(data.X), "total_ms": time})
    return runs


def _heights(size: int) -> list[dict[str, Any]]:
    from daskclust import MahalanobisHCA
    from daskclust.metrics import point_height_correlation

    found = []
    for kind, amount in (("gaussian", size), ("cytometry", size), ("apriori", (max(size // 100, 2), 100))):
        data = points_of(kind, amount)
        one, other = (
            MahalanobisHCA(data.threshold, rule=rule).fit(data.X, apriori=data.apriori).linkage_
            for rule in ("thesis", "mahal")
        )
        found.append({"kind": kind, "points": len(data.X), "correlation": point_height_correlation(one, other)})
    return found


def markdown(report: dict[str, Any]) -> str:
    """Return a report's figures as three tables in Markdown."""
    known = [(r["kind"], f"{r['points']:,}", r["neighbours"], f"{r['total_ms']:.0f}") for r in report["neighbours"]]
    ratios = [
        (f"{r['points']:,}", f"{r['groups']:,}", f"{r['size']:,}", f"{r['total_ms']:.0f}") for r in report["ratios"]
    ]
    heights = [(r["kind"], f"{r['points']:,}", f"{r['correlation']:.4f}") for r in report["heights"]]
    tables = [
        table(("points of", "points", "nearest known", "total (ms)"), known),
        table(("points", "apriori clusters", "size of each", "total (ms)"), ratios),
        table(("points of", "points", "correlation of point heights"), heights),
    ]
    return "\n\n".join(tables)
