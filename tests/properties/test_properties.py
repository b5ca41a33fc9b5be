"""What is true of all tables of clusters, and the table of points against pandas."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes
from cases.lanes import quick_first
from cases.tables import G, folded, halos, pixel_hits, random_hits, ranges_of, told
from dask.callbacks import Callback
from dask.optimization import cull
from dask.utils import key_split
from distributed import Client
from hypothesis import given
from hypothesis import strategies as st

from daskclust import io
from daskclust.core.run.graph import only_needed
from daskclust.properties import _lazy, cluster_table, halo_table

EXACT = ("size", "seed", "layer")


# ------------------------------------------------------------------------------------------------------------ any table
def box_halos(n: int, k: int, seed: int = 0) -> xr.Dataset:
    return folded(halos(n, k, seed))


def spinning(ds: xr.Dataset, *args: Any, **kwargs: Any) -> xr.Dataset:
    return halo_table(ds, *args, G=G, **kwargs)


TABLES = {"points": (random_hits, cluster_table), "pixels": (pixel_hits, cluster_table), "halos": (box_halos, spinning)}
of_any = pytest.mark.parametrize(("make", "table_of"), TABLES.values(), ids=TABLES)


@of_any
def test_lazy_with_n_clusters(make: Any, table_of: Any) -> None:
    ds = make(300, 40)
    dim = ds["label"].dims[0]
    expected = table_of(ds, n_clusters=45)
    with raise_if_dask_computes():
        table = table_of(ds.chunk({dim: 77}), n_clusters=45)
    assert all(hasattr(v.data, "__dask_graph__") for v in table.data_vars.values())
    names = {key.rsplit("-", 1)[0] for key in table["x"].data.dask.layers if "daskclust" in key}
    assert {"daskclust-properties-summary", "daskclust-properties-column"} <= names
    assert table_of(ds.chunk({dim: 77}), n_clusters=45)["x"].data.name == table["x"].data.name
    computed = table.compute()
    assert {name: table[name].dtype for name in table} == {name: computed[name].dtype for name in computed}
    assert table.sizes == {"cluster": 45}
    assert (computed["size"][40:] == 0).all()
    assert np.isnan(computed["x"][40:]).all()
    if "seed" in computed:
        assert (computed["seed"][40:] == -1).all()
    noise = [name for name in expected.attrs if str(name).startswith("noise_")]
    assert len(noise) == 2
    for name in noise:
        assert float(computed[name]) == pytest.approx(expected.attrs[name])
        assert name not in computed.attrs
    xr.testing.assert_allclose(computed.drop_vars(noise), expected.drop_vars(noise, errors="ignore"), atol=1e-8)


class RowsOfResults(Callback):
    """How many clusters the results of tasks have at most, by the step that made them."""

    def __init__(self) -> None:
        self.most: dict[str, int] = {}
        super().__init__(posttask=self._count)

    def _count(self, key: Any, result: Any, *_: Any) -> None:
        step = key_split(key).removeprefix("daskclust-properties-")
        if isinstance(result, np.ndarray) and result.dtype == object:
            boxes = [box for box in result.flat if box is not None]
            ids = [range(len(box["size"])) if isinstance(box, dict) else box.ids.tolist() for box in boxes]
            self.most[step] = max(self.most.get(step, 0), len(set().union(*ids)))


@pytest.mark.parametrize("in_order", [True, False])
@of_any
def test_no_task_has_more_than_its_range(make: Any, table_of: Any, in_order: bool) -> None:
    ds = make(4000, 1000)
    if in_order:
        ds["label"].values[:] = np.sort(ds["label"].values)
    with ranges_of(50, 4), RowsOfResults() as found:
        table = table_of(ds.chunk({ds["label"].dims[0]: 100}), n_clusters=1000)
        table.compute(scheduler="synchronous")
    assert table.chunks["cluster"] == (50,) * 20
    of_chunk = {step: most for step, most in found.most.items() if step.split("-")[0] in ("summary", "known")}
    of_range = {step: most for step, most in found.most.items() if step not in of_chunk and "rechunk" not in step}
    assert max(of_chunk.values()) <= 100, "those of one chunk"
    assert max(of_range.values()) == 50, "those of one range"


@pytest.mark.parametrize("rows", [5, 40, 1000])
@of_any
def test_ranges_begin_where_chunks_in_order_do(make: Any, table_of: Any, rows: int) -> None:
    ds = make(900, 90).sortby("label")
    dim = ds["label"].dims[0]
    ends = [0, 90, 91, 94, 300, 300, 610, 900]  # some chunks within a cluster, and one of nothing
    lazy = ds.chunk({dim: tuple(np.diff(ends).tolist())})
    with ranges_of(rows, 16):
        table = table_of(lazy)
        even = table_of(lazy, n_clusters=table.sizes["cluster"])
    starts = np.cumsum((0, *table.chunks["cluster"]))
    firsts = {ds["label"].values[:end].max(initial=-1) + 1 for end in ends}
    assert rows != 40 or firsts.intersection(starts[1:-1].tolist())
    assert max(table.chunks["cluster"]) <= 2 * rows
    xr.testing.assert_identical(told(table), told(even).assign_attrs(told(table).attrs))
    xr.testing.assert_allclose(told(table), table_of(ds), atol=1e-6)


@pytest.mark.parametrize("kind", ["points", "pixels"])
def test_a_range_waits_for_the_chunks_that_have_its_clusters(kind: str) -> None:
    """Else what each chunk has stays in memory until the last one is done."""
    make, table_of = TABLES[kind]
    ds = make(1000, 200).sortby("label")
    with ranges_of(20, 16):
        table = table_of(ds.chunk({ds["label"].dims[0]: 50}))

    def summaries(array: Any) -> int:
        steps, _ = cull(dict(array.__dask_graph__()), array.__dask_keys__())
        return sum(key_split(key) == "daskclust-properties-summary" for key in steps)

    ranges = len(table.chunks["cluster"])
    assert ranges > 5
    # up to 40 clusters of some 5 hits are in 4 chunks of 50, and in two more that begin or end with one of them
    assert max(summaries(table["size"].data.blocks[k]) for k in range(ranges)) <= 6
    assert summaries(table["noise_size"].data) == 20


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as client:
        yield client


@pytest.mark.parametrize("few", quick_first([0.01, 10**6]))
@of_any
def test_pieces_go_one_by_one_or_by_way_of_disks(
    client: Client, make: Any, table_of: Any, few: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_lazy, "_FEW", few)
    ds = make(900, 200)
    lazy = ds.chunk({ds["label"].dims[0]: 90})
    with ranges_of(23, 3), dask.config.set(scheduler=client):
        table = table_of(lazy, n_clusters=200)
        assert any("p2p" in name for name in table["x"].data.dask.layers) == (few < 1)
        found = told(table)
    with ranges_of(23, 3):
        xr.testing.assert_identical(found, told(table_of(lazy, n_clusters=200)))
    xr.testing.assert_allclose(found, table_of(ds, n_clusters=200), atol=1e-6)


@of_any
def test_a_table_that_is_on_workers_is_written(
    client: Client, make: Any, table_of: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ds = make(900, 20)
    with dask.config.set(scheduler=client), only_needed():
        table = table_of(ds.chunk({ds["label"].dims[0]: 90}), n_clusters=20).persist()
        io.write_hits(table, tmp_path / "table.parquet")
        sizes = table["size"].values
    assert not [each for each in caplog.records if each.levelname == "ERROR"]
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "table.parquet")["size"], sizes)


@of_any
def test_tasks_are_in_proportion_to_chunks(
    client: Client, make: Any, table_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_lazy, "_FEW", 4)
    tasks = []
    for n in (50, 500):
        ds = make(n, 3)
        with ranges_of(100, 16), dask.config.set(scheduler=client):
            table = table_of(ds.chunk({ds["label"].dims[0]: 1}), n_clusters=10 * n)
        assert len(table.chunks["cluster"]) == n // 10
        tasks.append(len(dict(dask.optimize(table["x"].data)[0].__dask_graph__())))
    assert tasks[1] < 12 * tasks[0]
    assert tasks[1] < 30 * n


@of_any
def test_empty_and_all_noise(make: Any, table_of: Any) -> None:
    empty, noise = make(0, 3), make(6, 3).assign(label=lambda ds: ds["label"] * 0 - 1)
    dim = empty["label"].dims[0]
    for ds in (empty, empty.chunk({dim: 2}), noise, noise.chunk({dim: 2})):
        table = told(table_of(ds))
        assert table.sizes == {"cluster": 0}
        assert table.attrs["noise_size"] == ds.sizes[dim]
        filled = table_of(ds, n_clusters=2).compute()
        assert filled["size"].values.tolist() == [0, 0]
        assert np.isnan(filled["x"]).all()


@pytest.mark.parametrize(
    ("label", "kwargs", "message"),
    [
        (0, {"labels": "labl"}, "labels: the Dataset has no variable 'labl'; it has x, y, "),
        (0, {"labels": np.zeros(3, int)}, r"labels must have one dimension and the length .* \(20,\), got \(3,\)"),
        (0, {"labels": np.zeros(20)}, "labels must be integers, got dtype float64"),
        (0, {"n_clusters": 3}, "labels go up to 3, but n_clusters is 3; give at least 4"),
        (0, {"n_clusters": 10**12}, "n_clusters must be at most .* number clusters from 0 first"),
        (-2, {}, r"labels must be -1 \(noise\) or larger, got -2 at index 7; correct or leave out"),
        (10**12, {}, "labels go up to 1000000000000 for 20 points; number clusters from 0 first"),
    ],
)
@pytest.mark.parametrize("chunks", [None, 6])
@of_any
def test_wrong_labels(make: Any, table_of: Any, chunks: Any, label: int, kwargs: Any, message: str) -> None:
    ds = make(20, 4, 3)
    ds["label"].values[[0, 7]] = 3, label
    with pytest.raises((ValueError, TypeError), match=message):
        table_of(ds if chunks is None else ds.chunk({ds["label"].dims[0]: chunks}), **kwargs).compute()


# --------------------------------------------------------------------------------------------------------------- points
def by_pandas(ds: xr.Dataset, k: int) -> pd.DataFrame:
    """Return the same table from pandas groups and NumPy's weighted average."""
    frame = ds.to_dataframe().reset_index(drop=True).astype({"energy": float, "y": float})
    frame["index"] = np.arange(len(frame))
    rows = []
    for cluster in range(k):
        group = frame[frame["label"] == cluster]
        row: dict[str, Any] = {"size": len(group), "energy": group["energy"].sum()}
        square = 0.0
        for name in ("x", "y"):
            total = group["energy"].sum()
            mean = np.average(group[name], weights=group["energy"]) if total > 0 else np.nan
            variance = np.average((group[name] - mean) ** 2, weights=group["energy"]) if total > 0 else np.nan
            square += variance
            row |= {name: mean, f"{name}_rms": np.sqrt(variance)}
            row |= {f"{name}_min": group[name].min(), f"{name}_max": group[name].max()}
        row["rms"] = np.sqrt(square)
        seeds = group[group["is_seed"]] if "is_seed" in group else group[:0]
        if "is_seed" in group:
            row["seed"] = seeds["index"].iloc[0] if len(seeds) else -1
            row |= {f"{name}_seed": seeds[name].iloc[0] if len(seeds) else np.nan for name in ("x", "y")}
        source = seeds["layer"].iloc[:1] if "is_seed" in group else group["layer"].drop_duplicates()
        row["layer"] = source.iloc[0] if len(source) == 1 else -1
        rows.append(row)
    return pd.DataFrame(rows)


