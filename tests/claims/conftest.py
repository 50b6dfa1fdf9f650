from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from headstart.claims.base import Setting
from headstart.claims.cutting import Limits
from headstart.claims.data import open_data
from headstart.claims.encoders import Encoder, EncoderRole, open_role
from headstart.claims.layouts import ROLES, Role
from headstart.claims.scales import FitSizes, Fitting, Scale
from headstart.progress import result_of
from headstart.tasks.coref_writers import columns_of
from headstart.tasks.role_writers import column_lines
from headstart.tasks.roles import Roles
from headstart.tasks.squad import squad_json

FEW_STEPS: Fitting = {
    how: {"min_steps": 4, "epochs": 0.1, "evaluations": 2} for how in ("scratch", "frozen", "finetune")
}
SIX: tuple[Role, ...] = ("questions", "inference", "roles", "chains", "ner", "sst5")
TINY = Scale(
    name="tiny",
    labels=(6, 12),
    seeds=1,
    dev=12,
    fitting=FEW_STEPS,
    steps=3,
    text_words=600,
    valid_words=200,
    domain_words=150,
    cuts=(1, 4),
    pieces=None,
    six_tasks={role: FitSizes((6,), 12 if role == "ner" else 5, FEW_STEPS) for role in SIX},
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


def snli_text(pairs: Iterable[Any]) -> str:
    """One pair more than given, on whose label the annotators did not agree."""
    lines = [{"gold_label": pair.label, "sentence1": pair.first, "sentence2": pair.second} for pair in pairs]
    lines.append({"gold_label": "-", "sentence1": "a cat sleeps", "sentence2": "a dog sleeps"})
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def propbank_text(sentences: Iterable[Any]) -> str:
    listed = enumerate(sentences)
    return "\n".join("\n".join(column_lines(one, Roles(one.predicates), number)) + "\n" for number, one in listed)


def write_six(folder: Path, examples: dict[str, list[Any]]) -> None:
    """Ten examples of each further task to learn from, and six of them as dev, in the formats of the real data."""
    for name in ("squad", "snli", "srl_ewt", "ontogum_coref"):
        (folder / name).mkdir()
    for part, most in (("train", 10), ("dev", 6)):
        some = {task: listed[:most] for task, listed in examples.items()}
        packed = {
            f"squad/squad1.1-{part}.json.gz": json.dumps(squad_json(some["qa"], "1.1")),
            f"snli/snli_1.0_{part}.jsonl.gz": snli_text(some["pair"]),
            f"srl_ewt/ewt.{part}.gold_conll.gz": propbank_text(some["srl"]),
            f"ontogum_coref/{part}.conll.gz": "".join(columns_of(one, one.chains) for one in some["coref"]),
        }
        for name, text in packed.items():
            (folder / name).write_bytes(gzip.compress(text.encode()))


@pytest.fixture(scope="session")
def data_folder(
    tmp_path_factory: pytest.TempPathFactory,
    corpus: Path,
    make_tagged: Callable[[int, int], list[tuple[list[str], list[str]]]],
    tiny_examples: dict[str, list[Any]],
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
    write_six(folder, tiny_examples)
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
    dev_by_role = {role: sizes.dev for role, sizes in TINY.six_tasks.items()}
    limits = Limits(TINY.dev, TINY.text_words, TINY.valid_words, dev_by_role)
    data = result_of(open_data(data_folder, folder / "out", limits, folder / "cache", roles=ROLES))
    encoders: dict[EncoderRole, Encoder] = {
        role: result_of(open_role(role, source, folder / "cache")) for role, source in sources.items()
    }
    return Setting(data, encoders, TINY, folder / "out", folder / "cache")
