"""One flipped bit in each file of a cache, a run, a task model, an export, a download and a checkpoint: noticed, named,
and made anew where it can be."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.faults.hub import ENTRY, REPO
from bench.faults.jobs import JOBS, Inputs, fingerprint
from bench.faults.outcome import Outcome, Setting
from bench.faults.verbs import Ended, run_verb

NAME = "flipped"
CHECKPOINTS = "checkpoints"
ANEW = ("made anew", "downloaded anew")
"""How the commands say it."""
Command = Callable[[Inputs, Path], list[str]]


@dataclass(frozen=True, slots=True)
class Opened:
    """What is damaged. make: writes it; at: its folder; open: reads it, and writes to `new`, or speaks.

    again: whether what was made anew has to be the same as before.
    """

    make: Command
    at: str
    open: Command
    speaks: bool = False
    again: bool = False

    def left(self, folder: Path, ended: Ended) -> dict[str, str]:
        """What must not depend on the damage."""
        kept = fingerprint(folder / self.at) if self.again else {}
        return fingerprint(folder / "new") | kept | ({"what it says": ended.out} if self.speaks else {})


def job_in(name: str, out: str) -> Command:
    return lambda inputs, folder: JOBS[name].command(inputs, folder / out)


def encoding(source: str) -> Command:
    """source: a path, or a name that is downloaded."""

    def command(inputs: Inputs, folder: Path) -> list[str]:
        given = str(folder / source) if source.startswith("out") else source
        return ["encode", given, str(inputs.text), "--out", str(folder / "new.npy"), "--quiet"]

    return command


def predicting(inputs: Inputs, folder: Path) -> list[str]:
    return ["predict", str(folder / "out"), "--in", str(inputs.text)]


def cache_of(name: str) -> Opened:
    """A job with a damaged cache gives the files of one with a whole cache."""
    return Opened(job_in(name, "first"), "home", job_in(name, "new"), speaks=bool(JOBS[name].kept))


def run_of(name: str, file: str = "") -> Opened:
    return Opened(job_in(name, "out"), "out", encoding(f"out{file}"))


def download(name: str, source: str) -> Opened:
    return Opened(job_in(name, "out"), f"home/{JOBS[name].kept}", encoding(source), again=True)


def download_again(name: str) -> Opened:
    return Opened(job_in(name, "out"), f"home/{JOBS[name].kept}", job_in(name, "new"), again=True)


OPENED: dict[str, Opened] = {
    **{f"cache of {name}": cache_of(name) for name in ("pretrain static", "pretrain bert", "transfer", "index")},
    **{f"run of {name}": run_of(name) for name in ("pretrain static", "pretrain elmo", "pretrain bert")},
    "task model": Opened(job_in("transfer", "out"), "out", predicting, speaks=True),
    **{name: run_of(name) for name in ("import run", "export compact", "export hf", "export elmo", "export glove")},
    "export glove, its file": run_of("export glove", "/glove.txt"),
    "download from the Hub": download("get from the Hub", f"hf:{REPO}"),
    "download from the Hub, get": download_again("get from the Hub"),
    "download from the index": download("get from the index", ENTRY),
    "download from the index, get": download_again("get from the index"),
}
GROUPS = (*OPENED, CHECKPOINTS)
QUICK = ("cache of pretrain static", "export compact", CHECKPOINTS)


def run(group: str, setting: Setting) -> Iterator[Outcome]:
    inputs, folder = Inputs.made(setting.folder / "inputs"), setting.folder / "work"
    folder.mkdir()
    if group == CHECKPOINTS:
        yield from checkpoints(inputs, folder, setting)
    else:
        yield from each_file(group, inputs, folder, setting)


def each_file(group: str, inputs: Inputs, folder: Path, setting: Setting) -> Iterator[Outcome]:
    what = OPENED[group]
    place, whole, home = folder / what.at, folder / "whole", folder / "home"
    done(run_verb(what.make(inputs, folder), home, folder))
    shutil.copytree(place, whole)
    wanted = what.left(folder, done(run_verb(what.open(inputs, folder), home, folder)))
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file() and path.stat().st_size)
    for number in setting.numbers(group, len(files), len(files)):
        file = files[number]
        for old in (place, *folder.glob("new*")):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        shutil.copytree(whole, place)
        flip(place / file, random.Random(f"{setting.seed} {file}"))
        ended = run_verb(what.open(inputs, folder), home, folder)
        yield Outcome(NAME, group, number, *judged(ended, file, what.left(folder, ended) == wanted))


def done(ended: Ended) -> Ended:
    if ended.code != 0:
        raise RuntimeError(f"without damage: {ended}")
    return ended


def judged(ended: Ended, file: Path, is_same: bool) -> tuple[str, str]:
    """Made anew and told, or named; without a word only if it has no effect. is_same: the result is that of a whole
    file."""
    how, wrong = ended.judged()
    named = file.name in ended.errors
    if wrong:
        return how, f"{file}: {wrong}"
    if how == "sentence":
        return "named", "" if named else f"{file}: not named: {ended.errors[-200:]}"
    if any(words in ended.errors for words in ANEW):
        return "made anew", "" if is_same else f"{file}: another result than from a whole file"
    if named:
        return "told", ""
    return ("without effect", "") if is_same else ("used", f"{file}: the damaged file was used without a word")


def checkpoints(inputs: Inputs, folder: Path, setting: Setting) -> Iterator[Outcome]:
    """Of a run that was stopped: the checkpoint before is used, and that is told."""
    job, out = JOBS["pretrain static"], folder / "out"
    done(run_verb(job.command(inputs, out), folder / "home", folder))
    shutil.copytree(out, folder / "whole")
    wanted = fingerprint(out)
    files = sorted((out / "state").glob("step-*"))
    for number in setting.numbers(CHECKPOINTS, len(files), len(files)):
        file = files[number]
        shutil.rmtree(out)
        shutil.copytree(folder / "whole", out)
        (out / "weights.safetensors").unlink()
        flip(file, random.Random(f"{setting.seed} {file.name}"))
        command = [part for part in job.command(inputs, out) if part != "--quiet"]
        ended = run_verb([*command, *job.again], folder / "home", folder)
        how, wrong = ended.judged()
        is_newest = file.stem == files[-1].stem
        if not wrong and how == "result" and fingerprint(out) != wanted:
            wrong = f"{file.name}: another result"
        if not wrong and how == "result" and is_newest and file.stem not in ended.errors + ended.out:
            wrong = f"{file.name}: not told"
        yield Outcome(NAME, CHECKPOINTS, number, "went on from the one before" if how == "result" else how, wrong)


def flip(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
