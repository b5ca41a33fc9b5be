"""Whole numbers that float64 cannot hold are refused by readers of every format, as by estimators."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import uproot

from daskclust.io import read_hits, to_dataset

SINCE_1970 = 1_700_000_000_000_000_000  # ns


def _write(path: Path, toa: np.ndarray) -> None:
    columns = {"x": np.array([5, 6]), "y": np.array([5, 5]), "toa": toa}
    match path.suffix:
        case ".parquet":
            pd.DataFrame(columns).to_parquet(path)
        case ".h5":
            with h5py.File(path, "w") as file:
                for name, values in columns.items():
                    file[name] = values
        case ".npz":
            np.savez(path, **columns)
        case ".npy":
            np.save(path, pd.DataFrame(columns).to_records(index=False))
        case ".root":
            with uproot.recreate(path) as file:
                file["hits"] = columns


@pytest.mark.parametrize("chunks", [None, 1])
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("suffix", [".parquet", ".h5", ".npz", ".npy", ".root"])
def test_times_beyond_float64(tmp_path: Path, suffix: str, dtype: str, chunks: int | None) -> None:
    path = tmp_path / f"hits{suffix}"
    _write(path, np.array([7, SINCE_1970], dtype))
    with pytest.raises(ValueError, match=rf"toa of .*\[1\] = {SINCE_1970} is beyond 2\*\*53, where float64 has gaps"):
        read_hits(path, chunks=chunks)["toa"].compute()
    _write(path, np.array([7, 2**53], dtype))
    assert read_hits(path, chunks=chunks)["toa"].values.tolist() == [7.0, 2.0**53]


def test_numbers_that_stay_integers_or_floats(tmp_path: Path) -> None:
    ds = to_dataset({"x": [1e300], "y": [0.5], "event": [SINCE_1970 + 1]})
    assert (float(ds["x"][0]), int(ds["event"][0])) == (1e300, SINCE_1970 + 1)
