"""A readout that ends in every way, at moments drawn at random: the files have what was received, from the first on."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from cases.lanes import in_long_lane

from daskclust import io

HANGS = 300  # s; nothing that ends takes as long, on whatever machine
N = 12_000
ENDINGS = ("close", "reset", "half a word", "silence", "full", "TERM", "HUP", "INT", "QUIT", "KILL")
CODES = {"reset": 1, "TERM": -signal.SIGTERM, "HUP": -signal.SIGHUP, "QUIT": 128 + signal.SIGQUIT, "KILL": -9}
QUICK = (1, 7)  # the connection is reset, Ctrl-C
SUFFIXES = (".parquet", ".csv", ".h5")
SMALL = """
import resource, signal, sys
for number in (signal.SIGHUP, signal.SIGQUIT):  # which jobs in the background ignore
    signal.signal(number, signal.SIG_DFL)
from daskclust.cli import main
from daskclust.cli.pixels import in_time
from daskclust.io.outputs import growing
in_time.ROUND, growing._ROWS, growing._SECONDS = 500, {rows}, 0.3
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, -1))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
sys.argv[1:] = {arguments}
main()
"""


def draw(number):
    """Return how a run ends, after how many of its bytes, and what it writes."""
    rng = np.random.default_rng(number)
    wanted = [("output",), ("table",), ("output", "table")][(number + number // 10) % 3]
    outputs = {name: f"{name}{rng.choice(SUFFIXES)}" for name in wanted}
    return ENDINGS[number % len(ENDINGS)], outputs, rng


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    """Return hits one cluster after the other, as a readout sends them, and their bytes."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 7, N)
    cluster = np.repeat(np.arange(N), sizes)[:N]
    place = np.arange(N) - np.searchsorted(cluster, cluster)  # in its cluster: pixels of a row, 25 ns apart
    hits = {"x": 100 + place, "y": cluster % 256, "toa": 1000.0 * cluster + 25.0 * place, "tot": 25.0 * (1 + place)}
    ds = io.to_dataset({**hits, "chip": np.zeros(N)}, field="timepix")
    path = tmp_path_factory.mktemp("sent") / "run.tpx3"
    io.write_tpx3(ds, path, words_per_chunk=100)
    hits["label"] = cluster
    return hits, path.read_bytes()


def hits_in(data):
    """Return how many pixel words are complete."""
    place, n = 0, 0
    while place + 8 <= len(data):
        (size,) = struct.unpack_from("<H", data, place + 6)
        end = min(place + 8 + size, len(data))
        n += sum(data[k + 7] >> 4 in (0xA, 0xB) for k in range(place + 8, end - 7, 8))
        place = end
    return n


@contextmanager
def readout(data, rng, closing=None):
    """Serve some bytes in pieces, then do as told; give the address, and what is set when somebody connects."""
    begun, over = threading.Event(), threading.Event()

    def serve():
        with suppress(OSError), server.accept()[0] as connection:  # the reader may end first
            begun.set()
            cuts, pauses = np.sort(rng.integers(0, len(data) + 1, 20)).tolist(), rng.uniform(0, 0.1, 21).tolist()
            for start, stop, pause in zip([0, *cuts], [*cuts, len(data)], pauses, strict=True):
                connection.sendall(data[start:stop])
                time.sleep(pause)
            if closing == "reset":
                time.sleep(rng.choice([0, 0.5]))  # some is on its way, or all is read
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif closing is None:
                over.wait(HANGS)

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(HANGS)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"tcp://127.0.0.1:{server.getsockname()[1]}", begun
        finally:
            over.set()
            thread.join()


def start(folder, *arguments, rows=1000, limit=-1):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONFAULTHANDLER": ""}
    code = SMALL.format(rows=rows, limit=limit, arguments=list(map(str, arguments)))
    command, pipe = [sys.executable, "-c", code], subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def parts_of(path):
    return sorted(Path(f"{path}.parts.parquet").glob("part-*.parquet"))


def on_disk(path):
    """Return how many rows are in parts that are closed, which may vanish meanwhile: they are put together."""
    with suppress(OSError):
        return sum(pq.read_metadata(part).num_rows for part in parts_of(path))
    return 0


