"""Every way to go wrong is told in two lines: what, and what to do; nothing is written."""

import errno
import json
import shlex
import sys
import unicodedata

import pytest
import typer
from cases.files.writers import write_gmhc

from daskclust import cli, datasets, io
from daskclust.cli import _errors

PROGRAM = typer.main.get_command(cli.app)
SHORT = {
    "CLUE": "clue hits.csv --dc 1 --rhoc 2",
    "EVENTS": "events run.tpx3 --dt-max 200 --table new.parquet -o newhits.parquet",
    "DBSCAN": "dbscan hits.csv --eps 1",
    "FOF": "fof hits.csv --linking-length 1",
    "HCA": "hca data --threshold 100",
}
TEXTS = {
    "hits.csv": "x,y,layer,energy\n0,0,1,1\n1,1,1,2\n",
    "odd.csv": "u;v;E\n0;0;1\n1;1;2\n",
    "nan.csv": "x,y\n0,0\n1,nan\n",
    "ragged.csv": "x,y\n1,2\n3,4,5\n",
    "empty.csv": "",
    "pixels.csv": "x,y,toa\n1,2,3\n",
    "cells.csv": "a,b\n0,0\n1,1\n3,2\n",
    "asgns": "0\n" * 300,
    "asgns.csv": "0\n",
}


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """Return a folder with files that are right, and wrong in their ways."""
    folder = tmp_path_factory.mktemp("wrong")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    for suffix in ("parquet", "h5", "fcs", "tpx3"):
        (folder / f"random.{suffix}").write_bytes(bytes(range(7, 250)) * 9)
    hits = datasets.timepix(20, rng=0).drop_vars("truth")
    io.write_tpx3(hits, folder / "run.tpx3")
    write_gmhc(datasets.cytometry(300, 3, rng=0), folder / "data")
    return folder


