"""Scoring a model on a file: how far it is, and that the parts in which it is done change nothing."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from headstart.progress import Progress, result_of
from headstart.tasks.classify import Classify
from headstart.tasks.reading import ExamplesConfig
from headstart.transfer import evaluate as evaluation
from headstart.transfer.fit import transfer_once
from headstart.transfer.start import open_start, settings_for


def test_progress_is_told_in_parts_that_change_no_answer(
    labelled: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    train, dev = (Classify.read(path, ExamplesConfig()) for path in labelled)
    start = open_start("scratch")
    config = settings_for(Classify, start, "frozen", {"fitting": {"min_steps": 3, "epochs": 0.1}})
    model = result_of(transfer_once(start, config, Classify.learn(train), train, dev, seed=0)).model
    at_once = result_of(evaluation.evaluate_model(model, labelled[1], ExamplesConfig(), "run"))
    monkeypatch.setattr(evaluation, "ANSWERED_AT_ONCE", len(dev) // 3)
    seen: list[object] = []

    def watched() -> Generator[None, None, evaluation.Evaluated]:
        job = evaluation.evaluate_model(model, labelled[1], ExamplesConfig(), "run")
        while True:
            try:
                seen.append(next(job))
            except StopIteration as end:
                done: evaluation.Evaluated = end.value
                return done
            yield

    in_parts = result_of(watched())
    labels = [[answer.label for answer in one.answered.answers] for one in (in_parts, at_once)]
    assert labels[0] == labels[1]
    assert in_parts.scores() == at_once.scores()
    told = [event for event in seen if isinstance(event, Progress) and event.stage == "answering"]
    assert len(told) >= 4
    assert [event.done for event in told] == sorted({event.done for event in told})
    assert (told[0].done, told[-1].done, told[-1].total, told[-1].unit) == (0, len(dev), len(dev), Classify.many)
