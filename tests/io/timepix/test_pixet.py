"""Text files of Pixet: matrices, lists of pixels and cluster logs, as its own code writes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from daskclust import EventBuilder, io
from daskclust.io import open_pixet, write_clog

DSC = """[F{k}]
Type={type} {kind} width=256 height=256
"Acq time" ("Acquisition time [s]"):
double[1]
0,500000\x20

"ChipboardID" ("Chipboard ID"):
char[9]
A05-W0086
{more}
"Start time" ("Acquisition start time"):
double[1]
163840{k}.626784\x20


"""
CLOCK = '\n"Timepix clock" ("Timepix clock"):\ndouble[1]\n10.000000 \n'
CALIBRATED = '\n"Calibrated" ("Frame calibrated"):\nbyte[1]\n1 \n'
NAMED = '\n"Frame name" ("Frame name"):\nchar[5]\nEvent\n'


def frames(seed: int = 0, many: int = 3) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    made = rng.integers(1, 500, (many, 256, 256)) * (rng.uniform(size=(many, 256, 256)) < 0.002)
    made[1] = 0
    return made


def write_frames(path: Any, made: Any, kind: str, more: str = "", form: str = "%d") -> None:
    parts = []
    for image in made:
        y, x = np.nonzero(image)
        rows = {"[X,Y,C]": zip(x, y, image[y, x], strict=True), "[X,C]": zip(256 * y + x, image[y, x], strict=True)}
        sparse = ("\t".join([*map(str, row[:-1]), form % row[-1]]) + "\n" for row in rows.get(kind, ()))
        dense = (" ".join(form % each for each in line) + "\n" for line in image) if kind == "matrix" else ()
        parts.append("".join([*sparse, *dense]))
    path.write_text(("" if kind == "matrix" else "#\n").join(parts))
    blocks = [DSC.format(k=k, type="i16", kind=kind, more=more) for k in range(len(made))]
    path.with_name(f"{path.name}.dsc").write_text(f"A{len(made):09d}\n" + "".join(blocks))


@pytest.mark.parametrize("kind", ["matrix", "[X,Y,C]", "[X,C]"])
@pytest.mark.parametrize(
    ("more", "name", "step"), [("", "tot", 25), (CLOCK, "tot", 100), (CALIBRATED, "energy", 1), (NAMED, "counts", 1)]
)
def test_frames(tmp_path, kind, more, name, step):
    made, path = frames(), tmp_path / "run.pmf"
    write_frames(path, made, kind, more)
    ds = open_pixet(path)
    at, y, x = np.nonzero(made)
    for each, wanted in {"x": x, "y": y, "frame": at, name: made[at, y, x] * step}.items():
        np.testing.assert_array_equal(ds[each], wanted, err_msg=each)
    np.testing.assert_array_equal(ds["frame_time"], [float(f"163840{k}.626784") for k in at])
    assert (ds.attrs["n_frames"], set(ds["frame_exposure"].values)) == (3, {0.5})
    path.with_name("run.pmf.dsc").unlink()
    np.testing.assert_array_equal(open_pixet(path)["frame"], at)  # a square matrix, or lists of 256 x 256


def test_a_cluster_log_is_written_and_read(tmp_path):
    made = frames(1)
    write_frames(tmp_path / "run.txt", made, "[X,Y,C]")
    hits = open_pixet(tmp_path / "run.txt").clust.events()
    write_clog(hits, tmp_path / "run.clog")
    lines = (tmp_path / "run.clog").read_text().splitlines()
    assert lines[0] == "Frame 1 (1638400.626784, 0.500000 s)"
    assert len(lines) == 2 + int(hits["label"].max()) + 1
    back = open_pixet(tmp_path / "run.clog", chunks=7)
    assert back.attrs["n_frames"] == 2  # the second has no clusters
    order = np.argsort(hits["label"].values, kind="stable")
    for name in ("x", "y", "tot", "label", "frame_time", "frame_exposure"):
        np.testing.assert_array_equal(back[name], hits[name][order], err_msg=name)
    np.testing.assert_array_equal(back["frame"], hits["frame"][order] + 1)
    np.testing.assert_array_equal(EventBuilder().fit(back).labels_, back["label"])
    write_clog(back, tmp_path / "again.clog")
    assert (tmp_path / "again.clog").read_text().splitlines() == lines


def test_clusters_in_time_have_times(tmp_path):
    hits = {
        "x": [300, 301, 7],
        "y": [5, 5, 5],
        "toa": [37.5, 62.5, 1e9],
        "energy": [3.25, 8.0, 5.5],
        "label": [0, 0, -1],
    }
    write_clog(io.to_dataset(hits, field="timepix"), tmp_path / "a.clog")
    assert (
        tmp_path / "a.clog"
    ).read_text() == "Frame 1 (0.000000, 1.000000 s)\n[300, 5, 3.25, 37.5] [301, 5, 8, 62.5]\n"
    back = open_pixet(tmp_path / "a.clog")
    assert (back["energy"].values.tolist(), back["toa"].values.tolist(), back.layout) == (
        [3.25, 8],
        [37.5, 62.5],
        "quad",
    )
    with pytest.raises(ValueError, match="write each chip"):
        write_clog(io.to_dataset({**hits, "chip": [0, 1, 1]}, field="timepix"), tmp_path / "a.clog")
    write_clog(xr.Dataset({name: ("hit", np.empty(0)) for name in ("x", "y", "label", "tot")}), tmp_path / "none.clog")
    assert open_pixet(tmp_path / "none.clog").sizes["hit"] == 0


HITS = {"x": [3, 4, 9], "y": [5, 5, 5], "toa": [0.0, 25, 50], "tot": [25.0, 50, 25], "label": [0, 0, -1]}


@pytest.mark.parametrize(("name", "unit", "in_log"), [("toa", "us", 1e3), ("tot", "us", 1e3), ("energy", "eV", 1e-3)])
def test_other_units_become_those_of_the_log(tmp_path, name, unit, in_log):
    ds = xr.Dataset({each: ("hit", values) for each, values in {**HITS, name: [1500.0, 4500, 0]}.items()})
    ds[name].attrs["units"] = unit
    write_clog(ds, tmp_path / "a.clog")
    np.testing.assert_array_equal(open_pixet(tmp_path / "a.clog")[name], [1500 * in_log, 4500 * in_log])


@pytest.mark.parametrize("name", ["toa", "tot", "energy"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_values_that_could_not_be_read_are_not_written(tmp_path, name, wrong):
    ds = xr.Dataset({each: ("hit", values) for each, values in {**HITS, name: [1.5, 1.5, wrong]}.items()})
    write_clog(ds, tmp_path / "noise.clog")  # whose hits are not written
    with pytest.raises(ValueError, match=rf"{name} must be finite, got {name}\[2\] = {wrong}"):
        write_clog(ds.assign(label=("hit", [0, 0, 1])), tmp_path / "a.clog")
    assert not (tmp_path / "a.clog").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Frame 1 (0.0, 1.0 s)\n[1, 2, 3] [1, 2]\n", "line 2: expected Frame N"),
        ("[1, 2, 3] \n", r"line 1: .* found '\[1, 2, 3\] '"),
        ("Frame 1 (0.0, 1.0 s)\n[1, 2, 3] \nFrame two\n", "line 3"),
        ("Frame 1 (0.0, 1.0 s)\n[1, 2, 3] [1, 2, 3, 4] \n", "others"),
        ("Frame 1 (0.0, 1.0 s)\n[1, 2, 3] [1, -2, 3] \n", "'y'"),
        ("Frame 1 (0.0, 1.0 s)\n[1, 2, 3] [1, 2, 3", "line 2"),
    ],
)
def test_wrong_logs(write, text, words):
    with pytest.raises(ValueError, match=words):
        open_pixet(write(text, ".clog"))


def test_wrong_frames(tmp_path):
    path, made = tmp_path / "run.pmf", frames()
    for kind, cut, words in (
        ("matrix", 900, "is it complete"),
        ("[X,Y,C]", 3, "is it complete"),
        ("[X,C]", 0, "its .dsc file 2"),
    ):
        write_frames(path, made, kind)
        path.write_text(path.read_text()[: -cut or None])
        if not cut:
            dsc = path.with_name("run.pmf.dsc")
            dsc.write_text(dsc.read_text()[: dsc.read_text().index("[F2]")])
        with pytest.raises(ValueError, match=words):
            open_pixet(path)
    path.with_name("run.pmf.dsc").write_text("B000000001\n")
    with pytest.raises(ValueError, match="save them as ASCII in Pixet"):
        open_pixet(path)
