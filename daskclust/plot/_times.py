"""What happens over time."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.inputs import dataset_of
from daskclust.plot._data import check_bins, counted, finite, in_memory, in_time_units
from daskclust.plot._elements import overlay
from daskclust.plot._look import COLORS, hv, with_options

Float = npt.NDArray[np.float64]

_PER = ((1e6, "µs"), (1e3, "ms"))  # how many of them are a second
_CURVES = (COLORS[0], COLORS[1], COLORS[5])


def rate(*data: xr.Dataset, bins: int = 100, logy: bool = False) -> hv.Overlay:
    """Draw at which rate hits, clusters, or both come, over time.

    Parameters
    ----------
    *data : xarray.Dataset
        Hits, the table of their clusters, or both: what has ``toa`` in ns.
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
        For no Dataset, missing variables, and no bins.

    Examples
    --------
    >>> ds = xr.Dataset({"toa": ("hit", [0.0, 10.0, 30.0, 90.0, 100.0], {"units": "ns"})})
    >>> rate(ds, bins=2).get(0).dimension_values("rate").tolist()  # three and two in 50 ns
    [60.0, 60.0, 40.0, 40.0]
    """
    if not data:
        raise ValueError("there is nothing to draw; give hits, the table of their clusters, or both")
    check_bins(bins)
    data = tuple(dataset_of(ds) for ds in data)
    times, notes = zip(*(finite(in_memory(ds, ("toa",))["toa"], "toa") for ds in data), strict=True)
    low = min((float(each.min()) for each in times if each.size), default=0.0)
    high = max((float(each.max()) for each in times if each.size), default=low)
    edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
    shown, unit = in_time_units(edges)
    rates = [np.histogram(each, edges)[0] / np.diff(edges) * 1e9 for each in times]  # edges are in ns
    highest = max(float(each.max()) for each in rates)
    size, per = next(((size, per) for size, per in _PER if highest >= 2 * size), (1.0, "s"))
    kdims = [hv.Dimension("time", unit=unit), hv.Dimension("rate", unit=f"1/{per}")]
    logy = logy and any(each.size for each in times)
    words = [counted(ds["toa"]) for ds in data]
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
    each = {"bokeh": {"line_width": 1.8}, "matplotlib": {"linewidth": 1.5}}
    return with_options(curve, each, both={"color": color, "interpolation": "steps-mid"})
