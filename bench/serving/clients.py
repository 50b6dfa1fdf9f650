"""Clients that ask one server again and again, each the next request as soon as it has its answer.

    python -m bench.serving.clients --port N --requests FILE.json --clients 32 --seconds 10 --out FILE.json

The file of requests holds {"path": ..., "bodies": [...]}. Nothing but the standard library is imported, and answers are
not parsed, so that the clients take little of the time of the cores that they share with the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

WARMING = 0.2
"""Part of the time whose answers do not count: the server's first batches, and clients that begin all at once."""


@dataclass(slots=True)
class Load:
    """What is asked, and what came of it. seconds: of each answer that counts, the time to it."""

    requests: Sequence[bytes]
    ends: float
    counts_from: float
    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    numbers: count[int] = field(default_factory=count)

    def next_request(self) -> bytes:
        return self.requests[next(self.numbers) % len(self.requests)]


class Client(asyncio.Protocol):
    """A connection that sends the next request when the last one is answered."""

    def __init__(self, load: Load, done: asyncio.Future[None]) -> None:
        self.load, self.done = load, done
        self.received, self.missing = bytearray(), None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        if time.perf_counter() >= self.load.ends:
            self.transport.close()
            return
        self.began = time.perf_counter()
        self.transport.write(self.load.next_request())

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, separator, body = self.received.partition(b"\r\n\r\n")
        if not separator:
            return
        if len(body) < int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]):
            return
        now = time.perf_counter()
        if now >= self.load.counts_from:
            self.load.seconds.append(now - self.began)
            self.load.statuses[int(head[9:12])] += 1
        self.received.clear()
        self.ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def ask_for(port: int, requests: Sequence[bytes], clients: int, seconds: float) -> dict[str, object]:
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    load = Load(requests, began + seconds, began + WARMING * seconds)
    done = [loop.create_future() for _ in range(clients)]
    for one in done:
        await loop.create_connection(lambda one=one: Client(load, one), "127.0.0.1", port)
    await asyncio.gather(*done)
    counted = time.perf_counter() - load.counts_from
    return {"seconds": load.seconds, "statuses": load.statuses, "counted_seconds": counted}


def as_request(path: str, body: object, port: int) -> bytes:
    return with_body(path, json.dumps(body).encode(), port)


def with_body(path: str, sent: bytes, port: int) -> bytes:
    lines = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Content-Type: application/json"]
    return "\r\n".join([*lines, f"Content-Length: {len(sent)}", "", ""]).encode() + sent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.serving.clients", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--requests", type=Path, required=True)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    asked = json.loads(given.requests.read_text())
    requests = [as_request(asked["path"], body, given.port) for body in asked["bodies"]]
    found = asyncio.run(ask_for(given.port, requests, given.clients, given.seconds))
    given.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
