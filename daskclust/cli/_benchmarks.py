"""The benchmarks of ``daskclust bench``: what each takes, its usual values, and how it is run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daskclust.cli._work import Work

Report = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """What a benchmark is asked for, as it is given on the command line or by default; each uses what it takes."""

    sizes: str = "1e6"
    kinds: str = ""
    groups: str = "100x1000"
    min_samples: str = "10"
    threads: str = "0"
    repeats: int = 7
    device: str = "cpu"
    peers: bool = False
    rate: float = 10e6
    seconds: float = 60.0
    workers: str = "2"
    memory_limit: str = "1GiB"
    blocks: str = ""
    orders: str = "random,space"
    merges: str = "4e6x125,4e6x500"
    scheduler: str | None = None

    def pairs(self, name: str, what: str) -> list[tuple[int, int]]:
        """Return the pairs of whole numbers in a field, ``100x1000, 4e6x500``; `what` they are is for the message."""
        text = getattr(self, name)
        try:
            return [(round(float(a)), round(float(b))) for a, b in (pair.split("x") for pair in text.split(","))]
        except (ValueError, OverflowError):
            raise ValueError(f"--{name} must be {what}, got {text!r}") from None

    def numbers(self, name: str, least: int = 1) -> list[int]:
        """Return the whole numbers in a field, ``1e5, 2000``."""
        text = getattr(self, name)
        try:
            numbers = [round(float(number)) for number in text.split(",")]
        except (ValueError, OverflowError):
            numbers = []
        if not numbers or min(numbers) < least:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} must be whole numbers from {least} on, such as 1e5,2000, got {text!r}")
        return numbers

    def one_of_threads(self, system: str) -> int:
        """Return the only number of threads."""
        threads = self.numbers("threads", least=0)
        if len(threads) > 1:
            raise ValueError(
                f"{system} is timed with one number of threads, got --threads {self.threads}; run it once for each"
            )
        return threads[0]


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    Parameters
    ----------
    run : function
        Returns the report.
    takes : tuple of str
        Options that it has a use for.
    usual : mapping
        Their values where they are not those of `Asked`.
    headline : mapping
        The same where it is one of ``all``; None: it is not.
    """

    run: Callable[[Work, Asked], Report]
    takes: tuple[str, ...]
    usual: Mapping[str, Any]
    headline: Mapping[str, Any] | None = None

    def asked(self, given: Mapping[str, Any]) -> Asked:
        """Return what is asked for where these options are given."""
        return replace(Asked(**self.usual), **given)


# ---------------------------------------------------------------------------------------------------------------- runs
def _clue(work: Work, asked: Asked) -> Report:
    from daskclust.bench import bench_clue

    threads = asked.one_of_threads("clue")

    def call(size: int) -> Report:
        return bench_clue([size], device=asked.device, threads=threads, repeats=asked.repeats)

    return _with_peers("clue", work, asked, _one_by_one(work, asked.numbers("sizes"), call))


def _events(work: Work, asked: Asked) -> Report:
    from daskclust.bench import bench_events

    sizes, threads = asked.numbers("sizes"), asked.numbers("threads", least=0)
    if len(sizes) > 1:
        raise ValueError(f"events are timed at one size, the hits of each stream, got --sizes {asked.sizes}; give one")
    lanes = None if threads == [0] else threads
    kinds = asked.kinds.split(",")
    report = bench_events(sizes[0], device=asked.device, lanes=lanes, kinds=kinds, repeats=asked.repeats)
    return _with_peers("events", work, asked, report)


def _stream(work: Work, asked: Asked) -> Report:
    from daskclust.bench import bench_stream
    from daskclust.core.data.checks import check_positive

    rate, seconds = check_positive("--rate", asked.rate), check_positive("--seconds", asked.seconds)
    work.begin(f"{rate:,.0f} hits/s for {seconds:g} s, and some to begin")
    return bench_stream(rate, seconds)


def _dbscan(work: Work, asked: Asked) -> Report:
    return _of_neighbours("dbscan", asked.numbers("min_samples"), work, asked)


def _fof(work: Work, asked: Asked) -> Report:
    return _of_neighbours("fof", None, work, asked)


