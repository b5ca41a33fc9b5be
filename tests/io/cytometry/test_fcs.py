"""Opening FCS files, and what is done to their values."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import flowio
import numpy as np
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes
from cases.files.fcs_reference import fcs_bytes, write
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskclust.io import arcsinh_transform, open_fcs, write_cells


def raw(path: Path, **options: Any) -> np.ndarray[Any, Any]:
    """Return intensities as they are."""
    values: np.ndarray[Any, Any] = open_fcs(path, transform=None, compensate=False, **options)["X"].values
    return values


# FCS, byte by byte


@pytest.mark.parametrize("chunks", [1, 7, 40, 1000])
def test_any_chunks_give_the_same_cells(tmp_path: Path, chunks: int) -> None:
    rng = np.random.default_rng(1)
    events = [tuple(row) for row in rng.integers(0, 1024, (40, 4)).tolist()]
    names = ["FSC-A", "B1", "B2", "Time"]
    spill = "2,B1,B2,1,0.25,0.125,1"
    path = write(tmp_path, fcs_bytes([">u2"] * 4, events, names=names, P2E="4,1", P2R="1024", SPILLOVER=spill))
    with raise_if_dask_computes():
        lazy = open_fcs(path, chunks=chunks)
        assert lazy.chunks["cell"] == tuple(min(chunks, 40 - start) for start in range(0, 40, chunks))
        assert all(key.startswith("daskclust-io-read-") for key in lazy["X"].data.dask.layers)
    whole = open_fcs(path)
    xr.testing.assert_identical(lazy.compute(), whole)
    xr.testing.assert_identical(lazy.isel(cell=slice(3, 30)).compute(), whole.isel(cell=slice(3, 30)))
    again = open_fcs(path, chunks=chunks)
    assert again["X"].data.name == lazy["X"].data.name
    assert open_fcs(path, chunks=chunks, cofactor=5.0)["X"].data.name != lazy["X"].data.name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="the file has changed since it was opened; open it again"):
        lazy.compute()


def test_channels_by_marker_detector_and_pattern(tmp_path: Path) -> None:
    names = ["FSC-A", "B510-A", "B610-A", "R660-A", "V450-A", "Time"]
    content = fcs_bytes(["<f4"] * 6, [(1, 2, 3, 4, 5, 6)], names=names, P2S="CD3", P3S="CD19", P4S="live", P5S="live")
    path = write(tmp_path, content)
    ds = open_fcs(path, transform=None)
    assert ds["channel"].values.tolist() == ["FSC-A", "CD3", "CD19", "live (R660-A)", "live (V450-A)", "Time"]
    assert ds["detector"].values.tolist() == names
    for asked, values in [
        ("CD3", [2]),
        ("B510-A", [2]),
        (["CD19", "CD3"], [3, 2]),
        ("CD*", [2, 3]),
        (["B5*", "?61*"], [2, 3]),
        (["live"], [4, 5]),
        (["Time", "*-A"], [6, 1, 2, 3, 4, 5]),
    ]:
        np.testing.assert_array_equal(open_fcs(path, channels=asked, transform=None)["X"].values[0], values)
    assert "detector" not in open_fcs(path, channels="Time").coords


def test_arcsinh_leaves_scatter_and_time(tmp_path: Path) -> None:
    names = ["FSC-A", "SSC-W", "Time", "Event_length", "B510-A", "Width", "Ir191Di"]
    event = (100, 200, 300, 400, 500, 600, -700)
    path = write(tmp_path, fcs_bytes(["<f8"] * 7, [event], names=names, P7S="DNA"))
    ds = open_fcs(path)
    curved = np.arcsinh(np.array(event) / 150)
    expected = [100, 200, 300, 400, curved[4], 600, curved[6]]
    np.testing.assert_array_equal(ds["X"].values[0], expected)
    assert ds.attrs["linear"] == ["FSC-A", "SSC-W", "Time", "Event_length", "Width"]
    assert (ds.attrs["transform"], ds.attrs["cofactor"]) == ("arcsinh", 150.0)
    assert ds["X"].attrs["long_name"] == "intensity, arcsinh(x / 150)"
    np.testing.assert_array_equal(open_fcs(path, linear=())["X"].values[0], curved)
    few = open_fcs(path, linear=["DNA", "FSC*"], cofactor=5, channels=["DNA", "B5*"])
    np.testing.assert_array_equal(few["X"].values[0], [-700, np.arcsinh(100)])
    assert few.attrs["linear"] == ["DNA"]
    assert open_fcs(path, channels="Time").attrs["transform"] == "none"


# Several data sets, offsets


def test_several_data_sets(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    parts = [fcs_bytes(["<f4"] * 2, [(k, k + 1)] * (k + 1), NEXTDATA=f"{0:8d}") for k in range(3)]
    parts = [part.replace(b"|       0|", f"|{len(part):8d}|".encode()) for part in parts[:2]] + parts[2:]
    path = write(tmp_path, b"".join(parts))
    for k in range(3):
        np.testing.assert_array_equal(raw(path, data_set=k), [(k, k + 1)] * (k + 1))
        np.testing.assert_array_equal(raw(path, data_set=k, chunks=1), [(k, k + 1)] * (k + 1))
    with pytest.raises(ValueError, match=r"has several data sets \(\$NEXTDATA is \d+\); choose one with data_set=0"):
        open_fcs(path)
    with pytest.raises(ValueError, match="has 3 data sets, counted from 0, got data_set=3"):
        open_fcs(path, data_set=3)
    path = write(tmp_path, parts[2].replace(b"|       0|", b"|      77|"))
    np.testing.assert_array_equal(raw(path, data_set=0), [(2, 3)] * 3)
    with pytest.raises(ValueError, match=r"has b'.*' at byte 77, where an FCS file of version 2.0, 3.0, 3.1, 3.2"):
        raw(path, data_set=1)
    with caplog.at_level("WARNING"):
        np.testing.assert_array_equal(raw(path), [(2, 3)] * 3)
    assert caplog.messages[-1:] == [f"{path}: no data set is at $NEXTDATA, byte 77"]


DAMAGED: list[dict[str, Any]] = [
    {"TOT": "4"}, {"TOT": "1"}, {"TOT": "9" * 17}, {"TOT": "-1"}, {"TOT": "many"}, {"TOT": None},
    {"PAR": "0"}, {"PAR": "3"}, {"PAR": "9" * 17}, {"P2N": None}, {"P2R": None},
    {"DATATYPE": "A"}, {"DATATYPE": "D"}, {"MODE": "C"}, {"BYTEORD": "3,4,1,2"},
    {"P1B": "24"}, {"P1B": None}, {"P1B": "9" * 30}, {"P1G": "inf"},
    {"BEGINDATA": "58", "ENDDATA": "9" * 15, "TOT": "9" * 12}, {"daskclust": "{}"},
]  # fmt: skip
HARMLESS = [  # the header has the right bytes
    {"P1R": "0"}, {"P2N": "Time", "TIMESTEP": "fast"}, {"BEGINDATA": "1" * 12}, {"ENDDATA": "9" * 12},
    {"BEGINDATA": "here"}, {"ENDANALYSIS": "9" * 18}, {"BEGINSTEXT": "9" * 17, "ENDSTEXT": "9" * 18},
]  # fmt: skip
SCALES = [
    {"P1E": "nan,1"}, {"P1E": "-4,1"}, {"P1E": "4"}, {"P1G": "inf"}, {"P1R": "many"}, {"P2E": "4,1", "P2R": "0"},
    {"P2E": "4,1", "P2R": "NA"},
]  # fmt: skip
HEADERS = [
    b"FCS3.1", b"PK\x03\x04" * 20, b"FCS4.0" + b" " * 60, b"FCS3.1    " + b"      5x" * 6,
    b"FCS3.1    " + b"      58      57" * 3, b"FCS3.1    " + b"      5899999999" * 3 + b"|a|b|",
    b"FCS3.1    " + b"      58      62" * 3 + b"+a+b+", b"FCS3.1    " + b"      58      62" * 3 + b"|a|b|",
]  # fmt: skip


def test_damaged_files_are_named(tmp_path: Path) -> None:
    """Keywords and headers that make no sense: an error that names the file, and never other values."""
    two = [(1, 2), (3, 4)]
    damaged = [fcs_bytes(["<f4"] * 2, two, **words) for words in DAMAGED]
    damaged += [fcs_bytes(["<u2"] * 2, two, **words) for words in SCALES]
    for content in [*damaged, *HEADERS]:
        path = write(tmp_path, content)
        with pytest.raises(ValueError, match=str(path)):
            open_fcs(path)
    for words in HARMLESS:
        np.testing.assert_array_equal(raw(write(tmp_path, fcs_bytes(["<f4"] * 2, two, **words))), two)


# flowio as an oracle


@given(
    X=hnp.arrays(np.float32, st.tuples(st.integers(0, 30), st.integers(1, 6)), elements=st.floats(-1e6, 1e6, width=32)),
    chunks=st.integers(1, 40),
)
def test_files_of_flowio(tmp_path_factory: pytest.TempPathFactory, X: Any, chunks: int) -> None:
    path = tmp_path_factory.mktemp("fcs") / "flowio.fcs"
    names = [f"B{k}-A" for k in range(X.shape[1])]
    markers = [f"CD{k}" if k % 2 else "" for k in range(X.shape[1])]
    with open(path, "wb") as stream:
        flowio.create_fcs(stream, array("f", X.ravel().tolist()), names, markers, {"cyt": "Aurora", "P1G": "2.0"})
    ds = open_fcs(path, transform=None, chunks=chunks)
    assert ds["channel"].values.tolist() == [marker or name for marker, name in zip(markers, names, strict=True)]
    assert ds.attrs["cytometer"] == "Aurora"
    np.testing.assert_array_equal(ds["X"], flowio.FlowData(str(path)).as_array().astype(np.float32) if len(X) else X)
    xr.testing.assert_identical(arcsinh_transform(ds, 5.0).compute()["X"], open_fcs(path, cofactor=5.0)["X"])
    path.unlink()


def test_data_beyond_what_a_header_tells_is_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files above 100 MB have the places of their events in the text alone."""
    cells = xr.Dataset({"X": (("cell", "channel"), np.arange(12.0).reshape(4, 3))}, {"channel": ["a", "b", "c"]})
    monkeypatch.setattr("daskclust.io.cytometry.write._HEADER_MOST", 100)
    write_cells(cells, tmp_path / "long.fcs")
    np.testing.assert_array_equal(open_fcs(tmp_path / "long.fcs", transform=None)["X"], cells["X"])
