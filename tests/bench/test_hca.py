"""Benchmarks of Mahalanobis clustering at their smallest size: what they measure is right, how fast is not asked."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from daskclust import MahalanobisHCA
from daskclust.bench import bench_hca, hca, markdown
from daskclust.datasets import apriori_gaussians, cytometry

STEPS = ["first neighbours", "merges", "other kernels"]


def test_hca():
    before = numba.get_num_threads()
    report = bench_hca([300, 600], groups=[(3, 100)], threads=[1], repeats=1)
    assert numba.get_num_threads() == before
    runs = {(run["kind"], run["points"]): run for run in report["runs"]}
    assert list(runs) == [(kind, n) for kind in ("gaussian", "cytometry") for n in (300, 600)] + [("apriori", 300)]
    for (kind, n), run in runs.items():
        assert (run["channels"], run["threads"]) == (20 if kind == "apriori" else 14, 1)
        assert run["us_per_merge"] == run["total_ms"] * 1e3 / (n - 1)
        assert list(run["steps_ms"]) == STEPS
        assert sum(run["steps_ms"].values()) == pytest.approx(sum(run["kernels_ms"].values()))
        assert run["steps_ms"]["merges"] > 0
        assert run["peak_bytes_per_point"] > 31  # the linkage
    cells = MahalanobisHCA(0.5).fit(cytometry(600, 14, rng=0)["X"].values)
    assert runs["cytometry", 600]["last_height"] == cells.linkage_[-1, 2]
    ds = apriori_gaussians(3, 100, channels=20, rng=0)
    groups = MahalanobisHCA(100).fit(ds["X"].values, apriori=ds["apriori"].values)
    assert runs["apriori", 300]["last_height"] == groups.linkage_[-1, 2]
    assert (runs["apriori", 300]["groups"], runs["apriori", 300]["threshold"]) == (3, 100)
    assert [(each["kind"], each["threads"]) for each in report["exponents"]] == [("gaussian", 1), ("cytometry", 1)]
    times = [runs["gaussian", n]["total_ms"] for n in (300, 600)]
    assert report["exponents"][0]["exponent"] == pytest.approx(np.log2(times[1] / times[0]))
    assert (report["system"], report["device"]) == ("hca", "cpu")
    assert report["machine"]["versions"]["daskclust"]
    json.dumps(report)


def test_table():
    report = bench_hca([200, 300], kinds=["cytometry", "apriori"], groups=[(2, 50)], threads=[1], repeats=1)
    of_runs, grows, _ = markdown(report).split("\n\n")
    head, rule, *rows = of_runs.splitlines()
    assert head == (
        "| points of | points | threads | first neighbours (ms) | merges (ms) | other kernels (ms) | total (ms) "
        "| us/merge | peak (B/point) | floor (ms) | of roofline |"
    )
    assert rule == "| --- | " + " | ".join(["---:"] * 10) + " |"
    assert [row.split(" | ")[:3] for row in rows] == [
        ["| cytometry", "200 x 14", "1"],
        ["| cytometry", "300 x 14", "1"],
        ["| apriori, 2 clusters", "100 x 20", "1"],
    ]
    assert grows == f"Time grows as: cytometry, threads 1: n^{report['exponents'][0]['exponent']:.2f}"
    one = bench_hca([200], kinds=["cytometry"], threads=[1], repeats=1)
    assert one["exponents"] == []
    assert "Time grows" not in markdown(one)


def test_threads_give_the_same():
    most = numba.config.NUMBA_NUM_THREADS
    report = bench_hca([400], kinds=["gaussian", "apriori"], groups=[(4, 120)], threads=[1, most, 1], repeats=1)
    assert [run["threads"] for run in report["runs"]] == sorted({1, most}) * 2
    for kind in ("gaussian", "apriori"):
        assert len({run["last_height"] for run in report["runs"] if run["kind"] == kind}) == 1


def test_on_a_gpu(monkeypatch):
    """Without one: what is called, and what is written down."""
    pool = SimpleNamespace(free_all_blocks=lambda: None, total_bytes=iter([1000, 13_000]).__next__)
    waiting = SimpleNamespace(synchronize=lambda: None)
    cupy = SimpleNamespace(
        asarray=np.asarray,
        asnumpy=np.asarray,
        cuda=SimpleNamespace(get_current_stream=lambda: waiting),
        get_default_memory_pool=lambda: pool,
    )
    monkeypatch.setattr("daskclust.bench._timing.cupy_module", lambda: cupy)
    ceilings = {"bytes_per_second": 4e12, "operations_per_second": 6e13}
    monkeypatch.setattr("daskclust.bench.hca.ceilings_of", {"cuda": ceilings}.__getitem__)
    report = bench_hca([300], kinds=["cytometry"], device="cuda", repeats=1)
    (run,) = report["runs"]
    assert run["threads"] is None
    assert run["host_to_host_ms"] > 0
    assert run["peak_bytes_per_point"] == 40.0
    head, _, row = markdown(report).split("\n\n")[0].splitlines()
    assert head.endswith("| host to host (ms) | peak (B/point) | floor (ms) | of roofline |")
    assert len(head.split("|")) == len(row.split("|"))


def test_what_is_wrong():
    with pytest.raises(ValueError, match="kinds of points are gaussian, cytometry, apriori, got 'moons'"):
        bench_hca([100], kinds=["moons"])


def test_the_command_writes_the_report(command, tmp_path):
    target = tmp_path / "file.json"
    arguments = ("--sizes", "2e2,3e2", "--kinds", "gaussian,apriori", "--groups", "2x50,3x40", "--threads", 1)
    code, out, err = command("bench", "hca", *arguments, "--repeats", 1, "-o", target)
    assert code == 0, err
    report = json.loads(target.read_text())
    assert [(run["kind"], run["points"]) for run in report["runs"]] == [
        ("gaussian", 200),
        ("gaussian", 300),
        ("apriori", 100),
        ("apriori", 120),
    ]
    assert markdown(report) == out.strip()


def test_defaults_of_the_command(command, monkeypatch):
    asked = {}

    def bench(sizes, **options):
        asked.update(options, sizes=sizes)
        return {"system": "hca", "device": "cpu", "runs": [], "exponents": []}

    monkeypatch.setattr("daskclust.bench.bench_hca", bench)
    assert command("bench", "hca")[0] == 0
    assert asked == {
        "sizes": list(hca.SIZES),
        "kinds": list(hca.KINDS),
        "groups": [(100, 1000)],
        "device": "cpu",
        "threads": [1, 0],
        "repeats": 3,
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("hca", "--min-samples", "3"), "--min-samples is not for the benchmark hca\nhint: leave it out"),
        (("hca", "--rate", "1e6"), "--rate is not for the benchmark hca"),
        (("dbscan", "--groups", "2x3"), "--groups is not for the benchmark dbscan"),
        (("hca", "--groups", "100"), "--groups must be numbers and sizes of clusters, e.g. 100x1000, got '100'"),
        (("hca", "--kinds", "cosmo"), "'cosmo'"),
        (("hca", "--device", "tpu"), "--device must be one of cpu, cuda, got 'tpu'"),
        (("hca", "-o", "no/such/folder.json"), "no folder"),
    ],
)
def test_wrong_arguments(command, arguments, words):
    code, _, err = command("bench", *arguments)
    assert code == (2 if "must be one of" in words else 1)  # a choice that there is not is wrong usage
    assert words in err
