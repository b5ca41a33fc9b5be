"""``daskclust hca``, run as users run it: lines of gmhclust, tables, labels, messages."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import xarray as xr
from cases.files.writers import write_gmhc
from oracles.hca_reference import assert_equals_reference, load

from daskclust import MahalanobisHCA, io
from daskclust.datasets import apriori_gaussians, cytometry
from daskclust.io.files import OUTPUTS
from daskclust.io.outputs.own_columns import own_columns

SERIAL = [f"serial_n300_d{d}_T{T}" for d in (2, 3) for T in (20, 100)]


@pytest.fixture
def hca(command):
    """Return a function that runs a line, which prints merges unless they go to a file."""

    def run(path, threshold, *options):
        merges = () if "--merges" in options else ("--merges", "-")
        return command("hca", path, "--threshold", threshold, *options, *merges)

    return run


@pytest.fixture(scope="module")
def cells():
    return cytometry(300, 3, rng=0)


@pytest.fixture(scope="module")
def grouped():
    return apriori_gaussians(5, 24, channels=3, shuffle=True, rng=0)


@pytest.fixture(scope="module")
def folder(cells, grouped, tmp_path_factory):
    """Return a folder with cells in files of many kinds."""
    folder = tmp_path_factory.mktemp("cells")
    write_gmhc(cells, folder / "data")
    write_gmhc(grouped, folder / "grouped", folder / "asgns")
    write_gmhc(grouped, folder / "grouped.txt", layout="text")
    for suffix in ("csv", "parquet", "fcs"):
        io.write_cells(cells.drop_vars("population"), folder / f"cells.{suffix}")
        io.write_cells(grouped, folder / f"grouped.{suffix}")
    return folder


def merges_of(out):
    """Return ids and heights of printed lines, which have nothing else."""
    rows = [line.split(" ") for line in out.splitlines()]
    assert all(len(row) == 3 for row in rows)
    return np.array([row[:2] for row in rows], np.int64), np.array([row[2] for row in rows], np.float64)


def assert_printed(done, expected):
    """Compare printed lines with a linkage, all digits."""
    code, out, err = done
    assert code == 0, err
    pairs, heights = merges_of(out)
    np.testing.assert_array_equal(pairs, expected[:, :2])
    np.testing.assert_array_equal(heights, expected[:, 2])


# ------------------------------------------------------------------------------------------------------------- gmhclust
@pytest.mark.parametrize("name", SERIAL)
@pytest.mark.parametrize("layout", ["uint32-float32", "text"])
def test_lines_are_those_of_the_program(hca, mahalanobis_file, tmp_path, name, layout):
    case = load(mahalanobis_file, name)
    write_gmhc(xr.Dataset({"X": (("cell", "channel"), case.X)}), tmp_path / "data", layout=layout)
    code, out, err = hca(tmp_path / "data", case.threshold)
    assert code == 0
    merges, heights = merges_of(out)
    assert (merges[:, 0] < merges[:, 1]).all()
    assert_equals_reference(merges, heights, case)
    assert "Mahalanobis HCA" in err
    assert "Top of the tree" in err


def test_assignments_and_their_order(hca, grouped, folder):
    X, labels = grouped["X"].values, grouped["apriori"].values
    one_by_one = MahalanobisHCA(24, order="groups").fit(X, apriori=labels).linkage_
    by_height = MahalanobisHCA(24).fit(X, apriori=labels).linkage_
    assert not np.array_equal(one_by_one, by_height)
    for k in range(5):  # ascending labels
        rows = one_by_one[k * 23 : (k + 1) * 23]
        assert set(labels[rows[:, :2][rows[:, :2] < 120].astype(int)]) == {k}
    for source in ("grouped", "grouped.txt"):
        assert_printed(hca(folder / source, 24, "--assignments", folder / "asgns"), one_by_one)
        assert_printed(hca(folder / source, 24, "--assignments", folder / "asgns", "--order", "height"), by_height)
        assert_printed(hca(folder / source, 24), MahalanobisHCA(24).fit(X).linkage_)
    assert_printed(hca(folder / "grouped.parquet", 24), by_height)
    assert_printed(hca(folder / "grouped.parquet", 24, "--order", "groups"), one_by_one)


def test_one_cell_makes_no_line(hca, tmp_path):
    write_gmhc(xr.Dataset({"X": (("cell", "channel"), [[1.0, 2.0]])}), tmp_path / "data")
    code, out, err = hca(tmp_path / "data", 10)
    assert (code, out) == (0, "")
    assert "cells" in err


# --------------------------------------------------------------------------------------------------------------- tables
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npy"])
def test_table_of_merges(summary, grouped, folder, tmp_path, suffix):
    target = tmp_path / f"tree{suffix}"
    told = summary("hca", folder / "grouped.parquet", "--threshold", 24, "--merges", target)
    estimator = MahalanobisHCA(24).fit(grouped["X"].values, apriori=grouped["apriori"].values)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert min(told.pop("seconds"), told.pop("seconds_compiling"), told.pop("seconds_clustering")) >= 0
    assert told == {
        "cells": 120,
        "threshold": 24,
        "rule": "thesis",
        "distance": "centroid",
        "merges": 119,
        "merges_within_apriori_clusters": 115,
        "is_monotone": bool(estimator.is_monotone_),
        "largest_height": estimator.linkage_[:, 2].max(),
        "merges_output": str(target),
    }
    if suffix == ".npy":
        np.testing.assert_array_equal(np.load(target), estimator.linkage_)
        return
    written = pd.read_parquet(target) if suffix == ".parquet" else pd.read_csv(target, converters={"height": float})
    assert list(written) == ["id1", "id2", "height", "size", "is_apriori"]
    np.testing.assert_array_equal(written[["id1", "id2", "height", "size"]], estimator.linkage_)
    np.testing.assert_array_equal(written["is_apriori"], np.arange(119) < 115)
    assert written["id1"].dtype == np.int64
    if suffix == ".parquet":
        attrs = json.loads(pq.ParquetFile(target).metadata.metadata[b"daskclust"])["attrs"]
        assert (attrs["threshold"], attrs["rule"], attrs["order"]) == (24, "thesis", "height")
        assert "apriori='apriori'" in attrs["hca"]


# ---------------------------------------------------------------------------------------------------------------- input
def test_a_table_with_scatter_and_time_is_told(command, tmp_path):
    cells = np.random.default_rng(0).normal(size=(60, 3))
    pd.DataFrame(cells, columns=["FSC-A", "CD3", "Time"]).to_csv(tmp_path / "cells.csv", index=False)
    line = ("hca", tmp_path / "cells.csv", "--threshold", 20, "--json")
    err = command(*line)[2]
    assert "FSC-A, CD3, Time; scatter and time (FSC-A, Time) are among them: --channels chooses" in err
    assert command(*line, "--channels", "FSC-A,CD3")[2] == ""


@pytest.mark.parametrize("chunks", [(), ("--chunks", "700")])
def test_a_sample_of_raw_fcs_values_as_in_python(hca, tmp_path, chunks):
    """Compensation, transformation and the channels left out are those of `open_fcs`, by default."""
    made = cytometry(3000, 4, rng=2)
    raw = np.column_stack([np.linspace(1e3, 9e4, 3000), 150 * np.sinh(made["X"]), np.arange(3000) / 10])
    names = ["FSC-A", "CD3", "CD4", "CD8", "CD19", "Time"]
    file, out, tree = tmp_path / "raw.fcs", tmp_path / "labels.npy", tmp_path / "tree.npy"
    io.write_cells(xr.Dataset({"X": (("cell", "channel"), raw)}, {"channel": names}), file)
    options = ("--n-clusters", 3, "--min-size", 10, "--sample", 500, "--seed", 4, "-o", out, "--merges", tree)
    told = json.loads(hca(file, 30, *options, *chunks, "--json")[1])
    cells = io.open_fcs(file)
    assert cells.attrs["not_clustered"] == ["FSC-A", "Time"]
    assert cells.attrs["transform"] == "arcsinh"
    wanted = cells.clust.hca(30, n_clusters=3, min_size=10, sample=500, rng=4)
    np.testing.assert_array_equal(np.load(out), wanted["label"])
    np.testing.assert_array_equal(np.load(tree), wanted["linkage"])
    assert (told["cells"], told["sample"], told["clusters"]) == (3000, 500, 3)


def test_a_sample_keeps_all_columns_of_the_output(hca, cells, folder, tmp_path):
    out = tmp_path / "out.parquet"
    hca(folder / "cells.parquet", 30, "--n-clusters", 3, "--sample", 100, "-o", out, "--merges", tmp_path / "t.parquet")
    table = pd.read_parquet(out)
    assert table.columns.tolist() == [*cells["channel"].values, "label"]
    wanted = io.read_cells(folder / "cells.parquet").clust.hca(30, n_clusters=3, sample=100)
    np.testing.assert_array_equal(table["label"], wanted["label"])
    assert len(pd.read_parquet(tmp_path / "t.parquet")) == 99


@pytest.mark.parametrize("suffix", OUTPUTS)
def test_tree_and_table_in_all_formats(hca, folder, tmp_path, suffix):
    expected = io.read_cells(folder / "cells.parquet").clust.hca(threshold=0.3, n_clusters=3)
    tree, table = tmp_path / f"tree{suffix}", tmp_path / f"table{suffix}"
    hca(folder / "cells.parquet", 0.3, "--n-clusters", 3, "--merges", tree, "--table", table)
    found = own_columns(tree).dataset("merge"), own_columns(table).dataset("cluster")
    np.testing.assert_allclose(found[0]["height"], expected["linkage"][:, 2], rtol=1e-6)
    np.testing.assert_array_equal(found[0]["id1"], expected["linkage"][:, 0])
    assert found[1]["cluster"].values.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found[1]["size"], np.bincount(expected["label"]))


def test_a_table_is_no_array(hca, folder, tmp_path):
    outputs = "-o", tmp_path / "o.csv", "--table", tmp_path / "t.npy"
    code, _, err = hca(folder / "cells.csv", 0.3, "--n-clusters", 3, *outputs)
    assert code == 1
    assert "--table must be a file with one of" in err
    assert not list(tmp_path.iterdir())
