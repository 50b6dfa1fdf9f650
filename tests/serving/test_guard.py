from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.serving.conftest import Running, rules_with, serving

import headstart.serving.connection as connection_module
from headstart.serving.app import LOOPBACK
from headstart.serving.guard import SAFE_HEADERS, Guard, Message, Receive, Rules, Scope, Send, host_name
from headstart.serving.limits import Limits
from headstart.serving.models import Models
from headstart.serving.records import JsonLines

ASK = {"model": "static", "texts": ["the cat"]}


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost:8765", "localhost"),
        ("LOCALHOST", "localhost"),
        ("[::1]:8765", "[::1]"),
        ("[::1]", "[::1]"),
        ("", ""),
    ],
)
def test_the_name_of_a_host(host: str, name: str) -> None:
    assert host_name(host) == name


def test_only_own_names_are_answered(server: Running) -> None:
    port = server.address.port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", "LocalHost"):
        assert server.ask("/api/models", headers={"host": host}).status == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "localhost.evil.example"):
        answer = server.ask("/api/models", headers={"host": host})
        assert (answer.status, "under that name" in answer.detail) == (403, True)


def test_pages_of_other_sites_are_not_answered(server: Running) -> None:
    own = str(server.address)
    assert server.ask("/api/represent", ASK, {"origin": own}).status == 200
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", f"{own}.evil.example"):
        answer = server.ask("/api/represent", ASK, {"origin": origin})
        assert (answer.status, "other sites" in answer.detail) == (403, True)


def test_a_page_of_another_site_may_link_here_and_no_more(server: Running) -> None:
    """A browser adds Sec-Fetch-Site to every request, to those without Origin too."""
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        assert server.ask("/api/models", headers={"sec-fetch-site": site}).status == status
        assert server.ask("/", headers={"sec-fetch-site": site}).status == 200


def test_every_answer_has_the_safe_headers(server: Running) -> None:
    for path in ("/api/models", "/nothing"):
        headers = server.ask(path).headers
        assert {name: headers[name] for name in SAFE_HEADERS} == SAFE_HEADERS
        assert "server" not in headers


@pytest.fixture(scope="module")
def with_token(served_models: Models) -> Iterator[Running]:
    with serving(served_models, Rules(frozenset(LOOPBACK), Limits(), "secret")) as found:
        yield found


def test_without_the_token_only_health_is_told(with_token: Running) -> None:
    assert with_token.ask("/api/health").status == with_token.ask("/api/ready").status == 200
    for path in ("/api/models", "/metrics"):
        for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic secret"}, {"authorization": "é"}):
            answer = with_token.ask(path, headers=given)
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert with_token.ask(path, headers={"authorization": "Bearer secret"}).status == 200


def test_a_token_may_have_any_letters(served_models: Models) -> None:
    with serving(served_models, Rules(frozenset(LOOPBACK), Limits(), "schlüssel")) as server:
        for given, status in (("schlüssel", 200), ("schlussel", 401)):
            headers = {"authorization": f"Bearer {given}".encode().decode("latin-1")}
            assert server.ask("/api/models", headers=headers).status == status


