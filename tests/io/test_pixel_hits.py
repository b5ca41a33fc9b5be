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
from hypothesis import given
from hypothesis import strategies as st

from daskclust.io import FIELDS, ParquetSink, read_hits, to_dataset, write_hits

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


def test_damaged_metadata(tmp_path: Path) -> None:
    path = tmp_path / "hits.csv"
    for text in ('{"attrs"', '{"attrs": 1, "units": {}}', '{"attrs": {}, "units": {"x": 1}}', "[]", '{"a": 1}'):
        path.write_text(f"# daskclust: {text}\nx,y,toa\n1,2,3\n")
        refused(r"hits\.csv has damaged metadata .* remove its 'daskclust' entry", path)


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


def test_root_and_npy(tmp_path: Path) -> None:
    import uproot

    with uproot.recreate(tmp_path / "hits.root") as file:
        file.mktree("hits", {"x": "i4", "y": "i4", "ToA": "f8", "ToT": "i4"})
        file["hits"].extend({"x": np.arange(3), "y": np.arange(3), "ToA": np.arange(3.0), "ToT": np.arange(3) * 25})
    ds = read_hits(tmp_path / "hits.root")
    assert [str(v.dtype) for v in ds.values()] == ["uint16", "uint16", "float64", "float32"]
    np.save(tmp_path / "hits.npy", np.array([(1, 2, 3)], dtype=[("x", "i8"), ("y", ">u2"), ("toa", "i8")]))
    assert read_hits(tmp_path / "hits.npy")["toa"].dtype == np.float64


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
    refused("layout must be 'chips' or 'quad', got 'row'", path, layout="row")


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
    refused(r"'y' of .* has the unit 'a\.u\.', which is not known; known: cm", path, field="calorimeter")
    calorimeter = read_hits(path, field="calorimeter", units={"y": "pixel"})
    assert (calorimeter["y"].attrs["units"], calorimeter["toa"].attrs["units"]) == ("pixel", "tick")
    refused(r"units names 'z', which .* does not have; it has 'x', 'y', 'toa'", path, units={"z": "cm"})
    ds = to_dataset({"x": [10.0], "y": [1.0], "energy": [5.0], "layer": [1]}, units={"x": "mm", "energy": "MeV"})
    assert (ds["x"].item(), ds["energy"].item(), ds["x"].attrs["units"]) == (1.0, 0.005, "cm")


def test_the_registry_is_consistent() -> None:
    for field in FIELDS.values():
        names = [v.name for v in field.variables]
        aliases = [alias for v in field.variables for alias in v.aliases]
        assert len({*names, *aliases}) == len(names) + len(aliases)
        assert all(alias == alias.lower() for alias in (*aliases, *field.marks))
        assert all(v.unit or v.usual for v in field.variables)
        assert all(np.dtype(v.dtype).kind in {"float": "f", "int": "iu", "bool": "b"}[v.kind] for v in field.variables)


# Parquet files that grow


@given(sizes=st.lists(st.integers(0, 7), min_size=1, max_size=6))
def test_sink(tmp_path_factory: Any, sizes: list[int]) -> None:
    path = tmp_path_factory.mktemp("sink") / "hits.parquet"
    ds = pixels(sum(sizes))
    ends = np.cumsum(sizes)
    with ParquetSink(path) as sink:
        for end, size in zip(ends, sizes, strict=True):
            sink.write(ds.isel(hit=slice(end - size, end)))
        assert not path.exists()
        sink.attrs["n_lost"] = 99
    assert sink.n_rows == sum(sizes)
    back = read_hits(path)
    xr.testing.assert_equal(back, ds)
    assert back.attrs == {**ds.attrs, "n_lost": 99, "source": str(path)}
    assert all(back[name].attrs == ds[name].attrs for name in ds)
    assert os.listdir(path.parent) == ["hits.parquet"]


@pytest.mark.parametrize(("least", "last"), [(1 << 18, [10, 10, 9]), (5, [4, 10, 10, 5])])
def test_row_groups_of_a_sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int, last: list[int]) -> None:
    """Tables of at least so many rows are written as they come, behind those that wait."""
    import pyarrow.parquet as pq

    from daskclust.io.tables import parquet as _parquet

    monkeypatch.setattr(_parquet, "_GROUP_ROWS", 10)
    monkeypatch.setattr(_parquet, "_LEAST_ROWS", least)
    array = np.zeros(4)
    with ParquetSink(tmp_path / "a.parquet") as sink:
        for k in range(4):
            array[:] = k
            sink.write(xr.Dataset({"v": ("cluster", array)}))
        sink.write(xr.Dataset({"v": ("cluster", np.arange(25.0))}))
    metadata = pq.read_metadata(tmp_path / "a.parquet")
    assert [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)] == [10, 2, *last]
    values = pq.read_table(tmp_path / "a.parquet")["v"].to_numpy()
    np.testing.assert_array_equal(values, [*np.repeat(np.arange(4.0), 4), *np.arange(25.0)])


def test_wrong_use_of_a_sink(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"before")
    table = xr.Dataset({"v": ("cluster", np.zeros(3))})
    sink = ParquetSink(path)
    with pytest.raises(ValueError, match="is not open; use it as: with ParquetSink"):
        sink.write(table)
    with pytest.raises(ValueError, match=r"no table was written to .*a\.parquet; write one, even if"), sink:
        pass

    def fill(*tables: xr.Dataset, stop: bool = False) -> None:
        with ParquetSink(path) as sink:
            for table in tables:
                sink.write(table)
            if stop:
                raise KeyError("stop")

    for other in (table.astype("f4"), table.rename(v="w"), table.rename(cluster="hit")):
        with pytest.raises(ValueError, match=r"a table of \w float\d\d cannot follow one of v float64"):
            fill(table, other)
    with pytest.raises(ValueError, match="dimensions"):
        fill(xr.Dataset({"v": (("a", "b"), np.zeros((1, 1)))}))
    with pytest.raises(KeyError, match="stop"):
        fill(table, stop=True)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["a.parquet"]
    with pytest.raises(FileNotFoundError), ParquetSink(tmp_path / "nowhere" / "a.parquet"):
        pass
