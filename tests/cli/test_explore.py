"""``daskclust explore``: files of each field, and what is served."""

from types import SimpleNamespace

import pytest

from daskclust import app, datasets, io
from daskclust.app.opening import open_file


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_columns_are_named_as_messages_say_and_the_address_is_told(command, tmp_path, monkeypatch, quiet):
    """It is what the command puts out, so that it is told however quiet it shall be."""
    (tmp_path / "own.csv").write_text("a,b,note\n1,2,3\n4,5,6\n")
    monkeypatch.chdir(tmp_path)
    served = []

    def serve(ds, system, **options):
        served.append((ds, options["source"]))
        loop = SimpleNamespace(start=lambda: None)
        return SimpleNamespace(port=1234, start=lambda: None, stop=lambda: None, io_loop=loop)

    monkeypatch.setattr(app, "serve", serve)
    code, out, err = command("explore", "own.csv", "--columns", "a=x,b=y,note=", "--no-browser", *quiet)
    assert (code, err) == (0, "")
    assert "http://localhost:1234/" in out
    ((ds, (line,)),) = served
    assert (list(ds), ds["x"].values.tolist(), ds["y"].values.tolist()) == (["x", "y"], [1, 4], [2, 5])
    names = {"io": io}
    exec(line, names)
    assert names["ds"].identical(ds)


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
