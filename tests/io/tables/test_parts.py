"""Data sets of chunks: written where they are computed, as one file or as a folder of Parquet files, and read again."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO, FileIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import dask
import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
from cases.files.hits import refused, sample
from cases.tables import random_hits, ranges_of
from distributed import Client
from hypothesis import given
from hypothesis import strategies as st

from daskclust.io import read_hits, write_hits
from daskclust.io.tables.parquet_join import append, joining
from daskclust.properties import cluster_table


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as client:
        yield client


@pytest.fixture(scope="module")
def by_address(client: Client) -> Iterator[Client]:
    """A client that does not know where workers are."""
    with Client(client.scheduler.address) as other:
        yield other


@pytest.fixture(params=["threads", "client", "by_address"])
def where_it_runs(request: pytest.FixtureRequest) -> Iterator[str]:
    with dask.config.set(scheduler="threads" if request.param == "threads" else request.getfixturevalue(request.param)):
        yield request.param


def without_source(ds: xr.Dataset) -> xr.Dataset:
    return ds.assign_attrs(source=None)


@given(data=st.data(), n=st.integers(0, 30), rows=st.integers(1, 40))
def test_a_folder_comes_back(tmp_path_factory: Any, data: Any, n: int, rows: int) -> None:
    folder = tmp_path_factory.mktemp("any")
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5)))
    lazy = sample(n).chunk(hit=tuple(np.diff([0, *cuts, n]).tolist()))
    write_hits(lazy, folder / "parts.parquet", partitions=True)
    write_hits(lazy, folder / "one.parquet")
    assert len(list((folder / "parts.parquet").iterdir())) == len(lazy.chunks["hit"])
    one = without_source(read_hits(folder / "one.parquet"))
    xr.testing.assert_identical(without_source(read_hits(folder / "parts.parquet")), one)
    again = read_hits(f"{folder}/parts.parquet/", chunks=rows)
    assert max(again.chunks["hit"]) <= rows
    xr.testing.assert_identical(without_source(again.compute()), one)


@pytest.mark.parametrize("partitions", [False, True])
def test_a_lazy_table_is_written_with_its_noise(tmp_path: Path, where_it_runs: str, partitions: bool) -> None:
    hits = random_hits(500, 60)
    with ranges_of(7):
        table = cluster_table(hits.chunk(hit=50))
    write_hits(cluster_table(hits), tmp_path / "memory.parquet")
    write_hits(table, tmp_path / "lazy.parquet", partitions=partitions)
    expected, found = (read_hits(tmp_path / f"{name}.parquet") for name in ("memory", "lazy"))
    xr.testing.assert_allclose(found, expected)
    assert found.attrs["noise_size"] == expected.attrs["noise_size"]
    assert found.attrs["noise_weight"] == pytest.approx(expected.attrs["noise_weight"])
    if not partitions:
        assert pq.read_metadata(tmp_path / "lazy.parquet").num_row_groups == len(table.chunks["cluster"]) == 9


def test_workers_write_the_file_that_this_process_writes(tmp_path: Path, where_it_runs: str) -> None:
    ds = sample(500).assign(
        text=("hit", np.array(["a", "", "Straße", "cd", "b"] * 100, object)),
        day=("hit", np.arange(500).astype("datetime64[D]").astype("datetime64[ns]")),
    )
    write_hits(ds, tmp_path / "memory.parquet")
    write_hits(ds.chunk(hit=(100, 0, 150, 250)), tmp_path / "lazy.parquet")
    expected, found = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("memory", "lazy"))
    assert found.equals(expected)
    assert found.schema.equals(expected.schema, check_metadata=True)
    with pq.ParquetFile(tmp_path / "lazy.parquet", page_checksum_verification=True) as file:
        groups = [file.metadata.row_group(k) for k in range(file.num_row_groups)]
        assert [group.num_rows for group in groups] == [100, 150, 250]
        assert file.read_row_group(2, ["x", "text"]).equals(expected.select(["x", "text"]).slice(250))
    groups.sort(key=lambda group: group.column(0).data_page_offset)  # as written, each as a whole
    places = [group.column(k).data_page_offset for group in groups for k in range(group.num_columns)]
    assert places == sorted(set(places))


@given(order=st.permutations(range(4)), by_name=st.booleans())
def test_parts_are_joined_as_they_are_done(order: list[int], by_name: bool) -> None:
    parts = []
    for k in range(4):
        parts.append(BytesIO())
        with pq.ParquetWriter(parts[-1], pa.schema({"part": pa.int64()})) as writer:
            if k:  # the first has no row group
                writer.write_table(pa.table({"part": [k] * k}))
    with NamedTemporaryFile() as stream:
        with joining(stream) as appended:
            appended |= {k: append(stream.name if by_name else stream, parts[k].getvalue()) for k in order}
        stream.flush()
        assert pq.read_table(stream.name)["part"].to_pylist() == [1, 2, 2, 3, 3, 3]
        found = pq.read_metadata(stream.name)
        assert [found.row_group(k).num_rows for k in range(found.num_row_groups)] == [1, 2, 3]


def test_a_part_that_others_write_into_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system writes a part of what it is given, as it does beyond 2 GiB, another process may be next."""
    part, write, others = BytesIO(), FileIO.write, [b"of another process"]
    pq.write_table(pa.table({"part": [1, 2]}), part)

    class InTwo(FileIO):
        def write(self, data: Any) -> int:
            written = write(self, data[:10]) if others else write(self, data)
            if others:
                with Path(str(self.name)).open("ab") as other:
                    other.write(others.pop())
            return written

    def opened(path: str, _mode: str, _buffering: int, opener: Any) -> FileIO:
        return InTwo(path, "ab", opener=opener)

    monkeypatch.setattr("daskclust.io.tables.parquet_join.open", opened, raising=False)
    with (tmp_path / "file.parquet").open("w+b") as stream, joining(stream) as appended:
        appended[0] = append(stream.name, part.getvalue())
    assert not others
    assert pq.read_table(tmp_path / "file.parquet")["part"].to_pylist() == [1, 2]


