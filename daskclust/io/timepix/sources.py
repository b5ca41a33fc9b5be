"""The bytes of a running readout, from a file that grows or through TCP."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Callable, Iterator

_BLOCK = 1 << 22  # bytes that are read at once


def follow(
    path: str | os.PathLike[str],
    *,
    idle: float | None = None,
    poll: float = 0.05,
    stop: Callable[[], bool] | None = None,
) -> Iterator[bytes]:
    """Yield the bytes of a file, and go on as it grows.

    Parameters
    ----------
    path : str or path
        The file; it need not be there yet.
    idle : float, optional
        Seconds without growth after which the file is complete. By default it is followed for ever.
    poll : float, default 0.05
        Seconds between two looks at the file.
    stop : function, optional
        Asked at each look; True ends it.

    Yields
    ------
    bytes
        Never empty.

    Raises
    ------
    FileNotFoundError, ValueError
        If the file is not there within `idle` seconds, or becomes shorter: it was written anew.
    """
    name, stop = os.fspath(path), stop or (lambda: False)
    done, since = 0, time.monotonic()
    while not os.path.lexists(name):
        if idle is not None and time.monotonic() - since > idle:
            raise FileNotFoundError(f"no such file: {name}, after {idle:g} s")
        if stop():
            return
        time.sleep(poll)
    with open(name, "rb", buffering=0) as stream:
        since = time.monotonic()
        while not stop():
            if block := stream.read(_BLOCK):
                done += len(block)
                since = time.monotonic()
                yield block
                continue
            state = os.fstat(stream.fileno())
            if not stat.S_ISREG(state.st_mode):  # a pipe, whose writer has closed it
                return
            if state.st_size < done:
                raise ValueError(f"{name} is shorter than the {done} bytes read: it was replaced; follow it again")
            if idle is not None and time.monotonic() - since > idle:
                return
            time.sleep(poll)


def receive(
    address: str,
    *,
    idle: float | None = None,
    timeout: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> Iterator[bytes]:
    """Yield the bytes that come through TCP until the sender closes the connection.

    Parameters
    ----------
    address : str
        ``tcp://host:port`` connects to a readout that listens there; ``tcp://listen@host:port`` waits there for a
        readout to connect, as SERVAL names it. An IPv6 host is in brackets.
    idle : float, optional
        Seconds without a byte after which the readout is complete. By default only the sender ends it.
    timeout : float, optional
        Seconds without a connection that are an error. By default there is no limit.
    stop : function, optional
        Asked a few times a second; True ends it.

    Yields
    ------
    bytes
        Never empty. What is not asked for is not read, so the sender has to wait: TCP's own back-pressure.

    Raises
    ------
    ValueError, OSError
        For an address of another form, and where there is no connection (TimeoutError after `timeout` seconds).
    """
    listens, host, port = parse_address(address)
    stop = stop or (lambda: False)
    with _connection(listens, host, port, timeout, stop) as connection:
        connection.settimeout(0.2)
        since = time.monotonic()
        while not stop():
            try:
                block = connection.recv(_BLOCK)
            except TimeoutError:
                if idle is not None and time.monotonic() - since > idle:
                    return
                continue
            if not block:
                return
            since = time.monotonic()
            yield block


def parse_address(address: str) -> tuple[bool, str, int]:
    """Return whether to listen, host and port of ``tcp://[listen@]host:port``."""
    scheme, mark, rest = address.partition("://")
    listens = rest.startswith("listen@")
    host, colon, port = rest.removeprefix("listen@").rpartition(":")
    number = int(port) if port.isascii() and port.isdigit() else 65536
    if scheme != "tcp" or not mark or not host or not colon or number > 65535:
        raise ValueError(
            f"{address!r} is not an address; write tcp://host:port to connect, tcp://listen@host:port to wait there"
        )
    return listens, host.strip("[]"), number


def _connection(listens: bool, host: str, port: int, timeout: float | None, stop: Callable[[], bool]) -> socket.socket:
    """Connect to a readout, or wait until one connects."""
    if not listens:
        return socket.create_connection((host, port), timeout=timeout)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    since = time.monotonic()
    with socket.create_server((host, port), family=family) as server:
        server.settimeout(0.2)
        while True:
            try:
                return server.accept()[0]
            except TimeoutError:
                if stop():
                    raise ConnectionAbortedError(f"stopped while waiting for a connection at {host}:{port}") from None
                if timeout is not None and time.monotonic() - since > timeout:
                    raise TimeoutError(f"nobody connected to {host}:{port} for {timeout:g} s") from None
