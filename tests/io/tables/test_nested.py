"""Files with one row for each event: lists of hits in Parquet, TTrees and RNTuples, and back to Parquet."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uproot
import xarray as xr
from cases.files.hits import refused, watched_row_groups
from hypothesis import given
from hypothesis import strategies as st

from daskclust import CLUE
from daskclust.io import open_particles, read_hits, to_dataset, write_hits
from daskclust.io.outputs.own_columns import own_columns


@st.composite
def events(draw: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the numbers of hits of events, and columns of the hits."""
    counts = np.array(draw(st.lists(st.integers(0, 5), max_size=8)), dtype=np.int64)
    rng, n = np.random.default_rng(draw(st.integers(0, 99))), int(counts.sum())
    types = st.sampled_from(["f4", "f8", "i4", "u2", "i8"])
    columns = {name: rng.integers(0, 9, n).astype(draw(types)) for name in ("x", "y", "time")}
    return counts, columns | {"layer": rng.integers(0, 5, n).astype(draw(st.sampled_from(["i4", "u1", "i8"])))}


def expected_of(counts: np.ndarray, columns: dict[str, np.ndarray], run: np.ndarray) -> xr.Dataset:
    event = np.repeat(np.arange(len(counts)), counts)
    return to_dataset(columns | {"run": np.repeat(run, counts), "event": event})


def assert_same(found: xr.Dataset, expected: xr.Dataset) -> None:
    xr.testing.assert_equal(found, expected)
    assert {name: found[name].dtype for name in found} == {name: expected[name].dtype for name in expected}


def write_lists(path: Path, counts: np.ndarray, columns: dict[str, np.ndarray], form: str, **options: Any) -> None:
    """Write Parquet with lists of numbers, or of records, and a number for each row."""
    offsets = np.concatenate([[0], np.cumsum(counts)])
    if form == "records":
        records = pa.StructArray.from_arrays(list(map(pa.array, columns.values())), list(columns))
        table = {"hits": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), records)}
    else:
        kind, width = (pa.LargeListArray, pa.int64()) if form == "large" else (pa.ListArray, pa.int32())
        table = {name: kind.from_arrays(pa.array(offsets, width), values) for name, values in columns.items()}
    pq.write_table(pa.table(table | {"run": np.arange(len(counts)) + 7}), path, **options)


@pytest.mark.parametrize("form", ["list", "large", "fixed"])
@pytest.mark.parametrize(("name", "d"), [("pos", 2), ("pos", 3), ("Position", 3), ("coordinates", 2)])
def test_vectors_are_components(tmp_path: Path, form: str, name: str, d: int) -> None:
    """A list of a coordinate for each axis in each row."""
    path, points = tmp_path / "a.parquet", np.random.default_rng(0).normal(size=(40, d))
    kinds = {"list": pa.list_(pa.float64()), "large": pa.large_list(pa.float64()), "fixed": pa.list_(pa.float64(), d)}
    column = pa.array(points.tolist(), kinds[form])
    pq.write_table(pa.table({name: column, "text": ["a"] * 40, "w": np.arange(40)}), path, row_group_size=16)
    own = own_columns(path)
    assert own is not None
    assert list(own.columns) == [*(f"{name}_{axis}" for axis in "xyz"[:d]), "text", "w"]
    for chunks in (None, 7):
        ds = open_particles(path, chunks=chunks, columns={"text": None})
        np.testing.assert_array_equal(np.stack([ds[axis] for axis in "xyz"[:d]], 1), points)
        assert ds["w"].values.tolist() == list(range(40))
    if form != "fixed":
        ragged = pa.array([*points.tolist()[:30], [1.0], *points.tolist()[31:]], kinds[form])
        pq.write_table(pa.table({name: ragged}), path)
        with pytest.raises(
            ValueError, match=rf"column '{name}' .* has {d} components in its first row and 1 in row 30"
        ):
            open_particles(path, chunks=None)


