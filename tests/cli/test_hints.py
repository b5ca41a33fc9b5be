"""Every hint can be followed where it is shown: the options that messages name are options of that command."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from cases.files.fcs_reference import fcs_bytes

from daskclust import app, cli

PROGRAM: Any = typer.main.get_command(cli.app)
OPTIONS = {
    name: {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    for name, command in PROGRAM.commands.items()
}


# ------------------------------------------------------------------------------------------------- hints are followed
def two_data_sets() -> bytes:
    first, second = (fcs_bytes(["<f4"] * 3, [(k, 2 * k, 7 - k) for k in range(9)], NEXTDATA=n) for n in ("    ", "0"))
    return first.replace(b"$NEXTDATA|    ", b"$NEXTDATA|%4d" % len(first)) + second


FILES = {
    "two.fcs": two_data_sets(),
    "matrix.fcs": fcs_bytes(["<f4"] * 3, [(k, 2 * k, 7 - k) for k in range(9)], SPILL="2,D1,D9,1,0.5,0.5,1"),
    "before.fcs": fcs_bytes(["<f4"] * 3, [(k, 2 * k, 7 - k) for k in range(9)], COMP="2,0,-4,0,0"),
    "words.csv": b"CD3,CD4,tube\n1,2,one\n3,4,two\n5,7,two\n",
    "half.csv": b"CD3,CD4,apriori\n1,2,0.5\n3,4,1\n5,7,1\n",
    "cells.csv": b"CD3,CD4,CD8\n1,2,1\n3,4,1\n5,7,2\n",
}
CASES = [
    ("two.fcs", "", "--data-set"),
    ("two.fcs --no-compensate", "", "--data-set"),
    ("matrix.fcs --compensate", "", "--no-compensate"),
    ("before.fcs --compensate", "", "--no-compensate"),
    ("words.csv", "", "--channels CD3,CD4"),
    ("half.csv", "", "--channels CD3,CD4"),
    ("cells.csv --channels CD9", "", ""),
    ("cells.csv --compensate", "leave it out", ""),
    ("cells.csv --data-set 0", "leave it out", ""),
    ("cells.csv --cofactor 5 --transform none", "leave one of them out", ""),
]
COMMANDS = {"hca": "hca {} --threshold 2 --json", "explore": "explore {} --system hca --no-browser"}


@pytest.fixture
def run(command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs a line; what `explore` would serve ends it well."""
    monkeypatch.chdir(tmp_path)
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)

    def serve(*_: Any, **__: Any) -> None:
        raise SystemExit(0)

    monkeypatch.setattr(app, "serve", serve)
    return lambda line: command(*shlex.split(line))


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(("line", "words", "remedy"), CASES)
def test_a_hint_is_followed(run: Any, name: str, line: str, words: str, remedy: str) -> None:
    code, _, err = run(COMMANDS[name].format(line))
    assert code == 1, err
    hint = err.splitlines()[-1]
    assert hint.startswith("hint: ")
    assert words in hint
    named = re.findall(r"(?<![\w-])--[a-z][\w-]*", re.sub("`[^`]*`", "", hint))
    assert set(named) <= OPTIONS[name]
    assert not re.search(r"\b(channels|compensate|data_set|transform|apriori|assignments)=", hint)
    if remedy:
        option, *value = remedy.split()
        assert option in named
        value = value or re.findall(rf"{option} (\d)", hint)
        again = line.replace(" --compensate", "").replace(" --no-compensate", "")
        assert run(COMMANDS[name].format(f"{again} {shlex.join([option, *value])}"))[0] == 0


# --------------------------------------------------------------------------------------- one default of the commands
@pytest.mark.filterwarnings("always:.*values are not compensated")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_matrix_that_cannot_be_used_is_a_note(run: Any, name: str) -> None:
    for options, notes in (("", 1), ("--no-compensate", 0)):
        code, _, err = run(COMMANDS[name].format(f"matrix.fcs {options}"))
        assert code == 0
        assert err.count("values are not compensated") == notes
