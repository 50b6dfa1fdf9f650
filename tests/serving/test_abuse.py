"""Clients that break the protocol, send slowly or without end, or leave: they are refused, the others are answered."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.serving.conftest import Running

import headstart.serving.connection as connection_module
import headstart.serving.guard as guard_module

ASK = {"model": "static", "texts": ["the cat"]}
START = b"POST /api/represent HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HEALTH = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n"
BODY = json.dumps(ASK).encode()
WHOLE = START + f"Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY
GIGABYTE = 1_000_000_000


@contextmanager
def connected(server: Running, receive_buffer: int | None = None) -> Iterator[socket.socket]:
    with socket.socket() as found:
        found.settimeout(20)
        if receive_buffer is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        found.connect((server.address.host, server.address.port))
        yield found


def answer_to(server: Running, sent: bytes) -> tuple[int, str]:
    """The status and the sentence of what a server says before it closes the connection, or 0."""
    with connected(server) as client:
        with suppress(ConnectionError):
            client.sendall(sent)
        return read_refusal(client)


def read_refusal(client: socket.socket) -> tuple[int, str]:
    received = b""
    with suppress(ConnectionError):
        while part := client.recv(65_536):
            received += part
    if not received:
        return 0, ""
    start, _, body = received.partition(b"\r\n\r\n")
    return int(start.split()[1]), json.loads(body)["detail"]


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def is_well(server: Running) -> bool:
    return server.ask("/api/represent", ASK).status == 200


@pytest.mark.parametrize("length", [f"Content-Length: {GIGABYTE}\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"])
def test_a_gigabyte_is_refused_early_and_never_held(server: Running, length: str) -> None:
    assert is_well(server)
    before, sent, chunk = resident_bytes(), 0, b"10000\r\n" + b" " * 65_536 + b"\r\n"
    with connected(server) as client:
        client.sendall(START + length.encode())
        while not select.select([client], [], [], 0)[0]:
            sent += client.send(chunk)
        assert sent < 50_000_000
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")
        with suppress(ConnectionError):
            while sent < GIGABYTE / 4:  # it does not listen
                sent += client.send(chunk)
    assert resident_bytes() - before < 30_000_000
    assert is_well(server)


@pytest.mark.parametrize("opened", [b"[", b'{"texts": ', b'{"model": "static", "texts": ['])
def test_deep_json_is_refused(server: Running, opened: bytes) -> None:
    deep = opened * 30_000 + b"1" + (b"]" if opened.endswith(b"[") else b"}") * 30_000
    answer = server.ask("/api/represent", deep)
    assert (answer.status, bool(answer.detail)) == (400, True)
    inside = b'{"model": "static", "texts": [' + b"[" * 500 + b"]" * 500 + b"]}"
    assert server.ask("/api/represent", inside).status == 422


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "static", "texts": ["a"], "\\ud800": 1}',
        b'{"model": "static", "texts": ["a"], "' + b"k" * 100_000 + b'": 1}',
        b'{"model": "\\ud800", "texts": ["a"]}',
        b'{"model": "static", "texts": ["\xff"]}',
        b'{"model": "static", "texts": ["a"], "layers": ' + b"9" * 5_000 + b"}",
        b'{"model": "static", "texts": ["a"], "layers": NaN}',
        b'{"model": "static", "texts": ["a"], "layers": 1e999}',
        b'{"model": "static", "texts": ' + b"[" + b"1," * 300_000 + b"1]}",
    ],
    ids=range(8),
)
def test_odd_json_is_refused_in_a_short_sentence(server: Running, body: bytes) -> None:
    answer = server.ask("/api/represent", body)
    assert (answer.status in (400, 422), len(answer.detail) < 400) == (True, True)


def test_a_key_of_an_input_may_be_anything(server: Running) -> None:
    for key in ("\ud800", "k" * 100_000, "\0"):
        answer = server.ask("/api/predict", {"model": "classify", "inputs": [{key: "a"}]})
        assert (answer.status, len(answer.detail) < 400) == (422, True)


@pytest.mark.parametrize(("sent", "status"), [
    (b"\x16\x03\x01\x02\x00\x01", 400),
    (b"GET / HTTP/9.9\r\n\r\n", 400),
    (b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (START + b"Content-Length: -1\r\n\r\n", 400),
    (START + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n", 400),
    (START + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (START + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
    (HEALTH + b"X-Long: " + b"x" * 70_000 + b"\r\n\r\n", 431),
    (HEALTH + b"X-More: xxxxxxxxxx\r\n" * 5_000 + b"\r\n", 431),
    (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 431),
    (START + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 600_000, 431),
    (START + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"x" * 600_000, 431),
], ids=range(12))  # fmt: skip
def test_what_is_no_request_is_refused(server: Running, sent: bytes, status: int) -> None:
    found, sentence = answer_to(server, sent)
    assert found == status
    assert sentence
    assert is_well(server)


def test_headers_may_be_long_but_not_longer(server: Running) -> None:
    with connected(server) as client:
        client.sendall(HEALTH + b"X-Long: " + b"x" * 60_000 + b"\r\nConnection: close\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")


def test_another_content_type_is_refused(server: Running) -> None:
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        answer = server.ask("/api/represent", BODY, {"content-type": content_type})
        assert (answer.status, "Content-Type: application/json" in answer.detail) == (415, True)
    assert server.ask("/api/represent", BODY, {"content-type": "Application/JSON; charset=utf-8"}).status == 200


def test_bad_origins_are_no_bugs(server: Running) -> None:
    for origin in ("http://[", "http://[::1", "://", "\xe9", "http://127.0.0.1:99999999"):
        assert server.ask("/api/represent", ASK, {"origin": origin}).status == 403


def test_http_1_0_is_answered_and_closed(server: Running) -> None:
    with connected(server) as client:
        client.sendall(WHOLE.replace(b"HTTP/1.1", b"HTTP/1.0"))
        received = b""
        while part := client.recv(65_536):
            received += part
    assert received.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in received


def test_pipelined_requests_are_answered_in_order(server: Running) -> None:
    with connected(server) as client:
        client.sendall(WHOLE + HEALTH + b"\r\n" + WHOLE + HEALTH + b"Connection: close\r\n\r\n")
        received = b""
        while part := client.recv(65_536):
            received += part
    bodies = [answer.partition(b"\r\n\r\n")[2] for answer in received.split(b"HTTP/1.1 200 OK\r\n")[1:]]
    assert [b"vectors" in body for body in bodies] == [True, False, True, False]


def test_half_a_request_and_gone(server: Running) -> None:
    for sent in (START[:20], START, START + b"Content-Length: 100\r\n\r\n{", WHOLE[:-1], WHOLE):
        for _ in range(5):
            with connected(server) as client:
                client.sendall(sent)
    assert is_well(server)


def test_a_body_that_trickles_is_not_waited_for(server_with: Callable[..., Any]) -> None:
    with server_with(body_seconds=0.3) as server:
        for length in (b"Content-Length: 1000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"):
            with connected(server) as client:
                client.sendall(START + length)
                while not select.select([client], [], [], 0.02)[0]:
                    client.sendall(b"1\r\n \r\n")
                assert client.recv(100).startswith(b"HTTP/1.1 408 ")
        assert is_well(server)


def test_who_does_not_read_the_answer_is_cut_off(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "READING_SECONDS", 0.3)
    body = json.dumps({"model": "static", "texts": ["the cat " * 2_000] * 8, "pool": "words"}).encode()
    with connected(server, receive_buffer=4_096) as client:
        client.sendall(START + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        head = client.recv(2_000)
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        time.sleep(1.5)
        received = len(head)
        with suppress(ConnectionError):
            while part := client.recv(1 << 20):
                received += len(part)
    assert received < length
    assert is_well(server)


def test_an_answer_with_too_many_numbers_is_refused(server_with: Callable[..., Any]) -> None:
    with server_with(numbers=1_000) as server:
        words = {"model": "static", "texts": ["the cat " * 100] * 4, "pool": "words"}
        answer = server.ask("/api/represent", words)
        assert (answer.status, "more than 1,000 numbers" in answer.detail) == (422, True)
        assert is_well(server)


def test_two_thousand_connections_closed_at_once(server: Running) -> None:
    address = (server.address.host, server.address.port)
    for sent in (b"", WHOLE[:30], WHOLE[:-1], WHOLE):
        opened = [socket.create_connection(address, timeout=20) for _ in range(500)]
        for client in opened:
            with suppress(ConnectionError):
                client.sendall(sent)
        for client in opened:
            client.close()
    deadline = time.monotonic() + 20
    while (status := server.ask("/api/represent", ASK).status) != 200 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert status == 200


def test_too_many_connections_are_told_to_come_back(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "MOST_CONNECTIONS", 3)
    address = (server.address.host, server.address.port)
    held = [socket.create_connection(address, timeout=20) for _ in range(3)]
    with socket.create_connection(address, timeout=20) as late:
        received = late.recv(1_000)
    assert received.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1\r\n" in received
    for client in held:
        client.close()
    deadline = time.monotonic() + 20
    while (status := server.ask("/api/health").status) == 503 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert status == 200


def test_a_client_who_is_refused_may_finish_sending(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would not read why otherwise, because its connection would be reset."""
    monkeypatch.setattr(guard_module, "DISCARDING_SECONDS", 20)
    answer = server.ask("/api/represent", b" " * 20_000_000)
    assert (answer.status, "longer than" in answer.detail) == (413, True)
