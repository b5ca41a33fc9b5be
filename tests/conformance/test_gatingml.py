"""Gates of Gating-ML 2.0: by the formulas of the standard, and by FlowKit, they hold the cells that they should."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import flowio
import numpy as np
import pytest
import xarray as xr
from scipy.stats import chi2

from daskclust import MahalanobisHCA, datasets, io

GATING, TRANSFORMS, TYPES = (
    f"{{http://www.isac-net.org/std/Gating-ML/v2.0/{name}}}" for name in ("gating", "transformations", "datatypes")
)
SPILL = np.array([[1.0, 0.2, 0.0], [0.05, 1.0, 0.1], [0.0, 0.02, 1.0]])
MADE = datasets.cytometry(3_000, 3, rarest=0.05, rng=2)
LABELS = np.where(MADE["population"].values > 3, -1, MADE["population"].values)
DETECTORS = ["FSC-A", "FL1-A", "FL2-A", "FL3-A", "Time"]


@pytest.fixture
def tube(tmp_path: Path) -> Path:
    """Return a file as cytometers write them: spilled light, scatter and time."""
    rng = np.random.default_rng(0)
    light = 150 * np.sinh(MADE["X"].values[:, :3]) @ SPILL
    raw = np.column_stack([rng.normal(6e4, 1e4, len(light)), light, np.arange(len(light)) / 100])
    coords = {"channel": ["FSC-A", "CD3", "CD4", "CD8", "Time"], "detector": ("channel", DETECTORS)}
    numbers = ",".join(map(str, [3, *DETECTORS[1:4], *SPILL.ravel()]))
    io.write_cells(xr.Dataset({"X": (("cell", "channel"), raw)}, coords, {"spillover": numbers}), tmp_path / "tube.fcs")
    return tmp_path / "tube.fcs"


def members(X: Any, fraction: float = 0.95) -> list[np.ndarray]:
    """Return the cells within the ellipsoid of each cluster, by NumPy."""
    found = []
    for label in range(LABELS.max() + 1):
        own = X[np.equal(LABELS, label)].astype(np.float64)
        steps = X - own.mean(axis=0)
        squares = (steps @ np.linalg.inv(np.cov(own.T, bias=True)) * steps).sum(axis=1)
        found.append(squares <= chi2.ppf(fraction, X.shape[1]))
    return found


def by_the_standard(gates: Path, fcs: Path) -> list[np.ndarray]:
    """Return the cells of a file within each gate by the formulas of the standard."""
    data, root = flowio.FlowData(fcs), ET.parse(gates).getroot()
    events = data.as_array()
    columns = dict(zip(data.pnn_labels, events.T, strict=True))
    compensated = dict(columns)
    if "spillover" in data.text:
        light = np.stack([columns[name] for name in DETECTORS[1:4]], axis=1) @ np.linalg.inv(SPILL)
        compensated |= dict(zip(DETECTORS[1:4], light.T, strict=True))
    scales = {}
    for transformation in root.iter(f"{TRANSFORMS}transformation"):
        T, M, A = (float(transformation[0].get(f"{TRANSFORMS}{name}")) for name in "TMA")
        scales[transformation.get(f"{TRANSFORMS}id")] = lambda x, T=T, M=M, A=A: (
            (np.arcsinh(x * np.sinh(M * np.log(10)) / T) + A * np.log(10)) / ((M + A) * np.log(10))
        )
    found = []
    for number, gate in enumerate(root.iter(f"{GATING}EllipsoidGate")):
        assert gate.get(f"{GATING}id") == f"cluster_{number}"
        values = []
        for dimension in gate.iter(f"{GATING}dimension"):
            source = {"FCS": compensated, "uncompensated": columns}[dimension.get(f"{GATING}compensation-ref")]
            scale = scales.get(dimension.get(f"{GATING}transformation-ref"), np.asarray)
            values.append(scale(source[dimension[0].get(f"{TYPES}name")]))
        mean, matrix, square = ([float(e.get(f"{TYPES}value")) for e in part.iter() if e.keys()] for part in gate[-3:])
        steps = np.stack(values, axis=1) - mean
        inverse = np.linalg.inv(np.reshape(matrix, (len(mean), -1)))
        found.append((steps @ inverse * steps).sum(axis=1) <= square[0])
    return found


@pytest.mark.parametrize("chunks", [None, 700])
def test_gates_hold_the_cells_that_they_should(tube: Path, tmp_path: Path, chunks: int | None) -> None:
    cells = io.open_fcs(tube, chunks=chunks)
    assert cells.attrs["compensation"] == "file"
    io.write_gatingml(cells, tmp_path / "gates.xml", LABELS, fraction=0.8)
    wanted = members(cells["X"].values[:, 1:4], 0.8)
    assert [int(each.sum()) > 20 for each in wanted] == [True] * 4
    np.testing.assert_array_equal(by_the_standard(tmp_path / "gates.xml", tube), wanted)
    io.write_cells(cells, tmp_path / "as_it_is.fcs")
    io.write_gatingml(cells.assign(label=("cell", LABELS)), tmp_path / "own.xml", raw=False)
    np.testing.assert_array_equal(
        by_the_standard(tmp_path / "own.xml", tmp_path / "as_it_is.fcs"), members(cells["X"].values[:, 1:4])
    )


def test_what_is_no_gate_is_refused(tube: Path, tmp_path: Path) -> None:
    cells, path = io.open_fcs(tube), tmp_path / "gates.xml"
    few = np.where(np.arange(len(LABELS)) < 3, 7, LABELS)
    for ds, labels, match in (
        (cells, few, r"clusters 7 are flat; cut with a larger min_size"),
        (cells, np.full_like(LABELS, -1), r"got 0 in 3 channels"),
        (cells.isel(channel=[1, 4]), LABELS, r"got 4 in 1 channels"),
        (cells, LABELS[1:], r"labels"),
        (cells, None, r"no variable label"),
        (io.open_fcs(tube, compensate=SPILL), LABELS, r"by a matrix .* raw=False"),
        (cells.drop_attrs().assign_attrs(transform="arcsinh"), LABELS, r"by a cofactor .* raw=False"),
        (cells.assign_attrs(transform="logicle"), LABELS, r"by a function .* raw=False"),
    ):
        with pytest.raises(ValueError, match=match):
            io.write_gatingml(ds, path, labels)
    assert not path.exists()


def test_flowkit_reads_gates_and_gives_samples(tube: Path, tmp_path: Path) -> None:
    flowkit = pytest.importorskip("flowkit")
    cells, sample = io.open_fcs(tube), flowkit.Sample(tube)
    io.write_gatingml(cells, tmp_path / "gates.xml", LABELS)
    results = flowkit.parse_gating_xml(tmp_path / "gates.xml").gate_sample(sample)
    found = [results.get_gate_membership(f"cluster_{k}") for k in range(LABELS.max() + 1)]
    np.testing.assert_array_equal(found, members(cells["X"].values[:, 1:4]))
    frame = sample.as_dataframe(source="raw")[DETECTORS[1:4]]
    fitted = MahalanobisHCA(100).fit(frame)
    np.testing.assert_array_equal(fitted.linkage_, MahalanobisHCA(100).fit(frame.to_numpy()).linkage_)
