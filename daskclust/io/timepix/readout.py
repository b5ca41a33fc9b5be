"""A running readout: its bytes from a file that grows or through TCP, and the hits in them."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from daskclust.core.device.timesort import TICK
from daskclust.io.timepix.quad import QUAD_CHIPS, check_layout, place_on_quad
from daskclust.io.timepix.tpx3.jumps import jumps_told, tell_jumps
from daskclust.io.timepix.tpx3.stream import Hits, WordDecoder
from daskclust.io.timepix.tpx3.triggers import trigger_columns

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
        Seconds without growth after which the file is taken as complete. By default it is followed for ever.
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
    ValueError
        If the file becomes shorter: it was written anew.
    FileNotFoundError
        If it is not there within `idle` seconds.
    """
    name = os.fspath(path)
    done, since = 0, time.monotonic()
    while not os.path.lexists(name):
        if idle is not None and time.monotonic() - since > idle:
            raise FileNotFoundError(f"no such file: {name}, after {idle:g} s")
        if stop is not None and stop():
            return
        time.sleep(poll)
    with open(name, "rb", buffering=0) as stream:
        since = time.monotonic()
        while not (stop is not None and stop()):
            if block := stream.read(_BLOCK):
                done += len(block)
                since = time.monotonic()
                yield block
                continue
            state = os.fstat(stream.fileno())
            if not stat.S_ISREG(state.st_mode):  # a pipe, whose writer has closed it
                return
            if state.st_size < done:
                raise ValueError(f"{name} became shorter than the {done} bytes read of it; follow the new file anew")
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
        Seconds without a byte after which the readout is taken as complete. By default only the sender ends it.
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
    ValueError
        For an address of another form.
    OSError
        Where there is no connection.
    TimeoutError
        After `timeout` seconds without a connection.
    """
    listens, host, port = parse_address(address)
    with _connection(listens, host, port, timeout, stop) as connection:
        connection.settimeout(0.2)
        since = time.monotonic()
        while not (stop is not None and stop()):
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
            f"{address!r} is no address; write tcp://host:port to connect, tcp://listen@host:port to wait there"
        )
    return listens, host.strip("[]"), number


def _connection(
    listens: bool, host: str, port: int, timeout: float | None, stop: Callable[[], bool] | None
) -> socket.socket:
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
                if stop is not None and stop():
                    raise ConnectionAbortedError(f"stopped while waiting for a connection at {host}:{port}") from None
                if timeout is not None and time.monotonic() - since > timeout:
                    raise TimeoutError(f"nobody connected to {host}:{port} for {timeout:g} s") from None


class WordReader:
    """Hits of a running Timepix3 readout, from its bytes, cut anywhere.

    Parameters
    ----------
    layout : {"chips", "quad"}, default "chips"
        As of `daskclust.io.open_tpx3`.
    gap : int, default 0
        Pixels between the chips of a quad.
    trigger : {1, 2}, optional
        The TDC input whose rising edges are triggers: `triggers` are kept for times of flight.
    on_reset : {"continue", "restart"}, default "continue"
        As of `daskclust.io.open_tpx3`. After a clock that was set anew, all hits of ``"restart"`` come too late for
        `daskclust.EventStream`.

    Raises
    ------
    ValueError
        For another layout, input or `on_reset`, and a gap that is no number of pixels.

    Notes
    -----
    Times are those of `daskclust.io.open_tpx3` if global time or TDC words come before the first hits, or if the clock
    started less than 26.84 s before; else all are smaller by one and the same number of such periods. They are
    the same in whatever pieces the bytes come.
    """

    def __init__(
        self,
        *,
        layout: Literal["chips", "quad"] = "chips",
        gap: int = 0,
        trigger: int | None = None,
        on_reset: Literal["continue", "restart"] = "continue",
    ) -> None:
        check_layout(layout, gap)
        if trigger not in (None, 1, 2):
            raise ValueError(f"trigger must be the TDC input 1 or 2, got {trigger!r}")
        self._layout, self._gap, self.trigger = layout, int(gap), trigger
        self._triggers = np.empty(0, np.float64)
        self._decoder, self._told = WordDecoder(on_reset=on_reset), 0
        self._restarts = on_reset == "restart"

    @property
    def counts(self) -> Mapping[str, int]:
        """What came so far, by the names in the attributes of `daskclust.io.open_tpx3`."""
        return self._decoder.counts

    @property
    def clock_jumps(self) -> Mapping[str, list[float]]:
        """Where global time jumped so far, by the names in the attributes of `daskclust.io.open_tpx3`."""
        return jumps_told(self._decoder.jumps)

    def feed(self, data: bytes | bytearray | memoryview) -> dict[str, npt.NDArray[Any]]:
        """Return the hits in more bytes.

        Parameters
        ----------
        data : bytes-like
            What came next, cut anywhere.

        Returns
        -------
        dict of numpy.ndarray, shape (n,)
            Columns ``x``, ``y`` (pixel), ``toa``, ``tot`` (ns) and ``chip``, in the order in which hits came. Hits
            whose words are not complete wait.
        """
        return self._columns(self._decoder.feed(data))

    def close(self) -> dict[str, npt.NDArray[Any]]:
        """Say that no more bytes come.

        Returns
        -------
        dict of numpy.ndarray, shape (n,)
            Hits that waited, as of `feed`.
        """
        return self._columns(self._decoder.close())

    def triggers(self, since: float) -> npt.NDArray[np.float64]:
        """Return the times of triggers from the last one before a time on; earlier ones are forgotten.

        Parameters
        ----------
        since : float
            The time (ns).

        Returns
        -------
        numpy.ndarray of float64, shape (k,)
            Times (ns), ascending; none without a `trigger`.
        """
        base = self._decoder.start * TICK
        self._triggers = self._triggers[max(int(np.searchsorted(self._triggers, since - base, "right")) - 1, 0) :]
        return self._triggers + base

    def _columns(self, hits: Hits) -> dict[str, npt.NDArray[Any]]:
        if self.trigger is not None and len(hits.trigger_tick):
            found = trigger_columns(hits.trigger_word, hits.trigger_tick)
            counts = (found["channel"] == self.trigger) & found["is_rising"]
            self._triggers = np.sort(np.concatenate([self._triggers, found["time"][counts]]))
        if self._layout == "quad" and len(hits.chip):
            if hits.chip.max() >= QUAD_CHIPS:
                raise ValueError(f"a quad has the chips 0 to 3, got {hits.chip.max()}; use layout='chips'")
            place_on_quad.run(len(hits.x), hits.x, hits.y, hits.chip, self._gap)
        jumps = self._decoder.jumps
        if len(jumps) > self._told:
            tell_jumps("the readout", len(jumps), jumps[self._told], self._restarts)
            self._told = len(jumps)
        toa = (hits.tick + self._decoder.start) * TICK
        return {"x": hits.x, "y": hits.y, "toa": toa, "tot": hits.tot, "chip": hits.chip}
