"""Servers in processes of their own: ours, and the one that others would write; both open the same files."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
STARTING_SECONDS, STOPPING_SECONDS = 120, 40


@dataclass(frozen=True, slots=True)
class Server:
    """One that answers at a port of this machine."""

    process: subprocess.Popen[bytes]
    port: int

    def ask(self, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as found:
            return json.load(found)

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
        if found is None:
            raise RuntimeError("the server has no memory any more")
        return 1024 * int(found[1])


@contextmanager
def ours(sources: Sequence[str], log: Path) -> Iterator[Server]:
    """`headstart serve`. sources: as its command line takes them."""
    port = free_port()
    with running(["headstart", "serve", *sources, "--port", str(port)], port, "/api/ready", log) as server:
        yield server


@contextmanager
def theirs(model: Path, calls: str, log: Path) -> Iterator[Server]:
    """FastAPI and transformers' pipeline. calls: "threads" or "loop"."""
    port = free_port()
    command = ["bench.peers.pipeline_server", "--model", str(model), "--port", str(port), "--calls", calls]
    with running(command, port, "/ready", log) as server:
        yield server


@contextmanager
def running(module: Sequence[str], port: int, ready: str, log: Path) -> Iterator[Server]:
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", *module], cwd=ROOT, stdout=output, stderr=output)
    try:
        server = Server(process, port)
        wait_until_ready(server, ready, log)
        yield server
    finally:
        process.terminate()
        process.wait(STOPPING_SECONDS)


def wait_until_ready(server: Server, path: str, log: Path) -> None:
    deadline = time.monotonic() + STARTING_SECONDS
    while True:
        try:
            server.ask(path)
            return
        except OSError:
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"A server did not start; see {log}") from None
            time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
