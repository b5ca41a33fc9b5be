"""Who is let in to a page that is served: over sockets, as browsers, tunnels and proxies ask."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from bokeh.server.server import Server
from bokeh.util.token import generate_jwt_token, generate_session_id
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from daskclust import app, datasets
from daskclust.app.page import access
from daskclust.app.page.address import Address


@pytest.fixture
def guarded() -> Iterator[Any]:
    """Return a function that serves an empty page, guarded so, and asks for it; the answer's status and text."""
    servers = []

    def ask(
        *requests: dict[str, Any],
        names: tuple[str, ...] = (),
        allowed: tuple[str, ...] = (),
        token: str | None = None,
        address: str = "127.0.0.1",
    ) -> list[Any]:
        server = Server({"/": lambda document: None}, port=0, address=address)
        servers.append(server)
        access.guard(server, names, allowed, token)
        return [server.io_loop.run_sync(lambda given=given: answer(server.port, **given)) for given in requests]

    yield ask
    for server in servers:
        server.stop()


async def answer(
    port: int,
    *,
    host: str = "localhost:PORT",
    origin: str | None = None,
    path: str = "/ws",
    at: str = "127.0.0.1",
    token: str | None = None,
) -> Any:
    """Return the status of an answer, and its text; ``/ws`` is asked for a websocket, with a session."""
    token = token or generate_jwt_token(generate_session_id())
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", *([] if origin is None else [f"Origin: {origin}"])]
    if path == "/ws":
        lines += ["Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        lines += [f"Sec-WebSocket-Protocol: bokeh, {token}"]
    else:
        lines += ["Connection: close"]
    reader, writer = await asyncio.open_connection(at, port)
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


# ----------------------------------------------------------------------------------------------------------- the token
STATIC = "/static/js/bokeh.min.js"  # what every browser may have
OF_USERS = {
    "mine": [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("127.0.0.1", "::ffff:127.0.0.1")],
    "another's": [("127.0.0.1", "127.0.0.1"), ("::1", "::1")],
    "not told": [("127.0.0.1", "127.0.0.1")],
}


@pytest.mark.parametrize("given", [None, "word"])
@pytest.mark.parametrize(("user", "address", "at"), [(user, *ends) for user, all in OF_USERS.items() for ends in all])
def test_the_token_is_asked_of_other_users_or_of_all(
    guarded: Any, monkeypatch: Any, caplog: Any, user: str, address: str, at: str, given: str | None
) -> None:
    """By default of those whose connection is not this user's, which Linux tells; else of other machines."""
    if user == "another's":
        monkeypatch.setattr(os, "getuid", lambda: 4242)
    if user == "not told":
        monkeypatch.setattr(access, "_CONNECTIONS", ())
    is_let_in = given is None and user != "another's"
    paths = ["/", "/metadata", "/?token=", "/?token=wrong", "/?token=w%C3%B6rd", STATIC]
    statuses = [
        status for status, _ in guarded(*({"path": path, "at": at} for path in paths), token=given, address=address)
    ]
    assert statuses == [*(5 * [200 if is_let_in else 403]), 200]
    told = [each.message for each in caplog.records if each.name == access.__name__]
    assert len(told) == (not is_let_in)
    for line in told:
        token = re.search(r"http://localhost:\d+/\?token=([\w-]+)", line)[1]  # what to give to others
        assert guarded({"path": f"/?token={token}", "at": at}, token=token, address=address)[0][0] == 200
        assert given in (None, token)
        assert len(token) > 40 or given


def test_refusals_do_not_show_the_token(guarded: Any) -> None:
    assert "secret" not in guarded({"path": "/"}, token="secret")[0][1]


def test_a_connection_of_another_machine_is_of_no_user_here(monkeypatch: Any) -> None:
    """Whatever ports it has; and where the system tells nothing of connections."""
    assert access.is_of_this_user(("192.0.2.7", 50000), 5006) is False
    monkeypatch.setattr(access, "_CONNECTIONS", ())
    assert access.is_of_this_user(("192.0.2.7", 50000), 5006) is False
    assert access.is_of_this_user(("::1", 50000, 0, 0), 5006) is True


def test_a_websocket_needs_a_session_that_a_page_had() -> None:
    """A user who was refused the page can make none."""
    server = app.serve(datasets.calorimeter(1, 50, rng=0), token="word", show=False, start=False)

    def ask(**given: Any) -> Any:
        return server.io_loop.run_sync(lambda: answer(server.port, **given))

    assert ask(path="/")[0] == 403
    page = ask(path="/?token=word")[1]
    for token, is_let_in in ((re.search(r'"token":"([^"]+)"', page)[1], True), (None, False)):
        assert ask(token=token)[0] == 101
        assert server.io_loop.run_sync(lambda token=token: stays(server.port, token)) is is_let_in
    server.stop()


async def stays(port: int, token: str | None) -> bool:
    """Tell whether a websocket is there after its handshake: Bokeh sends an acknowledgement, or closes it."""
    request = HTTPRequest(f"ws://localhost:{port}/ws")
    wire = await websocket_connect(request, subprotocols=["bokeh", token or generate_jwt_token(generate_session_id())])
    message = await wire.read_message()
    wire.close()
    return message is not None


def test_the_address_of_the_page_keeps_the_token() -> None:
    """So that it can be loaded again; one that had none gets none."""
    for search, is_kept in (("?token=word&system=clue", True), ("?system=clue", False)):
        location = SimpleNamespace(search=search)
        Address(location).keep({"system": "clue", "dc": 1.0})
        assert ("token=word" in location.search) is is_kept
        assert "dc=1.0" in location.search


@pytest.mark.parametrize("address", ["localhost", "127.0.0.1", "0.0.0.0"])
def test_what_is_served_is_guarded(address: str, monkeypatch: Any) -> None:
    """Wherever it listens, and with what is given."""
    given: list[Any] = []
    monkeypatch.setattr(access, "guard", lambda server, *rest: given.extend(rest))
    how: dict[str, Any] = {"address": address, "allow_origin": ["hub.example.org"], "token": "word"}
    app.serve(datasets.calorimeter(1, 50, rng=0), **how, show=False, start=False).stop()
    names, *rest = given
    assert rest == [["hub.example.org"], "word"]
    assert "0.0.0.0" not in names
    assert bool(names) == (address == "0.0.0.0")


@pytest.mark.parametrize(("words", "has_token"), [("", False), ("--token", True), ("--address 0.0.0.0", True)])
def test_the_command_shows_the_address_with_its_token(
    command: Any, tmp_path: Any, monkeypatch: Any, words: str, has_token: bool
) -> None:
    (tmp_path / "xyz.csv").write_text("x,y\n0,0\n1,1\n")
    given: dict[str, Any] = {}

    def serve(*_: Any, **options: Any) -> Any:
        given.update(options)
        loop = SimpleNamespace(start=lambda: None)
        return SimpleNamespace(port=1234, start=lambda: None, stop=lambda: None, io_loop=loop)

    monkeypatch.setattr(app, "serve", serve)
    code, out, err = command(
        "explore", tmp_path / "xyz.csv", "--no-browser", "--allow-origin", "a, b:80", *words.split()
    )
    assert code == 0
    assert given["allow_origin"] == ["a", "b:80"]
    assert (given["token"] is not None) is has_token
    way = f"?token={given['token']} (" if has_token else " ("
    assert f":1234/{way}" in out
    assert ("whoever has this address" in err) == ("0.0.0.0" in words)
