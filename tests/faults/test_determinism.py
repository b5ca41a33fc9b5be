"""The same bytes of output from any chunks, workers, threads and speed of these."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import dask
import numpy as np
import pytest
from cases.lanes import in_long_lane
from distributed import Client
from laws.systems import ALONE, FILES, SYSTEMS, Around, Delays, assert_same_output, content, for_file, output, wrapped

from daskclust import io
from daskclust.core.run import graph

RUNS = in_long_lane(100, otherwise=10)
IN_PROCESSES = (0, 5)  # of the runs: starting these takes most of the time
QUICK = (1,)
PLAIN = {"dashboard_address": "127.0.0.1:0", "memory_limit": 0}
PATIENT = {"distributed.comm.timeouts.connect": "600s"}  # a busy machine may be slow to answer


@dataclass(frozen=True)
class Run:
    """Where all systems are run, drawn from a seed."""

    kind: str  # dask's own "threads", "workers" in this process, or "processes", workers in some of their own
    workers: int
    threads: int  # of each worker
    delays: Delays  # of the steps

    @staticmethod
    def draw(rng: np.random.Generator, seed: int) -> Run:
        delays = Delays(seed, float(rng.choice([0.0, 0.0005, 0.003])))
        if seed in IN_PROCESSES:
            return Run("processes", int(rng.integers(1, 3)), int(rng.integers(1, 4)), delays)
        kind = str(rng.choice(["threads", "workers", "workers"]))
        return Run(kind, 1 if kind == "threads" else int(rng.integers(1, 6)), int(rng.integers(1, 9)), delays)

    @contextmanager
    def start(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Let dask compute there."""
        if self.kind != "processes":
            monkeypatch.setattr(graph, ALONE[1], wrapped(graph._alone, self.delays))
        if self.kind == "threads":
            with dask.config.set(scheduler="threads", num_workers=self.threads):
                yield
            return
        processes = self.kind == "processes"
        with (
            dask.config.set(PATIENT),
            Client(n_workers=self.workers, threads_per_worker=self.threads, processes=processes, **PLAIN) as client,
        ):
            if processes:
                client.register_plugin(Around(ALONE, self.delays))
            with dask.config.set(scheduler="dask.distributed"):
                yield


def draw_rows(rng: np.random.Generator, n: int) -> tuple[int, ...]:
    """Return the lengths of some chunks of n rows: equal ones, or any, or some very small ones."""
    count = int(rng.integers(1, 9))
    cuts = rng.integers(1, n, count - 1) if rng.random() < 0.5 else np.arange(1, count) * n // count
    if rng.random() < 0.3:
        cuts = np.append(cuts, [1, n // 2, n // 2 + 1, n - 1])
    return tuple(b - a for a, b in itertools.pairwise([0, *np.unique(cuts).tolist(), n]))


@pytest.mark.parametrize(
    "seed", [seed if seed in QUICK else pytest.param(seed, marks=pytest.mark.slow) for seed in range(RUNS)]
)
def test_the_output_is_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    run = Run.draw(rng, seed)
    with run.start(monkeypatch):
        for name, system in SYSTEMS.items():
            rows, partition = draw_rows(rng, len(system)), str(rng.choice(system.partitions))
            tasks = {
                "daskclust.task-seconds": rng.choice([0, 1e-5, 1e-3]),
                "daskclust.merge-width": rng.choice([2, 64]),
            }
            try:
                with dask.config.set(tasks):
                    assert_same_output(system.cluster(rows, partition), name)
            except BaseException as error:
                error.add_note(f"{name}, chunks {rows} by {partition!r}, {tasks}, {run}")
                raise


# --------------------------------------------------------------------------------------------------------------- files
def of_parquet(file: Path, name: str) -> dict[str, bytes]:
    """Return what is in a Parquet file, whose row groups are the chunks of what was written."""
    return output((io.read_cells if name == "hca" else io.read_hits)(file).assign_attrs(source=""))


@pytest.mark.parametrize(("name", "write", "suffix"), FILES)
def test_files_are_the_same(name: str, write: Callable[..., None], suffix: str, tmp_path: Path) -> None:
    """To the last byte, but for Parquet: there each number is."""
    system = SYSTEMS[name]
    if suffix == ".fcs":  # numbers in float32
        system = replace(system, data=system.data.drop_vars("apriori"))
    files = [tmp_path / f"{k}{suffix}" for k in range(3)]
    rows = (None, len(system) // 3, (1, len(system) - 3, 2))
    for file, chunks in zip(files, rows, strict=True):
        write(for_file(system.cluster(chunks)), file)
    outputs = [of_parquet(file, name) if suffix == ".parquet" else content(file) for file in files]
    assert outputs[0] == outputs[1] == outputs[2]
