"""Boxes of files: 0 along an axis is an open one, whatever program wrote it; which side is of which axis."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr
from cases.lanes import some_of

from daskclust import DBSCAN
from daskclust.io import linking_length, open_particles, write_hits, write_particles

DIALECTS = {
    "Gadget": {"Time": 1.0, "Redshift": 0.0, "MassTable": [0, 1.0, 0, 0, 0, 0]},
    "AREPO": {"Time": 0.5, "Redshift": 1.0, "UnitLength_in_cm": 3.0857e24, "HubbleParam": 0.7},
    "SWIFT": {"Code": "SWIFT", "Scale-factor": [0.5], "Redshift": [1.0], "Dimension": 3},
}
BOXES = [0.0, [0.0], 100.0, [100.0], *(list(box) for box in product([0.0, 100.0], repeat=3)), [100.0, 50.0, 0.0]]


def write(path: Path, box: Any, dialect: str, X: np.ndarray) -> None:
    """Write a snapshot, or a zarr store, of dark matter."""
    if dialect.startswith("zarr"):
        group = zarr.open_group(path, mode="w", zarr_format=int(dialect[-1]))
        group.attrs["boxsize"] = box
        group["Coordinates"] = X
        return
    with h5py.File(path, "w") as file:
        counts = {name: [0, len(X), 0, 0, 0, 0] for name in ("NumPart_ThisFile", "NumPart_Total")}
        file.create_group("Header").attrs.update({**DIALECTS[dialect], **counts, "BoxSize": box})
        file["PartType1/Coordinates"] = X


@some_of(26, box=BOXES, dialect=[*DIALECTS, "zarr2", "zarr3"])
def test_an_axis_of_0_is_open(tmp_path: Path, dialect: str, box: Any) -> None:
    X = np.array([[0.1, 0.1, 0.1], [99.9, 0.1, 0.1], [0.1, 0.1, 99.9], [0.1, 49.95, 0.1], [30.0, 30.0, 30.0]])
    path = tmp_path / ("a.zarr" if dialect.startswith("zarr") else "a.hdf5")
    write(path, box, dialect, X)
    ds = open_particles(path, chunks=None)
    sides = np.broadcast_to(box, 3)
    difference, period = np.abs(X[:, None] - X), np.where(sides > 0, sides, 1000)
    difference = np.minimum(difference % period, period - difference % period)
    near = np.sqrt((difference**2).sum(axis=2)) <= 1
    labels = ds.clust.dbscan(1.0, min_samples=1)["label"].values
    np.testing.assert_array_equal(labels[:, None] == labels, near)
    told = ds.attrs.get("boxsize")
    np.testing.assert_array_equal(DBSCAN(1.0, min_samples=1, boxsize=told).fit(X).labels_, labels)
    for ending in (".parquet", ".zarr", ".hdf5"):
        write_particles(ds, tmp_path / f"again{ending}")
        assert open_particles(tmp_path / f"again{ending}").attrs.get("boxsize") == told
    if told is not None and sides.all():
        assert linking_length(ds, 1.0) == pytest.approx((sides.prod() / 5) ** (1 / 3))
    else:
        with pytest.raises(ValueError, match=r"attrs|a mean separation needs a box that is closed along each axis"):
            linking_length(ds)


@pytest.mark.parametrize("ending", [".parquet", ".zarr"])
@pytest.mark.parametrize("axes", ["x", "xy", "xz", "xyz"])
def test_a_box_has_the_sides_of_the_axes_that_are_there_or_of_all_three(tmp_path: Path, axes: str, ending: str) -> None:
    X = np.random.default_rng(0).uniform(0, 10, (300, len(axes)))
    ds = xr.Dataset({axis: ("particle", column) for axis, column in zip(axes, X.T, strict=True)})
    for box in product([10.0, None], repeat=len(axes)):
        labels = DBSCAN(0.2, min_samples=2, boxsize=box).fit(X).labels_
        for told in (list(box), [dict(zip(axes, box, strict=True)).get(axis, 7.0) for axis in "xyz"]):
            given = ds.assign_attrs(boxsize=told)
            write_hits(ds.assign_attrs(boxsize=[side or 0.0 for side in told]), tmp_path / f"a{ending}")
            for points in (given, *(open_particles(tmp_path / f"a{ending}", chunks=chunks) for chunks in (None, 100))):
                np.testing.assert_array_equal(points.clust.dbscan(0.2, min_samples=2)["label"], labels)
            if all(box):
                assert linking_length(given, 1.0) == pytest.approx(10 / 300 ** (1 / len(axes)))
