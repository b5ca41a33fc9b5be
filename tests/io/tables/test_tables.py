"""Tables in Parquet, NumPy and ROOT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes
from cases.files.hits import refused, sample, watched_row_groups
from cases.lanes import some_of

from daskclust.io import read_hits, write_hits


@some_of(5, chunks=[1, 2, 3, 7, 100], row_group_size=[1, 3, 100])
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
    path = tmp_path / "hits.parquet"
    write_hits(sample(12).chunk(hit=4), path)
    asked = watched_row_groups(monkeypatch)
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
    refused(r"give columns=\{'its name': 'x'", path, columns=["x", "y", "name"])


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


def test_npy_of_other_shapes(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.zeros(3))
    refused("has 1 columns without names", tmp_path / "one.npy")
    np.save(tmp_path / "text.npy", np.array([["a", "b"]]))
    refused("dtype <U1, which is no table of numbers", tmp_path / "text.npy")


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
