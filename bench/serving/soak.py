"""Many clients for minutes, a tenth of whose requests are bad: no answer is a 5xx, and the server's memory stays flat.

    python -m bench.serving.soak --data DATA [--minutes 10] [--clients 32] [--connections 10000]

DATA holds sst/dev.txt. One `headstart serve` with an encoder of every kind and a classifier is asked for everything it
can do. Every half minute a line tells its memory and what it answered. At the end, so many connections are opened and
closed at once. Exits with 1 after any 5xx, an answer that is not JSON, or memory that grew by more than a twentieth.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.samples import sst_dev, texts_of
from bench.serving.classifier import write_classifier
from bench.serving.clients import as_request, with_body
from bench.serving.servers import ROOT, Server, ours
from bench.works import SST_DEV

STATIC, ELMO, BERT, CLASSIFIER = "words-mini", "elmo-mini", "bert-mini", "classifier"
BAD = 0.1
MOST_GROWTH = 0.05
WARMING, LAST = (0.3, 0.5), (0.8, 1.0)
"""Parts of the time whose memory is compared."""
SECONDS_BETWEEN_LOOKS, SECONDS_BETWEEN_LINES = 5.0, 30.0
SPARE_FILES = 200
LEFT = 0
"""In place of a status: the client closed the connection without waiting."""
Request = bytes
Draw = Callable[[random.Random, Sequence[str], int], Request]
"""rng, texts, the server's port -> what is sent."""


def good_request(rng: random.Random, texts: Sequence[str], port: int) -> Request:
    text, others = rng.choice(texts), rng.choices(texts, k=rng.randint(1, 8))
    words = text.split()
    hidden = " ".join([*words[:-2], "[MASK]", "."])
    path, body = rng.choice(
        [
            ("predict", {"model": CLASSIFIER, "inputs": [{"text": other} for other in others]}),
            ("predict", {"model": CLASSIFIER, "inputs": [{"text": text}]}),
            *(("represent", {"model": name, "texts": others}) for name in (STATIC, ELMO, BERT)),
            ("represent", {"model": BERT, "texts": others[:2], "layers": "all", "pool": "words"}),
            ("fill", {"model": BERT, "text": hidden}),
            ("next", {"model": ELMO, "text": text, "backward": rng.random() < 0.5}),
            ("score", {"model": rng.choice([ELMO, BERT]), "texts": others[:2]}),
            ("neighbours", {"model": STATIC, "word": "the"}),
            ("contexts", {"first": text, "second": f"{words[0]} , {others[0]}", "word": words[0]}),
        ]
    )
    return as_request(f"/api/{path}", body, port)


def malformed(rng: random.Random, texts: Sequence[str], port: int) -> Request:
    body = rng.choice([b"{", b"[" * 5_000, b"\xff\xfe", b'{"model": "\\ud800"}', b""])
    return with_body("/api/represent", body, port)


def unknown_model(rng: random.Random, texts: Sequence[str], port: int) -> Request:
    return as_request("/api/represent", {"model": "nobody", "texts": ["a"]}, port)


def too_long(rng: random.Random, texts: Sequence[str], port: int) -> Request:
    given = rng.choice([["a " * 20_000], ["a"] * 1_000, ["a " * 600_000], ["word " * 1_000]])
    return as_request("/api/represent", {"model": BERT, "texts": given}, port)


def wrong_types(rng: random.Random, texts: Sequence[str], port: int) -> Request:
    given = rng.choice([{"texts": 1}, {"texts": [1] * 5_000}, {"texts": {}}, {"inputs": ["a"]}, [], 1, None, "a"])
    return as_request("/api/predict", given, port)