def read(path):
    """Return the columns of an output, or of its parts, by other programs; None where there is neither."""
    if parts := [pd.read_parquet(part) for part in parts_of(path)]:
        return pd.concat(parts, ignore_index=True)
    if not path.exists():
        return None
    if path.suffix == ".csv":
        return pd.read_csv(path, comment="#")
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    with h5py.File(path) as file:
        return pd.DataFrame({name: file[name][:] for name in file})


def check(path, hits, is_table):
    """Check that rows are those of the first hits that were sent; return how many hits."""
    rows = read(path)
    if rows is None:
        return None
    if not is_table:
        for name, values in hits.items():
            np.testing.assert_array_equal(rows[name], values[: len(rows)], err_msg=name)
        return len(rows)
    n = int(rows["size"].sum())
    np.testing.assert_array_equal(rows["size"], np.bincount(hits["label"][:n]))
    np.testing.assert_array_equal(rows["toa"], hits["toa"][np.unique(hits["label"][:n], return_index=True)[1]])
    np.testing.assert_array_equal(rows["cluster"], np.arange(len(rows)))
    return n


@pytest.mark.parametrize(
    "number",
    [pytest.param(k, marks=[pytest.mark.slow] * (k not in QUICK)) for k in range(in_long_lane(200, otherwise=20))],
)
def test_what_was_received_is_kept(tmp_path, sent, number, request):
    ending, outputs, rng = draw(number)
    hits, data = sent
    data = data[: int(rng.integers(8, len(data)))]
    cut = 8 * (len(data) // 8)
    data = data[: cut + int(rng.integers(1, 8))] if ending == "half a word" else data[:cut]
    options = [word for name, file in outputs.items() for word in (f"--{name}", file)]
    options += ["--idle", "5"] if ending == "silence" else []
    paths = {name: tmp_path / file for name, file in outputs.items()}
    limit = int(rng.choice([12_000, 25_000, 60_000])) if ending == "full" else -1
    closing = ending if ending in ("close", "reset", "half a word", "full") else None
    with readout(data, rng, closing) as (address, begun):
        process = start(
            tmp_path, "events", address, "--follow", "--dt-max", 200, "--disorder", 100, "--json", *options, limit=limit
        )
        if closing is None and ending != "silence":
            assert begun.wait(HANGS)
            # 600 hits wait for later ones, the others are on disk in time
            parts = int(rng.integers(0, 2)) if hits_in(data) > 3000 and "output" in paths else 0
            while parts and len(parts_of(paths["output"])) < parts:
                assert process.poll() is None
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.6))
            before = {name: on_disk(path) for name, path in paths.items()}
            process.send_signal(signal.Signals[f"SIG{ending}"])
        else:
            before = dict.fromkeys(paths, 0)
        out, err = process.communicate(timeout=HANGS)
    found = {name: check(path, hits, name == "table") for name, path in paths.items()}
    request.node.user_properties.append(
        ("run", f"{ending}, {outputs}: {len(data)} bytes, {hits_in(data)} hits, {found}, after {before}")
    )
    for name, path in paths.items():
        rows = read(path)
        assert before[name] <= (0 if rows is None else len(rows)), err
    whole = {name: path.exists() and not parts_of(path) for name, path in paths.items()}
    if ending == "KILL":
        assert process.returncode == -signal.SIGKILL
        return
    told = json.loads(out)
    assert told["hits"] <= hits_in(data)
    if ending == "full":
        assert process.returncode == ("error" in told), err
        assert "error" not in told or told["error"]["what"].startswith("file too large: ")
        for name, n in found.items():  # what cannot be put together stays in parts
            assert told[f"{name}_rows"] == (0 if n is None else len(read(paths[name])))
            assert n is None or n <= told["hits"]
            assert n is None or Path(tmp_path, told[name]) == (
                paths[name] if whole[name] else parts_of(paths[name])[0].parent
            )
        return
    assert process.returncode == CODES.get(ending, 0), err
    if process.returncode and not told["hits"]:  # an error or a signal before the first hit
        assert set(found.values()) <= {None, 0}
        return
    assert all(whole.values())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(outputs.values())
    assert found == dict.fromkeys(outputs, told["hits"])
    if ending in ("close", "half a word", "silence"):
        assert told["hits"] == hits_in(data)
        assert told.get("n_bytes_truncated", 0) % 8 == len(data) % 8
