"""The command line as a process: exit codes, signals, pipes, full disks, terminals."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from io import StringIO

import psutil
import pytest
from rich.console import Console

from daskclust import datasets, io
from daskclust.cli._work import bar

HANGS = 600  # s; nothing that ends takes as long, on whatever machine
MAIN = "from daskclust.cli import main; main()"
SLOW_DISK = """
import os, sys, time
real = os.fsync
def fsync(descriptor):  # what is written waits for the disk, before it gets its name
    real(descriptor)
    print("waiting", file=sys.stderr, flush=True)
    time.sleep(3600)
os.fsync = fsync
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("process")
    hits = datasets.hgcal_event(20, n_noise=1000, rng=0).drop_vars("truth")
    io.write_hits(hits, folder / "hits.parquet")
    io.write_hits(hits, folder / "hits.csv")
    io.write_tpx3(datasets.timepix(20_000, kind="pion45", rng=0).drop_vars("truth"), folder / "run.tpx3")
    io.write_gmhc(datasets.cytometry(3000, 2, rng=0), folder / "data")
    return folder


@pytest.fixture(autouse=True)
def heeds_interrupts():
    """Jobs in a shell's background ignore SIGINT, and so do their children: not those of a process that handles it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


STARTED = []


@pytest.fixture(autouse=True)
def nothing_goes_on():
    """End what a test that failed has left at work."""
    yield
    for process in STARTED:
        if process.poll() is None:
            process.kill()
    STARTED.clear()


def start(folder, *arguments, before="", **options):
    """Start the command in a process of its own, after some lines of Python."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONFAULTHANDLER": ""}
    environment.pop("COLUMNS", None)
    command = [sys.executable, "-c", f"{before}\nimport sys\nsys.argv[1:] = {list(map(str, arguments))}\n{MAIN}"]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    STARTED.append(subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **options))
    return STARTED[-1]


def finish(process):
    out, err = process.communicate(timeout=HANGS)
    return process.returncode, out, err


def in_two_lines(err):
    what, hint = err.splitlines()
    assert what.startswith("error: ")
    assert hint.startswith("hint: ")
    return what


CLUE = ("clue", "hits.parquet", "--dc", 2, "--rhoc", 0.3)


# ----------------------------------------------------------------------------------------------------------- exit codes
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((*CLUE, "--json"), 0),
        (("clue", "hist.parquet", "--dc", 2, "--rhoc", 0.3), 1),
        (("clue", "hits.parquet", "--dc", "two", "--rhoc", 0.3), 2),
    ],
)
def test_exit_codes(folder, arguments, code):
    found, out, err = finish(start(folder, *arguments))
    assert found == code
    if code:
        assert out == ""
        in_two_lines(err)
    else:
        assert json.loads(out)["clusters"] > 0
        assert err == ""  # no progress where there is no terminal


