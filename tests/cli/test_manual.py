"""The manual: every option explained, every example valid, every key there; help at any width, without colours too."""

import itertools
import json
import shlex
import shutil
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import typer
import xarray as xr
from typer.testing import CliRunner

from daskclust import app, cli, datasets, io
from daskclust.cli._console import rows, sections

PROGRAM = typer.main.get_command(cli.app)
COMMANDS = sorted(PROGRAM.commands)
READOUT = {"ended_by", "reconnections", "output_rows", "table_rows"}
WORKERS = {
    *(
        "seconds_starting",
        "reason",
        "channels",
        "number_is",
        "chunks",
        "points_per_chunk",
        "bytes_per_point",
        "memory_bytes",
    ),
    *("seconds_estimated", "basis"),
}


def examples_of(command):
    """Return pairs of lines: what an example does, and the line."""
    lines = [line.strip() for line in command.manual["Examples"].splitlines()]
    return [(said, line) for said, line in itertools.pairwise(lines) if not line.startswith("#")]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_text_and_a_panel(name):
    for parameter in PROGRAM.commands[name].params:
        assert parameter.help, parameter.opts
    assert PROGRAM.commands[name].help
    assert PROGRAM.commands[name].rich_help_panel in ("Cluster", "Look", "Tools")


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


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """Return a folder with the files that examples name."""
    import h5py

    folder, rng = tmp_path_factory.mktemp("samples"), np.random.default_rng(0)
    hits = datasets.calorimeter(2, 50, rng=0)
    flat = pd.DataFrame({name: hits[name].values for name in ("x", "y", "layer", "energy")})
    flat = flat.assign(eta=rng.uniform(1.5, 3, len(flat)), phi=rng.uniform(-3, 3, len(flat)))
    flat.to_csv(folder / "hits.csv", index=False)
    flat.to_parquet(folder / "hits.parquet")
    flat.rename(columns={"x": "px", "y": "py", "energy": "E"}).to_csv(folder / "my.csv", index=False)
    flat.rename(columns={"x": "lon", "y": "lat"}).to_csv(folder / "places.csv", index=False)
    triggers = xr.Dataset({"time": ("trigger", np.arange(0, 80_000, 5000) * 1.0)})
    io.write_tpx3(datasets.timepix(500, rng=0).drop_vars("truth"), folder / "run.tpx3", triggers=triggers)
    (folder / "matrices").mkdir()
    for name, value in {"a": "2", "b": "30", "c": "100", "t": "1"}.items():
        (folder / "matrices" / f"{name}.txt").write_text((" ".join([value] * 256) + "\n") * 256)
    box = datasets.cosmology_box(1000, rng=0).drop_vars("halo")
    io.write_particles(box.assign_attrs(boxsize=100.0), folder / "snapshot.hdf5")
    with h5py.File(folder / "snapshot.hdf5", "r+") as file:  # stars where dark matter is
        file.copy("PartType1", "PartType4")
        for name in ("NumPart_ThisFile", "NumPart_Total"):
            counts = file["Header"].attrs[name]
            counts[4] = counts[1]
            file["Header"].attrs[name] = counts
    cells = datasets.cytometry(2000, 3, rng=0).drop_vars("population").drop_attrs()
    io.write_cells(cells.assign(X=150 * np.sinh(cells["X"])), folder / "tube.fcs")
    io.write_gmhc(datasets.cytometry(300, 2, rng=0), folder / "data")
    (folder / "asgns").write_text("\n".join(str(k % 3) for k in range(300)) + "\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", "clue", "events", "dbscan", "fof", "hca", "explore", "info", "help"])
def test_every_example_runs(command, samples, tmp_path, monkeypatch, scheduler, name):
    """On files of these names; not where a GPU or a readout is needed. Tests of demo and warm run theirs."""
    shutil.copytree(samples, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    server = SimpleNamespace(port=1, start=lambda: None, stop=lambda: None, show=None, io_loop=Mock())
    monkeypatch.setattr(app, "serve", lambda *_, **__: server)
    run = 0
    for said, line in examples_of(PROGRAM.commands[name] if name else PROGRAM):
        words = shlex.split(line.replace("tcp://host:8786", scheduler))
        _, called, *arguments = words[: next((k for k, word in enumerate(words) if word in "|>"), None)]
        if called in ("demo", "--install-completion") or {"--cuda", "--follow"} & set(arguments):
            continue
        code, _, err = command(called, *arguments)
        assert (code, "error" in err) == (0, False), (said, line, err)
        run += 1
    assert run >= 2


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("clue hits.parquet --dc 2 --rhoc 0.3 -o c.parquet --table t.csv --verbose", WORKERS),
        ("events run.tpx3 --dt-max 200 --where size>1 --min-hits 30 --table c.parquet -o h.parquet --verbose",
         {*WORKERS, *READOUT, "late_hits", "split_clusters", "n_late", "n_unknown", "..."}),
        ("events run.tpx3 --dt-max 200 --where size>1 --follow --idle 0.1 --table c.csv -o h.h5 --verbose",
         {*WORKERS, "seconds_reading", "reconnections", "noise_hits", "late_hits", "split_clusters", "n_late",
          "n_unknown", "..."}),
        ("dbscan snapshot.hdf5 --eps 0.4 -o labels.csv --table t.h5 --verbose", WORKERS),
        ("fof snapshot.hdf5 --b 0.2 --table halos.csv -o parts.csv --verbose", WORKERS),
        ("hca cells.parquet --threshold 20 --n-clusters 3 --merges a.csv -o b.csv --table c.csv --verbose", WORKERS),
        ("info", set()),
    ],
)  # fmt: skip
def test_json_is_one_document_with_the_keys_of_the_manual(command, files, line, more):
    """Keys in `more` are those of other circumstances."""
    name, *arguments = line.split()
    code, out, err = command(name, *arguments, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)  # nothing else is there
    keys = rows(PROGRAM.commands[name].manual["Keys of --json"])
    listed = {key.strip() for keys, _ in keys for key in keys.split(",")}
    assert set(document) == listed - more