def test_work_is_dropped_when_its_client_leaves() -> None:
    """The application is cancelled, and with it what waits in the batcher."""
    left, dropped = asyncio.Event(), asyncio.Event()
    messages: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["body"] == b"{}"
        left.set()
        try:
            await asyncio.sleep(60)
        finally:
            dropped.set()

    async def receive() -> Message:
        if not left.is_set():
            return {"type": "http.request", "body": b"{}", "more_body": False}
        return {"type": "http.disconnect"}

    async def first_the_body_then_gone() -> Message:
        if messages:
            await left.wait()
        messages.append(await receive())
        return messages[-1]

    async def send(message: Message) -> None:
        raise AssertionError(message)

    scope = {"type": "http", "path": "/", "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1)}
    guard = Guard(app, rules_with())
    asyncio.run(asyncio.wait_for(guard(scope, first_the_body_then_gone, send), 10))
    assert dropped.is_set()
    assert [message["type"] for message in messages] == ["http.request", "http.disconnect"]
    assert not guard.under_way


def test_a_log_that_nobody_reads_stops_nobody(served_models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(line: str) -> int:
        raise BrokenPipeError

    with serving(served_models) as server:
        monkeypatch.setattr(server.log, "write", closed)
        for _ in range(2):
            assert server.ask("/api/represent", ASK).status == 200


def test_what_the_server_itself_logs_is_json_without_texts() -> None:
    try:
        raise ValueError("unmistakable")
    except ValueError as error:
        record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 1, "It %s\n", ("broke",), None)
        record.exc_info = (type(error), error, error.__traceback__)
    line = json.loads(JsonLines().format(record))
    assert (line["level"], line["event"], line["bug"].startswith("ValueError at ")) == ("error", "It broke", True)
    assert "unmistakable" not in str(line)


def test_a_long_body_is_refused_before_it_is_sent(server: Running) -> None:
    with socket.create_connection((server.address.host, server.address.port), timeout=20) as connection:
        connection.sendall(b"POST /api/represent HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n{")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_long_body_without_its_length_is_cut_off(server: Running) -> None:
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    with socket.create_connection((server.address.host, server.address.port), timeout=20) as connection:
        connection.sendall(b"POST /api/represent HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(40):
                connection.sendall(chunk)
        except OSError:  # the server has closed its side already
            pass
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_body_that_does_not_come_is_not_waited_for(server_with: Callable[..., Any]) -> None:
    with server_with(body_seconds=0.2) as server:
        began = time.monotonic()
        with socket.create_connection((server.address.host, server.address.port), timeout=20) as connection:
            connection.sendall(b"POST /api/represent HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
            assert connection.recv(100).startswith(b"HTTP/1.1 408 ")
        assert time.monotonic() - began < 10
        assert server.ask("/api/health").status == 200


@pytest.mark.parametrize("sent", [b"", b"POST /api/represent HTTP/1.1\r\nHost: local"])
def test_headers_that_do_not_come_are_not_waited_for(
    server_with: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connection_module, "HEADER_SECONDS", 0.2)
    with server_with() as server, socket.create_connection((server.address.host, server.address.port), 20) as slow:
        slow.sendall(sent)
        assert slow.recv(100) == b""
        assert server.ask("/api/health").status == 200


def test_a_connection_is_kept_for_the_next_request_and_not_longer(
    server_with: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "HEADER_SECONDS", 0.3)
    with server_with() as server, socket.create_connection((server.address.host, server.address.port), 20) as one:
        for _ in range(2):
            one.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert one.recv(5000).startswith(b"HTTP/1.1 200 ")
        one.sendall(b"GET /api/he")
        assert one.recv(100) == b""


def test_headers_without_end_are_cut_off(server: Running) -> None:
    with socket.create_connection((server.address.host, server.address.port), timeout=20) as endless:
        endless.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        line = b"X-More: " + b"x" * 1000 + b"\r\n"
        with pytest.raises(OSError, match=r"."):
            endless.sendall(line * 10_000)
    assert server.ask("/api/health").status == 200


def test_a_client_who_asks_too_much_at_once_is_told_to_wait(server_with: Callable[..., Any]) -> None:
    with server_with(per_client=2, body_seconds=5) as server:
        half = b"POST /api/represent HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"
        address = (server.address.host, server.address.port)
        held = [socket.create_connection(address, timeout=20) for _ in range(2)]
        for connection in held:
            connection.sendall(half)
        deadline = time.monotonic() + 5
        while (answer := server.ask("/api/represent", ASK)).status == 200 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert (answer.status, answer.headers["retry-after"]) == (429, "1")
        for connection in held:
            connection.close()
        while (answer := server.ask("/api/represent", ASK)).status == 429 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert answer.status == 200


def test_too_many_texts_at_once_are_turned_away(server_with: Callable[..., Any]) -> None:
    """Some are answered, the others told to come back; none is lost, and nothing breaks."""
    with server_with(waiting=4) as server:
        body = {"model": "elmo", "texts": ["the cat sat on the mat " * 30] * 4}
        with ThreadPoolExecutor(12) as pool:
            found = list(pool.map(lambda _: server.ask("/api/represent", body), range(24)))
        assert {answer.status for answer in found} <= {200, 503}
        assert any(answer.status == 200 for answer in found)
        assert all(answer.headers["retry-after"] == "1" for answer in found if answer.status == 503)
        assert server.ask("/api/represent", ASK).status == 200


def test_the_log_has_no_text_of_users(server: Running) -> None:
    server.ask("/api/represent", {"model": "static", "texts": ["unmistakable"]})
    server.ask("/api/unmistakable?unmistakable=1")
    server.ask("/api/fill", {"model": "bert", "text": "unmistakable"})
    deadline = time.monotonic() + 10  # a line is written after the answer
    while "/api/fill" not in server.log.getvalue().splitlines()[-1] and time.monotonic() < deadline:
        time.sleep(0.01)
    lines = [json.loads(line) for line in server.log.getvalue().splitlines()]
    assert "unmistakable" not in server.log.getvalue()
    last = [(line["method"], line["route"], line["status"]) for line in lines[-3:]]
    assert last == [("POST", "/api/represent", 200), ("GET", "none", 404), ("POST", "/api/fill", 422)]


def test_figures_count_what_was_asked(server: Running) -> None:
    def count() -> float:
        lines = server.ask("/metrics").body.decode().splitlines()
        wanted = 'headstart_requests_total{method="POST",route="/api/represent",status="200"} '
        return next((float(line.removeprefix(wanted)) for line in lines if line.startswith(wanted)), 0.0)

    before = count()
    for _ in range(3):
        server.ask("/api/represent", ASK)
    assert count() == before + 3
