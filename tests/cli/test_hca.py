"""``daskclust hca``, run as users run it: lines of gmhclust, tables, labels, messages."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import xarray as xr
from cases.hca_reference import assert_equals_reference, load

from daskclust import MahalanobisHCA, io
from daskclust.datasets import apriori_gaussians, cytometry

SERIAL = [f"serial_n300_d{d}_T{T}" for d in (2, 3) for T in (20, 100)]


@pytest.fixture
def hca(command):
    return functools.partial(command, "hca")


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
    io.write_gmhc(cells, folder / "data")
    io.write_gmhc(grouped, folder / "grouped", folder / "asgns")
    io.write_gmhc(grouped, folder / "grouped.txt", layout="text")
    for suffix in ("csv", "parquet", "fcs"):
        io.write_cells(cells.drop_vars("population"), folder / f"cells.{suffix}")
        io.write_cells(grouped, folder / f"grouped.{suffix}")
    return folder


def linkage_of(source, columns=slice(None), **parameters):
    """Return the hierarchy of the values that a file has: text has float32 in the fewest digits."""
    return MahalanobisHCA(**parameters).fit(io.read_cells(source)["X"].values[:, columns]).linkage_


def merges_of(out):
    """Return ids and heights of printed lines, which have nothing else."""
    rows = [line.split(" ") for line in out.splitlines()]
    assert all(len(row) == 3 for row in rows)
    return np.array([row[:2] for row in rows], np.int64), np.array([row[2] for row in rows], np.float64)


def summary(done):
    code, out, err = done
    assert code == 0, err
    return json.loads(out)


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
def test_lines_are_those_of_the_program(hca, shared_data, tmp_path, name, layout):
    case = load(shared_data / "cytometry" / "reference", name)
    io.write_gmhc(xr.Dataset({"X": (("cell", "channel"), case.X)}), tmp_path / "data", layout=layout)
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
        assert_printed(hca(folder / source, 24, folder / "asgns"), one_by_one)
        assert_printed(hca(folder / source, 24, folder / "asgns", "--order", "height"), by_height)
        assert_printed(hca(folder / source, 24), MahalanobisHCA(24).fit(X).linkage_)
    assert_printed(hca(folder / "grouped.parquet", 24), by_height)
    assert_printed(hca(folder / "grouped.parquet", 24, "--order", "groups"), one_by_one)


def test_threshold_is_a_count_or_a_fraction(hca, cells, folder):
    X = cells["X"].values
    for text, threshold in (("30", 30), ("0.1", 0.1), ("1", 1), ("1.0", 1.0), ("5e-1", 0.5)):
        assert_printed(hca(folder / "data", text), MahalanobisHCA(threshold).fit(X).linkage_)


def test_one_cell_makes_no_line(hca, tmp_path):
    io.write_gmhc(xr.Dataset({"X": (("cell", "channel"), [[1.0, 2.0]])}), tmp_path / "data")
    code, out, err = hca(tmp_path / "data", 10)
    assert (code, out) == (0, "")
    assert "cells" in err


@pytest.mark.slow
def test_the_installed_command_in_a_pipe(tmp_path):
    script = Path(sys.executable).with_name("daskclust")
    start = [script] if script.exists() else [sys.executable, "-m", "daskclust"]
    cells = cytometry(3000, 2, rng=0)
    io.write_gmhc(cells, tmp_path / "data")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = functools.partial(subprocess.run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    done = run([*start, "hca", "data", "0.5"])
    expected = MahalanobisHCA(0.5).fit(cells["X"].values).linkage_
    assert_printed((done.returncode, done.stdout, done.stderr), expected)
    assert "3,000" in done.stderr
    # what reads may stop; the rest does not fit into the pipe
    end = "p.stdout.readline(); p.stdout.close(); err = p.stderr.read().decode(); print(p.wait(), 'Traceback' in err)"
    words = [*map(str, start), "hca", "data", "0.5"]
    code = f"import subprocess as s; p = s.Popen({words}, stdout=s.PIPE, stderr=s.PIPE); {end}"
    assert run([sys.executable, "-c", code]).stdout == "141 False\n"


# --------------------------------------------------------------------------------------------------------------- tables
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npy"])
def test_table_of_merges(hca, grouped, folder, tmp_path, suffix):
    target = tmp_path / f"tree{suffix}"
    told = summary(hca(folder / "grouped.parquet", 24, "-o", target, "--json"))
    estimator = MahalanobisHCA(24).fit(grouped["X"].values, apriori=grouped["apriori"].values)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert told.pop("seconds") >= 0
    assert told == {
        "cells": 120,
        "threshold": 24,
        "rule": "thesis",
        "distance": "centroid",
        "merges": 119,
        "merges_within_apriori_clusters": 115,
        "is_monotone": bool(estimator.is_monotone_),
        "largest_height": estimator.linkage_[:, 2].max(),
        "output": str(target),
    }
    if suffix == ".npy":
        np.testing.assert_array_equal(np.load(target), estimator.linkage_)
        return
    written = pd.read_parquet(target) if suffix == ".parquet" else pd.read_csv(target)
    assert list(written) == ["id1", "id2", "height", "size", "is_apriori"]
    np.testing.assert_array_equal(written[["id1", "id2", "height", "size"]], estimator.linkage_)
    np.testing.assert_array_equal(written["is_apriori"], np.arange(119) < 115)
    assert written["id1"].dtype == np.int64
    if suffix == ".parquet":
        attrs = json.loads(pq.ParquetFile(target).metadata.metadata[b"daskclust"])["attrs"]
        assert (attrs["threshold"], attrs["rule"], attrs["order"]) == (24, "thesis", "height")
        assert "apriori='apriori'" in attrs["hca"]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npy"])
def test_labels(hca, cells, folder, tmp_path, suffix):
    target = tmp_path / f"labels{suffix}"
    arguments = ("--n-clusters", 4, "--min-size", "0.05")
    told = summary(hca(folder / "cells.fcs", 30, "--labels-out", target, *arguments, "--json"))
    expected = MahalanobisHCA(30).fit(cells["X"].values).labels(n_clusters=4, min_size=0.05)
    if suffix == ".npy":
        labels = np.load(target)
    else:
        again = io.read_cells(target)
        labels = again["label"]
        np.testing.assert_array_equal(again["X"].astype(np.float32), cells["X"])
        twice = summary(hca(target, 30, *arguments, "--json"))  # the labels are no channel
        assert {name: told[name] for name in ("cells", "clusters", "noise")}.items() <= twice.items()
    np.testing.assert_array_equal(labels, expected)
    assert (told["clusters"], told["noise"]) == (4, (expected < 0).sum())
    assert told["labels"] == str(target)
    height = ("--height", 2.5, "--labels-out", target)
    assert summary(hca(folder / "cells.fcs", 30, *height, "--json"))["noise"] == 0


def test_tables_for_the_reader(hca, folder, tmp_path):
    both = ("-o", tmp_path / "tree.csv", "--labels-out", tmp_path / "labels.csv", "--n-clusters", 3, "--min-size", 20)
    code, out, err = hca(folder / "data", 30, *both)
    assert (code, err) == (0, "")
    assert "Largest clusters" in out
    assert "Top of the tree" not in out
    code, out, _ = hca(folder / "data", 30, "-o", tmp_path / "tree.npy", "--min-size", 10)
    assert "merges of clusters of 10 cells or more" in " ".join(out.split())
    assert "│ 598 │" in out  # the root
    code, out, err = hca(folder / "data", 30, "--n-clusters", 3)  # no file: lines, and the clusters beside
    assert len(out.splitlines()) == 299
    assert "Largest clusters" in err


# ---------------------------------------------------------------------------------------------------------------- input
def test_files_channels_and_transformations(hca, cells, folder, tmp_path):
    X = cells["X"].values
    for name in ("cells.csv", "cells.parquet", "cells.fcs", "data"):
        expected = linkage_of(folder / name, threshold=30)
        assert_printed(hca(folder / name, 30), expected)
        np.testing.assert_allclose(expected[:, 2], MahalanobisHCA(30).fit(X).linkage_[:, 2], rtol=1e-4)
    (tmp_path / "table.txt").write_bytes((folder / "cells.csv").read_bytes())
    assert_printed(hca(tmp_path / "table.txt", 30), linkage_of(folder / "cells.csv", threshold=30))
    some = MahalanobisHCA(30).fit(X[:, [2, 0]]).linkage_
    assert_printed(hca(folder / "cells.parquet", 30, "--channels", "marker_3, marker_1"), some)
    assert_printed(hca(folder / "data", 30, "--channels", "channel_3,channel_1"), some)
    raw = xr.Dataset({"X": (("cell", "channel"), np.sinh(X.astype(np.float64)) * 5)}, {"channel": ["a", "b", "c"]})
    io.write_cells(raw, tmp_path / "raw.csv")
    arguments = ("--transform", "arcsinh", "--cofactor", 5, "-o", tmp_path / "tree.npy", "--json")
    summary(hca(tmp_path / "raw.csv", 30, *arguments))
    expected = MahalanobisHCA(30).fit(io.arcsinh_transform(raw, 5)["X"].values)  # text has all digits of float64
    np.testing.assert_array_equal(np.load(tmp_path / "tree.npy"), expected.linkage_)


def test_apriori_clusters(hca, grouped, folder):
    X, labels = grouped["X"].values, grouped["apriori"].values
    source = folder / "grouped.parquet"
    for option, apriori in (("apriori", labels), ("none", None), ("4", 4), ("kmeans", "kmeans")):
        expected = MahalanobisHCA(24).fit(X, apriori=apriori)
        assert_printed(hca(source, 24, "--apriori", option), expected.linkage_)
    expected = MahalanobisHCA(24, noise_label=2).fit(X, apriori=labels)
    assert_printed(hca(source, 24, "--noise-label", 2), expected.linkage_)
    arguments = ("--channels", "marker_1", "--apriori", "apriori")
    assert_printed(hca(source, 24, *arguments), MahalanobisHCA(24).fit(X[:, :1], apriori=labels).linkage_)
    one = ("--channels", "channel_1", "--order", "height")
    assert_printed(
        hca(folder / "grouped", 24, folder / "asgns", *one), MahalanobisHCA(24).fit(X[:, :1], apriori=labels).linkage_
    )


def test_rules_and_distances(hca, cells, folder):
    X = cells["X"].values
    for parameters in (
        {"rule": "euclid_mahal", "distance": "full"},
        {"rule": "mahal", "normalize": True},
    ):
        options = [f"--{name}={value}" if value is not True else f"--{name}" for name, value in parameters.items()]
        assert_printed(hca(folder / "data", 0.1, *options), MahalanobisHCA(0.1, **parameters).fit(X).linkage_)


@pytest.mark.slow
def test_workers_give_the_same(hca, folder, tmp_path):
    arguments = (folder / "grouped", 24, folder / "asgns", "--n-clusters", 3)
    one, two = tmp_path / "one.parquet", tmp_path / "two.parquet"
    plain = hca(*arguments)
    told = summary(hca(*arguments, "-o", one, "--workers", 1, "--chunks", 50, "--labels-out", two, "--json"))
    assert_printed(plain, pd.read_parquet(one)[["id1", "id2", "height", "size"]].to_numpy())
    assert told["clusters"] == len(set(pd.read_parquet(two)["label"])) == 3


# --------------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere", 100), "nowhere"),
        (("data", "many"), "THRESHOLD must be a number of cells"),
        (("data", "0"), "in (0, 1], e.g. 0.5, got '0'"),
        (("data", "1.5"), "got '1.5'"),
        (("data", 100, "no_asgns"), "no_asgns"),
        (("data", 100, "asgns", "--apriori", "kmeans"), "asgns and --apriori kmeans both name the apriori clusters"),
        (("cells.csv", 100, "asgns"), "asgns goes with a file of gmhclust"),
        (("cells.csv", 100, "--apriori", "cluster"), "'cluster'"),
        (("cells.csv", 100, "--channels", "CD9"), "'CD9'"),
        (("data", 100, "asgns", "--channels", "CD9"), "no channel 'CD9'\nhint: the channels are channel_1"),
        (("data", 100, "--cofactor", 5), "--cofactor is for --transform arcsinh"),
        (("data", 100, "--scheduler", "tcp://h:1", "--workers", 2), "leave --workers out"),
        (("data", 100, "--n-clusters", 2, "--height", 1), "got --n-clusters 2 and --height 1\nhint: give one of them"),
        (("data", 100, "--n-clusters", 0), "--n-clusters must be 1 or more"),
        (("data", 100, "--n-clusters", 900), "at most"),
        (("data", 100, "--min-size", "1.5"), "--min-size must be a number of cells, or a fraction"),
        (("data", 100, "--labels-out", "l.csv"), "--labels-out needs a cut"),
        (("data", 100, "-o", "data"), "-o must be a .parquet or .csv or .npy file"),
        (("cells.csv", 100, "-o", "cells.csv"), "-o cells.csv is the input"),
        (("data", 100, "asgns.csv", "-o", "asgns.csv"), "-o asgns.csv is the input"),
        (("data", 100, "-o", "a.csv", "--labels-out", "a.csv", "--n-clusters", 2), "are one file"),
        (("data", 100, "-o", "no/such/folder.csv"), "no folder"),
        (("cut", 100), "bytes, which no layout of gmhclust explains"),
        (("nan.csv", 100, "-o", "tree.csv"), "NaN in coordinate 1 of point 1, both counted from 0"),
    ],
)
def test_errors_are_told_in_a_line(hca, folder, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    for name, source in (("data", "grouped"), ("asgns", "asgns"), ("cells.csv", "cells.csv")):
        (tmp_path / name).write_bytes((folder / source).read_bytes())
    (tmp_path / "asgns.csv").write_text("0\n")
    (tmp_path / "cut").write_bytes((folder / "data").read_bytes()[:-1])
    (tmp_path / "nan.csv").write_text("a,b\n0,0\n1,nan\n2,3\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = hca(*arguments)
    assert (code, out) == (1, "")
    assert words in err
    assert err.startswith("error: ")
    assert "Traceback" not in err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
