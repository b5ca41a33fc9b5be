"""Events in HDF5: groups NXevent_data of NeXus files, as scipp, Mantid and rustpix have them, and hits of pymepix.

Both give the time since the pulse, or trigger, of each event: ``toa`` is that of the pulse, plus this time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.fields import SIDES, TIMEPIX
from daskclust.core.data.quote import listed
from daskclust.core.data.units import ratio
from daskclust.io.files import import_library
from daskclust.io.rows import Stored

_EVENTS = ("event_id", "event_time_offset", "event_time_zero", "event_index")
_OF_NEXUS = ("NX_class", "default", "x_size", "y_size")  # attributes that are none of the data set
_LONG = 2**52  # ns from which on float64 has no fractions
_UNITS = {"nanosecond": "ns", "microsecond": "us", "millisecond": "ms", "second": "s"}


def event_groups(file: Any) -> list[str]:
    """Return the names of the groups of events of an open file."""
    h5py, found = import_library("h5py", "HDF5 files"), list[str]()

    def visit(name: str, entry: Any) -> None:
        if isinstance(entry, h5py.Group) and (_is_nexus(entry) or _is_pymepix(entry)):
            found.append(f"/{name}")

    file.visititems(visit)
    return found


def _is_nexus(group: Any) -> bool:
    kind = np.ravel(group.attrs.get("NX_class"))[:1].tolist()
    return kind in (["NXevent_data"], [b"NXevent_data"])


def _is_pymepix(group: Any) -> bool:
    return {"trigger nr", "x", "y", "tof", "tot"} <= set(group)


def event_columns(
    group: Any, arrays: dict[str, Stored], attrs: Mapping[str, Any], path: str
) -> tuple[dict[str, Stored], dict[str, Any]]:
    """Return the columns of a group, with times and pixels where it has events, and attributes of the data set.

    `arrays` are the columns as they are stored.
    """
    if _is_pymepix(group):
        return _of_pymepix(group, arrays, path), {**attrs, "field": TIMEPIX.name}
    if not _is_nexus(group):
        return arrays, dict(attrs)
    told = {"field": TIMEPIX.name} | {name: value for name, value in attrs.items() if name not in _OF_NEXUS}
    lacking = [name for name in _EVENTS[1:] if name not in arrays]
    if lacking:
        raise ValueError(f"{group.name} of {path} is NXevent_data without {listed(lacking)}, which toa needs")
    columns = {name: array for name, array in arrays.items() if name not in _EVENTS}
    offset = arrays["event_time_offset"]
    if "toa" not in columns:
        first = _check_pulses(group, offset.shape[0], path)
        arrivals = partial(_arrivals, os.path.abspath(path), group.name, first)
        floats, what = np.dtype(np.float64), f" of {group.name}"
        columns["toa"] = offset._replace(read=arrivals, dtype=floats, units="ns", what=what)
        columns["tof"] = offset._replace(units=_UNITS.get(offset.units or "", offset.units))
        told |= {"first_pulse": first} if first else {}
    width, height = (int(np.ravel(attrs.get(name, 0))[0]) for name in ("x_size", "y_size"))
    if "event_id" in arrays and width > 0 and not {"x", "y"} & set(columns):
        number = arrays["event_id"]
        for axis, pixels in (("x", np.mod), ("y", np.floor_divide)):
            read = partial(_pixels, number.read, pixels, width)
            columns[axis] = number._replace(read=read, dtype=np.dtype(np.int64), units="pixel")
    elif "event_id" in arrays and "x" not in columns:
        columns["detector_number"] = arrays["event_id"]
    if width and height:
        layout = next((name for name, sides in SIDES.items() if sides == (width, height)), "quad")
        told.setdefault("layout", layout)
    return columns, told


def _pixels(read: Any, pixels: Any, width: int, start: int, stop: int) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = pixels(read(start, stop).astype(np.int64), width)
    return found


def _pulses(group: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return when each pulse was, and the number of its first event."""
    return group["event_time_zero"][()], group["event_index"][()].astype(np.int64)


