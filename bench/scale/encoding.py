"""`headstart encode` by two processes against one: the time, and the same bytes whatever is killed.

    python -m bench.scale encoding --text LINES [--sources bert-mini elmo-mini] [--repeats 3] [--kills 10]

Times of whole commands, start included: one process with a thread, one with two, two with one each, in turns. A kill is
SIGKILL to a worker drawn at random, at a moment drawn at random, up to three in a run. Exits with 1 if a file differs
from that of one process with one thread.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.scale.efficiency import spread
from bench.scale.launched import Launched

MOST_KILLS = 3


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scale encoding", description=__doc__)
    parser.add_argument("--text", type=Path, required=True, help="a text per line")
    parser.add_argument("--sources", nargs="+", default=["bert-mini", "elmo-mini"])
    parser.add_argument("--options", nargs="*", default=[], help="of encode, without their dashes: pool=words")
    parser.add_argument(
        "--format", choices=("npy", "parquet"), default="npy", help=".h5 files tell when they were made"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--kills", type=int, default=10, help="runs in which workers are killed")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    options = [part for option in given.options for part in (f"--{option.partition('=')[0]}", option.partition("=")[2])]
    wrong = 0
    for source in given.sources:
        with tempfile.TemporaryDirectory(prefix="scale-") as name:
            job = Job(source, given.text.resolve(), Path(name), f".{given.format}", options)
            seconds = compared(job, given.repeats)
            for number in range(given.kills):
                rng = random.Random(f"{given.seed} {source} {number}")
                out, how = killed(job, f"killed-{number}", seconds, rng)
                differs = not job.is_same(out)
                wrong += differs
                print(f"{source}, kill {number}: {how}; {'OTHER BYTES' if differs else 'the same bytes'}", flush=True)
    print(f"{given.kills * len(given.sources)} runs with kills, {wrong} with other bytes.")
    return int(wrong > 0)


class Job:
    """One command, whose files go into folders beside each other."""

    def __init__(self, source: str, text: Path, folder: Path, suffix: str, options: Sequence[str]) -> None:
        self.source, self.text, self.folder, self.suffix, self.options = source, text, folder, suffix, options

    def out(self, name: str) -> Path:
        return self.folder / name / f"vectors{self.suffix}"

    def command(self, name: str) -> list[str]:
        return ["encode", self.source, str(self.text), "--out", str(self.out(name)), *self.options]

    def alone(self, name: str, threads: int) -> float:
        began = time.monotonic()
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "HEADSTART_HOME": str(self.folder / "home")}
        command = [sys.executable, "-m", "headstart", *self.command(name), "--quiet"]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - began

    def together(self, name: str) -> float:
        began = time.monotonic()
        Launched([*self.command(name), "--quiet"], self.folder).ended()
        return time.monotonic() - began

    def is_same(self, out: Path, other: str = "one-0") -> bool:
        """Whether all files are those of another run."""
        mine, theirs = (
            [path.name for path in sorted(folder.iterdir())] for folder in (out.parent, self.folder / other)
        )
        return mine == theirs and not any(filecmp.cmpfiles(out.parent, self.folder / other, mine, shallow=False)[1:])


def compared(job: Job, repeats: int) -> float:
    """Print the times of each side; the median seconds of two processes."""
    sides: dict[str, Callable[[str], float]] = {
        "one": lambda name: job.alone(name, 1),
        "threads": lambda name: job.alone(name, 2),
        "two": job.together,
    }
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    same = dict.fromkeys(sides, True)
    for number in range(repeats):
        for name, side in sides.items():
            seconds[name].append(side(f"{name}-{number}"))
            same[name] &= job.is_same(job.out(f"{name}-{number}"))
    told = {"one": "one process", "threads": "one with two threads", "two": "two processes"}
    for name in sides:
        found = f"{statistics.median(seconds[name]):.1f} s ({spread(seconds[name])})"
        print(f"{job.source}, {told[name]}: {found}, {'the same bytes' if same[name] else 'other bytes'}", flush=True)
    return statistics.median(seconds["two"])


def killed(job: Job, name: str, seconds: float, rng: random.Random) -> tuple[Path, str]:
    """seconds: what an undisturbed run takes."""
    how = []
    with Launched(job.command(name), job.folder, restarts=MOST_KILLS) as launched:
        for _ in range(rng.randint(1, MOST_KILLS)):
            moment = rng.uniform(0, seconds)
            time.sleep(moment)
            rank = launched.kill(rng)
            if rank is not None:
                how.append(f"{rank} after {moment:.1f} s")
        launched.ended()
    return job.out(name), f"killed process {', '.join(how) or 'none (it had ended)'}"