def _of_neighbours(system: str, min_samples: list[int] | None, work: Work, asked: Asked) -> Report:
    from daskclust.bench import bench_dbscan

    kinds, threads = asked.kinds.split(","), asked.numbers("threads", least=0)
    options: dict[str, Any] = {"device": asked.device, "threads": threads, "repeats": asked.repeats}

    def call(size: int) -> Report:
        return bench_dbscan([size], kinds=kinds, min_samples=min_samples, **options)

    report = _one_by_one(work, asked.numbers("sizes"), call)
    report["runs"].sort(key=lambda run: kinds.index(run["kind"]))  # stable: sizes stay in order
    return _with_peers(system, work, asked, report)


def _hca(work: Work, asked: Asked) -> Report:
    from daskclust.bench import bench_hca

    groups = asked.pairs("groups", "numbers and sizes of clusters, e.g. 100x1000")
    options: dict[str, Any] = {"device": asked.device, "repeats": asked.repeats}
    options |= {"threads": asked.numbers("threads", least=0), "groups": groups, "kinds": asked.kinds.split(",")}
    return _with_peers("hca", work, asked, bench_hca(asked.numbers("sizes"), **options))


def _thesis(work: Work, asked: Asked) -> Report:
    from daskclust.bench import bench_thesis

    sizes, threads = asked.numbers("sizes"), asked.one_of_threads("thesis")
    if len(sizes) != 2:
        raise ValueError(
            f"thesis takes a size of single sets and one of apriori clusters, got --sizes {asked.sizes}; give two"
        )
    return bench_thesis(sizes[0], total=sizes[1], threads=threads, repeats=asked.repeats)


def _chunks(work: Work, asked: Asked) -> Report:
    from daskclust.bench import bench_chunks

    return bench_chunks(asked.numbers("sizes"), systems=asked.kinds.split(","), repeats=asked.repeats)


def _large(work: Work, asked: Asked) -> Report:
    from daskclust.bench import bench_large

    workers = asked.numbers("workers")
    if len(workers) > 1:
        raise ValueError(f"large is timed with one number of workers, got --workers {asked.workers}; run it for each")
    systems, limit = asked.kinds.split(","), asked.memory_limit
    return bench_large(asked.numbers("sizes"), systems=systems, workers=workers[0], memory_limit=limit)


def _scaling(work: Work, asked: Asked) -> Report:
    from daskclust.bench import bench_scaling

    return bench_scaling(
        asked.kinds.split(","),
        asked.numbers("sizes") if asked.sizes else None,
        blocks=asked.numbers("blocks") if asked.blocks else None,
        workers=asked.numbers("workers"),
        orders=asked.orders.split(","),
        merges=asked.pairs("merges", "numbers of points and chunks, e.g. 4e6x500") if asked.merges else (),
        memory_limit=asked.memory_limit,
        scheduler=asked.scheduler,
        say=work.begin,
    )


def _one_by_one(work: Work, sizes: list[int], call: Callable[[int], Report]) -> Report:
    """Time each size on its own, and put the reports together; points that are done are shown."""
    work.begin("timing", sum(sizes), "points")
    report: Report = {}
    for number, size in enumerate(sizes):
        work.at(sum(sizes[:number]), f"timing {size:,} points")
        part = call(size)
        report = {**part, "runs": report.get("runs", []) + part["runs"]}
    return report


def _with_peers(system: str, work: Work, asked: Asked, report: Report) -> Report:
    """Add the times of other programs where they are asked for."""
    if not asked.peers:
        return report
    from daskclust.bench import bench_peers

    work.begin(f"timing {system} and other programs in turn")
    options: dict[str, Any] = {"kinds": asked.kinds.split(",") if asked.kinds else None}
    threads = asked.numbers("threads", least=0)
    options |= {"threads": 0 if 0 in threads else max(threads), "repeats": min(asked.repeats, 3)}
    if system == "dbscan":
        options["min_samples"] = asked.numbers("min_samples")[0]
    return {**report, "peers": bench_peers(system, asked.numbers("sizes"), **options)}


# ----------------------------------------------------------------------------------------------------------------- all
_BYTES_A_POINT = 100  # of friends-of-friends, at the peak: 70, those of the points among them


