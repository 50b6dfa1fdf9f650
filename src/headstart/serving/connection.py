"""A connection that a client cannot hold by sending slowly or without end, nor by not reading what it asked for."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS, HEADER_BYTES = 10.0, 65_536
"""In which the headers of a request have to arrive once the client has connected or begun to send, and their size."""
READING_SECONDS = 30.0
"""In which a client has to make room for more of an answer."""
MOST_CONNECTIONS = 512
"""At a time: half of the files that a process may usually have open."""


class HeadersTooLong(Exception):  # noqa: N818 - it ends the parsing, and is answered
    """Raised inside the parser, which takes as many headers as a client sends."""


class GuardedConnection(HttpToolsProtocol):
    """uvicorn's own, which waits for headers and readers as long as the client likes, and takes whatever it sends."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._in_headers = True
        # Of this request's headers; and received since the parser last found the end of something.
        self._header_bytes, self._unparsed = 0, 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            self._turn_away(503, "Too many connections are open already.", {"retry-after": "1"})
        else:
            self._expect_headers()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_headers and (self.cycle is None or self.cycle.response_complete):
            self._expect_headers()
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response("")

    def on_url(self, url: bytes) -> None:
        self._count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(name + value)
        super().on_header(name, value)

    def _count(self, part: bytes) -> None:
        self._unparsed = 0
        self._header_bytes += len(part)
        if self._header_bytes > HEADER_BYTES:
            raise HeadersTooLong

    def on_headers_complete(self) -> None:
        self._forget_deadline()
        self._in_headers, self._unparsed = False, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_headers, self._header_bytes, self._unparsed = True, 0, 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Of a request that cannot be parsed."""
        if max(self._header_bytes, self._unparsed) > HEADER_BYTES:
            self._turn_away(431, f"The headers are longer than {HEADER_BYTES:,} bytes.")
        else:
            self._turn_away(400, "This is no request of HTTP/1.1.")

    def _turn_away(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        body = json.dumps({"detail": sentence})
        own = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
        lines = [f"{name}: {value}" for name, value in {**own, **(headers or {})}.items()]
        start = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"
        self.transport.write("\r\n".join([start, *lines, "", body]).encode())
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(READING_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._forget_stalled()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        self._forget_stalled()
        super().connection_lost(exc)

    def _expect_headers(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _forget_stalled(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
