"""``daskclust explore``: what is wrong is told in a line or two, before anything is served."""

import pytest

from daskclust import datasets, io
from daskclust.app.opening import open_file


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.csv",), "there is no file nowhere.csv"),
        (("hits.csv", "--system", "kmeans"), "--system must be one of clue, events"),
        (("hits.csv", "--port", 70000), "--port must be from 0 to 65535, got 70000"),
        (("hits.csv", "--system", "events", "--columns", "x,y,toa,tot"), "toa"),
        (("empty.csv",), "empty.csv"),
    ],
)
def test_errors_in_two_lines(command, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hits.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty.csv").write_text("")
    code, _, err = command("explore", *arguments, "--no-browser")
    assert code == 1
    assert words in err
    assert len(err.strip().splitlines()) <= 2


def test_each_field_is_opened_and_the_line_does_it(tmp_path):
    sets = {
        "hits.parquet": (datasets.calorimeter(2, 50, rng=0), "calorimeter"),
        "pixels.parquet": (datasets.timepix(50, rng=0), "timepix"),
        "box.zarr": (datasets.cosmology_box(50, rng=0), None),
        "cells.csv": (datasets.cytometry(50, rng=0), None),
    }
    for name, (ds, field) in sets.items():
        path = tmp_path / name
        write = {".zarr": io.write_particles, ".csv": io.write_cells}.get(path.suffix, io.write_hits)
        write(ds, path)
        opened, line = open_file(path)
        names = {"io": io}
        exec(line, names)
        assert names["ds"].compute().identical(opened)
        assert field in (None, opened.attrs.get("field"))
    (tmp_path / "xyz.csv").write_text("x,y,z\n0,0,0\n1,1,1\n")
    assert open_file(tmp_path / "xyz.csv")[0].attrs["field"] == "particles"
