"""Timepix4: tables of events as the ESRF describes them, times of 48 bits, and chips of 448 columns and 512 rows.

The standard: ``toa48_ns`` and ``tot_ns`` in float64, ``x`` and ``y`` in int16, ``pileup`` and ``top`` boolean, in the
order of the readout; times may be a little below 0. ToA counts 195.3125 ps, ToT 1.5625 ns.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes
from cases.elements import layer

from daskclust import EventBuilder, datasets, io, plot, properties

COLUMNS, ROWS = 448, 512
BEFORE = 5000.0  # ns
STEPS = {"195.3125 ps": Fraction(25, 128), "1.5625 ns": Fraction(25, 16), "25 ns": Fraction(25)}


def table(n: int = 3000) -> tuple[xr.Dataset, pa.Table]:
    """Return hits, and the table of them as it comes from the readout."""
    ds = datasets.timepix(n, kind="pion45", layout="timepix4", rate=5e6, rng=3)
    raw = ds.isel(hit=datasets.readout_order(ds, 500.0, rng=1))
    columns = {
        "toa48_ns": raw["toa"].values - BEFORE,
        "tot_ns": raw["tot"].values.astype(np.float64),
        "x": raw["x"].values.astype(np.int16),
        "y": raw["y"].values.astype(np.int16),
        "pileup": np.arange(n) % 17 == 0,
        "top": raw["y"].values < ROWS // 2,
    }
    return raw, pa.table(columns)


@pytest.mark.parametrize("writer", ["pyarrow", "polars"])
@pytest.mark.parametrize("chunks", [None, 700])
def test_tables_of_the_esrf(tmp_path: Path, writer: str, chunks: int | None) -> None:
    raw, events = table()
    if writer == "polars":
        pytest.importorskip("polars").from_arrow(events).write_parquet(tmp_path / "a.parquet", row_group_size=900)
    else:
        pq.write_table(events, tmp_path / "a.parquet", row_group_size=900)
    with raise_if_dask_computes():
        ds = io.read_hits(tmp_path / "a.parquet", chunks=chunks)
    assert (ds.attrs["field"], ds.attrs["layout"]) == ("timepix", "timepix4")
    assert ds["toa"].values.min() < 0
    np.testing.assert_array_equal(ds["toa"], raw["toa"] - BEFORE)
    for name in ("x", "y", "tot"):
        assert ds[name].dtype == raw[name].dtype
        np.testing.assert_array_equal(ds[name], raw[name])
    for name in ("pileup", "top"):
        np.testing.assert_array_equal(ds[name], events[name])
    labels = ds.compute().clust.events(100.0)["label"].values
    np.testing.assert_array_equal(labels, EventBuilder(100.0).fit_predict(raw))


def test_in_the_terminal(tmp_path: Path, command: Any) -> None:
    raw, events = table()
    pq.write_table(events, tmp_path / "a.parquet")
    _, out, _ = command("events", tmp_path / "a.parquet", "--dt-max", 100, "-o", tmp_path / "b.parquet", "--json")
    assert json.loads(out)["clusters"] == EventBuilder(100.0).fit(raw).n_clusters_
    in_time = events.take(np.argsort(events["toa48_ns"], kind="stable"))
    assert pq.read_table(tmp_path / "b.parquet").drop_columns("label").cast(events.schema).equals(in_time)


@pytest.mark.parametrize("unit", STEPS)
@pytest.mark.parametrize("suffix", [".csv", ".h5", ".npz", ".parquet"])
def test_counts_of_48_bits_are_exact_times(tmp_path: Path, suffix: str, unit: str) -> None:
    """25 times a number of 48 bits has 53 bits, and each step of a clock is 25 ns over a power of two."""
    counts = [0, 1, 2**47 + 1, 2**48 - 3, 2**48 - 1]
    ds = xr.Dataset({name: ("hit", np.arange(5)) for name in ("x", "y")} | {"toa": ("hit", np.array(counts, "u8"))})
    io.write_hits(ds, tmp_path / f"a{suffix}")
    found = io.read_hits(tmp_path / f"a{suffix}", units={"toa": unit}, layout="timepix4")["toa"]
    assert [Fraction(each) for each in found.values.tolist()] == [STEPS[unit] * count for count in counts]


def test_the_generator() -> None:
    ds = datasets.timepix(20_000, layout="timepix4", chips=2, rng=1)
    assert (int(ds["x"].max()), int(ds["y"].max())) == (COLUMNS - 1, ROWS - 1)
    for name, step in (("toa", 0.1953125), ("tot", 1.5625)):
        counts = ds[name].values.astype(np.float64) / step
        np.testing.assert_array_equal(counts, np.round(counts))
        assert (counts % 8 > 0).any()
    with pytest.raises(ValueError, match=r"start must be a multiple of 0\.1953125 ns"):
        datasets.timepix(9, layout="timepix4", start=0.3)


@pytest.mark.parametrize("name", ["x", "y"])
def test_pixels_that_it_has_not(tmp_path: Path, name: str) -> None:
    most = {"x": COLUMNS, "y": ROWS}[name]
    columns: dict[str, Any] = {"x": [0, COLUMNS - 1], "y": [0, ROWS - 1], "toa48_ns": [1.0, 2.0]}
    columns[name][1] = most
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=rf"{name} of .* reaches {most}, but a chip has pixels 0 to {most - 1}"):
        io.read_hits(tmp_path / "a.parquet")


def test_pictures_and_tables_have_its_size() -> None:
    ds = datasets.timepix(5000, layout="timepix4", rng=1)
    image = plot.hit_map(ds)
    assert image.bounds.lbrt() == (-0.5, -0.5, COLUMNS - 0.5, ROWS - 0.5)
    matrix = np.zeros((ROWS, COLUMNS), int)
    np.add.at(matrix, (ds["y"].values, ds["x"].values), 1)
    np.testing.assert_array_equal(np.nan_to_num(layer(image, "hits")), matrix)
    assert plot.event_display(ds.isel(hit=slice(0))).bounds.lbrt() == image.bounds.lbrt()
    noisy = properties.noisy_pixels(ds, 3)
    assert int(noisy["hits"].sum()) == matrix[matrix > 3].sum()


def test_a_calibration_of_its_pixels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    matrices = {name: rng.uniform(1.0, 2.0, (ROWS, COLUMNS)).round(6) for name in "ab"}
    matrices |= {name: np.zeros((ROWS, COLUMNS)) for name in "ct"}
    for name, values in matrices.items():
        np.savetxt(tmp_path / f"{name}.txt", values)
    ds = datasets.timepix(500, layout="timepix4", rng=1)
    found = io.calibrate(ds, io.read_calibration(tmp_path))["energy"]
    slope, offset = (matrices[name][ds["y"].values, ds["x"].values] for name in "ab")
    np.testing.assert_allclose(found, (ds["tot"] - offset) / slope, rtol=1e-6)
    of_256 = io.Calibration(**{name: np.ones((256, 256)) for name in "abct"})
    with pytest.raises(ValueError, match=r"a hit of chip 0 lies at pixel .* but a chip has pixels 0 to 255"):
        io.calibrate(ds, of_256)
    with pytest.raises(ValueError, match="matrices a, b, c and t have shapes"):
        io.Calibration(**{name: np.ones((256, 256) if name == "a" else (ROWS, COLUMNS)) for name in "abct"})
