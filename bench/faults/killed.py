"""SIGKILL at a random moment: the same command, given again, goes on or starts clean, and its files are the same."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from bench.faults.jobs import JOBS, Inputs, Job, differing
from bench.faults.outcome import Outcome, Setting
from bench.faults.verbs import MISTAKE, Command, run_verb

NAME = "killed"
GROUPS = tuple(JOBS)
QUICK = ("pretrain static", "export hf")
TIMES, QUICK_TIMES = 50, 2
PHASES = ((0.0, 0.1), (0.9, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0))
"""Shares of the job's time, in turn: some kills come at its start and some while it writes its last files."""
MOST_KILLS, AGAIN = 3, 0.4
"""Of one case, and how likely the command that goes on is killed, too."""


def run(group: str, setting: Setting) -> Iterator[Outcome]:
    job, inputs, folder = JOBS[group], Inputs.made(setting.folder / "inputs"), setting.folder / "work"
    undisturbed(job, inputs, folder)  # has more to load than those that come
    began = time.monotonic()
    wanted = undisturbed(job, inputs, folder)
    seconds = time.monotonic() - began
    for number in setting.numbers(group, TIMES, QUICK_TIMES):
        rng = random.Random(f"{setting.seed} {group} {number}")
        phase = PHASES[number % len(PHASES)]
        yield Outcome(NAME, group, number, *disturbed(job, inputs, folder, wanted, seconds, phase, rng))


def fresh(folder: Path) -> tuple[Path, Path]:
    """Empty places for the result and the cache."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder / "out", folder / "home"


def undisturbed(job: Job, inputs: Inputs, folder: Path) -> dict[str, str]:
    out, home = fresh(folder)
    ended = run_verb(job.command(inputs, out), home, folder)
    if ended.code != 0:
        raise RuntimeError(f"{' '.join(job.command(inputs, out))}: {ended}")
    return job.left(out, home)


def disturbed(
    job: Job,
    inputs: Inputs,
    folder: Path,
    wanted: dict[str, str],
    seconds: float,
    phase: tuple[float, float],
    rng: random.Random,
) -> tuple[str, str]:
    while True:
        out, home = fresh(folder)
        if Command(job.command(inputs, out), home, folder).kill_after(seconds * rng.uniform(*phase)):
            break
        seconds *= 0.95  # it was done before
    kills, command = 1, [*job.command(inputs, out), *job.again]
    while kills < MOST_KILLS and rng.random() < AGAIN:
        kills += Command(command, home, folder).kill_after(rng.uniform(0, seconds))
    ended = run_verb(command, home, folder)
    how = "killed once" if kills == 1 else f"killed {kills} times"
    if ended.code == MISTAKE and "Give another --out" in ended.errors and not was_done(ended.errors):
        out, how = folder / "another" / "out", f"{how}, into another folder"  # half a task model was there
        ended = run_verb(job.command(inputs, out), home, folder)
    if ended.code != 0 and not was_done(ended.errors):
        return how, f"then {ended.judged()[0]}: {ended.errors[-400:]}"
    others = differing(wanted, job.left(out, home))
    return how, f"other files than without kills: {others}" if others else ""


def was_done(errors: str) -> bool:
    """The kill came after the last file was written: the same command then refuses to write over it."""
    return "already" in errors
