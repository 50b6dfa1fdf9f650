"""A server started by the command line, as its client meets it."""

from __future__ import annotations

import json
import socket
import time
import urllib.request


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def ask(port: int, path: str, body: object = None) -> tuple[int, object]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as found:
        return found.status, json.load(found)


def wait_until_ready(port: int, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            assert ask(port, "/api/ready") == (200, {"status": "ready"})
            return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