def state(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def told(command, wrong, monkeypatch):
    """Return a function that runs a line which fails, and gives the exit code and the two lines."""
    monkeypatch.chdir(wrong)
    monkeypatch.setattr("daskclust.workers._connect._PATIENCE", 0.5)

    def run(line):
        before = state(wrong)
        words = [word for part in shlex.split(line) for word in shlex.split(SHORT.get(part, shlex.quote(part)))]
        code, out, err = command(*words)
        what, hint = err.splitlines()
        assert out == ""
        assert what.startswith("error: ")
        assert hint.startswith("hint: ")
        assert len(hint) > len("hint: ")
        assert state(wrong) == before
        return code, what.removeprefix("error: "), hint.removeprefix("hint: ")

    return run


USAGE = [
    ("clu", "no such command 'clu'", "`daskclust --help`"),
    ("--fast", "no such option: --fast", "`daskclust --help`"),
    ("clue hits.csv", "missing option '--dc'", "--dc: Radius"),
    ("clue", "missing argument 'FILE'", "`daskclust clue --help`"),
    ("clue hits.csv --dc a --rhoc 1", "got 'a'", "--dc: Radius"),
    ("CLUE --kernel box", "'box' is not one of 'flat', 'gaussian', 'exponential'", "--kernel:"),
    ("EVENTS --disorder nan", "greater than or equal to 0, got 'nan'", "--disorder: "),
]
ERRORS = [
    # values of options: Python's message, and the option's help
    ("clue hits.csv --dc -1 --rhoc 1", "dc must be finite and positive, got -1.0", "--dc: Radius"),
    ("CLUE --columns '=x, y=b'", "--columns must be pairs", "--columns: PosX=x"),
    ("CLUE --wrap x=big", "wrap['x'] must be a number, got 'big'", "--wrap: Period"),
    ("FOF --boxsize 9,none,9", "boxsize must be one number or one for each of the 2 axes of X", "--boxsize: Period of"),
    ("dbscan hits.csv --eps 5 --boxsize 1", "boxsize must be at least 2 eps", "or --boxsize none"),
    ("fof hits.csv --b 0.2", "b=0.2 is a fraction", "give --boxsize, its side"),
    ("events pixels.csv --dt-max 2 --units toa=m", "the unit 'm'", "with --units NAME=..."),
    ("events run.tpx3 --dt-max nan --workers 2", "dt_max must be finite and positive, got nan", "--dt-max: Largest"),
    ("EVENTS --where 'sise > 3'", "unknown sise (did you mean 'size'?)", "the table has size"),
    ("hca data --threshold 1.5", "threshold must be a fraction of the points in (0, 1]", "--threshold: Size"),
    # options that do not go with each other, or with the file
    ("FOF --b 0.2", "got --b 0.2 and --linking-length 1.0", "give one of them"),
    ("HCA --assignments asgns --apriori kmeans", "got --assignments asgns and --apriori kmeans", "give one of them"),
    ("HCA --cofactor 5 --transform none", "--cofactor is for --transform arcsinh", "leave one"),
    ("HCA -o l.csv", "-o needs a cut", "give --n-clusters or --height"),
    ("events hits.csv --dt-max 2 --trigger 1", "--trigger is for raw .tpx3 words, got hits.csv", "leave it out"),
    ("EVENTS --columns a=x", "--columns is for tables, got run.tpx3", "leave it out"),
    ("EVENTS --idle 1", "--idle 1.0 is for --follow", "leave it out"),
    ("events tcp://127.0.0.1:1 --dt-max 2", "is a running readout", "add --follow"),
    # files
    ("clue hit.csv --dc 1 --rhoc 2", "no such file: hit.csv", "did you mean hits.csv?"),
    ("clue odd.csv --dc 1 --rhoc 1", "no column for 'x', 'y'", "--columns NAME=x,NAME=y"),
    ("clue nan.csv --dc 1 --rhoc 1", "NaN: X[1, 1]", "remove such points first"),
    ("clue ragged.csv --dc 1 --rhoc 1", "ragged.csv, line 3: expected 2 fields", "correct the file"),
    ("clue random.parquet --dc 1 --rhoc 1", "random.parquet", ""),
    ("events random.tpx3 --dt-max 2", "random.tpx3 has no chunk of Timepix3 words", ""),
    ("hca random.fcs --threshold 10", "random.fcs", "is it complete"),
    ("hca cells.csv --threshold 1 --channels CD9", "no channel 'CD9'", ""),
    # outputs
    ("CLUE -o no/t.csv", "there is no folder no", "make it first"),
    ("CLUE -o t.xyz", "-o must be a file with one of .parquet, .pq, .csv, .h5", "-o"),
    ("CLUE -o hits.csv", "-o hits.csv is the input", "write to another file"),
    ("CLUE -o t.csv --table ./t.csv", "-o and --table are one file", "write to different ones"),
    ("HCA --assignments asgns.csv --merges asgns.csv", "--merges asgns.csv is the input", "write to"),
    ("demo -o hits.csv", "-o hits.csv is a file, not a folder", "name another one"),
    # where it runs
    ("FOF --memory-limit 1GB", "--memory-limit 1GB is for workers that are started here", "give --workers"),
    ("CLUE --workers 1 --memory-limit 4XB", "memory_limit must be an amount of memory", "--memory-limit: Of each"),
    ("CLUE --wait 2h", "--wait 2h is for workers of a --scheduler", "leave it out"),
    ("CLUE --scheduler tcp://127.0.0.1:9", "no scheduler answers at 'tcp://127.0.0.1:9'", "`dask scheduler` starts"),
    ("EVENTS --follow --workers 2", "in this process", "leave --workers out"),
    ("FOF --cuda", "no GPU can be used here: no GPU was found", "it needs NVIDIA's driver"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "what", "hint"), USAGE + ERRORS)
def test_what_and_what_to_do(told, monkeypatch, line, what, hint):
    if "--cuda" in line.split():
        monkeypatch.setenv("PATH", "/nowhere")  # where no nvidia-smi is
    code, first, second = told(line)
    assert code == (2 if (line, what, hint) in USAGE else 1)
    assert what in first
    assert hint in second


@pytest.mark.parametrize(
    ("package", "line"),
    [("h5py", "clue random.h5 --dc 1 --rhoc 1"), ("zarr", "DBSCAN -o new.zarr")],
)
def test_a_missing_package(told, monkeypatch, package, line):
    monkeypatch.setitem(sys.modules, package, None)
    code, what, hint = told(line)
    assert code == 1
    assert package in what
    assert hint == 'pip install "daskclust[io]"'


def test_the_demo_tells_what_is_missing_before_it_begins(told, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert told("demo")[2] == 'pip install "daskclust[app]"'


def test_a_file_that_exists_stays_after_an_error(command, wrong, tmp_path):
    target = tmp_path / "clusters.parquet"
    target.write_bytes(b"earlier")
    assert command("clue", wrong / "nan.csv", "--dc", 1, "--rhoc", 1, "-o", target)[0] == 1
    assert (target.read_bytes(), list(tmp_path.iterdir())) == (b"earlier", [target])


@pytest.mark.parametrize("number", [*_errors._OF_SYSTEM, errno.EIO])
def test_errors_of_the_system(number):
    text = "Text of the system"
    error = OSError(number, text, "/data/.new.parquet.0123456789abcdef0123456789abcdef.tmp")
    told = _errors.trouble(error, PROGRAM.commands["clue"])
    assert told.what == "text of the system: /data/new.parquet"
    assert told.hint
    assert "{" not in told.hint


def test_memory_and_workers():
    class KilledWorker(Exception):  # noqa: N818 (as distributed has it)
        pass

    for error in (MemoryError("Unable to allocate 8 TiB"), KilledWorker()):
        told = _errors.trouble(error, PROGRAM.commands["clue"])
        assert told.status == 1
        assert "--workers" in told.hint


def test_a_fault_of_ours_shows_where(command, wrong, monkeypatch):
    def broken(*_, **__):
        raise KeyError("secret")

    monkeypatch.setattr("daskclust.io.read_hits", broken)
    code, _, err = command("clue", wrong / "hits.csv", "--dc", 1, "--rhoc", 1)
    assert code == 1
    *trace, first, second = err.splitlines()
    assert trace[0] == "Traceback (most recent call last):"
    assert first.startswith("error: a fault of daskclust itself: KeyError: 'secret' in test_errors.py, line ")
    assert "daskclust info" in second


def test_the_traceback_of_any_error_can_be_seen(command, wrong, monkeypatch):
    monkeypatch.setenv("DASKCLUST_TRACEBACK", "1")
    _, _, err = command("clue", wrong / "empty.csv", "--dc", 1, "--rhoc", 1)
    assert err.startswith("Traceback")
    assert err.splitlines()[-2].endswith("empty.csv is empty (0 bytes)")


@pytest.mark.parametrize("line", ["clue none.csv --dc 1 --rhoc 1", "clue --dc", "warm cleu"])
def test_an_error_is_a_document_too(command, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    code, out, err = command(*line.split(), "--json")
    error = json.loads(out)["error"]
    assert set(error) == {"kind", "what", "hint", "exit_code"}
    assert error["exit_code"] == code > 0
    assert err == f"error: {error['what']}\nhint: {error['hint']}\n"


@pytest.mark.parametrize("name", ["a\x1b[31m.csv", "a\u202e.csv", "a\r\x9b.csv"])
@pytest.mark.parametrize(
    ("words", "content"),
    [
        ("dbscan --eps 1", None),
        ("dbscan --eps 1 --json", "x,y\n1,b\n"),
        ("hca --threshold 1 --n-clusters 1", "x,y\n1,2\n"),
        ("clue --dc 1 --rhoc 1", ""),
    ],
)
def test_a_terminal_obeys_no_name_of_a_file(command, tmp_path, name, content, words):
    """Of a file that is read, missing, empty or wrong; in errors, summaries and what to do next."""
    if content is not None:
        (tmp_path / name).write_text(content)
    system, *options = words.split()
    _, out, err = command(system, tmp_path / name, *options, "-o", tmp_path / f"out{name}")
    odd = [each for each in out + err if each not in "\n\t" and unicodedata.category(each).startswith("C")]
    assert not odd
    if not content:
        assert ascii(name[:2])[1:-1] in (out + err).replace("\\\\", "\\").replace("\\u00", "\\x")
