"""Compensation and transformation, of FCS files as they are opened and of data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes
from cases.files.fcs_reference import cells, fcs_bytes, write

from daskclust.io import arcsinh_transform, compensate, open_fcs


@pytest.mark.parametrize("keyword", ["SPILLOVER", "spill"])
def test_compensation_by_the_file(tmp_path: Path, keyword: str) -> None:
    spill = np.array([[1.0, 0.25], [0.125, 1.0]])
    truth = np.array([[1000.0, 0.0], [0.0, 800.0], [300.0, 40.0]])
    events = np.column_stack([[7.0, 8.0, 9.0], truth @ spill])
    text = "2,R660,B510," + ",".join(map(str, spill.ravel()))
    names = ["FSC-A", "R660", "B510"]
    path = write(
        tmp_path, fcs_bytes(["<f8"] * 3, [tuple(row) for row in events.tolist()], names=names, **{keyword: text})
    )
    ds = open_fcs(path, transform=None)
    np.testing.assert_allclose(ds["X"].values[:, 1:], truth, atol=1e-10)
    np.testing.assert_array_equal(ds["X"].values[:, 0], [7, 8, 9])
    assert ds.attrs["compensation"] == "file"
    plain = open_fcs(path, transform=None, compensate=False)
    np.testing.assert_array_equal(plain["X"].values, events)
    np.testing.assert_array_equal(open_fcs(path, transform=None, channels="B510")["X"][:, 0], ds["X"][:, 2])
    frame = pd.DataFrame(spill, columns=["R660", "B510"])
    labelled = xr.DataArray(spill, dims=("dye", "channel"), coords={"channel": ["R660", "B510"]})
    for matrix in (frame, labelled, spill, frame[["B510", "R660"]].iloc[::-1]):
        given_ = open_fcs(path, transform=None, compensate=matrix)
        np.testing.assert_allclose(given_["X"], ds["X"], rtol=1e-13, atol=1e-10)
        assert given_.attrs["compensation"] == "given"
        xr.testing.assert_allclose(compensate(plain, matrix), given_)
    for matrix, message in [
        (np.eye(3), "has 3 rows without names, and .* has 2 channels that are not linear"),
        (np.ones((2, 2)), "of 'R660', 'B510', has NaN or no inverse"),
        (pd.DataFrame(spill, columns=["R660", "R660"]), "names the channel 'R660', twice"),
    ]:
        with pytest.raises(ValueError, match=message):
            open_fcs(path, compensate=matrix)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_data_sets(dtype: Any) -> None:
    ds = cells(50, 4, dtype).assign_coords(channel=["Time", "CD3", "CD4", "fsc-a"]).drop_attrs()
    spill = pd.DataFrame([[1.0, 0.5], [0.0, 1.0]], columns=["CD3", "CD4"])
    whole = arcsinh_transform(compensate(ds, spill), 5.0)
    X = ds["X"].values.astype(float)
    X[:, 2] -= 0.5 * X[:, 1]
    X[:, 1:3] = np.arcsinh(X[:, 1:3].astype(dtype).astype(float) / 5)
    np.testing.assert_allclose(whole["X"], X, rtol=1e-6 if dtype == np.float32 else 1e-14)
    assert whole["X"].dtype == dtype
    told = {"compensation": "given", "transform": "arcsinh", "cofactor": 5.0, "linear": ["Time", "fsc-a"]}
    assert whole.attrs == told
    assert "transform" not in ds.attrs
    for chunks in ({"cell": 7, "channel": 1}, {"cell": 50}):
        with raise_if_dask_computes():
            lazy = arcsinh_transform(compensate(ds.chunk(chunks), spill), 5.0)
        assert lazy["X"].dtype == dtype
        xr.testing.assert_identical(lazy.compute(), whole)
    with pytest.raises(ValueError, match=r"is transformed already \(transform 'arcsinh', cofactor 5.0\)"):
        arcsinh_transform(whole)
    with pytest.raises(ValueError, match="compensate before the transformation"):
        compensate(whole, spill)
    with pytest.raises(ValueError, match=r"arcsinh_transform needs X along \(cell, channel\) .* variables 'x'"):
        arcsinh_transform(xr.Dataset({"x": ("cell", [1.0])}))
    with pytest.raises(ValueError, match=r"compensate needs X .* has {.cell.: 50, .marker.: 4}: name them with"):
        compensate(ds.rename(channel="marker"), spill)


def test_arcsinh_of_arrays() -> None:
    import dask.array as da

    values = np.linspace(-1000, 1000, 11)
    np.testing.assert_array_equal(arcsinh_transform(values, 5.0), np.arcsinh(values / 5))
    np.testing.assert_array_equal(arcsinh_transform([0, 5], 5.0), np.arcsinh([0, 1]))
    assert arcsinh_transform(values.astype(np.float32)).dtype == np.float32
    lazy = arcsinh_transform(da.from_array(values, chunks=3))
    assert lazy.dtype == np.float64
    np.testing.assert_array_equal(lazy, np.arcsinh(values / 150))