def no_request(rng: random.Random, texts: Sequence[str], port: int) -> Request:
    return rng.choice(
        [b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", b"GET /\r\n\r\n"]
    )


BAD_REQUESTS: tuple[Draw, ...] = (malformed, unknown_model, too_long, wrong_types, no_request)


@dataclass(slots=True)
class Soak:
    """What all clients share."""

    port: int
    texts: Sequence[str]
    ends: float
    statuses: Counter[int] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)

    async def client(self, seed: int) -> None:
        rng = random.Random(seed)
        connection = None
        while time.monotonic() < self.ends:
            bad = rng.random() < BAD
            leaves = bad and rng.random() < 1 / (1 + len(BAD_REQUESTS))
            draw = rng.choice(BAD_REQUESTS) if bad and not leaves else good_request
            request = draw(rng, self.texts, self.port)
            try:
                connection = connection or await asyncio.open_connection("127.0.0.1", self.port)
                if leaves:
                    await leave(rng, request, connection[1])
                    self.statuses[LEFT] += 1
                    connection = None
                elif await self.ask(request, *connection):
                    connection = None
            except (OSError, EOFError) as error:
                self.broken[type(error).__name__] += 1
                if connection is not None:
                    connection[1].close()
                connection = None
        if connection is not None:
            connection[1].close()

    async def ask(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection is closed afterwards."""
        with suppress(ConnectionError):  # a refused client may still read why
            writer.write(request)
            await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        body = await reader.readexactly(int(head.partition("content-length:")[2].split("\r\n", 1)[0]))
        status = int(head[9:12])
        self.statuses[status] += 1
        if not isinstance(json.loads(body), dict):
            self.broken["no object"] += 1
        if "connection: close" in head:
            writer.close()
            return True
        return False


async def leave(rng: random.Random, request: Request, writer: asyncio.StreamWriter) -> None:
    """In the middle of a request, or before its answer."""
    writer.write(request[: rng.choice([10, len(request) - 1, len(request)])])
    await asyncio.sleep(rng.choice([0, 0.01]))
    writer.transport.abort()


async def watch(soak: Soak, server: Server) -> list[int]:
    """The server's memory every few seconds."""
    began, told, found = time.monotonic(), 0.0, []
    while time.monotonic() < soak.ends:
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
        found.append(server.resident_bytes())
        if time.monotonic() - began - told >= SECONDS_BETWEEN_LINES:
            told = time.monotonic() - began
            print(f"{told:5.0f} s  {found[-1] / 1e6:7.1f} MB  {shown(soak.statuses)}", flush=True)
    return found


def shown(statuses: Counter[int]) -> str:
    return ", ".join(f"{status or 'left'}: {count:,}" for status, count in sorted(statuses.items()))


async def run(soak: Soak, server: Server, clients: int) -> list[int]:
    memory = asyncio.ensure_future(watch(soak, server))
    await asyncio.gather(*(soak.client(seed) for seed in range(clients)))
    return await memory


async def open_and_close(port: int, count: int) -> int:
    """How many connections were open at once before all were closed."""
    opened = await asyncio.gather(
        *(asyncio.open_connection("127.0.0.1", port) for _ in range(count)), return_exceptions=True
    )
    writers = [pair[1] for pair in opened if not isinstance(pair, BaseException)]
    for writer in writers:
        writer.write(b"POST /api/predict HTTP/1.1\r\nHost: local")
    for writer in writers:
        writer.transport.abort()
    return len(writers)


def growth(memory: Sequence[int]) -> float:
    """Of the median late in the run beside that after the warm-up."""
    early, late = (memory[int(first * len(memory)) : int(last * len(memory))] for first, last in (WARMING, LAST))
    return median(late or memory) / median(early or memory) - 1


def faults(soak: Soak, memory: Sequence[int], answers_after: bool) -> list[str]:
    found = [f"{count} answers with {status}" for status, count in soak.statuses.items() if status >= 500]
    found += [f"{count} of {kind}" for kind, count in soak.broken.items()]
    if growth(memory) > MOST_GROWTH:
        found.append(f"memory grew by {growth(memory):.1%}")
    return found if answers_after else [*found, "no answer after the connections were closed"]


def most_files() -> int:
    """That this process may now have open; the server, which runs already, keeps its own bound."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def is_well(server: Server) -> bool:
    try:
        answer: Any = server.ask("/api/predict", {"model": CLASSIFIER, "inputs": [{"text": "a good film"}]})
    except OSError:
        return False
    return len(answer["answers"]) == 1


def main() -> int:
    given = parsed()
    examples = sst_dev(given.data)
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / CLASSIFIER
        write_classifier(examples, files)
        given.log.parent.mkdir(parents=True, exist_ok=True)
        with ours([STATIC, ELMO, BERT, str(files)], given.log) as server:
            soak = Soak(server.port, texts_of(examples), time.monotonic() + 60 * given.minutes)
            memory = asyncio.run(run(soak, server, given.clients))
            connections = min(given.connections, most_files() - SPARE_FILES)
            opened = asyncio.run(open_and_close(server.port, connections))
            time.sleep(SECONDS_BETWEEN_LOOKS)
            well, after = is_well(server), server.resident_bytes()
    print(f"{shown(soak.statuses)}; memory {growth(memory):+.1%} after the warm-up, at most {max(memory) / 1e6:.1f} MB")
    print(f"{opened:,} of {connections:,} connections opened, and closed at once: {after / 1e6:.1f} MB afterwards")
    wrong = faults(soak, memory, well)
    print(f"FAILED: {'; '.join(wrong)}" if wrong else "No 5xx, and memory is flat.")
    return 1 if wrong else 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.serving.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {SST_DEV}")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--connections", type=int, default=10_000, help="to open and close at once in the end")
    parser.add_argument("--log", type=Path, default=ROOT / "bench/results/soak.log", help="for what the server says")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
