"""Time the systems: one runner for all of their cases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numba
import numpy as np

from daskclust.bench.case import Case, Options, System
from daskclust.bench.clue import CLUE
from daskclust.bench.dbscan import DBSCAN, FOF
from daskclust.bench.events import EVENTS, doubling
from daskclust.bench.hca import HCA
from daskclust.bench.peers import bench_peers
from daskclust.bench.roofline import beside_floor, ceilings_of
from daskclust.bench.timing import device_of, kernel_threads, kernels_ms, median_ms
from daskclust.machine import describe

Progress = Callable[[str, int, int], object]
"""Is called with what begins, how many points are done, and how many there are."""

SYSTEMS = {"clue": CLUE, "events": EVENTS, "fof": FOF, "dbscan": DBSCAN, "hca": HCA}
"""By name, in the order of ``bench all``."""

_BYTES_A_POINT = 100  # of friends-of-friends, at the peak: 70, those of the points among them


def options_of(name: str, given: Mapping[str, Any], *, headline: bool = False) -> Options:
    """Return the options of a system where these are given and the others are the usual ones."""
    system = SYSTEMS[name]
    own = {"kinds": system.kinds, **system.usual, **(system.headline if headline else {})}
    return Options(**{**own, **given})


def bench(name: str, options: Options, progress: Progress = lambda *_: None) -> dict[str, Any]:
    """Time a system, and other programs where they are asked for.

    The report has ``system``, ``device``, ``parameters``, ``machine``, measured ``ceilings``; ``runs``, one for each
    kind, size, number of threads and ``min_samples``; ``exponents``; with `peers` what other programs take.
    """
    system = SYSTEMS[name]
    for kind in set(options.kinds).difference(system.kinds):
        raise ValueError(f"kinds of points are {', '.join(system.kinds)}, got {kind!r}")
    amounts = [(kind, n) for kind in options.kinds for n in (options.groups if kind == "apriori" else options.sizes)]
    counts = [int(np.prod(amount)) for _, amount in amounts]
    ceilings, runs = ceilings_of(options.device), []
    for number, (kind, amount) in enumerate(amounts):
        progress(f"timing {kind}, {counts[number]:,} points", sum(counts[:number]), sum(counts))
        for case in system.cases(kind, amount, options):
            runs += [system.as_reported(run) for run in _runs(system, case, options, ceilings)]
    parameters = {**system.parameters, "repeats": options.repeats}
    report: dict[str, Any] = {"system": name, "device": options.device, "parameters": parameters, "machine": describe()}
    report |= {"ceilings": ceilings, "runs": runs, "exponents": _exponents(runs)}
    if options.peers:
        progress("timing other programs in turn with this one", 0, 0)
        report["peers"] = bench_peers(name, system, options)
    return report


def bench_all(given: Mapping[str, Any], most: int, progress: Progress = lambda *_: None) -> dict[str, Any]:
    """Time the headline of each system, each at no more than `most` points, nor more than memory holds."""
    import psutil

    most = min(most, psutil.virtual_memory().available // _BYTES_A_POINT)
    reports = []
    for name in SYSTEMS:
        own = options_of(name, given, headline=True)
        sizes = tuple(dict.fromkeys(min(size, most) for size in own.sizes))
        own = replace(own, sizes=sizes, groups=tuple(_smaller(group, most) for group in own.groups))
        reports.append(bench(name, own, progress))
    return {"system": "all", "device": given.get("device", "cpu"), "reports": reports}


def _smaller(group: tuple[int, int], most: int) -> tuple[int, int]:
    """Return a number and size of apriori clusters, two at least, of no more points than `most` in all."""
    number, size = group
    size = min(size, max(most // 2, 1))
    return max(2, min(number, most // size)), size


def _runs(system: System, case: Case, options: Options, ceilings: dict[str, float]) -> Iterator[dict[str, Any]]:
    """Time a case on each number of threads, on CUDA once."""
    most, work = int(numba.get_num_threads()), case.work()
    numbers = dict.fromkeys(number or most for number in options.threads or doubling(most))
    for number in numbers if options.device == "cpu" else [None]:
        with kernel_threads(number or most):
            run = {**case.facts, "threads": number, **_timed(case, options.device, options.repeats)}
        run |= beside_floor(work, run["total_ms"], ceilings)
        if system.steps:
            run["steps_ms"] = _by_step(run["kernels_ms"], system.steps)
        yield run


def _timed(case: Case, device: str, repeats: int) -> dict[str, Any]:
    """Return times and memory of a case: arrays are on the device before the clock starts, and results stay there."""
    place = device_of(device)
    run: dict[str, Any] = {}

    def through_host() -> Any:
        return place.give(getattr(case.fit(*map(place.take, case.arrays)), case.result))

    if device == "cuda":
        run["host_to_host_ms"] = median_ms(case.host_to_host or through_host, place.finish, repeats)
    fit = partial(case.fit, *map(place.take, case.arrays))
    run["total_ms"] = median_ms(fit, place.finish, repeats)
    run["kernels_ms"] = kernels_ms(fit, place.finish, repeats)
    if case.calls:
        run["calls_ms"] = {name: median_ms(call, place.finish, repeats) for name, call in case.calls.items()}
    run["peak_bytes_per_point"] = place.peak(fit) / max(len(case.arrays[0]), 1)
    return run | case.found(fit())


def _by_step(kernels: Mapping[str, float], steps: Mapping[str, Sequence[str]]) -> dict[str, float]:
    known = {name for names in steps.values() for name in names}
    others = sum(ms for name, ms in kernels.items() if name not in known)
    return {step: sum(kernels.get(name, 0.0) for name in names) if names else others for step, names in steps.items()}


def _exponents(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return how time grows with points: slopes of both as logarithms, of runs that differ in their size alone."""
    names, found = ("kind", "min_samples", "threads"), []
    alike: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for run in runs:
        if "total_ms" in run and "groups" not in run:  # of groups two numbers make the time
            alike[tuple(run.get(name) for name in names)].append((run["points"], run["total_ms"]))
    for which, times in alike.items():
        points, ms = np.log(times).T
        if np.ptp(points):
            found.append(dict(zip(names, which, strict=True)) | {"exponent": float(np.polyfit(points, ms, 1)[0])})
    return found
