"""Every way to go wrong is told in two lines: what, and what to do; nothing is written."""

import json
import shlex
import unicodedata

import pytest
from cases.files.writers import write_gmhc

from daskclust import datasets, io

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


LINES = [  # what is wrong, the value that is shown, and a word of the remedy
    ("clu", "'clu'", "--help"),
    ("clue hits.csv", "--dc", "Radius"),
    ("clue hits.csv --dc a --rhoc 1", "'a'", "--dc: Radius"),
    ("EVENTS --disorder nan", "'nan'", "--disorder: "),
    ("clue hits.csv --dc -1 --rhoc 1", "-1.0", "--dc: Radius"),
    ("CLUE --wrap x=big", "'big'", "--wrap: Period"),
    ("fof hits.csv --b 0.2", "b=0.2", "give --boxsize"),
    ("events pixels.csv --dt-max 2 --units toa=m", "'m'", "--units NAME="),
    # options that do not go with each other, or with the file
    ("FOF --b 0.2", "--b 0.2 and --linking-length 1.0", "give one of them"),
    ("events hits.csv --dt-max 2 --trigger 1", "hits.csv", "leave it out"),
    ("EVENTS --idle 1", "--idle 1.0", "leave it out"),
    ("events tcp://127.0.0.1:1 --dt-max 2", "readout", "add --follow"),
    # files
    ("clue hit.csv --dc 1 --rhoc 2", "hit.csv", "did you mean hits.csv?"),
    ("clue odd.csv --dc 1 --rhoc 1", "'x', 'y'", "--columns NAME=x"),
    ("clue nan.csv --dc 1 --rhoc 1", "X[1, 1]", "remove such points first"),
    ("clue ragged.csv --dc 1 --rhoc 1", "line 3", "correct the file"),
    ("hca random.fcs --threshold 10", "random.fcs", "is it complete"),
    # outputs
    ("CLUE -o no/t.csv", "no folder no", "make it first"),
    ("CLUE -o t.xyz", "-o", ".parquet"),
    ("CLUE -o hits.csv", "-o hits.csv is the input", "another file"),
    ("CLUE -o t.csv --table ./t.csv", "one file", "different ones"),
    ("demo -o hits.csv", "-o hits.csv", "name another one"),
    # where it runs
    ("FOF --memory-limit 1GB", "--memory-limit 1GB", "give --workers"),
    ("CLUE --scheduler tcp://127.0.0.1:9", "'tcp://127.0.0.1:9'", "`dask scheduler`"),
    ("EVENTS --follow --workers 2", "in this process", "leave --workers out"),
    ("FOF --cuda", "no GPU was found", "NVIDIA's driver"),
]


@pytest.mark.parametrize(
    "line",
    [
        "clue nan.csv --dc 1 --rhoc 1",
        "dbscan nan.csv --eps 1",
        "fof nan.csv --linking-length 1",
        "hdbscan nan.csv",
        "hca nan.csv --threshold 1",
        "hca nan.csv --threshold 1 --apriori 2",
    ],
)
def test_the_remedy_for_nan_is_not_of_arrays(told, line):
    _, what, hint = told(line)
    assert what in ("X contains NaN: X[1, 1] = nan", "X contains NaN or infinity")
    assert hint == "remove such points first"


@pytest.mark.parametrize(("line", "value", "remedy"), LINES)
def test_the_value_and_the_remedy(told, monkeypatch, line, value, remedy):
    if "--cuda" in line.split():
        monkeypatch.setenv("PATH", "/nowhere")  # where no nvidia-smi is
    code, what, hint = told(line)
    assert code in (1, 2)
    assert value in what or value in hint
    assert remedy in what or remedy in hint


def test_a_file_that_exists_stays_after_an_error(command, wrong, tmp_path):
    target = tmp_path / "clusters.parquet"
    target.write_bytes(b"earlier")
    assert command("clue", wrong / "nan.csv", "--dc", 1, "--rhoc", 1, "-o", target)[0] == 1
    assert (target.read_bytes(), list(tmp_path.iterdir())) == (b"earlier", [target])


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