@given(events(), st.sampled_from(["list", "large", "records"]), st.integers(1, 4), st.integers(1, 12))
def test_any_lists_in_parquet(tmp_path_factory: Any, drawn: Any, form: str, group: int, chunks: int) -> None:
    counts, columns = drawn
    path = tmp_path_factory.mktemp("lists") / "events.parquet"
    write_lists(path, counts, columns, form, row_group_size=group)
    expected = expected_of(counts, columns, np.arange(len(counts)) + 7)
    assert_same(read_hits(path), expected)
    lazy = read_hits(path, chunks=chunks)
    assert all(lazy[name].chunks == lazy["x"].chunks for name in lazy)
    stops = np.cumsum(lazy["x"].chunks[0])
    borders = np.concatenate([[0], np.cumsum(counts)])
    assert np.isin(stops, borders).all()  # events are whole
    assert all(
        size - last < chunks for size, last in zip(lazy["x"].chunks[0], last_events(stops, borders), strict=True)
    )
    assert_same(lazy.compute(), expected)
    assert_same(lazy.isel(hit=slice(1, None, 2)).compute(), expected.isel(hit=slice(1, None, 2)))


def last_events(stops: np.ndarray, borders: np.ndarray) -> list[int]:
    """Return the hits of the last event before each stop."""
    return [int(stop - borders[borders < stop].max(initial=0)) for stop in stops]


@given(events(), st.integers(1, 12))
def test_any_lists_come_back(tmp_path_factory: Any, drawn: Any, chunk: int) -> None:
    counts, columns = drawn
    path = tmp_path_factory.mktemp("back") / "events.parquet"
    ds = expected_of(counts, columns, np.arange(len(counts))).assign_attrs(detector="test")
    for given_ds in (ds, ds.chunk(hit=chunk)):
        write_hits(given_ds, path, nested=True)
        table = pq.read_table(path)
        assert table["event"].to_pylist() == np.flatnonzero(counts).tolist()
        assert [len(hits) for hits in table["x"].to_pylist()] == counts[counts > 0].tolist()
        back = read_hits(path)
        assert_same(back, ds)
        assert back.attrs["detector"] == "test"
        assert back["x"].attrs == ds["x"].attrs
        assert_same(read_hits(path, chunks=3).compute(), ds)


@given(events(), st.sampled_from(["lists", "collection"]))
def test_any_lists_in_rntuples(tmp_path_factory: Any, drawn: Any, form: str) -> None:
    counts, columns = drawn
    path = tmp_path_factory.mktemp("rntuple") / "events.root"
    lists = {name: ak.unflatten(values, counts) for name, values in columns.items()}
    run = np.arange(len(counts)) + 7
    with uproot.recreate(path) as file:
        file.mkrntuple("events", ({"hits": ak.zip(lists)} if form == "collection" else lists) | {"run": run})
    found = read_hits(path)
    assert_same(found, expected_of(counts, columns, run))
    if counts.sum():
        assert read_hits(path, chunks=3).chunks["hit"][0] == min(3, counts.sum())


def test_flat_rntuple(tmp_path: Path) -> None:
    path, x = tmp_path / "hits.root", np.arange(5, dtype=np.float32)
    columns = {"X": x, "y": x[::-1].copy(), "layer_id": np.arange(5, dtype=np.int16), "toa": np.arange(5.0)}
    with uproot.recreate(path) as file:
        file["hits"] = columns  # an RNTuple since uproot 5.7
    ds = read_hits(path, field="calorimeter", units={"x": "mm"})
    np.testing.assert_array_equal(ds["x"], x / np.float32(10))
    assert ds["x"].attrs["units"] == "cm"
    assert set(ds) == {"x", "y", "layer", "toa"}
    assert ds["x"].dtype == np.float32
    assert "event" not in ds


