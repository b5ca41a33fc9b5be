"""Compiling is told to who listens, shown where nobody does, and left out of seconds; what is loaded is neither."""

import json
import logging
import os
import pty
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from daskclust import systems
from daskclust.core.device import kernels
from daskclust.core.device.machine_code import compiling
from daskclust.core.device.machine_code.compiling import COMPILING

EVENTS = """
from daskclust import EventBuilder, datasets
EventBuilder(100.0).fit(datasets.timepix(300, rng=0))
"""


class Dispatcher:
    """What numba's does: it looks into the cache, and takes a second to compile what is not there."""

    def __init__(self, clock, cached=False):
        self._cache = SimpleNamespace(load_overload=lambda *_: "code" if cached else None)
        self._clock, self._known = clock, set()

    def compile(self, signature):
        if signature not in self._known and self._cache.load_overload(signature, "target") is None:
            self._clock.now += 1.0
        self._known.add(signature)


@pytest.fixture
def clock(monkeypatch):
    """A clock that only compiling, and tests, move on."""
    found = SimpleNamespace(now=100.0)
    monkeypatch.setattr(compiling, "time", SimpleNamespace(perf_counter=lambda: found.now))
    monkeypatch.setattr(compiling, "seconds_of", {compiling.THIS_PROCESS: 0.0})
    monkeypatch.setattr(compiling, "_unheard", {})
    return found


@pytest.fixture
def told():
    """What this thread compiles: threads that tests before have left may compile, too."""
    found, mine = [], threading.get_ident()
    with compiling.listening(lambda told: found.append(told) if threading.get_ident() == mine else None):
        yield found


# ------------------------------------------------------------------------------------------------------------ listeners
def test_a_kernel_is_told_as_it_begins_and_ends(clock, told, caplog):
    """What is loaded is counted, and not told; the logger has each, too."""
    with compiling.expecting(3), caplog.at_level(logging.INFO, "daskclust"):
        for cached in (False, True, False):
            compiling.watched(Dispatcher(clock, cached)).compile("a")
    assert [(each.number, each.is_busy, each.seconds - told[0].seconds) for each in told] == [
        (1, True, 0), (1, False, 1), (3, True, 1), (3, False, 2),
    ]  # fmt: skip
    assert caplog.messages[0] == str(told[0]) == "compiling kernels for this machine, once: 1 of about 3"


def test_numba_tells_what_it_compiles_and_not_what_it_loads(told, kernel_folder, tmp_path):
    kernel_folder(tmp_path)

    def add(i, values):
        values[i] += 1

    for times in (1, 1, 2):  # the second loads what the first has kept
        fresh = kernels.kernel(add)
        fresh.run(3, np.zeros(3, np.float32 if times == 1 else np.float64))
        assert sum(each.is_busy for each in told) == times


@pytest.mark.parametrize("name", systems.SYSTEMS)
def test_plans_know_about_how_many_kernels_they_need(name, monkeypatch):
    found, prepared = set(), kernels.Kernel.prepared

    def counted(self, args):
        found.add((self.full_name, kernels.flatten(args)[0]))
        return prepared(self, args)

    monkeypatch.setattr(kernels.Kernel, "prepared", counted)
    expected = []
    for room in ("core.run.engine", "hdbscan.forest"):
        name_there = f"daskclust.{room}.expecting"
        monkeypatch.setattr(name_there, lambda n: expected.append(n) or compiling.expecting(n))
    system = systems.SYSTEMS[name]
    sample = system.sample(240, system.runs[0], np.float64)
    system.estimator(**system.runs[0].parameters).fit(sample.X, **sample.columns)
    assert len(expected) == 1
    assert abs(expected[0] - len(found)) <= 2


# --------------------------------------------------------------------------------------------------------------- clocks
def test_a_clock_stands_still_meanwhile(clock, told):
    watch = compiling.Clock()
    assert watch.aside == ""
    clock.now += 0.5
    compiling.watched(Dispatcher(clock)).compile("a")
    assert (watch.seconds, watch.compiling, watch.aside) == (0.5, 1.0, "compiling 1.0 s, once")
    assert compiling.Clock().compiling == 0


def test_of_workers_the_one_that_compiles_longest_counts(clock, told):
    def hear(worker, seconds, *, is_busy):
        compiling.heard(worker, compiling.Compiling(2, 0, is_busy=is_busy, kernels=2, seconds=seconds))

    hear("one", 8.0, is_busy=True)
    hear("one", 9.0, is_busy=False)
    watch = compiling.Clock()
    hear("one", 10.0, is_busy=False)
    hear("two", 100.0, is_busy=True)  # which it has compiled for other clients
    hear("two", 103.0, is_busy=False)
    clock.now += 4.0
    assert (watch.compiling, watch.seconds) == (3.0, 1.0)


# ---------------------------------------------------------------------------------------- where nobody shows progress
class Shell:
    """A notebook's, with what it shows below the cell."""

    kernel = "python3"

    def __init__(self):
        self.shown, self.events, self._ended = [], self, []

    def register(self, event, call):
        self._ended.append((event, call))

    def unregister(self, event, call):
        self._ended.remove((event, call))

    def display(self, shown, **_):
        self.shown.append(shown["text/html"])
        return SimpleNamespace(update=self.display)

    def end_cell(self):
        for event, call in list(self._ended):
            assert event == "post_run_cell"
            call(None)


