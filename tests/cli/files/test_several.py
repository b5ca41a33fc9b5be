"""Several inputs of every command: one answer for all files or one for each, and pipes."""

from __future__ import annotations

import io as streams
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.lanes import some_of

from daskclust import EventBuilder, datasets, io
from daskclust.app.opening import open_file
from daskclust.properties import cluster_table

NUMBERS = (1, 2, 10)


def cells(k: int) -> xr.Dataset:
    return datasets.cytometry(60 + k, 3, rng=k).drop_vars("population")


MAKE: dict[str, tuple[str, Any, Any]] = {
    "clue": (".parquet", lambda k: datasets.calorimeter(2, 100, rng=k).drop_vars("truth"), io.write_hits),
    "events": (".tpx3", lambda k: datasets.timepix(500, rng=k).drop_vars("truth"), io.write_tpx3),
    "dbscan": (".csv", lambda k: datasets.cosmology_box(300, rng=k)[["x", "y", "z"]], io.write_hits),
    "fof": (".hdf5", lambda k: datasets.cosmology_box(300, rng=k).drop_vars("halo"), io.write_particles),
    "hca": (".fcs", cells, io.write_cells),
}
OPTIONS = {
    "clue": ["--dc", 5, "--rhoc", 3],
    "events": ["--dt-max", 200],
    "dbscan": ["--eps", 2],
    "fof": ["--linking-length", 0.5, "--min-members", 3],
    "hca": ["--threshold", 20, "--n-clusters", 3],
}
WAYS = {
    "names": [f"run_{k}{{}}" for k in (10, 1, 2)],  # a shell has them in another order
    "glob": ["run_*{}"],
    "folder": ["."],
}


@pytest.fixture
def command_of(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the command that a test has as `name`, in a folder of inputs for it."""
    suffix, make, write = MAKE[name]
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    for k in NUMBERS:
        write(make(k), tmp_path / "in" / f"run_{k}{suffix}")
    return name


def line(name: str, way: str) -> list[Any]:
    return [name, *(word.format(MAKE[name][0]) for word in WAYS[way]), *OPTIONS[name]]


def inputs(name: str) -> list[str]:
    return [f"run_{k}{MAKE[name][0]}" for k in NUMBERS]


@some_of(8, name=MAKE, way=WAYS)
def test_one_answer_for_all(summary: Any, command_of: str, way: str) -> None:
    """That of Python for what a reader makes of them; of raw hits, each file's own."""
    told = summary(*line(command_of, way), "-o", "../all.parquet", "--table", "../table.parquet")
    rows = pd.read_parquet("../all.parquet")
    sizes = [MAKE[command_of][1](k).sizes for k in NUMBERS]
    np.testing.assert_array_equal(rows["source"], np.repeat(range(3), [next(iter(each.values())) for each in sizes]))
    assert len(pd.read_parquet("../table.parquet")) == told.get("clusters", told.get("halos"))
    label = rows["label"].to_numpy()
    if command_of == "events":
        tables, count = [], 0
        for path, part in zip(
            inputs("events"), np.split(label, np.flatnonzero(np.diff(rows["source"])) + 1), strict=True
        ):
            hits = io.open_tpx3(path)
            builder = EventBuilder(200.0).fit(hits)
            np.testing.assert_array_equal(part, builder.labels_ + count)
            tables.append(cluster_table(hits, builder.labels_)["size"].values)
            count += builder.n_clusters_
        np.testing.assert_array_equal(pd.read_parquet("../table.parquet")["size"], np.concatenate(tables))
        assert pd.read_parquet("../table.parquet")["source"].is_monotonic_increasing
        return
    read = {"clue": io.read_hits, "dbscan": lambda p: io.read_hits(p, field="particles"), "fof": io.open_particles}
    ds = read.get(command_of, io.read_cells)(inputs(command_of)).compute()
    right = {
        "clue": lambda: ds.clust.clue(5, 3),
        "dbscan": lambda: ds.clust.dbscan(2.0),
        "fof": lambda: ds.clust.fof(0.5, min_members=3),
        "hca": lambda: ds.clust.hca(20, n_clusters=3),
    }[command_of]()
    np.testing.assert_array_equal(label, right["label"])


@some_of(6, name=MAKE, pattern=["../{}_out.csv", ".."])
def test_one_answer_for_each(command: Any, command_of: str, pattern: str) -> None:
    code, out, err = command(*line(command_of, "glob"), "--each", "-o", pattern, "--json")
    assert code == 0, err
    told = [json.loads(each) for each in out.splitlines()]
    for k, source, document in zip(NUMBERS, inputs(command_of), told, strict=True):
        code, _, err = command(command_of, source, *OPTIONS[command_of], "-o", "../alone.csv", "--json")
        assert code == 0, err
        expected = pd.read_csv("../alone.csv", comment="#")
        path = pattern.replace("{}", f"run_{k}") if "{}" in pattern else f"../run_{k}.parquet"
        assert document["output"] == path
        found = pd.read_csv(path, comment="#") if path.endswith(".csv") else pd.read_parquet(path)
        np.testing.assert_array_equal(found["label"], expected["label"])
        assert "source" not in found


def test_a_bad_file_does_not_stop_the_others(command: Any, tmp_path: Path) -> None:
    for name, first in (("a", 1), ("b", "word"), ("c", 2)):
        (tmp_path / f"{name}.csv").write_text(f"x,y,energy\n{first},2,3\n")
    line = ("clue", tmp_path, "--each", *OPTIONS["clue"], "-o", tmp_path / "out_{}.csv")
    code, out, err = command(*line, "--json")
    told = [json.loads(each) for each in out.splitlines()]
    assert code == 1
    assert ["error" in each for each in told] == [False, True, False]
    assert f"{tmp_path}/b.csv, line 2, column 1 (x): expected a number, found 'word'" in err
    assert sorted(path.stem for path in tmp_path.glob("out_*")) == ["out_a", "out_c"]


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKE)
def test_workers_give_the_same(summary: Any, command_of: str, scheduler: str) -> None:
    on = ["--scheduler", scheduler]
    summary(*line(command_of, "glob"), "-o", "../there.parquet", "--table", "../t_there.parquet", *on)
    summary(*line(command_of, "glob"), "-o", "../here.parquet", "--table", "../t.parquet")
    for one, other in (("../there.parquet", "../here.parquet"), ("../t_there.parquet", "../t.parquet")):
        found, right = pd.read_parquet(one), pd.read_parquet(other)
        for key in right:
            np.testing.assert_allclose(found[key].astype(float), right[key].astype(float), atol=1e-6, err_msg=key)


