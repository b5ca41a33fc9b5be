"""What chunks cost, and files larger than the memory of workers: reports of small runs."""

from __future__ import annotations

import json

import dask
import numpy as np
import pytest

from daskclust.bench import bench_chunks, bench_large, markdown
from daskclust.bench.chunked import FILES, _file_of
from daskclust.cli import app
from daskclust.cli._run import run


@pytest.mark.parametrize("system", ["clue-space", "clue-layers", "events", "fof", "dbscan", "hca"])
def test_chunks_are_timed_against_all_at_once(system):
    with dask.config.set({"daskclust.task-seconds": 1e-4}):  # several tasks of points that are few
        report = bench_chunks([20_000], systems=[system], repeats=1)
    (found,) = report["runs"]
    assert found["points"] == (2000 if system == "hca" else 20_000)
    assert found["ratio"] == pytest.approx(found["chunked_ms"] / found["memory_ms"])
    assert found["tasks"] >= 2
    assert found["longest_s"] > 0
    assert 0 <= found["in_range"] <= 1
    assert f"| {system} | {found['points']:,} |" in markdown(report)


class Answer(np.ndarray):
    """In memory, and lazy."""

    def persist(self, **_):
        return self

    def compute(self):
        return self


def test_answers_are_compared(monkeypatch):
    calls = iter(range(10))
    monkeypatch.setattr("daskclust.bench.chunked.results_of", lambda *_: [np.full(3, next(calls)).view(Answer)])
    with pytest.raises(RuntimeError, match="fof: chunks of 1,000 points gave another answer"):
        bench_chunks([1000], systems=["fof"])


@pytest.mark.parametrize("system", FILES)
def test_files_have_the_points(system, tmp_path):
    from daskclust import io

    path = _file_of(system, 3000, tmp_path)
    read = {"fof": io.open_particles, "clue": io.read_hits, "events": io.open_tpx3}[system]
    assert next(iter(read(path).sizes.values())) == 3000
    assert list(tmp_path.iterdir()) == [path]


def test_workers_are_watched(tmp_path):
    report = bench_large([40_000], workers=1, memory_limit="900MB", folder=tmp_path)
    assert [found["system"] for found in report["runs"]] == list(FILES)
    for found in report["runs"]:
        assert found["clusters"] > 10
        assert found["bytes"] > 40_000
        assert len(found["process_bytes"]) == 4
        assert found["spilled_bytes"] == 0
    assert not list(tmp_path.iterdir())
    assert "| fof | zarr | 40,000 |" in markdown(report)


def test_the_command(capsys):
    assert run(app, ["bench", "chunks", "--kinds", "fof", "--sizes", "1e4", "--repeats", "1", "--json", "--quiet"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [found["system"] for found in report["runs"]] == ["fof"]
    assert run(app, ["bench", "chunks", "--kinds", "fof,voids"]) == 1
    assert "got 'voids'" in capsys.readouterr().err
    assert run(app, ["bench", "large", "--threads", "2"]) == 1
    assert "--threads is not for the benchmark large" in capsys.readouterr().err
    assert run(app, ["bench", "large", "--workers", "1,2"]) == 1
    assert "got --workers 1,2" in capsys.readouterr().err