def test_a_notebook_has_a_bar_and_then_a_sentence(clock, monkeypatch):
    shell = Shell()
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=shell.display))
    for cell in range(2):
        shell.shown.clear()
        with compiling.expecting(3):
            for signature in ("a", "b"):
                compiling.watched(Dispatcher(clock)).compile(signature)
        bars = [each for each in shell.shown if "<progress" in each]
        assert ['value="1"' in each and 'max="3"' in each for each in bars] == [False, True, True, False], cell
        assert "once: 2 of about 3" in shell.shown[-1]
        shell.end_cell()
        assert shell.shown[-1] == "<div>compiled 2 kernels for this machine in 2.0 s, once</div>"


@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING, logging.ERROR])
@pytest.mark.parametrize("where", ["a script", "a terminal", "a notebook", "a worker"])
def test_a_script_has_one_line_of_the_log(clock, caplog, monkeypatch, capsys, where, level):
    """And the others none; above the level of warnings nothing is shown anywhere."""
    shell = Shell()
    if where == "a notebook":
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
        monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=shell.display))
    monkeypatch.setattr("multiprocessing.parent_process", lambda: "the client" if where == "a worker" else None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: where == "a terminal")
    compiling._log_once.cache_clear()
    compiling._notebook.cache_clear()
    with caplog.at_level(level, "daskclust"):
        for signature in ("a", "b"):
            compiling.watched(Dispatcher(clock)).compile(signature)
    shell.end_cell()
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert lines == ([COMPILING] if where == "a script" and level <= logging.WARNING else [])
    assert bool(capsys.readouterr().err) == (where == "a terminal" and level <= logging.WARNING)
    assert bool(shell.shown) == (where == "a notebook" and level <= logging.WARNING)


def run(code, folder, stderr=subprocess.PIPE):
    """Run lines in a process with an empty cache and without shipped machine code."""
    path = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder), "DASKCLUST_SHIPPED": "0"}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True, check=True
    )


@pytest.fixture(scope="module")
def on_a_terminal(tmp_path_factory):
    """What a first and a second process show in a terminal, and the folder that has the kernels then."""
    folder, shown = tmp_path_factory.mktemp("cache"), []
    for _ in range(2):
        ours, theirs = pty.openpty()
        run(EVENTS, folder, theirs)
        os.write(theirs, b"end")
        text = ""
        while not text.endswith("end"):
            text += os.read(ours, 65536).decode()
        shown.append(text)
        os.close(ours)
        os.close(theirs)
    return folder, shown


@pytest.mark.slow
def test_a_terminal_has_a_line_that_goes(on_a_terminal):
    _, (first, second) = on_a_terminal
    *lines, last = first.split("\r")
    assert "compiling kernels for this machine, once: 2 of about 5\x1b[K" in lines
    assert last == "\x1b[K" + "end"
    assert second == "end"


@pytest.mark.slow
def test_elsewhere_a_command_and_a_script_have_one_line(on_a_terminal, tmp_path):
    hits = "datasets.timepix(300, rng=0).to_dataframe()[['x', 'y', 'toa', 'tot']].to_csv('hits.csv', index=False)"
    command = f"import os; os.chdir({str(tmp_path)!r})\nfrom daskclust import datasets\n{hits}\n"
    command += "import sys\nsys.argv[1:] = ['events', 'hits.csv', '--dt-max', '100', '--json']\n"
    command += "from daskclust.cli import main\nmain()"
    first, second = (run(command, tmp_path / "cache") for _ in range(2))
    assert first.stderr == f"{COMPILING}\n"
    assert second.stderr == ""
    times = [json.loads(each.stdout)["seconds_compiling"] for each in (first, second)]
    assert times[0] > 0
    assert times[1] == 0
    quiet = "import logging\nlogging.getLogger('daskclust').setLevel(logging.ERROR)\n"
    handled = "import logging\nlogging.basicConfig(format='%(name)s: %(message)s')\n"
    lines = {"": COMPILING, quiet: "", handled: f"daskclust: {COMPILING}"}
    for k, (setup, line) in enumerate(lines.items()):
        folder = tmp_path / f"script {k}"
        assert [run(setup + EVENTS, folder).stderr for _ in range(2)] == [line and f"{line}\n", ""]


def test_a_bar_gives_way_to_kernels_and_comes_back(clock, monkeypatch):
    from io import StringIO

    from rich.console import Console

    from daskclust.cli._progress import progress

    console = Console(file=StringIO(), force_terminal=True, width=120)
    with progress("reading hits", console) as work, compiling.expecting(4):
        work.begin("clustering hits")
        dispatcher = Dispatcher(clock)
        compile_ = dispatcher.compile

        def compile_and_look(signature):
            compile_(signature)
            work._bar.refresh()

        dispatcher.compile = compile_and_look
        compiling.watched(dispatcher).compile("a")
        work._bar.refresh()
    shown = console.file.getvalue()
    assert "compiling kernels for this machine, once: 1 of about 4" in shown
    assert shown.rindex("clustering hits") > shown.rindex("compiling kernels")