def _all(work: Work, asked: Asked) -> Report:
    """Run every benchmark that has a headline, each with its own values; `sizes` is the most points of any."""
    most = min(asked.numbers("sizes")[0], _available_bytes() // _BYTES_A_POINT)
    if "," in asked.sizes:
        raise ValueError(f"all takes one number, the most points of any benchmark, got --sizes {asked.sizes}; give one")
    reports = []
    for system, benchmark in BENCHMARKS.items():
        if benchmark.headline is None or (asked.device != "cpu" and "device" not in benchmark.takes):
            continue
        own = Asked(**{**benchmark.usual, **benchmark.headline})
        sizes = [min(size, most) for size in own.numbers("sizes")]
        if system != "thesis":  # whose sizes are of two things
            sizes = list(dict.fromkeys(sizes))
        given: dict[str, Any] = {"sizes": ",".join(map(str, sizes)), "device": asked.device, "peers": asked.peers}
        given |= {"groups": _groups(own.groups, most)}
        given |= {"threads": asked.threads} if asked.threads else {}
        given |= {"repeats": asked.repeats} if asked.repeats else {}
        work.begin(f"timing {system}")
        reports.append(benchmark.run(work, replace(own, **given)))
    return {"system": "all", "device": asked.device, "reports": reports}


def _groups(groups: str, most: int) -> str:
    """Return numbers and sizes of apriori clusters of no more points than `most` in all, and of two at least."""
    number, size = map(int, groups.split("x"))
    size = min(size, max(most // 2, 1))
    return f"{max(2, min(number, most // size))}x{size}"


def _available_bytes() -> int:
    """Return the memory that is free for this process, as far as the system tells."""
    facts = Path("/proc/meminfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    available = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")]
    return available[0] if available else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


_SIZED = ("sizes", "threads", "repeats", "device", "peers")
_OF_SYSTEMS = "clue-space,clue-layers,events,fof,dbscan,hca"
_OF_PARTICLES = {"kinds": "cosmo,ss2d,ss3d,uniform2d"}
BENCHMARKS = {
    "clue": Benchmark(
        _clue, _SIZED, {"sizes": "1e5,3e5,1e6,3e6,1e7"},
        headline={"sizes": "1e5,2e5,3e5,4e5,5e5,6e5,7e5,8e5,9e5,1e6"},  # figure 5; the last is table 2
    ),
    "events": Benchmark(
        _events, (*_SIZED, "kinds"), {"sizes": "4e6", "kinds": "gamma,pion0,pion45,lead"},
        headline={},
    ),
    "stream": Benchmark(_stream, ("rate", "seconds"), {}),
    "fof": Benchmark(
        _fof, (*_SIZED, "kinds"), _OF_PARTICLES,
        headline={"sizes": "1e6,3.7e7", "kinds": "cosmo", "repeats": 3},  # ArborX's 37 million
    ),
    "dbscan": Benchmark(
        _dbscan, (*_SIZED, "kinds", "min_samples"), _OF_PARTICLES,
        headline={"repeats": 3},
    ),
    "hca": Benchmark(
        _hca, (*_SIZED, "kinds", "groups"),
        {"sizes": "5e3,1e4,2e4,4.4e4", "kinds": "gaussian,cytometry,apriori", "threads": "1,0", "repeats": 3},
        headline={},
    ),
    "thesis": Benchmark(
        _thesis, ("sizes", "threads", "repeats"), {"sizes": "4.4e4,1e6", "repeats": 1},
        headline={},
    ),
    "chunks": Benchmark(
        _chunks, ("sizes", "kinds", "repeats"),
        {"sizes": "1e7", "kinds": _OF_SYSTEMS, "repeats": 3},
    ),
    "large": Benchmark(
        _large, ("sizes", "kinds", "workers", "memory_limit"), {"sizes": "1e8", "kinds": "fof,clue,events"},
    ),
    "scaling": Benchmark(
        _scaling, ("sizes", "kinds", "workers", "memory_limit", "blocks", "orders", "merges", "scheduler"),
        {"sizes": "", "kinds": _OF_SYSTEMS, "workers": "1,2,4", "memory_limit": "2GB"},
    ),
    "all": Benchmark(_all, _SIZED, {"sizes": "3.7e7", "threads": "", "repeats": 0}),
}  # fmt: skip
"""By name; `all` runs those that have a headline, in this order."""
