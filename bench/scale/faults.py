"""Runs under torchrun whose workers are killed, or whose machines lose their link: do they end with the same weights?

    python -m bench.scale faults [--kills 20] [--links 1] [--kinds bert elmo] [--seed 0]

Each case is compared with a run that nothing happened to: weights and losses must be the same to the bit. The two
machines of a link are network namespaces on this one, which takes root. Exits with 1 if any case ended otherwise.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.scale.launched import Launched, Machines
from bench.scale.runs import KINDS, STEPS, options, same, steps_done, write_text

STARTING = 0.25
"""Of the kills: at a moment while the processes start, before or between their steps."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scale faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="cases in which a worker is killed")
    parser.add_argument("--links", type=int, default=1, help="cases in which a machine loses its link")
    parser.add_argument("--seconds", type=float, default=10.0, help="that the link is gone")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        folder = Path(name)
        write_text(folder / "text.txt")
        whole, seconds = {}, {}
        for kind in given.kinds:
            whole[kind], began = folder / f"{kind}-whole", time.monotonic()
            Launched(options(kind, folder / "text.txt", whole[kind]), folder).ended()
            seconds[kind] = time.monotonic() - began
            print(f"{kind}: undisturbed {seconds[kind]:.0f} s", flush=True)
        for number in range(given.kills):
            kind = given.kinds[number % len(given.kinds)]
            rng = random.Random(f"{given.seed} {number}")
            wrong += told(f"kill {number} {kind}", killed(kind, folder, number, seconds[kind], rng), whole[kind])
        for number in range(given.links):
            kind = given.kinds[number % len(given.kinds)]
            wrong += told(f"link {number} {kind}", unlinked(kind, folder, number, given.seconds), whole[kind])
    print(f"{given.kills + given.links} cases, {wrong} not as wanted.")
    return 1 if wrong else 0


def told(case: str, found: tuple[Path, str], whole: Path) -> bool:
    """Print how a case ended; whether that was wrong."""
    run, how = found
    differing = same(run, whole)
    print(f"{case}: {how}; {differing or 'the same weights and losses to the bit'}", flush=True)
    return bool(differing)


def killed(kind: str, folder: Path, number: int, seconds: float, rng: random.Random) -> tuple[Path, str]:
    """SIGKILL to a worker drawn at random, up to three times: during a step drawn at random, or while they start."""
    run = folder / f"{kind}-killed-{number}"
    how = []
    with Launched(options(kind, folder / "text.txt", run), folder, restarts=5) as launched:
        for _ in range(rng.randint(1, 3)):
            if rng.random() < STARTING:
                time.sleep(rng.uniform(0, seconds / 2))
            else:
                wait_for(run, rng.randrange(steps_done(run), STEPS), launched)
                time.sleep(rng.uniform(0, 0.05))
            rank = launched.kill(rng)
            if rank is not None:
                how.append(f"{rank} after step {steps_done(run)}")
        launched.ended()
    return run, f"killed process {', '.join(how) or 'none (it had ended)'}"


def wait_for(run: Path, step: int, launched: Launched) -> None:
    while steps_done(run) < step and launched.process.poll() is None:
        time.sleep(0.01)


def unlinked(kind: str, folder: Path, number: int, seconds: float) -> tuple[Path, str]:
    """Two machines with a process each; one has no link for some seconds in the middle of the run."""
    run = folder / f"{kind}-unlinked-{number}"
    with Machines() as machines:
        launched = machines.start(options(kind, folder / "text.txt", run), folder)
        wait_for(run, 5, launched[0])
        machines.cut()
        time.sleep(0.5)  # what was on its way may still arrive
        before = steps_done(run)
        time.sleep(seconds - 0.5)
        after = steps_done(run)
        machines.mend()
        for one in launched:
            one.ended()
    return run, f"no link for {seconds:.0f} s after step {before}, in which it took {after - before} steps"
