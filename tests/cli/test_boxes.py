"""Periodic boxes in the terminal: the unit they are in."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from daskclust import io

SIDE, N = 10.0, 500
COMMANDS = {
    "dbscan": ("--eps", "0.15", "--min-samples", "2"),
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
