"""A server with a tiny model of every kind and task, on a port of its own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from headstart.pretrained import load_run
from headstart.progress import result_of
from headstart.serving.app import LOOPBACK, build_app
from headstart.serving.guard import Rules
from headstart.serving.limits import Limits
from headstart.serving.models import Models, ServedEncoder, ServedTask
from headstart.serving.occurrences import with_indexes
from headstart.serving.server import Address, listen, settings_of_server
from headstart.tasks import TASKS, task_class
from headstart.transfer.fit import transfer_once
from headstart.transfer.start import open_start, settings_for

FEW: dict[str, Any] = {"fitting": {"min_steps": 4, "epochs": 0.1, "batch": 4}}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def detail(self) -> str:
        return str(self.json["detail"])


@dataclass(frozen=True)
class Running:
    """A server that runs. log: what it wrote."""

    address: Address
    log: StringIO

    def ask(
        self, path: str, body: object = None, headers: dict[str, str] | None = None, method: str | None = None
    ) -> Answer:
        """body: as JSON, or bytes as they are."""
        connection = HTTPConnection(self.address.host, self.address.port, timeout=30)
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        own = {"content-type": "application/json", **(headers or {})}
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, sent, own)
            found = connection.getresponse()
            names = {name.lower(): value for name, value in found.getheaders()}
            return Answer(found.status, names, found.read())
        finally:
            connection.close()


@pytest.fixture(scope="session")
def served_models(pretrained_runs: dict[str, Path], tiny_examples: dict[str, list[Any]]) -> Models:
    """The encoders by their kinds, and a task model by the name of each task, barely trained."""
    start = open_start(pretrained_runs["bert"])
    tasks = []
    for name in TASKS:
        kind, examples = task_class(name), tiny_examples[name]
        config = settings_for(kind, start, "frozen", FEW)
        fitted = result_of(transfer_once(start, config, kind.learn(examples), examples, examples, seed=0))
        tasks.append(ServedTask(name, fitted.model))
    return Models([*(ServedEncoder(kind, load_run(path)) for kind, path in pretrained_runs.items()), *tasks])


@contextmanager
def serving(models: Models, rules: Rules | None = None, runs: Path | None = None) -> Iterator[Running]:
    bound, address = listen(Address("127.0.0.1", 0))
    log = StringIO()
    server = uvicorn.Server(settings_of_server(build_app(models, rules or rules_with(), log, runs)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Running(address, log)
    finally:
        server.should_exit = True
        thread.join()
        bound.close()


@pytest.fixture(scope="session")
def server(served_models: Models, pretrained_runs: dict[str, Path]) -> Iterator[Running]:
    with serving(served_models, runs=pretrained_runs["bert"].parent) as found:
        yield found


@pytest.fixture(scope="session")
def indexed(served_models: Models, tmp_path_factory: pytest.TempPathFactory) -> Models:
    """The same, with a small text to search."""
    folder = tmp_path_factory.mktemp("among")
    text = folder / "text.txt"
    text.write_text(
        "The cat sat on the mat .\nA dog saw the cat .\nThe dog and the cat sat on a mat .\nA good film .\n"
    )
    return result_of(with_indexes(served_models, [text], cache=folder / "cache"))


@pytest.fixture(scope="session")
def searching(indexed: Models) -> Iterator[Running]:
    with serving(indexed) as found:
        yield found


@pytest.fixture
def server_with(served_models: Models) -> Callable[..., Any]:
    """A server with other limits, as a context."""
    return lambda **limits: serving(served_models, rules_with(**limits))


def rules_with(**limits: float) -> Rules:
    return Rules(frozenset(LOOPBACK), Limits(**limits))
