"""Every way to go wrong is told in two lines: what, and what to do."""

import errno
import json
import sys

import pytest
import typer

from daskclust import cli, datasets, io
from daskclust.cli import _errors

PROGRAM = typer.main.get_command(cli.app)
CLUE = ("--dc", 1, "--rhoc", 2)
MANY = 10**9


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with files that are right, and wrong in their ways."""
    folder = tmp_path_factory.mktemp("wrong")
    texts = {
        "hits.csv": "x,y,layer,energy\n0,0,1,1\n1,1,1,2\n",
        "odd.csv": "u;v;E\n0;0;1\n1;1;2\n",
        "nan.csv": "x,y\n0,0\n1,nan\n",
        "ragged.csv": "x,y\n1,2\n3,4,5\n",
        "words.csv": "x,y\n1,two\n",
        "empty.csv": "",
        "layer.csv": "x,y,layer\n1,2,1.5\n",
        "pixels.csv": "x,y,toa\n1,2,3\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "binary.csv").write_bytes(b"\xff\xfe\x00x")
    for suffix in ("parquet", "h5", "npy", "npz", "root", "fcs", "tpx3"):
        (folder / f"random.{suffix}").write_bytes(bytes(range(7, 250)) * 9)
    (folder / "folder").mkdir()
    io.write_hits(datasets.calorimeter(2, 20, rng=0), folder / "hits.parquet")
    return folder


@pytest.mark.parametrize(
    ("arguments", "code", "what", "hint"),
    [
        # the command line
        (("clu",), 2, "there is no command clu", "did you mean clue?"),
        (("clue", "hits.csv", "--dcc", 1), 2, "there is no option --dcc of daskclust clue", "did you mean --dc?"),
        (("clue", "hits.csv"), 2, "--dc is missing", "needed are IN, --dc, --rhoc; `daskclust clue --help`"),
        (("clue",), 2, "IN is missing", "`daskclust clue --help`"),
        (("clue", "hits.csv", "--dc"), 2, "option '--dc' requires an argument", "--help"),
        (("clue", "hits.csv", "--dc", "a", "--rhoc", 1), 2, "--dc must be a number, got 'a'", "--dc: Radius"),
        (("clue", "hits.csv", *CLUE, "--workers", 1.5), 2, "--workers must be a whole number, got '1.5'", "--workers:"),
        (
            ("clue", "hits.csv", *CLUE, "--kernel", "box"),
            2,
            "one of flat, gaussian, exponential, got 'box'",
            "--kernel:",
        ),
        (("clue", "hits.csv", "more.csv", *CLUE), 2, "unexpected extra argument", "--help"),
        (("--fast",), 2, "there is no option --fast", "`daskclust --help`"),
        # values of options
        (
            ("clue", "hits.csv", "--dc", -1, "--rhoc", 1),
            1,
            "--dc must be finite and positive, got -1.0",
            "--dc: Radius",
        ),
        (("clue", "hits.csv", "--dc", "nan", "--rhoc", 1), 1, "got nan", "--dc: Radius"),
        (
            ("clue", "hits.csv", "--dc", 1, "--rhoc", "cut"),
            1,
            "--rhoc names 'cut', which hits.csv does not have",
            "energy",
        ),
        (("clue", "hits.csv", *CLUE, "--workers", -1), 1, "--workers must be 0 or more, got -1", "0 clusters in this"),
        (("clue", "hits.csv", *CLUE, "--columns", "x=, y=b"), 1, "--columns must be pairs", "--columns: Which column"),
        (("clue", "hits.csv", *CLUE, "--columns", "x=a,x=b"), 1, "--columns names 'x' twice", "--columns:"),
        (
            ("clue", "hits.csv", *CLUE, "--units", "x=mm,q=m"),
            1,
            "--units names 'q'",
            "it has 'x', 'y', 'layer', 'energy'",
        ),
        (("clue", "hits.csv", *CLUE, "--wrap", "z=2"), 1, "--wrap names the axis 'z'", "['x', 'y']"),
        *(
            ((*line, "--boxsize", box), 1, f"--boxsize must be finite and positive, got {box}", "--boxsize: Period of")
            for line in (("dbscan", "hits.csv", 1), ("fof", "hits.csv", "--linking-length", 1))
            for box in ("0.0", "nan", "-1.0")
        ),
        (
            ("fof", "hits.csv", "--linking-length", 1, "--boxsize", "9,none,9"),
            1,
            "--boxsize must be one number or one for each of x, y, got 9,none,9",
            "--boxsize: Period of",
        ),
        (
            ("fof", "hits.csv", "--b", 0.2, "--boxsize", "none,5"),
            1,
            "--boxsize none,5.0 of x, y is none",
            "give --boxsize with a side for each, or a --linking",
        ),
        (("dbscan", "hits.csv", 5, "--boxsize", 1), 1, "--boxsize must be at least 2 eps", "or --boxsize none"),
        (
            ("fof", "hits.csv", "--b", 0.2),
            1,
            "--b 0.2 is a fraction",
            "give --boxsize with a side for each, or a --linking",
        ),
        (
            ("events", "pixels.csv", "--dt-max", 2, "--units", "toa=m"),
            1,
            "the unit 'm'",
            "give their unit with --units",
        ),
        # files
        (("clue", "hit.csv", *CLUE), 1, "no such file: hit.csv", "did you mean hits.csv?"),
        (("clue", "no/hits.csv", *CLUE), 1, "no such file: no/hits.csv", "there is no folder no"),
        (("clue", "folder", *CLUE), 1, "folder is a directory", "give one file"),
        (("explore", "hit.csv", "--no-browser"), 1, "no such file: hit.csv", "did you mean hits.csv?"),
        (("clue", "odd.csv", *CLUE), 1, "no column for 'x', 'y'", "'u', 'v', 'E': name it with --columns x=NAME"),
        (("clue", "hits.parquet", *CLUE, "--columns", "x,y"), 1, "have names", "give --columns x=NAME,y=NAME"),
        (("clue", "nan.csv", *CLUE), 1, "NaN in coordinate 1 of point 1", "remove such points first"),
        (("clue", "ragged.csv", *CLUE), 1, "ragged.csv, line 3: expected 2 fields", "correct that line"),
        (("clue", "words.csv", *CLUE), 1, "line 2, column 2 (y): expected a number, found 'two'", "correct that line"),
        (("clue", "layer.csv", *CLUE), 1, "got 1.5 in row 0", "or keep the column under another name with --columns"),
        (("clue", "empty.csv", *CLUE), 1, "empty.csv is empty", "give a file with points"),
        (("clue", "binary.csv", *CLUE), 1, "not a UTF-8 text", "does its extension tell its format?"),
        *(
            (("clue", f"random.{kind}", *CLUE), 1, f"random.{kind}", "")
            for kind in ("parquet", "h5", "npy", "npz", "root")
        ),
        (("clue", "random.tpx3", *CLUE), 1, "unknown extension '.tpx3'", "use one of .csv"),
        (("events", "random.tpx3", "--dt-max", 2), 1, "random.tpx3 has no chunk of Timepix3 words", ""),
        (("hca", "random.fcs", 10), 1, "random.fcs", "is it complete"),
        # outputs
        (("clue", "hits.csv", *CLUE, "-o", "no/t.csv"), 1, "there is no folder no", "make it first"),
        (("clue", "hits.csv", *CLUE, "-o", "t.xyz"), 1, "-o must be a .parquet", "-o: Hits with results"),
        (("clue", "hits.csv", *CLUE, "-o", "hits.csv"), 1, "-o hits.csv is the input", "write to another file"),
        (
            ("clue", "hits.csv", *CLUE, "-o", "t.csv", "--table", "./t.csv"),
            1,
            "are one file",
            "write to different ones",
        ),
        (("demo", "-o", "hits.csv"), 1, "-o hits.csv is a file, not a folder", "name another one"),
        # where it runs
        (
            ("dbscan", "hits.csv", 1, "--scheduler", "tcp://h:1", "--workers", 2),
            1,
            "--scheduler tcp://h:1 has workers of its own",
            "leave --workers out",
        ),
        (
            ("fof", "hits.csv", "--linking-length", 1, "--memory-limit", "1GB"),
            1,
            "--memory-limit 1GB is for workers that are started here",
            "give --workers",
        ),
        (
            ("hca", "hits.csv", 9, "--memory-limit", "1GB", "--scheduler", "tcp://h:1"),
            1,
            "--memory-limit 1GB is for workers that are started here",
            "give it to `dask worker`",
        ),
        (
            ("clue", "hits.csv", *CLUE, "--workers", 1, "--memory-limit", "4XB"),
            1,
            "--memory-limit must be an amount of memory such as \"4GB\", got '4XB'",
            "--memory-limit: Memory of each of the --workers",
        ),
        (
            ("clue", "hits.csv", *CLUE, "--scheduler", "tcp://127.0.0.1:9"),
            1,
            "no scheduler answers at 'tcp://127.0.0.1:9'",
            "`dask scheduler` starts one",
        ),
        *(
            (("events", "new.tpx3", "--dt-max", 2, "--follow", *option), 1, "on its CPU", f"leave {option[0]} out")
            for option in (("--workers", 2), ("--scheduler", "tcp://h:1"), ("--cuda",))
        ),
        *(
            ((*line, "--cuda"), 1, "no GPU can be used here: no GPU was found", "it needs NVIDIA's driver")
            for line in (
                ("clue", "hits.csv", *CLUE),
                ("events", "pixels.csv", "--dt-max", 2),
                ("dbscan", "hits.csv", 1),
                ("fof", "hits.csv", "--linking-length", 1),
                ("hca", "hits.csv", 9),
            )
        ),
        (
            ("clue", "hits.csv", *CLUE, "--cuda", "--workers", 2),
            1,
            "workers with GPUs cannot start here: no GPU was found",
            "it needs NVIDIA's driver",
        ),
        # packages, devices
        (("bench", "clue", "--sizes", 100, "--device", "cuda"), 1, "cupy", "pip install"),
    ],
)
def test_what_and_what_to_do(command, made, monkeypatch, arguments, code, what, hint):
    monkeypatch.chdir(made)
    monkeypatch.setattr("daskclust.workers._start._PATIENCE", 0.5)
    if "cuda" in arguments:
        monkeypatch.setitem(sys.modules, "cupy", None)
    if "--cuda" in arguments:
        monkeypatch.setenv("PATH", "/nowhere")  # where no nvidia-smi is
    before = sorted(made.iterdir())
    found, out, err = command(*arguments)
    assert (found, out) == (code, "")
    first, second = err.splitlines()
    assert first.startswith("error: ")
    assert second.startswith("hint: ")
    assert what in first
    assert hint in second
    assert len(second) > len("hint: ")
    assert not any(python in err for python in ("columns=", "units=", "boxsize=", "np.", " ds."))
    assert sorted(made.iterdir()) == before


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("h5py", ("clue", "random.h5", *CLUE)),
        ("uproot", ("clue", "random.root", *CLUE)),
        ("zarr", ("dbscan", "hits.csv", 1, "-o", "new.zarr")),
    ],
)
def test_a_missing_package(command, made, monkeypatch, package, arguments):
    monkeypatch.chdir(made)
    monkeypatch.setitem(sys.modules, package, None)
    code, out, err = command(*arguments)
    assert (code, out) == (1, "")
    first, second = err.splitlines()
    assert package in first
    assert second == 'hint: pip install "daskclust[io]"'


def test_the_demo_tells_what_is_missing_before_it_begins(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = command("demo")
    assert (code, list(tmp_path.iterdir())) == (1, [])
    assert err.splitlines()[1] == 'hint: pip install "daskclust[app]"'


@pytest.mark.parametrize("number", sorted(_errors._SYSTEM))
def test_errors_of_the_system(number):
    error = OSError(number, "text of the system", "/data/.new.parquet.0123456789abcdef0123456789abcdef.tmp")
    told = _errors.trouble(error, PROGRAM.commands["clue"], list(PROGRAM.commands))
    assert "0123456789abcdef" not in told.what + told.hint
    assert told.what
    assert told.hint
    assert "{" not in told.what + told.hint


def test_an_error_of_the_system_that_is_not_known_is_told_all_the_same():
    told = _errors.trouble(OSError(errno.EIO, "Input/output error", "/data/x"), None, [])
    assert told.what == "/data/x: Input/output error"


def test_memory_and_workers():
    class KilledWorker(Exception):  # noqa: N818 (as distributed has it)
        pass

    for error in (MemoryError("Unable to allocate 8 TiB"), KilledWorker()):
        told = _errors.trouble(error, PROGRAM.commands["clue"], [])
        assert told.status == 1
        assert "--workers" in told.hint


def test_a_fault_of_ours_shows_where(command, made, monkeypatch):
    monkeypatch.chdir(made)

    def broken(*_, **__):
        raise KeyError("secret")

    monkeypatch.setattr("daskclust.io.read_hits", broken)
    code, _, err = command("clue", "hits.csv", *CLUE)
    assert code == 1
    *trace, first, second = err.splitlines()
    assert trace[0] == "Traceback (most recent call last):"
    assert first.startswith("error: a fault of daskclust itself: KeyError: 'secret' in test_cli_errors.py, line ")
    assert "daskclust info" in second


def test_the_traceback_of_any_error_can_be_seen(command, made, monkeypatch):
    monkeypatch.chdir(made)
    monkeypatch.setenv("DASKCLUST_TRACEBACK", "1")
    _, _, err = command("clue", "empty.csv", *CLUE)
    assert err.startswith("Traceback")
    assert err.splitlines()[-2] == "error: empty.csv is empty (0 bytes)"


def test_columns_and_units_of_a_file_of_ones_own(command, made, monkeypatch):
    monkeypatch.chdir(made)
    naming = ("--columns", "x=u, y=v,energy=E", "--units", "x=mm,y=mm,energy=MeV")
    code, out, err = command("clue", "odd.csv", "--dc", 0.05, "--rhoc", 0.002, *naming, "--json")
    assert code == 0, err
    assert json.loads(out)["clusters"] == 1  # 1.4 mm are over 0.05 cm, 2 MeV are 0.002 GeV: the second hit alone
    code, out, err = command("dbscan", "odd.csv", 2, "--columns", "x=u,=E", "--coordinates", "x,v", "--json")
    assert code == 0, err
    assert json.loads(out)["points"] == 2


def test_version(command):
    from daskclust import __version__

    assert command("--version") == (0, f"daskclust {__version__}\n", "")
