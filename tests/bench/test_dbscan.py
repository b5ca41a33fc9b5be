"""Benchmarks of DBSCAN at their smallest size: what they measure is right, how fast is not asked."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from daskclust import DBSCAN, FriendsOfFriends
from daskclust.bench import bench_dbscan, markdown
from daskclust.datasets import cosmology_box, seed_spreader


def columns(ds, names):
    return np.stack([ds[name].values for name in names], axis=1)


def test_dbscan():
    before = numba.get_num_threads()
    report = bench_dbscan([2000], min_samples=[2, 10], threads=[1], repeats=1)
    assert numba.get_num_threads() == before
    runs = {(run["kind"], run["min_samples"]): run for run in report["runs"]}
    assert list(runs) == [(kind, n) for kind in ("cosmo", "ss2d", "ss3d", "uniform2d") for n in (2, 10)]
    for (kind, least), run in runs.items():
        assert (run["points"], run["threads"]) == (2000, 1)
        assert run["mpoints_per_second"] == 2000 / run["total_ms"] / 1e3
        assert sum(run["kernels_ms"].values()) > 0
        assert run["peak_bytes_per_point"] > 9, (kind, least)  # labels and core points
    box = DBSCAN(0.168, min_samples=10).fit(columns(cosmology_box(2000, rng=0), "xyz"))
    assert runs["cosmo", 10]["clusters"] == box.n_clusters_
    assert runs["cosmo", 10]["noise"] == (box.labels_ < 0).sum()
    spread = columns(seed_spreader(2000, 2, density="varying", rng=0), "xy")
    assert runs["ss2d", 2]["clusters"] == DBSCAN(100.0, min_samples=2).fit(spread).n_clusters_
    assert (report["system"], report["device"]) == ("dbscan", "cpu")
    assert report["machine"]["versions"]["daskclust"]
    json.dumps(report)
    head, rule, *rows = markdown(report).split("\n\n")[0].splitlines()
    assert head.startswith("| points of | points | eps | min_samples | threads | clusters | total (ms) | Mpoints/s |")
    assert rule == "| --- | " + " | ".join(["---:"] * 10) + " |"
    assert len(rows) == 8
    assert rows[1].startswith(f"| cosmo | 2,000 | 0.168 | 10 | 1 | {box.n_clusters_:,} | ")


def test_uniform_points_have_the_same_neighbours_at_any_size():
    runs = bench_dbscan([1000, 4000], kinds=["uniform2d"], repeats=1)["runs"]
    mean = [run["points"] * np.pi * run["eps"] ** 2 / 1e10 for run in runs]
    np.testing.assert_allclose(mean, 4e-6 * np.pi * 1e6, rtol=1e-12)


def test_fof_and_threads():
    threads = sorted({1, numba.config.NUMBA_NUM_THREADS})
    report = bench_dbscan([3000], kinds=["cosmo"], min_samples=None, threads=threads, repeats=1)
    assert report["system"] == "fof"
    assert [run["threads"] for run in report["runs"]] == threads
    expected = FriendsOfFriends(0.168).fit(columns(cosmology_box(3000, rng=0), "xyz")).n_clusters_
    assert {run["clusters"] for run in report["runs"]} == {expected}
    assert "| FoF | 1 |" in markdown(report)


def test_on_a_gpu(monkeypatch):
    """Without one: what is called, and what is written down."""
    pool = SimpleNamespace(free_all_blocks=lambda: None, total_bytes=iter([1000, 25_000]).__next__)
    waiting = SimpleNamespace(synchronize=lambda: None)
    cupy = SimpleNamespace(
        asarray=np.asarray,
        asnumpy=np.asarray,
        cuda=SimpleNamespace(get_current_stream=lambda: waiting),
        get_default_memory_pool=lambda: pool,
    )
    monkeypatch.setattr("daskclust.bench._timing.cupy_module", lambda: cupy)
    ceilings = {"bytes_per_second": 4e12, "operations_per_second": 6e13}
    monkeypatch.setattr("daskclust.bench.dbscan.ceilings_of", {"cuda": ceilings}.__getitem__)
    report = bench_dbscan([2000], kinds=["ss2d"], device="cuda", threads=[1, 2], repeats=1)
    (run,) = report["runs"]
    assert run["threads"] is None
    assert run["host_to_host_ms"] > 0
    assert run["peak_bytes_per_point"] == 12.0
    head, _, row = markdown(report).split("\n\n")[0].splitlines()
    assert head.endswith("| host to host (ms) | peak (B/point) | floor (ms) | of roofline |")
    assert len(head.split("|")) == len(row.split("|"))


def test_what_is_wrong():
    with pytest.raises(ValueError, match="kinds of points are cosmo, ss2d, ss3d, uniform2d, got 'moons'"):
        bench_dbscan([100], kinds=["moons"])


def test_the_command_writes_the_report(command, tmp_path):
    target = tmp_path / "file.json"
    arguments = ("--sizes", "1e3,2e3", "--kinds", "ss3d,cosmo", "--repeats", 1, "--threads", 1)
    code, out, err = command("bench", "dbscan", *arguments, "--min-samples", "5", "-o", target)
    assert code == 0, err
    report = json.loads(target.read_text())
    assert [(run["kind"], run["points"], run["min_samples"]) for run in report["runs"]] == [
        (kind, size, 5) for kind in ("ss3d", "cosmo") for size in (1000, 2000)
    ]
    assert markdown(report) == out.strip()
    code, out, _ = command("bench", "fof", *arguments)
    assert code == 0
    assert out.count("| FoF |") == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fof", "--min-samples", "3"), "--min-samples is not for the benchmark fof\nhint: leave it out"),
        (("dbscan", "--rate", "1e6"), "--rate is not for the benchmark dbscan"),
        (("clue", "--kinds", "cosmo"), "--kinds is not for the benchmark clue"),
        (("events", "--min-samples", "3"), "--min-samples is not for the benchmark events"),
        (("dbscan", "--device", "tpu"), "--device must be one of cpu, cuda, got 'tpu'"),
        (("dbscan", "--kinds", "moons"), "'moons'"),
        (("dbscan", "--min-samples", "some"), "some"),
        (("dbscan", "-o", "no/such/folder.json"), "no folder"),
    ],
)
def test_wrong_arguments(command, arguments, words):
    code, _, err = command("bench", *arguments)
    assert code == (2 if "must be one of" in words else 1)  # a choice that there is not is wrong usage
    assert words in err
