"""How many clusters, or hits, have which energy, size, time over threshold or time of flight, and at which rate."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.checks import check_whole
from daskclust.plot._data import counted, dimension, finite, hits_in_memory, in_memory, in_time_units, sizes_of, without
from daskclust.plot._elements import histogram, overlay
from daskclust.plot._look import COLORS, Float, hv, styled

_TOT_TICK = 25.0  # ns
_PER = ((1e6, "µs"), (1e3, "ms"))  # how many of them are a second
_CURVES = (COLORS[0], COLORS[1], COLORS[5])


def energy_spectrum(table: Any, *, weight: str = "energy", bins: int = 40, log: bool = True) -> hv.Histogram:
    """Draw how many clusters have which energy.

    Parameters
    ----------
    table : xarray.Dataset, DataFrame or mapping
        As of `daskclust.properties.cluster_table`.
    weight : str, default "energy"
        The variable.
    bins : int, default 40
        Number of bins.
    log : bool, default True
        Bins of equal width in the logarithm. Clusters without energy are in the first bin.

    Returns
    -------
    holoviews.Histogram
        Counts of clusters. Those whose energy is not finite, as of pixels without calibration, are left out, and
        counted in the title.
    """
    bins = check_whole("bins", bins, 1)
    table = in_memory(table, (weight,), dim="cluster")
    values, note = finite(table[weight], weight)
    positive = values[values > 0]
    if log and positive.size:
        edges = log_edges(positive, bins)
        values = np.clip(values, edges[0], edges[-1])  # rounding may leave the ends outside of their bins
    else:
        edges = np.histogram_bin_edges(values, bins)
    what = counted(table[weight])
    kdim = dimension(table[weight], f"{weight} of a {what[:-1]}")
    return histogram(values, edges, kdim, log=log and positive.size > 0, what=what, note=note)


def cluster_sizes(table: Any, *, bins: int = 40, log: bool = True) -> hv.Histogram:
    """Draw how many clusters have how many points.

    Parameters
    ----------
    table : xarray.Dataset, DataFrame, mapping or fitted estimator
        As of `daskclust.properties.cluster_table`; of an estimator the labels are counted.
    bins : int, default 40
        Most bins; each holds whole numbers of points.
    log : bool, default True
        Bins of equal width in the logarithm, as far as whole numbers allow.

    Returns
    -------
    holoviews.Histogram
        Counts of clusters. Numbers without points are left out, and counted in the title.
    """
    return _sizes(table, bins, log=log)


def size_spectrum(table: Any, *, bins: int = 40) -> hv.Histogram:
    """Draw how many clusters have how many points, on logarithmic axes: few large ones beside many small ones.

    Parameters
    ----------
    table, bins
        As for `cluster_sizes`.

    Returns
    -------
    holoviews.Histogram
        As of `cluster_sizes`, but divided by how many sizes are in a bin: a power law is a straight line.
    """
    return _sizes(table, bins, log=True, logy=True, per=(1.0, "number of points"))


def tot_spectrum(data: Any, *, bins: int = 60, log: bool = True, logy: bool = False) -> hv.Histogram:
    """Draw how many hits, or clusters, have which time over threshold.

    Parameters
    ----------
    data : xarray.Dataset, DataFrame or mapping
        Hits, or the table of their clusters, with ``tot`` in ns, or in the unit that it names.
    bins : int, default 60
        Most bins. Each holds whole multiples of 25 ns, as a Timepix counts it.
    log : bool, default True
        Bins of equal width in the logarithm, as far as whole multiples allow.
    logy : bool, default False
        Counts on a logarithmic axis.

    Returns
    -------
    holoviews.Histogram
        Counts for each 25 ns. Values that are not finite are left out, and counted in the title.
    """
    bins = check_whole("bins", bins, 1)
    tot = hits_in_memory(data, ("tot",))["tot"]
    values, note = finite(tot, "tot")
    edges = _TOT_TICK * _whole_edges(values / _TOT_TICK, bins, log=log)
    values = np.clip(values, edges[0], edges[-1])
    what = counted(tot)
    kdim, per = dimension(tot, f"ToT of a {what[:-1]}"), (_TOT_TICK, f"{_TOT_TICK:g} ns")
    return histogram(values, edges, kdim, log=log, logy=logy, what=what, note=note, per=per)


def tof_spectrum(data: Any, *, bins: int = 200, logy: bool = False) -> hv.Histogram:
    """Draw how many hits, or clusters, came how long after the last trigger.

    Parameters
    ----------
    data : xarray.Dataset, DataFrame or mapping
        Hits, or the table of their clusters, with the time of flight ``tof`` in ns, or in the unit that it names.
    bins : int, default 200
        Number of bins.
    logy : bool, default False
        Counts on a logarithmic axis.

    Returns
    -------
    holoviews.Histogram
        Counts; the axis is in ns, µs, ms or s. Hits before the first trigger, whose time of flight is NaN, are left
        out, and counted in the title.
    """
    bins = check_whole("bins", bins, 1)
    tof = hits_in_memory(data, ("tof",))["tof"]
    values, note = finite(tof, "tof")
    values, unit = in_time_units(values)
    kdim = hv.Dimension("tof", label="time of flight", unit=unit)
    edges = np.histogram_bin_edges(values, bins)
    return histogram(values, edges, kdim, log=False, logy=logy, what=counted(tof), note=note)


def rate(*data: Any, bins: int = 100, logy: bool = False) -> hv.Overlay:
    """Draw at which rate hits, clusters, or both come, over time.

    Parameters
    ----------
    *data : xarray.Dataset, DataFrame or mapping
        Hits, the table of their clusters, or both: what has ``toa`` in ns, or in the unit that it names.
    bins : int, default 100
        Number of intervals of equal length, from the first time to the last.
    logy : bool, default False
        Rates on a logarithmic axis. Intervals without any are left out.

    Returns
    -------
    holoviews.Overlay
        A `holoviews.Curve` of steps for each, labelled by what it counts: the rate in the middle of intervals, and
        at both ends, per s, ms or µs. Times that are not finite, as of numbers without hits, are left out, and counted
        in the title.

    Raises
    ------
    ValueError
        For no data.

    Examples
    --------
    >>> hits = {"toa": [0.0, 10.0, 30.0, 90.0, 100.0]}  # ns
    >>> rate(hits, bins=2).get(0).dimension_values("rate").tolist()  # three and two in 50 ns
    [60.0, 60.0, 40.0, 40.0]
    """
    if not data:
        raise ValueError("there is nothing to draw; give hits, the table of their clusters, or both")
    bins = check_whole("bins", bins, 1)
    columns = [hits_in_memory(each, ("toa",))["toa"] for each in data]
    times, notes = zip(*(finite(column, "toa") for column in columns), strict=True)
    low = min((float(each.min()) for each in times if each.size), default=0.0)
    high = max((float(each.max()) for each in times if each.size), default=low)
    edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
    shown, unit = in_time_units(edges)
    rates = [np.histogram(each, edges)[0] / np.diff(edges) * 1e9 for each in times]  # edges are in ns
    highest = max(float(each.max()) for each in rates)
    size, per = next(((size, per) for size, per in _PER if highest >= 2 * size), (1.0, "s"))
    kdims = [hv.Dimension("time", unit=unit), hv.Dimension("rate", unit=f"1/{per}")]
    logy = logy and any(each.size for each in times)
    words = [counted(column) for column in columns]
    curves = [
        _steps(shown, each / size, kdims, what, color, logy=logy)
        for each, what, color in zip(rates, words, itertools.cycle(_CURVES), strict=False)
    ]
    title = ", ".join(f"{each.size:,} {what}{note}" for each, what, note in zip(times, words, notes, strict=True))
    limits: dict[str, Any] = {"xlim": (float(shown[0]), float(shown[-1]))}
    limits |= {} if logy else {"ylim": (0.0, 1.1 * (highest / size or 1.0))}
    return overlay(curves, kdims, title, logy=logy, **limits)


def _steps(edges: Float, number: Float, kdims: list[hv.Dimension], label: str, color: str, *, logy: bool) -> hv.Curve:
    """Return a line that is level in each interval."""
    number = np.where(number > 0, number, np.nan) if logy else number
    # the first and the last interval are drawn from end to end, too
    middle = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
    number = np.concatenate([number[:1], number, number[-1:]])
    curve = hv.Curve((middle, number), kdims[0], kdims[1], label=label)
    return styled(curve, {"line_width": 1.8}, {"linewidth": 1.5}, color=color, interpolation="steps-mid")


def _sizes(table: Any, bins: int, **how: Any) -> hv.Histogram:
    bins = check_whole("bins", bins, 1)
    sizes = sizes_of(table)
    values = sizes[sizes > 0]
    kdim, note = hv.Dimension("size", label="points of a cluster"), without(sizes.size - values.size, "points")
    return histogram(values, _whole_edges(values, bins, log=how["log"]), kdim, note=note, **how)


def _whole_edges(values: npt.NDArray[Any], bins: int, *, log: bool) -> Float:
    """Return edges of at most `bins` bins, half way between whole numbers, from 1 to the largest value."""
    most = max(1, int(np.ceil(values.max(initial=1))))
    steps = (np.geomspace if log else np.linspace)(1, most + 1, bins + 1)
    return np.unique(np.concatenate([[1], steps.round(), [most + 1]])) - 0.5


def log_edges(positive: Float, bins: int) -> Float:
    """Return edges of equal width in the logarithm, from the smallest value to the largest."""
    low, high = float(positive.min()), float(positive.max())
    return np.geomspace(low, high if high > low else 2 * low, bins + 1)
