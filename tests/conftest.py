"""Fixtures and settings that all tests share."""

from __future__ import annotations

import faulthandler
import gc
import json
import logging
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import dask
import pytest
from cases import lanes
from hypothesis import HealthCheck, settings

from daskclust import datasets
from daskclust.core.device import kernels as jit
from daskclust.core.device.machine_code import compiling

OTHER_PROGRAMS = Path(__file__).parent / "data"
_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile("quick", deadline=None, max_examples=20, suppress_health_check=_QUIET, print_blob=True)
settings.register_profile("long", settings.get_profile("quick"), max_examples=1000)
settings.load_profile(lanes.in_long_lane("long", otherwise="quick"))


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Show what libraries deprecate, instead of failing: versions that come after this code deprecate more.

    In `.ci/run`, which says so, it is an error: with pinned versions everywhere, with the newest ones within daskclust.
    """
    faulthandler.enable(os.dup(2), all_threads=False)  # pytest would show all, of a Dask cluster some hundred lines
    dask.config.set({"distributed.worker.profile.enabled": False})  # it reads frames of running threads
    versions = os.environ.get("DASKCLUST_VERSIONS")
    names = (
        "DeprecationWarning",
        "FutureWarning",
        "PendingDeprecationWarning",
        "numpy.exceptions.VisibleDeprecationWarning",
    )
    for name in names if versions != "pinned" else ():
        config.addinivalue_line("filterwarnings", f"default::{name}")
        if versions == "newest":
            config.addinivalue_line("filterwarnings", f"error::{name}:daskclust")
    # tornado's, on Python 3.12 and newer, and bokeh's, of newer versions of pandas; the last line wins
    config.addinivalue_line("filterwarnings", "ignore:There is no current event loop")
    config.addinivalue_line("filterwarnings", "ignore:The inplace keyword in DataFrame")
    logging.disable()  # the one line on compiling is said now, and not among the records that some test demands
    compiling._log_once()
    logging.disable(logging.NOTSET)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let no kernel be compiled or loaded while tests are collected: each process would do it for all tests."""
    words = "a kernel runs while tests are collected; fit in a test or in a fixture"
    with mock.patch.object(jit, "_njit", side_effect=RuntimeError(words)):
        return (yield)


@pytest.fixture(scope="module", params=["common", pytest.param("odd", marks=pytest.mark.slow)])
def shapes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Draw points of common dimensions and dtypes; of the others in a second run."""
    with mock.patch.object(lanes, "drawn", request.param):
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real data beside the repository; skip where it is not, but never in CI."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail(f"no test data at {folder}")
        pytest.skip(f"no test data at {folder}")
    return folder


@pytest.fixture(scope="session")
def mahalanobis_file(request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """Return what finds a file of `mhca` or gmhclust by its name: in `tests/data`, or with the real data."""

    def find(name: str) -> Path:
        own = OTHER_PROGRAMS / "mahalanobis" / name
        return own if own.is_file() else request.getfixturevalue("shared_data") / "cytometry" / "reference" / name

    return find


@pytest.fixture(scope="session")
def reference_files(shared_data: Path) -> Path:
    """Return the folder with the outputs of the authors' 2020 program."""
    return shared_data / "clue" / "reference"


@pytest.fixture(autouse=True)
def one_dask_thread():
    """Run dask in this thread where a test does not choose: quicker for small graphs, and easy to debug.

    Chunks stay as small as tests make them.
    """
    with dask.config.set({"scheduler": "synchronous", "daskclust.task-seconds": 0}):
        yield


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Return what sets the number of threads of kernels; it is put back."""
    numba = pytest.importorskip("numba")  # some tests run where it is not installed, on machine code alone
    before = numba.get_num_threads()
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.fail("this machine gives numba one thread; set NUMBA_NUM_THREADS=2")
    yield numba.set_num_threads
    numba.set_num_threads(before)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a Chromium; skip where there is none, but not in CI."""
    from app.page import chromium

    try:
        with chromium() as found:
            yield found
    except LookupError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def hits_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of 3000 hits of a calorimeter."""
    from cases.explorer import written

    ds = datasets.calorimeter(3, 1000, size=120.0, rng=0).drop_vars("truth")
    return written("clue", ds, tmp_path_factory.mktemp("explorer"))


@pytest.fixture(scope="session")
def explorer_address(hits_file: Path) -> Iterator[str]:
    """Return where ``daskclust explore`` serves these hits."""
    from app.page import serving

    with serving(hits_file) as found:
        yield found


@pytest.fixture
def page(browser: Any, explorer_address: str) -> Iterator[Any]:
    """Return the explorer's page of these hits, just opened."""
    from app.page import opened

    with opened(browser, explorer_address) as tab:
        yield tab


@pytest.fixture
def command(monkeypatch, capsys):
    """Return a function that runs the command line and gives exit code, output and errors.

    Errors are without the line on compiling, which depends on what ran before.
    """

    from daskclust.cli import main
    from daskclust.core.device.machine_code.compiling import COMPILING

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["daskclust", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as exit_:
            code = exit_.code or 0
        shown = capsys.readouterr()
        return code, shown.out, shown.err.replace(f"{COMPILING}\n", "")

    return call


@pytest.fixture
def elsewhere(tmp_path):
    """Return a scheduler and its worker, in processes of their own with a folder of their own: address, process."""
    from distributed import Client

    file, folder = tmp_path / "scheduler.json", tmp_path / "elsewhere"
    folder.mkdir()
    program = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    options = {"cwd": folder, "env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*program, "--interface", "lo", "--scheduler-file", file], **options) as scheduler:
        while not file.exists() or not file.read_text().endswith("}"):
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        program = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"]
        with subprocess.Popen([*program, "--no-dashboard"], **options) as worker:
            with Client(address, timeout=300) as client:
                client.wait_for_workers(1)  # for as long as a busy machine takes
            yield address, scheduler
            worker.kill()
            scheduler.kill()
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()  # sockets by which distributed's client tried to reach a scheduler that was killed
