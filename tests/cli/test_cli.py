"""The command line, command as users run it: exit codes, files, messages."""

import gc
import json

import numpy as np
import pandas as pd

from daskclust import __version__, io
from daskclust.cli._progress import progress

TOY = ("--dc", 5, "--rhoc", 8, "--delta-c", 5, "--delta-o", 10)


def test_clue_counts_and_file(summary, tmp_path, shared_data):
    target, table = tmp_path / "t.parquet", tmp_path / "table.csv"
    # the file's last column is named weight here, so that it is no energy in GeV
    told = summary("clue", shared_data / "clue" / "toyDetector_5000.csv", *TOY, "-o", target, "--table", table)
    assert told["clusters"] == 364
    assert told["noise"] == 105
    expected = pd.read_csv(shared_data / "clue" / "reference" / "toyDetector_5000_5_10_5_8.csv")
    written = pd.read_parquet(target)
    np.testing.assert_array_equal(written["label"], expected["clusterId"])
    np.testing.assert_array_equal(written["nearest_higher"], expected["nh"])
    assert pd.read_csv(table)["size"].sum() == (written["label"] >= 0).sum()
    assert set(tmp_path.iterdir()) == {target, table}


def test_showers(summary, files):
    """Of hits and of clusters, as in Python; a parameter that CLUE3D has not is told."""
    line = ("clue", "hits.parquet", "--dc", "1.5", "--rhoc", "0.05", "--table", "clusters.parquet")
    told = summary(*line, "-o", "out.parquet", "--clue3d", "critical_density=1,density_on_same_layer=true")
    wanted = io.read_hits("hits.parquet").clust.clue(1.5, 0.05)
    wanted = wanted.clust.showers(critical_density=1.0, density_on_same_layer=True)
    found, clusters = pd.read_parquet("out.parquet"), pd.read_parquet("clusters.parquet")
    np.testing.assert_array_equal(found["shower"], wanted["shower"])
    assert told["showers"] == found["shower"].max() + 1 == clusters["shower"].max() + 1 > 5
    np.testing.assert_array_equal(np.append(clusters["shower"], -1)[found["label"]], found["shower"])


def test_showers_that_are_refused(command, files):
    line = ("clue", "hits.parquet", "--dc", "1.5", "--rhoc", "0.05")
    assert "did you mean 'critical_density'" in command(*line, "--clue3d", "critical_densty=1")[2]
    assert "critical_density must be a number" in command(*line, "--clue3d", "critical_density=a")[2]
    pd.read_parquet("hits.parquet").drop(columns="z").to_parquet("flat.parquet")
    assert "showers need z of each hit" in command("clue", "flat.parquet", *line[2:], "--showers")[2]


def test_info(command):
    code, out, _ = command("info", "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["versions"]["numpy"] == np.__version__
    assert int(facts["processor"]["cores"]) >= 1
    assert facts["processor"]["compiled for"]
    assert "daskclust[gpu]" in json.dumps(facts["gpu"]) or "device 0" in facts["gpu"]


def test_help_without_arguments_and_the_version(command):
    code, out, err = command()
    assert (code, "clue" in out + err) == (2, True)
    assert command("--version") == (0, f"daskclust {__version__}\n", "")


def test_garbage_is_looked_for_once_work_begins():
    """A process of its own begins without: arrays in cycles would stay."""
    gc.disable()
    try:
        with progress("clustering", quiet=True):
            assert gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()
