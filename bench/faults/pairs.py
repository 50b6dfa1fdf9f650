"""Two processes on one --out, or on the same entries of one cache: one waits or is refused, and both are right."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from bench.faults.jobs import JOBS, Inputs, Job, differing
from bench.faults.outcome import Outcome, Setting
from bench.faults.verbs import Command, run_verb

NAME = "pairs"
TIMES, QUICK_TIMES = 5, 1
GROUPS = tuple(JOBS)
QUICK = ("export hf",)
SECONDS = 120.0
SAME_OUT, SAME_CACHE = "one --out", "one cache"
KINDS = {SAME_OUT: ("out", "out"), SAME_CACHE: ("one", "two")}
"""With the names of the two results. Of jobs whose result is in the cache, such as downloads, both have the same."""


def run(group: str, setting: Setting) -> Iterator[Outcome]:
    job, inputs, folder = JOBS[group], Inputs.made(setting.folder / "inputs"), setting.folder / "work"
    folder.mkdir()
    alone = run_verb(job.command(inputs, folder / "out"), folder / "home", folder)
    if alone.code != 0:
        raise RuntimeError(f"alone: {alone}")
    wanted = left(job, folder, "out")
    for number in setting.numbers(group, TIMES, QUICK_TIMES):
        for kind, outs in KINDS.items():
            if not (job.kept and kind == SAME_OUT):
                how, wrong = at_once(job, inputs, folder, outs, wanted)
                yield Outcome(NAME, group, number, f"{kind}: {how}", wrong)


def at_once(job: Job, inputs: Inputs, folder: Path, outs: tuple[str, str], wanted: dict[str, str]) -> tuple[str, str]:
    shutil.rmtree(folder)
    folder.mkdir()
    commands = []
    for number, out in enumerate(outs):
        spoken = folder / f"said-{number}"
        spoken.mkdir(exist_ok=True)
        commands.append(Command(job.command(inputs, folder / out), folder / "home", spoken))
    ended = [command.wait(SECONDS) for command in commands]
    judged = [one.judged() for one in ended]
    wrong = "; ".join(f"one {how}: {why}" for how, why in judged if why)
    done = [out for out, one in zip(outs, ended, strict=True) if one.code == 0]
    if not wrong and not done:
        wrong = f"neither was done: {ended[0].errors[-150:]}"
    for out in {*done}:
        if not wrong and (others := differing(wanted, left(job, folder, out))):
            wrong = f"other files in '{out}' than alone: {others}"
    return " and ".join(sorted(how for how, _ in judged)), wrong


def left(job: Job, folder: Path, out: str) -> dict[str, str]:
    """What a job left, whatever its result is called."""
    return {name.removeprefix(out): value for name, value in job.left(folder / out, folder / "home").items()}
