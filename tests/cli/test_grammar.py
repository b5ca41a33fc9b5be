"""One grammar for all commands: outputs in every format, what next, why there are no clusters."""

from __future__ import annotations

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.lanes import some_of
from scipy.spatial import cKDTree

from daskclust import app, datasets, io
from daskclust.app.state import State
from daskclust.app.systems import names_for

LINES = {
    "clue": "clue hits.parquet --dc 2 --rhoc 0.3",
    "events": "events run.tpx3 --dt-max 200",
    "dbscan": "dbscan snapshot.hdf5 --eps 0.3",
    "hdbscan": "hdbscan snapshot.hdf5 --min-cluster-size 10",
    "fof": "fof snapshot.hdf5 --b 0.2",
    "hca": "hca cells.parquet --threshold 20 --n-clusters 3",
}
SUFFIXES = ["npz", "csv", "h5", "npz", "zarr", "csv"]


def columns_of(path):
    """Return the columns of a file of any format."""
    if path.suffix == ".zarr":
        return xr.open_zarr(path, consolidated=False)
    if path.suffix == ".npz":
        return np.load(path)
    if path.suffix == ".h5":
        import h5py

        with h5py.File(path) as file:
            return {name: file[name][:] for name in file}
    return (
        pd.read_csv(path, comment="#", converters={"height": float}) if path.suffix == ".csv" else pd.read_parquet(path)
    )


# -------------------------------------------------------------------------------------------------------------- outputs
@pytest.mark.parametrize(("name", "suffix"), list(zip(LINES, SUFFIXES, strict=True)))
def test_points_tables_and_merges_in_every_format(summary, files, name, suffix):
    """The same as in Parquet, and no other files."""
    before, kinds = set(files.iterdir()), ("points", "table", "tree") if name == "hca" else ("points", "table")
    found = []
    for each in (".parquet", f".{suffix}"):
        paths = [files / f"{kind}{each}" for kind in kinds]
        options = zip(("-o", "--table", "--merges"), paths, strict=False)
        told = summary(*LINES[name].split(), *(word for pair in options for word in pair))
        assert "reason" not in told
        assert [told["output"], told["table"]] == [str(path) for path in paths[:2]]
        values = dict(zip(kinds, ("label", "size", "height"), strict=False))
        found.append([np.sort(columns_of(path)[value]) for path, value in zip(paths, values.values(), strict=True)])
    for first, second in zip(*found, strict=True):
        np.testing.assert_array_equal(first, second)
    assert found[0][1].sum() == (found[0][0] >= 0).sum() > 0
    new = {each.name for each in set(files.iterdir()) - before}
    assert new == {f"{kind}.{each}" for kind in kinds for each in ("parquet", suffix)}


# ------------------------------------------------------------------------------------------------------------ what next
@pytest.fixture
def explored(command, monkeypatch):
    """Return a function that runs a line of ``daskclust explore``, and gives data, system and number of clusters."""
    served = []
    of_page = ("source", "title", "address", "port", "allow_origin", "token", "show", "start")

    def serve(ds, system, **options):
        state = State(ds, system, **{name: value for name, value in options.items() if name not in of_page})
        state.update()
        served.append((ds, system, state.present.n_clusters))
        raise SystemExit(0)

    monkeypatch.setattr(app, "serve", serve)

    def explore(line):
        program, name, *arguments = shlex.split(line)
        assert (program, name) == ("daskclust", "explore")
        command("explore", *arguments)
        return served.pop()

    return explore


@some_of(5, name=LINES, suffix=["", "csv", "zarr"])
def test_what_next_shows_what_was_written(command, files, explored, name, suffix):
    """Or the source, where the explorer does not read the output, or there is none."""
    target = () if not suffix else ("-o", f"out.{suffix}")
    _, out, err = command(*LINES[name].split(), *target)
    (line,) = [each for each in (out + err).splitlines() if each.startswith("next: ")]
    source = LINES[name].split()[1]
    assert shlex.split(line)[3] == (f"out.{suffix}" if suffix and name != "hca" else source)
    ds, system, count = explored(line.removeprefix("next: "))
    assert system == name
    assert f"{count:,}" == re.search(r"│ (clusters|halos) +│ +([\d,]+)", out)[2]
    assert name in names_for(ds)