def assert_tables_equal(actual: xr.Dataset, expected: Any) -> None:
    """Compare sizes, seeds, layers and extents exactly, and sums to rounding."""
    assert set(actual.data_vars) - {"noise_size", "noise_weight"} == set(expected)
    for name in expected:
        exact = name in EXACT or name.endswith(("_min", "_max", "_seed"))
        got, want = actual[name].values, np.asarray(expected[name])
        if exact:
            np.testing.assert_array_equal(got, want, err_msg=name)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("with_seeds", [True, False])
@pytest.mark.parametrize("chunks", [None, 1000, 64, (1, 399, 0, 100)])
def test_table_equals_pandas(with_seeds: bool, chunks: Any) -> None:
    ds = random_hits(500, 40)
    ds = ds if with_seeds else ds.drop_vars("is_seed")
    table = told(cluster_table(ds if chunks is None else ds.chunk(hit=chunks)))
    assert_tables_equal(table, by_pandas(ds, 40))
    noise = ds["label"].values == -1
    assert table.attrs["noise_size"] == noise.sum()
    assert table.attrs["noise_weight"] == pytest.approx(ds["energy"].values[noise].sum(dtype=float))
    assert type(table.attrs["noise_size"]) is int
    assert type(table.attrs["noise_weight"]) is float
    np.testing.assert_array_equal(table["cluster"], np.arange(40))


