"""Parquet as pandas, polars, pyarrow and Dask write it: parts, indices, types, nulls, dictionaries, compressions."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.parquet as pq
import pytest
from cases.lanes import some_of

from daskclust.io import open_particles, read_hits

XY = {"x": np.arange(30.0), "y": np.zeros(30)}
KINDS = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bool",
]
INDICES = {
    "none": pd.RangeIndex(30),
    "steps": pd.RangeIndex(5, 95, 3),
    "unnamed": pd.Index(np.arange(30) * 7),
    "named": pd.Index(np.arange(30) * 7, name="hit_id"),
    "levels": pd.MultiIndex.from_product([range(3), range(10)]),
    "one named": pd.MultiIndex.from_product([range(3), range(10)], names=["event", None]),
}


def check(path: Path, frame: pd.DataFrame, **options: Any) -> None:
    """Compare with the columns of a frame, and the names of its index that are names."""
    frame = frame.reset_index([name for name in frame.index.names if name is not None])
    for ds in (read_hits(path, **options), read_hits(path, chunks=4, **options).compute()):
        assert {str(name) for name in ds.variables} == set(frame.columns)
        for name in frame.columns:
            np.testing.assert_array_equal(ds[name], frame[name].to_numpy())


WRITERS = [(w, i) for w in ("pandas", "polars", "dask") for i in INDICES if w != "dask" or len(INDICES[i].names) == 1]


@pytest.mark.parametrize(("writer", "index"), WRITERS)
def test_indices(tmp_path: Path, writer: str, index: str) -> None:
    frame = pd.DataFrame(XY, index=INDICES[index])
    if writer == "pandas":
        frame.to_parquet(tmp_path / "a.parquet")
    elif writer == "polars":
        polars = pytest.importorskip("polars")
        polars.from_pandas(frame, include_index=index == "named").write_parquet(tmp_path / "a.parquet")
        frame = frame if index == "named" else pd.DataFrame(XY)
    else:
        dd.from_pandas(frame, npartitions=12).to_parquet(tmp_path / "a.parquet")
    check(tmp_path / "a.parquet", frame)


@some_of(
    10, parts=[1, 2, 9, 11, 30],
    pattern=["part.{}.parquet", "{}.parquet", "a1-{}.parquet", "hits_{:03}.parquet", "{:d}_x.pq"],
)  # fmt: skip
def test_numbered_parts_are_in_the_order_of_their_numbers(tmp_path: Path, pattern: str, parts: int) -> None:
    folder, frame = tmp_path / "a.parquet", pd.DataFrame(XY)
    folder.mkdir()
    for k, rows in enumerate(np.array_split(np.arange(30), parts)):
        frame.iloc[rows].to_parquet(folder / pattern.format(k), index=False)
    (folder / "_SUCCESS").touch()
    (folder / "_metadata.parquet").write_text("none of the parts")
    check(folder, frame)
    np.testing.assert_array_equal(open_particles(folder)["x"], XY["x"])


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_folders_of_pyarrow_and_dask(tmp_path: Path, rows: int) -> None:
    frame = pd.DataFrame(XY)
    table = pa.Table.from_pandas(frame)
    limits = {"max_rows_per_file": rows, "max_rows_per_group": rows}
    pds.write_dataset(table, tmp_path / "arrow.parquet", format="parquet", **limits)
    check(tmp_path / "arrow.parquet", frame)
    dd.from_pandas(frame, npartitions=-(-30 // rows)).to_parquet(tmp_path / "dask.parquet", write_metadata_file=True)
    check(tmp_path / "dask.parquet", dd.read_parquet(tmp_path / "dask.parquet").compute().reset_index(drop=True))


def test_a_folder_of_folders_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({**XY, "layer": 1}).to_parquet(tmp_path / "a.parquet", partition_cols=["layer"])
    with pytest.raises(IsADirectoryError, match=r"is a directory with folders in it, such as 'layer=1'; give one file"):
        read_hits(tmp_path / "a.parquet")
    pd.DataFrame(XY).to_parquet(tmp_path / "a.parquet" / "0.parquet")  # of which the folders would be passed over
    with pytest.raises(IsADirectoryError, match="with folders in it"):
        read_hits(tmp_path / "a.parquet")


@some_of(26, dictionary=[False, True], missing=[False, True], kind=[*KINDS, "decimal"])
def test_types_nulls_and_dictionaries(tmp_path: Path, kind: str, missing: bool, dictionary: bool) -> None:
    values = np.arange(30) % 2 if kind in ("bool", "decimal") else np.arange(30)
    lacks = (np.arange(30) == 7) & missing
    if kind == "decimal":
        column = pa.array([None if m else Decimal(int(v)) / 4 for v, m in zip(values, lacks, strict=True)])
        values = values / 4
    else:
        values = values.astype(kind)
        column = pa.array(values, mask=lacks)
    column = column.dictionary_encode() if dictionary and kind not in ("float16", "bool") else column
    pq.write_table(pa.table({**XY, "v": column}), tmp_path / "a.parquet", row_group_size=11)
    if missing and values.dtype.kind != "f":
        with pytest.raises(ValueError, match=r"column 'v' of .* has no value in row 7 .* leave it out with columns="):
            read_hits(tmp_path / "a.parquet")
        return
    check(tmp_path / "a.parquet", pd.DataFrame({**XY, "v": np.where(lacks, np.nan, values) if missing else values}))


@some_of(
    12,
    compression=["none", "snappy", "gzip", "brotli", "lz4", "zstd"],
    version=["1.0", "2.4", "2.6"],
    page=["1.0", "2.0"],
)
def test_compressions_and_versions(tmp_path: Path, compression: str, version: str, page: str) -> None:
    table = pa.table({**XY, "layer": np.arange(30)})
    pq.write_table(
        table,
        tmp_path / "a.parquet",
        compression=compression,
        version=version,
        data_page_version=page,
        row_group_size=7,
    )
    check(tmp_path / "a.parquet", table.to_pandas())


COLUMNS = {
    "string": pa.array(list("ab") * 15),
    "timestamp": pa.array(np.arange(30).astype("M8[ns]")),
    "duration": pa.array(np.arange(30).astype("m8[ns]")),
    "dictionary": pa.array(list("ab") * 15).dictionary_encode(),
    "binary": pa.array([b"a"] * 30),
    "null": pa.nulls(30),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_what_is_no_number_is_refused_and_left_out(tmp_path: Path, kind: str) -> None:
    pq.write_table(pa.table({**XY, "v": COLUMNS[kind]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=rf"column 'v' of .* has type {kind}.*leave it out with columns={{'v': None}}"):
        read_hits(tmp_path / "a.parquet")
    check(tmp_path / "a.parquet", pd.DataFrame(XY), columns={"v": None})
