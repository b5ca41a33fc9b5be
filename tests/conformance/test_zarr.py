"""Zarr stores, format 2 and 3, as zarr writes them: types, byte orders, fill values, chunks, one array or a group.

Chains of codecs and lost chunks are in tests/io/particles/test_zarr.py. What is right is what NumPy gave to zarr.
"""

from __future__ import annotations

import json
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import zarr
from cases.lanes import some_of
from zarr import codecs

from daskclust.io import open_particles

ROWS = 40
TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?"]
CHUNKS = [3, 7, 20, ROWS, 100]
COMPRESSORS: dict[str, dict[int, Any]] = {
    "none": {2: None, 3: None},
    "default": {2: "auto", 3: "auto"},
    "blosc": {2: numcodecs.Blosc("lz4hc", shuffle=2), 3: codecs.BloscCodec(cname="lz4hc", shuffle="bitshuffle")},
    "zstd": {2: numcodecs.Zstd(5), 3: codecs.ZstdCodec(level=5)},
    "gzip": {2: numcodecs.GZip(9), 3: codecs.GzipCodec(level=9)},
}
FILLS = [None, 0, 1]
SHAPES = ["columns", "matrix (n, 2)", "matrix (n, 3)", "matrix (n, 3), one column a chunk", "matrix (n, 3) in order F"]
WAYS = [None, 9, "auto"]


def numbers(kind: str, order: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers of a type, its least and largest among them."""
    rng, dtype = np.random.default_rng(0), np.dtype(kind)
    if dtype.kind == "f":
        values = rng.normal(size=shape).astype(dtype)
        values[:2] = np.array([np.finfo(dtype).max, -0.0])[:, *[None] * (len(shape) - 1)]
    elif dtype.kind == "b":
        values = rng.integers(0, 2, shape).astype(bool)
    else:
        values = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    return values.astype(dtype.newbyteorder(order))


def put(where: Any, values: np.ndarray, version: int, chunk: int, compressor: str, fill: Any, shape: str) -> None:
    """Write an array, all its chunks, with zarr."""
    columns = () if values.ndim == 1 else (1,) if "one column" in shape else values.shape[1:]
    about: dict[str, Any] = {"chunks": (chunk, *columns), "fill_value": fill, "config": {"write_empty_chunks": True}}
    if fill is not None and values.dtype.kind == "b":
        about["fill_value"] = bool(fill)
    if version == 2 and "order F" in shape:
        about["order"] = "F"
    elif "order F" in shape:
        about["filters"] = [codecs.TransposeCodec(order=(1, 0))]
    if version == 3 and values.dtype.byteorder == ">":
        about["serializer"] = codecs.BytesCodec(endian="big")
    compressors = COMPRESSORS[compressor][version]
    where(shape=values.shape, dtype=values.dtype, compressors=compressors, **about)[...] = values


@some_of(
    30,
    version=[2, 3],
    kind=TYPES,
    order="<>",
    chunk=CHUNKS,
    compressor=COMPRESSORS,
    fill=FILLS,
    shape=SHAPES,
    chunks=WAYS,
)
def test_what_zarr_writes(
    tmp_path: Path, version: int, kind: str, order: str, chunk: int, compressor: str, fill: Any, shape: str, chunks: Any
) -> None:
    path = tmp_path / "a.zarr"
    with warnings.catch_warnings(action="ignore"):
        if shape == "columns":
            given = {name: numbers(k, order, (ROWS,)) for name, k in {"x": "f8", "y": "f4", "v": kind}.items()}
            group = zarr.open_group(path, mode="w", zarr_format=version)
            for name, values in given.items():
                put(partial(group.create_array, name), values, version, chunk, compressor, fill, shape)
        else:
            values = numbers(kind if kind[0] == "f" else "f8", order, (ROWS, int(shape[11])))
            given = dict(zip("xyz", values.T, strict=False))
            put(partial(zarr.create_array, path, zarr_format=version), values, version, chunk, compressor, fill, shape)
        ds = open_particles(path, chunks=chunks).compute()
    assert set(ds) == set(given)
    for name, values in given.items():
        np.testing.assert_array_equal(ds[name], values)
        wanted = values.dtype.newbyteorder("=")  # float16 is no type of positions
        assert ds[name].dtype == (wanted if name == "v" else np.promote_types(wanted, "f4"))


@some_of(8, values=[[1.5, -2.0, 3.25], [0.0, 0.0, 0.0]], kind=["<f8", ">f4", "<i2", "|u1"], version=[2, 3])
def test_stores_written_by_hand(tmp_path: Path, version: int, kind: str, values: list[float]) -> None:
    """As the specification has it, without zarr: metadata in JSON, and a file for each chunk."""
    array = np.array([abs(v) if "u" in kind else v for v in values]).astype(kind)
    path = tmp_path / "a.zarr"
    for name in ("x", "y"):
        (path / name / "c").mkdir(parents=True)
        stored = path / name / ("0" if version == 2 else "c/0")
        stored.write_bytes(array.tobytes())
        about: dict[str, Any] = {"shape": [3], "zarr_format": version, "fill_value": 0}
        if version == 2:
            about |= {"chunks": [3], "dtype": kind, "compressor": None, "filters": None, "order": "C"}
        else:
            endian = {} if array.itemsize == 1 else {"configuration": {"endian": "big" if kind[0] == ">" else "little"}}
            about |= {"node_type": "array", "data_type": array.dtype.name, "codecs": [{"name": "bytes", **endian}],
                      "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}},
                      "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}}  # fmt: skip
        (path / name / (".zarray" if version == 2 else "zarr.json")).write_text(json.dumps(about))
    top = {"zarr_format": version} | ({"node_type": "group"} if version == 3 else {})
    (path / (".zgroup" if version == 2 else "zarr.json")).write_text(json.dumps(top))
    for chunks in (None, 2):
        found = open_particles(path, chunks=chunks).compute()
        np.testing.assert_array_equal(found["x"], array.astype(float))
        np.testing.assert_array_equal(found["y"], array.astype(float))
