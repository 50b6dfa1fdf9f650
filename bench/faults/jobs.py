"""Small jobs of every verb: the command, and which of the files it leaves must be the same whenever it is done."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.faults import models
from bench.faults.hub import ENTRY, REPO
from bench.faults.samples import LABELS
from headstart.exporting import export
from headstart.progress import result_of
from headstart.text.building import PREFIX

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
        models.as_elmo(folder / "elmo")
        models.as_huggingface(folder / "hf")
        result_of(export(found.vectors, "glove", folder / "glove"))
        return found


@dataclass(frozen=True, slots=True)
class Job:
    """command: of a verb, given its inputs and where to write; again: what is added to go on after a kill.

    kept: the folder of HEADSTART_HOME that has the result, of a job that writes nowhere else.
    """

    command: Callable[[Inputs, Path], list[str]]
    again: tuple[str, ...] = ()
    kept: str = ""

    def left(self, out: Path, home: Path) -> dict[str, str]:
        """The fingerprint of what it left."""
        return fingerprint(home / self.kept if self.kept else out)


def settings(**values: Any) -> list[str]:
    return [part for key, value in values.items() for part in ("--set", f"{key.replace('__', '.')}={value}")]


def pretrain(kind: str, *more: str) -> Job:
    def command(inputs: Inputs, out: Path) -> list[str]:
        return ["pretrain", kind, str(inputs.text), "--out", str(out), "--quiet", *more]

    return Job(command, ("--resume",))


def imported(source: str) -> Job:
    return Job(lambda inputs, out: ["import", str(inputs.folder / source), "--out", str(out)])


def exported(source: str, form: str) -> Job:
    return Job(lambda inputs, out: ["export", str(inputs.folder / source), "--to", form, "--out", str(out)])


STATIC = settings(objective__dim=8, objective__step_words=200, tokenizer__min_count=1, training__save_seconds=0.01)
ELMO = settings(encoder__cell=16, encoder__projection=8, training__batch=200, training__save_seconds=0.01)
BERT = settings(encoder__width=16, encoder__inner=32, training__batch=256, objective__length=32)
FITTING = {"fitting__epochs": 2, "fitting__min_steps": 10, "fitting__batch": 8, "network__width": 8}

JOBS: dict[str, Job] = {
    "pretrain static": pretrain("static", "--steps", "30", *STATIC),
    "pretrain elmo": pretrain("elmo", "--size", "tiny", "--steps", "12", *ELMO),
    "pretrain bert": pretrain("bert", "--size", "tiny", "--steps", "12", *BERT, "--set", "training.save_seconds=0.01"),
    "transfer": Job(
        lambda inputs, out: [
            *("transfer", "classify", "--from", str(inputs.vectors), "--train", str(inputs.train)),
            *("--out", str(out), "--seeds", "2", "--quiet", *settings(**FITTING)),
        ]
    ),
    "compare": Job(
        lambda inputs, out: [
            *("compare", "classify", "--with", str(inputs.vectors), "--train", str(inputs.train), "--out", str(out)),
            *("--labels", "8,20", "--seeds", "2", "--quiet", "--rows", f"scratch,static-frozen:{inputs.vectors.name}"),
            *settings(**{f"transfer__{key}": value for key, value in FITTING.items()}),
        ]
    ),
    "encode": Job(lambda inputs, out: ["encode", str(inputs.run), str(inputs.text), "--out", f"{out}.npy", "--quiet"]),
    "index": Job(
        lambda inputs, _: [
            *("neighbours", str(inputs.run), "the [cat] likes the film .", "--among", str(inputs.text)),
            *("--static", "off", "--quiet"),
        ],
        kept="occurrences",
    ),
    "get from the Hub": Job(lambda *_: ["get", f"hf:{REPO}", "--quiet"], kept="hub"),
    "get from the index": Job(lambda *_: ["get", ENTRY, "--quiet"], kept="models"),
    "import run": imported("bert"),
    "import elmo": imported("elmo"),
    "import hf": imported("hf"),
    "import vectors": imported("glove/glove.txt"),
    "export compact": exported("bert", "compact"),
    "export hf": exported("bert", "hf"),
    "export elmo": exported("elmo", "elmo"),
    "export word2vec": exported("static", "word2vec"),
    "export word2vec-binary": exported("static", "word2vec-binary"),
    "export glove": exported("static", "glove"),
    "export onnx": exported("static", "onnx"),
}


def fingerprint(out: Path) -> dict[str, str]:
    """By name, the hash of everything that must not depend on how often a job was killed."""
    beside = [path for path in out.parent.glob(f"{out.name}.*") if path.is_file()]
    found = {}
    for path in sorted([*out.rglob("*"), *beside]):
        is_unfinished = any(part.startswith(PREFIX) for part in path.parts)
        if path.is_file() and path.name not in OTHERWISE and not OUTSIDE & {*path.parts} and not is_unfinished:
            found[str(path.relative_to(out.parent))] = hashlib.sha256(lasting(path)).hexdigest()[:12]
    return found


def differing(wanted: dict[str, str], found: dict[str, str]) -> str:
    """The names of files that are another, missing, or too many."""
    return ", ".join(sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)))


def lasting(path: Path) -> bytes:
    """The content of a file without what was measured. Pictures have only to be there."""
    content = path.read_bytes()
    if path.suffix == ".json":
        with suppress(ValueError):  # one that is not whole differs as it is
            return json.dumps(without_times(json.loads(content)), sort_keys=True).encode()
    if path.name == "config.toml":
        return b"\n".join(line for line in content.splitlines() if not line.startswith(TIMED_LINES))
    return b"" if path.suffix in (".png", ".svg", ".csv") else content


TIMED_LINES = tuple(f"{key} =".encode() for key in TIMES)


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(one) for key, one in value.items() if not any(time in key for time in TIMES)}
    return [without_times(one) for one in value] if isinstance(value, list) else value
