"""Text prepared by two machines against one: counting, learning pieces, tokenising, until the first training step.

    python -m bench.scale preparing --text TEXT [--repeats 3] [--megabits 1000]

A "machine" is one core with a network namespace of its own. Sides are measured in turns, each with an empty cache, and
the shards of both must be the same bytes. Takes root.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.scale.efficiency import spread
from bench.scale.speed import Training, alone, apart

KINDS = {"bert": ("objective.length=64",), "elmo": ()}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scale preparing", description=__doc__)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--megabits", type=float, default=1000.0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    given = parser.parse_args(arguments)
    differ = False
    for kind in given.kinds:
        training = Training(kind, "tiny", given.text.resolve(), 6, KINDS[kind])
        with tempfile.TemporaryDirectory(prefix="scale-") as name:
            folder = Path(name)
            sides: list[Callable[[], float]] = [
                lambda training=training, folder=folder: alone(training, folder, threads=1, cores="0"),
                lambda training=training, folder=folder: apart(training, folder, given.megabits),
            ]
            seconds: list[list[float]] = [[], []]
            shards: set[str] = set()
            for _ in range(given.repeats):
                for side, took in zip(sides, seconds, strict=True):
                    shutil.rmtree(folder / "home", ignore_errors=True)
                    side()
                    took.append(seconds_before_training(folder / "run"))
                    shards.add(digest(folder / "home" / "shards"))
        one, two = map(statistics.median, seconds)
        differ |= len(shards) > 1
        print(
            f"{kind}: one machine {one:.1f} s ({spread(seconds[0])}), two {two:.1f} s ({spread(seconds[1])}), "
            f"{one / two:.2f} times; {'OTHER SHARDS' if len(shards) > 1 else 'the same shards'}",
            flush=True,
        )
    return int(differ)


def seconds_before_training(run: Path) -> float:
    first = json.loads((run / "log.jsonl").read_text().splitlines()[0])
    return float(first["elapsed"])


def digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found.update(f"{path.relative_to(folder)}".encode() + path.read_bytes())
    return found.hexdigest()
