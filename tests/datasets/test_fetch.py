"""Public sample files: from a folder, from a server, from the cache, and errors that say what to do."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from daskclust import datasets
from daskclust.io import read_gmhc, read_hits

KEY = "clue/moons_1000.csv"
CONTENT = b"1,2,3,4\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's settings and cache out of it."""
    monkeypatch.delenv("DASKCLUST_DATA", raising=False)
    monkeypatch.delenv("DASKCLUST_OFFLINE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    """Return where the file is in the cache once it is there."""
    return tmp_path / "cache" / "daskclust" / KEY


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a file that a server of this machine has at the address of `KEY`, which expects its checksum."""
    path = tmp_path / "server" / "moons_1000.csv"
    path.parent.mkdir()
    path.write_bytes(CONTENT)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(path.parent))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        set_url(monkeypatch, f"http://127.0.0.1:{server.server_port}/{path.name}")
        yield path
        server.shutdown()
        thread.join()


def set_url(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Say that `KEY` is at another address, where it is the line of `CONTENT`."""
    checksum = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
    file = dataclasses.replace(datasets.FILES[KEY], url=url, checksum=checksum)
    monkeypatch.setitem(datasets.FILES, KEY, file)


def test_from_a_folder(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASKCLUST_DATA", str(shared_data))
    for key in datasets.FILES:
        if "Levine" in key:  # not there; only git's ids of them are known
            continue
        path = datasets.fetch(key)
        assert path == shared_data / key
        assert datasets.fetch(path.name, offline=True) == path
        if key.startswith("clue/"):
            assert read_hits(path).sizes["hit"] == int(path.stem.split("_")[1])
    assert read_gmhc(datasets.fetch("nilsson_rare_sub4423_d14.bin")).sizes["cell"] == 4423
    monkeypatch.setenv("DASKCLUST_DATA", str(shared_data / "clue"))
    assert datasets.fetch(KEY) == shared_data / KEY
    monkeypatch.setattr(Path, "open", lambda *_: io.BytesIO(CONTENT))
    with pytest.raises(ValueError, match=r"has sha256 [0-9a-f]{64}, expected f5df4e71.*delete it"):
        datasets.fetch(KEY)


def test_from_a_server_once(served: Path, cached: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert datasets.fetch("moons_1000.csv") == cached
    assert capfd.readouterr() == ("", ""), "pooch's lines are no part of a notebook"
    assert cached.read_bytes() == CONTENT
    served.unlink()
    assert datasets.fetch(KEY) == cached
    assert datasets.fetch(KEY, offline=True) == cached


def test_nothing_is_said_of_bars_in_a_notebook(tmp_path: Path) -> None:
    """Where ipywidgets are missing, tqdm, which pooch imports, warns in a kernel of Jupyter."""
    code = """
import sys, types
kernel = types.SimpleNamespace(config={"IPKernelApp": {}})  # by which versions of tqdm know one
ipython = types.SimpleNamespace(get_ipython=lambda: kernel)
sys.modules |= {"ipykernel.zmqshell": ipython, "IPython": ipython, "ipywidgets": None}
from daskclust import datasets
if sys.argv[1:]:
    import pooch
try:
    datasets.fetch("moons_1000.csv", offline=True)
except FileNotFoundError:
    print("done")
"""
    for argument, warned in ((["plainly"], True), ([], False)):
        done = subprocess.run([sys.executable, "-c", code, *argument], capture_output=True, text=True, check=True)
        assert (done.stdout, "IProgress not found" in done.stderr) == ("done\n", warned), done.stderr


def test_damaged_in_the_cache(served: Path, cached: Path) -> None:
    cached.parent.mkdir(parents=True)
    cached.write_bytes(CONTENT[:3])
    with pytest.raises(ValueError, match=r"has sha256 [0-9a-f]{64}, expected .* delete it"):
        datasets.fetch(KEY, offline=True)
    assert datasets.fetch(KEY) == cached
    assert cached.read_bytes() == CONTENT


def test_a_wrong_server(served: Path, cached: Path) -> None:
    served.write_bytes(CONTENT * 2)
    with pytest.raises(ValueError, match=r"moons_1000.csv from http://.* has sha256 .*, expected .*DASKCLUST_DATA"):
        datasets.fetch(KEY)
    served.unlink()
    with pytest.raises(
        OSError, match=r"moons_1000.csv could not be downloaded from http://.*HTTPError.*DASKCLUST_DATA"
    ):
        datasets.fetch(KEY)
    assert not cached.exists()


def test_checked_by_the_id_that_git_gives(served: Path, cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other checksum of the sets of Levine et al. is known here."""
    found = subprocess.run(["git", "hash-object", str(served)], capture_output=True, text=True, check=True)
    checksum = f"git:{found.stdout.strip()}"
    monkeypatch.setitem(datasets.FILES, KEY, dataclasses.replace(datasets.FILES[KEY], checksum=checksum))
    cached.parent.mkdir(parents=True)
    cached.write_bytes(CONTENT[:3])
    with pytest.raises(ValueError, match=r"has git [0-9a-f]{40}, expected .* delete it"):
        datasets.fetch(KEY, offline=True)
    assert datasets.fetch(KEY).read_bytes() == CONTENT
    cached.unlink()
    served.write_bytes(CONTENT * 2)
    with pytest.raises(ValueError, match=r"from http://.* has git [0-9a-f]{40}, expected"):
        datasets.fetch(KEY)
    assert list(cached.parent.iterdir()) == [], "nothing wrong stays"


def test_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, and not listening: connections are refused
        set_url(monkeypatch, f"http://127.0.0.1:{unused.getsockname()[1]}/moons_1000.csv")
        with pytest.raises(OSError, match=r"ConnectionError.*; try again with a network, or download it elsewhere"):
            datasets.fetch(KEY)


def test_offline(served: Path, cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match=r"moons_1000.csv is not there, and downloads are switched off"):
        datasets.fetch(KEY, offline=True)
    monkeypatch.setenv("DASKCLUST_OFFLINE", "1")
    with pytest.raises(FileNotFoundError, match=r"switched off; allow them, or put clue/moons_1000.csv into"):
        datasets.fetch(KEY)
    assert datasets.fetch(KEY, offline=False) == cached
    monkeypatch.setenv("DASKCLUST_OFFLINE", "0")
    assert datasets.fetch(KEY) == cached


def test_wrong_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"unknown sample file 'mons'; known: clue/aniso_1000.csv, clue/circles"):
        datasets.fetch("mons")
    with pytest.raises(FileNotFoundError, match=r"d14.bin .* has no address .*asmelko/gmhc.* put cytometry/nilsson"):
        datasets.fetch("nilsson_rare_sub4423_d14.bin")
    monkeypatch.setenv("DASKCLUST_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"DASKCLUST_DATA must be a folder, got '.*nowhere'; correct or unset it"):
        datasets.fetch("moons_1000.csv")
    monkeypatch.setenv("DASKCLUST_DATA", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install .* or put clue/moons_1000.csv into a folder"):
        datasets.fetch("moons_1000.csv")
