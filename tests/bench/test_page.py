"""Reports as files, and all benchmarks at once."""

from __future__ import annotations

import json
import re

import pytest

from daskclust.bench import bench_events, markdown, write_report
from daskclust.bench.output import TITLES

pytest.importorskip("holoviews")
from daskclust.bench import page


def run_of(kind="cosmo", points=1000, ms=2.0, **more):
    floor = {"bytes": 4e4, "operations": 2e4, "floor_ms": 0.5, "of_roofline": 0.5 / ms}
    return {"kind": kind, "points": points, "threads": 1, "total_ms": ms, **floor, **more}


def report_of(system="fof", runs=(), **more):
    ceilings = {"bytes_per_second": 8e7, "operations_per_second": 1e9}
    return {"system": system, "device": "cpu", "ceilings": ceilings, "runs": list(runs), **more}


def titles(layout):
    return [element.opts.get("plot", backend="bokeh").kwargs["title"] for element in layout]


# ------------------------------------------------------------------------------------------------------------ pictures
def test_time_against_points_and_other_programs():
    timed = [{"name": "slow", "kind": "cosmo", "points": 1000, "ms": 30.0, "ratio": 15.0}]
    runs = [run_of(points=2000, ms=5.0), run_of(points=1000, ms=2.0), run_of(kind="ss2d", ms=3.0)]
    report = report_of(runs=runs, peers={"timed": timed, "missing": []})
    times, peers, roofline = page.pictures(report)
    assert times.Curve.Cosmo_comma_threads_1.data.to_numpy().tolist() == [[1000, 2.0], [2000, 5.0]]
    assert [curve.label for curve in times.Curve] == ["cosmo, threads 1", "ss2d, threads 1", "slow, cosmo"]
    assert peers.data.to_numpy().tolist() == [["slow: cosmo, 1,000", 15.0]]
    assert titles([times, peers, roofline]) == [
        "Friends-of-friends: time against points",
        "Friends-of-friends: other programs",
        "Roofline: least work over time",
    ]


def test_roofline_is_above_its_points():
    """As high as the share of the roofline that a run reaches."""
    (roofline,) = [picture for picture in page.pictures(report_of(runs=[run_of()])) if "Curve" in dir(picture)][-1:]
    roof = roofline.Curve.values()[0].data.to_numpy()
    assert roof[:, 1].max() == 1.0  # Gop/s
    assert roof[0, 1] == pytest.approx(0.08 * roof[0, 0])  # GB/s times operations a byte
    ((intensity, speed),) = roofline.Scatter.values()[0].data.to_numpy().tolist()
    assert intensity == 0.5
    assert speed == pytest.approx(2e4 / 2e-3 / 1e9)
    assert speed / (0.08 * intensity) == pytest.approx(0.25)


def test_steps_are_by_point():
    run = run_of(steps_ms={"grid": 1.0, "rest": 0.5})
    bars = page.steps(report_of("clue", [run]))
    assert bars.data.to_numpy().tolist() == [
        ["cosmo 1,000, threads 1", "grid", 1000.0],
        ["cosmo 1,000, threads 1", "rest", 500.0],
    ]


def test_rates_against_lanes():
    report = bench_events(2000, lanes=[1, 1], kinds=["gamma"], repeats=1)
    layout = page.pictures(report)
    assert titles(layout) == [
        *(f"Event building: {step}" for step in ("read", "cluster", "table", "total")),
        "Roofline: least work over time",
    ]
    drawn = layout.values()[1].Curve.Gamma.data.to_numpy()
    assert sorted(drawn[:, 1]) == sorted(run["mhits_per_second"]["cluster"] for run in report["runs"])


def test_reports_without_floors_are_drawn():
    """Those of older versions, and of the thesis."""
    old = {"system": "fof", "runs": [{"kind": "cosmo", "points": 10, "threads": 1, "total_ms": 1.0}]}
    assert titles([page.pictures(old).values()[0]]) == ["Friends-of-friends: time against points"]
    thesis = {"system": "thesis", "ratios": [{"size": 100, "total_ms": 2.0}, {"size": 200, "total_ms": 3.0}]}
    (picture,) = page.pictures(thesis).values()
    assert picture.Curve.values()[0].data.to_numpy().tolist() == [[100, 2.0], [200, 3.0]]


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="nothing to draw of the benchmark stream"):
        page.pictures({"system": "stream"})


# --------------------------------------------------------------------------------------------------------------- files
def test_formats(tmp_path):
    report = bench_events(1000, lanes=[1], kinds=["gamma"], repeats=1)
    for suffix in (".json", ".md", ".html"):
        write_report(report, tmp_path / f"report{suffix}")
    assert json.loads((tmp_path / "report.json").read_text()) == report
    assert (tmp_path / "report.md").read_text() == markdown(report) + "\n"
    html = (tmp_path / "report.html").read_text()
    assert "Roofline: least work over time" in html
    assert not re.search(r"<(script|link|img)\b[^>]*\b(src|href)\s*=\s*[\"']?(https?:)?//", html)  # opens offline
    with pytest.raises(ValueError, match=r"written to \.json, \.md or \.html, got .*report\.txt"):
        write_report(report, tmp_path / "report.txt")
    assert len(list(tmp_path.iterdir())) == 3


