"""Small runs of each kind, and whether two of them are the same."""

from __future__ import annotations

import json
import random
from pathlib import Path

import torch

from headstart.training.tensors import read_tensors

STEPS = 120
KINDS = {
    "bert": ["encoder.width=32", "encoder.inner=64", "training.batch=512", "objective.length=32"],
    "elmo": ["encoder.cell=32", "encoder.projection=16", "training.batch=200"],
}
SUBJECTS = ["the cat", "a dog", "my friend", "the old actor", "every child", "her sister", "nobody"]
VERBS = ["likes", "watches", "remembers", "hates", "plays in", "talks about", "forgets"]
OBJECTS = ["the film", "a long play", "the garden", "old songs", "a new story", "the city"]


def write_text(path: Path) -> None:
    rng = random.Random(0)
    lines = [f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(OBJECTS)} .".capitalize() for _ in range(3_000)]
    path.write_text("\n\n".join("\n".join(lines[at : at + 6]) for at in range(0, len(lines), 6)) + "\n")


def options(kind: str, text: Path, out: Path) -> list[str]:
    settings = [*KINDS[kind], "training.save_seconds=0.5"]
    return [
        *("pretrain", kind, str(text), "--out", str(out), "--size", "tiny", "--steps", str(STEPS)),
        *(part for setting in settings for part in ("--set", setting)),
    ]


def losses(run: Path) -> list[float]:
    log = run / "log.jsonl"
    # A run that is at work, or was killed, may have written only a part of its last line.
    lines = log.read_text().rpartition("\n")[0].splitlines() if log.exists() else []
    return [json.loads(line)["loss"] for line in lines if '"loss"' in line]


def steps_done(run: Path) -> int:
    return len(losses(run))


def same(run: Path, whole: Path) -> str:
    """What differs, or nothing."""
    first, second = (read_tensors(path / "weights.safetensors") for path in (run, whole))
    differing = [name for name in first.keys() | second.keys() if not torch.equal(first[name], second[name])]
    if differing:
        return f"other weights: {', '.join(sorted(differing)[:5])}"
    return "" if losses(run) == losses(whole) else "other losses"
