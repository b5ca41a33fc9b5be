"""The command line and the system: exit codes, signals, pipes, full disks, terminals."""

import functools
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
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from daskclust import io
from daskclust.cli._console import errors
from daskclust.cli._progress import progress
from daskclust.core.device.machine_code.compiling import COMPILING

HANGS = 600  # s; nothing that ends takes as long, on whatever machine
MAIN = "from daskclust.cli import program; program()"
SLOW_DISK = """
import os, sys, threading, time
real = os.fsync
def fsync(descriptor):  # what is written waits for the disk, before it gets its name
    real(descriptor)
    if threading.current_thread() is threading.main_thread():  # at the end, not meanwhile
        print("waiting", file=sys.stderr, flush=True)
        time.sleep(3600)
os.fsync = fsync
"""

pytestmark = pytest.mark.slow


STARTED = []


@pytest.fixture(autouse=True)
def heeds_interrupts():
    """Jobs in a shell's background ignore some signals, and so do their children: not those of one that handles them.

    What a test that failed has left at work is ended.
    """
    numbers = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
    while STARTED:
        STARTED.pop().kill()


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
    return process.returncode, out, without_compiling(err)


def without_compiling(err):
    """Leave out the line that a first run has, before which other tests may have come."""
    return err and err.replace(f"{COMPILING}\n", "")


def in_two_lines(err):
    what, hint = err.splitlines()
    assert what.startswith("error: ")
    assert hint.startswith("hint: ")
    return what


CLUE = ("clue", "hits.parquet", "--dc", 2, "--rhoc", 0.3)


# ----------------------------------------------------------------------------------------------------------- exit codes
def test_python_dash_m_is_the_command_and_tells_of_no_progress_in_a_pipe(made):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = functools.partial(subprocess.run, cwd=made, env=environment, capture_output=True, text=True, check=False)
    done = run([sys.executable, "-m", "daskclust", *map(str, CLUE), "--json"])
    assert (done.returncode, without_compiling(done.stderr)) == (0, "")
    assert json.loads(done.stdout)["clusters"] > 0
    done = run([sys.executable, "-m", "daskclust", "clu"])
    assert (done.returncode, done.stdout) == (2, "")
    assert "no such command 'clu'" in in_two_lines(done.stderr)


# -------------------------------------------------------------------------------------------------------------- signals
@pytest.mark.parametrize(
    ("number", "workers"),
    [(signal.SIGINT, 1), (signal.SIGTERM, 1), (signal.SIGHUP, 0), (signal.SIGQUIT, 0)],
)
def test_a_signal_leaves_no_output_and_no_process(made, tmp_path, number, workers):
    target = tmp_path / "new.parquet"
    before = {} if workers else {target: b"earlier"}  # a file that was there stays
    for path, data in before.items():
        path.write_bytes(data)
    process = start(made, *CLUE, "-o", target, "--workers", workers, before=SLOW_DISK)
    while (line := process.stderr.readline()) == f"{COMPILING}\n":
        pass
    assert line == "waiting\n"
    assert len(list(tmp_path.iterdir())) == len(before) + 1  # under another name
    children = psutil.Process(process.pid).children(recursive=True)
    assert bool(children) == bool(workers)
    os.killpg(process.pid, number)  # as a terminal does at Ctrl-C
    code, out, err = finish(process)
    assert code == (131 if number == signal.SIGQUIT else -number)  # a shell calls it 128 + number
    assert out == ""
    told = f"error: {'interrupted' if number == signal.SIGINT else 'stopped'} ({number.name})"
    assert told in err.splitlines()
    if number in (signal.SIGINT, signal.SIGTERM):  # others end Python's own process of multiprocessing, which says so
        assert in_two_lines(err) == told
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    _, alive = psutil.wait_procs(children, timeout=HANGS)
    assert not alive