def test_chunks_with_common_steps_are_computed_once(tmp_path: Path) -> None:
    calls: dict[str, int] = {}

    def counted(block: Any, name: str) -> Any:
        calls[name] = calls.get(name, 0) + 1
        return block

    x = da.arange(60, chunks=6).map_blocks(counted, "alone", dtype=int, meta=np.empty(0, int))
    both = da.arange(60, chunks=6).map_blocks(counted, "common", dtype=int, meta=np.empty(0, int))
    label = both.rechunk(60).rechunk(6)  # each chunk needs all
    write_hits(xr.Dataset({"x": ("hit", x), "y": ("hit", x), "label": ("hit", label)}), tmp_path / "hits.csv")
    assert calls["common"] == 10
    assert read_hits(tmp_path / "hits.csv")["label"].values.tolist() == list(range(60))


def test_what_is_not_complete_is_not_there(tmp_path: Path, where_it_runs: str) -> None:
    def fails(block: Any, block_info: Any = None) -> Any:
        if block_info[0]["chunk-location"][0] == 3:
            raise ValueError("chunk 3 is not to be had")
        return block

    good, folder = sample(20).chunk(hit=4), tmp_path / "hits.parquet"
    bad = good.assign(x=("hit", good["x"].data.map_blocks(fails, dtype=np.float32, meta=np.empty(0, np.float32))))
    with pytest.raises(ValueError, match="chunk 3 is not to be had"):
        write_hits(bad, folder, partitions=True)
    assert list(tmp_path.iterdir()) == []
    write_hits(good, folder, partitions=True)
    with pytest.raises(ValueError, match="chunk 3 is not to be had"):
        write_hits(bad, folder, partitions=True)
    assert list(tmp_path.iterdir()) == [folder]
    np.testing.assert_array_equal(read_hits(folder)["x"], good["x"])


def test_parts_that_are_not_of_one_table(tmp_path: Path) -> None:
    folder = tmp_path / "hits.parquet"
    folder.mkdir()
    write_hits(sample(), folder / "a.parquet")
    write_hits(sample().drop_vars("energy"), folder / "b.parquet")
    refused(r"b.parquet has the columns .*, and .*a.parquet has x float32, .*: they are not parts of one table", folder)
    lists = pa.table({"x": [[1.0, 2.0], [3.0]], "y": [[1.0, 2.0], [3.0]]})
    for name in ("a", "b"):
        pq.write_table(lists, folder / f"{name}.parquet")
    refused("a.parquet has lists of hits and no column event, and is one of several", folder)