@pytest.mark.parametrize("chunks", [None, 64, (1, 399, 0, 100)])
@pytest.mark.parametrize("within", [None, 1.3])
def test_logarithmic_weights_and_times(within: float | None, chunks: Any) -> None:
    rng, ds = np.random.default_rng(3), random_hits(500, 40)
    ds["energy"][::7] = 0.0
    resolution = np.where(rng.random(500) < 0.4, rng.choice([-1.0, 0.0, np.nan], 500), rng.uniform(0.02, 0.1, 500))
    ds["time"] = ("hit", rng.normal(5.0, 0.1, 500), {"units": "ns"})
    ds["time_error"] = ("hit", resolution, {"units": "ns"})
    options = {"log_weight": 2.9, "log_within": within}
    table = cluster_table(ds if chunks is None else ds.chunk(hit=chunks), **options).compute()
    plain = cluster_table(ds)
    for cluster in range(40):
        own = ds.isel(hit=ds["label"].values == cluster)
        x, y, energy = (own[name].values.astype(float) for name in ("x", "y", "energy"))
        with np.errstate(divide="ignore"):
            weight = np.maximum(0.0, 2.9 + np.log(energy / energy.sum()))
        peak = energy.argmax()
        weight[np.hypot(x - x[peak], y - y[peak]) > (within or np.inf)] = 0.0
        for name, values in (("x", x), ("y", y)):
            assert float(table[name][cluster]) == pytest.approx((weight * values).sum() / weight.sum(), rel=1e-9)
        known = own["time_error"].values > 0
        shares = own["time_error"].values[known] ** -2.0
        mean = np.average(own["time"].values[known], weights=shares) if known.any() else np.nan
        assert float(table["time"][cluster]) == pytest.approx(mean, nan_ok=True)
        error = shares.sum() ** -0.5 if known.any() else np.nan
        assert float(table["time_error"][cluster]) == pytest.approx(error, nan_ok=True)
    assert table["time_error"].attrs["units"] == "ns"
    others = [name for name in plain if name not in ("x", "y")]
    xr.testing.assert_allclose(table[others].drop_attrs(), plain[others].drop_attrs(), rtol=1e-9)


