"""Zarr stores: all that zarr reads is read, and chunks that are not there are told of."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st
from zarr import codecs

from daskclust.io import open_particles

ROWS = 50
X = np.random.default_rng(0).integers(1, 100, ROWS).astype(np.float64)

V2 = [numcodecs.Blosc(), numcodecs.Zstd(), numcodecs.LZ4(), numcodecs.GZip(), numcodecs.Zlib(), numcodecs.BZ2()]
V2_FILTERS = [numcodecs.Delta("f8"), numcodecs.Shuffle(8), numcodecs.Fletcher32(), numcodecs.CRC32()]
with warnings.catch_warnings(action="ignore"):  # these are not in the specification yet
    V3 = [getattr(codecs.numcodecs, name)() for name in ("Shuffle", "LZ4", "Zlib", "BZ2", "Fletcher32", "Adler32")]
    V3_FILTERS = [codecs.TransposeCodec(order=(0,)), codecs.numcodecs.Delta(dtype="f8")]
V3 += [codecs.BloscCodec(), codecs.ZstdCodec(), codecs.GzipCodec(), codecs.Crc32cCodec()]


@st.composite
def pipelines(draw: Any) -> dict[str, Any]:
    """Draw how an array is written: format, filters, compressors, shards, where the index is, names of chunks."""
    chunk = draw(st.sampled_from([7, 10, ROWS]))
    about: dict[str, Any] = {"chunks": (chunk,), "zarr_format": draw(st.sampled_from([2, 3]))}
    if about["zarr_format"] == 2:
        about["compressors"] = draw(st.sampled_from([None, *V2]))
        about["filters"] = draw(st.sampled_from([None, *([f] for f in V2_FILTERS), V2_FILTERS[:2], V2_FILTERS[::3]]))
        about["chunk_key_encoding"] = {"name": "v2", "separator": draw(st.sampled_from("./"))}
        return about
    chosen = draw(st.none() | st.sets(st.integers(0, len(V3) - 1), max_size=3))
    about["compressors"] = chosen and [V3[k] for k in sorted(chosen)]  # Shuffle takes numbers, so it comes first
    about["filters"] = draw(st.none() | st.lists(st.sampled_from(V3_FILTERS), max_size=1))
    name = draw(st.sampled_from(["default", "v2"]))
    about["chunk_key_encoding"] = {"name": name, "separator": draw(st.sampled_from("./"))}
    if draw(st.booleans()):
        about["shards"] = {"shape": (3 * chunk,), "index_location": draw(st.sampled_from(["start", "end"]))}
    return about


def store(path: Path, columns: dict[str, Any], **about: Any) -> Path:
    """Write a store with zarr itself."""
    with warnings.catch_warnings(action="ignore"):
        group = zarr.open_group(path, mode="w", zarr_format=about.pop("zarr_format", 3))
        for name, values in columns.items():
            group.create_array(name, shape=values.shape, dtype=values.dtype, **about)[:] = values
    return path


@given(about=pipelines(), chunks=st.sampled_from([None, 9, "auto"]))
def test_any_pipeline_of_codecs(tmp_path_factory: Any, about: dict[str, Any], chunks: Any) -> None:
    path = store(tmp_path_factory.mktemp("zarr") / "drawn.zarr", {"x": X, "y": -X}, **about)
    with warnings.catch_warnings(action="ignore"):
        found = open_particles(path, chunks=chunks).compute()
        theirs = zarr.open_group(path, mode="r")
        for name in "xy":
            np.testing.assert_array_equal(found[name], theirs[name][:])


def test_packed_values_are_refused(tmp_path: Path) -> None:
    """What stands for a value in the file is another number."""
    ds = xr.Dataset({"x": ("particle", X)})
    packed = {"dtype": "i2", "scale_factor": 0.1, "add_offset": -2.0, "_FillValue": -1}
    ds.to_zarr(tmp_path / "a.zarr", consolidated=False, encoding={"x": packed})
    with pytest.raises(ValueError, match=r"array 'x' of .* has packed values \(add_offset, scale_factor\); xarray"):
        open_particles(tmp_path / "a.zarr")


@given(about=pipelines(), data=st.data(), fill=st.sampled_from([0.0, np.nan, -1.0]))
def test_a_lost_file_is_told(tmp_path_factory: Any, about: dict[str, Any], data: st.DataObject, fill: float) -> None:
    path = store(tmp_path_factory.mktemp("lost") / "a.zarr", {"x": X, "vx": X}, **about, fill_value=fill)
    name = data.draw(st.sampled_from(["x", "vx"]))
    files = sorted(file for file in (path / name).rglob("*") if file.is_file() and file.name[0] not in "z.")
    data.draw(st.sampled_from(files)).unlink()
    with warnings.catch_warnings(action="ignore"):
        with pytest.raises(ValueError, match=rf"a.zarr/{name} has no chunk .* fill_missing=True"):
            open_particles(path).compute()
        found = open_particles(path, fill_missing=True, chunks=9).compute()
        np.testing.assert_array_equal(found[name], zarr.open_group(path, mode="r")[name][:])


@pytest.mark.parametrize("index_location", ["start", "end"])
@pytest.mark.parametrize("columns", [1, 3])
def test_inner_chunks_that_a_shard_does_not_have(tmp_path: Path, index_location: str, columns: int) -> None:
    values = np.arange(1.0, 41.0)[:, None] * np.ones(columns)
    values[10:15] = 0  # as zarr leaves chunks out
    shards = {"shape": (20, columns), "index_location": index_location}
    array = zarr.create_array(tmp_path / "a.zarr", shape=values.shape, dtype="f8", chunks=(5, 1), shards=shards)
    array[:] = values
    lazy = open_particles(tmp_path / "a.zarr", chunks=10)
    np.testing.assert_array_equal(lazy["x"][:10], values[:10, 0])  # rows that are there
    with pytest.raises(ValueError, match=r"a.zarr has no chunk of rows 10 to 14 \(counted"):
        lazy["x"].compute()
    with pytest.raises(ValueError, match="fill_missing=True"):
        open_particles(tmp_path / "a.zarr", chunks=None)
    for chunks in (None, 7):
        found = open_particles(tmp_path / "a.zarr", chunks=chunks, fill_missing=True)
        np.testing.assert_array_equal(found["x"], values[:, 0])
