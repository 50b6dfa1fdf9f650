"""The application that a server runs: the routes, what goes wrong as sentences, the guard around it all."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import TextIO

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from headstart.encoders.kernels.memory import release_freed_memory
from headstart.errors import HeadstartError
from headstart.serving.api import Answering, routes
from headstart.serving.batching import Batcher, Bounds, OverloadError
from headstart.serving.guard import App, Guard, Rules
from headstart.serving.layers import layer_routes
from headstart.serving.limits import Limits
from headstart.serving.models import Models, UnknownModelError
from headstart.serving.occurrences import occurrence_routes
from headstart.serving.records import Figures, Recorded
from headstart.serving.reference import reference_page
from headstart.serving.runs import Shelf

PAGE_FILES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
RELEASE_EVERY = 100
"""Batches, whose answers are made in one thread and freed in another: the C allocator keeps gaps between them."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def build_app(models: Models, rules: Rules, log: TextIO = sys.stderr, runs: Path | None = None) -> App:
    """rules: whom the server answers, and how much; log: for a line about each request; runs: a folder of trainings and
    comparisons to be shown."""
    figures = Figures(lambda: batcher.waiting)
    batches = count(1)

    def watch(items: int) -> None:
        figures.batches.observe(items)
        if next(batches) % RELEASE_EVERY == 0:
            release_freed_memory()

    batcher = Batcher(Bounds(waiting=rules.limits.waiting), watch)

    @asynccontextmanager
    async def until_stopped(_: FastAPI) -> AsyncIterator[None]:
        yield
        batcher.close()

    app = FastAPI(
        title="Headstart", version=version("headstart"), lifespan=until_stopped, docs_url=None, redoc_url=None
    )
    answering = Answering(models, batcher, rules.limits, Shelf(runs))
    app.include_router(routes(answering))
    app.include_router(layer_routes(answering))
    app.include_router(occurrence_routes(answering))
    add_watching(app, figures)
    add_page(app)
    add_reference(app, rules.limits)
    add_refusals(app)
    return Recorded(Guard(app, rules), figures, log)


def add_page(app: FastAPI) -> None:
    """The explorer: the files of the package, read once, each under a path of its own."""
    for file in files("headstart.serving").joinpath("page").iterdir():
        kind = PAGE_FILES[file.name.rpartition(".")[2]]
        path = "/" if file.name == "index.html" else f"/page/{file.name}"
        app.add_api_route(path, partial(page_file, file.read_bytes(), kind), include_in_schema=False)


def add_reference(app: FastAPI, limits: Limits) -> None:
    """FastAPI's own page would load scripts from elsewhere."""
    page = reference_page(app.openapi(), limits).encode()
    app.add_api_route("/api/docs", partial(page_file, page, "text/html"), include_in_schema=False)


async def page_file(content: bytes, kind: str) -> Response:
    return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})


def add_watching(app: FastAPI, figures: Figures) -> None:
    @app.get("/api/health")
    async def health() -> dict[str, str]:
        """The server is alive."""
        return {"status": "alive"}

    @app.get("/api/ready")
    async def ready() -> dict[str, str]:
        """The models are loaded: this is answered only after they are."""
        return {"status": "ready"}

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(figures.text(), media_type="text/plain; version=0.0.4")


def add_refusals(app: FastAPI) -> None:
    """Whatever goes wrong is a sentence under the key `detail`."""

    @app.exception_handler(UnknownModelError)
    async def unknown(_: Request, error: UnknownModelError) -> Response:
        return refusal(404, str(error))

    @app.exception_handler(HeadstartError)
    async def unusable(_: Request, error: HeadstartError) -> Response:
        return refusal(422, str(error))

    @app.exception_handler(OverloadError)
    async def overloaded(_: Request, error: OverloadError) -> Response:
        return refusal(503, str(error), {"Retry-After": str(error.seconds)})

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        if request.method == "POST" and not is_json(request.headers.get("content-type", "")):
            return refusal(415, "Send the body as JSON, with the header 'Content-Type: application/json'.")
        return refusal(422, as_sentence(error.errors()))

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> Response:
        headers = dict(error.headers) if error.headers else None
        return refusal(error.status_code, f"{error.detail}.", headers)


def refusal(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """In ASCII, because a sentence may quote half of a surrogate pair that the client sent, and UTF-8 has none."""
    return Response(json.dumps({"detail": sentence}), status, headers, media_type="application/json")


def is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"


def as_sentence(errors: Sequence[dict[str, object]]) -> str:
    """The first of pydantic's errors, and how many more there are."""
    first, *others = errors
    place = first.get("loc")
    where = ".".join(f"{part:.60}" for part in map(str, place) if part != "body") if isinstance(place, tuple) else ""
    more = f" (and {len(others):,} more)" if others else ""
    return f"{where or 'the body'}: {first.get('msg')}{more}."
