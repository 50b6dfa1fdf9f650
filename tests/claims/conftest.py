from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from headstart.claims.base import Scale, Setting
from headstart.claims.data import Limits, open_data
from headstart.claims.encoders import Encoder, EncoderRole, open_role
from headstart.progress import result_of

TINY = Scale(
    name="tiny",
    labels=(6, 12),
    seeds=1,
    dev=12,
    fitting={how: {"min_steps": 4, "epochs": 0.1, "evaluations": 2} for how in ("scratch", "frozen", "finetune")},
    steps=3,
    text_words=600,
    valid_words=200,
    domain_words=150,
    cuts=(1, 4),
    pieces=None,
)
POS = {"the": "DT", "a": "DT", "my": "PRP$", "nobody": "PRP", ".": ".", "about": "IN"}
VERBS = {"likes", "hates", "talks", "writes"}


def part_of_speech(word: str) -> str:
    return POS.get(word, "VBZ" if word in VERBS else "NN")


def trees(n: int, seed: int) -> str:
    """Sentiment trees of which one word tells."""
    rng = random.Random(seed)
    lines = []
    for number in range(n):
        digit, words = (3, ["superb", "warm"]) if number % 2 else (1, ["dull", "stale"])
        subject = rng.choice(["cat", "dog", "actor"])
        lines.append(f"({digit} (2 the) ({digit} (2 {subject}) ({digit} {rng.choice(words)})))")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def data_folder(
    tmp_path_factory: pytest.TempPathFactory,
    corpus: Path,
    make_tagged: Callable[[int, int], list[tuple[list[str], list[str]]]],
) -> Path:
    """Open data as a user would lay them out, each of them tiny."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("sst", "conll2003", "text"):
        (folder / name).mkdir()
    for name, count, seed in (("train", 40, 1), ("dev", 20, 2)):
        (folder / "sst" / f"{name}.txt").write_text(trees(count, seed), encoding="utf-8")
    for name, count, seed in (("eng.train", 40, 1), ("eng.testa", 20, 2)):
        lines = [
            "".join(f"{word} {part_of_speech(word)} I-NP {tag}\n" for word, tag in zip(words, tags, strict=True))
            for words, tags in make_tagged(count, seed)
        ]
        (folder / "conll2003" / name).write_text("-DOCSTART- -X- O O\n\n" + "\n".join(lines), encoding="utf-8")
    documents = corpus.read_text(encoding="utf-8").split("\n\n")
    (folder / "text" / "train.txt").write_text("\n\n".join(documents[:-20]), encoding="utf-8")
    (folder / "text" / "valid.txt").write_text("\n\n".join(documents[-20:]), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def tiny_scale() -> Scale:
    return TINY


@pytest.fixture(scope="session")
def sources(pretrained_runs: dict[str, Path]) -> dict[EncoderRole, str]:
    """Nobody plays the published BERT: its rows are those of the other BERT."""
    return {
        "static": str(pretrained_runs["static"]),
        "elmo": str(pretrained_runs["elmo"]),
        "bert": str(pretrained_runs["bert"]),
    }


@pytest.fixture(scope="session")
def setting(data_folder: Path, sources: dict[EncoderRole, str], tmp_path_factory: pytest.TempPathFactory) -> Setting:
    """One for all claims, so that the fits and pretrainings they share are done once."""
    folder = tmp_path_factory.mktemp("claims")
    limits = Limits(TINY.dev, TINY.text_words, TINY.valid_words)
    data = result_of(open_data(data_folder, folder / "out", limits, folder / "cache"))
    encoders: dict[EncoderRole, Encoder] = {
        role: result_of(open_role(role, source, folder / "cache")) for role, source in sources.items()
    }
    return Setting(data, encoders, TINY, folder / "out", folder / "cache")
