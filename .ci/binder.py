"""Start what Binder starts, and use it as a reader would: `python .ci/binder.py ENVIRONMENT [--shots FOLDER]`.

ENVIRONMENT is the folder of a virtual environment made of binder/environment.yml. In a home and a folder of its own,
binder/postBuild is run, then JupyterLab by binder/start under an address like that of a hub. Chromium opens it: the
notebooks must be listed on the left, the panels of Dask's dashboard laid out on the right; notebook 05 is run until it
has a cluster, when the panels must come alive, then to its end, without an error in any cell. Needs playwright and
Chromium.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = "05_cluster.ipynb"
PREFIX = "/user/reader/"
TOKEN = "reader"
PANELS = ("Task Stream", "Progress", "Workers Memory")
CHROMIUM = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip


# Bokeh has one flag in a process for whether properties are checked and converted. Dask's dashboard, in a thread of the
# notebook's kernel, switches it off while it updates: a picture made just then has a title that HoloViews cannot use.
RACE = "'str' object has no attribute 'update'"


def main() -> None:
    """Build, start, look, run; once more where a picture was made while the dashboard updated."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment", type=Path)
    parser.add_argument("--shots", type=Path, help="folder for screenshots")
    options = parser.parse_args()
    try:
        _use(options)
    except AssertionError as error:
        if RACE not in str(error):
            raise
        print(f"once more: {RACE}, in a picture that was made while Dask's dashboard updated")
        _use(options)


def _use(options: argparse.Namespace) -> None:
    """Build, start, look, run, in a home and a folder of its own."""
    with tempfile.TemporaryDirectory() as home, contextlib.ExitStack() as stack:
        folder = Path(home, "repository")
        shutil.copytree(ROOT / "notebooks", folder / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
        settings = _settings(options.environment.absolute(), home)
        with _timed("postBuild"):
            subprocess.run([ROOT / "binder" / "postBuild"], cwd=folder, env=settings, check=True)
        with _timed("start"):
            address = stack.enter_context(_jupyterlab(folder, settings))
        playwright = stack.enter_context(sync_playwright())
        path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        chromium = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM))
        stack.callback(chromium.close)
        page = chromium.new_page(viewport={"width": 1600, "height": 1000})
        page.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)

        def shoot(name: str) -> None:
            if options.shots:
                options.shots.mkdir(parents=True, exist_ok=True)
                page.screenshot(path=options.shots / f"{name}.png")

        try:
            with _timed("layout"):
                _look(page, f"{address}lab?token={TOKEN}")
            shoot("layout")
            with _timed(NOTEBOOK):
                _run(page, folder / "notebooks" / NOTEBOOK, lambda: shoot("panels"))
        finally:
            shoot("end")
        print(f"{NOTEBOOK} ran through JupyterLab, with the dashboard beside it")


