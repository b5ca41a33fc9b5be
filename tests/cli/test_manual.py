"""Help and manuals: every option explained, every example valid, every key of --json on the page."""

import itertools
import json
import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from daskclust import cli

PROGRAM = typer.main.get_command(cli.app)
COMMANDS = sorted(PROGRAM.commands)


def examples_of(command):
    """Return pairs of lines: what an example does, and the line."""
    lines = [line.strip() for line in command.examples.splitlines()]
    return [(said, line) for said, line in itertools.pairwise(lines) if not line.startswith("#")]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_text_and_a_panel(name):
    assert [parameter.opts for parameter in PROGRAM.commands[name].params if not parameter.help] == []
    assert PROGRAM.commands[name].help
    assert PROGRAM.commands[name].rich_help_panel in ("Cluster", "Look", "Tools")


def test_no_type_of_python_is_beside_file():
    assert "list[" not in CliRunner().invoke(cli.app, ["clue", "--help"]).output


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_every_example_is_a_valid_line(name):
    examples = examples_of(PROGRAM.commands[name] if name else PROGRAM)
    assert len(examples) >= 2
    for said, line in examples:
        assert said.startswith("# " if name else ("# ", "daskclust "))  # some of the program's are explained together
        words = shlex.split(line)
        program, command, *arguments = words[: next((k for k, word in enumerate(words) if word in "|>"), None)]
        assert program == "daskclust"
        assert name in ("", command)
        if not command.startswith("--install") and command != "help":
            with PROGRAM.commands[command].make_context(command, arguments):
                pass  # parsed: the files need not be there


PAGE = Path(__file__).parents[2] / "docs" / "howto" / "terminal.md"


def keys_of(*rows):
    """Return the keys of --json that the page lists in these rows."""
    table = PAGE.read_text(encoding="utf-8").partition("| command | keys |")[2].partition("\n\n")[0]
    texts = dict(re.findall(r"^\| (.*?) \| (.*) \|$", table, flags=re.MULTILINE))
    return {key for row in rows for key in re.findall(r"`([a-z_]+)`", texts[row])}


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        ("clue hits.parquet --dc 2 --rhoc 0.3 -o c.parquet --table t.csv", ["`clue`"]),
        ("events run.tpx3 --dt-max 200 --where size>1 --min-hits 30 --table c.parquet -o h.parquet", ["`events`"]),
        ("events run.tpx3 --dt-max 200 --where size>1 --follow --idle 0.1 --table c.csv -o h.h5",
         ["`events`", "`events --follow`"]),
        ("dbscan snapshot.hdf5 --eps 0.4 -o labels.csv --table t.h5", ["`dbscan`"]),
        ("hdbscan snapshot.hdf5 --min-samples 3 -o labels.csv --table t.h5", ["`hdbscan`"]),
        ("fof snapshot.hdf5 --b 0.2 --table halos.csv -o parts.csv", ["`fof`"]),
        ("hca cells.parquet --threshold 20 --n-clusters 3 --merges a.csv -o b.csv --table c.csv", ["`hca`"]),
        ("fof snapshot.hdf5 --b 0.2 --dry-run", ["`fof`", "with `--dry-run`"]),
        ("info", ["`info`"]),
    ],
)  # fmt: skip
def test_json_is_one_document_with_the_keys_of_the_page(command, files, line, rows):
    name, *arguments = line.split()
    more = ["all that cluster", "with `--verbose`"] if name != "info" else []
    code, out, err = command(name, *arguments, "--json", *["--verbose"] * bool(more))
    assert (code, err) == (0, "")
    document = json.loads(out)  # nothing else is there
    assert set(document) <= keys_of(*rows, *more)
    if rows == ["`clue`"] or rows == ["`dbscan`"]:
        assert keys_of(*rows) <= set(document)


def test_quiet_is_silent(command, files):
    for line in (
        "clue hits.parquet --dc 2 --rhoc 0.3 -q",
        "dbscan snapshot.hdf5 --eps 0.4 --quiet",
        "hca cells.parquet --threshold 20 --merges t.npy -q",
    ):
        assert command(*line.split()) == (0, "", "")


# ----------------------------------------------------------------------------------------------------------------- help
# ----------------------------------------------------------------------------------------------------------- completion
def complete(shell, *words):
    """Return what a shell is told when it asks, as the scripts of --install-completion do."""
    line = " ".join(("daskclust", *words))
    environment = {"_DASKCLUST_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line}
    if shell == "bash":
        environment |= {"COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    if shell == "fish":
        environment["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    return CliRunner().invoke(cli.app, [], env=environment, prog_name="daskclust").output


@pytest.mark.parametrize(
    ("shell", "words", "offered"),
    [
        ("bash", ("cl",), ["clue"]),
        ("zsh", ("clue", "--del"), ["--delta-c", "--delta-o"]),
        ("fish", ("clue", "hits.csv", "--kernel", ""), ["flat", "gaussian", "exponential"]),
    ],
)
def test_shells_are_told_commands_options_and_choices(shell, words, offered):
    answer = complete(shell, *words)
    for word in offered:
        assert word in answer
    assert "Traceback" not in answer
