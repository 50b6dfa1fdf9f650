"""One flipped bit in each file of a cache, a run, a checkpoint and a download: noticed, named, and made anew where it
can be."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from bench.faults.jobs import JOBS, Inputs, fingerprint
from bench.faults.outcome import Outcome, Setting
from bench.faults.verbs import Ended, run_verb

NAME = "flipped"


def run(setting: Setting) -> Iterator[Outcome]:
    inputs = Inputs.made(setting.folder / "inputs")
    for name, place in (("cache", cache_of), ("checkpoints", checkpoints_of)):
        if setting.wants(name):
            yield from place(name, inputs, setting)


def cache_of(name: str, inputs: Inputs, setting: Setting) -> Iterator[Outcome]:
    """Tokenised text and features: a run with a damaged cache gives the files of a run with a whole one."""
    jobs = ("pretrain static",) if setting.quick else ("pretrain static", "pretrain bert", "transfer")
    for job in jobs:
        folder = setting.folder / f"{name}-{job.replace(' ', '-')}"
        folder.mkdir()
        first = run_verb(JOBS[job].command(inputs, folder / "out"), folder / "home", folder)
        wanted = fingerprint(folder / "out")
        if first.code != 0:
            yield Outcome(NAME, f"{name} of {job}", -1, "invalid", first.errors[-200:])
            continue
        whole = folder / "whole"
        shutil.move(folder / "home", whole)
        files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file() and path.stat().st_size)
        for number, file in enumerate(files):
            shutil.rmtree(folder / "out")
            shutil.rmtree(folder / "home", ignore_errors=True)
            shutil.copytree(whole, folder / "home")
            flip(folder / "home" / file, random.Random(f"{setting.seed} {file}"))
            ended = run_verb(JOBS[job].command(inputs, folder / "out"), folder / "home", folder)
            yield Outcome(NAME, f"{name} of {job}", number, *judged(ended, file, folder, wanted))


def judged(ended: Ended, file: Path, folder: Path, wanted: dict[str, str]) -> tuple[str, str]:
    """Made anew and told, or named in a sentence; never used as it is."""
    how, wrong = ended.judged()
    if wrong:
        return how, f"{file}: {wrong}"
    if how == "sentence":
        return "named", "" if file.name in ended.errors else f"{file}: not named: {ended.errors[-200:]}"
    if fingerprint(folder / "out") != wanted:
        return "used", f"{file}: the damaged file was used"
    return ("made anew" if "made anew" in ended.errors else "without effect"), ""


def checkpoints_of(name: str, inputs: Inputs, setting: Setting) -> Iterator[Outcome]:
    """Of a run that was stopped: the checkpoint before is used, and that is told."""
    job, folder = JOBS["pretrain static"], setting.folder / name
    folder.mkdir()
    done = run_verb(job.command(inputs, folder / "whole"), folder / "home", folder)
    files = sorted((folder / "whole" / "state").glob("step-*"))
    if done.code != 0 or not files:
        yield Outcome(NAME, name, -1, "invalid", f"{len(files)} checkpoints: {done.errors[-200:]}")
        return
    wanted = fingerprint(folder / "whole")
    for number, file in enumerate(files):
        out = folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(folder / "whole", out)
        (out / "weights.safetensors").unlink()
        flip(out / "state" / file.name, random.Random(f"{setting.seed} {file.name}"))
        command = [part for part in job.command(inputs, out) if part != "--quiet"]
        ended = run_verb([*command, *job.again], folder / "home", folder)
        how, wrong = ended.judged()
        named = file.stem in ended.errors or file.stem in ended.out
        differs = {key.partition("/")[2]: value for key, value in fingerprint(out).items() if "events" not in key} != {
            key.partition("/")[2]: value for key, value in wanted.items() if "events" not in key
        }
        is_newest = file.stem == files[-1].stem
        if not wrong and how == "result" and (differs or (is_newest and not named)):
            wrong = f"{file.name}: {'another result' if differs else 'not told'}"
        yield Outcome(NAME, name, number, "went on from the one before" if how == "result" else how, wrong)


def flip(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
