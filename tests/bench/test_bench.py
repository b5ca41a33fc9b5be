"""Benchmarks at their smallest size: what they measure is right, how fast is not asked."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from daskclust import CLUE, DBSCAN, EventBuilder, FriendsOfFriends, MahalanobisHCA
from daskclust.bench import SYSTEMS, bench, bench_all, markdown, options_of, runner
from daskclust.datasets import apriori_gaussians, calorimeter, cosmology_box, cytometry, timepix

MOST = numba.config.NUMBA_NUM_THREADS
SMALL = {
    "clue": {"sizes": (2000, 4000)},
    "events": {"sizes": (3000,), "kinds": ("gamma", "lead")},
    "fof": {"sizes": (1000,)},
    "dbscan": {"sizes": (1000, 2000), "min_samples": (2, 5)},
    "hca": {"sizes": (200, 400), "groups": ((3, 100), (2, 50))},
}


def small(name, **given):
    return bench(name, options_of(name, {"repeats": 1, "threads": (1,), **SMALL[name], **given}))


def columns(ds, names):
    return np.stack([ds[name].values for name in names], axis=1)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_run_has_figures_a_floor_and_a_line(name):
    before, given = numba.get_num_threads(), SMALL[name]
    report = small(name)
    assert numba.get_num_threads() == before
    assert (report["system"], report["device"], report["parameters"]["repeats"]) == (name, "cpu", 1)
    assert report["machine"]["versions"]["daskclust"]
    assert set(report["ceilings"]) == {"bytes_per_second", "operations_per_second"}
    for run in report["runs"]:
        assert run["clusters" if name != "hca" else "last_height"] > 0
        assert sum(run["kernels_ms"].values()) > 0
        assert sum(run.get("steps_ms", run["kernels_ms"]).values()) == pytest.approx(sum(run["kernels_ms"].values()))
        results = {"clue": 25, "hca": 31}.get(name, 8)
        assert run["peak_bytes_per_hit" if name == "events" else "peak_bytes_per_point"] > results
        assert min(run["bytes"], run["operations"]) > 0
        assert 0 < run["of_roofline"] < 1
        if "total_ms" in run:
            assert run["of_roofline"] == run["floor_ms"] / run["total_ms"]
    kinds = given.get("kinds", SYSTEMS[name].kinds)
    amounts = [n for kind in kinds for n in (given["groups"] if kind == "apriori" else given["sizes"])]
    of_each = [n for n in amounts for _ in given.get("min_samples", (2,))]
    assert [run["points"] for run in report["runs"]] == [int(np.prod(n)) for n in of_each]
    json.dumps(report)
    of_runs, *_, ceilings = markdown(report).split("\n\n")
    head, rule, *rows = of_runs.splitlines()
    assert len(rows) == len(report["runs"])
    assert len({line.count("|") for line in (head, rule, *rows)}) == 1
    assert head.endswith("| floor (ms) | of roofline |")
    assert ceilings.startswith("Ceilings of this machine: ")


def test_clusters_are_those_of_the_estimators():
    def found(name, which="clusters"):
        return [run[which] for run in small(name)["runs"]]

    assert found("events") == [
        EventBuilder(200.0).fit(timepix(3000, kind=kind, rng=0)).n_clusters_ for kind in ("gamma", "lead")
    ]
    box = columns(cosmology_box(1000, rng=0), "xyz")
    assert found("fof")[0] == FriendsOfFriends(0.168).fit(box).n_clusters_
    fits = [DBSCAN(0.168, min_samples=least).fit(box) for least in (2, 5)]
    assert found("dbscan")[:2] == [fit.n_clusters_ for fit in fits]
    assert found("dbscan", "noise")[:2] == [(fit.labels_ < 0).sum() for fit in fits]
    points = calorimeter(100, 40, rng=0)
    clue = CLUE(3.0, 8.0, delta_c=5.0, delta_o=5.0)
    options = {"layer": points["layer"].values, "sample_weight": points["energy"].values}
    assert found("clue")[1] == clue.fit(columns(points, "xy"), **options).n_clusters_
    cells, groups = cytometry(400, 14, rng=0)["X"].values, apriori_gaussians(3, 100, channels=20, rng=0)
    heights = found("hca", "last_height")
    assert heights[3] == MahalanobisHCA(0.5).fit(cells).linkage_[-1, 2]
    assert heights[4] == MahalanobisHCA(100).fit(groups["X"].values, apriori=groups["apriori"].values).linkage_[-1, 2]


def test_lines_of_a_table():
    lines = markdown(small("dbscan", kinds=("cosmo",))).splitlines()
    assert lines[0].startswith(
        "| points of | points | eps | min_samples | threads | clusters | total (ms) | Mpoints/s |"
    )
    assert lines[1] == "| --- | " + " | ".join(["---:"] * 10) + " |"
    assert lines[3].startswith("| cosmo | 1,000 | 0.168 | 5 | 1 | ")
    speeds = [f"{step} (Mhit/s)" for step in ("read", "cluster", "table", "total")]
    assert " | ".join(speeds) in markdown(small("events"))
    steps = ("build grid", "density", "nearest higher", "seeds, outliers", "clusters")
    assert " | ".join(f"{step} (ms)" for step in steps) in markdown(small("clue"))
    assert "| apriori, 3 clusters | 300 | 20 |" in markdown(small("hca"))


def test_exponents_are_slopes():
    report = small("hca", kinds=("cytometry", "apriori"))
    times = [run["total_ms"] for run in report["runs"]]
    (found,) = report["exponents"]  # of groups two numbers make the time
    assert (found["kind"], found["threads"]) == ("cytometry", 1)
    assert found["exponent"] == pytest.approx(np.log2(times[1] / times[0]))
    assert f"Time grows as: cytometry, threads 1: n^{found['exponent']:.2f}" in markdown(report)
    assert small("hca", sizes=(200,))["exponents"] == []


def test_uniform_points_have_the_same_neighbours_at_any_size():
    runs = small("fof", kinds=("uniform2d",), sizes=(1000, 4000))["runs"]
    mean = [run["points"] * np.pi * run["eps"] ** 2 / 1e10 for run in runs]
    np.testing.assert_allclose(mean, 4e-6 * np.pi * 1e6, rtol=1e-12)


@pytest.mark.parametrize("name", SYSTEMS)
def test_threads_give_the_same(name):
    runs = small(name, threads=(1, 0, 1))["runs"]
    figure = "last_height" if name == "hca" else "clusters"
    numbers = [run["lanes" if name == "events" else "threads"] for run in runs]
    each = len({1, MOST})
    assert numbers == sorted({1, MOST}) * (len(runs) // each)
    assert len(runs) > each
    for k in range(0, len(runs), each):
        assert len({run[figure] for run in runs[k : k + each]}) == 1


@pytest.mark.parametrize(("given", "words"), [({"threads": (10**4,)}, "threads must be between 1 and"),
                                              ({"repeats": 0}, "no median")])  # fmt: skip
def test_the_number_of_threads_is_restored_after_an_error(given, words):
    before = numba.get_num_threads()
    try:
        with pytest.raises(Exception, match=words):
            small("clue", **given)
        assert numba.get_num_threads() == before
    finally:
        numba.set_num_threads(before)


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
    monkeypatch.setattr("daskclust.bench.timing.cupy_module", lambda: cupy)
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
    assert head.endswith("| host to host (ms) | peak (B/point) | floor (ms) | of roofline |")
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
    (run,) = small("events", kinds=("gamma",), device="cuda", threads=())["runs"]
    assert set(calls) == {(4, run["window"])}
    assert 4 == run["lanes"] < 3000 / run["window"]  # no lane goes without a window
    assert list(run["mhits_per_second"]) == ["cluster", "host to host"]
    assert run["floor_ms"] == pytest.approx(1e3 * 20 * 3000 / 4e12)
    runs = small("events", kinds=("gamma",), device="cuda", threads=(1, 3))["runs"]
    assert [run["lanes"] for run in runs] == [1, 3]
    assert {lanes for lanes, _ in calls} == {1, 3, 4}


# ----------------------------------------------------------------------------------------------------------------- all
def test_all_has_no_more_points_than_memory_holds(monkeypatch):
    asked = {}
    monkeypatch.setattr(runner, "bench", lambda name, options, _: asked.update({name: options}))

    def sizes(available, most=37 * 10**6, **given):
        monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=available))
        bench_all(given, most)
        return {name: list(options.sizes) for name, options in asked.items()}

    found = sizes(2 * 10**9)
    assert (found["fof"], found["events"]) == ([10**6, 2 * 10**7], [4 * 10**6])
    assert found["clue"] == [k * 10**5 for k in range(1, 11)]
    assert sizes(10**11)["fof"] == [10**6, 37 * 10**6]
    assert sizes(10**11, 2 * 10**5, device="cuda")["clue"] == [10**5, 2 * 10**5]
    assert asked["hca"].groups == ((100, 1000),)
    sizes(10**11, 600)
    assert asked["hca"].groups == ((2, 300),)
    assert {options.device for options in asked.values()} == {"cpu"}


# ------------------------------------------------------------------------------------------------------- the command
def test_options_reach_the_benchmark(command, monkeypatch):
    asked = []
    monkeypatch.setattr("daskclust.bench.bench", lambda *call: asked.append(call[:2]) or {"runs": [{}], "system": ""})
    monkeypatch.setattr("daskclust.bench.markdown", str)
    command("bench", "hca")
    command("bench", "hca", "--groups", "2x50,3x40", "--threads", "1,2", "--sizes", "2e2", "--repeats", 2, "--peers")
    (_, usual), (name, given) = asked
    assert usual == options_of("hca", {})
    assert (usual.sizes, usual.groups, usual.threads) == ((5000, 10_000, 20_000, 44_000), ((100, 1000),), (1, 0))
    assert (name, given.sizes, given.groups, given.threads) == ("hca", (200,), ((2, 50), (3, 40)), (1, 2))
    assert (given.repeats, given.peers, given.kinds) == (2, True, SYSTEMS["hca"].kinds)


NOT_FOR = {
    "stream": ("--device cuda", "--device cpu", "--sizes 1e5", "--threads 1", "--repeats 3", "--peers"),
    "clue": ("--seconds 5", "--kinds cosmo", "--groups 2x3"),
    "events": ("--rate 1e6", "--min-samples 3"),
    "fof": ("--min-samples 3",),
    "dbscan": ("--rate 1e6", "--groups 2x3"),
    "hca": ("--min-samples 3",),
    "all": ("--kinds cosmo",),
}


@pytest.mark.parametrize(("system", "line"), [(name, line) for name, lines in NOT_FOR.items() for line in lines])
def test_options_of_other_benchmarks_are_refused(command, system, line):
    code, _, err = command("bench", system, *line.split())
    assert code == 1
    assert err == f"error: {line.split()[0]} is not for the benchmark {system}\nhint: leave it out\n"


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("events --device tpu", 2, "'tpu' is not one of 'cpu', 'cuda'"),
        ("clue --repeats 0", 2, "--repeats"),
        ("events --sizes many", 1, "--sizes must be whole numbers from 1 on, such as 1e5,2000, got 'many'"),
        ("events --threads two", 1, "--threads must be whole numbers from 0 on"),
        ("dbscan --min-samples some", 1, "--min-samples must be whole numbers from 1 on"),
        ("hca --groups 100", 1, "--groups must be numbers and sizes of clusters, e.g. 100x1000, got '100'"),
        ("events --kinds protons", 1, "kinds of points are gamma, pion0, pion45, lead, got 'protons'"),
        ("stream --rate -1", 1, "--rate must be finite and positive, got -1"),
        ("fof --peers --device cuda", 1, "--peers are programs for the CPU, got --device cuda"),
        ("all --sizes 1e3,1e4", 1, "all takes one number, the most points of any benchmark, got --sizes 1000,10000"),
        ("clue -o report.txt", 1, "-o must be a .json or .md or .html file, got report.txt"),
        ("clue -o a.json -o ./a.json", 1, "-o names a.json twice"),
        ("clue -o no/such/a.html", 1, "no folder"),
        ("stream -o a.html", 1, "nothing to draw of the benchmark stream"),
    ],
)
def test_wrong_arguments(command, tmp_path, monkeypatch, line, code, words):
    monkeypatch.chdir(tmp_path)
    got, _, err = command("bench", *line.split())
    assert (got, words in err) == (code, True), err
    assert list(tmp_path.iterdir()) == []
