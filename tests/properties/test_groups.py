"""Events, layers and chips in tables: the number that all points of a cluster have, in memory and in any chunks."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from daskclust import accessor, datasets, io
from daskclust.properties import cluster_table, halo_table

COLUMNS = {"x": np.float64, "y": np.float64, "energy": np.float64}
PIXELS = {"x": np.uint16, "y": np.uint16, "toa": np.float64, "tot": np.float64}
TABLES = {
    "points": (cluster_table, COLUMNS, {"event", "layer", "chip"}),
    "pixels": (cluster_table, PIXELS, {"event", "layer"}),  # the chip is that of the first hit
    "halos": (halo_table, {"x": np.float64, "y": np.float64}, {"event", "layer", "chip"}),
}


def expected(values: np.ndarray, labels: np.ndarray, rows: int) -> list[int]:
    """Return the common number of each cluster, by pandas."""
    found = pd.Series(values.astype(np.int64)[labels >= 0]).groupby(labels[labels >= 0]).unique()
    return [int(found[k][0]) if k in found and len(found[k]) == 1 else -1 for k in range(rows)]


@st.composite
def cases(draw: Any) -> Any:
    table_of, columns, names = TABLES[draw(st.sampled_from(sorted(TABLES)))]
    n = draw(st.integers(0, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = rng.integers(-1, draw(st.sampled_from([1, 5, 30])), n)
    numbers = labels // 2 if draw(st.booleans()) else rng.integers(0, 2, n)  # of one group each, or mixed
    ds = xr.Dataset({name: ("hit", rng.integers(0, 99, n).astype(dtype)) for name, dtype in columns.items()})
    for name in names:
        dtype = draw(st.sampled_from([np.int64, np.int32, np.uint16, np.uint64, np.float64, np.int16]))
        ds[name] = "hit", (numbers + 3).astype(dtype)
    rows = max(int(labels.max(initial=-1)) + 1, draw(st.sampled_from([0, 33])))
    if table_of is cluster_table and columns is COLUMNS and not draw(st.booleans()):
        names = names - {"layer"}
        ds = ds.drop_vars("layer")
    elif columns is COLUMNS:
        ds["layer"] = ds["layer"].astype(int)
    return ds, labels, table_of, names, rows, draw(st.lists(st.integers(1, 7), min_size=1, max_size=20))


@given(cases())
def test_common_numbers(case: Any) -> None:
    ds, labels, table_of, names, rows, sizes = case
    table = table_of(ds, labels, n_clusters=rows)
    for name in names:
        assert table[name].dtype == np.int64
        assert table[name].attrs["units"] == "1"
        assert table[name].values.tolist() == expected(ds[name].values, labels, rows)
    if len(labels):
        chunks = [*(size for size, end in zip(sizes, np.cumsum(sizes), strict=True) if end < len(labels))]
        chunks = (*chunks, len(labels) - sum(chunks))
        lazy = table_of(ds.chunk(hit=chunks), da.from_array(labels, chunks=(chunks,)), n_clusters=rows)
        for name in names:
            assert hasattr(lazy[name].data, "__dask_graph__")
            xr.testing.assert_identical(lazy[name].compute(), table[name])


@pytest.mark.parametrize("name", ["event", "chip"])
def test_other_dimensions_and_names_that_are_used(name: str) -> None:
    """A variable of something else is no group of points, and a column that positions have is theirs."""
    ds = xr.Dataset({"x": ("hit", [0.0, 1.0]), "energy": ("hit", [1.0, 1.0]), name: ("spill", [1, 2, 3])})
    assert name not in cluster_table(ds, [0, 0])
    ds = xr.Dataset({"x": ("hit", [0.0, 1.0]), name: ("hit", [0.5, 1.0])})
    assert float(cluster_table(ds, [0, 0], weight=None, coords=["x", name])[name][0]) == 0.75
    with pytest.raises(ValueError, match=f"{name} must be whole numbers"):
        cluster_table(ds, [0, 0], weight=None)


@pytest.mark.parametrize("other", [3, ("spill", [1, 2, 3]), ("spill", [1, 2])], ids=str)
@pytest.mark.parametrize("names", [("layer",), ("is_seed",), ("time", "time_error")])
def test_what_is_not_along_the_points_is_not_theirs(names: tuple[str, ...], other: Any) -> None:
    """As the layer of all hits, a number, or the times of something else, which may be as many."""
    ds = xr.Dataset({"x": ("hit", [0.0, 1.0]), "layer": ("hit", [1, 1])}).drop_vars(set(names) & {"layer"})
    table = cluster_table(ds.assign(dict.fromkeys(names, other)), [0, 0], weight=None)
    xr.testing.assert_identical(table, cluster_table(ds, [0, 0], weight=None))


@pytest.mark.parametrize(("suffix", "chunks"), [("csv", None), ("parquet", 9000)])
def test_files_of_tables_have_events(tmp_path: Any, suffix: str, chunks: int | None) -> None:
    parts = [datasets.hgcal_event(3, 10, rng=k) for k in range(3)]
    events = xr.concat(parts, "hit", data_vars="all", combine_attrs="drop")
    events["event"] = "hit", np.repeat([7, 8, 12], [part.sizes["hit"] for part in parts])
    found = accessor.ClustAccessor(events if chunks is None else events.chunk(chunks)).clue(2.0, 0.3)
    table = cluster_table(found).compute()
    wanted = [int(events["event"][seed]) for seed in table["seed"].values]
    assert sorted(set(wanted)) == [7, 8, 12]
    io.write_hits(table, tmp_path / f"table.{suffix}")
    assert io.read_hits(tmp_path / f"table.{suffix}")["event"].values.tolist() == wanted