# ----------------------------------------------------------------------------------------------------------------- all
def test_all(command, tmp_path):
    """Every headline, in the three formats."""
    files = [tmp_path / f"all{suffix}" for suffix in (".json", ".md", ".html")]
    outputs = [word for file in files for word in ("-o", file)]
    code, out, err = command("bench", "all", "--sizes", 600, "--repeats", 1, "--threads", 1, "--peers", *outputs)
    assert code == 0, err
    report = json.loads(files[0].read_text())
    assert (report["system"], report["device"]) == ("all", "cpu")
    parts = {part["system"]: part for part in report["reports"]}
    assert list(parts) == ["clue", "events", "fof", "dbscan", "hca", "thesis"]
    for system, part in parts.items():
        assert all(run.get("points", 600) <= 600 for run in part.get("runs", []))
        if system not in ("clue", "thesis"):
            assert all(run["agrees"] for run in part["peers"]["timed"])
            assert part["peers"]["timed"]
    assert out.strip() == markdown(report) == files[1].read_text().strip()
    for system in parts:
        assert f"## {TITLES[system]}" in out
    assert out.count("Ceilings of this machine") == 1
    html = files[2].read_text()
    for system in ("clue", "fof", "dbscan", "hca"):
        assert f"{TITLES[system]}: time against points" in html
    for title in ("CLUE: steps", "Event building: total", "DBSCAN: other programs", "Roofline: least work over time"):
        assert title in html
    assert "Apriori clusters: time against their size" in html


def test_all_has_no_more_points_than_memory_holds(monkeypatch):
    from types import SimpleNamespace

    from daskclust.cli import _benchmarks

    asked = {}
    for name, benchmark in _benchmarks.BENCHMARKS.items():
        if benchmark.headline is not None:

            def run(_work, given, name=name):
                asked[name] = given.numbers("sizes")
                return {}

            monkeypatch.setitem(_benchmarks.BENCHMARKS, name, _benchmarks.replace(benchmark, run=run))
    monkeypatch.setattr(_benchmarks, "_available_bytes", lambda: 2 * 10**9)
    work = SimpleNamespace(begin=lambda *_: None)
    everything = _benchmarks.BENCHMARKS["all"]
    everything.run(work, everything.asked({}))
    assert asked["fof"] == [10**6, 2 * 10**7]
    assert asked["events"] == [4 * 10**6]
    assert asked["clue"] == [k * 10**5 for k in range(1, 11)]
    monkeypatch.setattr(_benchmarks, "_available_bytes", lambda: 10**11)
    everything.run(work, everything.asked({}))
    assert asked["fof"] == [10**6, 37 * 10**6]
    everything.run(work, everything.asked({"sizes": "2e5", "device": "cuda"}))
    assert asked["clue"] == [10**5, 2 * 10**5]


# --------------------------------------------------------------------------------------------------------------- wrong
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("clue", "-o", "report.txt"), 1, "-o must be a .json, .md or .html file, got report.txt"),
        (("clue", "-o", "a.json", "-o", "./a.json"), 1, "-o names a.json twice"),
        (("clue", "-o", "no/such/a.html"), 1, "no folder"),
        (("stream", "-o", "a.html"), 1, "nothing to draw of the benchmark stream"),
        (("stream", "--peers"), 1, "--peers is not for the benchmark stream"),
        (("thesis", "--peers"), 1, "--peers is not for the benchmark thesis"),
        (("fof", "--peers", "--device", "cuda"), 1, "--peers are programs for the CPU, got --device cuda"),
        (("all", "--kinds", "cosmo"), 1, "--kinds is not for the benchmark all"),
        (("all", "--sizes", "1e3,1e4"), 1, "all takes one number, the most points of any benchmark, got --sizes"),
        (("thesis", "--threads", "1,2"), 1, "thesis is timed with one number of threads, got --threads 1,2"),
        (("events", "--kinds", "protons"), 1, "kinds of points are gamma, pion0, pion45, lead, got 'protons'"),
        (("events", "--sizes", "1e3,1e4"), 1, "events are timed at one size"),
        (("clue", "--repeats", "0"), 2, "--repeats"),
    ],
)
def test_wrong_arguments(command, tmp_path, monkeypatch, arguments, code, words):
    monkeypatch.chdir(tmp_path)
    got, _, err = command("bench", *arguments)
    assert (got, words in err) == (code, True), err
    assert list(tmp_path.iterdir()) == []
