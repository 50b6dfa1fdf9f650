"""Small jobs of every verb: the command, and which of the files it leaves must be the same whenever it is done."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.faults import models
from bench.faults.samples import LABELS

SUBJECTS = ["the cat", "a dog", "my friend", "the old actor", "every child", "her sister", "nobody"]
VERBS = ["likes", "watches", "remembers", "hates", "plays in", "talks about", "forgets"]
OBJECTS = ["the film", "a long play", "the garden", "old songs", "a new story", "the city"]
TIMES = ("seconds", "per_second", "time", "headstart", "hours", "tokens_per_second", "words_per_second")
"""Keys of results that are measured, and differ from run to run."""
OTHERWISE = ("lock", "log.jsonl", "report.html", "CARD.md", "headstart.sha256")
"""Files whose text tells times, too."""
OUTSIDE = {"state", "tensorboard"}
"""Folders of checkpoints and curves."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files that the commands read."""

    folder: Path

    @property
    def text(self) -> Path:
        return self.folder / "text.txt"

    @property
    def train(self) -> Path:
        return self.folder / "train.csv"

    @property
    def run(self) -> Path:
        return self.folder / "bert"

    @property
    def vectors(self) -> Path:
        return self.folder / "static"

    @classmethod
    def made(cls, folder: Path) -> Inputs:
        folder.mkdir(parents=True)
        rng = random.Random(0)
        sentences = [
            f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(OBJECTS)} .".capitalize() for _ in range(1_200)
        ]
        found = cls(folder)
        found.text.write_text("\n\n".join("\n".join(sentences[at : at + 6]) for at in range(0, 1_200, 6)) + "\n")
        rows = [f"{sentence} {LABELS[n % 2]} ,{LABELS[n % 2]}" for n, sentence in enumerate(sentences[:60])]
        found.train.write_text("\n".join(["text,label", *rows, ""]), encoding="utf-8")
        models.as_run("bert", found.run)
        models.as_run("static", found.vectors)
        return found


@dataclass(frozen=True, slots=True)
class Job:
    """command: of a verb, given its inputs and where to write; again: what is added to go on after a kill."""

    command: Callable[[Inputs, Path], list[str]]
    again: tuple[str, ...] = ()


def settings(**values: Any) -> list[str]:
    return [part for key, value in values.items() for part in ("--set", f"{key.replace('__', '.')}={value}")]


def pretrain(kind: str, *more: str) -> Job:
    def command(inputs: Inputs, out: Path) -> list[str]:
        return ["pretrain", kind, str(inputs.text), "--out", str(out), "--quiet", *more]

    return Job(command, ("--resume",))


STATIC = settings(objective__dim=8, objective__step_words=200, tokenizer__min_count=1, training__save_seconds=0.01)
ELMO = settings(encoder__cell=16, encoder__projection=8, training__batch=200, training__save_seconds=0.01)
BERT = settings(encoder__width=16, encoder__inner=32, training__batch=256, objective__length=32)

JOBS: dict[str, Job] = {
    "pretrain static": pretrain("static", "--steps", "30", *STATIC),
    "pretrain elmo": pretrain("elmo", "--size", "tiny", "--steps", "12", *ELMO),
    "pretrain bert": pretrain("bert", "--size", "tiny", "--steps", "12", *BERT, "--set", "training.save_seconds=0.01"),
    "transfer": Job(
        lambda inputs, out: [
            *("transfer", "classify", "--from", str(inputs.vectors), "--train", str(inputs.train)),
            *("--out", str(out), "--seeds", "2", "--quiet", "--set", "fitting.epochs=2"),
        ]
    ),
    "compare": Job(
        lambda inputs, out: [
            *("compare", "classify", "--with", str(inputs.vectors), "--train", str(inputs.train), "--out", str(out)),
            *("--labels", "8,20", "--seeds", "2", "--quiet", "--set", "transfer.fitting.epochs=2"),
        ]
    ),
    "encode": Job(lambda inputs, out: ["encode", str(inputs.run), str(inputs.text), "--out", f"{out}.npy", "--quiet"]),
    "import": Job(lambda inputs, out: ["import", str(inputs.run), "--out", str(out)]),
    "export compact": Job(lambda inputs, out: ["export", str(inputs.run), "--to", "compact", "--out", str(out)]),
    "export hf": Job(lambda inputs, out: ["export", str(inputs.run), "--to", "hf", "--out", str(out)]),
    "export onnx": Job(lambda inputs, out: ["export", str(inputs.vectors), "--to", "onnx", "--out", str(out)]),
}


def fingerprint(out: Path) -> dict[str, str]:
    """By name, the hash of everything that must not depend on how often a job was killed."""
    beside = [path for path in out.parent.glob(f"{out.name}.*") if path.is_file()]
    found = {}
    for path in sorted([*out.rglob("*"), *beside]):
        if path.is_file() and path.name not in OTHERWISE and not OUTSIDE & {*path.parts}:
            found[str(path.relative_to(out.parent))] = hashlib.sha256(lasting(path)).hexdigest()[:12]
    return found


def lasting(path: Path) -> bytes:
    """The content of a file without what was measured. Pictures have only to be there."""
    content = path.read_bytes()
    if path.suffix == ".json":
        return json.dumps(without_times(json.loads(content)), sort_keys=True).encode()
    if path.name == "config.toml":
        return b"\n".join(line for line in content.splitlines() if not line.startswith(TIMED_LINES))
    return b"" if path.suffix in (".png", ".svg", ".csv") else content


TIMED_LINES = tuple(f"{key} =".encode() for key in TIMES)


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(one) for key, one in value.items() if not any(time in key for time in TIMES)}
    return [without_times(one) for one in value] if isinstance(value, list) else value
