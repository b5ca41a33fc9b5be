"""Files that nobody vouches for, by the thousand, for the decoders of our own."""

from __future__ import annotations

import inspect
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cases.lanes import in_long_lane
from fuzz import files, readers
from fuzz.readers import KINDS

from daskclust import app

_SEED = 20
_TIMES = in_long_lane(20, otherwise=1)


# -------------------------------------------------------------------------------------------------------- damaged files
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(tmp_path: Path, kind: str) -> None:
    """Each kind in a process of its own, as a crash or a hang of one is to be told, and memory to be bounded."""
    command = [sys.executable, "-m", "fuzz.readers", kind, str(_TIMES), str(_SEED), str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    left = sorted(path.name for path in tmp_path.iterdir() if path.name != "valid")
    how = f"signal {signal.Signals(-done.returncode).name}" if done.returncode < 0 else f"exit code {done.returncode}"
    assert done.returncode == 0, (
        f"{how}; cases left in {tmp_path}: {left}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    )


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("raise IndexError('list index out of range')", "IndexError"),
        ("raise ValueError('no name of a file')", "ValueError: no name of a file"),
        ("np.array([np.nan]).astype('i4')", "RuntimeWarning"),
        ("np.empty(1 << 26, np.uint8)", "allocated 671"),
        ("raise ValueError(f'{path} is damaged')", ""),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, monkeypatch: Any, capfd: Any, fault: str, told: str) -> None:
    """The check itself: readers that fail in one way each, and some that do not."""

    def read(path: Path) -> None:
        if path.parent.name != "valid":
            exec(fault, {"np": np, "path": path})

    monkeypatch.setitem(KINDS, "wrong", readers.Kind(files.katherine, read))
    monkeypatch.setattr(readers, "_bound_memory", lambda: None)
    assert readers.run("wrong", 2, 1, tmp_path) == 2 * bool(told)
    said = [json.loads(line)["said"] for line in capfd.readouterr().out.splitlines()]
    assert len(said) == 2 * bool(told)
    assert all(told in line for line in said)
    assert len(list(tmp_path.iterdir())) == 1 + len(said)


# --------------------------------------------------------------------------------------------------------- the explorer
def test_the_explorer_listens_to_this_machine_alone(monkeypatch: Any, command: Any, tmp_path: Path) -> None:
    """By default: as the command serves it, each socket is bound to a loopback address, and other hosts are refused."""
    (tmp_path / "hits.csv").write_text("x,y,layer,energy\n0,0,1,1\n0.5,0,1,2\n")
    served, serve = [], app.serve

    def started(*arguments: Any, **options: Any) -> Any:
        server = serve(*arguments, **options)
        served.extend(s.getsockname()[0] for s in server._http._sockets.values())
        origins = server._tornado.websocket_origins
        server.stop()
        assert {origin.rpartition(":")[0] for origin in origins} <= {"localhost", "127.0.0.1"}
        loop = SimpleNamespace(start=lambda: None)
        return SimpleNamespace(port=1234, start=lambda: None, stop=lambda: None, io_loop=loop)

    assert inspect.signature(serve).parameters["address"].default == "localhost"
    monkeypatch.setattr(app, "serve", started)
    code, _, err = command("explore", tmp_path / "hits.csv", "--no-browser")
    assert (code, err) == (0, "")
    assert served
    assert all(socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host) for host in served)
    assert set(served) <= {"127.0.0.1", "::1"}
