"""The bytes of a running readout, from a file that grows, through TCP or UDP."""

from __future__ import annotations

import logging
import os
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress

from daskclust.io.replacing import naming

_log = logging.getLogger(__name__)

_BLOCK = 1 << 22  # bytes that are read at once
_ATTEMPT, _LOOK = 2.0, 0.2  # s to wait for a connection, and for bytes, before `stop` is asked again
_DATUM = 6  # bytes of a word of the Katherine, of which datagrams have whole ones
_DATAGRAM = 1 << 16  # the longest
_ROOM = 1 << 25  # bytes that the system is asked to keep of datagrams that are not read yet
_LOST = getattr(socket, "SO_RXQ_OVFL", 40)  # Linux tells how many datagrams had no room


class Break(bytes):
    """An item without bytes: those that follow do not go on where those before it ended."""


class Cut(Break):
    """A `Break` after a datagram that ended within a word."""


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
    with naming(name), open(name, "rb", buffering=0) as stream:
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
    reconnect: bool = False,
) -> Iterator[bytes]:
    """Yield the bytes that come through TCP until the sender closes the connection, or through UDP.

    Parameters
    ----------
    address : str
        ``tcp://host:port`` connects to a readout that listens there; ``tcp://listen@host:port`` waits there for a
        readout to connect, as SERVAL names it. ``udp://host:port`` is an address of this machine, to which a Katherine
        sends datagrams (port 1556); ``udp://0.0.0.0:port`` takes those to all its addresses. An IPv6 host is in
        brackets.
    idle : float, optional
        Seconds without a byte after which the readout is complete. By default only the sender ends it; through UDP
        nobody does.
    timeout : float, optional
        Seconds without a connection, or a first datagram, that are an error. By default there is no limit.
    stop : function, optional
        Asked a few times a second; True ends it.
    reconnect : bool, default False
        Connect again where the sender closes or resets the connection, for as long as it takes; `idle` and `stop` end
        it.

    Yields
    ------
    bytes
        Never empty, but for a `Break` after each new connection. What is not asked for is not read, so the sender has
        to wait: TCP's own back-pressure. Datagrams are joined, and what is in excess of whole words of 6 bytes at the
        end of one is followed by a `Break`. Those for which the system had no room, as clustering was too slow, are
        lost; a warning tells how many (``sysctl net.core.rmem_max`` limits the room).

    Raises
    ------
    ValueError, OSError
        For an address of another form, and where there is no connection (TimeoutError after `timeout` seconds), or it
        is reset.
    """
    listens, host, port = parse_address(address)
    stop = stop or (lambda: False)
    if address.startswith("udp"):
        with naming(address):
            yield from _datagrams(address, host, port, idle, timeout, stop)
        return
    since, connections, told = time.monotonic(), 0, 0

    def has_ended() -> bool:
        return stop() or (connections > 0 and idle is not None and time.monotonic() - since > idle)

    with naming(address):
        while not has_ended():
            try:
                with _connection(listens, host, port, None if connections else timeout, has_ended) as connection:
                    connections, since = connections + 1, since if connections else time.monotonic()
                    if connections > 1:
                        yield Break()
                    for block in _blocks(connection, has_ended):
                        yield block
                        since = time.monotonic()
            except OSError:
                if not reconnect or not connections:
                    raise
            if not reconnect or has_ended():
                return
            if told < connections:
                told = connections
                _log.warning("the connection to %s was lost, and is looked for again", address)
            time.sleep(_LOOK)


def _blocks(connection: socket.socket, has_ended: Callable[[], bool]) -> Iterator[bytes]:
    """Yield the bytes of a connection until it is closed; a peer that vanished is noticed by TCP's keepalive."""
    connection.settimeout(_LOOK)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    while not has_ended():
        try:
            block = connection.recv(_BLOCK)
        except TimeoutError as error:
            if error.errno is not None:  # of the system: nobody answers any more
                raise
            continue
        if not block:
            return
        yield block


def _datagrams(
    address: str, host: str, port: int, idle: float | None, timeout: float | None, stop: Callable[[], bool]
) -> Iterator[bytes]:
    """Yield what datagrams have, all that wait at once; tell of those that were lost."""
    since, has_come, lost = time.monotonic(), False, 0
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, _LOST, 1)
        connection.bind((host, port))
        while not stop():
            connection.settimeout(_LOOK)
            found = list[bytes]()
            size, ends_within = 0, False
            with suppress(TimeoutError, BlockingIOError):
                while size < _BLOCK and not ends_within:
                    datagram, told, _, _ = connection.recvmsg(_DATAGRAM, socket.CMSG_SPACE(4))
                    connection.settimeout(0.0)
                    found.append(datagram)
                    size, ends_within = size + len(datagram), len(datagram) % _DATUM != 0
                    now = [int.from_bytes(data, sys.byteorder) for _, kind, data in told if kind == _LOST]
                    if now and now[0] != lost:
                        _log.warning("%d datagrams to %s were lost: they came too fast", now[0] - lost, address)
                        lost = now[0]
            if size:
                yield b"".join(found)
                since, has_come = time.monotonic(), True
            if ends_within:
                yield Cut()
            limit = idle if has_come else timeout
            if limit is not None and time.monotonic() - since > limit:
                if has_come:
                    return
                raise TimeoutError(f"no datagram came to {host}:{port} for {limit:g} s")


def parse_address(address: str) -> tuple[bool, str, int]:
    """Return whether to listen, host and port of ``tcp://[listen@]host:port`` or ``udp://host:port``."""
    scheme, mark, rest = address.partition("://")
    listens = rest.startswith("listen@")
    host, colon, port = rest.removeprefix("listen@").rpartition(":")
    number = int(port) if port.isascii() and port.isdigit() else 65536
    if scheme not in ("tcp", "udp")[: 2 - listens] or not mark or not host or not colon or number > 65535:
        raise ValueError(
            f"{address!r} is not an address; write tcp://host:port to connect, tcp://listen@host:port to wait there, "
            "udp://host:port for datagrams that are sent there"
        )
    return listens, host.strip("[]"), number


def _connection(listens: bool, host: str, port: int, timeout: float | None, stop: Callable[[], bool]) -> socket.socket:
    """Connect to a readout, or wait until one connects."""
    since = time.monotonic()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) if listens else nullcontext() as server:
        while True:
            try:
                if server is None:
                    return socket.create_connection((host, port), timeout=min(timeout or _ATTEMPT, _ATTEMPT))
                server.settimeout(_LOOK)
                return server.accept()[0]
            except TimeoutError:
                if stop():
                    raise ConnectionAbortedError(f"stopped while waiting for a connection at {host}:{port}") from None
                if timeout is not None and time.monotonic() - since >= timeout:
                    whom = "nobody connected to" if listens else "no answer of"
                    raise TimeoutError(f"{whom} {host}:{port} for {timeout:g} s") from None
