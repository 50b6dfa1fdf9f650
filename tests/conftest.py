from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

# The tests' matrices are so small that a second thread only waits for the first.
torch.set_num_threads(1)

SUBJECTS = ["the cat", "a dog", "my friend", "the old actor", "every child", "her sister", "the director", "nobody"]
VERBS = ["likes", "watches", "remembers", "hates", "plays in", "talks about", "writes", "forgets"]
OBJECTS = ["the film", "a long play", "the garden", "old songs", "the music", "a new story", "the city", "his work"]


def sentences(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(OBJECTS)} .".capitalize() for _ in range(n)]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 documents of six sentences, blank lines between them."""
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    path.write_text("\n\n".join("\n".join(sentences(6, seed)) for seed in range(200)) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or fills the user's own cache."""
    folder = tmp_path_factory.getbasetemp() / "headstart-home"
    monkeypatch.setenv("HEADSTART_HOME", str(folder))
    return folder
