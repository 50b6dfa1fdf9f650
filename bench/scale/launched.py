"""torchrun as a process of its own, on this machine or on two that are network namespaces of it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

SECONDS = 900
ADDRESSES = ("10.77.0.1", "10.77.0.2")
PORT = 29533


class Launched:
    """A torchrun whose output goes into a file beside the runs."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        *,
        restarts: int = 0,
        rendezvous: Sequence[str] = ("--standalone", "--nproc-per-node=2"),
        namespace: str | None = None,
        cores: str | None = None,
    ) -> None:
        """cores: those that the workers may use, as taskset writes them; each has as many threads."""
        pinned = [] if cores is None else ["taskset", "--cpu-list", cores]
        inside = [] if namespace is None else ["ip", "netns", "exec", namespace]
        torchrun = [
            *pinned,
            *inside,
            sys.executable,
            "-m",
            "torch.distributed.run",
            f"--max-restarts={restarts}",
            *rendezvous,
        ]
        self.said = folder / f"said-{len(list(folder.glob('said-*')))}.txt"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HEADSTART_HOME": str(folder / "home")}
        if namespace is not None:
            environment |= {"GLOO_SOCKET_IFNAME": interface(namespace), "TP_SOCKET_IFNAME": interface(namespace)}
        with self.said.open("w") as file:
            self.process = subprocess.Popen(
                [*torchrun, "-m", "headstart", *arguments], stdout=file, stderr=file, env=environment
            )

    def __enter__(self) -> Launched:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()

    def ended(self) -> None:
        if self.process.wait(timeout=SECONDS) != 0:
            raise SystemExit(f"torchrun ended with {self.process.returncode}:\n{self.said.read_text()[-4000:]}")

    def kill(self, rng: random.Random) -> int | None:
        """SIGKILL to one of its workers; the rank, None if there is none."""
        launcher = self.process.pid
        children = Path(f"/proc/{launcher}/task/{launcher}/children")
        workers = sorted(children.read_text().split(), key=int) if children.exists() else []
        if not workers:
            return None
        number = rng.randrange(len(workers))
        os.kill(int(workers[number]), signal.SIGKILL)
        return number


class Machines:
    """Two network namespaces with a cable between them. megabits: what it carries in a second, each way."""

    names = (f"scale-a-{os.getpid()}", f"scale-b-{os.getpid()}")

    def __init__(self, megabits: float | None = None, *, pinned: bool = False) -> None:
        """pinned: each machine has a core of its own."""
        self.megabits, self.pinned = megabits, pinned

    def __enter__(self) -> Machines:
        for name in self.names:
            ip("netns", "add", name)
        first, second = self.names
        ip("link", "add", interface(first), "netns", first, "type", "veth", "peer", interface(second), "netns", second)
        for name, address in zip(self.names, ADDRESSES, strict=True):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", interface(name))
            ip("-n", name, "link", "set", interface(name), "up")
            ip("-n", name, "link", "set", "lo", "up")
            if self.megabits is not None:
                limit(name, self.megabits)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for name in self.names:
            ip("netns", "delete", name)

    def start(self, arguments: Sequence[str], folder: Path) -> list[Launched]:
        return [
            Launched(
                arguments,
                folder,
                rendezvous=[
                    *("--nnodes=2", "--nproc-per-node=1", f"--node-rank={number}"),
                    *(f"--master-addr={ADDRESSES[0]}", f"--master-port={PORT}"),
                ],
                namespace=name,
                cores=str(number) if self.pinned else None,
            )
            for number, name in enumerate(self.names)
        ]

    def cut(self) -> None:
        ip("-n", self.names[1], "link", "set", interface(self.names[1]), "down")

    def mend(self) -> None:
        ip("-n", self.names[1], "link", "set", interface(self.names[1]), "up")


def interface(namespace: str) -> str:
    return f"veth-{namespace.split('-')[1]}"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def limit(namespace: str, megabits: float) -> None:
    """A token bucket on what leaves the machine; packets that wait longer than a second are lost."""
    bucket = max(64_000, int(megabits * 1e6 / 8 / 100))
    device = ["dev", interface(namespace), "root"]
    shape = ["tbf", "rate", f"{megabits:g}mbit", "burst", str(bucket), "latency", "1000ms"]
    subprocess.run(["ip", "netns", "exec", namespace, "tc", "qdisc", "add", *device, *shape], check=True)