def test_types_and_units() -> None:
    table = cluster_table(random_hits(100, 5))
    assert {name for name in table if table[name].dtype == np.int64} == {"size", "seed", "layer"}
    assert all(table[name].dtype == np.float64 for name in table if name not in EXACT)
    for name in ("x", "x_rms", "x_min", "x_max", "x_seed", "rms"):
        assert table[name].attrs == {"units": "cm"}
    assert table["energy"].attrs == {"units": "GeV"}
    assert table["size"].attrs == {"units": "1"}


@given(axes=st.integers(1, 8), n=st.integers(1, 60), seed=st.integers(0, 1000), chunks=st.sampled_from([None, 7]))
def test_any_number_of_axes(axes: int, n: int, seed: int, chunks: int | None) -> None:
    rng = np.random.default_rng(seed)
    names, label = [f"x{k}" for k in range(axes)], rng.integers(-1, 5, n)
    frame = pd.DataFrame(rng.normal(100, 1, (n, axes)), columns=names).astype({names[-1]: np.float32})
    frame["w"] = rng.integers(1, 4, n) / 2
    ds = xr.Dataset.from_dataframe(frame)
    table = cluster_table(ds if chunks is None else ds.chunk(index=chunks), label, weight="w", coords=names)
    found = table.to_dataframe()
    for cluster, rows in frame[label >= 0].astype(np.float64).groupby(label[label >= 0]):
        mean = np.average(rows[names], axis=0, weights=rows["w"])
        square = np.average((rows[names] - mean) ** 2, axis=0, weights=rows["w"])
        row = found.loc[cluster]
        np.testing.assert_allclose(row[names], mean, rtol=1e-14)
        np.testing.assert_allclose(row[[f"{name}_rms" for name in names]], np.sqrt(square), atol=1e-12)
        np.testing.assert_array_equal(row[[f"{name}_min" for name in names]], rows[names].min())
        np.testing.assert_array_equal(row[[f"{name}_max" for name in names]], rows[names].max())
        assert (row["size"], row["w"]) == (len(rows), rows["w"].sum())


