"""The command line, command as users run it: exit codes, files, messages."""

import json

import numpy as np
import pandas as pd

from daskclust import __version__

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
