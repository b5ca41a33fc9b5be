"""Bytes of a running readout: from a file that grows, and through TCP."""

from __future__ import annotations

import queue
import socket
import struct
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from cases.files.growing import growing_file

from daskclust import EventBuilder, EventStream
from daskclust.datasets import timepix
from daskclust.io import follow, receive, write_tpx3
from daskclust.io.timepix import sources
from daskclust.io.timepix.sources import parse_address

DATA = np.random.default_rng(0).bytes(50_000)


@pytest.fixture(autouse=True)
def short_looks(monkeypatch):
    """Let a reader look for connections and bytes at short intervals."""
    monkeypatch.setattr(sources, "_LOOK", 0.01)


def test_following_a_file_that_grows(tmp_path, monkeypatch):
    growing = tmp_path / "growing.tpx3"
    with growing_file(growing, DATA, monkeypatch):
        pieces = list(follow(growing, idle=1.0, poll=0.01))
    assert b"".join(pieces) == DATA
    assert all(pieces)


def test_following_ends(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        list(follow(tmp_path / "nothing", idle=0.1))
    path = tmp_path / "run"
    path.write_bytes(b"12345678")
    looks = iter([False, True])
    assert b"".join(follow(path, stop=lambda: next(looks))) == b"12345678"
    assert not list(follow(path, stop=lambda: True))
    blocks = follow(path, poll=0.01)
    assert next(blocks) == b"12345678"
    path.write_bytes(b"1")
    with pytest.raises(ValueError, match="is shorter than the"):
        next(blocks)


@pytest.mark.parametrize(
    "address", ["127.0.0.1:1", "tcp://host", "tcp://:5", "udp://listen@host:5", "tcp://host:99999", "tcp://h:x"]
)
def test_addresses(address):
    with pytest.raises(ValueError, match="is not an address"):
        parse_address(address)
    assert parse_address("tcp://localhost:8451") == (False, "localhost", 8451)
    assert parse_address("tcp://listen@[::1]:8451") == (True, "::1", 8451)
    assert parse_address("udp://0.0.0.0:1556") == (False, "0.0.0.0", 1556)


# ------------------------------------------------------------------------------------------------- connections that end
def hang_up(connection, how):
    if how == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@contextmanager
def senders(pieces, how, listens):
    """Send pieces, each through a connection of its own, which is closed or reset when the piece has been read."""
    read = queue.Queue()

    def connect():
        if listens:
            return server.accept()[0]
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port))
            except ConnectionRefusedError:
                time.sleep(0.05)

    def send():
        for piece in pieces:
            connection = connect()
            connection.sendall(piece)
            read.get(timeout=600)
            hang_up(connection, how)

    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    if not listens:
        server.close()
    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    yield f"tcp://{'' if listens else 'listen@'}127.0.0.1:{port}", read
    thread.join()
    server.close()


def received(address, read, pieces, **options):
    """Yield what is received; say when each piece is complete."""
    ends, n, stop = [sum(map(len, pieces[: k + 1])) for k in range(len(pieces))], 0, threading.Event()
    for block in receive(address, timeout=600, stop=stop.is_set, **options):
        n += len(block)
        yield block
        if ends and n == ends[0]:
            del ends[0]
            read.put(None)
            if not ends:
                stop.set()


@pytest.mark.parametrize("listens", [True, False])
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_reset_names_the_address_after_all_that_came(how, listens):
    with senders([DATA], how, listens) as (address, read):
        blocks, error = [], None
        try:
            for block in receive(address, timeout=600):
                blocks.append(block)
                if sum(map(len, blocks)) == len(DATA):
                    read.put(None)
        except ConnectionResetError as raised:
            error = raised
    assert b"".join(blocks) == DATA
    assert (error is None) == (how == "close")
    assert error is None or error.filename == address


@pytest.mark.parametrize("listens", [True, False])
@pytest.mark.parametrize("how", ["close", "reset"])
def test_connecting_again_begins_a_word_anew(tmp_path, how, listens, caplog):
    """Each connection ends within a word, which is none: what follows is not read at odd places."""
    rng = np.random.default_rng(0)
    pieces, wanted = [], []
    for k, n in enumerate(rng.integers(20, 200, 4).tolist()):
        run = timepix(n, rng=k).drop_vars("truth")
        run["toa"] = run["toa"] + 1e6 * k
        write_tpx3(run, tmp_path / "run.tpx3", words_per_chunk=int(rng.integers(1, 50)))
        pieces.append((tmp_path / "run.tpx3").read_bytes()[: -int(rng.integers(1, 8))])
        wanted.append(run["x"].values[:-1])
    with senders(pieces, how, listens) as (address, read):
        stream = EventStream(received(address, read, pieces, reconnect=True), EventBuilder(200.0), disorder=1e9)
        found = np.concatenate([batch.hits["x"].values for batch in stream.batches()])
    np.testing.assert_array_equal(np.sort(found), np.sort(np.concatenate(wanted)))
    assert stream.counters.reconnections == len(pieces) - 1
    assert caplog.text.count("was lost, and is looked for again") == len(pieces) - 1
    assert stream.reader.counts["n_bytes_truncated"] == sum(len(piece) % 8 for piece in pieces)


def test_an_idle_end_is_no_end_while_nobody_asks(monkeypatch):
    """What has come is read first, however long the reader was busy."""
    now = [0.0]
    monkeypatch.setattr(sources, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep))
    with senders([DATA], "close", True) as (address, read):
        blocks = receive(address, idle=5.0)
        n = 0
        while n < len(DATA):
            n += len(next(blocks))
            now[0] += 100.0
        read.put(None)
        assert list(blocks) == []