def _check_pulses(group: Any, n: int, path: str) -> int | float:
    """Refuse pulses that do not divide n events; return from when times count: 0, or the first pulse.

    Times since 1970 in ns would be rounded to 256 ns.
    """
    zero, index = _pulses(group)
    if zero.shape != index.shape or zero.ndim != 1:
        raise ValueError(f"event_time_zero and event_index of {group.name} of {path} are not as long as each other")
    if n and not (len(index) and index[0] == 0 and index[-1] <= n and (np.diff(index) >= 0).all()):
        raise ValueError(
            f"event_index of {group.name} of {path} does not rise from 0 to the {n} events; write the file again"
        )
    is_long = len(zero) and float(np.abs(zero.astype(np.float64)).max() * _in_ns(group["event_time_zero"])) > _LONG
    first: int | float = zero[0].item() if is_long else 0
    return first


def _in_ns(dataset: Any) -> float:
    """Return how many ns the unit of a dataset has, 1 without one."""
    unit = dataset.attrs.get("units", "ns")
    unit = unit.decode(errors="replace") if isinstance(unit, bytes) else str(np.ravel(unit)[0])
    by = ratio(_UNITS.get(unit, unit), "ns")
    if by is None:
        raise ValueError(f"{dataset.name} of {dataset.file.filename} has the unit {unit!r}, which is none of time")
    return float(by)


def _arrivals(path: str, name: str, first: int | float, start: int, stop: int) -> npt.NDArray[np.float64]:
    """Return the times of arrival of events start to stop, in ns since `first`."""
    with import_library("h5py", "HDF5 files").File(path, "r") as file:
        group = file[name]
        zero, index = _pulses(group)
        counts: npt.NDArray[np.int64] = np.diff(np.append(np.clip(index, start, stop), stop))
        since = (zero - np.asarray(first, zero.dtype)).astype(np.float64) * _in_ns(group["event_time_zero"])
        offset = group["event_time_offset"][start:stop].astype(np.float64) * _in_ns(group["event_time_offset"])
        times: npt.NDArray[np.float64] = np.repeat(since, counts) + offset
    return times


def _of_pymepix(group: Any, arrays: dict[str, Stored], path: str) -> dict[str, Stored]:
    """Return the hits of pymepix: its times are in s, ToT in ns whatever its attribute says, triggers are numbered."""
    tof = arrays["tof"]._replace(units="s")
    columns = arrays | {"tof": tof, "tot": arrays["tot"]._replace(units="ns")}
    columns["trigger"] = columns.pop("trigger nr")
    if "timing/timepix" in group.file and {"trigger nr", "event trigger"} <= set(group.file["timing/timepix"]):
        read = partial(_after_triggers, os.path.abspath(path), group.name)
        columns["toa"] = tof._replace(read=read, dtype=np.dtype(np.float64), what=f" of {group.name}")
    return columns


def _after_triggers(path: str, name: str, start: int, stop: int) -> npt.NDArray[np.float64]:
    """Return when hits start to stop of pymepix came, in s: the time of their trigger, and that since then."""
    with import_library("h5py", "HDF5 files").File(path, "r") as file:
        numbers, times = (file["timing/timepix"][each][()] for each in ("trigger nr", "event trigger"))
        wanted, tof = (file[name][each][start:stop] for each in ("trigger nr", "tof"))
    numbers, first = np.unique(numbers, return_index=True)
    is_known = np.isin(wanted, numbers)
    if not is_known.all():
        k = int(np.argmin(is_known))
        raise ValueError(f"row {start + k} of {name} of {path} is of trigger {wanted[k]}, of which it has no time")
    found: npt.NDArray[np.float64] = times[first[np.searchsorted(numbers, wanted)]] + tof
    return found