def test_a_terminal_that_goes_away_ends_a_readout_with_its_tables(made, tmp_path):
    """Nothing can be shown any more; an ssh that drops is such a one."""
    ours, theirs = pty.openpty()
    more = ("--dt-max", 200, "--follow", "--table", "c.parquet", "-o", "h.csv")
    process = start(tmp_path, "events", made / "run.tpx3", *more, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    shown = b""
    while b" clusters" not in shown:  # a round of all that there is; the last ones wait for later hits
        shown += os.read(ours, 65536)
    os.close(ours)
    process.send_signal(signal.SIGHUP)
    assert process.wait(HANGS) == -signal.SIGHUP
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.parquet", "h.csv"]
    assert io.read_hits(tmp_path / "h.csv").sizes["hit"] == 20_000
    assert "SIGHUP" in pq.read_metadata(tmp_path / "c.parquet").metadata[b"daskclust"].decode()


def test_below_nohup_a_terminal_that_goes_away_ends_nothing(made, tmp_path):
    process = start(
        tmp_path, "events", made / "run.tpx3", "--dt-max", 200, "--follow", "-o", "h.csv",
        before="import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)",
    )  # fmt: skip
    while not list(tmp_path.iterdir()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert (code, err) == (0, "")


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
# What is raised within a finalizer goes no further, and a server has many.
FINALIZERS = (
    BUSY_LOOP.replace("SECONDS", "1")
    + """
class Work:
    def __del__(self):
        work_on()
work_on = work
def work():
    for _ in range(60):  # SIGTERM cuts each short
        Work()
"""
)
# Nor does what is raised while a finalizer's exception is looked at, which takes a while on a busy machine.
SLOW_TIMERS = """
import signal, threading, time
def slowly(function):
    def slow(*arguments):
        function(*arguments)
        time.sleep(0.2)
    return slow
threading.Timer.start, signal.setitimer = slowly(threading.Timer.start), slowly(signal.setitimer)
"""


@pytest.mark.parametrize(
    ("before", "number", "code"),
    [
        pytest.param(BUSY_LOOP.replace("SECONDS", "2"), signal.SIGINT, 0, id="after its work"),
        pytest.param(BUSY_LOOP.replace("SECONDS", "3600"), signal.SIGTERM, -signal.SIGTERM, id="at once"),
        pytest.param(SLOW_TIMERS + FINALIZERS, signal.SIGTERM, -signal.SIGTERM, id="in finalizers, busy machine"),
    ],
)
def test_the_explorer_ends_while_it_is_at_work(made, before, number, code):
    process = start(made, "explore", "hits.parquet", "--no-browser", before=before)
    assert "http://localhost" in process.stdout.readline()
    while "at work" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    assert process.wait(HANGS) == code
    finish(process)


# ------------------------------------------------------------------------------------------------------ pipes and disks
def test_a_reader_that_has_enough(made):
    """Merges are printed as gmhclust does; the rest does not fit into the pipe."""
    process = start(made, "hca", "data", "--threshold", "0.5", "--merges", "-", text=False)
    assert len(process.stdout.readline().split()) == 3
    process.stdout.close()
    with process.stderr as err:
        assert err.read() == b""
    assert process.wait() == 141


@pytest.mark.parametrize(
    "line", [("hca", "data", "--threshold", "0.5", "--merges", "-"), (*CLUE, "--json"), ("info",), ("-h",)]
)
def test_a_full_disk_behind_standard_output(command, made, monkeypatch, line):
    monkeypatch.chdir(made)
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        code, _, err = command(*line)
    assert code == 1
    assert in_two_lines(err.partition("Mahalanobis")[0] or err) == "error: no space left on device"


@pytest.fixture
def full_disk(tmp_path):
    """Return a folder on a disk of 64 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", place]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ((*CLUE, "-o"), "new.h5"),
        (("dbscan", "hits.parquet", "--eps", 2, "-o"), "new.zarr"),
        (("events", "run.tpx3", "--dt-max", 200, "-o"), "new.parquet"),
        (("hca", "data", "--threshold", "0.5", "--merges"), "new.npy"),
    ],
)
def test_a_full_disk(command, made, full_disk, monkeypatch, line, name):
    monkeypatch.chdir(made)
    code, out, err = command(*line, full_disk / name)
    assert (code, out) == (1, "")
    assert in_two_lines(err) == f"error: no space left on device: {full_disk / name}"
    assert list(full_disk.iterdir()) == []


@pytest.mark.parametrize("number", range(2))
def test_a_full_disk_below_a_readout(command, made, full_disk, tmp_path, monkeypatch, number):
    """What is complete stays on the full disk, in parts where there is no room for the file; the other output, too."""
    rng = np.random.default_rng(number)
    monkeypatch.setattr("daskclust.cli.pixels.in_time.ROUND", 500)
    monkeypatch.setattr("daskclust.io.timepix.sources._BLOCK", 4000)  # bytes, of 500 hits
    monkeypatch.setattr("daskclust.io.outputs.growing._ROWS", int(rng.integers(20, 400)))
    is_hits, suffix = bool(number % 2), rng.choice([".parquet", ".csv", ".h5"])
    full, free = full_disk / f"full{suffix}", tmp_path / "free.parquet"
    outputs = ("-o", full, "--table", free) if is_hits else ("--table", full, "-o", free)
    line = ("events", made / "run.tpx3", "--follow", "--idle", 0.2, "--dt-max", 200, *outputs, "--json")
    with open(full_disk / "others", "wb") as others:
        others.write(bytes(int(rng.integers(0, 30_000))))
    code, out, err = command(*line)
    assert code == 1
    assert f"error: no space left on device: {full}\n" in err
    told = json.loads(out)
    kept = Path(told["output" if is_hits else "table"])
    assert kept.name == f"{full.name}.parts.parquet"
    rows = pd.concat([pd.read_parquet(part) for part in sorted(kept.iterdir())])
    assert len(rows) == told["output_rows" if is_hits else "table_rows"] > 0
    assert f"{len(rows):,} rows in {kept}" in told["error"]["hint"]
    assert "free some" in told["error"]["hint"]
    table, hits = tmp_path / "t.parquet", tmp_path / "h.parquet"
    assert command("events", made / "run.tpx3", "--dt-max", 200, "--table", table, "-o", hits)[0] == 0
    first, every = (pd.read_parquet(path) for path in ((hits, table) if is_hits else (table, hits)))
    pd.testing.assert_frame_equal(rows.reset_index(drop=True), first.iloc[: len(rows)])
    other = pd.read_parquet(free)
    if is_hits:  # the end may cut the last clusters
        about = json.loads(pq.read_metadata(free).metadata[b"daskclust"])["attrs"]
        is_whole = (other["toa_last"] < about["complete_to"]).values
        assert is_whole.sum() > 20
        pd.testing.assert_frame_equal(other[is_whole], every.iloc[: len(other)][is_whole])
    else:
        assert len(other) == told["hits"]
        np.testing.assert_array_equal(np.sort(other["toa"]), np.sort(every["toa"])[: len(other)])


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


def test_progress_is_for_terminals(made):
    out, shown = on_a_terminal(made, *CLUE, "--workers", 1, "--chunks", 500, "--json")
    assert json.loads(out)["clusters"] > 0
    assert "starting 1 worker" in shown
    assert re.search(r"\d+/\d+ tasks +[\d,.]+M? hits/s +\d+:\d\d", shown)
    assert re.search(r"\d:\d\d left", shown)


def test_a_narrow_terminal_cuts_no_figure():
    console = Console(file=StringIO(), force_terminal=True, width=60)
    with progress("clustering hits.parquet", console) as work:
        work.begin("clustering hits.parquet: density of chunks, as some call it", 117, "tasks", (123_456, "hits"))
        work.at(3)
        time.sleep(0.05)  # a rate needs some time
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())
    assert re.search(r"3/117 tasks +[\d,.]+M? hits/s +\d:\d\d:\d\d, \d+:\d\d:\d\d left", shown)


def test_progress_of_a_file_counts_hits(command, made, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setattr(errors, "is_interactive", True)
    line = ("events", made / "run.tpx3", "--dt-max", 200)
    assert re.search(r"[\d,]+/20,000 hits", command(*line, "--json")[2])
    assert command(*line, "--quiet") == (0, "", "")


# ---------------------------------------------------------------------------------------------------------------- start
@pytest.mark.parametrize(
    ("libraries", "lines"),
    [
        ("numpy numba dask distributed xarray pandas sklearn holoviews panel", ["--help", "clue --help", "clu"]),
        (
            "numba xarray pandas pyarrow dask distributed sklearn holoviews panel",
            [
                *(f"{line} none.csv" for line in ("clue --dc 1 --rhoc 1", "dbscan --eps 1", "fof --b 1", "explore")),
                *(f"{line} none.tpx3" for line in ("events --dt-max 1", "hca --threshold 1")),
                "clue hits.parquet --dc -1 --rhoc 1",
                "events run.tpx3 --dt-max -1",
                "dbscan hits.parquet --eps 1 --min-samples 0",
                "fof hits.parquet --b -1",
                "hca cells.parquet --threshold 7.5",
                "clue hits.parquet --dc 1 --rhoc 1 -o none/out.csv",
            ],
        ),
        (
            "dask.array distributed sklearn holoviews panel",
            [
                "clue hits.parquet --dc 1 --rhoc 1 -o labels.parquet --table c.parquet",
                "events run.tpx3 --dt-max 200 --table e.parquet",
                "dbscan hits.parquet --eps 1 --coordinates x,y -o labels.csv",
                "fof snapshot.hdf5 --b 0.2",
            ],
        ),
    ],
)
def test_a_command_imports_no_large_library_that_it_does_not_need(libraries, lines, made, tmp_path):
    code = f"""
import sys
from daskclust.cli import _run, app
for line in {lines}:
    print(line, _run.run(app, line.split()))
sys.exit(str([name for name in {libraries.split()} if name in sys.modules]))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = [sys.executable, "-c", code]
    done = subprocess.run(program, cwd=made, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "[]"
    status = {"clu": 2, "fof snapshot.hdf5 --b 0.2": 0}.get(lines[-1], 1)
    assert f"{lines[-1]} {status}" in done.stdout  # it has done its work