@some_of(3, name=LINES)
def test_what_next_is_no_output_with_some_columns(command, files, explored, name):
    line = f"{LINES[name]} -o out.csv --only label"
    _, out, _ = command(*line.split())
    last = out.splitlines()[-1]
    assert shlex.split(last)[3] == LINES[name].split()[1]
    assert explored(last.removeprefix("next: "))[1] == name


def test_what_next_reads_the_file_as_it_was_read(command, tmp_path, monkeypatch, explored):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.csv").write_text("u;v;E\n0;30;1\n10;40;2\n")
    line = "clue odd.csv --dc 2 --rhoc 1 --columns u=x,v=y,E=energy --units x=mm,y=mm --coordinates y,x"
    _, out, _ = command(*line.split())
    ds, *_ = explored(out.splitlines()[-1].removeprefix("next: "))
    assert (ds["x"].values.tolist(), ds["x"].attrs["units"], ds["energy"].values.tolist()) == ([3, 4], "cm", [1, 2])
    assert ds["y"].values.tolist() == [0, 1]  # the axes are in this order


SHOWN = [
    "clue a.csv --dc 1 --rhoc 2",
    "clue a.csv --dc 1 --rhoc 2 --coordinates x,y,z",
    "clue layer.csv --dc 1 --rhoc 2",
    "dbscan a.csv --eps 1e-5 --min-samples 1",
    "dbscan a.csv --eps 1 --coordinates z,x --boxsize 10,none",
    "dbscan xz.csv --eps 1 --boxsize none,10",
    "hdbscan a.csv --min-cluster-size 9 --min-samples 5 --units x=Mpc,y=Mpc,z=Mpc",
    "hdbscan xz.csv --min-cluster-size 5",
    "fof a.csv --linking-length 0.5",
    "fof xz.csv --linking-length 0.2",
]
OF_POINTS = ["dbscan {}.csv --eps 1", "fof {}.csv --linking-length 1", "hdbscan {}.csv --min-cluster-size 5"]
NOT_SHOWN = [
    "clue a.csv --dc 1 --rhoc 2 --wrap x=10",
    "clue a.csv --dc 1 --rhoc 2 --neighbor-weight 0.5",
    "clue a.csv --dc 1 --rhoc energy",
    "clue layer.csv --dc 0=1,1=2 --rhoc 2",
    "clue a.csv --dc 1 --rhoc 2 --coordinates x",
    "clue toa.csv --dc 1 --rhoc 2 --columns z=",
    "clue none.csv --dc 1 --rhoc 2",
    "dbscan a.csv --eps 1 --weight w",
    "dbscan a.csv --eps 1 --coordinates x,y,z,w",
    "hdbscan a.csv --min-cluster-size 5 --coordinates z",
    "fof a.csv --linking-length 1 --min-members 1",
    *(line.format(file) for line in OF_POINTS for file in ("layer", "toa", "none")),
]


@pytest.mark.parametrize("line", [*SHOWN, *NOT_SHOWN])
def test_what_next_shows_are_the_same_clusters_or_none(command, tmp_path, monkeypatch, explored, line):
    monkeypatch.chdir(tmp_path)
    points = pd.DataFrame(np.random.default_rng(0).integers(0, 10, (300, 3)), columns=list("xyz"))
    points[["x", "z"]].to_csv("xz.csv", index=False)
    points[:0].to_csv("none.csv", index=False)
    for name, column in {"a": "w", "layer": "layer", "toa": "toa"}.items():
        points.assign(**{column: points["z"] % 2}).to_csv(f"{name}.csv", index=False)
    code, out, err = command(*line.split())
    assert code == 0, err
    said = [each.removeprefix("next: ") for each in out.splitlines() if each.startswith("next: ")]
    assert len(said) == (line in SHOWN)
    for each in said:
        assert f"{explored(each)[2]:,}" == re.search(r"│ (clusters|halos) +│ +([\d,]+)", out)[2]


@pytest.mark.parametrize("layout", ["chips", "quad"])
def test_what_next_shows_the_same_pixels(command, files, explored, layout):
    options = ["--layout", layout, *(["--gap", "2"] if layout == "quad" else [])]
    _, out, _ = command("events", "run.tpx3", "--dt-max", 200, *options)
    ds, *_ = explored(out.splitlines()[-1].removeprefix("next: "))
    xr.testing.assert_identical(ds, io.open_tpx3("run.tpx3", layout=layout, gap=2 * (layout == "quad")))


