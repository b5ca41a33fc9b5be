"""Every hint can be followed where it is shown: the options that messages name are options of that command."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from cases.files.fcs_reference import fcs_bytes

import daskclust
from daskclust import app, cli, io

PACKAGE = Path(daskclust.__file__).parent
PROGRAM: Any = typer.main.get_command(cli.app)
OPTIONS = {
    name: {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    for name, command in PROGRAM.commands.items()
}
POINTS = ["clue", "events", "dbscan", "fof", "hca"]
SHOWN_BY = {
    "cli/hca.py": ["hca"],
    "cli/clue.py": ["clue"],
    "cli/events.py": ["events"],
    "cli/_pixels.py": ["events"],
    "cli/_job.py": POINTS,
    "cli/_estimate.py": POINTS,
}
"""Which commands show the messages of a module."""


def messages_of(path: Path) -> list[str]:
    """Return the texts of errors and warnings in a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "warn" in ast.unparse(node.func)]
    told = [*calls, *(node for node in ast.walk(tree) if isinstance(node, ast.Raise))]
    texts = (each.value for node in told for each in ast.walk(node) if isinstance(each, ast.Constant))
    return [text for text in texts if isinstance(text, str)]


@pytest.mark.parametrize("module", SHOWN_BY)
def test_options_in_the_messages_of_a_command_are_its_own(module: str) -> None:
    for text in messages_of(PACKAGE / module):
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", re.sub("`[^`]*`", "", text)):
            having = {name for name, options in OPTIONS.items() if option in options}
            assert having >= set(SHOWN_BY[module]), (option, text)


def test_options_of_readers_of_cells_that_messages_name_are_options_of_both_commands() -> None:
    """``channels=`` in a message of `daskclust.io` becomes ``--channels``; an answer to --apriori is of `hca` alone."""
    readers = (io.open_fcs, io.read_cells, io.read_gmhc)
    parameters = {name for reader in readers for name in inspect.signature(reader).parameters}
    named = {
        name
        for path in (PACKAGE / "io" / "cytometry").glob("*.py")
        for text in messages_of(path)
        for name in re.findall(r"\b([a-z_]+)=", text)
        if name in parameters
    }
    assert {"channels", "compensate", "data_set", "assignments"} <= named
    of = {name: {each.name for each in PROGRAM.commands[name].params} for name in ("hca", "explore")}
    assert named <= of["hca"]
    assert named - {"apriori", "assignments"} <= of["explore"]


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
