"""What every request passes before it is read: who asks, from which page, how much, and how fast it is sent."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from headstart.serving.limits import Limits

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_TO_ALL = ("/api/health", "/api/ready", "/api/docs")
"""Without a token: what machines that watch the server ask for, and what holds nothing of its models."""
PAGES = ("/", "/api/docs")
"""Another site may link to them."""
OWN_PAGES = ("same-origin", "none")
"""Values of Sec-Fetch-Site: the explorer asks, or the user typed the address."""
SAFE_HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
DISCARDING_SECONDS = 2.0
"""A refused client may still be sending. Closing at once would reset the connection, and it might never read why."""


class Refused(Exception):  # noqa: N818 - it is no error of the server's
    """An answer that is given at once, in a sentence."""

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, headers or {}


@dataclass(frozen=True, slots=True)
class Rules:
    """hosts: the names by which the server may be called, without ports; token: what every request to the API must
    bring, or None."""

    hosts: frozenset[str]
    limits: Limits
    token: str | None = None


@dataclass(slots=True)
class Guard:
    """An application around another one, which gets only requests that keep the rules, with their whole bodies."""

    app: App
    rules: Rules
    under_way: Counter[str] = field(default_factory=Counter)
    """Requests of each client that are not answered yet."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket: none is offered
            await send({"type": "websocket.close", "code": 1008})
            return
        client = scope["client"][0] if scope.get("client") else "unknown"
        self.under_way[client] += 1
        try:
            await self._pass_on(scope, receive, with_headers(send), client)
        finally:
            self.under_way[client] -= 1
            if not self.under_way[client]:
                del self.under_way[client]

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, client: str) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            check_caller(scope["path"], headers, self.rules.hosts)
            check_token(scope["path"], headers, self.rules.token)
            if self.under_way[client] > self.rules.limits.per_client:
                raise Refused(
                    429, "Too many requests of yours are under way. Wait for some of them.", {"retry-after": "1"}
                )
            body = await whole_body(headers, receive, self.rules.limits)
        except Refused as refused:
            closing = {"connection": "close"} if has_body(headers) else {}
            await refuse(refused.status, str(refused), {**refused.headers, **closing}, receive, send)
            return
        if body is not None:
            await while_connected(self.app(scope, replayed(body, receive), send), receive)


def has_body(headers: dict[str, str]) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


async def refuse(status: int, sentence: str, headers: dict[str, str], receive: Receive, send: Send) -> None:
    """The whole answer at once; it ends only when the client has sent its body, or for too long."""
    start, body = messages_of(status, sentence, headers)
    await send(start)
    await send({**body, "more_body": True})
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARDING_SECONDS):
            while (await receive()).get("more_body"):
                pass
    await send({"type": "http.response.body", "body": b""})


async def while_connected(answering: Awaitable[None], receive: Receive) -> None:
    """Until it is answered, or the client has left: nobody then waits for what it asked. receive: after the body."""
    task, gone = asyncio.ensure_future(answering), asyncio.ensure_future(receive())
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        if not task.done():
            task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def check_caller(path: str, headers: dict[str, str], hosts: frozenset[str]) -> None:
    """A page of another site in the same browser may send requests here, but under its own name (Origin), as one of
    another site (Sec-Fetch-Site), or under a name of its own that it lets point to this machine (Host)."""
    host = headers.get("host", "")
    if host_name(host) not in hosts:
        raise Refused(403, "This server does not answer under that name. Start it with --host, or --allow-host, NAME.")
    origin = headers.get("origin")
    from_elsewhere = headers.get("sec-fetch-site", "none") not in OWN_PAGES and path not in PAGES
    if (origin is not None and origin.partition("://")[2] != host) or from_elsewhere:
        raise Refused(403, "Requests from pages of other sites are not answered.")


def host_name(host: str) -> str:
    """Of "name:8765", "[::1]:8765" or "name"."""
    return host[: host.rfind("]") + 1] if host.startswith("[") else host.partition(":")[0].lower()


def check_token(path: str, headers: dict[str, str], token: str | None) -> None:
    asked = path.startswith(("/api/", "/metrics")) and path not in OPEN_TO_ALL
    if token is None or not asked:
        return
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode("latin-1"), token.encode()):
        raise Refused(
            401, "A token is needed: send the header 'Authorization: Bearer TOKEN'.", {"www-authenticate": "Bearer"}
        )


async def whole_body(headers: dict[str, str], receive: Receive, limits: Limits) -> bytes | None:
    """What the client sends, if it is not too long and does not take too long; None: the client has left."""
    too_long = Refused(413, f"The body is longer than {limits.body:,} bytes.")
    if int(headers.get("content-length", "0")) > limits.body:  # the parser takes nothing but a number of 64 bits
        raise too_long
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limits.body:
                    raise too_long
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise Refused(408, f"The body did not arrive within {limits.body_seconds:g} seconds.") from None


def replayed(body: bytes, receive: Receive) -> Receive:
    """The body in one message; then whatever comes, which is that the client leaves."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def with_headers(send: Send) -> Send:
    async def add(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message["headers"]}
            safe = [(name.encode(), value.encode()) for name, value in SAFE_HEADERS.items()]
            message["headers"] = [*message["headers"], *(pair for pair in safe if pair[0] not in given)]
        await send(message)

    return add


async def answer(send: Send, status: int, sentence: str) -> None:
    for message in messages_of(status, sentence, {}):
        await send(message)


def messages_of(status: int, sentence: str, headers: dict[str, str]) -> tuple[Message, Message]:
    body = json.dumps({"detail": sentence}).encode()
    own = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    listed = [(name.encode(), value.encode()) for name, value in own.items()]
    start: Message = {"type": "http.response.start", "status": status, "headers": listed}
    return start, {"type": "http.response.body", "body": body}
