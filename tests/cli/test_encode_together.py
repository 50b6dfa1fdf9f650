"""`headstart encode` by real processes under torchrun: killed, restarted and stopped it ends with the bytes of one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.pretraining.launched import workers

import headstart
from headstart.inspection import stretches
from headstart.progress import result_of

EAGER = """
import time
from headstart.cli.main import run
from headstart.inspection import shards, stretches, unfinished
unfinished.SECONDS_BETWEEN_SAVES, stretches.STRETCH = 0, 10
save = shards.Shard.save
shards.Shard.save = lambda part: (save(part), time.sleep(0.05))
run()
"""
"""Saving is made eager, and encoding slow enough to be hit."""


def wait_for(record: Path, lines: int, process: subprocess.Popen[str]) -> None:
    while not (record.exists() and json.loads(record.read_text())["reached"]["lines"] >= lines):
        assert process.poll() is None
        time.sleep(0.01)


def test_killed_restarted_stopped_and_gone_on_with_alone(
    pretrained_runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, out, script = tmp_path / "text.txt", tmp_path / "several" / "vectors.npy", tmp_path / "eager.py"
    text.write_text("The cat likes the film .\n\nNobody writes old songs .\n" * 300, encoding="utf-8")
    script.write_text(EAGER)
    record = out.parent / f"{out.name}.partial" / "record.json"
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=2", str(script)]
    command = ["encode", str(pretrained_runs["bert"]), str(text), "--out", str(out), "--pool", "words"]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as in this process: bits depend on it
    process = subprocess.Popen(
        [sys.executable, "-m", *launcher, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for(record, 100, process)
    first = workers(process.pid)
    os.kill(first[1], signal.SIGKILL)
    wait_for(record, 300, process)
    second = workers(process.pid)
    assert set(first.values()).isdisjoint(second.values())
    os.kill(second[1], signal.SIGTERM)
    said = process.communicate(timeout=60)
    assert process.returncode == 0, said  # and torchrun has not restarted what was asked to stop
    assert said[0] == ""
    assert "Going on after line" in said[1]
    assert "keeps what is encoded; the same command goes on there." in said[1]
    stopped_at = json.loads(record.read_text())["reached"]["lines"]
    assert 300 <= stopped_at < 900

    monkeypatch.setattr(stretches, "STRETCH", 10)
    result_of(headstart.encode(pretrained_runs["bert"], text, out, pool="words"))
    result_of(headstart.encode(pretrained_runs["bert"], text, tmp_path / "alone" / out.name, pool="words"))
    made = {path.name: path.read_bytes() for path in out.parent.iterdir()}
    assert made == {path.name: path.read_bytes() for path in (tmp_path / "alone").iterdir()}
