"""Who is let in: requests for a host and from an origin that are served, of this user or with the token."""

from __future__ import annotations

import hmac
import logging
import os
import re
import secrets
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path
from struct import unpack
from typing import Any
from urllib.parse import urlsplit

from bokeh.server.util import match_host
from bokeh.settings import settings
from tornado.routing import Matcher, Rule
from tornado.web import Application, RequestHandler

from daskclust.core.data.quote import quoted

HERE = ("localhost", "127.0.0.1", "::1")
_MOST = 50  # reasons that are logged
_PORTS = {"http": 80, "https": 443}
_FREE = re.compile(r"/(favicon\.ico|static/.*|components/.*|ws)")  # files, and what needs a session that a page had
_CONNECTIONS = Path("/proc/net/tcp"), Path("/proc/net/tcp6")
_WHY = (
    "{} {}, which is not served; if you trust it, start the explorer with --allow-origin {} (in Python allow_origin=), "
    "or set BOKEH_ALLOW_WS_ORIGIN"
)
_log = logging.getLogger(__name__)


class _Guard(Matcher):
    """Match the requests that are refused, and log each reason once."""

    def __init__(self, names: Iterable[str], allowed: Iterable[str], port: int, token: str | None) -> None:
        self._allowed = [f"//{each.lower().rpartition('//')[2].rstrip('/').removesuffix(':*')}" for each in allowed]
        self._names, self._port, self._logged = {*HERE, *names}, port, set[str]()
        self._token, self._is_asked = token or secrets.token_urlsafe(), token is not None

    def match(self, request: Any) -> dict[str, Any] | None:
        why, more = self._fault(request.headers, request.path), ""
        if why is None and not self._is_trusted(request):
            why = "this needs the token of the user who serves it: open the address with ?token= in their terminal"
            more = f": {f'http://{request.host}/?token={self._token}'!r}"
        if why is None:
            request.headers.pop("Origin", None)  # Bokeh's own check knows no "any port", and its variable replaces all
            return None
        if why not in self._logged and len(self._logged) < _MOST:
            self._logged.add(why)
            _log.warning("refused: %s%s", why, more)
        return {"target_kwargs": {"why": why}}

    def _is_trusted(self, request: Any) -> bool:
        """Return whether a request has the token, or needs none."""
        given = request.query_arguments.get("token", [b""])[-1]
        if _FREE.fullmatch(request.path) or hmac.compare_digest(given, self._token.encode()):
            return True
        return not self._is_asked and is_of_this_user(request.connection.context.address, self._port)

    def _fault(self, headers: Any, path: str) -> str | None:
        """Return why a request is refused, or None."""
        host, origin = headers.get("Host", "").lower(), headers.get("Origin")
        name, _ = _place(f"//{host}")  # another site's may point to this machine; numbers are what they are
        is_number = ":" in name or name.rpartition(".")[2].isdecimal()
        if not (name in self._names or is_number or any(match_host(name, _place(each)[0]) for each in self._allowed)):
            return _WHY.format("the page was asked for as", quoted(host), quoted(name or "NAME"))
        if origin is not None:
            name, whole = _place(origin)  # any port of this machine, as tunnels have them
            is_same = origin.lower().partition("//")[2] == host
            if not (name in self._names or is_same or any(match_host(whole, each[2:]) for each in self._allowed)):
                return _WHY.format("a page tried to connect from", quoted(origin), quoted(name or "NAME"))
        if path.endswith("/autoload.js"):  # any page can read it
            return "the explorer's page cannot be part of another page; open it on its own"
        return None


class _Refused(RequestHandler):
    def initialize(self, why: str) -> None:
        self._why = why

    def prepare(self) -> None:
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(self._why)


def guard(server: Any, names: Iterable[str], allowed: Iterable[str], token: str | None = None) -> None:
    """Refuse requests to a server of Bokeh that are not for these names, or from origins that are not known.

    With a token, pages without it are refused, too. With none, other users and machines need one that is made.
    """
    matcher = _Guard(names, (*allowed, *settings.allowed_ws_origin()), server.port, token)
    (application,) = (each for each in vars(server).values() if isinstance(each, Application))
    application.add_handlers(".*", [Rule(matcher, _Refused)])


def run(server: Any) -> None:
    """Answer requests until Ctrl-C, which Panel sees to."""
    server.start()
    try:
        server.io_loop.start()
    finally:
        server.stop()


def _place(url: str) -> tuple[str, str]:
    """Return host, and host with port, of a URL; empty for an invalid one."""
    try:
        parts = urlsplit(url.lower())
        return parts.hostname or "", f"{parts.hostname}:{parts.port or _PORTS.get(parts.scheme, '')}"
    except ValueError:
        return "", ""


def is_of_this_user(peer: tuple[Any, ...], port: int) -> bool:
    """Return whether the peer is a process of this user; where the system does not say, one of this machine."""
    there = ip_address(peer[0])
    if not any(table.exists() for table in _CONNECTIONS):
        return there.is_loopback
    forms = there.packed, b"\0" * 10 + b"\xff\xff" + there.packed  # IPv4, and the same in IPv6
    ends = [f"{b''.join(b'%08X' % w for w in unpack(f'={len(a) // 4}I', a)).decode()}:{peer[1]:04X}" for a in forms]
    rows = [line.split() for table in _CONNECTIONS if table.exists() for line in table.read_text().splitlines()[1:]]
    return {row[7] for row in rows if row[1] in ends and row[2].endswith(f":{port:04X}")} == {str(os.getuid())}