def _settings(environment: Path, home: str) -> dict[str, str]:
    """Return the environment variables that a container of Binder has, as far as they matter here."""
    return {
        **{name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")},
        "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": home,
        "CPU_LIMIT": "2",
        "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
    }


@contextlib.contextmanager
def _jupyterlab(folder: Path, settings: dict[str, str]) -> Iterator[str]:
    """Serve JupyterLab, and return its address once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}{PREFIX}"
    command = [
        ROOT / "binder" / "start", "jupyter", "lab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
        f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--ServerApp.base_url={PREFIX}",
        f"--IdentityProvider.token={TOKEN}",
    ]  # fmt: skip
    with Path(settings["HOME"], "jupyterlab.txt").open("w+") as log:
        server = subprocess.Popen(
            command, cwd=folder, env=settings, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            _wait(lambda: server.poll() is not None or _answers(f"{address}api"), 60, "JupyterLab does not answer")
            if server.poll() is not None:
                raise RuntimeError("JupyterLab ended")
            yield address
        except BaseException:
            log.seek(0)
            print(log.read())
            raise
        finally:
            server.terminate()  # ends its kernels, and these their workers
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(10)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)  # a thread of its own may keep it from ending


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except (OSError, urllib.error.URLError):
        return False


def _look(page: Page, url: str) -> None:
    """Open JupyterLab, and check what is where."""
    page.goto(url)
    expect(page.locator("#jupyterlab-splash")).to_have_count(0)
    listed = page.locator(".jp-DirListing-item .jp-DirListing-itemText")
    expect(listed.first).to_be_visible()
    names = [name.strip() for name in listed.all_inner_texts()]
    notebooks = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert sorted(set(names) & set(notebooks)) == notebooks, names
    left = _tab(page, NOTEBOOK)
    assert _right_edge(listed.first) <= left["x"]
    for panel in PANELS:
        assert _tab(page, panel)["x"] > left["x"] + 0.4 * 1600, f"{panel} is not on the right"


def _tab(page: Page, label: str) -> Any:
    tab = page.locator("#jp-main-dock-panel .lm-TabBar-tab", has_text=label)
    expect(tab).to_be_visible()
    return tab.bounding_box()


def _right_edge(locator: Any) -> float:
    box = locator.bounding_box()
    return float(box["x"] + box["width"])


def _run(page: Page, path: Path, with_panels: Callable[[], None]) -> None:
    """Run all cells: as soon as there is a cluster the panels must come alive, and the saved notebook have no error."""
    page.locator("#jp-main-dock-panel .lm-TabBar-tab", has_text=path.name).click()
    expect(page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")).to_be_visible()
    cells = json.loads(path.read_text())["cells"]
    starting = next(k for k, cell in enumerate(cells) if "workers.start(" in "".join(cell["source"]))
    page.locator(".jp-Notebook-cell").first.click(position={"x": 30, "y": 10})  # beside its text, and any link in it
    for _ in range(starting + 1):  # the panels have a cluster at rest: later cells keep the kernel's scheduler busy
        page.keyboard.press("Shift+Enter")
    for panel in ("task-stream", "progress", "workers-memory"):
        _look_at_panel(page, panel)
    with_panels()
    page.locator(".lm-MenuBar-itemLabel", has_text="Run").click()
    page.locator(".lm-Menu-itemLabel", has_text="Run Selected Cell and All Below").first.click()

    def ended() -> bool:
        page.keyboard.press("Control+s")
        code = _code_cells(path)
        return any(map(_errors, code)) or all(cell["execution_count"] for cell in code)

    _wait(ended, 180, f"{path.name} did not end")
    errors = [error for cell in _code_cells(path) for error in _errors(cell)]
    assert not errors, "\n\n".join(errors)
    link = f"{PREFIX}proxy/8787/status"
    assert any(link in json.dumps(cell["outputs"]) for cell in _code_cells(path)), f"no link to {link}"


def _look_at_panel(page: Page, panel: str) -> None:
    """Wait for a figure; a panel without one is loaded again once, as a reader would, and that is said."""
    frame = page.locator(f'iframe[src*="{PREFIX}proxy/8787/individual-{panel}"]')
    expect(frame).to_be_visible(timeout=120_000)
    figure = frame.content_frame.locator(".bk-Figure, .bk-Canvas, canvas").first
    try:
        expect(figure).to_be_visible()
    except AssertionError:
        print(f"{panel} shows no figure but:\n{frame.content_frame.locator('html').inner_html()[:2000]}", flush=True)
        frame.evaluate("frame => { frame.src = frame.src }")
        expect(figure).to_be_visible()


def _code_cells(path: Path) -> list[dict[str, Any]]:
    with contextlib.suppress(json.JSONDecodeError):  # it is being written
        return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    time.sleep(0.5)
    return _code_cells(path)


def _errors(cell: dict[str, Any]) -> list[str]:
    errors = [out for out in cell["outputs"] if out["output_type"] == "error"]
    return ["\n".join([*out["traceback"], f"{out['ename']}: {out['evalue']}"]) for out in errors]


def _wait(done: Callable[[], bool], seconds: float, otherwise: str) -> None:
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            raise TimeoutError(f"{otherwise} within {seconds:g} s")
        time.sleep(1)


@contextlib.contextmanager
def _timed(what: str) -> Iterator[None]:
    start = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
