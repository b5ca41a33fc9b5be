"""Benchmarks at their smallest size: what they measure is right, how fast is not asked."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from bench import runner
from bench.command import main
from bench.report import markdown
from bench.runner import SYSTEMS, bench, options_of

SMALL = {
    "clue": {"sizes": (2000, 4000)},
    "events": {"sizes": (3000,), "kinds": ("gamma", "lead")},
    "fof": {"sizes": (1000,)},
    "dbscan": {"sizes": (1000, 2000), "min_samples": (2, 5)},
    "hca": {"sizes": (200, 400), "groups": ((3, 100), (2, 50))},
}


def small(name, **given):
    return bench(name, options_of(name, {"repeats": 1, "threads": (1,), **SMALL[name], **given}))


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_run_has_figures_a_floor_and_a_line(name):
    before, given = numba.get_num_threads(), SMALL[name]
    report = small(name, threads=(1, 0, 1))  # of each number one run
    assert numba.get_num_threads() == before
    kinds = given.get("kinds", SYSTEMS[name].kinds)
    amounts = [n for kind in kinds for n in (given["groups"] if kind == "apriori" else given["sizes"])]
    of_each = [int(np.prod(n)) for n in amounts for _ in given.get("min_samples", (2,))]
    numbers = sorted({1, before})
    assert [run["points"] for run in report["runs"]] == np.repeat(of_each, len(numbers)).tolist()
    for run, first in zip(report["runs"], np.repeat(report["runs"][:: len(numbers)], len(numbers)), strict=True):
        assert sum(run["kernels_ms"].values()) > 0
        assert sum(run.get("steps_ms", run["kernels_ms"]).values()) == pytest.approx(sum(run["kernels_ms"].values()))
        results = {"clue": 25, "hca": 31}.get(name, 8)
        assert run["peak_bytes_per_hit" if name == "events" else "peak_bytes_per_point"] > results
        assert 0 < run["of_roofline"] < 1
        found = "last_height" if name == "hca" else "clusters"
        assert run[found] == first[found] > 0
    json.dumps(report)
    of_runs, *_, ceilings = markdown(report).split("\n\n")
    head, rule, *rows = of_runs.splitlines()
    assert len(rows) == len(report["runs"])
    assert len({line.count("|") for line in (head, rule, *rows)}) == 1
    assert ceilings.startswith("Ceilings of this machine: ")


# --------------------------------------------------------------------------------------------------------------- device
@pytest.fixture
def device(monkeypatch):
    """Let there be a device: arrays of the host, and a pool that grows by 24 kB for a call."""
    pool = SimpleNamespace(free_all_blocks=lambda: None, total_bytes=iter(range(1000, 10**9, 24_000)).__next__)
    stream = SimpleNamespace(synchronize=lambda: None)
    cupy = SimpleNamespace(
        asarray=np.asarray,
        asnumpy=np.asarray,
        cuda=SimpleNamespace(get_current_stream=lambda: stream),
        get_default_memory_pool=lambda: pool,
    )
    monkeypatch.setattr("bench.timing.cupy_module", lambda: cupy)
    ceilings = {"bytes_per_second": 4e12, "operations_per_second": 6e13}
    monkeypatch.setattr(runner, "ceilings_of", {"cuda": ceilings}.__getitem__)


@pytest.mark.parametrize(("name", "n"), [("clue", 2000), ("dbscan", 1000), ("hca", 300)])
def test_on_a_device(device, name, n):
    report = small(name, sizes=(n,), kinds=SYSTEMS[name].kinds[:1], device="cuda", threads=(1, 2), min_samples=(5,))
    (run,) = report["runs"]
    assert run["threads"] is None
    assert run["host_to_host_ms"] > 0
    assert run["peak_bytes_per_point"] == 24_000 / n
    head, _, row = markdown(report).split("\n\n")[0].splitlines()
    assert head.count("|") == row.count("|")


def test_copies_are_not_in_the_time_of_a_device(device, monkeypatch):
    copies = []
    place = SimpleNamespace(take=lambda array: copies.append(1) or array, give=copies.append, finish=lambda: None,
                            peak=lambda call: call() and 0)  # fmt: skip
    monkeypatch.setattr(runner, "device_of", lambda _: place)
    during = []
    monkeypatch.setattr(
        runner, "median_ms", lambda call, *_: (copies.clear(), call(), during.append(len(copies)), 1.0)[-1]
    )
    small("fof", kinds=("cosmo",), device="cuda")
    assert during == [2, 0]  # host to host: there and back; of the fit alone: none


def test_lanes_of_a_device(device, monkeypatch):
    """What it is called with, and what is written down."""
    calls = []

    def cluster_on_gpu(hits, builder, *, window, lanes):
        calls.append((lanes, window))
        return builder.fit(hits).labels_, builder.n_clusters_

    monkeypatch.setattr("daskclust.readout.gpu.cluster_on_gpu", cluster_on_gpu)
    runs = small("events", kinds=("gamma",), device="cuda", threads=(1, 0))["runs"]
    assert {(run["lanes"], run["window"]) for run in runs} == set(calls)
    assert [run["lanes"] for run in runs] == [1, 4]
    for run in runs:
        assert run["lanes"] < 3000 / run["window"]  # no lane goes without a window
        assert list(run["mhits_per_second"]) == ["cluster", "host to host"]
        assert run["floor_ms"] == pytest.approx(1e3 * 20 * 3000 / 4e12)


# ---------------------------------------------------------------------------------------------------------- the command
def test_all(tmp_path, capsys):
    files = [tmp_path / f"all{suffix}" for suffix in (".json", ".md")]
    outputs = [word for file in files for word in ("-o", str(file))]
    main(["all", "--sizes", "600", "--repeats", "1", "--threads", "1", "--peers", *outputs])
    report = json.loads(files[0].read_text())
    assert [part["system"] for part in report["reports"]] == list(SYSTEMS)
    for part in report["reports"]:
        assert all(run["points"] <= 600 for run in part["runs"])
        assert all(run["agrees"] for run in part["peers"]["timed"])
    assert capsys.readouterr().out == files[1].read_text() == f"{markdown(report)}\n"


@pytest.mark.parametrize(
    "line",
    ["stream --sizes 9", "clue --rate 1", "fof --min-samples 3", "all --kinds cosmo", "fof --peers --device cuda",
     "hca --groups 100", "clue -o report.txt", "clue -o no/such/a.md"],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_before_any_work(line):
    with pytest.raises(SystemExit, match="2"):
        main(line.split())
