"""The Dockerfile against what it copies, installs and starts. No engine is needed, and no image is built."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headstart.cli.main import app

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PORT = 8765


def instructions() -> list[tuple[str, str]]:
    """(its name, the rest of its line), without comments."""
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def of(name: str) -> list[str]:
    return [rest for found, rest in instructions() if found == name]


def last_stage() -> list[tuple[str, str]]:
    found = instructions()
    return found[max(number for number, (name, _) in enumerate(found) if name == "FROM") :]


def command_of(name: str) -> list[str]:
    """The only instruction of that name, which has to be in the form that starts no shell."""
    (found,) = of(name)
    words = json.loads(found[found.index("[") :])
    assert all(isinstance(word, str) for word in words)
    return list(words)


def test_the_server_runs_as_a_user_without_rights() -> None:
    (user,) = [rest for name, rest in last_stage() if name == "USER"]
    assert int(user) > 0
    assert any(f"--uid {user} " in rest for name, rest in last_stage() if name == "RUN")
    places = [name for name, _ in last_stage()]
    assert places.index("USER") < places.index("ENTRYPOINT")


def test_only_the_volume_is_written_to() -> None:
    (volume,) = of("VOLUME")
    (settings,) = of("ENV")
    assert {f"HOME={volume}", f"HEADSTART_HOME={volume}"} <= set(settings.split())
    assert any(rest.endswith(f"install --directory --owner headstart {volume}") for rest in of("RUN"))


def test_the_server_is_started_without_a_shell_and_with_options_it_has() -> None:
    command = [*command_of("ENTRYPOINT"), *command_of("CMD")]
    assert command[:2] == ["headstart", "serve"]
    assert command[0] in PROJECT["scripts"]
    shown = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).output
    for option in (word for word in command if word.startswith("--")):
        assert option in shown
    assert of("EXPOSE") == [str(PORT)]
    assert f"default: {PORT}" in shown


def test_what_is_copied_is_there_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
    rules = [line for line in ignored if line and not line.startswith("#")]
    for copied in of("COPY"):
        *sources, _ = (word for word in shlex.split(copied) if not word.startswith("--"))
        if "--from=" in copied:
            continue
        for source in sources:
            assert (ROOT / source).exists()
            matching = [rule for rule in rules if fnmatch(source, rule.removeprefix("!"))]
            assert matching, source
            assert matching[-1] == f"!{source}"


def test_it_installs_an_extra_that_exists_for_a_python_that_will_do() -> None:
    (installed,) = [rest for rest in of("RUN") if '".[' in rest]
    extra = re.findall(r'"\.\[(\w+)\]"', installed)
    assert set(extra) <= set(PROJECT["optional-dependencies"])
    assert all("-c constraints.txt" in rest for rest in of("RUN") if " install " in rest and "pip" in rest)
    assert {rest.split()[0] for rest in of("FROM")} == {f"python:{PROJECT['requires-python'].removeprefix('>=')}-slim"}


def test_no_index_is_named() -> None:
    assert of("ARG") == ["PIP_INDEX_URL", "TORCH_INDEX_URL"]
    assert "://" not in "".join(rest for name, rest in instructions() if name != "HEALTHCHECK")


@contextmanager
def answering(status: int) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/api/ready" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_the_health_check_asks_whether_the_server_is_ready(status: int, healthy: bool) -> None:
    python, *rest = command_of("HEALTHCHECK")
    assert python == "python"
    with answering(status) as port:
        command = [sys.executable, *(word.replace(str(PORT), str(port)) for word in rest)]
        assert (subprocess.run(command, capture_output=True, check=False).returncode == 0) == healthy
