"""Names that are misspelt on the command line are refused before a file is read."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from daskclust import app, io
from daskclust.core.data.fields import FIELDS

MEANT = "unknown sise (did you mean 'size'?)"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run.tpx3", "run.csv", "none.csv"):  # reading any of them is another error
        Path(name).write_text("nothing")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        *((f"{source} --where 'sise > 3'", MEANT) for source in ("run.tpx3", "run.csv", "tcp://h:1 --follow")),
        ("run.tpx3 --where 'tof > 3'", "unknown tof"),
        ("run.tpx3 --where 'tof > 3' --trigger 1", "run.tpx3 has no chunk of"),
        ("run.csv --where 'energy > 1 and tof > 1'", "run.csv has no"),
    ],
)
def test_where_knows_which_columns_there_will_be(command: Any, line: str, message: str) -> None:
    status, _, err = command("events", "--dt-max", 100, *shlex.split(line))
    assert (status, message in err) == (1, True), err


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("clue FILE --dc 1 --rhoc energi", "'energi', which FILE does not have (did you mean 'energy'?)"),
        ("clue FILE --dc 1 --rhoc 1 --coordinates x,etta", "'etta', which FILE"),
        ("dbscan FILE --eps 1 --weight energi", "'energi', which FILE"),
    ],
)
def test_columns_are_looked_for_before_values_are_read(command: Any, line: str, name: str) -> None:
    """Values that cannot be used would be another error."""
    columns = dict.fromkeys(("x", "y", "eta", "energy"), np.array(["one", "two"]))
    io.write_hits(xr.Dataset(dict.fromkeys(columns, ("hit", np.full(2, np.nan)))), "a.h5")
    pd.DataFrame(columns).to_csv("a.csv", index=False)
    for file in ("a.csv", "a.h5"):
        status, _, err = command(*line.replace("FILE", file).split())
        assert status == 1
        assert name.replace("FILE", file) in " ".join(err.split())


def test_a_misspelt_axis_and_a_column_of_a_mapping(command: Any) -> None:
    clue = ("clue", "--dc", 1, "--rhoc", 1)
    status, _, err = command(*clue, "none.csv", "--coordinates", "eta,phi", "--wrap", "phii=6.28")
    assert (status, "wrap names the axis 'phii'" in err) == (1, True), err
    Path("a.csv").write_text("PosX,PosY,E\n1,2,3\n")
    status, _, err = command(*clue, "a.csv", "--columns", "PosXX=x,PosY=y,E=energy")
    assert (status, "has no column 'PosXX' (did you mean 'PosX'?)" in err) == (1, True), err


LINES = {
    "clue": ("calorimeter", "--dc 1 --rhoc 1"),
    "dbscan": ("particles", "--eps 1 --min-samples 2"),
    "events": ("timepix", "--dt-max 10"),
    "fof": ("particles", "--linking-length 1"),
    "hdbscan": ("particles", "--min-cluster-size 2 --allow-single-cluster"),
}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("name", LINES)
def test_text_under_a_name_of_another_field_is_left_out(
    command: Any, summary: Any, monkeypatch: pytest.MonkeyPatch, name: str, ending: str
) -> None:
    field, line = LINES[name]
    known = {each: {n for v in FIELDS[each].variables for n in (v.name, *v.aliases)} for each in FIELDS}
    others = set.union(*known.values()) - known[field]
    hits = pd.DataFrame({"x": [1, 2, 7], "y": [1, 1, 9]}).assign(**{"toa": 1.0} if name == "events" else {})
    hits.assign(**dict.fromkeys(others, "word")).to_csv("a.csv", index=False)
    pd.read_csv("a.csv").to_parquet("a.parquet")
    source = f"a.{ending}"
    assert summary(name, source, *line.split(), "-o", "out.csv")["clusters" if name != "fof" else "halos"] >= 1
    assert (pd.read_csv("out.csv", comment="#")[sorted(others)] == "word").all(axis=None)
    served: list[Any] = []
    monkeypatch.setattr(app, "serve", lambda ds, *_, **__: served.append(ds))
    command("explore", source, "--system", name)
    assert served[0]["x"].values.tolist() == [1, 2, 7]
