"""Little memory: every verb under limits of its address space ends in a result, or in a sentence with what to lower."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench.faults.child import limit_memory
from bench.faults.jobs import JOBS, Inputs
from bench.faults.outcome import Outcome, Setting
from bench.faults.verbs import run_verb

NAME = "starved"
MEGABYTES = (8, 32, 64, 128, 512, 1_024, 2_048)
"""Beyond what the process has when it begins, with its libraries loaded."""
QUICK = ("export hf",)


def run(setting: Setting) -> Iterator[Outcome]:
    inputs = Inputs.made(setting.folder / "inputs")
    for name, job in JOBS.items():
        if not setting.wants(name) or (setting.quick and name not in QUICK and not setting.only):
            continue
        for number, size in enumerate(MEGABYTES[:2] if setting.quick else MEGABYTES):
            if setting.wants(name, number):
                folder = setting.folder / f"{name.replace(' ', '-')}-{size}"
                folder.mkdir()
                limit = partial(limit_memory, size << 20)
                ended = run_verb(job.command(inputs, folder / "out"), folder / "home", folder, limit)
                how, wrong = ended.judged()
                yield Outcome(NAME, name, number, how, f"{size} MB: {wrong}" if wrong else "")
