"""Data larger than memory: a part that is whole, and all of it on Dask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.lanes import quick_first

import daskclust.app
from daskclust import datasets, io, workers
from daskclust.app import opening
from daskclust.app.code import code
from daskclust.app.state import State
from daskclust.app.tools.whole import Clustering, files_of

MEMORY = 2_000_000  # bytes that are free, so they say


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "free_memory", lambda: float(MEMORY))


def box(n: int = 40_000) -> xr.Dataset:
    return datasets.seed_spreader(n, 2, n_clusters=20.0, rng=3)[["x", "y"]]


def calorimeter() -> xr.Dataset:
    events = [datasets.calorimeter(2, 500, size=100.0, rng=seed).drop_vars("truth") for seed in range(30)]
    return xr.concat(
        [each.assign(event=("hit", np.full(each.sizes["hit"], k))) for k, each in enumerate(events)], "hit"
    )


DATA: dict[str, Any] = {
    "space": box,
    "time": lambda: datasets.timepix(60_000, rng=0).drop_vars("truth"),
    "events": calorimeter,
    "particles": lambda: box().assign_attrs(boxsize=1e5),
    "layers": lambda: datasets.calorimeter(40, 1000, size=100.0, rng=1).drop_vars("truth"),
}


@pytest.mark.parametrize("order", ["as it is", "shuffled"])
@pytest.mark.parametrize("name", DATA)
def test_a_part_has_all_points_within_its_limits(name: str, order: str) -> None:
    ds = DATA[name]()
    dim = ds["x"].dims[0]
    if order == "shuffled":
        ds = ds.isel({dim: np.random.default_rng(0).permutation(ds.sizes[dim])})
    found, part = opening.part_of(ds.chunk({dim: 1700}))
    assert part is not None
    inside = np.logical_and.reduce([(ds[key] >= low) & (ds[key] <= high) for key, (low, high) in part.inside.items()])
    xr.testing.assert_identical(found, ds.isel({dim: np.flatnonzero(inside)}))
    names = {"time": {"toa"}, "events": {"event"}, "layers": {"layer"}}
    assert set(part.inside) == names.get(name, {"x", "y"})
    size = ds.nbytes / ds.sizes[dim]
    most = max(1000, int(0.5 * MEMORY / (16 * size)))
    assert 0.3 * most < found.sizes[dim] < 1.5 * most
    assert part.words.startswith("a part: ")
    assert part.words.endswith(f"{found.sizes[dim]:,} of {ds.sizes[dim]:,} points")


def test_a_zarr_store_is_known_by_what_it_holds(tmp_path: Path) -> None:
    points = box(500)
    io.write_hits(points, tmp_path / "box.zarr")
    (tmp_path / "box.zarr").rename(tmp_path / "box")
    found, *_ = opening.open_file(tmp_path / "box")
    for name in "xy":
        np.testing.assert_array_equal(found[name], points[name])


def test_what_fits_and_what_is_in_memory_is_taken_whole() -> None:
    small = box(500).chunk(point=100) if "point" in box(500).dims else box(500).chunk(100)
    assert opening.part_of(small)[1] is None
    assert opening.part_of(box())[1] is None


def test_only_chunks_with_points_of_the_part_are_read() -> None:
    ds = datasets.timepix(60_000, rng=0)
    dim = ds["toa"].dims[0]
    read: list[int] = []

    def noted(block: Any, block_info: Any = None) -> Any:
        if block.size and block_info:
            read.append(block_info[0]["chunk-location"][0])
        return block

    lazy = ds.chunk({dim: 300})
    lazy["tot"] = (dim, lazy["tot"].data.map_blocks(noted, dtype=ds["tot"].dtype, meta=np.empty(0, ds["tot"].dtype)))
    found, _ = opening.part_of(lazy)
    assert 0 < max(read) <= found.sizes[dim] // 300 + 1 < 199


def test_a_part_needs_something_to_limit_it() -> None:
    lazy = xr.Dataset({"X": (("cell", "channel"), np.zeros((20_000, 4)))}).chunk(cell=1000)
    with pytest.raises(ValueError, match="larger than memory, and has no x, toa, event or layer"):
        opening.part_of(lazy)


@pytest.mark.parametrize("rows", [20_000, 200_000])
def test_a_table_is_taken_for_cells_where_these_fit_in_memory(tmp_path: Path, rows: int) -> None:
    path, X = tmp_path / "cells.h5", np.random.default_rng(0).random((rows, 4), np.float32)
    io.write_cells(xr.Dataset({"X": (("cell", "channel"), X)}, {"channel": list("abcd")}), path)
    if 16 * rows < MEMORY:
        assert opening.open_file(path)[0].sizes["cell"] == rows
    else:
        with pytest.raises(ValueError, match="has no column for 'x'"):
            opening.open_file(path)


def test_a_file_is_opened_in_part_and_its_lines_make_the_same(tmp_path: Path) -> None:
    path = tmp_path / "hits.parquet"
    io.write_hits(calorimeter(), path)
    ds, line = opening.open_file(path)
    assert ds.chunks
    explorer = daskclust.app.layout.Explorer(State(ds, source=(line,)))
    state = explorer.state
    assert state.part is not None
    assert state.part.words in explorer.head.object
    names: dict[str, Any] = {}
    exec(code(state), names)
    np.testing.assert_array_equal(names["result"]["label"], state.present.label)
    # of a data set that was given, the lines begin with it
    given = State(ds)
    names = {"ds": ds}
    exec(code(given), names)
    np.testing.assert_array_equal(names["result"]["label"], given.present.label)


@pytest.mark.parametrize(
    ("name", "system"), quick_first([("space", "dbscan"), ("time", "events"), ("events", "clue"), ("particles", "fof")])
)
def test_all_of_it_is_clustered_on_dask(
    name: str, system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ds = DATA[name]()
    explorer = daskclust.app.layout.Explorer(State(ds.chunk({ds["x"].dims[0]: 7000}), system))
    state, clustering = explorer.state, Clustering(explorer.state, explorer.state.part, None)
    with workers.start(1, processes=False):
        clustering.begin()
    method = getattr(ds.clust, system)
    others = ("max_pixel_hits", "by", "linking_length")
    expected = method(**{key: value for key, value in state.values.items() if key not in others})
    label = expected["label"].values
    told = f"{label.max() + 1:,} clusters, {(label < 0).sum():,} of {len(label):,} points noise."
    assert clustering.words.object.startswith(told)
    np.testing.assert_array_equal(pd.read_parquet("labels.parquet")["label"], label)
    assert len(pd.read_parquet("labels-clusters.parquet")) == label.max() + 1
    # what is there is not replaced
    clustering.begin()
    assert "labels.parquet is there already" in clustering.words.object
    assert not clustering.button.disabled


@pytest.mark.parametrize("name", ["", "../labels.parquet", "/tmp/labels.parquet", "labels.exe", ".parquet"])
def test_names_of_files_are_names(name: str) -> None:
    with pytest.raises(ValueError, match="without a folder, got"):
        files_of(name)