def test_names_of_collections_and_of_objects(tmp_path: Path) -> None:
    path = tmp_path / "events.root"
    hits = ak.zip({name: ak.Array([[1.0, 2.0], [3.0]]) for name in ("x", "y", "energy")})
    tracks = ak.zip({name: ak.Array([[1.0], [2.0]]) for name in ("x", "pt")})
    with uproot.recreate(path) as file:
        file.mkrntuple("dir/two", {"hits": hits, "tracks": tracks, "event": np.array([40, 41])})
        file.mkrntuple("text", {"x": np.zeros(2), "y": np.zeros(2), "name": ["a", "b"]})
        file.mkrntuple("deep", {"x": ak.Array([[[1.0]]]), "y": ak.Array([[1.0]])})
        file.mktree("tree", {"x": "f8", "y": "f8"})
        file["tree"].extend({"x": np.zeros(2), "y": np.zeros(2)})
    two = f"{path}:dir/two"
    refused(r"has 4 trees and RNTuples \('dir/two', 'text', 'deep', 'tree'\); choose one with", path)
    refused(r"no tree or RNTuple 'c'; it has 'dir/two', 'text'", f"{path}:c")
    refused(r"no column for 'x'; it has 'event', 'hits.x', 'y', 'energy', 'tracks.x', 'pt'", two)
    refused(
        r"fields 'hits.x' and 'pt' .* unequal lengths, 2 and 1 in event 0",
        two,
        columns={"hits.x": "x", "tracks.x": None},
    )
    ds = read_hits(two, columns={"hits.x": "x", "y": "y", "event": "event", "*": None})
    np.testing.assert_array_equal(ds["event"], [40, 40, 41])
    np.testing.assert_array_equal(ds["x"], [1, 2, 3])
    refused(r"field 'name' .* type 2 \* string.*leave it out with columns=\{'name': None\}", f"{path}:text")
    assert read_hits(f"{path}:text", columns={"name": None}).sizes == {"hit": 2}
    refused(r"field 'x' .* nested too deep", f"{path}:deep")
    assert read_hits(f"{path}:tree").sizes == {"hit": 2}


def test_missing_values_of_rntuples(tmp_path: Path) -> None:
    path = tmp_path / "events.root"
    with uproot.recreate(path) as file:
        file.mkrntuple("hits", {"x": ak.Array([1.0, None]), "y": np.zeros(2), "n": ak.Array([None, 1])})
    refused(r"field 'n' .* missing value \(None\) in entry 0.* columns=\{'n': None\}", path)
    np.testing.assert_array_equal(read_hits(path, columns={"n": None})["x"], [1.0, np.nan])


def test_lists_of_fixed_size(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pairs = {name: pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6.0)), 2) for name in ("x", "y")}
    pq.write_table(pa.table(pairs), path)
    for ds in (read_hits(path), read_hits(path, chunks=2).compute()):
        np.testing.assert_array_equal(ds["x"], np.arange(6.0))
        np.testing.assert_array_equal(ds["event"], [0, 0, 1, 1, 2, 2])


def test_event_of_the_file_and_of_particles(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [[1.0], [2.0, 3.0]], "y": [[1.0], [2.0, 3.0]], "evt": [50, 40]}), path)
    for ds in (read_hits(path), read_hits(path, chunks=1).compute()):
        np.testing.assert_array_equal(ds["event"], [50, 40, 40])
    particles = open_particles(path, chunks=1)
    assert particles["x"].dims == ("particle",)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"x": [[1.0], None], "y": [[1.0], [2.0]]},
            r"column 'x' of .* has no list in row 1 .*: fill it, or write it as numbers in cm$",
        ),
        ({"x": [[1.0], [1.0]], "y": [[1.0], None]}, r"column 'y' of .* has no list in row 1"),
        ({"x": [[1.0], [1.0]], "y": [[1.0], [1.0, 2.0]]}, r"'x' and 'y' of .* unequal lengths, 1 and 2 in row 1 "),
        (
            {"x": [[1], [None]], "y": [[1], [2]]},
            r"column 'x' of .* has no value in row 1 .*; fill it, or write it as numbers in cm$",
        ),
        (
            {"x": [[1], [2]], "y": [[1], [2]], "run": [1, None]},
            r"'run' of .* has no value in row 1 .* columns=\{'run': None\}",
        ),
        (
            {"x": [[[1]]], "y": [[[1]]]},
            r"column 'x' of .* has type list<.*list<.*no list of numbers; write it as numbers in cm",
        ),
        ({"x": [["a"]], "y": [[1]]}, r"column 'x' of .* type list<.*string.*no list of numbers"),
        ({"x": [[1.0], [0.5]], "y": [[1], [2]], "layer": [[1.0], [0.25]]}, r"'layer' .* got 0.25 in row 1 "),
    ],
)
def test_wrong_lists(tmp_path: Path, columns: dict[str, Any], words: str) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=1)
    for chunks in (None, 1):
        with pytest.raises(ValueError, match=words):
            read_hits(path, chunks=chunks).compute()


