"""Runs the application on a port, until it is told to stop; then what is under way is still answered."""

from __future__ import annotations

import socket
from dataclasses import dataclass

import uvicorn

from headstart.config import Table
from headstart.errors import ConfigError
from headstart.serving.connection import GuardedConnection
from headstart.serving.guard import App
from headstart.serving.records import JsonLines

KEEP_ALIVE, LAST_ANSWERS = 5, 30
"""Seconds that an idle connection stays open, and that requests under way have left when the server stops."""
LOGGING: Table = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": JsonLines}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "loggers": {name: {"handlers": ["stderr"], "level": "WARNING"} for name in ("uvicorn", "asyncio")},
}


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    @property
    def name(self) -> str:
        """The host as a URL has it."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def __str__(self) -> str:
        return f"http://{self.name}:{self.port}"


def listen(address: Address) -> tuple[socket.socket, Address]:
    """A socket that is bound already, so that a port in use is told before models are loaded. Port 0: any free one."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((address.host, address.port))
    except (OSError, OverflowError) as error:
        found.close()
        raise ConfigError(
            f"{address}: cannot be listened to ({getattr(error, 'strerror', None) or error}). Give another --port or "
            "--host."
        ) from error
    return found, Address(address.host, found.getsockname()[1])


def run(app: App, bound: socket.socket) -> None:
    """Until SIGINT or SIGTERM."""
    uvicorn.Server(settings_of_server(app)).run(sockets=[bound])


def settings_of_server(app: App) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=LOGGING,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=LAST_ANSWERS,
        http=GuardedConnection,
        ws="none",
        lifespan="on",
    )
