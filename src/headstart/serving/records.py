"""What a server tells of itself: a line of JSON for each request, and figures for Prometheus. Never a user's text."""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

from headstart.config import Table
from headstart.serving.guard import App, Message, Receive, Scope, Send, answer

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
ITEMS = (1, 2, 4, 8, 16, 32, 64)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""A client may write anything in its place."""


class Figures:
    """Of one server, in a registry of its own: two servers in one process do not add up."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "headstart_requests", "Requests answered.", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "headstart_request_seconds", "Time to answer.", ["route"], buckets=SECONDS, registry=self.registry
        )
        self.batches = Histogram(
            "headstart_batch_items", "Texts that were computed together.", buckets=ITEMS, registry=self.registry
        )
        waits = Gauge("headstart_waiting_items", "Texts that wait to be computed.", registry=self.registry)
        waits.set_function(waiting)

    def text(self) -> bytes:
        return generate_latest(self.registry)


@dataclass(slots=True)
class Recorded:
    """An application around another one: writes a line for each request, and counts it; a bug is an answer, too."""

    app: App
    figures: Figures
    log: TextIO

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        bug = None
        try:
            await self.app(scope, receive, watched)
        except Exception as error:
            bug = described(error)
            if not status:
                await answer(watched, 500, "Something went wrong in the server; its log tells where.")
        finally:
            self._record(scope, status, time.perf_counter() - began, bug)

    def _record(self, scope: Scope, status: int, seconds: float, bug: str | None) -> None:
        route = route_of(scope)
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.figures.requests.labels(method, route, status).inc()
        self.figures.seconds.labels(route).observe(seconds)
        line = {"method": method, "route": route, "status": status, "milliseconds": round(1000 * seconds, 1)}
        with suppress(OSError, ValueError):  # the log may be a pipe that nobody reads any more
            print(json_line(line | ({"bug": bug} if bug else {})), file=self.log, flush=True)


class JsonLines(logging.Formatter):
    """For what uvicorn says: like the lines of requests, without what an error says."""

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        line = {"level": record.levelname.lower(), "event": record.getMessage().strip()}
        return json_line(line | ({"bug": described(error)} if error else {}))


def json_line(line: Table) -> str:
    return json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())} | line)


def route_of(scope: Scope) -> str:
    """The pattern that matched, never what the client wrote."""
    route = scope.get("route")
    return str(getattr(route, "path", "none"))


def described(error: BaseException) -> str:
    """Its kind and the place it was raised at; what it says may hold a user's text."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    return type(error).__name__ + (f" at {last.name}, line {last.lineno}" if last else "")
