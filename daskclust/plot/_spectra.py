"""How many clusters, or hits, have which energy, size, time over threshold or time of flight."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.inputs import dataset_of
from daskclust.plot._data import check_bins, counted, dimension, finite, in_memory, in_time_units, without
from daskclust.plot._elements import histogram
from daskclust.plot._look import hv

Float = npt.NDArray[np.float64]

_TOT_TICK = 25.0  # ns


def energy_spectrum(table: xr.Dataset, *, weight: str = "energy", bins: int = 40, log: bool = True) -> hv.Histogram:
    """Draw how many clusters have which energy.

    Parameters
    ----------
    table : xarray.Dataset
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

    Raises
    ------
    ValueError
        For missing variables, and no bins.

    Examples
    --------
    >>> table = xr.Dataset({"energy": ("cluster", [1.0, 2.0, 2.5, 9.0])})
    >>> int(energy_spectrum(table, bins=3).dimension_values("clusters").sum())
    4
    """
    table = dataset_of(table)
    check_bins(bins)
    values, note = finite(in_memory(table, (weight,))[weight], weight)
    positive = values[values > 0]
    if log and positive.size:
        edges = log_edges(positive, bins)
        values = np.clip(values, edges[0], edges[-1])  # rounding may leave the ends outside of their bins
    else:
        edges = np.histogram_bin_edges(values, bins)
    what = counted(table[weight])
    kdim = dimension(table[weight], f"{weight} of a {what[:-1]}")
    return histogram(values, edges, kdim, log=log and positive.size > 0, what=what, note=note)


def cluster_sizes(table: xr.Dataset, *, bins: int = 40, log: bool = True) -> hv.Histogram:
    """Draw how many clusters have how many points.

    Parameters
    ----------
    table : xarray.Dataset
        As of `daskclust.properties.cluster_table`.
    bins : int, default 40
        Most bins; each holds whole numbers of points.
    log : bool, default True
        Bins of equal width in the logarithm, as far as whole numbers allow.

    Returns
    -------
    holoviews.Histogram
        Counts of clusters. Numbers without points are left out, and counted in the title.

    Raises
    ------
    ValueError
        For missing variables, and no bins.

    See Also
    --------
    size_spectrum : On logarithmic axes.

    Examples
    --------
    >>> table = xr.Dataset({"size": ("cluster", [1, 2, 2, 9])})
    >>> int(cluster_sizes(table).dimension_values("clusters").sum())
    4
    """
    table = dataset_of(table)
    return _sizes(table, bins, log=log)


def size_spectrum(table: xr.Dataset, *, bins: int = 40) -> hv.Histogram:
    """Draw how many clusters have how many points, on logarithmic axes: few large ones beside many small ones.

    Parameters
    ----------
    table : xarray.Dataset
        As of `daskclust.properties.cluster_table`.
    bins : int, default 40
        Most bins; each holds whole numbers of points.

    Returns
    -------
    holoviews.Histogram
        Counts of clusters, divided by how many sizes are in a bin: a power law is a straight line. Numbers without
        points are left out, and counted in the title.

    Raises
    ------
    ValueError
        For missing variables, and no bins.

    See Also
    --------
    cluster_sizes : Counts, on a linear axis.

    Examples
    --------
    >>> table = xr.Dataset({"size": ("cluster", [1, 2, 2, 9])})
    >>> size_spectrum(table).dimension_values("clusters")[:2].tolist()
    [1.0, 2.0]
    """
    table = dataset_of(table)
    return _sizes(table, bins, log=True, logy=True, per=(1.0, "number of points"))


def tot_spectrum(ds: xr.Dataset, *, bins: int = 60, log: bool = True, logy: bool = False) -> hv.Histogram:
    """Draw how many hits, or clusters, have which time over threshold.

    Parameters
    ----------
    ds : xarray.Dataset
        Hits, or the table of their clusters, with ``tot`` in ns.
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

    Raises
    ------
    ValueError
        For missing variables, and no bins.

    Examples
    --------
    >>> from daskclust.datasets import timepix
    >>> tot_spectrum(timepix(1000, rng=0)).kdims[0].pprint_label
    'ToT of a hit (ns)'
    """
    ds = dataset_of(ds)
    check_bins(bins)
    values, note = finite(in_memory(ds, ("tot",))["tot"], "tot")
    edges = _TOT_TICK * _whole_edges(values / _TOT_TICK, bins, log=log)
    values = np.clip(values, edges[0], edges[-1])
    what = counted(ds["tot"])
    kdim = dimension(ds["tot"], f"ToT of a {what[:-1]}")
    per = (_TOT_TICK, f"{_TOT_TICK:g} ns")
    return histogram(values, edges, kdim, log=log, logy=logy, what=what, note=note, per=per)


def tof_spectrum(ds: xr.Dataset, *, bins: int = 200, logy: bool = False) -> hv.Histogram:
    """Draw how many hits, or clusters, came how long after the last trigger.

    Parameters
    ----------
    ds : xarray.Dataset
        Hits, or the table of their clusters, with the time of flight ``tof`` in ns.
    bins : int, default 200
        Number of bins.
    logy : bool, default False
        Counts on a logarithmic axis.

    Returns
    -------
    holoviews.Histogram
        Counts; the axis is in ns, µs, ms or s. Hits before the first trigger, whose time of flight is NaN, are left
        out, and counted in the title.

    Raises
    ------
    ValueError
        For missing variables, and no bins.

    Examples
    --------
    >>> ds = xr.Dataset({"tof": ("hit", [1e6, 2e6, float("nan")], {"units": "ns"})})
    >>> tof_spectrum(ds, bins=2).kdims[0].pprint_label
    'time of flight (ms)'
    """
    ds = dataset_of(ds)
    check_bins(bins)
    values, note = finite(in_memory(ds, ("tof",))["tof"], "tof")
    values, unit = in_time_units(values)
    kdim = hv.Dimension("tof", label="time of flight", unit=unit)
    edges = np.histogram_bin_edges(values, bins)
    return histogram(values, edges, kdim, log=False, logy=logy, what=counted(ds["tof"]), note=note)


def _sizes(table: xr.Dataset, bins: int, *, log: bool, **how: Any) -> hv.Histogram:
    check_bins(bins)
    sizes = in_memory(table, ("size",))["size"].values
    values = sizes[sizes > 0]
    kdim = hv.Dimension("size", label="points of a cluster")
    note = without(sizes.size - values.size, "points")
    return histogram(values, _whole_edges(values, bins, log=log), kdim, log=log, note=note, **how)


def _whole_edges(values: npt.NDArray[Any], bins: int, *, log: bool) -> Float:
    """Return edges of at most `bins` bins, half way between whole numbers, from 1 to the largest value."""
    most = max(1, int(np.ceil(values.max(initial=1))))
    steps = (np.geomspace if log else np.linspace)(1, most + 1, bins + 1)
    edges: Float = np.unique(np.concatenate([[1], steps.round(), [most + 1]])) - 0.5
    return edges


def log_edges(positive: Float, bins: int) -> Float:
    """Return edges of equal width in the logarithm, from the smallest value to the largest."""
    low, high = float(positive.min()), float(positive.max())
    edges: Float = np.geomspace(low, high if high > low else 2 * low, bins + 1)
    return edges
