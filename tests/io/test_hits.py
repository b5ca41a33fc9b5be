"""Reading and writing hits."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pint
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes
from cases.files.hits import sample
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import daskclust.io
from daskclust.datasets import hgcal_event, timepix
from daskclust.io import open_particles, read_hits, to_dataset, write_hits, write_particles

mm = pint.UnitRegistry().mm

# Writing


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


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".h5", ".npz"])
def test_a_file_may_have_a_name_that_is_no_text(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / os.fsdecode(b"\xff" + suffix.encode())
    write_hits(sample(), path)
    path.rename(tmp_path / f"text{suffix}")
    assert read_hits(tmp_path / f"text{suffix}").sizes == sample().sizes


def test_a_lazy_data_set_can_replace_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "hits.parquet"
    write_hits(sample(), path)
    write_hits(read_hits(path, chunks=2), path)
    xr.testing.assert_equal(read_hits(path), sample())


NUMBERS = {"x": np.array([1.5, 2.5, 4.0]), "y": np.array([0.0, 5.0, 7.0]), "layer": np.array([0, 1, 1])}
NULLABLE = {name: ("hit", pd.Series(values).convert_dtypes().array) for name, values in NUMBERS.items()}
PINT = {name: values * 10 * mm if name in "xy" else values for name, values in NUMBERS.items()}
HELD: dict[str, Any] = {
    "pandas": pd.DataFrame(NUMBERS),
    "polars": pl.DataFrame(NUMBERS),
    "pyarrow": pa.table(NUMBERS),
    "dask": dd.from_pandas(pd.DataFrame(NUMBERS), npartitions=2),
    "mapping": NUMBERS,
    "types of pandas": xr.Dataset(NULLABLE),
    "several levels": xr.Dataset({n: ("hit", v) for n, v in NUMBERS.items()}).set_index(hit=["layer", "x"]),
    "pint in a mapping": PINT,
    "pint": xr.Dataset({name: ("hit", values) for name, values in PINT.items()}),
}


@pytest.mark.parametrize("suffix", [".parquet", ".h5", ".npz", ".zarr", "/*.parquet"])
@pytest.mark.parametrize("held", HELD)
def test_what_other_libraries_hold_is_written(tmp_path: Path, held: str, suffix: str) -> None:
    path = tmp_path / f"hits{Path(suffix).suffix or suffix}"
    write_hits(HELD[held], path, partitions="*" in suffix)
    found = read_hits(path)
    for name, values in NUMBERS.items():
        np.testing.assert_array_equal(found[name], values)
    assert found["x"].attrs["units"] == "cm"


@pytest.mark.parametrize("suffix", [".parquet", ".h5", ".zarr"])
def test_units_of_particles_are_written(tmp_path: Path, suffix: str) -> None:
    columns = {name: ("particle", np.arange(3.0) * 10 * mm) for name in ("x", "y", "z")}
    write_particles(xr.Dataset(columns, attrs={"boxsize": 50.0 * mm}), tmp_path / f"box{suffix}")
    found = open_particles(tmp_path / f"box{suffix}")
    assert (found["x"].attrs["units"], found.attrs["boxsize"], found.attrs["boxsize_units"]) == ("mm", 50.0, "mm")


def test_missing_values_are_not_written(tmp_path: Path) -> None:
    ds = xr.Dataset({"x": ("hit", pd.array([1, None], dtype="Int64"))})
    with pytest.raises(ValueError, match=r"x has 1 missing values \(NA\) of 2"):
        write_hits(ds, tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())


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


@pytest.mark.parametrize("chunks", [None, 7, "auto"])
@pytest.mark.parametrize("make", [partial(timepix, 50), partial(hgcal_event, 3, n_noise=20)])
def test_zarr_stores_come_back(tmp_path, make, chunks):
    hits = make(rng=0)
    write_hits(hits, tmp_path / "hits.zarr")
    write_hits(hits, tmp_path / "hits.parquet")
    expected = read_hits(tmp_path / "hits.parquet").drop_attrs(deep=False)
    for path in (tmp_path / "hits.zarr", tmp_path / "other"):
        found = read_hits(path, chunks=chunks)
        assert found.attrs["field"] == hits.attrs.get("field", "calorimeter")
        assert bool(found.chunks) == (chunks is not None)
        xr.testing.assert_identical(found.drop_attrs(deep=False).compute()[list(expected)], expected)
        path.rename(tmp_path / "other")
