"""Reading and writing hits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import daskclust.io
from daskclust.io import read_hits, to_dataset, write_hits

NAMES = ["aniso_1000", "circles_1000", "moons_1000", "sissa_1000", "sissa_4000", "toyDetector_1000"]


def refused(message: str, *args: Any, **options: Any) -> None:
    """Check that a file is refused with a message."""
    with pytest.raises(ValueError, match=message):
        read_hits(*args, **options)


def sample(n: int = 7) -> xr.Dataset:
    """Return a small data set with every kind of variable."""
    rng = np.random.default_rng(0)
    return to_dataset(
        {
            "x": rng.normal(size=n).astype(np.float32),
            "y": rng.normal(size=n),
            "layer": np.arange(n, dtype=np.int32) % 3,
            "energy": rng.random(n).astype(np.float32),
            "label": np.arange(n) - 1,
            "is_seed": np.arange(n) % 2 == 0,
            "time": rng.random(n),
        },
        units={"time": "ns"},
    )


def write(tmp_path: Path, text: str, name: str = "hits.csv") -> Path:
    """Write a text file."""
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


# Text


@pytest.mark.parametrize("name", NAMES)
def test_real_csv_without_header_equals_pandas(shared_data: Path, name: str) -> None:
    path = shared_data / "clue" / f"{name}.csv"
    ds = read_hits(path)
    expected = pd.read_csv(path, header=None)
    assert list(ds) == ["x", "y", "layer", "energy"]
    assert {str(v.dtype) for v in (ds["x"], ds["y"], ds["energy"])} == {"float64"}
    assert ds["layer"].dtype == np.int32
    for column, variable in enumerate(ds):
        np.testing.assert_array_equal(ds[variable].values, expected[column].to_numpy())
    assert [ds[v].attrs["units"] for v in ds] == ["cm", "cm", "1", "GeV"]
    assert ds.attrs == {"field": "calorimeter", "source": str(path)}


@pytest.mark.parametrize(
    "text",
    [
        "1.5,2,0,4\n-1,2.5e1,1,inf\n",
        "1.5;2;0;4\r\n-1;2.5e1;1;inf\r\n",
        "1.5\t2\t0\t4\n-1\t2.5e1\t1\tinf",
        "  1.5   2 0 4\n-1 2.5e1  1 inf \n",
        "1.5, 2, 0, 4\n\n   \n# a comment\n-1, 2.5e1, 1.0, inf # the last\n\n",
        "x,y,layer,energy\n1.5,2,0,4\n-1,2.5e1,1,inf\n",
        '"X" , "Y", "Layer", "E"\n1.5,2,0,4\n-1,2.5e1,1,inf\n',
        "x y layer energy\n1.5,2,0,4\n-1,2.5e1,1,inf\n",
        "# made today by me\n# x y lay weight\n1.5 2 0 4\n-1 2.5e1 1 inf\n",
        "# made today by me\n1.5 2 0 4\n-1 2.5e1 1 inf\n",
        "\ufeffx\ty\tlayer\tw\n1.5\t2\t0\t4\n-1\t2.5e1\t1\tinf\n",
        '# 5" wide\n1.5,2,0,4 # 3"\n-1,2.5e1,1,inf\n',
        '"1.5","2",0,4\n   # x\n-1,2.5e1,1,inf\n',
    ],
)
def test_text_layouts(tmp_path: Path, text: str) -> None:
    ds = read_hits(write(tmp_path, text, "hits.txt"))
    assert list(ds) == ["x", "y", "layer", "energy"]
    np.testing.assert_array_equal(ds["x"], [1.5, -1.0])
    np.testing.assert_array_equal(ds["y"], [2.0, 25.0])
    np.testing.assert_array_equal(ds["layer"], [0, 1])
    np.testing.assert_array_equal(ds["energy"], [4.0, np.inf])


@pytest.mark.parametrize(("text", "names"), [("1,2\n", ["x", "y"]), ("1,2,3\n", ["x", "y", "layer"])])
def test_number_of_columns_tells_names(tmp_path: Path, text: str, names: list[str]) -> None:
    assert list(read_hits(write(tmp_path, text))) == names


def test_columns_argument(tmp_path: Path) -> None:
    five = write(tmp_path, "1,2,3,4,5\n")
    assert list(read_hits(five, columns=["t", "x", "y", "layer", "E"])) == ["t", "x", "y", "layer", "energy"]
    named = write(tmp_path, "a,b,c,weight\n1,2,3,4\n", "named.csv")
    assert list(read_hits(named, columns={"a": "x", "b": "y", "c": None})) == ["x", "y", "energy"]
    assert list(read_hits(named, columns={"b": "y", "a": "x", "*": None})) == ["x", "y"]
    assert list(read_hits(named, columns=["y", "x", "layer", "q"])) == ["y", "x", "layer", "q"]


def test_header_without_rows_is_an_empty_data_set(tmp_path: Path) -> None:
    ds = read_hits(write(tmp_path, "x,y,layer,energy\n"))
    assert ds.sizes == {"hit": 0}
    assert ds["layer"].dtype == np.int32


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"is empty \(0 bytes\)"),
        ("\n  \n# only a comment\n", "has no data: expected rows"),
        ("1,2,3,4\n\n1,2,3\n", r"line 3: expected 4 fields as in the first row, found 3: '1,2,3'"),
        ("x,y\n1,2\n1,2,3\n", r"line 3: expected 2 fields as in the header, found 3"),
        ("x,y\n1,2,3\n4,5,6\n", r"line 2: expected 2 fields as in the header, found 3"),
        ("x,y,layer\n1,2\n", r"line 2: expected 3 fields as in the header, found 2"),
        ("1,2\n3,four\n", r"line 2, column 2: expected a number, found 'four'"),
        ("x,y\n3,\n", r"line 2, column 2 \(y\): expected a number, found ''"),
        ("x,y\n3,1_0\n", r"line 2, column 2 \(y\): expected a number, found '1_0'"),
        ("1,zwei\n3,4\n", r"line 1, column 2: expected a number, found 'zwei'"),
        ("1,5;2,5\n", r"line 1, column 1: expected a number, found '1,5'"),
        ("1\n2\n", r"has 1 columns without names, .* columns=\["),
        ("1,2,3,4,5\n", r"has 5 columns without names"),
        ("a,b\n1,2\n", r"has no column for 'x', 'y'; it has 'a', 'b': name it with columns="),
        ("x,y,x\n1,2,3\n", r"has columns of the same name 'x'"),
        ("x,y,w,e\n1,2,3,4\n", r"columns 'w', 'e' of .* could all be 'energy'; choose one with columns="),
        ("1,2,0\n1,2,0.5\n", r"'layer' must hold whole numbers .* got 0.5 in row 1 \(counted from 0\)"),
        ("1,2,nan\n", r"'layer' must hold whole numbers .* got nan in row 0"),
        ("1,2,3e9\n", r"'layer' must hold whole numbers .* got 3000000000.0 in row 0"),
    ],
)
def test_wrong_text(tmp_path: Path, text: str, message: str) -> None:
    refused(message, write(tmp_path, text))


def test_own_name_wins_over_alias(tmp_path: Path) -> None:
    ds = read_hits(write(tmp_path, "x,y,Energy,weight\n1,2,3,4\n"))
    assert list(ds) == ["x", "y", "energy", "weight"]
    assert ds["energy"] == 3.0


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("xy", "columns must be a list of names"),
        (["x", "y", "z"], "has 2 columns, but columns= names 3"),
        ({"q": "x"}, "has no column 'q'; it has 'x', 'y'"),
        ({"x": "a", "y": "a"}, "two columns the name 'a'"),
        ({"x": ""}, "must be the name of a variable or None"),
        ({"x": "y"}, "column 'y' of .* is in the way"),
        ({"*": "x"}, "must be None"),
    ],
)
def test_wrong_columns(tmp_path: Path, columns: Any, message: str) -> None:
    refused(message, write(tmp_path, "1,2\n"), columns=columns)


def test_binary_bytes_in_a_text_file(tmp_path: Path) -> None:
    path = tmp_path / "hits.csv"
    path.write_bytes(b"1,2\n\xff\xfe\x00,3\n")
    refused("is not a UTF-8 text file", path)
    path.write_bytes(b"1,2\n\x00\x00,3\n")
    refused("line 2, column 1: expected a number", path)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.root", "a.root:tree", "a.npy", "a.npz", "a.xyz"])
def test_missing_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such file: .*a\."):
        read_hits(tmp_path / name)


def test_directory_and_unknown_extension(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a directory; give one file"):
        read_hits(tmp_path)
    refused(r"unknown extension '.dat' .* known: .csv, .tsv", write(tmp_path, "1,2", "hits.dat"))


@pytest.mark.parametrize("chunks", [0, -1, 2.5, True, "auto"])
def test_wrong_chunks(tmp_path: Path, chunks: Any) -> None:
    refused("chunks must be a positive number of hits, got", write(tmp_path, "1,2\n"), chunks=chunks)


# Parquet


@pytest.mark.parametrize("chunks", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("row_group_size", [1, 3, 100])
def test_parquet_is_lazy(tmp_path: Path, chunks: int, row_group_size: int) -> None:
    ds = sample()
    path = tmp_path / "hits.parquet"
    frame = ds.to_dataframe().assign(layer=lambda f: f["layer"].astype(float))
    frame.to_parquet(path, index=False, row_group_size=row_group_size)
    with raise_if_dask_computes():
        lazy = read_hits(path, chunks=chunks)
        assert lazy.chunks["hit"] == tuple(min(chunks, 7 - start) for start in range(0, 7, chunks))
        assert lazy["layer"].dtype == np.int32
        assert all(key.startswith("daskclust-io-read-") for key in lazy["x"].data.dask.layers)
    xr.testing.assert_equal(lazy.compute(), ds)


def test_parquet_reads_only_the_row_groups_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "hits.parquet"
    write_hits(sample(12).chunk(hit=4), path)
    asked: list[tuple[int, list[str]]] = []
    original = pq.ParquetFile.read_row_group

    def spy(self: Any, group: int, columns: list[str]) -> Any:
        asked.append((group, columns))
        return original(self, group, columns=columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", spy)
    lazy = read_hits(path, chunks=4)
    assert asked == []
    lazy["y"][5:7].compute()
    assert asked == [(1, ["y"])]


def test_lazy_parquet_error_names_the_row(tmp_path: Path) -> None:
    path = tmp_path / "hits.parquet"
    layer = np.zeros(10)
    layer[8] = 0.25
    pd.DataFrame({"x": np.zeros(10), "y": np.zeros(10), "layer": layer}).to_parquet(path, row_group_size=3)
    lazy = read_hits(path, chunks=4)
    with pytest.raises(ValueError, match=r"got 0.25 in row 8 \(counted from 0\)"):
        lazy["layer"].compute()


def test_parquet_missing_values(tmp_path: Path) -> None:
    path = tmp_path / "hits.parquet"
    frame = pd.DataFrame({"x": [1.0, None], "y": [0.0, 1.0], "n": pd.array([1, None], dtype="Int64")})
    frame.to_parquet(path)
    refused(r"column 'n' .* has no value in row 1 .* columns=\{'n': None\}", path)
    np.testing.assert_array_equal(read_hits(path, columns={"n": None})["x"], [1.0, np.nan])


def test_parquet_text_column(tmp_path: Path) -> None:
    path = tmp_path / "hits.parquet"
    pd.DataFrame({"x": [1.0], "y": [0.0], "name": ["a"]}).to_parquet(path)
    refused(r"column 'name' .* is no number; leave it out with columns=", path)
    assert list(read_hits(path, columns={"name": None})) == ["x", "y"]
    refused("give columns= as a mapping", path, columns=["x", "y", "name"])


# NumPy


def test_npy(tmp_path: Path) -> None:
    table = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]], dtype=np.float32)
    np.save(tmp_path / "c.npy", table)
    np.save(tmp_path / "f.npy", np.asfortranarray(table).astype(">f4"))
    for name in ("c.npy", "f.npy"):
        ds = read_hits(tmp_path / name)
        np.testing.assert_array_equal(ds.to_dataframe().to_numpy(), table)
        assert ds["x"].dtype == np.float32
        assert ds["layer"].dtype == np.int32
    np.save(tmp_path / "s.npy", np.array([(1, 2.5, 3)], dtype=[("Y", "f8"), ("X", "f4"), ("n", "u2")]))
    ds = read_hits(tmp_path / "s.npy")
    assert {str(v): str(ds[v].dtype) for v in ds} == {"y": "float64", "x": "float32", "n": "uint16"}
    np.save(tmp_path / "e.npy", np.empty((0, 4)))
    assert read_hits(tmp_path / "e.npy").sizes == {"hit": 0}


def test_npy_of_other_shapes(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.zeros(3))
    refused("has 1 columns without names", tmp_path / "one.npy")
    np.save(tmp_path / "text.npy", np.array([["a", "b"]]))
    refused("dtype <U1, expected numbers of shape", tmp_path / "text.npy")


def test_npz(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.arange(3.0), Y=np.arange(3), w=np.ones(3, np.float32))
    ds = read_hits(tmp_path / "a.npz")
    assert {str(v): str(ds[v].dtype) for v in ds} == {"x": "float64", "y": "float64", "energy": "float32"}
    np.savez(tmp_path / "b.npz", np.zeros((5, 4)))
    assert read_hits(tmp_path / "b.npz").sizes == {"hit": 5}
    np.savez(tmp_path / "c.npz", x=np.zeros(3), y=np.zeros(2))
    refused(r"unequal lengths: \{'x': 3, 'y': 2\}", tmp_path / "c.npz")
    np.savez(tmp_path / "d.npz", x=np.zeros(3), y=np.zeros(3), version=np.int64(1))
    refused(r"column 'version' .* leave it out with columns=", tmp_path / "d.npz")
    assert list(read_hits(tmp_path / "d.npz", columns={"version": None})) == ["x", "y"]


# ROOT


def write_root(path: Path, branches: dict[str, Any], name: str = "tree") -> None:
    """Write one tree."""
    import uproot

    with uproot.recreate(path) as file:
        file.mktree(
            name, {key: value.type if hasattr(value, "type") else value.dtype for key, value in branches.items()}
        )
        file[name].extend(branches)


def test_flat_root(tmp_path: Path) -> None:
    path = tmp_path / "hits.root"
    ds = sample()
    write_root(path, {v: ds[v].values for v in ("x", "y", "layer", "energy", "time")})
    for name in (path, f"{path}:tree"):
        back = read_hits(name)
        xr.testing.assert_equal(back, ds.drop_vars(["label", "is_seed"]))
        assert back["x"].dtype == np.float32
    assert read_hits(path, chunks=3).chunks["hit"] == (3, 3, 1)


def test_jagged_root(tmp_path: Path) -> None:
    import awkward as ak

    path = tmp_path / "events.root"
    counts = np.array([2, 0, 3])
    values = {name: np.arange(5.0) * (k + 1) for k, name in enumerate(("x", "y", "layer", "energy"))}
    branches: dict[str, Any] = {name: ak.unflatten(v, counts) for name, v in values.items()}
    write_root(path, branches | {"run": np.array([7, 8, 9])})
    ds = read_hits(path)
    np.testing.assert_array_equal(ds["event"], [0, 0, 2, 2, 2])
    np.testing.assert_array_equal(ds["run"], [7, 7, 9, 9, 9])
    for name, v in values.items():
        np.testing.assert_array_equal(ds[name], v)
    assert ds["event"].dtype == np.int64


def test_jagged_root_of_several_collections(tmp_path: Path) -> None:
    import awkward as ak

    path = tmp_path / "events.root"
    one, two = ak.Array([[1.0, 2.0], [3.0]]), ak.Array([[1.0], [2.0, 3.0]])
    write_root(path, {"x": one, "y": one, "other": two, "event": np.array([40, 41])})
    refused(r"branches 'x' and 'other' .* unequal lengths", path, columns={"nx": None, "nother": None, "ny": None})
    ds = read_hits(path, columns={"x": "x", "y": "y", "event": "event", "*": None})
    np.testing.assert_array_equal(ds["event"], [40, 40, 41])


def test_choice_of_a_tree(tmp_path: Path) -> None:
    import uproot

    path = tmp_path / "two.root"
    with uproot.recreate(path) as file:
        for name in ("a", "dir/b"):
            file.mktree(name, {"x": "f8", "y": "f8"})
            file[name].extend({"x": np.zeros(2), "y": np.zeros(2)})
    refused(r"has 2 trees and RNTuples \('a', 'dir/b'\); choose one with", path)
    assert read_hits(f"{path}:dir/b").sizes == {"hit": 2}
    refused("has no tree or RNTuple 'c'; it has 'a', 'dir/b'", f"{path}:c")
    with uproot.recreate(path):
        pass
    refused("has no TTree", path)


def test_root_without_uproot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uproot", None)
    with pytest.raises(ImportError, match=r'pip install "daskclust\[io\]"'):
        read_hits(write(tmp_path, "root", "a.root"))


# Writing


@settings(max_examples=40, deadline=None)
@given(
    values=hnp.arrays(np.float64, st.integers(0, 30), elements=st.floats(allow_nan=True, allow_infinity=True)),
    suffix=st.sampled_from([".csv", ".parquet", ".npz"]),
    chunk=st.integers(1, 10),
)
def test_any_floats_come_back(tmp_path_factory: Any, values: Any, suffix: str, chunk: int) -> None:
    path = tmp_path_factory.mktemp("any") / f"hits{suffix}"
    ds = to_dataset({"x": values, "y": values[::-1]})
    write_hits(ds.chunk(hit=chunk), path)
    back = read_hits(path)
    np.testing.assert_array_equal(back["x"].values, values)
    np.testing.assert_array_equal(np.signbit(back["x"].values[values == 0]), np.signbit(values[values == 0]))


def test_parquet_takes_one_chunk_at_a_time(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    write_hits(sample(10).chunk(hit=4), tmp_path / "hits.parquet")
    metadata = pq.read_metadata(tmp_path / "hits.parquet")
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [4, 4, 2]


def test_a_lazy_data_set_can_replace_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "hits.parquet"
    write_hits(sample(), path)
    write_hits(read_hits(path, chunks=2), path)
    xr.testing.assert_equal(read_hits(path), sample())


def test_wrong_datasets(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"unknown extension '.xls' .* known: .csv, .parquet"):
        write_hits(sample(), tmp_path / "hits.xls")
    with pytest.raises(ValueError, match="has no variables"):
        write_hits(xr.Dataset(), tmp_path / "hits.csv")
    with pytest.raises(ValueError, match=r"variable 'm' has dimensions \('a', 'b'\) .* ds.drop_vars\('m'\)"):
        write_hits(xr.Dataset({"m": (("a", "b"), np.zeros((1, 1)))}), tmp_path / "hits.csv")
    with pytest.raises(ValueError, match=r"dimensions \['a', 'b'\]"):
        write_hits(xr.Dataset({"u": ("a", [1]), "v": ("b", [1])}), tmp_path / "hits.csv")
    with pytest.raises(ValueError, match="cannot stand in the header"):
        write_hits(xr.Dataset({"u,v": ("a", [1])}), tmp_path / "hits.csv")
    with pytest.raises(FileNotFoundError):
        write_hits(sample(), tmp_path / "nowhere" / "hits.csv")
    assert os.listdir(tmp_path) == []


# Schema


def test_to_dataset_checks() -> None:
    with pytest.raises(ValueError, match="unknown field 'astrology'; known: calorimeter"):
        to_dataset({"x": [1.0]}, field="astrology")
    with pytest.raises(ValueError, match=r"unequal lengths: \{'x': 1, 'y': 2\}"):
        to_dataset({"x": [1.0], "y": [1.0, 2.0]})
    with pytest.raises(ValueError, match="must be numeric, got dtype <U1"):
        to_dataset({"x": ["a"], "y": [1.0]})
    with pytest.raises(ValueError, match=r"must have one dimension, got shape \(1, 1\)"):
        to_dataset({"x": [[1.0]], "y": [1.0]})
    with pytest.raises(ValueError, match="'event' must hold whole numbers"):
        to_dataset({"x": [1.0], "y": [1.0], "event": [2.0**53]})
    for above in (np.float32(2.0**31), np.float64(2.0**31)):
        with pytest.raises(ValueError, match="'layer' must hold whole numbers from -2147483648 to 2147483647"):
            to_dataset({"x": [1.0], "y": [1.0], "layer": [above]})
    assert to_dataset({"x": [1.0], "y": [1.0], "layer": [np.float32(-(2.0**31))]})["layer"] == -(2**31)


@pytest.mark.parametrize("source", [None, "hits.csv"])
def test_to_dataset_says_what_its_mapping_must_have(source: str | None) -> None:
    """It takes no names of columns beside the columns themselves."""
    with pytest.raises(ValueError, match=r"has no column for 'y'; it has 'x', 'b': add it under the key 'y'$"):
        to_dataset({"x": [1.0], "b": [1.0]}, source=source)
    with pytest.raises(ValueError, match=r"could all be 'energy'; name one of them 'energy', and leave"):
        to_dataset({"x": [1.0], "y": [1.0], "e": [1.0], "weight": [1.0]}, source=source)


def test_to_dataset_is_lazy_on_dask() -> None:
    with raise_if_dask_computes():
        x = da.zeros(5, chunks=2)
        assert to_dataset({"x": x, "y": x})["x"].chunks == ((2, 2, 1),)
        layers = to_dataset({"x": x, "y": x, "layer": da.from_array([0.0, 1, 2, 0.5, 3], chunks=2)})["layer"]
        assert layers.dtype == np.int32
    np.testing.assert_array_equal(layers[:2], [0, 1])
    with pytest.raises(ValueError, match=r"got 0\.5 in row 3"):
        layers.compute()


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f4", "f8", "g", "i1", "u2", "i8", "?"])
def test_kinds(dtype: str) -> None:
    values = np.array([0, 1, 1], dtype=dtype)
    ds = to_dataset({"x": values, "y": values, "layer": values, "is_seed": values})
    assert str(ds["x"].dtype) == {"f2": "float32", "f4": "float32", ">f4": "float32"}.get(dtype, "float64")
    assert ds["layer"].dtype == (dtype if np.dtype(dtype).kind in "iu" else np.int32)
    assert ds["is_seed"].dtype == bool
    np.testing.assert_array_equal(ds["layer"], [0, 1, 1])


def test_importing_io_is_light() -> None:
    code = "import sys, daskclust.io; assert not {'numpy', 'xarray', 'pandas', 'dask'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert {"read_hits", "write_hits", "CALORIMETER"} <= set(dir(daskclust.io))
    with pytest.raises(AttributeError, match="nothing"):
        _ = daskclust.io.nothing
