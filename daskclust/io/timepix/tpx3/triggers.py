"""TDC words of Timepix3 files, and times of flight since them."""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.foreign import separated
from daskclust.core.data.units import in_unit
from daskclust.core.device.timesort import TICK, order_of_times
from daskclust.io.devices import check_on_host
from daskclust.io.several import takes_several
from daskclust.io.timepix.tpx3 import scan as table
from daskclust.io.timepix.tpx3.decode import take_trigger, take_triggers
from daskclust.io.timepix.tpx3.index import index_file
from daskclust.io.timepix.tpx3.jumps import check_on_reset
from daskclust.io.timepix.tpx3.words import TDC_STEP, TDC_STEPS

_ABOUT = {
    "time": ("ns", "time of the trigger"),
    "channel": ("1", "TDC input"),
    "is_rising": ("1", "whether the edge rises"),
    "number": ("1", "count of triggers of the readout, modulo 4096"),
    "chip": ("1", "chip in whose chunk the word came"),
}


@takes_several(".tpx3")
def open_tpx3_triggers(
    path: str | os.PathLike[str], *, on_reset: Literal["continue", "restart"] = "continue"
) -> xr.Dataset:
    """Read the TDC words of a raw Timepix3 file.

    Parameters
    ----------
    path : str or path, or list of these
        The file, or several, as for `daskclust.io.open_tpx3`.
    on_reset : {"continue", "restart"}, default "continue"
        As for `daskclust.io.open_tpx3`: hits and triggers have one clock if both have the same.

    Returns
    -------
    xarray.Dataset
        Variables along ``trigger``, sorted by time, and by place in the file where times are equal: ``time`` (float64,
        ns, on the clock of the hits' ``toa``), ``channel`` (uint8, 1 or 2), ``is_rising`` (bool), ``number`` (uint16,
        the readout's count modulo 4096), ``chip`` (uint8). Counts in ``attrs``, and errors, are those of `open_tpx3`.

    Notes
    -----
    A time has a coarse count of 3.125 ns and a fine count from 1 to 12 of 0.26 ns. Where the fine count is outside this
    range, ``attrs["n_tdc_errors"]`` counts it, and the coarse time stands for the whole. Several chips may send a word
    each for one trigger: compare ``number`` and ``chip``.
    """
    name = os.fspath(path)
    index = index_file(name, 600_000.0, tell=False, restarts=check_on_reset(on_reset))
    held = index.cells[index.cells[:, table.TDCS] > 0]
    starts = np.concatenate([[0], np.cumsum(held[:, table.TDCS])]).astype(np.int64)
    words, ticks = np.zeros(int(starts[-1]), dtype=np.uint64), np.zeros(int(starts[-1]), dtype=np.int64)
    chip = np.zeros(int(starts[-1]), dtype=np.uint8)
    take, data = take_triggers.bind(visit=take_trigger), index.file.data()
    take.run(len(held), data, held, starts, index.shift, words, chip, ticks, grain=64)
    columns = {**trigger_columns(words, ticks + index.base), "chip": chip}
    order = order_of_times(columns["time"])
    about = {key: {"units": unit, "long_name": text} for key, (unit, text) in _ABOUT.items()}
    variables = {key: ("trigger", values[order], about[key]) for key, values in columns.items()}
    return xr.Dataset(variables, attrs={"source": name, **index.attrs})


def trigger_columns(words: npt.NDArray[np.uint64], ticks: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of TDC words, whose coarse times in ticks of 1.5625 ns are known."""
    fine = (words >> np.uint64(5)).astype(np.int64) & 0xF
    edge = (words >> np.uint64(56)).astype(np.uint8) & np.uint8(0xF)
    return {
        "time": ticks * TICK + np.where((fine >= 1) & (fine <= TDC_STEPS), fine - 1, 0) * TDC_STEP,
        "channel": np.where((edge == 0xF) | (edge == 0xA), 1, 2).astype(np.uint8),
        "is_rising": (edge == 0xF) | (edge == 0xE),
        "number": ((words >> np.uint64(44)) & np.uint64(0xFFF)).astype(np.uint16),
    }


def time_of_flight(times: Any, triggers: Any, *, channel: int = 1, rising: bool = True) -> Any:
    """Return the time since the last trigger.

    Parameters
    ----------
    times : array_like, dask array or DataArray, shape (n,)
        Times in ns, or in the unit that a DataArray names or a quantity carries: ``toa`` of hits or of a
        cluster table, in any order.
    triggers : xarray.Dataset or array_like
        As `open_tpx3_triggers` returns them, or the times of those that count, in units as `times`.
    channel : {1, 2}, default 1
        The TDC input whose triggers count.
    rising : bool, default True
        Whether rising edges count, or falling ones.

    Returns
    -------
    numpy.ndarray, dask array or DataArray of float64, shape (n,)
        ns since the last trigger at or before each time, NaN before the first one. A dask array stays lazy.

    Raises
    ------
    TypeError, ValueError
        For arrays on a GPU, and triggers that are no 1-D array of finite times.

    Examples
    --------
    >>> time_of_flight(np.array([5.0, 10.0, 27.5]), [10.0, 20.0])
    array([nan, 0. , 7.5])
    """
    times = _in_ns("times", times)
    values, given = (array.data if isinstance(array, xr.DataArray) else array for array in (times, triggers))
    check_on_host("time_of_flight", {"times": values, "triggers": given})
    marks = _trigger_times(triggers, channel, rising)
    if isinstance(times, xr.DataArray):
        about = {"units": "ns", "long_name": "time since the last trigger"}
        return times.copy(data=_since(values, marks)).assign_attrs(about).rename("tof")
    return _since(values, marks)


def _in_ns(name: str, times: Any) -> Any:
    """Return times in ns, whether a DataArray names their unit or an array carries it."""
    values, unit = separated(name, times.data if isinstance(times, xr.DataArray) else times)
    unit = unit or getattr(times, "attrs", {}).get("units")
    values = in_unit(name, values, unit, "ns")
    return times.copy(data=values) if isinstance(times, xr.DataArray) else values


def _trigger_times(triggers: Any, channel: int, rising: bool) -> npt.NDArray[np.float64]:
    """Return sorted times of the triggers that count."""
    if isinstance(triggers, xr.Dataset):
        missing = {"time", "channel", "is_rising"} - {str(name) for name in triggers.variables}
        if missing:
            raise ValueError(
                f"triggers have no variable {', '.join(sorted(missing))}; give what open_tpx3_triggers returns"
            )
        if channel not in (1, 2):
            raise ValueError(f"channel must be 1 or 2, got {channel!r}")
        counts = (triggers["channel"].values == channel) & (triggers["is_rising"].values == bool(rising))
        triggers = triggers["time"][counts]
    marks = np.asarray(_in_ns("triggers", triggers), dtype=np.float64)
    if marks.ndim != 1 or not np.isfinite(marks).all():
        raise ValueError(f"trigger times must be finite and 1-D, got shape {marks.shape}; drop what is no time")
    return np.sort(marks)


def _since(times: Any, marks: npt.NDArray[np.float64]) -> Any:
    """Return the time since the last mark, lazily for what is lazy."""
    if hasattr(times, "map_blocks"):
        return times.map_blocks(_since, marks, dtype=np.float64, meta=np.empty(0))
    last = np.searchsorted(marks, times, side="right") - 1
    padded = np.concatenate([marks, [np.nan]])  # -1, before the first, takes the last entry
    return times - padded[last]