@given(data=st.data(), n=st.integers(0, 60), k=st.integers(1, 6), seed=st.integers(0, 1000))
def test_any_chunking_gives_the_same(data: Any, n: int, k: int, seed: int) -> None:
    ds = random_hits(n, k, seed)
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=6)))
    chunks = tuple(np.diff([0, *cuts, n]).tolist())
    expected = cluster_table(ds, n_clusters=k)
    assert_tables_equal(expected, by_pandas(ds, k))
    with ranges_of(data.draw(st.integers(1, 7)), data.draw(st.integers(2, 4))):
        table = cluster_table(ds.chunk(hit=chunks), n_clusters=k).compute()
    assert_tables_equal(table, {name: expected[name].values for name in expected})


@pytest.mark.parametrize(("chunks", "rtol"), [(None, 1e-12), (100, 1e-7)])
def test_squares_do_not_cancel_far_from_the_origin(chunks: int | None, rtol: float) -> None:
    # At 2**30 coordinates are multiples of 2.4e-7, and so are the means of chunks; sums of x**2 would be off by 100.
    near = random_hits(1000, 3).drop_vars("y")
    far = near.assign(x=near["x"] + 2.0**30)
    exact = near.assign(x=far["x"] - 2.0**30)
    expected = cluster_table(exact)
    table = cluster_table(far if chunks is None else far.chunk(hit=chunks))
    np.testing.assert_allclose(table["x_rms"], expected["x_rms"], rtol=rtol)
    np.testing.assert_allclose(table["x"] - 2.0**30, expected["x"], atol=1e-6)


def test_equal_points_have_no_extent() -> None:
    ds = xr.Dataset({"x": ("hit", np.full(9, 0.1)), "energy": ("hit", np.linspace(0.1, 0.7, 9))})
    for given_ds in (ds, ds.chunk(hit=2)):
        table = cluster_table(given_ds, np.zeros(9, dtype=int))
        assert table["x"] == 0.1
        assert table["x_rms"] == 0.0


def test_weightless_clusters_have_no_mean() -> None:
    ds = xr.Dataset({"x": ("hit", [1.0, 2.0, 3.0, 4.0]), "energy": ("hit", [0.0, 0.0, 1.0, 0.0])})
    for given_ds in (ds, ds.chunk(hit=1)):
        table = cluster_table(given_ds, np.array([0, 0, 1, 1]))
        np.testing.assert_array_equal(table["x"], [np.nan, 3.0])
        np.testing.assert_array_equal(table["x_rms"], [np.nan, 0.0])
        np.testing.assert_array_equal(table["x_min"], [1.0, 3.0])
        np.testing.assert_array_equal(table["size"], [2, 2])


