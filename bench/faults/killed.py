"""SIGKILL at a random moment: the same command, given again, goes on or starts clean, and its files are the same."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from bench.faults.jobs import JOBS, Inputs, Job, fingerprint
from bench.faults.outcome import Outcome, Setting
from bench.faults.verbs import Command, run_verb

NAME = "killed"
TIMES, QUICK_TIMES = 50, 2
QUICK = ("pretrain static", "export hf")
MOST_KILLS, AGAIN = 3, 0.4
"""Of one case, and how likely the command that goes on is killed, too."""


def run(setting: Setting) -> Iterator[Outcome]:
    inputs: Inputs | None = None
    for name, job in JOBS.items():
        if not setting.wants(name) or (setting.quick and name not in QUICK and not setting.only):
            continue
        inputs = inputs or Inputs.made(setting.folder / "inputs")
        folder = setting.folder / name.replace(" ", "-")
        began = time.monotonic()
        wanted = undisturbed(job, inputs, folder)
        seconds = time.monotonic() - began
        for number in range(QUICK_TIMES if setting.quick else TIMES):
            if setting.wants(name, number):
                rng = random.Random(f"{setting.seed} {name} {number}")
                yield Outcome(NAME, name, number, *disturbed(job, inputs, folder, wanted, seconds, rng))


def fresh(folder: Path) -> tuple[Path, Path]:
    """Empty places for the result and the cache."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder / "out", folder / "home"


def undisturbed(job: Job, inputs: Inputs, folder: Path) -> dict[str, str]:
    out, home = fresh(folder)
    ended = run_verb(job.command(inputs, out), home, folder)
    if ended.code != 0:
        raise SystemExit(f"{' '.join(job.command(inputs, out))}: {ended}")
    return fingerprint(out)


def disturbed(
    job: Job, inputs: Inputs, folder: Path, wanted: dict[str, str], seconds: float, rng: random.Random
) -> tuple[str, str]:
    while True:
        out, home = fresh(folder)
        if Command(job.command(inputs, out), home, folder).kill_after(rng.uniform(0, seconds)):
            break
        seconds *= 0.8  # it was done before: the first run, which `seconds` is from, had more to load
    kills, command = 1, [*job.command(inputs, out), *job.again]
    while kills < MOST_KILLS and rng.random() < AGAIN:
        kills += Command(command, home, folder).kill_after(rng.uniform(0, seconds))
    ended = run_verb(command, home, folder)
    how = "killed once" if kills == 1 else f"killed {kills} times"
    if ended.code != 0 and not was_done(ended.errors):
        return how, f"then {ended.judged()[0]}: {ended.errors[-400:]}"
    found = fingerprint(out)
    differing = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    return how, f"other files than without kills: {', '.join(differing)}" if differing else ""


def was_done(errors: str) -> bool:
    """The kill came after the last file was written: the same command then refuses to write over it."""
    return "already" in errors
