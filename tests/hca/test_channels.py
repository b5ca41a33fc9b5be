"""Which channels of cells are clustered, and on which scale: one default for all ways to call."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from cases.files.fcs_reference import fcs_bytes, write
from typer.testing import CliRunner

from daskclust import MahalanobisHCA, app, cli, io
from daskclust.app.opening import open_file
from daskclust.datasets import cytometry

MARKERS = ["CD3", "CD4", "CD8"]
BESIDE = ["FSC-A", "SSC-A", "Time", "Event_length", "Width"]
CUT: dict[str, Any] = {"n_clusters": 4, "min_size": 10}
N = 400


@pytest.fixture(scope="module")
def raw() -> xr.Dataset:
    """Return cells as a cytometer has them: populations in three channels, and five channels of something else."""
    rng = np.random.default_rng(1)
    light = 150 * np.sinh(cytometry(N, 3, rng=0)["X"].values.astype(float))
    others = rng.normal([6e4, 2e4, 0, 20, 100], [2e4, 5e3, 0, 3, 9], (N, 5))
    others[:, 2] = np.arange(N) * 50
    X = np.column_stack([others[:, :2], light, others[:, 2:]])
    names = [*BESIDE[:2], *MARKERS, *BESIDE[2:]]
    return xr.Dataset({"X": (("cell", "channel"), X)}, {"channel": names})


@pytest.fixture(scope="module")
def tube(raw: xr.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of another program: it tells nothing of scales."""
    rows = [tuple(row) for row in raw["X"].values.tolist()]
    return write(tmp_path_factory.mktemp("tube"), fcs_bytes(["<f8"] * 8, rows, names=raw["channel"].values.tolist()))


@pytest.fixture(scope="module")
def right(raw: xr.Dataset) -> Any:
    """Return labels by other means: NumPy's arcsinh of the markers alone."""
    X = np.arcsinh(raw["X"].sel(channel=MARKERS).values / 150)
    return MahalanobisHCA(30).fit(X).labels(**CUT)


def by_terminal(path: Path, *options: str) -> Any:
    out = path.with_name("labels.npy")
    line = [str(path), "--threshold", "30", "--n-clusters", "4", "--min-size", "10", "-o", str(out), "--json", *options]
    done = CliRunner().invoke(cli.app, ["hca", *line])
    assert done.exit_code == 0, done.output
    return np.load(out), json.loads(done.stdout)


def by_explorer(path: Path, **cells: Any) -> Any:
    ds, *_ = open_file(path, "hca", cells=cells)
    state = app.explore(ds, "hca", cut="number", **CUT, threshold=30 / N, apriori="none").state
    state.update()
    return state.present.result["label"].values


WAYS = {
    "open_fcs, the accessor": lambda path: io.open_fcs(path).clust.hca(30, **CUT)["label"].values,
    "read_cells, the accessor": lambda path: io.read_cells(path).clust.hca(30, **CUT)["label"].values,
    "cells along the second dimension": lambda path: (
        io.open_fcs(path).transpose("channel", "cell").clust.hca(30, **CUT)["label"].values
    ),
    "the estimator": lambda path: MahalanobisHCA(30).fit(io.open_fcs(path)).labels(**CUT),
    "the estimator, lazily": lambda path: (
        MahalanobisHCA(30).fit(io.read_cells(path, chunks=90)).labels(**CUT).compute()
    ),
    "the terminal": lambda path: by_terminal(path)[0],
    "the explorer": by_explorer,
    "written and read again": lambda path: (
        io.write_cells(io.open_fcs(path), path.with_name("again.fcs")),
        io.read_cells(path.with_name("again.fcs")).clust.hca(30, **CUT)["label"].values,
    )[1],
    "as Parquet": lambda path: (
        io.write_cells(io.open_fcs(path), path.with_name("again.parquet")),
        by_terminal(path.with_name("again.parquet"))[0],
    )[1],
}


@pytest.mark.parametrize("way", WAYS)
def test_one_default(tube: Path, right: Any, way: str) -> None:
    np.testing.assert_array_equal(WAYS[way](tube), right)


