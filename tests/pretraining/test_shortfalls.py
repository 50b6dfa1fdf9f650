"""A run that got less training than it was meant to says so."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import headstart
from headstart.pretraining import session
from headstart.pretraining.events import Finished

BUSY_SHARE = session.BUSY_SHARE
SETTINGS = {"encoder.cell": 16, "encoder.projection": 8, "training.batch": 200}


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else the machine is doing during these tests is no part of what they ask."""
    monkeypatch.setattr(session, "BUSY_SHARE", 0.0)


def finished(corpus: Path, out: Path, **length: object) -> Finished:
    *_, last = headstart.pretrain("elmo", corpus, out=out, size="tiny", settings=SETTINGS, **length)  # type: ignore[arg-type]
    assert isinstance(last, Finished)
    return last


def test_a_run_of_hardly_any_text(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LITTLE", 1e9)
    (shortfall,) = finished(corpus, tmp_path / "run", steps=1).shortfalls
    assert "hardly learned anything" in shortfall
    assert f"**Warning:** {shortfall}" in (tmp_path / "run" / "CARD.md").read_text()
    last = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[-1])
    assert last["shortfalls"] == [shortfall]


def test_a_run_that_trained_as_it_was_meant_to_says_nothing(corpus: Path, tmp_path: Path) -> None:
    assert finished(corpus, tmp_path / "run", epochs=0.5).shortfalls == ()
    assert "Warning" not in (tmp_path / "run" / "CARD.md").read_text()


def test_a_busy_machine(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "BUSY_SHARE", BUSY_SHARE)
    monkeypatch.setattr(session.CoreUsage, "share", lambda self: 0.2)
    (shortfall,) = finished(corpus, tmp_path / "run", epochs=0.5).shortfalls
    assert "got 20 % of the time" in shortfall


def test_a_budget_that_reading_ate(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SHORT_TRAINING_SHARE", 1.0)
    (shortfall,) = finished(corpus, tmp_path / "run", budget="8s").shortfalls
    assert shortfall.startswith("Reading the text took")


def test_waiting_is_no_use_of_a_core() -> None:
    usage = session.CoreUsage()
    time.sleep(1.1)
    assert usage.share() < 0.3
