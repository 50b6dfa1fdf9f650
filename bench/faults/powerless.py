"""Power losses: at a random change of the disk everything stops, and what was not synced is lost, torn or zeroed.

The same command, given again, goes on or starts clean, says from where, and its files are the same to the bit. After
a command has said that it is done, its files are there.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

from bench.faults.disk import ORDERED, STRICT, Disk, begin_record, listing
from bench.faults.hub import list_entry
from bench.faults.jobs import JOBS, Inputs, Job, differing
from bench.faults.outcome import Outcome, Setting
from bench.faults.verbs import Ended, run_verb
from bench.faults.warm import import_everything
from headstart.errors import CheckpointError
from headstart.training.run import RunDirectory

NAME = "powerless"
TIMES, QUICK_TIMES = 50, 2
CACHE = "cache of pretrain bert"
LOST = {**{name: name for name in JOBS}, CACHE: "pretrain bert"}
"""Each group with its job. Of the cache, only what is under HEADSTART_HOME is left after the power loss."""
GROUPS = tuple(LOST)
QUICK = ("pretrain static", "export compact")
MOST_LOSSES, AGAIN = 3, 0.4
"""Of one case, and how likely the command that goes on loses the power, too."""
SOURCE = Path(__file__).with_name("power.c")
LAYER = "BENCH_FAULTS_LAYER"
"""The environment variable with the path of the compiled layer, in the process that has it preloaded."""
BEGUN = "BENCH_FAULTS_POWER"
"""The one with what the layer watches, in processes that a command starts."""
NEVER = 0


def run(group: str, setting: Setting) -> Iterator[Outcome]:
    if shutil.which("gcc") is None:
        print(f"powerless, {group}: left out, because there is no gcc to compile the layer of files with.", flush=True)
    else:
        yield from with_layer(group, setting)


def with_layer(group: str, setting: Setting) -> Iterator[Outcome]:
    """The cases in a process that has the layer between itself and libc."""
    layer = setting.folder / "power.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", layer, SOURCE, "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(layer), LAYER: str(layer)}
    asked = json.dumps([group, str(setting.folder), setting.seed, setting.quick, setting.only])
    command = [sys.executable, "-m", "bench.faults.powerless", asked]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            yield Outcome(**json.loads(line))
    if process.returncode:
        raise RuntimeError(f"the process with the layer ended with {process.returncode}")


def main(asked: str) -> None:
    """One line of JSON for each outcome."""
    group, folder, seed, quick, only = json.loads(asked)
    import_everything()
    list_entry()
    for outcome in cases(group, Setting(Path(folder), seed, quick, tuple(only))):
        print(json.dumps(asdict(outcome)), flush=True)


def cases(group: str, setting: Setting) -> Iterator[Outcome]:
    inputs = Inputs.made(setting.folder / "inputs")
    machine = Machine(JOBS[LOST[group]], inputs, (setting.folder / "machine").resolve())
    machine.clean()
    ended = machine.work(machine.command)
    if ended.code != 0:
        raise RuntimeError(f"{group}: {ended}")
    wanted, calls = machine.left(), machine.calls
    for number in setting.numbers(group, TIMES, QUICK_TIMES):
        rng = random.Random(f"{setting.seed} {group} {number}")
        yield Outcome(NAME, group, number, *lost(machine, group, wanted, calls, rng))


class Machine:
    """A disk with a result and a cache on it, and the command that writes them."""

    def __init__(self, job: Job, inputs: Inputs, folder: Path) -> None:
        self.disk, self.record, self.folder = folder / "disk", folder / "record", folder
        self.out, self.home = self.disk / "work" / "out", self.disk / "home"
        self.job = job
        self.command, self.again = job.command(inputs, self.out), [*job.command(inputs, self.out), *job.again]

    def clean(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.out.parent.mkdir(parents=True)
        self.home.mkdir()

    def work(self, command: list[str], fails_at: int = NEVER) -> Ended:
        """The command, up to the change of the disk of this number."""
        begin_record(self.disk, self.record)
        self.before = listing(self.disk)
        return run_verb(command, self.home, self.folder, partial(begin, self.disk, self.record, fails_at))

    def left(self) -> dict[str, str]:
        return self.job.left(self.out, self.home)

    @property
    def calls(self) -> int:
        """Changes of the disk and syncs that the last command made."""
        return int.from_bytes((self.record / "shared").read_bytes()[4:8], "little")

    def lose_power(self, kind: str, rng: random.Random) -> None:
        Disk(self.disk, self.record, self.before, kind).lose_power(rng)


def begin(disk: Path, record: Path, fails_at: int) -> None:
    """In the process that is to lose the power."""
    layer = ctypes.CDLL(os.environ[LAYER])
    if layer.power_begin(os.fsencode(disk), os.fsencode(record), fails_at):
        raise OSError(f"{record}: the record could not be begun")
    os.environ[BEGUN] = f"{disk}\n{record}"


def lost(machine: Machine, group: str, wanted: dict[str, str], calls: int, rng: random.Random) -> tuple[str, str]:
    kind = rng.choice((ORDERED, STRICT))
    machine.clean()
    command, losses = machine.command, 0
    while not losses or (losses < MOST_LOSSES and rng.random() < AGAIN):
        ended = machine.work(command, rng.randint(1, calls + 1))
        machine.lose_power(kind, rng)
        losses += 1
        if ended.code == 0 and (gone := different(machine, wanted)):
            return f"{kind}, done", f"lost after the command was done: {gone}"
        if wrong := half_written(machine, wanted) or was_refused(ended):
            return kind, wrong
        if group == CACHE:
            shutil.rmtree(machine.out, ignore_errors=True)
        command = machine.again
    how = f"{kind}, {'once' if losses == 1 else f'{losses} times'}"
    expected = expected_start(machine.out)
    ended = machine.work([part for part in command if part != "--quiet"])
    if ended.code != 0 and (why := when_refused(machine, ended, wanted)):
        return how, why
    if ended.code == 0 and expected and expected not in ended.out + ended.errors:
        return how, f"did not say '{expected}': {ended.errors[-200:]}"
    gone = different(machine, wanted)
    return how, f"other files than without power losses: {gone}" if gone else ""


def was_refused(ended: Ended) -> str:
    """A command that was to lose the power, and ended in an error before."""
    how, wrong = ended.judged() if ended.code is not None and ended.code > 0 else ("", "")
    return wrong if how == "traceback" else ""


def when_refused(machine: Machine, ended: Ended, wanted: dict[str, str]) -> str:
    """A folder with a part of a result is refused: then its user gives another one, which works."""
    how, wrong = ended.judged()
    if wrong or "--out" not in ended.errors:
        return f"{how}: {wrong or ended.errors[-300:]}"
    for path in machine.out.parent.glob(f"{machine.out.name}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    again = machine.work(machine.command)
    return "" if again.code == 0 else f"not even in another folder: {again.errors[-300:]}"


def half_written(machine: Machine, wanted: dict[str, str]) -> str:
    """Files that are there under their names without being whole. Those of an index grow, and one tells what counts."""
    if machine.job.kept:
        return ""
    found = machine.left()
    torn = sorted(name for name, value in found.items() if is_final(name) and wanted.get(name) != value)
    return f"half-written: {', '.join(torn)}" if torn else ""


def is_final(name: str) -> bool:
    """Not a file that tells by its name that it is not whole."""
    return not any(".partial" in part or part.startswith((".building-", ".tmp")) for part in Path(name).parts)


def different(machine: Machine, wanted: dict[str, str]) -> str:
    found = {name: value for name, value in machine.left().items() if is_final(name)}
    torn_log = log_of(machine.out)
    return ", ".join(filter(None, [differing(wanted, found), *torn_log]))


def log_of(out: Path) -> list[str]:
    """The log of a finished pretraining has every step once, and its end."""
    path = out / "log.jsonl"
    if not path.exists():
        return []
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except ValueError:
        return ["log.jsonl: a line is torn"]
    steps = [line["step"] for line in lines if "loss" in line]
    whole = steps == list(range(1, len(steps) + 1)) and any("final" in line for line in lines)
    return [] if whole else ["log.jsonl: lines are missing"]


def expected_start(out: Path) -> str:
    """What a run has to say when it goes on from its newest whole checkpoint."""
    if not (out / "config.toml").exists() or not (out / "state").is_dir():
        return ""
    try:
        note, state, _ = RunDirectory(out).restore()
    except CheckpointError:
        return ""
    return "" if state is None else f"Going on from step {note.steps:,}."


if __name__ == "__main__":
    main(sys.argv[1])
