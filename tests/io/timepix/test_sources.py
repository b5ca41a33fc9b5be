"""Bytes of a running readout: from a file that grows, and through TCP."""

from __future__ import annotations

import socket
import threading
import time

import numpy as np
import pytest
from cases.files.growing import growing_file

from daskclust.io import follow, receive
from daskclust.io.timepix.sources import parse_address

DATA = np.random.default_rng(0).bytes(50_000)


@pytest.mark.parametrize("listens", [True, False])
def test_through_a_socket(listens):
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]

    def serve():
        with server, server.accept()[0] as connection:
            connection.sendall(DATA)

    def connect():
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port)) as connection:
                    connection.sendall(DATA)
                return
            except ConnectionRefusedError:
                time.sleep(0.05)

    if listens:
        server.close()
    sender = threading.Thread(target=connect if listens else serve, daemon=True)
    sender.start()
    assert b"".join(receive(f"tcp://{'listen@' if listens else ''}127.0.0.1:{port}", timeout=600)) == DATA
    sender.join()


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
    "address", ["127.0.0.1:1", "tcp://host", "tcp://:5", "udp://host:5", "tcp://host:99999", "tcp://h:x"]
)
def test_addresses(address):
    with pytest.raises(ValueError, match="is not an address"):
        parse_address(address)
    assert parse_address("tcp://localhost:8451") == (False, "localhost", 8451)
    assert parse_address("tcp://listen@[::1]:8451") == (True, "::1", 8451)
