"""Names that are misspelt on the command line are refused before a file is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from daskclust import io


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


WHERE = [
    ("sise > 3", "unknown sise (did you mean 'size'?); the table has size, tot,"),
    ("size >", "is not a valid expression"),
    ("size + 3", "must compare variables"),
    ("abs(3) > size", "unknown abs; the table"),
    ("size > [3]", "is not allowed"),
]


@pytest.mark.parametrize(("where", "message"), WHERE)
def test_where_is_checked_before_anything_is_read(command: Any, where: str, message: str) -> None:
    """There is no such source, so that reading would be another error."""
    for source in ("run.tpx3", "run.csv", "tcp://127.0.0.1:1 --follow"):
        status, _, err = command("events", *source.split(), "--dt-max", 100, "--where", where)
        assert status == 1
        assert message in " ".join(err.replace("\nhint:", ";").split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run.tpx3", "--where", "tof > 3"), "unknown tof"),
        (("run.tpx3", "--where", "energy > 3"), "unknown energy"),
        (("run.tpx3", "--where", "tof > 3", "--trigger", 1), "no such file: run.tpx3"),
        (("run.tpx3", "--where", "energy > 3", "--calibration", "here"), "no such"),
        (("run.csv", "--where", "energy > 3 and tof > 1"), "no such file: run.csv"),
    ],
)
def test_where_knows_which_columns_there_will_be(command: Any, arguments: Any, message: str) -> None:
    status, _, err = command("events", "--dt-max", 100, *arguments)
    assert (status, message in err) == (1, True), err


def test_where_of_a_table_is_checked_by_its_head(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hits = {name: ("hit", np.arange(4)) for name in ("x", "y", "toa", "tot")}
    io.write_hits(io.to_dataset({name: values for name, (_, values) in hits.items()}, field="timepix"), "run.parquet")
    monkeypatch.setattr("daskclust.cli._pixels._in_time", lambda data: data)
    monkeypatch.setattr("daskclust.cli.events.windows", None)
    status, _, err = command("events", "run.parquet", "--dt-max", 100, "--where", "energy > 3")
    assert (status, "unknown energy" in err) == (1, True), err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("clue FILE --dc 1 --rhoc energi", "--rhoc names 'energi', which FILE does not have (did you mean 'energy'?)"),
        ("clue FILE --dc 1 --rhoc 1 --coordinates x,etta", "--coordinates names 'etta', which FILE"),
        (
            "dbscan FILE --eps 1 --weight energi",
            "--weight names 'energi', which FILE does not have (did you mean 'energy'?)",
        ),
        ("dbscan FILE --eps 1 --coordinates x,yy", "--coordinates names 'yy', which FILE does not have"),
    ],
)
def test_columns_are_looked_for_before_values_are_read(command: Any, line: str, message: str) -> None:
    """Values that cannot be used would be another error."""
    columns = dict.fromkeys(("x", "y", "eta", "energy"), np.array(["one", "two"]))
    np.savez("a.npz", **columns)
    io.write_hits(xr.Dataset(dict.fromkeys(columns, ("hit", np.full(2, np.nan)))), "a.h5")
    pd.DataFrame(columns).to_csv("a.csv", index=False)
    pd.DataFrame(columns).to_parquet("a.parquet")
    for file in ("a.csv", "a.npz", "a.h5", "a.parquet"):
        status, _, err = command(*line.replace("FILE", file).split())
        assert status == 1
        assert message.replace("FILE", file) in " ".join(err.split())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("none.csv --coordinates eta,phi --wrap phii=6.28", "--wrap names the axis 'phii'"),  # before the file is read
        ("a.csv --columns PosXX=x,PosY=y,E=energy", "has no column 'PosXX' (did you mean 'PosX'?)"),
    ],
)
def test_a_misspelt_axis_and_a_column_of_a_mapping(command: Any, line: str, message: str) -> None:
    Path("a.csv").write_text("PosX,PosY,E\n1,2,3\n")
    status, _, err = command("clue", "--dc", 1, "--rhoc", 1, *line.split())
    assert (status, message in err) == (1, True), err