@pytest.mark.parametrize("target", ["", "-o a.csv"])
@pytest.mark.parametrize(
    "option", ["--max-pixel-hits 3", "--mask-pixels auto", "--mask-pixels m.csv", "--where size>3"]
)
def test_what_next_shows_are_the_clusters_of_some_pixels(command, tmp_path, monkeypatch, explored, option, target):
    """The explorer hides pixels by the number of their hits; without an output it shows no other choice."""
    monkeypatch.chdir(tmp_path)
    hits = datasets.timepix(3000, rng=0)
    noisy = hits.isel(hit=np.repeat(np.arange(0, 3000, 60), 40))  # many equal hits
    io.write_hits(xr.concat([hits, noisy], "hit").sortby("toa"), "run.parquet")
    pd.DataFrame({"x": noisy["x"], "y": noisy["y"]}).drop_duplicates().to_csv("m.csv", index=False)
    code, out, err = command("events", "run.parquet", "--dt-max", 200, *option.split(), *target.split())
    assert code == 0, err
    said = [each.removeprefix("next: ") for each in out.splitlines() if each.startswith("next: ")]
    assert len(said) == bool(target or option.startswith("--max"))
    count = re.findall(r"│ clusters(?:[_ ]kept)? +│ +([\d,]+)", out)[-1]
    for each in said:
        assert f"{explored(each)[2]:,}" == count


@pytest.mark.parametrize(
    "line", ["run.txt --format t3pa --dt-max 9", "run.tpx3 --on-reset restart --dt-max 9", "frames.parquet -o a.csv"]
)
def test_what_next_is_not_told_where_the_explorer_could_not(command, files, line):
    """Of a format that the ending does not tell, times that do not go on, and hits without times."""
    head, row = "Index\tMatrix Index\tToA\tToT\tFToA\tOverflow", "0\t7\t100\t5\t3\t0"
    (files / "run.txt").write_text(f"{head}\n{row}\n")
    pd.DataFrame({"x": [1, 2], "y": [5, 5], "frame": [0, 0]}).to_parquet("frames.parquet")
    code, out, _ = command("events", *line.split())
    assert (code, "next:" in out) == (0, False)


