"""Tables in Parquet, NumPy and ROOT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import xarray as xr
from cases.files.hits import refused, sample, watched_row_groups

from daskclust.io import read_hits, write_hits


def test_parquet_reads_only_the_row_groups_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "hits.parquet"
    write_hits(sample(12).chunk(hit=4), path)
    asked = watched_row_groups(monkeypatch)
    lazy = read_hits(path, chunks=4)
    assert asked == []
    lazy["y"][5:7].compute()
    assert asked == [(1, ["y"])]


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
    np.save(tmp_path / "e.npy", np.empty((0, 4)))
    assert read_hits(tmp_path / "e.npy").sizes == {"hit": 0}


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


def test_text_that_is_missing_and_numbers_of_both_kinds_come_back_from_parquet(tmp_path: Path) -> None:
    random = np.random.default_rng(0).random(5000, np.float32)
    few = (random * 8).astype(np.int64).astype(np.float32)
    words = np.array(["a", None, "b", "c"] * 1250, object)
    columns = {"x": random, "y": few, "z": random.astype(np.float64), "words": words}
    ds = xr.Dataset({name: ("hit", values) for name, values in columns.items()})
    for each in (ds, ds.chunk(hit=2000)):
        write_hits(each, tmp_path / "hits.parquet")
        table = pq.read_table(tmp_path / "hits.parquet")
        assert table["words"].to_pylist() == words.tolist()
        assert all(np.array_equal(table[name].to_numpy(), columns[name]) for name in ("x", "y", "z"))
        group = pq.ParquetFile(tmp_path / "hits.parquet").metadata.row_group(0)
        assert [group.column(k).compression for k in range(3)] == ["UNCOMPRESSED", "SNAPPY", "SNAPPY"]
