from __future__ import annotations

from pathlib import Path

import pytest

from headstart.pretraining import curves
from headstart.pretraining.curves import open_curves
from headstart.pretraining.learner import StepResult
from headstart.pretraining.loop import Step


def step(number: int, loss: float) -> Step:
    result = StepResult(loss, 10, {"masked": loss})
    return Step(number, 0.1, 0.5, result, 100.0, 1.0, 2.0, {"perplexity": 7.0}, True)


def test_curves_hold_what_was_drawn_and_forget_what_a_killed_process_drew(tmp_path: Path) -> None:
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with open_curves(tmp_path, 0) as first:
        for number in range(1, 6):
            first.add(step(number, 10.0 - number))
    with open_curves(tmp_path, 3) as second:
        second.add(step(4, 60.0))
    found = accumulators.EventAccumulator(str(tmp_path / "tensorboard"))
    found.Reload()
    assert [(e.step, e.value) for e in found.Scalars("train/loss")] == [(1, 9.0), (2, 8.0), (3, 7.0), (4, 60.0)]
    assert found.Scalars("held_out/perplexity")[0].value == 7.0


def test_without_tensorboard_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves.importlib.util, "find_spec", lambda name: None)
    with open_curves(tmp_path, 0) as drawn:
        drawn.add(step(1, 1.0))
    assert list(tmp_path.iterdir()) == []