def test_what_next_shows_no_other_particles(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    io.write_particles(datasets.cosmology_box(500, rng=0).drop_vars("halo").assign_attrs(particle_type=0), "gas.hdf5")
    line = "dbscan gas.hdf5 --eps 0.5 --particle-type gas"
    assert "next:" not in command(*line.split())[1]
    assert "next: daskclust explore gas.csv" in command(*line.split(), "-o", "gas.csv")[1]
    assert "next:" not in command(*line.split(), "-o", "gas.csv", "--only", "x,label")[1]


# --------------------------------------------------------------------------------------------------------- no clusters
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("clue hits.parquet --dc 2 --rhoc 1e9", "0 clusters: rhoc 1e+09 exceeds the largest density, {density:.6g}"),
        ("clue hits.parquet --dc 2 --rhoc high", "0 clusters: no density reaches that of its hit in the column high"),
        ("clue none.csv --dc 2 --rhoc 1", "0 clusters: none.csv has no hits"),
        ("events run.tpx3 --dt-max 200 --min-hits 900", "0 clusters: min-hits 900 exceeds the largest cluster, {hits}"),
        ("events run.tpx3 --dt-max 200 --where size>900", "0 clusters kept: where 'size>900' holds for none of"),
        ("hdbscan snapshot.hdf5 --min-cluster-size 900",
         "0 clusters: no 900 points stay together apart from all others"),
        ("dbscan snapshot.hdf5 --eps 0.1 --min-samples 90",
         "0 clusters: min-samples 90 exceeds the largest number of neighbours within eps 0.1, {neighbours}"),
        ("dbscan snapshot.hdf5 --eps 0.1 --min-samples 9 --weight light",
         "0 clusters: min-samples 9 exceeds the largest sum of weights within eps 0.1, {weights:g}"),
        ("fof snapshot.hdf5 --b 0.2 --min-members 900", "0 halos: min-members 900 exceeds the largest group, {halo}"),
        ("fof snapshot.hdf5 --b 0.0001", "0 halos: no two particles are within the linking length, 0.0001"),
        ("hca cells.parquet --threshold 20 --height 2 --min-size 290",
         "0 clusters: min-size 290 exceeds the largest cluster of the cut, {cells} cells"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", ["here", pytest.param("on workers", marks=pytest.mark.slow)])
def test_the_reason_for_no_clusters(command, files, request, line, reason, where):
    """Against brute force, and programs of others."""
    (files / "none.csv").write_text("x,y\n")
    hits, box = io.read_hits("hits.parquet"), io.open_particles("snapshot.hdf5", chunks=None)
    io.write_hits(hits.assign(high=hits["energy"] * 0 + 1e6), "hits.parquet")
    light = box.assign(light=("particle", np.full(1500, 0.25)))
    io.write_particles(light, "snapshot.hdf5")
    tree = cKDTree(
        np.stack([box[name] for name in "xyz"], 1).astype(float) % box.attrs["boxsize"], boxsize=box.attrs["boxsize"]
    )
    most = max(map(len, tree.query_ball_point(tree.data, 0.1)))
    pixels = io.open_tpx3("run.tpx3").compute().clust.events(200.0)["label"].values
    groups = box.clust.fof(b=0.2)["label"].values
    cells = io.read_cells("cells.parquet").clust.hca(20, height=2.0)["label"].values
    facts = {
        "density": float(hits.clust.clue(2.0, 1.0)["density"].max()),
        "hits": np.bincount(pixels).max(),
        "neighbours": most,
        "weights": most / 4,
        "halo": np.bincount(groups[groups >= 0]).max(),
        "cells": np.bincount(cells).max(),
    }
    there = () if where == "here" else ("--scheduler", request.getfixturevalue("scheduler"))
    code, out, err = command(*line.split(), "--json", *there)
    assert (code, err) == (0, "")
    assert json.loads(out)["reason"].startswith(reason.format(**facts))
    if where == "here" and line.startswith("clue"):
        assert reason.format(**facts) in command(*line.split())[1]


# -------------------------------------------------------------------------------------------------------------- dry run
@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("clue hits.parquet --dc 2 --rhoc 1 --workers 2 --chunks 1000", {"chunks": 7, "points_per_chunk": 1000}),
        ("clue hits.csv --dc 2 --rhoc 1 --table t.csv", {"number_is": "about as many"}),
        ("clue hits.npz --dc 2 --rhoc 1", {"hits": None, "number_is": "not told by the head of a .npz file"}),
        ("events run.tpx3 --dt-max 200 --table t.csv", {"chunks": 1, "number_is": "at most as many"}),
        ("dbscan snapshot.hdf5 --eps 0.3 --scheduler tcp://none:1", {"points": 1500, "number_is": "as the file"}),
        ("fof snapshot.hdf5 --b 0.2 --workers 3 --chunks 500", {"particles": 1500, "chunks": 3}),
        ("hca cells.parquet --threshold 20 --merges t.npy", {"cells": 300, "chunks": 1}),
    ],
)  # fmt: skip
def test_a_dry_run_tells_and_writes_nothing(summary, files, monkeypatch, line, facts):
    hits = io.read_hits("hits.parquet")
    io.write_hits(hits, "hits.csv")
    io.write_hits(hits, "hits.npz")
    before = {path: path.stat().st_mtime_ns for path in files.iterdir()}
    monkeypatch.setattr("daskclust.cli._job.Job.started", None)  # nothing is begun
    told = summary(*line.split(), "--dry-run")
    assert {path: path.stat().st_mtime_ns for path in files.iterdir()} == before
    for name, value in facts.items():
        assert str(told[name]).startswith(str(value)) if isinstance(value, str) else told[name] == value
    unit = next(name for name in ("hits", "points", "particles", "cells") if name in told)
    if told[unit] is not None:
        assert told["memory_bytes"] == told["points_per_chunk"] * told["bytes_per_point"]
        assert told["seconds_estimated"] > 0
        assert told["basis"].startswith("the time is an estimate on")
    if "csv" in line.split()[1]:
        assert told["hits"] == pytest.approx(6794, rel=0.05)
