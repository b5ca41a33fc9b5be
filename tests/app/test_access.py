"""Who is let in to a page that is served: over sockets, as browsers, tunnels and proxies ask."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from bokeh.server.server import Server
from bokeh.util.token import generate_jwt_token, generate_session_id

from daskclust import app, datasets
from daskclust.app.page import access


@pytest.fixture
def guarded() -> Iterator[Any]:
    """Return a function that serves an empty page, guarded so, and asks for it; the answer's status and text."""
    servers = []

    def ask(*requests: dict[str, Any], names: tuple[str, ...] = (), allowed: tuple[str, ...] = ()) -> list[Any]:
        server = Server({"/": lambda document: None}, port=0, address="127.0.0.1")
        servers.append(server)
        access.guard(server, names, allowed)
        return [server.io_loop.run_sync(lambda given=given: answer(server.port, **given)) for given in requests]

    yield ask
    for server in servers:
        server.stop()


async def answer(port: int, *, host: str = "localhost:PORT", origin: str | None = None, path: str = "/ws") -> Any:
    """Return the status of an answer, and its text; ``/ws`` is asked for a websocket, with a session."""
    token = generate_jwt_token(generate_session_id())
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", *([] if origin is None else [f"Origin: {origin}"])]
    if path == "/ws":
        lines += ["Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        lines += [f"Sec-WebSocket-Protocol: bokeh, {token}"]
    else:
        lines += ["Connection: close"]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write("\r\n".join([*lines, "", ""]).replace("PORT", str(port)).encode())
    text = (await reader.readuntil(b"\r\n\r\n")).decode()
    status, length = int(text.split()[1]), re.search(r"Content-Length: (\d+)", text)
    text += "" if length is None else (await reader.readexactly(int(length[1]))).decode()
    writer.close()
    return status, text


HOSTS = {
    "localhost:PORT": True, "127.0.0.1:PORT": True, "[::1]:PORT": True, "LOCALHOST:8888": True, "localhost": True,
    "192.168.7.7:5006": True,  # numbers: no name that points here
    "evil.example:PORT": False, "localhost.evil.example:PORT": False, "": False,
}  # fmt: skip
ORIGINS = {
    None: True, "http://localhost:PORT": True, "http://127.0.0.1:PORT": True, "http://[::1]:PORT": True,
    "http://localhost:8888": True, "http://127.0.0.1:1": True, "https://localhost": True, "HTTP://LocalHost:8888": True,
    "http://evil.example": False, "http://evil.example:PORT": False, "http://localhost.evil.example:PORT": False,
    "http://localhost@evil.example": False, "http://6.6.6.6": False, "null": False, "": False, "http://[": False,
    "http://localhost:99999": False, "http://localhost:x": False,
    "http://hub.example.org:PORT": False, "https://hub.example.org": False,
}  # fmt: skip


def test_hosts_and_origins_of_this_machine_alone_are_let_in(guarded: Any) -> None:
    """Origins with any port, as a tunnel has another than the server."""
    pairs = list(itertools.product(HOSTS, ORIGINS))
    answers = guarded(*({"host": host, "origin": origin} for host, origin in pairs))
    found = {pair: status for pair, (status, _) in zip(pairs, answers, strict=True)}
    assert found == {(host, origin): 101 if HOSTS[host] and ORIGINS[origin] else 403 for host, origin in pairs}


@pytest.mark.parametrize("is_variable", [False, True])
@pytest.mark.parametrize(
    ("allowed", "origin", "is_let_in"),
    [
        ("hub.example.org", "https://hub.example.org", True),
        ("hub.example.org", "http://hub.example.org:8000", True),
        ("https://hub.example.org", "https://hub.example.org", True),
        ("hub.example.org:8000", "http://hub.example.org:8000", True),
        ("hub.example.org:443", "https://hub.example.org", True),
        ("hub.example.org:8000", "https://hub.example.org", False),
        ("hub.example.org", "https://evil.example", False),
        ("other.example,hub.example.org", "https://hub.example.org", True),
        ("hub.example.org", "http://localhost:8888", True),
        ("*", "https://hub.example.org", True),
    ],
)
def test_origins_of_a_proxy_are_let_in_where_they_are_named(
    guarded: Any, monkeypatch: Any, allowed: str, origin: str, is_let_in: bool, is_variable: bool
) -> None:
    """By the option, or by the variable of Bokeh and Panel; whether the proxy passes the browser's host on or not."""
    if is_variable:
        monkeypatch.setenv("BOKEH_ALLOW_WS_ORIGIN", allowed)
    host = origin.partition("//")[2]
    asked = [{"origin": origin}, {"origin": origin, "host": host}, {"host": host, "path": "/"}]
    statuses = [status for status, _ in guarded(*asked, allowed=() if is_variable else tuple(allowed.split(",")))]
    assert statuses[0] == (101 if is_let_in else 403)
    assert statuses[1:] == ([403, 403] if "evil" in host else [101, 200])  # a page of the same host, with any port


@pytest.mark.parametrize("given", [{"origin": "https://hub.example.org"}, {"host": "hub.example.org", "path": "/"}])
def test_who_is_refused_is_told_why_and_what_to_do(guarded: Any, caplog: Any, given: dict[str, Any]) -> None:
    """On the page and, once, in the terminal; as plain text."""
    answers = guarded(given, given)
    assert [status for status, _ in answers] == [403, 403]
    (told,) = [each.message for each in caplog.records if each.name == access.__name__]
    for text in (told, answers[0][1]):
        assert "hub.example.org" in text
        assert "--allow-origin 'hub.example.org'" in text
        assert "BOKEH_ALLOW_WS_ORIGIN" in text
    assert "Content-Type: text/plain" in answers[0][1]


def test_a_name_that_is_listened_to_is_let_in(guarded: Any) -> None:
    names = ("node7", "node7.cluster")
    asked = [{"host": f"{name}:PORT", "origin": f"http://{name}:PORT"} for name in (*names, "node8")]
    assert [status for status, _ in guarded(*asked, names=names)] == [101, 101, 403]


def test_no_other_page_holds_the_explorer(guarded: Any) -> None:
    """What `autoload.js` gives can be read by any page."""
    assert guarded({"path": "/autoload.js?bokeh-autoload-element=a"})[0][0] == 403


@pytest.mark.parametrize("address", ["localhost", "127.0.0.1", "0.0.0.0"])
def test_what_is_served_is_guarded(address: str, monkeypatch: Any) -> None:
    """Wherever it listens, and with the names that are given."""
    given = {}
    monkeypatch.setattr(access, "guard", lambda server, names, allowed: given.update(names=names, allowed=allowed))
    ds = datasets.calorimeter(1, 50, rng=0)
    app.serve(ds, address=address, allow_origin=["hub.example.org"], show=False, start=False).stop()
    assert given["allowed"] == ["hub.example.org"]
    assert ("0.0.0.0" in given["names"]) is False
    assert bool(given["names"]) == (address == "0.0.0.0")
