"""Two processes on one --out, or on the same entries of one cache: one waits or is refused, and both are right."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from bench.faults.jobs import JOBS, Inputs, Job, fingerprint
from bench.faults.outcome import Outcome, Setting
from bench.faults.verbs import Command, run_verb

NAME = "pairs"
TIMES, QUICK_TIMES = 5, 1
QUICK = ("export hf",)
SECONDS = 120.0
SAME_OUT, SAME_CACHE = "one --out", "one cache"


def run(setting: Setting) -> Iterator[Outcome]:
    inputs = Inputs.made(setting.folder / "inputs")
    for name, job in JOBS.items():
        if not setting.wants(name) or (setting.quick and name not in QUICK and not setting.only):
            continue
        folder = setting.folder / name.replace(" ", "-")
        folder.mkdir()
        alone = run_verb(job.command(inputs, folder / "out"), folder / "home", folder)
        wanted = sorted(fingerprint(folder / "out").values())
        if alone.code != 0:
            yield Outcome(NAME, name, -1, "invalid", alone.errors[-200:])
            continue
        for number in range(QUICK_TIMES if setting.quick else TIMES):
            for kind, outs in ((SAME_OUT, ("out", "out")), (SAME_CACHE, ("one", "two"))):
                how, wrong = at_once(job, inputs, folder, outs, wanted)
                yield Outcome(NAME, name, number, f"{kind}: {how}", wrong)


def at_once(job: Job, inputs: Inputs, folder: Path, outs: tuple[str, str], wanted: list[str]) -> tuple[str, str]:
    for place in {"home", *outs}:
        shutil.rmtree(folder / place, ignore_errors=True)
        for beside in folder.glob(f"{place}.*"):
            beside.unlink()
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
        if not wrong and sorted(fingerprint(folder / out).values()) != wanted:
            wrong = f"another result in '{out}' than alone"
    return " and ".join(sorted(how for how, _ in judged)), wrong