def test_python_dash_m_is_the_command(folder):
    done = subprocess.run(
        [sys.executable, "-m", "daskclust", "clu"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: there is no command clu\nhint: did you mean clue?")


# -------------------------------------------------------------------------------------------------------------- signals
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workers", [0, 1])
def test_a_signal_leaves_no_output_and_no_process(folder, tmp_path, number, workers):
    target = tmp_path / "new.parquet"
    process = start(folder, *CLUE, "-o", target, "--workers", workers, before=SLOW_DISK)
    assert process.stderr.readline() == "waiting\n"
    assert len(list(tmp_path.iterdir())) == 1  # under another name
    children = psutil.Process(process.pid).children(recursive=True)
    assert bool(children) == bool(workers)
    os.killpg(process.pid, number)  # as a terminal does at Ctrl-C
    code, out, err = finish(process)
    assert code == -number  # a shell calls it 128 + number
    assert out == ""
    assert in_two_lines(err) in ("error: interrupted (SIGINT)", "error: stopped (SIGTERM)")
    assert list(tmp_path.iterdir()) == []
    _, alive = psutil.wait_procs(children, timeout=HANGS)
    assert not alive


def test_a_file_that_was_there_stays(folder, tmp_path):
    target = tmp_path / "old.parquet"
    target.write_bytes(b"earlier")
    process = start(folder, *CLUE, "-o", target, before=SLOW_DISK)
    assert process.stderr.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    finish(process)
    assert target.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [target]


def test_a_readout_ends_at_an_interrupt_with_its_tables_and_at_sigterm_without(folder, tmp_path):
    for number, left in ((signal.SIGINT, ["clusters.parquet"]), (signal.SIGTERM, [])):
        place = tmp_path / number.name
        place.mkdir()
        more = ("--dt-max", 200, "--follow", "-o", place / "clusters.parquet", "--json")
        process = start(folder, "events", "run.tpx3", *more)
        while not list(place.iterdir()):  # what is to be the table
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(number)
        code, out, _ = finish(process)
        assert [path.name for path in place.iterdir()] == left
        assert code == (0 if left else -number)
        assert ("error" in json.loads(out)) == (not left)


BUSY_LOOP = """
import sys, time
from tornado.platform.asyncio import BaseAsyncIOLoop
real = BaseAsyncIOLoop.start
def start(loop):
    loop.add_callback(work)
    real(loop)
def work():
    print("at work", file=sys.stderr, flush=True)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        pass
BaseAsyncIOLoop.start = start
"""


@pytest.mark.parametrize(
    ("number", "code", "seconds"), [(signal.SIGINT, 0, 2), (signal.SIGTERM, -signal.SIGTERM, 3600)]
)
def test_the_explorer_ends_while_it_is_at_work(folder, number, code, seconds):
    """After what it is doing at Ctrl-C, at once at SIGTERM."""
    before = BUSY_LOOP.replace("SECONDS", str(seconds))
    process = start(folder, "explore", "hits.parquet", "--no-browser", before=before)
    assert "http://localhost" in process.stdout.readline()
    while "at work" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    assert process.wait(HANGS) == code
    finish(process)


FINALIZER = """
class Work:
    def __del__(self):
        work_on()
work_on = work
def work():
    for _ in range(SECONDS):
        Work()
"""


SLOW_TIMERS = """
import signal, threading, time
def slowly(function):
    def slow(*arguments):
        function(*arguments)
        time.sleep(0.2)
    return slow
threading.Timer.start, signal.setitimer = slowly(threading.Timer.start), slowly(signal.setitimer)
"""


@pytest.mark.parametrize("slow", ["", SLOW_TIMERS], ids=["", "busy machine"])
def test_the_explorer_ends_where_python_drops_exceptions(folder, slow):
    """What is raised within a finalizer goes no further, and a server has many: SIGTERM must end it nevertheless.

    Nor does what is raised while a finalizer's exception is looked at, which takes a while on a busy machine.
    """
    before = slow + (BUSY_LOOP.replace("SECONDS", "1") + FINALIZER).replace("SECONDS", "60")  # SIGTERM cuts each short
    process = start(folder, "explore", "hits.parquet", "--no-browser", before=before)
    assert "http://localhost" in process.stdout.readline()
    while "at work" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(HANGS) == -signal.SIGTERM
    finish(process)


# ------------------------------------------------------------------------------------------------------ pipes and disks
def test_a_reader_that_has_enough(folder):
    process = start(folder, "hca", "data", "0.5", text=False)
    process.stdout.readline()
    process.stdout.close()
    with process.stderr as err:
        assert err.read() == b""
    assert process.wait() == 141


@pytest.mark.parametrize("arguments", [("hca", "data", "0.5"), (*CLUE, "--json"), ("info",), ("-h",)])
def test_a_full_disk_behind_standard_output(folder, arguments):
    with open("/dev/full", "w") as full:
        code, _, err = finish(start(folder, *arguments, stdout=full))
    assert code == 1
    assert "no space is left" in in_two_lines(err.partition("Mahalanobis")[0] or err)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npz", ".h5"])
def test_a_file_larger_than_may_be(folder, tmp_path, suffix):
    limit = "import resource, signal\nresource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))"
    target = tmp_path / f"new{suffix}"
    code, out, err = finish(start(folder, *CLUE, "-o", target, before=limit))
    assert (code, out) == (1, "")
    assert f"{target} grows larger than files may be here" in in_two_lines(err)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def full_disk(tmp_path):
    """Return a folder on a disk of 64 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((*CLUE, "-o"), "new.parquet"),
        ((*CLUE, "-o"), "new.h5"),
        (("dbscan", "hits.parquet", 2, "-o"), "new.zarr"),
        (("events", "run.tpx3", "--dt-max", 200, "--hits"), "new.parquet"),
        (("hca", "data", "0.5", "-o"), "new.npy"),
    ],
)
def test_a_full_disk(folder, full_disk, arguments, name):
    code, out, err = finish(start(folder, *arguments, full_disk / name))
    assert (code, out) == (1, "")
    assert f"no space is left to write {full_disk / name}" in in_two_lines(err)
    assert list(full_disk.iterdir()) == []


# ------------------------------------------------------------------------------------------------------------- terminal
def on_a_terminal(folder, *arguments):
    """Run a command whose standard error is a terminal; return what that shows."""
    ours, theirs = pty.openpty()
    process = start(folder, *arguments, stderr=theirs)
    os.close(theirs)
    shown = b""
    while process.poll() is None or select.select([ours], [], [], 0.2)[0]:
        if select.select([ours], [], [], 0.2)[0]:
            try:
                shown += os.read(ours, 65536)
            except OSError:  # its other end is closed
                break
    os.close(ours)
    code, out, _ = finish(process)
    assert code == 0
    return out, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def test_progress_is_for_terminals(folder):
    out, shown = on_a_terminal(folder, *CLUE, "--workers", 1, "--chunks", 500, "--json")
    assert json.loads(out)["clusters"] > 0
    assert "starting 1 worker" in shown
    assert re.search(r"\d+/\d+ tasks +[\d,.]+M? hits/s +\d+:\d\d", shown)
    assert re.search(r"\d:\d\d left", shown)


@pytest.mark.parametrize("width", [50, 60, 80, 120])
def test_a_narrow_terminal_cuts_no_figure(width):
    console = Console(file=StringIO(), force_terminal=True, width=width)
    with bar("clustering hits.parquet", console) as work:
        work.begin("clustering hits.parquet: density of chunks, as some call it", 117, "tasks", (123_456, "hits"))
        work.at(3)
        time.sleep(0.05)  # a rate needs some time
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())
    assert re.search(r"3/117 tasks +[\d,.]+M? hits/s +\d:\d\d, \d+:\d\d left", shown)


def test_quiet_shows_no_progress(folder):
    assert on_a_terminal(folder, *CLUE, "--quiet") == ("", "")


def test_progress_of_a_file_counts_hits(folder):
    _, shown = on_a_terminal(folder, "events", "run.tpx3", "--dt-max", 200, "--json")
    assert re.search(r"[\d,]+/20,000 hits", shown)


# ---------------------------------------------------------------------------------------------------------------- start
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["clue", "--help"], ["clu"]])
def test_what_needs_no_data_imports_no_large_library(arguments):
    names = ["numpy", "numba", "dask", "distributed", "xarray", "pandas", "sklearn", "holoviews", "panel"]
    code = f"""
import sys
from daskclust.cli import _run, app
_run.run(app, {arguments})
sys.exit(str([name for name in {names} if name in sys.modules]))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "[]"