def test_quiet_is_silent(command, files):
    for line in (
        "clue hits.parquet --dc 2 --rhoc 0.3 -q",
        "dbscan snapshot.hdf5 --eps 0.4 --quiet",
        "hca cells.parquet --threshold 20 --merges t.npy -q",
    ):
        assert command(*line.split()) == (0, "", "")


# ----------------------------------------------------------------------------------------------------------------- help
@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_the_manual_fits_and_has_no_colours_in_a_pipe(command, monkeypatch, name, width):
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, err = shown = command(*[name][: bool(name)], "--help-all")
    assert (code, err) == (0, "")
    assert shown == command("help", *[name][: bool(name)])
    assert "\x1b" not in out
    framed, _, examples = out.partition(" Examples\n")
    assert max(map(len, framed.splitlines())) <= width
    assert "�" not in out
    for words, line in examples_of(PROGRAM.commands[name] if name else PROGRAM):
        assert f"{words}\n  {line}\n" in examples or f"\n  {line}\n" in examples  # in one piece, to be copied


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_the_help_fits_a_screen_and_names_the_manual(command, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "100")
    code, out, err = shown = command(*[name][: bool(name)], "--help")
    assert (code, err) == (0, "")
    assert shown == command(*[name][: bool(name)], "-h")
    assert len(out.splitlines()) <= 40
    assert max(map(len, out.splitlines())) <= 100
    assert out.rstrip().endswith(f"daskclust {name} --help-all".replace("  ", " "))
    if name:
        panels = ("Running", "Raw words and readouts")
        own = [each for each in PROGRAM.commands[name].params if each.rich_help_panel not in panels]
        assert [each.name for each in own if each.opts[-1].startswith("-") and each.opts[-1] not in out] == []
        assert "--json" not in out


def test_the_manual_of_an_unknown_command(command):
    code, out, err = command("help", "clu")
    assert (code, out) == (2, "")
    assert "no such command 'clu'" in err.splitlines()[0]


def test_a_manual_is_taken_apart():
    parts = sections("Reads\n  x, y  position,\n        cm\n\nExamples\n  # see it\n  daskclust demo\n")
    assert parts == {"Reads": "  x, y  position,\n        cm", "Examples": "  # see it\n  daskclust demo"}
    assert rows(parts["Reads"]) == [("x, y", "position, cm")]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("clue -h", ["[default: (delta-c)]"]),
        ("fof -h", ["[default: (the file's, or open)]"]),
        (
            "--help-all",
            ["Cluster", "Look", "Tools", "Exit codes", "130, 143", "Environment", "NUMBA_CACHE_DIR", "Examples"],
        ),
    ],
)
def test_help_tells_defaults_groups_exit_codes_and_environment(command, monkeypatch, line, words):
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = command(*line.split())
    assert [each for each in words if each not in out] == []


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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("cl",), ["clue"]),
        (("clue", "--del"), ["--delta-c", "--delta-o"]),
        (("clue", "hits.csv", "--kernel", ""), ["flat", "gaussian", "exponential"]),
        (("events", "run.tpx3", "--variant", "s"), ["static"]),
        (("hca", "--rule", "eu"), ["euclid", "euclid_mahal"]),
        (("explore", "hits.csv", "--system", "e"), ["events"]),
    ],
)
def test_shells_are_told_commands_options_and_choices(shell, words, offered):
    answer = complete(shell, *words)
    for word in offered:
        assert word in answer
    assert "Traceback" not in answer


def test_files_are_left_to_the_shell():
    for shell, answer in (("bash", ""), ("zsh", "_files"), ("fish", "")):
        assert complete(shell, "clue", "").strip() == answer
        assert complete(shell, "clue", "hits.csv", "-o", "").strip() == answer


@pytest.mark.parametrize(("shell", "mark"), [("bash", "complete -o default"), ("zsh", "compdef"), ("fish", "complete")])
def test_scripts_for_shells(shell, mark):
    answer = (
        CliRunner().invoke(cli.app, [], env={"_DASKCLUST_COMPLETE": f"source_{shell}"}, prog_name="daskclust").output
    )
    assert mark in answer
    assert "_DASKCLUST_COMPLETE" in answer
