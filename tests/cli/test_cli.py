"""The command line, command as users run it: exit codes, files, messages."""

import json

import numpy as np
import pandas as pd
import pytest

from daskclust import io

TOY = ("--dc", 5, "--rhoc", 8, "--delta-c", 5, "--delta-o", 10)


def test_clue_counts_and_file(command, tmp_path, shared_data):
    target = tmp_path / "t.parquet"
    # the file's last column is named weight here, so that it is no energy in GeV
    code, out, _ = command("clue", shared_data / "clue" / "toyDetector_5000.csv", *TOY, "-o", target, "--json")
    assert code == 0
    assert json.loads(out)["clusters"] == 364
    assert json.loads(out)["noise"] == 105
    expected = pd.read_csv(shared_data / "clue" / "reference" / "toyDetector_5000_5_10_5_8.csv")
    written = pd.read_parquet(target)
    np.testing.assert_array_equal(written["label"], expected["clusterId"])
    np.testing.assert_array_equal(written["nearest_higher"], expected["nh"])
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


@pytest.mark.slow
def test_workers_and_table_give_the_same(command, tmp_path, shared_data):
    source = shared_data / "clue" / "toyDetector_1000.csv"
    one, two, table = tmp_path / "one.parquet", tmp_path / "two.parquet", tmp_path / "table.csv"
    assert command("clue", source, *TOY, "-o", one)[0] == 0
    code, _, err = command(
        "clue", source, *TOY, "-o", two, "--workers", 1, "--chunks", 300, "--partition", "space", "--table", table
    )
    assert code == 0, err
    pd.testing.assert_frame_equal(pd.read_parquet(one), pd.read_parquet(two))
    assert pd.read_csv(table)["size"].sum() == (pd.read_parquet(one)["label"] >= 0).sum()


def test_points_of_another_field(command, tmp_path):
    rng = np.random.default_rng(0)
    points = io.to_dataset({"x": rng.uniform(0, 9, 200), "y": rng.uniform(0, 9, 200)}, field="particles")
    io.write_hits(points, tmp_path / "points.parquet")
    code, out, err = command("clue", tmp_path / "points.parquet", "--dc", 1, "--rhoc", 3, "--json")
    assert code == 0, err
    assert json.loads(out)["clusters"] == int(points.clust.clue(1.0, 3.0)["label"].max()) + 1


def test_columns_wrap_and_rhoc_by_name(command, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"eta": rng.uniform(1.5, 3, 300), "phi": rng.uniform(-3.1, 3.1, 300), "cut": 2.0})
    source = tmp_path / "cells.parquet"
    frame.assign(x=0.0, y=0.0).to_parquet(source)
    arguments = ("--coordinates", "eta,phi", "--wrap", f"phi={2 * np.pi}", "--rhoc", "cut", "--dc", 0.2, "--json")
    code, out, err = command("clue", source, *arguments)
    assert code == 0, err
    from daskclust import CLUE

    expected = CLUE(0.2, 2.0, wrap={1: 2 * np.pi}).fit(frame[["eta", "phi"]].to_numpy())
    assert json.loads(out)["clusters"] == expected.n_clusters_


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("clue", "nowhere.csv", "--dc", 1, "--rhoc", 2), "nowhere.csv"),
        (("clue", "hits.csv", "--dc", -1, "--rhoc", 2), "dc must be finite and positive, got -1"),
        (("clue", "hits.csv", "--dc", 1, "--rhoc", "nothing"), "nothing"),
        (("clue", "hits.csv", "--dc", 1, "--rhoc", 2, "--wrap", "phi"), "AXIS=PERIOD"),
        (("clue", "hits.csv", "--dc", 1, "--rhoc", 2, "-o", "no/such/folder.parquet"), "no folder"),
        (("clue", "hits.csv", "--dc", 1, "--rhoc", 2, "-o", "hits.xyz"), ".xyz"),
        (("clue", "broken.csv", "--dc", 1, "--rhoc", 2), "line 3"),
        (("bench", "clue", "--sizes", "many"), "--sizes must be whole numbers from 1 on"),
    ],
)
def test_errors_are_told_in_a_line(command, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hits.csv").write_text("x,y\n0,0\n1,1\n")
    (tmp_path / "broken.csv").write_text("x,y\n0,0\n1,1,7\n")
    code, out, err = command(*arguments)
    assert code == 1
    assert words in err
    assert "Traceback" not in out + err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.csv", "hits.csv"]


def test_info(command):
    code, out, _ = command("info", "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["versions"]["numpy"] == np.__version__
    assert int(facts["processor"]["cores"]) >= 1
    assert facts["processor"]["compiled for"]
    assert "daskclust[gpu]" in json.dumps(facts["gpu"]) or "device 0" in facts["gpu"]


def test_info_tells_what_to_install(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("daskclust.machine.importlib.util.find_spec", lambda name: None)
    _, out, _ = command("info")
    assert 'pip install "daskclust[gpu]"' in out


def test_bench_prints_a_table(command, tmp_path):
    target = tmp_path / "bench.json"
    code, out, _ = command("bench", "clue", "--sizes", "2000", "--repeats", 1, "-o", target)
    assert code == 0
    assert out.count("\n| 2,000 |") == 1
    report = json.loads(target.read_text())
    assert report["runs"][0]["points"] == 2000
    assert sum(report["runs"][0]["steps_ms"].values()) > 0


@pytest.mark.slow
def test_demo(command, tmp_path):
    code, out, err = command("demo", "-o", tmp_path / "demo", "--workers", 1)
    assert code == 0, err
    assert "equal, element by element" in out
    page = (tmp_path / "demo" / "daskclust-demo.html").read_text()
    assert "Decision plot" in page


def test_no_arguments_show_help(command):
    _, out, err = command()
    assert "clue" in out + err
