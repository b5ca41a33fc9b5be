"""``daskclust explore``: files of each field, and what is served."""

from types import SimpleNamespace

import pytest

from daskclust import app, io


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
