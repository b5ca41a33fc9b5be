"""Benchmarks of event building at their smallest size: what they measure is right, how fast is not asked."""

from __future__ import annotations

import json
import sys

import numba
import pytest

from daskclust import EventBuilder
from daskclust.bench import bench_events, bench_stream, events_markdown
from daskclust.cli import main
from daskclust.datasets import timepix

STEPS = ["read", "cluster", "table", "total"]


def test_events():
    before = numba.get_num_threads()
    report = bench_events(20_000, lanes=[1], kinds=("gamma",), repeats=1)
    assert numba.get_num_threads() == before
    (run,) = report["runs"]
    assert (run["kind"], run["lanes"]) == ("gamma", 1)
    assert run["clusters"] == EventBuilder(200.0).fit(timepix(20_000, kind="gamma", rng=0)).n_clusters_
    assert run["mean_size"] == 20_000 / run["clusters"]
    assert list(run["mhits_per_second"]) == STEPS
    assert all(speed > 0 for speed in run["mhits_per_second"].values())
    assert sum(run["kernels_ms"].values()) > 0
    assert run["peak_bytes_per_hit"] > 8  # the labels
    assert (report["system"], report["device"], report["parameters"]["hits"]) == ("events", "cpu", 20_000)
    json.dumps(report)
    head, rule, row = events_markdown(report).splitlines()
    assert head == "| hits | clusters | mean size | lanes | " + " | ".join(f"{step} (Mhit/s)" for step in STEPS) + " |"
    assert rule == "| --- | " + " | ".join(["---:"] * 7) + " |"
    assert row.startswith(f"| gamma | {run['clusters']:,} | {run['mean_size']:.1f} | 1 | ")


def test_lanes_give_the_same_clusters():
    lanes = sorted({1, numba.config.NUMBA_NUM_THREADS})
    runs = bench_events(5000, lanes=lanes, kinds=("pion45", "lead"), repeats=1)["runs"]
    assert [(run["kind"], run["lanes"]) for run in runs] == [(kind, n) for kind in ("pion45", "lead") for n in lanes]
    for kind in ("pion45", "lead"):
        assert len({run["clusters"] for run in runs if run["kind"] == kind}) == 1


def test_a_stream_is_the_offline_answer():
    report = bench_stream(2e5, 1.0)
    assert report["equal"] is True
    assert report["hits_in"] == report["hits_out"] == report["hits_sent"] >= 80_000
    assert report["late_hits"] == 0
    assert report["clusters"] > 0
    assert report["largest_backlog"] <= report["hits_sent"]
    assert report["mhits_per_second"] > 0
    json.dumps(report)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--device", "tpu"), "device must be 'cpu' or 'cuda', got 'tpu'"),
        (("--sizes", "many"), "many"),
        (("--threads", "two"), "two"),
    ],
)
def test_wrong_arguments(monkeypatch, capsys, arguments, words):
    monkeypatch.setattr(sys, "argv", ["daskclust", "bench", "events", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 1
    assert words in capsys.readouterr().err


def test_the_command_writes_the_report(monkeypatch, capsys, tmp_path):
    target = tmp_path / "file.json"
    arguments = ["bench", "events", "--sizes", "2e4", "--threads", "1", "--repeats", "1", "-o", str(target)]
    monkeypatch.setattr(sys, "argv", ["daskclust", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert not exit_.value.code
    report = json.loads(target.read_text())
    assert [(run["kind"], run["lanes"]) for run in report["runs"]] == [
        (kind, 1) for kind in ("gamma", "pion0", "pion45", "lead")
    ]
    assert report["parameters"]["hits"] == 20_000
    assert report["machine"]["versions"]["daskclust"]
    assert events_markdown(report) == capsys.readouterr().out.strip()
