"""Comparisons under torchrun whose workers are killed at random moments: do they end with the same table and models?

    python -m bench.scale grid [--kills 10] [--seed 0]

Each is compared with one that nothing happened to, and that one with the same command in one process: every figure of
results.json but the measured times, and every weight under models/. Exits with 1 if any case ended otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.scale.launched import Launched

ENCODER = "words-mini"
ROWS = "scratch,static-frozen"
CELLS = 8
STARTING = 0.25
"""Of the kills: at a moment while the processes start, before or between their fits."""
MEASURED = frozenset({"seconds", "advice"})
"""Keys of results.json with times; the advice names some."""
SUBJECTS = ["The cast", "This film", "The story", "Her performance", "The music", "Every scene"]
VERDICTS = {
    "positive": ["is superb", "is a delight", "moves and charms", "is funny and warm"],
    "negative": ["is dull", "is a mess", "bores to tears", "is flat and cold"],
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scale grid", description=__doc__)
    parser.add_argument("--kills", type=int, default=10, help="cases in which workers are killed")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="grid-") as name:
        folder = Path(name)
        write_examples(folder / "train.csv", 300, random.Random(1))
        write_examples(folder / "dev.csv", 100, random.Random(2))
        began = time.monotonic()
        Launched(options(folder, folder / "whole"), folder).ended()
        seconds = time.monotonic() - began
        alone(folder)
        wrong = told(f"two processes, undisturbed, {seconds:.0f} s", folder / "alone", folder / "whole")
        for number in range(given.kills):
            rng = random.Random(f"{given.seed} {number}")
            out, how = killed(folder, number, seconds, rng)
            wrong += told(f"kill {number}: {how}", out, folder / "whole")
    print(f"{given.kills + 1} cases, {wrong} not as wanted.")
    return 1 if wrong else 0


def write_examples(path: Path, count: int, rng: random.Random) -> None:
    """One label in five is wrong, so that scores differ from seed to seed."""
    lines = ["text,label"]
    for number in range(count):
        label, other = rng.sample(sorted(VERDICTS), 2)
        text = f"{rng.choice(SUBJECTS)} {rng.choice(VERDICTS[label])} in part {number} ."
        lines.append(f"{text},{label if rng.random() < 0.8 else other}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def options(folder: Path, out: Path) -> list[str]:
    return [
        *("compare", "sentiment", "--train", str(folder / "train.csv"), "--dev", str(folder / "dev.csv")),
        *("--with", ENCODER, "--rows", ROWS, "--labels", "20,60", "--seeds", "2", "--out", str(out)),
        *("--set", "transfer.fitting.min_steps=60"),
    ]


def alone(folder: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HEADSTART_HOME": str(folder / "home-alone")}
    command = [sys.executable, "-m", "headstart", *options(folder, folder / "alone"), "--quiet"]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)


def killed(folder: Path, number: int, seconds: float, rng: random.Random) -> tuple[Path, str]:
    """SIGKILL to a worker drawn at random, once or twice: in a fit drawn at random, or while they start."""
    out, how = folder / f"killed-{number}", []
    with Launched(options(folder, out), folder, restarts=3) as launched:
        for _ in range(rng.randint(1, 2)):
            if rng.random() < STARTING:
                time.sleep(rng.uniform(0, seconds / 2))
            else:
                wait_for(out, rng.randrange(min(cells_done(out), CELLS - 1), CELLS), launched)
                time.sleep(rng.uniform(0, 0.5))
            rank = launched.kill(rng)
            if rank is not None:
                how.append(f"process {rank} after {cells_done(out)} fits")
        launched.ended()
    return out, f"killed {', '.join(how) or 'none (it had ended)'}"


def cells_done(out: Path) -> int:
    return len(list((out / "cells").glob("*.json")))


def wait_for(out: Path, cells: int, launched: Launched) -> None:
    while cells_done(out) < cells and launched.process.poll() is None:
        time.sleep(0.01)


def told(case: str, out: Path, whole: Path) -> bool:
    """Print how a case ended; whether that was wrong."""
    differing = difference(out, whole)
    print(f"{case}; {differing or 'the same table and models to the bit'}", flush=True)
    return bool(differing)


def difference(out: Path, whole: Path) -> str:
    """What differs, or nothing."""
    mine, theirs = (without_times(json.loads((path / "results.json").read_text())) for path in (out, whole))
    if mine != theirs:
        return f"other results: {', '.join(key for key in theirs if mine.get(key) != theirs[key])}"
    for path in sorted((whole / "models").rglob("*.safetensors")):
        if (out / path.relative_to(whole)).read_bytes() != path.read_bytes():
            return f"another model: {path.parent.name}"
    left = [str(path.relative_to(out)) for path in out.rglob("*.partial")]
    return f"left over: {', '.join(left)}" if left else ""


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in MEASURED}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value
