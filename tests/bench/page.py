"""Reports of benchmarks as pictures: HoloViews elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from daskclust.bench.case import series_name
from daskclust.bench.runner import SYSTEMS
from daskclust.plot._look import COLORS, INK, finished, hv, styled

_PAPER = {"C++, one thread of a Xeon 4114 (paper)": 705.49, "V100, copies included (paper)": 6.63}
"""CLUE of 1e6 points, ms: table 2 of its paper."""

_HEIGHT = 300
_MARKERS = {"size": 7}, {"s": 20}
_Series = dict[str, list[tuple[float, float]]]


def pictures(report: Mapping[str, Any]) -> Any:
    """Return the pictures of a report, or of several: times or rates, steps, other programs, and the roofline."""
    reports = [each for each in report.get("reports", [report]) if each.get("runs")]
    if not reports:
        raise ValueError(f"there is nothing to draw of the benchmark {report['system']}; write it to .json or .md")
    drawn = [picture for each in reports for picture in _of_one(each)]
    return hv.Layout([*drawn, _roofline(reports)]).cols(2).opts(shared_axes=False, backend="bokeh")


def _of_one(report: Mapping[str, Any]) -> Iterator[Any]:
    title, runs = SYSTEMS[report["system"]].title, report["runs"]
    timed = report.get("peers", {}).get("timed", [])
    for step in runs[0].get("mhits_per_second", ()):
        series = _grouped((run["kind"], run["lanes"], run["mhits_per_second"][step]) for run in runs)
        yield _lines(series, ("lanes", "hits (million/s)"), f"{title}: {step}")
    if "total_ms" in runs[0]:
        series = _grouped((series_name(run), run["points"], run["total_ms"]) for run in runs)
        series |= _grouped((f"{run['name']}, {run['kind']}", run["points"], run["ms"]) for run in timed)
        if report["system"] == "clue":
            series |= {name: [(1e6, ms)] for name, ms in _PAPER.items()}
        yield _lines(series, ("points", "time (ms)"), f"{title}: time against points", logx=True, logy=True)
    if "steps_ms" in runs[0]:
        yield _steps(title, runs)
    if timed:
        rows = [(f"{run['name']}: {run['kind']}, {run['points']:,}", run["ratio"]) for run in timed]
        bars = hv.Bars(rows, "program", hv.Dimension("ratio", label="time over ours"))
        yield _panel(bars, f"{title}: other programs", invert_axes=True, color=COLORS[0], xlabel="")


def _grouped(rows: Any) -> _Series:
    """Return the places (x, y) of rows (name, x, y) by name, in the order of x."""
    series: _Series = {}
    for name, x, y in rows:
        series[name] = sorted([*series.get(name, []), (x, y)])
    return series


def _lines(series: _Series, axes: tuple[str, str], title: str, **options: Any) -> Any:
    drawn = []
    for number, (name, places) in enumerate(series.items()):
        color = COLORS[number % len(COLORS)]
        drawn.append(styled(hv.Curve(places, *axes, label=name), color=color))
        drawn.append(styled(hv.Scatter(places, *axes, label=name), *_MARKERS, color=color))
    return _panel(hv.Overlay(drawn), title, xlabel=axes[0], ylabel=axes[1], padding=0.1, **options)


def _steps(title: str, runs: Sequence[Mapping[str, Any]]) -> Any:
    """Draw the time of each step for each run, one upon the other, in ns for each point."""
    rows = []
    for run in runs:
        name = f"{series_name(run)}, {run['points']:,}"
        rows += [(name, step, 1e6 * ms / run["points"]) for step, ms in run["steps_ms"].items()]
    bars = hv.Bars(rows, ["run", "step"], [hv.Dimension("time", unit="ns/point")])
    colors = list(COLORS[: len(runs[0]["steps_ms"])])
    each = {"bokeh": {"cmap": colors, "legend_position": "right"}, "matplotlib": {"color": hv.Cycle(values=colors)}}
    return _panel(bars, f"{title}: steps", **each, stacked=True, xrotation=45)


def _roofline(reports: Sequence[Mapping[str, Any]]) -> Any:
    """Draw operations a second against operations a byte, below what the memory and the cores allow."""
    axes = ("intensity (operations/byte)", "speed (Gop/s)")
    places = {SYSTEMS[each["system"]].title: [_place(run) for run in each["runs"]] for each in reports}
    ceilings = reports[0]["ceilings"]
    copied, done = (ceilings[f"{what}_per_second"] / 1e9 for what in ("bytes", "operations"))
    across = [intensity for found in places.values() for intensity, _ in found]
    under = np.geomspace(min(0.5 * min(across), 0.1 * done / copied), max(2 * max(across), 10 * done / copied), 100)
    roof = hv.Curve((under, np.minimum(done, copied * under)), *axes, label=f"{copied:.0f} GB/s, {done:.0f} Gop/s")
    drawn = [styled(roof, color=INK)]
    for number, (name, found) in enumerate(places.items()):
        dots = hv.Scatter(found, *axes, label=name)
        drawn.append(styled(dots, *_MARKERS, color=COLORS[number % len(COLORS)]))
    words = {"xlabel": axes[0], "ylabel": axes[1], "padding": 0.1}
    return _panel(hv.Overlay(drawn), "Roofline: least work over time", logx=True, logy=True, **words)


def _place(run: Mapping[str, Any]) -> tuple[float, float]:
    """Return the operations a byte of a run's least work, and its operations a second, 1e9."""
    return run["operations"] / run["bytes"], run["operations"] * run["of_roofline"] / run["floor_ms"] / 1e6


def _panel(element: Any, title: str, **options: Any) -> Any:
    return finished(element, title, height=_HEIGHT, axiswise=True, **options)
