"""Events in HDF5: what scipp and rustpix read of our files, and what we read of theirs, and of pymepix'.

The standard: NXevent_data of NeXus, with `event_id = y * x_size + x` as rustpix' description of its files has it.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import rustpix
import scippnexus as snx
import xarray as xr
from cases.clue import raise_if_dask_computes
from cases.lanes import some_of

from daskclust import datasets, io
from daskclust.core.data.fields import SIDES
from daskclust.io import read_hits, write_hits

PYMEPIX = Path(__file__).parents[1] / "data" / "pymepix"
SIZES = {"ns": 1.0, "us": 1e3, "microsecond": 1e3, "second": 1e9}


def hits(layout: Any, *, triggers: bool, n: int = 2000) -> xr.Dataset:
    """Return hits; with the time since the last of some triggers, NaN before the first."""
    ds = datasets.timepix(n, layout=layout, chips=None if layout == "quad" else 3, rng=1).drop_vars("truth")
    if not triggers:
        return ds
    times = np.arange(5) * 25_000.0 + 777.25
    last = np.searchsorted(times, ds["toa"], side="right") - 1
    tof = np.where(last < 0, np.nan, ds["toa"] - times[last])
    return ds.assign(tof=("hit", tof, {"units": "ns"}))


@some_of(8, layout=SIDES, triggers=[False, True], lazy=[None, 700], chunks=[None, 300])
def test_what_is_written_is_read(
    tmp_path: Path, layout: str, triggers: bool, lazy: int | None, chunks: int | None
) -> None:
    ds = hits(layout, triggers=triggers)
    write_hits(ds if lazy is None else ds.chunk(hit=lazy), tmp_path / "a.nxs")
    with raise_if_dask_computes():
        found = read_hits(tmp_path / "a.nxs", chunks=chunks)
    xr.testing.assert_equal(found.compute(), ds)
    assert {name: found.attrs[name] for name in ds.attrs} == ds.attrs
    assert bool(found.chunks) == (chunks is not None)


@pytest.mark.parametrize("layout", SIDES)
@pytest.mark.parametrize("triggers", [False, True])
def test_scipp_takes_what_is_written(tmp_path: Path, layout: str, triggers: bool) -> None:
    ds, (width, height) = hits(layout, triggers=triggers), SIDES[layout]
    write_hits(ds.chunk(hit=333), tmp_path / "a.nxs")
    events = snx.load(tmp_path / "a.nxs", root="entry/hits")
    counts = events.bins.size().values
    zero, each = events.coords["event_time_zero"], events.bins.concat().value.coords
    assert (str(zero.unit), str(each["event_time_offset"].unit), counts.sum()) == ("ns", "ns", ds.sizes["hit"])
    np.testing.assert_array_equal(np.repeat(zero.values, counts) + each["event_time_offset"].values, ds["toa"])
    chip = 0 if layout == "quad" else ds["chip"].astype(int)
    np.testing.assert_array_equal(each["event_id"].values, (chip * height + ds["y"].astype(int)) * width + ds["x"])
    if triggers:
        first = np.flatnonzero(np.diff(np.nan_to_num(ds["tof"].values, nan=-1.0)) < 0) + 1
        assert len(zero) == 1 + len(first) + 1  # those before the first trigger, and the first
        known = np.isfinite(ds["tof"].values)
        np.testing.assert_array_equal(each["event_time_offset"].values[known], ds["tof"].values[known])
    else:
        assert zero.values.tolist() == [0.0]


@pytest.mark.parametrize("triggers", [False, True])
@pytest.mark.parametrize("unit", ["us", "s"])
def test_times_of_another_unit_are_written_in_nanoseconds(tmp_path: Path, unit: str, triggers: bool) -> None:
    ds = hits("chips", triggers=triggers)
    size = {"us": 1e3, "s": 1e9}[unit]
    times = [name for name in ("toa", "tof") if name in ds]
    write_hits(ds.assign({name: (ds[name] / size).assign_attrs(units=unit) for name in times}), tmp_path / "a.nxs")
    write_hits(ds, tmp_path / "b.nxs")
    a, b = (h5py.File(tmp_path / name)["entry/hits"] for name in ("a.nxs", "b.nxs"))
    for name in [*times, "event_time_offset", "event_time_zero"]:
        np.testing.assert_allclose(a[name], b[name], atol=1e-6)
        assert a[name].attrs["units"] == "ns"


def write_events(path: Path, place: str, unit: str, kind: str, pulses: int, **more: Any) -> dict[str, Any]:
    """Write events as others do, and return them."""
    rng = np.random.default_rng(pulses)
    counts = rng.integers(0, 40, pulses)
    n, size = int(counts.sum()), SIZES[unit]
    kinds = {"f4": 16_000_000 / size, "u8": 16_000_000, "f8": 16_000_000 / size}
    offset = (rng.random(n) * kinds[kind]).astype(kind)
    zero = (np.arange(pulses) * 1e9 / 60 / (1 if kind == "u8" else 1e9)).astype("u8" if kind == "u8" else "f8")
    number = rng.integers(0, 512 * 512, n).astype("i4")
    index = (np.cumsum(counts) - counts).astype("i4" if kind == "u8" else "u8")
    with h5py.File(path, "w") as file:
        group = file.create_group(place)
        group.attrs.update(NX_class=np.bytes_("NXevent_data"), x_size=np.uint32(512), y_size=np.uint32(512))
        columns = {"event_id": number, "event_time_offset": offset, "event_time_zero": zero, "event_index": index}
        for name, values in {**columns, **{key: make(n) for key, make in more.items()}}.items():
            group.create_dataset(name, data=values, chunks=(50,), maxshape=(None,))
        group["event_time_offset"].attrs["units"] = unit
        group["event_time_zero"].attrs["units"] = "ns" if kind == "u8" else "second"
        file.create_group("entry/metadata")["ids"] = np.arange(3)
    return {**columns, "pulse": np.repeat(np.arange(pulses), counts)}


@some_of(8, kind=["u8", "f4", "f8"], unit=["ns", "us", "microsecond"], pulses=[1, 30], chunks=[None, 70])
def test_what_others_write(tmp_path: Path, kind: str, unit: str, pulses: int, chunks: int | None) -> None:
    unit = "ns" if kind == "u8" else unit
    put = write_events(tmp_path / "a.h5", "entry/hits", unit, kind, pulses, time_over_threshold=np.arange)
    ds = read_hits(tmp_path / "a.h5", chunks=chunks).compute()
    tof = put["event_time_offset"].astype("f8") * SIZES[unit]
    zero = put["event_time_zero"] * (1.0 if kind == "u8" else 1e9)
    assert (ds.attrs["field"], ds.attrs["layout"]) == ("timepix", "quad")
    np.testing.assert_array_equal(ds["x"], put["event_id"] % 512)
    np.testing.assert_array_equal(ds["y"], put["event_id"] // 512)
    np.testing.assert_array_equal(ds["toa"], zero[put["pulse"]] + tof)
    np.testing.assert_array_equal(ds["tof"], tof)
    np.testing.assert_array_equal(ds["tot"], np.arange(len(tof)))


def test_rustpix_reads_the_same(tmp_path: Path) -> None:
    """Its reader is of the banks of the SNS, in microseconds and seconds."""
    write_events(tmp_path / "a.nxs.h5", "entry/bank100_events", "microsecond", "f4", 30)
    theirs = rustpix.read_sns_events(str(tmp_path / "a.nxs.h5"), pixel_id_offset=0)
    ours = read_hits(tmp_path / "a.nxs.h5")
    for name in ("x", "y"):
        np.testing.assert_array_equal(ours[name], theirs[name])
    np.testing.assert_allclose(ours["tof"], theirs["tof_ns"], rtol=0, atol=0.5)  # they have whole ns
    np.testing.assert_allclose(ours["toa"] - ours["tof"], theirs["pulse_time_ns"], rtol=0, atol=0.5)


def test_times_since_1970_stay_exact(tmp_path: Path) -> None:
    write_events(tmp_path / "a.h5", "entry/hits", "ns", "u8", 5)
    with h5py.File(tmp_path / "a.h5", "a") as file:
        zero = file["entry/hits/event_time_zero"]
        zero[...] = zero[...] + np.uint64(1_790_000_000_123_456_789)
        put = (file["entry/hits/event_time_offset"][...], file["entry/hits/event_index"][...])
    ds = read_hits(tmp_path / "a.h5")
    pulse = np.searchsorted(put[1], np.arange(len(put[0])), side="right") - 1
    assert ds.attrs["first_pulse"] == 1_790_000_000_123_456_789
    np.testing.assert_array_equal(ds["toa"], (np.arange(5) * 1e9 / 60).astype("u8")[pulse] + put[0])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("event_index", [0, 7, 5], "event_index of .* does not rise from 0"),
        ("event_index", [1, 5, 7], "event_index of .* does not rise from 0"),
        ("event_index", [0, 5, 10**9], "event_index of .* does not rise from 0"),
        ("event_index", [0, 5], "are not as long as each other"),
        ("event_time_zero", None, "NXevent_data without 'event_time_zero', which toa needs"),
        ("event_id", None, "has no column for 'x', 'y'"),
    ],
)
def test_events_that_are_none(tmp_path: Path, name: str, value: Any, message: str) -> None:
    write_events(tmp_path / "a.nxs", "entry/hits", "ns", "u8", 3)
    with h5py.File(tmp_path / "a.nxs", "a") as file:
        del file[f"entry/hits/{name}"]
        if value is not None:
            file[f"entry/hits/{name}"] = np.array(value, "i8")
    with pytest.raises(ValueError, match=message):
        read_hits(tmp_path / "a.nxs")


def test_units_and_pixels_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.nxs"
    write_events(path, "entry/hits", "ns", "u8", 3)
    with h5py.File(path, "a") as file:
        file["entry/hits/event_id"][2] = -5
    with pytest.raises(ValueError, match=r"'y' must hold whole numbers from 0 .* row 2"):
        read_hits(path)
    with h5py.File(path, "a") as file:
        file["entry/hits/event_time_zero"].attrs["units"] = "m"
    with pytest.raises(ValueError, match=r"event_time_zero of .* has the unit 'm', which is none of time"):
        read_hits(path)
    with pytest.raises(ValueError, match="is for pixel hits, with x, y and toa"):
        write_hits(datasets.calorimeter(2, 5, rng=0), path)


def pymepix_file(folder: Path) -> Path:
    """Return the file that pymepix wrote, unpacked."""
    (folder / "run.hdf5").write_bytes(gzip.decompress((PYMEPIX / "run.hdf5.gz").read_bytes()))
    return folder / "run.hdf5"


@pytest.mark.parametrize("chunks", [None, 33])
def test_pymepix(tmp_path: Path, chunks: int | None) -> None:
    """Its file of a raw file that is beside it: what `open_tpx3` finds, with its correction of the columns' phase."""
    found = read_hits(pymepix_file(tmp_path), chunks=chunks).compute()
    ours = io.open_tpx3(PYMEPIX / "run.tpx3")
    phase = (ours["x"].astype(int) // 2) % 16
    ours["toa"] = ours["toa"] + 1.5625 * phase.where(phase > 0, 16)
    names = ["toa", "x", "y"]
    (mine, theirs) = (ds.to_dataframe().round({"toa": 3}).sort_values(names) for ds in (ours, found))
    for name in ("x", "y", "tot"):
        np.testing.assert_array_equal(theirs[name], mine[name])
    np.testing.assert_allclose(theirs["toa"], mine["toa"], atol=1e-3)  # theirs are of 25/4096 ns, in s, and rounded
    times = io.open_tpx3_triggers(PYMEPIX / "run.tpx3")["time"].values
    np.testing.assert_allclose(found["tof"], found["toa"] - times[found["trigger"]], atol=0.3)  # a step of the TDC


def test_a_trigger_of_pymepix_without_its_time(tmp_path: Path) -> None:
    path = pymepix_file(tmp_path)
    with h5py.File(path, "a") as file:
        file["raw/trigger nr"][7] = 99
    with pytest.raises(ValueError, match=r"row 7 of /raw of .* is of trigger 99, of which it has no time"):
        read_hits(path)
    with h5py.File(path, "a") as file:
        del file["timing"]
    with pytest.raises(ValueError, match="has no column for 'toa'"):
        read_hits(path)
