"""Hits of pixel detectors, units, and Parquet files that grow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.files.hits import refused
from cases.lanes import some_of

from daskclust.io import PartsSink, read_hits, to_dataset, write_hits

SUFFIXES = [".csv", ".parquet", ".npz", ".h5", ".hdf5"]


def pixels(n: int = 50, **attrs: Any) -> xr.Dataset:
    """Return hits with all variables that there can be, of a quad."""
    rng = np.random.default_rng(n)
    columns = {
        "x": rng.integers(0, 514, n).astype(np.uint16),
        "y": rng.integers(0, 514, n).astype(np.uint16),
        "toa": np.sort(rng.integers(0, 10**13, n)) * 1.5625,
        "tot": (rng.integers(1, 1023, n) * 25).astype(np.float32),
        "chip": rng.integers(0, 4, n).astype(np.uint8),
        "energy": rng.random(n).astype(np.float32),
        "label": rng.integers(-1, 5, n),
        "score": rng.random(n),
        "bright": rng.random(n) < 0.5,
    }
    counters: dict[str, Any] = {"layout": "quad", "gap": 2, "n_lost": 7, "lost": [1.0, 2.5], "name": "run é"}
    return to_dataset(columns, field="timepix", units={"score": "V"}, attrs={**counters, **attrs})


# Round trips


@some_of(15, suffix=SUFFIXES, chunks=[None, 20, (1, 0, 49)], n=[0, 50])
def test_round_trip(tmp_path: Path, suffix: str, chunks: Any, n: int) -> None:
    ds = pixels(n)
    path = tmp_path / f"hits{suffix}"
    write_hits(ds if chunks is None or n == 0 else ds.chunk(hit=chunks), path)
    for lazy in (None, 20):
        back = read_hits(path, chunks=lazy)
        assert {name: back[name].dtype for name in back} == {name: ds[name].dtype for name in ds} | (
            {"bright": np.dtype(np.float64)} if suffix == ".csv" else {}
        )
        assert back.chunks == ({} if lazy is None else ds.chunk(hit=20).chunks)
        xr.testing.assert_equal(back.compute(), ds)
        assert back.attrs == {**ds.attrs, "source": str(path)}
        assert all(back[name].attrs == ds[name].attrs for name in ds)
    assert os.listdir(tmp_path) == [path.name]


def test_csv_is_for_other_programs_too(tmp_path: Path) -> None:
    ds = pixels()
    write_hits(ds, tmp_path / "hits.csv")
    frame = pd.read_csv(tmp_path / "hits.csv", comment="#", dtype={"toa": str})
    np.testing.assert_array_equal(frame["toa"].astype(float), ds["toa"])  # older versions of pandas round
    table = xr.Dataset({"size": ("cluster", [1, 2])}, attrs={"field": "timepix", "layout": "quad"})
    write_hits(table, tmp_path / "clusters.csv")
    assert (tmp_path / "clusters.csv").read_text() == "size\n1\n2\n"


def test_long_attributes(tmp_path: Path) -> None:
    ds = pixels(lost=list(range(20_000)))
    for suffix in (".parquet", ".csv"):
        write_hits(ds, tmp_path / f"hits{suffix}")
        assert read_hits(tmp_path / f"hits{suffix}").attrs["lost"] == list(range(20_000))
    with pytest.raises(ValueError, match=r"the attributes .* and \.npz holds 65535; write \.parquet or \.h5"):
        write_hits(ds, tmp_path / "hits.npz")


def test_attributes_that_no_file_holds(tmp_path: Path) -> None:
    ds = pixels().assign_attrs(nothing=None, nested={"a": 1}, array=np.arange(3), number=np.int64(5), text=b"x")
    for suffix in SUFFIXES:
        write_hits(ds, tmp_path / f"hits{suffix}")
        attrs = read_hits(tmp_path / f"hits{suffix}").attrs
        assert not {"nothing", "nested"} & set(attrs)
        assert (attrs["array"], attrs["number"], attrs["text"]) == ([0, 1, 2], 5, "x")


# Which field


@pytest.mark.parametrize(
    ("text", "options", "field", "names"),
    [
        ("x,y,toa\n1,2,3\n", {}, "timepix", ["x", "y", "toa"]),
        ("col,row,ToA\n1,2,3\n", {}, "timepix", ["x", "y", "toa"]),
        ("# x y toa\n1 2 3\n", {}, "timepix", ["x", "y", "toa"]),
        ("x,y,t\n1,2,3\n", {}, "calorimeter", ["x", "y", "t"]),
        ("x,y,energy\n1,2,3\n", {}, "calorimeter", ["x", "y", "energy"]),
        ("x,y,toa\n1.5,2,3\n", {"field": "calorimeter"}, "calorimeter", ["x", "y", "toa"]),
        ("col,row,t,E\n1,2,3,4\n", {"field": "timepix"}, "timepix", ["x", "y", "toa", "energy"]),
        ("col,row,t,E\n1,2,3,4\n", {"columns": {"t": "toa"}}, "timepix", ["x", "y", "toa", "energy"]),
        ("col,row,t,E\n1,2,3,4\n", {"columns": ["x", "y", "toa", "tot"]}, "timepix", ["x", "y", "toa", "tot"]),
        ("1,2,3\n4,5,6\n", {"field": "timepix"}, "timepix", ["x", "y", "toa"]),
        ("1,2,3\n4,5,6\n", {}, "calorimeter", ["x", "y", "layer"]),
    ],
)
def test_the_field_is_found(tmp_path: Path, text: str, options: Any, field: str, names: list[str]) -> None:
    path = tmp_path / "hits.csv"
    path.write_text(text)
    ds = read_hits(path, **options)
    assert (ds.attrs["field"], list(ds)) == (field, names)
    refused("unknown field 'pixel'; known: calorimeter, particles, timepix", path, field="pixel")
    path.write_text("a,toa\n1,2\n")
    refused("has no column for 'x', 'y'; it has 'a', 'toa'", path)


def test_metadata_win_over_names(tmp_path: Path) -> None:
    ds = to_dataset({"x": [0.5], "y": [1.0], "toa": [3.0]})
    for suffix in (".parquet", ".npz", ".h5"):
        write_hits(ds, tmp_path / f"hits{suffix}")
        back = read_hits(tmp_path / f"hits{suffix}")
        assert back.attrs["field"] == "calorimeter"
        assert back["x"] == 0.5


# Values


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".h5"])
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("x", 65536, "'x' must hold whole numbers from 0 to 65535, got 65536"),
        ("y", -1, "'y' must hold whole numbers from 0 to 65535, got -1"),
        ("chip", 256, "'chip' must hold whole numbers from 0 to 255, got 256"),
        ("x", 0.5, "'x' must hold whole numbers from 0 to 65535, got 0.5"),
    ],
)
def test_values_out_of_range_name_the_row(tmp_path: Path, suffix: str, name: str, value: Any, message: str) -> None:
    columns = {key: np.ones(9, type(value)) for key in ("x", "y", "toa", "chip")}
    columns[name][7] = value
    path = tmp_path / f"hits{suffix}"
    write_hits(xr.Dataset({key: ("hit", v) for key, v in columns.items()}), path)
    refused(rf"{message}.* in row 7 \(counted from 0\)", path)
    if suffix in (".parquet", ".h5"):
        with pytest.raises(ValueError, match=rf"{message}.* in row 7 \(counted from 0\)"):
            read_hits(path, chunks=5).compute()


def test_pixels_beyond_a_chip_need_a_layout(tmp_path: Path) -> None:
    path = tmp_path / "hits.csv"
    path.write_text("x,y,toa\n1,2,3\n300,2,3\n")
    refused(r"x of .*hits\.csv reaches 300, .* give layout='quad'", path)
    assert read_hits(path, layout="quad").attrs["layout"] == "quad"
    refused("layout must be one of 'chips', 'quad', 'timepix4', got 'row'", path, layout="row")


# Units


@pytest.mark.parametrize(
    ("unit", "factor"), [("ns", 1.0), ("s", 1e9), ("us", 1e3), ("ps", 1e-3), ("25 ns", 25.0), ("1.5625 ns", 1.5625)]
)
@pytest.mark.parametrize("chunks", [None, 2])
def test_units_are_converted(tmp_path: Path, unit: str, factor: float, chunks: int | None) -> None:
    toa = np.array([0.0, 3.0, 7.5])
    ds = xr.Dataset({"x": ("hit", [1, 2, 3], {"units": "px"}), "y": ("hit", [1, 2, 3]), "toa": ("hit", toa)})
    write_hits(ds, tmp_path / "plain.parquet")
    ds["toa"].attrs["units"] = unit
    for suffix in (".parquet", ".h5", ".npz"):
        write_hits(ds, tmp_path / f"hits{suffix}")
        back = read_hits(tmp_path / f"hits{suffix}", chunks=chunks)
        np.testing.assert_array_equal(back["toa"].compute(), toa * factor)
        assert (back["toa"].dtype, back["toa"].attrs["units"]) == (np.float64, "ns")
        assert back["x"].attrs["units"] == "pixel"
    back = read_hits(tmp_path / "plain.parquet", units={"toa": unit}, chunks=chunks)
    np.testing.assert_array_equal(back["toa"].compute(), toa * factor)


def test_units_that_cannot_be_converted(tmp_path: Path) -> None:
    ds = xr.Dataset({"x": ("hit", [1.0]), "y": ("hit", [1.0], {"units": "a.u."}), "toa": ("hit", [1.0])})
    ds["toa"].attrs["units"] = "tick"
    path = tmp_path / "hits.h5"
    write_hits(ds, path)
    refused(r"'y' of .* has the unit 'a\.u\.', which is not known; known: .*pixel", path)
    refused(r"'toa' of .* has the unit 'tick', which is not known; known: ns, .*25 ns", path, units={"y": "1"})
    refused(
        r"'toa' of .* has the unit 'cm', .* give their unit with units=\{'toa': ", path, units={"y": "1", "toa": "cm"}
    )
    assert read_hits(path, units={"y": "1", "toa": "25 ns"})["toa"] == 25
    calorimeter = read_hits(path, field="calorimeter", units={"y": "pixel"})
    assert (calorimeter["y"].attrs["units"], calorimeter["toa"].attrs["units"]) == ("pixel", "tick")
    ds = to_dataset({"x": [10.0], "y": [1.0], "energy": [5.0], "layer": [1]}, units={"x": "mm", "energy": "MeV"})
    assert (ds["x"].item(), ds["energy"].item(), ds["x"].attrs["units"]) == (1.0, 0.005, "cm")


# Files that grow


def test_a_sink_copies_what_it_keeps_and_leaves_a_file_after_an_error(tmp_path: Path) -> None:
    path, array = tmp_path / "a.parquet", np.zeros(4)
    with PartsSink(path, keep=False) as sink:
        for k in range(3):
            array[:] = k
            sink.write(xr.Dataset({"v": ("cluster", array)}))
    np.testing.assert_array_equal(pd.read_parquet(path)["v"], np.repeat(np.arange(3.0), 4))
    before, table = path.read_bytes(), xr.Dataset({"v": ("cluster", array)})
    for other in (table.astype("f4"), table.rename(v="w"), table.rename(cluster="hit")):
        with pytest.raises(ValueError, match=r"cannot follow one of v float64"), PartsSink(path, keep=False) as sink:  # noqa: PT012
            sink.write(table)
            sink.write(other)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.parquet"]
