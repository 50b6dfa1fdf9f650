from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.cli.served import ask, free_port, wait_until_ready


def test_a_server_answers_until_it_is_told_to_stop(pretrained_runs: dict[str, Path]) -> None:
    """SIGTERM ends it with 0, and what was asked before is answered."""
    port = free_port()
    sources = [f"words={pretrained_runs['static']}", str(pretrained_runs["elmo"])]
    command = [sys.executable, "-m", "headstart", "serve", *sources, "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert said.startswith(f"words, elmo: served at http://127.0.0.1:{port}/")
        wait_until_ready(port)
        answers: list[tuple[int, object]] = []
        body = {"model": "elmo", "texts": ["the cat sat on the mat " * 200] * 16}
        asking = threading.Thread(target=lambda: answers.append(ask(port, "/api/represent", body)))
        asking.start()
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        asking.join()
        rest = process.stderr.read()
    assert process.returncode in (0, -signal.SIGTERM)
    assert [status for status, _ in answers] == [200]
    assert "Traceback" not in rest


def test_a_port_in_use_is_told_before_anything_is_loaded(cli: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refusal = cli.refusal("serve", "no-such-model", "--port", str(port))
    assert refusal.startswith(f"http://127.0.0.1:{port}: cannot be listened to")


def test_what_cannot_be_served(cli: Any, pretrained_runs: dict[str, Path]) -> None:
    words = str(pretrained_runs["static"])
    assert "no-such-model" in cli.refusal("serve", "no-such-model", "--port", "0")
    assert "Two of the models are called 'static'" in cli.refusal("serve", words, words, "--port", "0")
    assert "cannot be listened to" in cli.refusal("serve", words, "--port", "70000")
