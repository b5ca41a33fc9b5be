"""Reports of benchmarks as pictures: HoloViews elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from daskclust.bench.output import TITLES
from daskclust.plot._look import COLORS, INK, finished, hv, styled

_PAPER = {"C++, one thread of a Xeon 4114 (paper)": 705.49, "V100, copies included (paper)": 6.63}
"""CLUE of 1e6 points, ms: table 2 of its paper."""

_PANEL_HEIGHT = 300
_MARKERS = {"size": 7}, {"s": 20}


def pictures(report: dict[str, Any]) -> Any:
    """Return the pictures of a report.

    Parameters
    ----------
    report : dict
        What a benchmark returned, or several of them together, as of `daskclust.bench.markdown`.

    Returns
    -------
    holoviews.Layout
        Time against points, hits a second against lanes, steps, other programs' times, and the roofline, as far as
        there is something to be drawn.

    Raises
    ------
    ValueError
        For a report that has nothing to draw.
    """
    reports = report.get("reports", [report])
    drawn = [picture for each in reports for picture in _of_one(each)]
    if any("floor_ms" in run for each in reports for run in each.get("runs", [])):
        drawn.append(roofline(reports))
    if not drawn:
        raise ValueError(f"there is nothing to draw of the benchmark {report['system']}; write it to .json or .md")
    return hv.Layout(drawn).cols(2).opts(shared_axes=False)


def _of_one(report: dict[str, Any]) -> Iterable[Any]:
    """Yield the pictures of one benchmark but for the roofline."""
    system, runs = report["system"], report.get("runs", [])
    if system == "events":
        for step in runs[0]["mhits_per_second"]:
            yield rates(report, step)
    elif system == "thesis":
        yield group_sizes(report)
    elif runs:
        yield times(report)
        if "steps_ms" in runs[0]:
            yield steps(report)
    if report.get("peers", {}).get("timed"):
        yield peers(report)


# -------------------------------------------------------------------------------------------------------------- curves
def times(report: dict[str, Any]) -> Any:
    """Draw time against the number of points."""
    series = _grouped(report["runs"], _name_of, lambda run: (run["points"], run["total_ms"]))
    for run in report.get("peers", {}).get("timed", []):
        series.setdefault(f"{run['name']}, {run['kind']}", []).append((run["points"], run["ms"]))
    dots = {name: (1e6, ms) for name, ms in _PAPER.items()} if report["system"] == "clue" else {}
    return _lines(series, ("points", ""), ("time", "ms"), f"{TITLES[report['system']]}: time against points", dots)


def rates(report: dict[str, Any], step: str) -> Any:
    """Draw hits a second against lanes, for one step."""
    series = _grouped(
        report["runs"], lambda run: run["kind"], lambda run: (run["lanes"], run["mhits_per_second"][step])
    )
    title = f"{TITLES['events']}: {step}"
    return _lines(series, ("lanes", ""), ("hits", "million/s"), title, log=False)


def group_sizes(report: dict[str, Any]) -> Any:
    """Draw time against the size of apriori clusters."""
    series = {"all points": [(run["size"], run["total_ms"]) for run in report["ratios"]]}
    return _lines(series, ("size of apriori clusters", ""), ("time", "ms"), "Apriori clusters: time against their size")


def _name_of(run: dict[str, Any]) -> str:
    """Return what is the same in the runs of a curve, in words."""
    parts = [run.get("kind", "calorimeter")]
    parts += [f"min_samples {run['min_samples']}"] if run.get("min_samples") else []
    parts += [f"threads {run['threads']}"] if run.get("threads") else []
    return ", ".join(parts)


def _grouped(
    runs: Sequence[dict[str, Any]],
    name: Callable[[dict[str, Any]], str],
    place: Callable[[dict[str, Any]], tuple[float, float]],
) -> dict[str, list[tuple[float, float]]]:
    """Return the places of runs by what they are called."""
    series: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        series.setdefault(name(run), []).append(place(run))
    return series


def _lines(
    series: dict[str, list[tuple[float, float]]],
    across: tuple[str, str],
    up: tuple[str, str],
    title: str,
    dots: dict[str, tuple[float, float]] | None = None,
    *,
    log: bool = True,
) -> Any:
    """Draw places, joined by lines, and some alone."""
    kdim, vdim = (hv.Dimension(name, unit=unit or None) for name, unit in (across, up))
    drawn = []
    for number, (name, places) in enumerate(series.items()):
        color = COLORS[number % len(COLORS)]
        drawn.append(styled(hv.Curve(sorted(places), kdim, vdim, label=name), color=color))
        drawn.append(styled(hv.Scatter(sorted(places), kdim, vdim, label=name), *_MARKERS, color=color))
    for name, place in (dots or {}).items():
        marker = {"size": 9, "marker": "diamond"}, {"s": 30, "marker": "D"}
        drawn.append(styled(hv.Scatter([place], kdim, vdim, label=name), *marker, color=INK))
    how: dict[str, Any] = {"logx": True, "logy": True, "axiswise": True, "padding": 0.1}
    if not log:
        ticks = sorted({int(x) for places in series.values() for x, _ in places})
        how = {"ylim": (0, None), "xticks": ticks, "axiswise": True, "padding": 0.1}
    words = {"xlabel": kdim.pprint_label, "ylabel": vdim.pprint_label}
    return finished(hv.Overlay(drawn), title, height=_PANEL_HEIGHT, **words, **how)


# ---------------------------------------------------------------------------------------------------------------- bars
def steps(report: dict[str, Any]) -> Any:
    """Draw the time of each step for each run, one upon the other, in ns for each point."""
    rows = []
    for run in report["runs"]:
        name = " ".join(part for part in (run.get("kind", ""), f"{run['points']:,}") if part)
        name += f", threads {run['threads']}" if run.get("threads") else ""
        rows += [(name, step, 1e6 * ms / run["points"]) for step, ms in run["steps_ms"].items()]
    bars = hv.Bars(rows, ["run", "step"], [hv.Dimension("time", unit="ns/point")])
    colors = list(COLORS[: len(report["runs"][0]["steps_ms"])])
    both: dict[str, Any] = {"stacked": True, "xrotation": 45, "axiswise": True, "height": _PANEL_HEIGHT}
    both |= {"bokeh": {"cmap": colors, "legend_position": "right"}, "matplotlib": {"color": hv.Cycle(values=colors)}}
    return finished(bars, f"{TITLES[report['system']]}: steps", **both)


def peers(report: dict[str, Any]) -> Any:
    """Draw how many times as long other programs take."""
    rows = [(f"{run['name']}: {run['kind']}, {run['points']:,}", run["ratio"]) for run in report["peers"]["timed"]]
    bars = hv.Bars(rows, "program", hv.Dimension("ratio", label="time over ours"))
    title = f"{TITLES[report['system']]}: other programs"
    return finished(bars, title, height=_PANEL_HEIGHT, invert_axes=True, color=COLORS[0], xlabel="", axiswise=True)


# ------------------------------------------------------------------------------------------------------------ roofline
def roofline(reports: Sequence[dict[str, Any]]) -> Any:
    """Draw operations a second against operations a byte, below what the memory and the cores allow."""
    kdim, vdim = hv.Dimension("intensity", unit="operations/byte"), hv.Dimension("speed", unit="Gop/s")
    runs = {TITLES[each["system"]]: [run for run in each.get("runs", []) if "floor_ms" in run] for each in reports}
    places = {name: [_on_roofline(run) for run in found] for name, found in runs.items() if found}
    ceilings = next(each["ceilings"] for each in reports if "ceilings" in each)
    copied, done = (ceilings[f"{what}_per_second"] / 1e9 for what in ("bytes", "operations"))
    across = [intensity for found in places.values() for intensity, _ in found]
    ends = min(0.5 * min(across), 0.1 * done / copied), max(2 * max(across), 10 * done / copied)
    under = np.geomspace(*ends, 100)
    roof = hv.Curve((under, np.minimum(done, copied * under)), kdim, vdim, label=f"{copied:.0f} GB/s, {done:.0f} Gop/s")
    drawn = [styled(roof, color=INK)]
    for number, (name, found) in enumerate(places.items()):
        dots = hv.Scatter(found, kdim, vdim, label=name)
        drawn.append(styled(dots, *_MARKERS, color=COLORS[number % len(COLORS)]))
    words = {
        "xlabel": kdim.pprint_label,
        "ylabel": vdim.pprint_label,
        "logx": True,
        "logy": True,
        "axiswise": True,
        "padding": 0.1,
    }
    return finished(hv.Overlay(drawn), "Roofline: least work over time", height=_PANEL_HEIGHT, **words)


def _on_roofline(run: dict[str, Any]) -> tuple[float, float]:
    """Return the operations a byte of a run's least work, and its operations a second, 1e9."""
    ms = run["floor_ms"] / run["of_roofline"]
    return run["operations"] / run["bytes"], run["operations"] / ms / 1e6
