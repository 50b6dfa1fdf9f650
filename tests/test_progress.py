"""Events of long jobs, and running a job for its result."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from headstart.progress import Notice, Progress, as_dict, result_of


@dataclass(frozen=True, slots=True)
class Done:
    out: Path
    scores: dict[str, float]
    steps: list[Progress]
    counts: np.ndarray


def test_every_event_is_a_dictionary_that_json_can_hold() -> None:
    event = Done(Path("runs/a"), {"f1": 0.5}, [Progress("encoding", 1, 2, "texts")], np.array([1, 2]))
    found = as_dict(event)
    assert json.loads(json.dumps(found)) == found
    assert found == {
        "event": "Done",
        "out": "runs/a",
        "scores": {"f1": 0.5},
        "steps": [{"stage": "encoding", "done": 1, "total": 2, "unit": "texts"}],
        "counts": [1, 2],
    }
    assert as_dict(Notice("hello")) == {"event": "Notice", "text": "hello"}


def test_what_is_not_an_event_is_refused() -> None:
    with pytest.raises(TypeError, match="instance of a dataclass"):
        as_dict("a string")


def test_result_of_a_job_is_what_it_returns() -> None:
    def job() -> Generator[Progress, None, int]:
        yield Progress("counting", 1, 2)
        yield Progress("counting", 2, 2)
        return 7

    assert result_of(job()) == 7
