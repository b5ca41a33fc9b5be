"""Periodic boxes in the terminal: their unit, and clusters across a face along any axes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from daskclust import io

SIDE, N = 10.0, 500
COMMANDS = {
    "dbscan": ("--eps", "0.15", "--min-samples", "2"),
    "hdbscan": ("--min-cluster-size", "2", "--allow-single-cluster"),
    "fof": ("--linking-length", "0.25"),
}


# ----------------------------------------------------------------------------------------------------- another unit
@pytest.fixture
def snapshot(tmp_path):
    """Return a file in Mpc/h whose box is told in kpc/h; two particles are neighbours across a face."""
    rng = np.random.default_rng(0)
    points = rng.uniform(1, SIDE - 1, (N, 3))
    points[:2] = [(0.01, 5, 5), (SIDE - 0.01, 5, 5)]
    units, attrs = {"units": "Mpc/h"}, {"boxsize": 1e3 * SIDE, "boxsize_units": "kpc/h"}
    columns = {axis: ("particle", values, units) for axis, values in zip("xyz", points.T, strict=True)}
    io.write_particles(xr.Dataset(columns, attrs=attrs), tmp_path / "box.parquet")
    return tmp_path / "box.parquet"


@pytest.mark.parametrize("box", [(), ("--boxsize", SIDE), ("--boxsize", f"{SIDE},{SIDE},{SIDE}")])
def test_b_is_of_the_box_in_the_unit_of_positions(summary, snapshot, box):
    told = summary("fof", snapshot, *COMMANDS["fof"], *box)
    assert told["b"] == pytest.approx(0.25 / (SIDE / N ** (1 / 3)))


@pytest.mark.parametrize("name", ["dbscan", "fof"])
def test_what_next_has_the_box_in_the_unit_of_positions(command, snapshot, name):
    _, out, _ = command(name, snapshot, *COMMANDS[name])
    assert f" --boxsize {SIDE} " in out.splitlines()[-1]


@pytest.mark.parametrize("axes", [(), ("--coordinates", "x,y,z"), ("--coordinates", "x,y"), ("--coordinates", "z,x")])
def test_the_largest_number_of_neighbours_is_in_the_box(summary, snapshot, axes):
    told = summary("dbscan", snapshot, "--eps", 0.05, "--min-samples", 100, *axes)
    least = int(told["reason"].rpartition(" ")[2])
    for min_samples, has_core in ((least, True), (least + 1, False)):
        found = summary("dbscan", snapshot, "--eps", 0.05, "--min-samples", min_samples, *axes)
        assert (found["core_points"] > 0) == has_core


# -------------------------------------------------------------------------------------------------------- axes by name
ACROSS = pd.DataFrame(
    [(9.9, 5, 5, 1), (0.1, 5, 5, 3), (9.95, 5, 5, 2), (0.05, 5, 5, 2), (4, 1, 1, 1)], columns=["x", "y", "z", "w"]
)


@pytest.mark.parametrize("name", ["dbscan", "hdbscan"])
@pytest.mark.parametrize("axes", ["x,y,z", "z,y,x", "x,y", "y,x", "z,x", "x", "u,v", "x,u"])
def test_a_table_has_centres_in_the_box(command, tmp_path, name, axes):
    names, source, target = axes.split(","), tmp_path / "points.csv", tmp_path / "table.zarr"
    ACROSS.assign(u=ACROSS["x"], v=ACROSS["y"]).to_csv(source, index=False)
    sides = {"x": 10, "u": 10, "y": 20, "v": 20, "z": 30}
    box = ",".join(str(sides[each]) for each in names)
    weight = ("--weight", "w") if name == "dbscan" else ()
    code, _, err = command(
        name, source, *COMMANDS[name], *weight, "--coordinates", axes, "--boxsize", box, "--table", target
    )
    assert code == 0, err
    table = xr.open_zarr(target, consolidated=False).load()
    assert table.data_vars.keys() & sides == set(names)
    assert table["mass"][0] == (8 if weight else 4)
    at_face = 0.2 / 8 if weight else 0.0
    centre = {"x": at_face, "u": at_face, "y": 5, "v": 5, "z": 5}
    for each in names:
        assert (float(table[each][0]) - centre[each] + 1) % sides[each] == pytest.approx(1)
    assert table["r_max"][0] < 0.2
    assert table.attrs["boxsize"] == [sides[each] for each in sorted(names)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        *(
            (f"dbscan --eps 1 --coordinates x,{name} --boxsize {box}", f"'{name}'")
            for name, box in product(("size", "cluster"), ("none", 9))
        ),
        ("dbscan --eps 1 --coordinates x,rms", "the table would have ['rms'] twice"),
        ("dbscan --eps 1 --coordinates x,r_max --boxsize 9", "the table would have 'r_max' twice"),
        ("hdbscan --min-cluster-size 2 --coordinates mass,x --boxsize 9", "'mass' twice"),
        ("fof --linking-length 1 --columns y=", "halos need positions x, y, z, or the first of them, got x, z"),
    ],
)
def test_a_table_that_cannot_be_is_refused_before_the_work(command, tmp_path, line, message):
    source, target = tmp_path / "points.csv", tmp_path / "out.csv"
    columns = ("size", "rms", "cluster", "r_max", "mass")
    ACROSS.assign(**dict.fromkeys(columns, ACROSS["x"])).to_csv(source, index=False)
    name, *options = line.split()
    code, _, err = command(name, source, *options, "--table", tmp_path / "table.csv", "-o", target)
    assert (code, message in err) == (1, True), err
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("name", ["dbscan", "hdbscan"])
def test_a_table_of_four_axes_in_a_box_is_refused(command, summary, tmp_path, name):
    source, target = tmp_path / "points.csv", tmp_path / "table.csv"
    ACROSS.to_csv(source, index=False)
    line = (name, source, *COMMANDS[name], "--coordinates", "x,y,z,w", "--table", target)
    code, _, err = command(*line, "--boxsize", 10)
    assert (code, target.exists()) == (1, False)
    assert "--table in a box takes one to three --coordinates, got x,y,z,w" in err
    summary(*line)
    assert target.exists()
