"""Benchmarks of event building at their smallest size: what they measure is right, how fast is not asked."""

from __future__ import annotations

import json
import multiprocessing
import socket
import sys
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from daskclust import EventBuilder
from daskclust.bench import bench_clue, bench_events, bench_stream, markdown, stream
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
    head, rule, row, nothing, ceilings = markdown(report).splitlines()
    speeds = " | ".join(f"{step} (Mhit/s)" for step in STEPS)
    assert head == f"| hits | clusters | mean size | lanes | {speeds} | floor (ms) | of roofline |"
    assert rule == "| --- | " + " | ".join(["---:"] * 9) + " |"
    assert nothing == ""
    assert ceilings.startswith("Ceilings of this machine: ")
    assert row.startswith(f"| gamma | {run['clusters']:,} | {run['mean_size']:.1f} | 1 | ")


def test_lanes_give_the_same_clusters():
    lanes = sorted({1, numba.config.NUMBA_NUM_THREADS})
    runs = bench_events(5000, lanes=lanes, kinds=("pion45", "lead"), repeats=1)["runs"]
    assert [(run["kind"], run["lanes"]) for run in runs] == [(kind, n) for kind in ("pion45", "lead") for n in lanes]
    for kind in ("pion45", "lead"):
        assert len({run["clusters"] for run in runs if run["kind"] == kind}) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: bench_events(2000, lanes=[1, 10**4], kinds=("gamma",), repeats=1),
        lambda: bench_clue([2000], threads=1, repeats=0),
    ],
)
def test_the_number_of_threads_is_restored_after_an_error(call):
    before = numba.get_num_threads()
    try:
        with pytest.raises(ValueError, match=r"threads must be between 1 and|no median"):
            call()
        assert numba.get_num_threads() == before
    finally:
        numba.set_num_threads(before)


def test_lanes_of_a_gpu(monkeypatch):
    """Without one: what it is called with, and what is written down."""
    calls = []

    def cluster_on_gpu(hits, builder, *, window, lanes):
        calls.append((lanes, window))
        return builder.fit(hits).labels_, builder.n_clusters_

    waiting = SimpleNamespace(synchronize=lambda: None)
    current = SimpleNamespace(get_current_stream=lambda: waiting)
    cupy = SimpleNamespace(asarray=np.asarray, asnumpy=np.asarray, cuda=current)
    monkeypatch.setattr("daskclust.bench._timing.cupy_module", lambda: cupy)
    ceilings = {"bytes_per_second": 4e12, "operations_per_second": 6e13}
    monkeypatch.setattr("daskclust.bench.events.ceilings_of", {"cuda": ceilings}.__getitem__)
    monkeypatch.setattr("daskclust.readout.gpu.cluster_on_gpu", cluster_on_gpu)
    (run,) = bench_events(2000, device="cuda", kinds=("gamma",), repeats=1)["runs"]
    assert set(calls) == {(2, run["window"])}
    assert run["lanes"] == 2
    assert run["lanes"] < 2000 / run["window"]  # no lane goes without a window
    assert list(run["mhits_per_second"]) == ["cluster", "host to host"]
    assert run["floor_ms"] == pytest.approx(1e3 * 20 * 2000 / 4e12)
    runs = bench_events(2000, device="cuda", lanes=[1, 3], kinds=("gamma",), repeats=1)["runs"]
    assert [run["lanes"] for run in runs] == [1, 3]
    assert {lanes for lanes, _ in calls} == {1, 2, 3}


# ----------------------------------------------------------------------------------------------------- through a socket
def test_a_stream_is_the_offline_answer():
    report = bench_stream(2e5, 1.0, buffer=1000)
    assert report["equal"] is True
    assert report["hits_in"] == report["hits_out"] == report["hits_sent"] >= 80_000
    assert report["late_hits"] == 0
    assert report["clusters"] > 0
    assert report["largest_backlog"] <= 1000 + 2e5 * 20e-6  # a round, and what its disorder makes wait
    # nobody is done before all has been sent, of which the last 40th of a template is sent at its beginning
    assert report["seconds"] >= 0.95 * report["hits_sent"] / 2e5
    assert report["mhits_per_second"] == report["hits_in"] / report["seconds"] / 1e6
    assert multiprocessing.active_children() == []
    json.dumps(report)


def test_nobody_goes_on_sending_after_an_error(monkeypatch):
    def fails(*_):
        raise ArithmeticError("rows")

    monkeypatch.setattr(stream, "_same_rows", fails)
    with pytest.raises(ArithmeticError, match="rows") as raised:
        bench_stream(2e5, 5.0, buffer=1000)
    assert multiprocessing.active_children() == []
    del raised


def test_a_sender_that_finds_nobody_says_so(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # and does not listen
        port = silent.getsockname()[1]
        with pytest.raises(ConnectionRefusedError, match=f"nobody listens at port {port}"):
            stream._send(port, np.zeros(1, np.uint64), 1, 1)


# ------------------------------------------------------------------------------------------------------- the command
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--device", "tpu"), "--device must be one of cpu, cuda, got 'tpu'"),
        (("--sizes", "many"), "many"),
        (("--threads", "two"), "two"),
    ],
)
def test_wrong_arguments(command, arguments, words):
    code, _, err = command("bench", "events", *arguments)
    assert code == (2 if "must be one of" in words else 1)  # a choice that there is not is wrong usage
    assert words in err


@pytest.mark.parametrize(
    ("system", "option", "value"),
    [
        ("stream", "--device", "cuda"),
        ("stream", "--device", "cpu"),
        ("stream", "--sizes", "1e5"),
        ("stream", "--threads", "1"),
        ("stream", "--repeats", "3"),
        ("events", "--rate", "1e6"),
        ("clue", "--seconds", "5"),
    ],
)
def test_options_of_other_benchmarks_are_refused(command, system, option, value):
    code, _, err = command("bench", system, option, value)
    assert code == 1
    assert err == f"error: {option} is not for the benchmark {system}\nhint: leave it out\n"


def test_clue_is_timed_with_one_number_of_threads(command):
    code, _, err = command("bench", "clue", "--threads", "1,2")
    assert code == 1
    assert "clue is timed with one number of threads, got --threads 1,2" in err


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
    assert markdown(report) == capsys.readouterr().out.strip()
