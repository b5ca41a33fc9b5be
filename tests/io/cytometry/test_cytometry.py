"""Reading and writing cells."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes
from cases.files.fcs_reference import cells, fcs_bytes, write
from cases.files.writers import GMHC, write_gmhc
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskclust.datasets import cytometry
from daskclust.io import arcsinh_transform, read_cells, read_gmhc, write_cells

# gmhclust


def test_nilsson(shared_data: Path) -> None:
    path = shared_data / "cytometry" / "nilsson_rare_sub4423_d14.bin"
    ds = read_gmhc(path)
    assert ds["X"].shape == (4423, 14)
    assert ds["X"].dtype == np.float64
    assert ds.attrs["layout"] == "uint64-float64"
    assert ds["channel"].values[[0, 13]].tolist() == ["channel_1", "channel_14"]
    expected = np.fromfile(path, np.float64, offset=16).reshape(4423, 14)
    np.testing.assert_array_equal(ds["X"], expected)
    assert np.isfinite(expected).all()
    xr.testing.assert_identical(read_cells(path, chunks=1000).compute(), ds)


@pytest.mark.parametrize("layout", [*GMHC, "text"])
@given(data=st.data())
def test_round_trip_of_points(tmp_path_factory: pytest.TempPathFactory, layout: str, data: Any) -> None:
    folder = tmp_path_factory.mktemp("gmhc")
    dtype = np.float32 if layout.endswith("32") else np.float64
    shape = data.draw(st.tuples(st.integers(0, 20), st.integers(1, 5)))
    X = data.draw(
        hnp.arrays(dtype, shape, elements=st.floats(width=8 * np.dtype(dtype).itemsize, allow_subnormal=False))
    )
    number = data.draw(hnp.arrays(np.int64, shape[0], elements=st.integers(0, 2**32 - 1)))
    chunks = data.draw(st.integers(1, 25))
    ds = xr.Dataset({"X": (("cell", "channel"), X), "apriori": ("cell", number)})
    write_gmhc(ds, folder / "points", folder / "numbers", layout=layout)
    for wanted in (None, chunks):
        back = read_gmhc(folder / "points", folder / "numbers", chunks=wanted)
        assert (back.chunks == {}) == (wanted is None)
        if len(X) or layout != "uint64-float32":  # without values, these are of either type
            assert back.attrs["layout"] == layout
            assert back["X"].dtype == dtype
        np.testing.assert_array_equal(back["X"], X)
        np.testing.assert_array_equal(back["apriori"], number)


def test_points_as_the_program_writes_them(tmp_path: Path) -> None:
    text = "3 2 -1.29547 8.00796 -7.49481\n0.873838\t0.59632 -1.51012"
    ds = read_gmhc(write(tmp_path, text, "points"), write(tmp_path, "7\n 7\t", "numbers"))
    np.testing.assert_array_equal(ds["X"], [[-1.29547, 8.00796, -7.49481], [0.873838, 0.59632, -1.51012]])
    np.testing.assert_array_equal(ds["apriori"], [7, 7])
    assert ds.attrs["layout"] == "text"
    xr.testing.assert_identical(read_gmhc(tmp_path / "points", chunks=1).compute(), ds.drop_vars("apriori"))


WRONG_POINTS = [
    b"\x01", struct.pack("<II3f", 2, 2, 1, 2, 3), struct.pack("<QQ5d", 2, 3, *range(5)),
    struct.pack("<QQ", 2**63, 2**63), struct.pack("<QQ", 0, 5), b"2 2 1 2 3", b"2 2 1 2 3 4 5", b"99999999 99999999 1",
    b"2 2 1 2 3 four", b"2 2 1 2 3 \xff", b"0 2 ", b"2.5 1 3",
]  # fmt: skip


def test_wrong_points_and_assignments(tmp_path: Path) -> None:
    """Sizes that no layout has, and texts that are no numbers: an error that names the file."""
    for content in WRONG_POINTS:
        path = write(tmp_path, content, "points")
        with pytest.raises(ValueError, match=str(path)):
            read_gmhc(path)
    points = write(tmp_path, "1 2 0.5 1.5", "points")
    for text in ("1 2 3", "1", "1 -2", "1 4294967296", "1 2.0"):
        numbers = write(tmp_path, text, "numbers")
        with pytest.raises(ValueError, match=str(numbers)):
            read_gmhc(points, numbers)
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_gmhc(points, tmp_path / "nowhere")


# Tables


@pytest.mark.parametrize("suffix", [".parquet", ".pq", ".csv", ".fcs"])
@pytest.mark.parametrize("chunks", [None, 7])
def test_round_trip_of_cells(tmp_path: Path, suffix: str, chunks: int | None) -> None:
    ds = arcsinh_transform(cells(), 5.0).assign_coords(detector=("channel", ["B1", "B2", "B3"]))
    path = tmp_path / f"cells{suffix}"
    write_cells(ds if chunks is None else ds.chunk({"cell": chunks, "channel": 2}), path)
    back = read_cells(path, chunks=chunks)
    assert (back.chunks == {}) == (chunks is None)
    np.testing.assert_array_equal(back["X"].astype(np.float32), ds["X"])
    np.testing.assert_array_equal(back["apriori"], ds["apriori"])
    assert back["apriori"].dtype == np.int64
    assert back["channel"].values.tolist() == ["CD0", "CD1", "CD2"]
    assert back["X"].dims == ("cell", "channel")
    assert back.attrs["source"] == str(path)
    assert back.attrs["field"] == "cytometry"
    if suffix == ".csv":
        assert back["X"].dtype == np.float64
        assert back.attrs["transform"] == "none"
        return
    assert back["X"].dtype == np.float32
    assert back["detector"].values.tolist() == ["B1", "B2", "B3"]
    assert (back.attrs["transform"], back.attrs["cofactor"]) == ("arcsinh", 5.0)
    assert back["X"].attrs["long_name"] == "intensity, arcsinh(x / 5)"
    with pytest.raises(ValueError, match=r"is transformed already .* would give wrong values; give transform=None"):
        read_cells(path, transform="arcsinh")
    few = read_cells(path, channels=["CD2", "CD0"], chunks=chunks)
    assert list(few) == ["X"]
    np.testing.assert_array_equal(few["X"], ds["X"].values[:, [2, 0]])
    again = tmp_path / f"again{suffix}"
    write_cells(back, again)
    xr.testing.assert_identical(read_cells(again).drop_attrs(deep=False), read_cells(path).drop_attrs(deep=False))


@pytest.mark.parametrize("chunks", [None, 30])
@pytest.mark.parametrize("suffix", [".fcs", ".parquet", ".csv"])
@pytest.mark.parametrize("sample", [None, 40])
def test_clustered_cells_are_read_as_they_were(
    tmp_path: Path, suffix: str, chunks: int | None, sample: int | None
) -> None:
    found = cytometry(80, 2, rng=0).clust.dbscan(1.0).clust.hdbscan(5).clust.hca(0.1, n_clusters=3, sample=sample)
    path = tmp_path / f"cells{suffix}"
    write_cells(found, path)
    back = read_cells(path, chunks=chunks, transform=None)
    assert back["channel"].values.tolist() == found["channel"].values.tolist()
    for name in ("label", "point_height", "is_core", "probability", "outlier_score"):
        np.testing.assert_allclose(back[name], found[name], rtol=1e-7)
    again = back.clust.hca(0.1, n_clusters=3, sample=sample)
    np.testing.assert_array_equal(again["label"], found["label"])


def test_parquet_is_lazy(tmp_path: Path) -> None:
    path = tmp_path / "cells.parquet"
    frame = pd.DataFrame(np.arange(36.0).reshape(12, 3), columns=["a", "b", "c"]).assign(group=np.arange(12.0))
    frame.to_parquet(path, row_group_size=4)
    with raise_if_dask_computes():
        lazy = read_cells(path, channels=["c", "a"], apriori="group", chunks=4)
    np.testing.assert_array_equal(lazy["X"][5:7].compute(), [[17, 15], [20, 18]])
    np.testing.assert_array_equal(lazy["apriori"], np.arange(12))
    frame["group"] = frame["group"].where(frame["group"] != 9)
    frame.to_parquet(path, row_group_size=4)
    lazy = read_cells(path, apriori="group", chunks=5)
    with pytest.raises(ValueError, match=r"column 'group' of .* must hold whole numbers, got nan in row 9 \(counted"):
        lazy["apriori"].compute()


def test_columns_of_tables(tmp_path: Path) -> None:
    path = write(tmp_path, "CD3;CD4;grp;label\n1;2;5;0\n3;4;6;-1\n", "cells.csv")
    ds = read_cells(path)
    assert ds["channel"].values.tolist() == ["CD3", "CD4", "grp"]
    assert ds["label"].values.tolist() == [0, -1]
    ds = read_cells(path, apriori="grp")
    assert ds["channel"].values.tolist() == ["CD3", "CD4"]
    assert ds["apriori"].values.tolist() == [5, 6]
    assert list(read_cells(path, apriori="label")) == ["X", "apriori"]
    ds = read_cells(path, channels="CD4", apriori="grp")
    assert list(ds) == ["X", "apriori"]
    np.testing.assert_array_equal(ds["X"], [[2], [4]])
    ds = read_cells(path, channels="CD*", transform="arcsinh", cofactor=5)
    np.testing.assert_array_equal(ds["X"], np.arcsinh([[0.2, 0.4], [0.6, 0.8]]))
    spaces = read_cells(write(tmp_path, "4-1BB,CD 3\n1,2\n", "spaces.csv"))
    assert spaces["channel"].values.tolist() == ["4-1BB", "CD 3"]
    with pytest.raises(ValueError, match=r"has no channel 'CD8'; it has 'CD3', 'CD4'"):
        read_cells(path, channels="CD8")
    with pytest.raises(ValueError, match=r"column 'apriori' of .* must hold whole numbers, got 1.5 in row 0 \(counted"):
        read_cells(write(tmp_path, "CD3,apriori\n1,1.5\n", "wrong.csv"))
    pd.DataFrame({"CD3": [1.0], "name": ["a"]}).to_parquet(tmp_path / "text.parquet")
    with pytest.raises(ValueError, match=r"column 'name' of .* is no number; choose columns without it with channels="):
        read_cells(tmp_path / "text.parquet")
    assert read_cells(tmp_path / "text.parquet", channels="CD3")["X"].shape == (1, 1)
    pd.DataFrame({"CD3": [1.0, 2.0], "lists": [[1.0, 2.0], [3.0]]}).to_parquet(tmp_path / "lists.parquet")
    with pytest.raises(ValueError, match=r"column 'lists' of .* has type list<.*>, which is no number; choose columns"):
        read_cells(tmp_path / "lists.parquet")
    assert read_cells(tmp_path / "lists.parquet", channels="CD3")["X"].shape == (2, 1)
    pd.DataFrame({"CD3": [1.0], "apriori": pd.array([None], "Int64")}).to_parquet(tmp_path / "null.parquet")
    with pytest.raises(ValueError, match=r"column 'apriori' of .* has no value in row 0 .* with channels="):
        read_cells(tmp_path / "null.parquet")


def test_cells_of_an_fcs_file(tmp_path: Path) -> None:
    content = fcs_bytes(["<f4"] * 4, [(1, 2, 5, 7), (3, 4, 6, -1)], names=["Time", "B1", "grp", "label"], P2S="CD3")
    path = write(tmp_path, content, "cells.lmd")  # by its content
    ds = read_cells(path)
    assert ds["channel"].values.tolist() == ["Time", "CD3", "grp"]
    assert ds["label"].values.tolist() == [7, -1]
    ds = read_cells(path, apriori="grp", transform="arcsinh", cofactor=5)
    np.testing.assert_array_equal(ds["X"].values, np.array([[1, np.arcsinh(0.4)], [3, np.arcsinh(0.8)]], np.float32))
    assert ds["apriori"].values.tolist() == [5, 6]
    assert ds.attrs["linear"] == ["Time"]
    assert list(read_cells(path, channels=["CD3"])) == ["X"]


def test_cells_that_cannot_be_written(tmp_path: Path) -> None:
    ds = cells()
    for name, wrong, message in [
        ("a.csv", ds.drop_vars("channel"), r"write_cells needs X .* \{'cell': 20, 'channel': 3\}: name them with"),
        ("a.csv", ds.assign_coords(channel=["a", "b", "apriori"]), r"without names of their own \('apriori'\)"),
        ("a.fcs", ds.assign_coords(channel=["a", "b", "/d"]), "the name '/d' is not allowed in an FCS file"),
        ("a.fcs", ds.assign(apriori=ds["apriori"] + 2**24), "whole numbers to 16777216 here .* write Parquet"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_cells(wrong, tmp_path / name)
        assert list(tmp_path.iterdir()) == []


@given(
    X=hnp.arrays(np.float64, st.tuples(st.integers(0, 15), st.integers(1, 4)), elements=st.floats(allow_nan=False)),
    suffix=st.sampled_from([".parquet", ".csv"]),
)
def test_tables_keep_every_digit(tmp_path_factory: pytest.TempPathFactory, X: Any, suffix: str) -> None:
    path = tmp_path_factory.mktemp("cells") / f"cells{suffix}"
    names = [f"{141 + k}Pr_CD{k}" for k in range(X.shape[1])]
    write_cells(xr.Dataset({"X": (("cell", "channel"), X)}, coords={"channel": names}), path)
    back = read_cells(path)
    np.testing.assert_array_equal(back["X"], X)
    assert back["channel"].values.tolist() == names


def test_missing_values_stay(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1.0, None], "n": pd.array([None, 2], "Int64")}).to_parquet(tmp_path / "a.parquet")
    np.testing.assert_array_equal(read_cells(tmp_path / "a.parquet")["X"], [[1, np.nan], [np.nan, 2]])


@pytest.mark.parametrize("save", [np.save, np.savez])
def test_an_array_without_names(tmp_path: Path, save: Callable[..., None]) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    with open(path := tmp_path / f"cells{'.npy' if save is np.save else '.npz'}", "wb") as stream:
        save(stream, X)
    found = read_cells(path)
    np.testing.assert_array_equal(found["X"], X)
    assert found["channel"].values.tolist() == ["channel_1", "channel_2", "channel_3"]
