"""Time the systems: one runner for all of their cases."""

import sys
from dataclasses import replace
from functools import partial

import numba
import numpy as np

from bench.cases import Options
from bench.cases.clue import CLUE
from bench.cases.dbscan import DBSCAN, FOF
from bench.cases.events import EVENTS
from bench.cases.hca import HCA
from bench.cases.hdbscan import EMST, HDBSCAN
from bench.peers import bench_peers
from bench.roofline import beside_floor, ceilings_of
from bench.timing import device_of, kernel_threads, kernels_ms, median_ms
from daskclust.machine import describe

SYSTEMS = {"clue": CLUE, "events": EVENTS, "fof": FOF, "dbscan": DBSCAN, "emst": EMST, "hdbscan": HDBSCAN, "hca": HCA}
"""By name, in the order of ``all``."""


def options_of(name, given, *, headline=False):
    """Return the options of a system where these are given and the others are the usual ones."""
    system = SYSTEMS[name]
    own = {"kinds": system.kinds, **system.usual, **(system.headline if headline else {})}
    return Options(**{**own, **given})


def bench(name, options):
    """Time a system, and other programs where they are asked for.

    The report has ``system``, ``device``, ``parameters``, ``machine``, measured ``ceilings``; ``runs``, one for each
    kind, size, number of threads and ``min_samples``; with `peers` what other programs take.
    """
    system = SYSTEMS[name]
    for kind in set(options.kinds).difference(system.kinds):
        raise ValueError(f"kinds of points are {', '.join(system.kinds)}, got {kind!r}")
    amounts = [(kind, n) for kind in options.kinds for n in (options.groups if kind == "apriori" else options.sizes)]
    ceilings, runs = ceilings_of(options.device), []
    for kind, amount in amounts:
        sys.stderr.write(f"timing {name}: {kind}, {np.prod(amount):,} points\n")
        for case in system.cases(kind, amount, options):
            runs += [system.as_reported(run) for run in _runs(system, case, options, ceilings)]
    report = {"system": name, "title": system.title, "device": options.device, "machine": describe()}
    report |= {"parameters": {**system.parameters, "repeats": options.repeats}, "ceilings": ceilings, "runs": runs}
    if options.peers:
        sys.stderr.write("timing other programs in turn with this one\n")
        report["peers"] = bench_peers(name, system, options)
    return report


def bench_all(given, most):
    """Time the headline of each system, each at no more than `most` points; a point takes up to 100 bytes of memory."""
    reports = []
    for name in SYSTEMS:
        own = options_of(name, given, headline=True)
        sizes = tuple(dict.fromkeys(min(size, most) for size in own.sizes))
        own = replace(own, sizes=sizes, groups=own.groups if most >= 100_000 else ((2, most // 2),))
        reports.append(bench(name, own))
    return {"system": "all", "device": given.get("device", "cpu"), "reports": reports}


def _runs(system, case, options, ceilings):
    """Time a case on each number of threads, on CUDA once."""
    most, work = int(numba.get_num_threads()), case.work()
    numbers = dict.fromkeys(number or most for number in options.threads)
    for number in numbers if options.device == "cpu" else [None]:
        with kernel_threads(number or most):
            run = {**case.facts, "threads": number, **_timed(case, options.device, options.repeats)}
        run |= beside_floor(work, run["total_ms"], ceilings)
        if system.steps:
            run["steps_ms"] = _by_step(run["kernels_ms"], system.steps)
        yield run


def _timed(case, device, repeats):
    """Return times and memory of a case: arrays are on the device before the clock starts, and results stay there."""
    place, run = device_of(device), {}

    def through_host():
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


def _by_step(kernels, steps):
    known = {name for names in steps.values() for name in names}
    others = sum(ms for name, ms in kernels.items() if name not in known)
    return {step: sum(kernels.get(name, 0.0) for name in names) if names else others for step, names in steps.items()}
