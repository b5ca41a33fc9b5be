"""HDF5 as h5py, pandas and instruments write it: types, byte orders, chunks, filters, groups, records.

What is right is the NumPy array that h5py was given. The layout of pandas' tables is that of its HDFStore.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from cases.lanes import some_of

from daskclust.io import read_hits

ROWS = 40
TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?"]
LAYOUTS: dict[str, dict[str, Any]] = {
    "contiguous": {},
    "compact": {"dcpl": "compact"},
    "chunks": {"chunks": (7,)},
    "one chunk": {"chunks": (ROWS,)},
    "too large a chunk": {"chunks": (64,), "maxshape": (None,)},
    "growing": {"chunks": (8,), "maxshape": (None,)},
}
FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "gzip": {"compression": "gzip"},
    "lzf": {"compression": "lzf"},
    "shuffled": {"compression": "gzip", "compression_opts": 9, "shuffle": True},
    "checked": {"fletcher32": True},
}
PLACES = ["/", "/run", "/entry/data 1/hits", "/é/µ"]
LIBVERS = ["earliest", "latest", ("v108", "v108")]


def numbers(kind: str, order: str, seed: int) -> np.ndarray:
    """Return numbers of a type, its least and largest among them."""
    rng, dtype = np.random.default_rng(seed), np.dtype(kind)
    if dtype.kind == "f":
        values = rng.normal(size=ROWS).astype(dtype)
        values[:5] = [np.inf, -np.inf, np.nan, np.finfo(dtype).max, -0.0]
    elif dtype.kind == "b":
        values = rng.integers(0, 2, ROWS).astype(bool)
    else:
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        values = rng.integers(least, most, ROWS, dtype, endpoint=True)
        values[:2] = least, most
    return values.astype(dtype.newbyteorder(order))


def put(group: Any, name: str, values: np.ndarray, layout: str, filters: str) -> None:
    options = LAYOUTS[layout] | (FILTERS[filters] if "chunks" in LAYOUTS[layout] else {})
    if options.pop("dcpl", None):
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        options["dcpl"] = plist
    group.create_dataset(name, data=values, **options)


@some_of(
    36,
    kind=TYPES,
    order="<>",
    layout=LAYOUTS,
    filters=FILTERS,
    place=PLACES,
    libver=LIBVERS,
    form=["columns", "records"],
    chunks=[None, 9, "auto"],
)
def test_what_h5py_writes(
    tmp_path: Path, kind: str, order: str, layout: str, filters: str, place: str, libver: Any, form: str, chunks: Any
) -> None:
    columns = {"x": numbers("f8", order, 0), "y": numbers("f4", "=", 1), "v": numbers(kind, order, 2)}
    columns["x"][:5] = columns["y"][:5] = 1
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        if form == "records":
            rows = np.empty(ROWS, [(name, values.dtype) for name, values in columns.items()])
            for name, values in columns.items():
                rows[name] = values
            put(file, f"{place}/rows", rows, layout, filters)
        else:
            for name, values in columns.items():
                put(file.require_group(place), name, values, layout, filters)
    ds = read_hits(tmp_path / "a.h5", field="particles", chunks=chunks).compute()
    for name, values in columns.items():
        native = values.astype(values.dtype.newbyteorder("="))
        assert (ds[name].dtype, ds[name].values.tobytes()) == (native.dtype, native.tobytes())


@pytest.mark.parametrize("key", ["hits", "run/hits"])
@pytest.mark.parametrize("data_columns", [False, True])
@pytest.mark.parametrize("chunks", [None, 7])
def test_tables_of_pandas(tmp_path: Path, key: str, data_columns: bool, chunks: int | None) -> None:
    """PyTables stores a frame as records named `table`: its index, and columns, each or in blocks of one type."""
    values = np.random.default_rng(0).normal(size=(ROWS, 3))
    each = [(name, "f8") for name in ("x", "y", "mass")] if data_columns else [("values_block_0", "f8", (3,))]
    rows = np.empty(ROWS, [("index", "i8"), *each])
    rows["index"] = np.arange(ROWS)
    for k, (name, *_) in enumerate(each):
        rows[name] = values[:, k] if data_columns else values
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(f"{key}/table", data=rows, chunks=(8,), maxshape=(None,))
        file[key].attrs["pandas_type"] = np.bytes_("frame_table")
        file[key].create_group("_i_table")
    names = ["x", "y", "mass"]
    columns = None if data_columns else dict(zip((f"values_block_0_{a}" for a in "xyz"), names, strict=True))
    ds = read_hits(tmp_path / "a.h5", field="particles", chunks=chunks, columns=columns)
    for k, name in enumerate(names):
        np.testing.assert_array_equal(ds[name], values[:, k])


OTHERS = {
    "name": np.full(ROWS, b"S1"),
    "matrix": np.zeros((ROWS, 4)),
    "one": 7.0,
    "nothing": h5py.Empty("f8"),
    "complex": np.zeros(ROWS, "c8"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_column_is_named_and_left_out(tmp_path: Path, name: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["y"], file[name] = np.arange(40.0), np.arange(40.0), OTHERS[name]
    with pytest.raises(
        ValueError, match=rf"/{name} of .* no column of numbers; leave it out with columns=\{{'{name}': None"
    ):
        read_hits(tmp_path / "a.h5", field="particles")
    assert read_hits(tmp_path / "a.h5", field="particles", columns={name: None}).sizes == {"particle": ROWS}
