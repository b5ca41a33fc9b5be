"""Readers that other packages bring along, and the engine of xarray."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from daskclust import datasets, io
from daskclust.app.opening import open_file

Package = Callable[[str, str], None]

MODULE = """
import numpy as np
from daskclust import io

def open_mine(path, chunks=None):
    x, y, toa, tot = np.fromfile(path).reshape(4, -1)
    columns = {"x": x.astype(np.uint16), "y": y.astype(np.uint16), "toa": toa, "tot": tot.astype(np.float32)}
    return io.to_dataset(columns, field="timepix", source=path)

def open_as_array(path, chunks=None):
    return np.fromfile(path)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """Return what installs a package that brings a reader for .mine files along."""
    monkeypatch.syspath_prepend(tmp_path / "site")

    def install(name: str, function: str) -> None:
        about = tmp_path / "site" / f"{name}-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[daskclust.readers]\nmine = {name}:{function}\n")
        (tmp_path / "site" / f"{name}.py").write_text(MODULE)
        importlib.invalidate_caches()

    return install


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a file of pixel hits in a format of one's own."""
    hits = datasets.timepix(2000, rng=1).sortby("toa")
    np.stack([hits[name].values.astype(float) for name in ("x", "y", "toa", "tot")]).tofile(tmp_path / "run.mine")
    return tmp_path / "run.mine"


def test_a_reader_of_another_package_is_used_everywhere(package: Package, run: Path, command: Any) -> None:
    package("first_package", "open_mine")
    hits = io.read_hits(run)
    x, y, toa, _ = np.fromfile(run).reshape(4, -1)
    assert hits.attrs["field"] == "timepix"
    np.testing.assert_array_equal(hits["toa"], toa)
    assert io.read_hits(run, chunks=300)["x"].chunks[0][:2] == (300, 300)
    found, line, *_ = open_file(run, "events")
    np.testing.assert_array_equal(found["y"], y)
    assert line == f"ds = io.read_hits({str(run)!r}, field='timepix')"
    xr.testing.assert_identical(xr.open_dataset(run, engine="daskclust").load(), hits)
    labels = hits.clust.events(200.0)["label"].values
    code, _, err = command("events", str(run), "--dt-max", "200", "-o", str(run.with_name("out.npz")))
    assert code == 0, err
    np.testing.assert_array_equal(np.load(run.with_name("out.npz"))["label"], labels)
    np.testing.assert_array_equal(np.load(run.with_name("out.npz"))["x"], x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"field": "calorimeter"},
            r"run.mine was read by a_package:open_mine as 'timepix', and 'calorimeter' is asked",
        ),
        ({"units": {"toa": "s"}}, r"units cannot be chosen of .*run.mine, which a_package:open_mine reads"),
        ({"needs": {"weight": ["energy"]}}, r"weight names 'energy', which .*run.mine does not have"),
    ],
)
def test_what_it_does_not_give_is_told(package: Package, run: Path, options: Any, message: str) -> None:
    package("a_package", "open_mine")
    with pytest.raises(ValueError, match=message):
        io.read_hits(run, **options)


def test_readers_that_cannot_be_used_are_told(package: Package, run: Path) -> None:
    with pytest.raises(ValueError, match=r"unknown extension '.mine' of .*; known: .csv"):
        io.read_hits(run)
    package("third_package", "open_as_array")
    with pytest.raises(TypeError, match=r"third_package:open_as_array, .* must return an xarray.Dataset, got ndarray"):
        io.read_hits(run)
    package("fourth_package", "open_mine")
    with pytest.raises(
        ValueError, match=r"several packages have a reader for .mine files: 'fourth_package:open_mine of"
    ):
        io.read_hits(run)


def test_the_engine_opens_files_of_all_fields(tmp_path: Path) -> None:
    hits = datasets.calorimeter(300, rng=1)
    cells, box = datasets.cytometry(200, rng=2), datasets.cosmology_box(500, rng=3)
    io.write_hits(hits, tmp_path / "hits.parquet")
    io.write_cells(cells, tmp_path / "cells.fcs")
    io.write_particles(box, tmp_path / "box.zarr")
    given = {
        "hits.parquet": (io.read_hits, {"columns": {"energy": "weight"}}),
        "cells.fcs": (io.open_fcs, {"cofactor": 5.0}),
    }
    for name, (reader, options) in {**given, "box.zarr": (io.open_particles, {})}.items():
        expected = reader(tmp_path / name, **options)  # type: ignore[operator]
        found = xr.open_dataset(tmp_path / name, engine="daskclust", **options)  # type: ignore[arg-type]
        xr.testing.assert_identical(found.load(), expected.load())
    assert "X" in xr.open_dataset(tmp_path / "cells.fcs")  # found by its extension
    with pytest.raises(TypeError, match="cofactor"):
        xr.open_dataset(tmp_path / "hits.parquet", engine="daskclust", cofactor=5.0)