def test_missing_floats_in_lists(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    hits = [[{"x": 1.0, "y": None}], [None, {"x": None, "y": 2.0}], []]
    pq.write_table(pa.table({"hits": hits, "at": [{"z": 5.0}, {"z": None}, {"z": 7.0}]}), path)
    ds = read_hits(path)
    np.testing.assert_array_equal(ds["x"], [1.0, np.nan, np.nan])
    np.testing.assert_array_equal(ds["y"], [np.nan, np.nan, 2.0])
    np.testing.assert_array_equal(ds["z"], [5.0, np.nan, np.nan])


def test_names_of_fields_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    record = pa.array([[{"x": 1.0, "y": 2.0}]])
    pq.write_table(pa.table({"hits": record, "x": [[9.0]], "hits2": record}), path)
    refused(r"no column for 'y'; it has 'hits.x', 'hits.y', 'x', 'hits2.x', 'hits2.y'", path)
    ds = read_hits(path, columns={"hits2.x": "x", "hits2.y": "y", "*": None})
    assert (ds["x"].item(), ds["y"].item()) == (1.0, 2.0)
    pq.write_table(pa.table({"a.x": [1.0], "a.y": [2.0]}), path)  # plain columns keep names with dots
    assert read_hits(path, columns={"a.x": "x", "a.y": "y"}).sizes == {"hit": 1}


def test_awkward_s_own_files(tmp_path: Path) -> None:
    path, counts = tmp_path / "a.parquet", np.array([2, 0, 3])
    hits = ak.zip({name: ak.unflatten(np.arange(5.0), counts) for name in ("x", "y", "energy")})
    for array in (hits, ak.zip({"hits": hits, "run": np.arange(3)}, depth_limit=1)):
        ak.to_parquet(array, path)
        ds = read_hits(path)
        np.testing.assert_array_equal(ds["energy"], np.arange(5.0))
        np.testing.assert_array_equal(ds["event"], [0, 0, 2, 2, 2])
    labels = CLUE(1.5, 1.0).fit(hits).labels_
    np.testing.assert_array_equal(ak.flatten(labels), CLUE(1.5, 1.0).fit(ds).labels_)
    write_hits(ds, path, nested=True)
    assert ak.from_parquet(path).x.tolist() == [[0, 1], [2, 3, 4]]


def test_lists_are_read_when_they_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    write_lists(path, np.array([2, 3, 0, 4]), {name: np.arange(9.0) for name in ("x", "y", "energy")}, "records",
                row_group_size=2)  # fmt: skip
    asked = watched_row_groups(monkeypatch)
    lazy = read_hits(path, chunks=5)
    opened = [columns for _, columns in asked]
    assert all(columns == opened[0] and columns[0].endswith(".x") for columns in opened)
    assert all(key.startswith("daskclust-io-read-") for key in lazy["y"].data.dask.layers)
    asked.clear()
    lazy["y"][5:].compute()
    assert {group for group, _ in asked} == {1}
    assert {columns[0].rpartition(".")[2] for _, columns in asked} == {"x", "y"}


def test_hits_out_of_the_order_of_events_are_not_written_nested(tmp_path: Path) -> None:
    ds = to_dataset({"x": [1.0, 2.0], "y": [1.0, 2.0], "event": [3, 2]})
    for each in (ds, ds.chunk(hit=1)):
        with pytest.raises(ValueError, match=r"order of event, got 2 after 3; .*ds.sortby\('event'\)"):
            write_hits(each, tmp_path / "a.parquet", nested=True)
    assert not list(tmp_path.iterdir())


LISTS = [[[1, 2]] * 3, [[]] * 3, [[], [1], [1, 2]], [[[1], []]] * 3, [["a"], [], ["b", "c"]], [[{"u": 1}], [], []]]


def write_points_with(path: Path, lists: list[Any]) -> None:
    """Write three points, and a column `cells` with a list for each."""
    points = {"x": [0.0, 0.1, 5.0], "y": [0.0, 0.0, 5.0]}
    if path.suffix == ".parquet":
        pq.write_table(pa.table({**points, "cells": lists}), path, row_group_size=2)
    else:
        with uproot.recreate(path) as file:
            numbers = {name: np.array(values) for name, values in points.items()}
            cells = ak.unflatten(
                np.array([cell for each in lists for cell in each], np.int64), [len(each) for each in lists]
            )
            make = file.mktree if path.stem.startswith("tree") else file.mkrntuple
            make("points", {**numbers, "cells": cells})


def points_files(tmp_path: Path) -> list[tuple[Path, list[Any]]]:
    """Return files of all kinds with points in rows."""
    files = [(tmp_path / f"{k}.parquet", lists) for k, lists in enumerate(LISTS)]
    files += [(tmp_path / f"{kind}{k}.root", lists) for k, lists in enumerate(LISTS[:3]) for kind in ("tree", "ntuple")]
    for path, lists in files:
        write_points_with(path, lists)
    return files


def test_rows_are_points_where_coordinates_are_numbers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for path, lists in points_files(tmp_path):
        name = "u" if lists is LISTS[-1] else "cells"
        readers = [partial(read_hits, field="calorimeter"), partial(read_hits, field="particles")]
        readers += [partial(read_hits, chunks=2)]
        readers += [open_particles, partial(open_particles, chunks=None)] if path.suffix == ".parquet" else []
        for read in readers:
            caplog.clear()
            found = read(path)
            assert set(found) - {"ncells"} == {"x", "y"}  # uproot's trees count
            np.testing.assert_array_equal(found["x"], [0.0, 0.1, 5.0])
            assert caplog.messages == [f"columns of {path} with a list for each point are left out: {name}"]
            caplog.clear()
            assert len(read(path, columns={name: None})["x"]) == 3
            assert not caplog.messages
        for columns in ({name: "energy"}, {name: "cells"}):
            with pytest.raises(ValueError, match="its rows are points, which need one number each; leave it out with"):
                read_hits(path, columns=columns)


def test_lists_of_what_the_field_knows_are_not_left_out(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [0.0], "y": [1.0], "edep": [[1.0, 2.0]]}), tmp_path / "hits.parquet")
    with pytest.raises(ValueError, match=r"column 'edep' of .* its rows are points"):
        read_hits(tmp_path / "hits.parquet")
    pq.write_table(pa.table({"x": [0.0], "y": [1.0], "cells": [[1.0, 2.0]]}), tmp_path / "hits.parquet")
    with pytest.raises(ValueError, match=r"column 'cells' of .* its rows are points"):
        read_hits(tmp_path / "hits.parquet", needs={"weight": ["cells"]})


def test_parts_of_points_tell_once_of_lists(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "points.parquet"
    folder.mkdir()
    for k in (0, 1):
        pq.write_table(pa.table({"x": [0.0, 1.0], "y": [0.0, k], "cells": [[1], [2, 3]]}), folder / f"part.{k}.parquet")
    assert read_hits(folder)["y"].values.tolist() == [0, 0, 0, 1]
    assert len(caplog.messages) == 1


def test_awkward_points_with_lists_are_refused() -> None:
    points = ak.Array(
        [{"x": 0.0, "y": 1.0, "energy": 1.0, "cells": [1, 2]}, {"x": 5.0, "y": 1, "energy": 1.0, "cells": []}]
    )
    for take in (to_dataset, CLUE(1.0, 1.0).fit):
        with pytest.raises(ValueError, match=r"field 'cells' of .* its entries are points, which need one number each"):
            take(points)
    assert CLUE(1.0, 1.0).fit(points[["x", "y", "energy"]]).labels_.tolist() == [0, 1]
