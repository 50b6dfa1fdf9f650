"""The page that shows how a task is added: its code is run as it stands there."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

import headstart
from headstart.errors import CheckpointError, ConfigError
from headstart.progress import result_of
from headstart.tasks import ALIASES, TASKS, task_class

PAGE = Path(__file__).parents[2] / "docs" / "tasks.md"
TEXTS = {
    "war": ["troops crossed the border", "the army fired shells"],
    "economy": ["shares rose again", "the bank cut rates"],
    "war|economy": ["shares fell as the army fired shells", "the bank closed as troops crossed the border"],
}


def test_the_task_of_the_page_learns_through_the_verbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("topics")
    code, entry = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.setitem(sys.modules, "topics", module)
    exec(compile(code, str(PAGE), "exec"), module.__dict__)  # a page of our own
    lines = [line for line in code.splitlines() if line.strip()]
    assert len(lines) <= 40
    monkeypatch.setattr(headstart.tasks, "TASKS", dict(TASKS))
    exec(compile(entry, str(PAGE), "exec"), {})
    rows = [f"{text},{label}" for label, texts in TEXTS.items() for text in texts]
    data = tmp_path / "topics.csv"
    data.write_text("\n".join(["text,label", *rows * 4, ""]), encoding="utf-8")
    settings = {"network": {"cell": "none", "pool": "mean"}, "fitting": {"min_steps": 150, "learning_rate": 0.02}}
    done = list(headstart.transfer("topics", train=data, dev=data, out=tmp_path / "run", seeds=1, settings=settings))
    assert done[-1].results.metric == "f1"
    assert done[-1].results.mean > 0.95
    assert headstart.evaluate(tmp_path / "run", data)["f1"] > 0.95
    classifier = headstart.load_classifier(tmp_path / "run")
    assert classifier.predict(text for texts in TEXTS.values() for text in texts) == [
        "|".join(sorted(label.split("|"))) for label, texts in TEXTS.items() for _ in texts
    ]
    with pytest.raises(CheckpointError, match="is a model for multi-label classification, not for text"):
        headstart.TextClassifier.load(tmp_path / "run")
    for to in ("onnx", "hf"):
        with pytest.raises(ConfigError, match="A model for multi-label classification cannot be exported"):
            result_of(headstart.export(tmp_path / "run", to, tmp_path / to))
        assert not (tmp_path / to).exists()


def test_every_task_and_alias_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in (*TASKS, *ALIASES):
        assert f"`{name}`" in page
    for name in TASKS:
        assert task_class(name).name == name