def test_without_weight() -> None:
    ds = random_hits(200, 7)
    table = cluster_table(ds, weight=None)
    groups = ds.to_dataframe().query("label >= 0").groupby("label")
    np.testing.assert_allclose(table["x"], groups["x"].mean())
    np.testing.assert_allclose(table["x_rms"], groups["x"].std(ddof=0))
    assert "energy" not in table
    assert table.attrs["noise_weight"] == table.attrs["noise_size"]


def test_labels_of_any_class() -> None:
    ds = random_hits(100, 5)
    ds["label"] = abs(ds["label"])
    values = ds["label"].values
    for labels in (ds["label"], values, da.from_array(values, chunks=30), values.astype(np.uint8)):
        for given_ds in (ds, ds.chunk(hit=9)):
            xr.testing.assert_allclose(told(cluster_table(given_ds, labels)), cluster_table(ds))


@pytest.mark.parametrize("chunks", [None, 30])
def test_labels_in_another_order_are_refused(chunks: int | None) -> None:
    ds = random_hits(100, 5).assign_coords(hit=np.arange(100))
    labels, ds = ds["label"], ds.drop_vars("label")
    ds = ds if chunks is None else ds.chunk(hit=chunks)
    with pytest.raises(ValueError, match="labels have other coordinates along 'hit' than the points"):
        cluster_table(ds, labels[::-1])
    in_order = labels[::-1].reindex_like(ds)  # the remedy
    xr.testing.assert_identical(told(cluster_table(ds, in_order)), told(cluster_table(ds, labels)))


@pytest.mark.parametrize(
    ("change", "kwargs", "message"),
    [
        ({}, {"weight": "mass"}, r"weight: the Dataset has no variable 'mass'; .* use weight=None"),
        ({}, {"coords": ["q"]}, r"coords: the Dataset has no variable 'q'"),
        ({}, {"coords": "x"}, r"coords must be a sequence of names, got 'x'; write \('x',\)"),
        ({}, {"coords": []}, "has none of x, y, z; name the positions with coords="),
        ({}, {"coords": ["energy"]}, r"the table would have \['energy'\] twice"),
        ({}, {"coords": ["x", "x"]}, r"the table would have \['x', 'x_max', .*\] twice"),
        ({"x": np.nan}, {}, r"x must be finite, got nan at index 7"),
        ({"energy": -0.5}, {}, r"weight must not be negative, got -0.5 at index 7"),
        ({"energy": np.inf}, {}, r"weight must be finite, got inf at index 7"),
    ],
)
@pytest.mark.parametrize("chunks", [None, 6])
def test_wrong_input(change: dict[str, Any], kwargs: dict[str, Any], message: str, chunks: int | None) -> None:
    ds = random_hits(20, 4, 3)
    for name, value in change.items():
        ds[name][7] = value
    with pytest.raises(ValueError, match=message):
        cluster_table(ds if chunks is None else ds.chunk(hit=chunks), **kwargs).compute()


def test_a_cluster_across_a_face_of_the_box_is_told() -> None:
    positions = {"x": ("point", [0.1, 9.9, 5.0]), "y": ("point", [1.0, 1.0, 2.0])}
    ds = xr.Dataset(positions, attrs={"boxsize": 10.0})
    with pytest.warns(UserWarning, match="cluster 1 has more than half of the box along x.*properties.halo_table"):
        cluster_table(ds, [1, 1, 0], weight=None)
    for other, coords in ((ds, ("y",)), (ds.drop_attrs(), None), (ds.assign_attrs(boxsize=[None, 10.0]), None)):
        cluster_table(other, [1, 1, 0], weight=None, coords=coords)
    cluster_table(ds, [1, 2, 0], weight=None)
    ds["x"].attrs["units"] = ds["y"].attrs["units"] = "cm"
    with pytest.warns(UserWarning, match="cluster 1 has"):
        cluster_table(ds.assign_attrs(boxsize=100.0, boxsize_units="mm"), [1, 1, 0], weight=None)
    cluster_table(ds.assign_attrs(boxsize=100.0), [1, 1, 0], weight=None)
    lazy = cluster_table(ds.chunk(point=2), [1, 1, 0], weight=None, n_clusters=2)
    assert float(lazy["x"][1]) == 5.0
