"""Scripts of the page on scaling, and those that make its records: formulas against exact cases, and tiny runs."""

import asyncio
import importlib
import itertools
import json
import sys
from functools import partial
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed import Client
from distributed.shuffle._rechunk import P2PRechunkLayer

from daskclust import io
from daskclust.core.run.workers import find_workers
from daskclust.core.space.partition import Partition

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "explanation" / "scaling"))
import model
from points import fitted
from scheduler import config_of, simulated


@pytest.mark.parametrize("period", [False, True])
@pytest.mark.parametrize("grid", [(4,), (2, 3), (1, 4, 2), (2, 2, 2), (6, 1, 3)])
def test_the_share_of_halos_is_that_of_a_lattice(grid, period):
    """Points in the middles of cells of side 1; planes between cells, and a reach of whole cells: exact."""
    side, reach = 12, 2
    X = np.stack(np.meshgrid(*[np.arange(side) + 0.5] * len(grid), indexing="ij"), axis=-1).reshape(-1, len(grid))
    cuts = [np.arange(1, blocks) * (side / blocks) for blocks in grid]
    rows = itertools.accumulate(grid[:-1], lambda a, b: a * b)
    cuts = (cuts[0], *([cut] * count for cut, count in zip(cuts[1:], rows, strict=True)))
    partition = Partition(cuts=cuts, period=(float(side) if period else 0.0,) * len(grid), halo=float(reach))
    halo = sum(int((~chunk.owned).sum()) for chunk in partition.split({"X": X}, 0))
    assert halo == round(len(X) * model.share_of_halos(side, grid, reach, period=period))
    assert halo > 0


@pytest.mark.parametrize(
    ("case", "order"),
    [*((case, "random") for case in ("fof", "clue-space", "clue-layers", "events", "hca")), ("fof", "blocks")],
)
def test_pieces_of_the_exchange_are_those_of_the_engine(case, order):
    n, chunks, workers, shards = 40_000, 80, 3, 0
    with dask.config.set(config_of(workers)):
        here = find_workers()
        for layer in fitted(case, n, n // chunks, order)[0].dask.layers.values():
            if isinstance(layer, P2PRechunkLayer):
                shards += len(layer.chunks_input[0]) * len(layer.chunks[1])
    assert shards == model.shards_of(case, order, chunks, n, here)


def report_of(name, tmp_path, line):
    target = tmp_path / "report.json"
    importlib.import_module(name).main([str(target), *line.split()])
    return json.loads(target.read_text())


@pytest.fixture
def in_threads(monkeypatch):
    """Let workers be threads of this process: they start in no time, and have its kernels."""

    def start(count, **_):
        return Client(n_workers=count, threads_per_worker=1, processes=False, dashboard_address=":0")

    for name in ("runs", "large"):
        monkeypatch.setattr(importlib.import_module(name), "start", start)


@pytest.mark.slow
def test_tiny_runs(tmp_path, in_threads):
    line = "--cases fof --orders random --rows 100 200 --chunks 70 --workers 2 --exchanges 5 10"
    report = report_of("runs", tmp_path, line)
    small, _ = report["runs"]
    assert [(run["points"], run["chunks"]) for run in report["runs"]] == [(7000, 70), (14_000, 70)]
    assert small["tasks"] > 10 * 70
    assert min(small[name] for name in ("wall_s", "worker_s", "written_bytes", "peak_bytes", "kept_bytes")) > 0
    assert [each["count"] for each in report["exchanges"]] == [5, 10]
    scheduler = {
        "system": "fof", "order": "random", "workers": 1000, "tasks": 700, "chunks": 70, "build_s": 1.0,
        "graph_bytes": 7000, "task_s": 1e-4, "submit_s": 0.1, "task_bytes": 6000,
    }  # fmt: skip
    known = model.fit(report["runs"], report["exchanges"], [scheduler])
    for name, (measured, said) in model.compare(known, small, 2).items():
        assert measured > 0, name
        assert said > 0 or name == "written (B)", name  # of so few points it is what pieces without any take
    assert model.predict(known, 1e12, 1000, 4e9).chunks > model.predict(known, 1e12, 1000, 64e9).chunks >= 10_000


def test_tiny_chunks(tmp_path):
    with dask.config.set({"daskclust.task-seconds": 1e-4}):  # several tasks of points that are few
        report = report_of("chunks", tmp_path, "--points 10000 --repeats 1")
    assert [found["points"] for found in report["runs"]] == [10_000] * 5 + [1000]
    assert min(found["tasks"] for found in report["runs"]) >= 2


@pytest.mark.parametrize("case", ["fof", "clue", "events"])
def test_files_have_the_points(case, tmp_path):
    path = importlib.import_module("large")._file_of(case, 3000, tmp_path)
    read = {"fof": io.open_particles, "clue": io.read_hits, "events": io.open_tpx3}[case]
    assert next(iter(read(path).sizes.values())) == 3000
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_tiny_file(tmp_path, in_threads):
    line = f"--cases fof --points 20000 --workers 1 --folder {tmp_path}"
    (found,) = report_of("large", tmp_path, line)["runs"]
    assert found["clusters"] > 10
    assert found["bytes"] > 20_000
    assert found["spilled_bytes"] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_tiny_thesis(tmp_path):
    report = report_of("thesis", tmp_path, "--size 300 --total 400")
    assert [(run["size"], run["groups"], run["points"]) for run in report["ratios"]] == [(100, 4, 400), (200, 2, 400)]
    assert all(-1 <= each["correlation"] <= 1 for each in report["heights"])


@pytest.mark.parametrize("workers", [1, 7])
def test_a_scheduler_with_pretended_workers_does_all_tasks(workers):
    with dask.config.set({"daskclust.task-seconds": 0}):
        found = asyncio.run(simulated(partial(fitted, "fof", 4000, 1000), workers))
    assert found["workers"] == workers
    assert found["done"] == found["tasks"] > 4 * 5
    assert found["sent_bytes"] > 100