def piped(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", streams.TextIOWrapper(streams.BytesIO(data)))


@some_of(5, name=MAKE, suffix=[".csv", ".parquet"])
def test_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Any, name: str, suffix: str) -> None:
    """What is piped in gives the rows of a file, and what is piped out is the file."""
    monkeypatch.chdir(tmp_path)
    write = io.write_cells if name == "hca" else io.write_hits
    write(MAKE[name][1](3), tmp_path / f"in{suffix}")
    options = OPTIONS[name] if name != "fof" else ["--linking-length", 2, "--boxsize", "none"]
    code, _, err = command(name, f"in{suffix}", *options, "-o", "out.csv")
    assert code == 0, err
    piped(monkeypatch, (tmp_path / f"in{suffix}").read_bytes())
    code, out, err = command(name, "-", *options, "-o", "-")
    assert code == 0, err
    assert out == (tmp_path / "out.csv").read_text()
    assert "clusters" in err or "halos" in err
    assert "next:" not in err
    assert "daskclust-pipe" not in err
    piped(monkeypatch, (tmp_path / f"in{suffix}").read_bytes())
    code, out, err = command(name, "-", *options, "--table", "-")
    assert out.partition("\n")[0].count(",") > 2
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([f"in{suffix}", "out.csv"])


def test_what_cannot_be(command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hits = MAKE["clue"][1](1)
    for name in ("a.csv", "a.parquet", "b.csv"):
        io.write_hits(hits, tmp_path / name)
    (tmp_path / "out").mkdir()
    wrong: list[tuple[list[str], str]] = [
        (["a.csv", "b.csv", "--each", "-o", "labels.csv"], "-o labels.csv would be the output of every input"),
        (["a.csv", "a.parquet", "--each", "-o", "out"], "a.csv and a.parquet would both be written to out/a.parquet"),
        (["a.csv", "b.csv", "-o", "b.csv"], "-o b.csv is the input"),
        (["a.csv", "-"], "- is what is piped in, which is read alone"),
        (["a.csv", "-o", "-", "--table", "-"], "-o and --table cannot both be -"),
        (["a.csv", "b.csv", "--each", "-o", "-"], "-o - prints rows, and --each prints more"),
        (["a.csv", "-o", "-", "--json"], "-o - prints rows, and --json prints more"),
    ]
    for words, message in wrong:
        code, out, err = command("clue", *words, *OPTIONS["clue"])
        assert code != 0
        assert message in err.replace("\n", " ")
        assert list((tmp_path / "out").iterdir()) == []
        assert not out or "--json" in words
    code, _, err = command("events", "tcp://a:1", "tcp://b:2", "--follow", "--dt-max", "9")
    assert code != 0
    assert "--follow reads one readout, got 2" in err


@pytest.mark.parametrize("name", ["clue", "hca"])
def test_the_explorer_opens_several(command_of: str) -> None:
    paths = [Path(name) for name in inputs(command_of)]
    ds, *lines = open_file(paths, command_of)
    assert ds.attrs["files"] == [str(path) for path in paths]
    assert f"{[str(path) for path in paths]!r}" in lines[0]
    assert sorted(set(ds["source"].values.tolist())) == [0, 1, 2]