@pytest.mark.parametrize(
    ("channels", "cofactor"), [(["CD3", "CD4"], 5.0), (["CD3", "FSC-A", "Time"], 150.0), (["FSC-A"], 5.0), (["*"], 5.0)]
)
@pytest.mark.filterwarnings("ignore:one cluster has")
def test_channels_that_are_named_are_clustered(
    tube: Path, raw: xr.Dataset, channels: list[str], cofactor: float
) -> None:
    names = raw["channel"].values.tolist() if channels == ["*"] else channels
    X = raw["X"].sel(channel=names).values
    X = np.stack([x if name in BESIDE else np.arcsinh(x / cofactor) for name, x in zip(names, X.T, strict=True)], 1)
    expected = MahalanobisHCA(30).fit(X).labels(**CUT)
    for reader in (io.open_fcs, io.read_cells):
        ds = reader(tube, channels=channels, cofactor=cofactor)
        assert "not_clustered" not in ds.attrs
        np.testing.assert_array_equal(ds.clust.hca(30, **CUT)["label"], expected)
        np.testing.assert_array_equal(MahalanobisHCA(30).fit(ds).labels(**CUT), expected)
    options = ("--channels", ",".join(channels), "--cofactor", str(cofactor))
    np.testing.assert_array_equal(by_terminal(tube, *options)[0], expected)
    if len(names) > 1:
        np.testing.assert_array_equal(by_explorer(tube, channels=channels, cofactor=cofactor), expected)


def test_what_was_done_is_told(tube: Path) -> None:
    ds = io.open_fcs(tube)
    assert ds.attrs["not_clustered"] == BESIDE
    assert "not_clustered=['FSC-A', 'SSC-A', 'Time'" in ds.clust.hca(30, **CUT).attrs["hca"]
    told = by_terminal(tube)[1]["channels"]
    assert told == f"not compensated; arcsinh(x / 150); not clustered: {', '.join(BESIDE)}"
    told = by_terminal(tube, "--channels", "CD*", "--transform", "none")[1]["channels"]
    assert told == "not compensated; not transformed"


def test_a_file_of_other_channels_alone_is_clustered(tmp_path: Path) -> None:
    path = write(tmp_path, fcs_bytes(["<f4"] * 2, [(k, k * k) for k in range(9)], names=["FSC-A", "SSC-A"]))
    assert io.open_fcs(path).clust.hca(3)["label"].size == 9


def test_a_table_is_taken_as_it_is_unless_it_is_transformed(raw: xr.Dataset, right: Any, tmp_path: Path) -> None:
    io.write_cells(raw, tmp_path / "cells.csv")
    ds = io.read_cells(tmp_path / "cells.csv")
    np.testing.assert_array_equal(ds["X"], raw["X"])
    assert "not_clustered" not in ds.attrs
    ds = io.read_cells(tmp_path / "cells.csv", transform="arcsinh")
    np.testing.assert_array_equal(ds.clust.hca(30, **CUT)["label"], right)
    for options in (("--transform", "arcsinh"), ("--cofactor", "150")):
        np.testing.assert_array_equal(by_terminal(tmp_path / "cells.csv", *options)[0], right)
    np.testing.assert_array_equal(by_explorer(tmp_path / "cells.csv", transform="arcsinh"), right)


@pytest.mark.parametrize(
    ("factor", "dtype"), [(1.0, np.float64), (300.0, np.float64), (1e4, np.float64), (1e9, np.float32)]
)
def test_a_channel_that_decides_alone_is_told(factor: float, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3)).astype(dtype)
    X[0, 1] = 50  # alone: whatever the cut, the others are one cluster
    X[:, 1] *= dtype(factor)
    ds = xr.Dataset({"X": (("cell", "channel"), X)}, {"channel": ["CD3", "FSC-A", "CD4"]})
    lazy = MahalanobisHCA(0.5).fit(da.from_array(X, chunks=(2000, 3)))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = ds.clust.hca(0.5, n_clusters=2)["label"].values
        MahalanobisHCA(0.5).fit(ds).labels(n_clusters=1)  # one cluster that is asked for
        lazy.labels(n_clusters=2).compute()
    assert np.bincount(found).max() > 0.95 * len(X)
    assert len(told) == (factor > 1000)
    if told:
        assert "the spread of channel 'FSC-A' is" in str(told[0].message)
        assert "choose channels= of one scale" in str(told[0].message)


def test_far_spreads_of_clusters_of_like_sizes_are_no_matter() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2)) * [1e6, 1]
    X[:100, 0] += 1e8
    assert np.bincount(MahalanobisHCA(0.5).fit(X).labels_).tolist() == [100, 100]
