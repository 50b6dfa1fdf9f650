"""The most memory that a process of a training takes: alone, as one of two, and with --shard."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.scale.speed import Training, fresh

TOKENS = 512
"""In a batch, so that weights, gradients and moments are most of what is there."""
WAYS = {"alone": 0, "two processes": 2, "two processes, --shard": 2}
"""Each with its number of processes under torchrun."""


def peaks(text: Path, folder: Path) -> dict[str, float]:
    """BERT base, by way: bytes of the largest process, what it shares with others included."""
    training = Training("bert", "base", text, 3, (f"training.batch={TOKENS}", "objective.length=128"))
    found = {}
    for way, processes in WAYS.items():
        options = [*training.options(fresh(folder)), *(["--shard"] if way.endswith("--shard") else [])]
        found[way] = peak(options, processes, folder / "home")
        print(f"BERT base, {way}: {found[way] / 1e9:.2f} GB", flush=True)
    return found


def peak(options: list[str], processes: int, home: Path) -> float:
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"] if processes else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HEADSTART_HOME": str(home)}
    command = [sys.executable, *launcher, "-m", "headstart", *options]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    # Of the process and of those that it has waited for: the largest of them.
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise SystemExit(f"{' '.join(command)}: ended with {process.returncode}")
    return usage.ru_maxrss * 1024.0
