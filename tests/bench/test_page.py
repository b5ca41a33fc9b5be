"""Reports as files, pictures of them, and all benchmarks at once."""

from __future__ import annotations

import json
import re

import pytest

from daskclust.bench import SYSTEMS, markdown, write_report

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
    _, roofline = page.pictures(report_of(runs=[run_of()]))
    roof = roofline.Curve.values()[0].data.to_numpy()
    assert roof[:, 1].max() == 1.0  # Gop/s
    assert roof[0, 1] == pytest.approx(0.08 * roof[0, 0])  # GB/s times operations a byte
    ((intensity, speed),) = roofline.Scatter.values()[0].data.to_numpy().tolist()
    assert intensity == 0.5
    assert speed == pytest.approx(2e4 / 2e-3 / 1e9)
    assert speed / (0.08 * intensity) == pytest.approx(0.25)


def test_steps_are_by_point():
    run = run_of(steps_ms={"grid": 1.0, "rest": 0.5})
    times, bars, _ = page.pictures(report_of("clue", [run]))
    assert bars.data.to_numpy().tolist() == [
        ["cosmo, threads 1, 1,000", "grid", 1000.0],
        ["cosmo, threads 1, 1,000", "rest", 500.0],
    ]
    assert "V100, copies included (paper)" in [curve.label for curve in times.Curve]


def test_rates_against_lanes():
    rates = {"read": 40.0, "cluster": 30.0}
    runs = [run_of("gamma", lanes=lanes, mhits_per_second=rates) for lanes in (2, 1)]
    for run in runs:
        del run["total_ms"]
    layout = page.pictures(report_of("events", runs))
    assert titles(layout) == [
        "Event building: read",
        "Event building: cluster",
        "Roofline: least work over time",
    ]
    assert layout.values()[1].Curve.Gamma.data.to_numpy().tolist() == [[1, 30.0], [2, 30.0]]


# --------------------------------------------------------------------------------------------------------------- files
def test_files_that_cannot_be_written(tmp_path):
    with pytest.raises(ValueError, match=r"written to \.json, \.md or \.html, got .*report\.txt"):
        write_report(report_of(runs=[run_of()]), tmp_path / "report.txt")
    with pytest.raises(ValueError, match="nothing to draw of the benchmark stream"):
        write_report({"system": "stream"}, tmp_path / "stream.html")
    assert not list(tmp_path.iterdir())


def test_all(command, tmp_path):
    """Every headline, in the three formats."""
    files = [tmp_path / f"all{suffix}" for suffix in (".json", ".md", ".html")]
    outputs = [word for file in files for word in ("-o", file)]
    code, out, err = command("bench", "all", "--sizes", 600, "--repeats", 1, "--threads", 1, "--peers", *outputs)
    assert code == 0, err
    report = json.loads(files[0].read_text())
    assert (report["system"], report["device"]) == ("all", "cpu")
    assert [part["system"] for part in report["reports"]] == list(SYSTEMS)
    html = files[2].read_text()
    assert not re.search(r"<(script|link|img)\b[^>]*\b(src|href)\s*=\s*[\"']?(https?:)?//", html)  # opens offline
    assert set(tmp_path.iterdir()) == set(files)
    for part in report["reports"]:
        title = SYSTEMS[part["system"]].title
        assert f"## {title}" in out
        assert f"{title}: {'total' if part['system'] == 'events' else 'time against points'}" in html
        assert all(run["points"] <= 600 for run in part["runs"])
        if part["system"] != "clue":
            assert all(run["agrees"] for run in part["peers"]["timed"])
            assert part["peers"]["timed"]
    assert out.strip() == markdown(report) == files[1].read_text().strip()
    assert out.count("Ceilings of this machine") == 1
    for title in ("CLUE: steps", "DBSCAN: other programs", "Roofline: least work over time"):
        assert title in html
