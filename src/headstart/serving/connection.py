"""A connection that a client cannot hold by sending its headers slowly, or without end."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS, HEADER_BYTES = 10.0, 65_536
"""In which the headers of a request have to arrive once the client has connected or begun to send, and their size."""


class GuardedConnection(HttpToolsProtocol):
    """uvicorn's own, which waits for headers as long as the client likes, and takes as many as it sends."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self._expect_headers()
        if self._deadline is not None:
            self._header_bytes += len(data)
            if self._header_bytes > HEADER_BYTES and not self._headers_end_in(data):
                self.transport.close()
                return
        super().data_received(data)

    def _headers_end_in(self, data: bytes) -> bool:
        """A body may follow in the same packet, of any size."""
        return b"\r\n\r\n" in data

    def on_headers_complete(self) -> None:
        self._no_longer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._no_longer()
        super().connection_lost(exc)

    def _expect_headers(self) -> None:
        if self._deadline is None:
            self._header_bytes = 0
            self._deadline = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _no_longer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()
