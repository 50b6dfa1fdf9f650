"""One classifier behind `headstart serve` and behind FastAPI with transformers' pipeline, and called one by one.

    python -m bench.serving --data DATA [--clients 1 8 32] [--seconds 10] [--repeats 3] [--peers threads loop]

DATA holds sst/dev.txt. Both servers run all the time; each is asked in turn by clients in a process of their own, every
text of SST-2's dev part in a request of its own. Clients and servers share the cores. The one-by-one calls are made in
this process without HTTP. Every figure is the median of the repeats.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bench.machine import description
from bench.measure import SETTLING_SECONDS
from bench.peers.pipeline_server import CALLS, PATH
from bench.samples import sst_dev, texts_of
from bench.serving.classifier import one_by_one, write_classifier
from bench.serving.figures import Figures, Goal, Run, table
from bench.serving.servers import ROOT, Server, ours, theirs
from bench.works import SST_DEV
from headstart.transfer.loading import load_task_model

OURS, ALONE, NAME = "headstart serve", "one-by-one calls", "classifier"
MANY, GAIN, FASTER, SOONER = 32, 2.0, 2.0, 2.0
"""With so many clients: throughput beside one-by-one calls, throughput beside the peer, the peer's p95 beside ours."""
CHECKED, TOLERANCE = 16, 1e-4
Runner = Callable[[int, float], Run]
"""Clients, seconds -> what they met."""


def main(arguments: Sequence[str] | None = None) -> int:
    given = parsed(arguments)
    began = time.monotonic()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    examples = sst_dev(given.data)
    texts = texts_of(examples)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        files = Path(folder) / NAME
        write_classifier(examples, files)
        model: Any = load_task_model(str(files))
        logs = given.out.parent
        mine = stack.enter_context(ours([str(files)], logs / "serving-ours.log"))
        peers = {f"FastAPI + pipeline ({calls})": calls for calls in given.peers}
        servers = {
            side: stack.enter_context(theirs(files, calls, logs / f"serving-{calls}.log"))
            for side, calls in peers.items()
        }
        check_same(mine, servers, texts)
        asked = [{"model": NAME, "inputs": [{"text": text}]} for text in texts]
        sides: dict[str, Runner] = {OURS: partial(load, mine, "/api/predict", asked)}
        for side, server in servers.items():
            sides[side] = partial(load, server, PATH, [{"text": text} for text in texts])
        print(f"{len(texts)} sentences; {torch.get_num_threads()} threads each; {given.repeats} runs of each, in turns")
        alone = [one_by_one(model, texts, given.seconds)]
        rows: list[Figures] = []
        for clients in given.clients:
            runs: dict[str, list[Run]] = {side: [] for side in sides}
            for _ in range(given.repeats):
                for side, run in sides.items():
                    runs[side].append(run(clients, given.seconds))
            alone.append(one_by_one(model, texts, given.seconds))
            rows += [Figures.of(side, clients, of_side) for side, of_side in runs.items()]
            print(table(rows[-len(sides) :]), flush=True)
    rows.append(Figures.of(ALONE, 1, alone))
    goals = goals_of(rows, list(peers))
    print(f"\n{table(rows)}\n", *goals, f"Took {time.monotonic() - began:.0f} s.", sep="\n")
    figures = {"machine": description(), "rows": [asdict(row) for row in rows], "goals": list(map(str, goals))}
    given.out.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.serving", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {SST_DEV}")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, MANY])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each run")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peers", choices=CALLS, nargs="*", default=list(CALLS))
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results/serving.json")
    return parser.parse_args(arguments)


def check_same(mine: Server, peers: Mapping[str, Server], texts: Sequence[str]) -> None:
    """Two speeds are compared only if they are of the same computation."""
    inputs = [{"text": text} for text in texts[:CHECKED]]
    answers = mine.ask("/api/predict", {"model": NAME, "inputs": inputs})["answers"]
    for (answer,), given in zip(answers, inputs, strict=True):
        for side, server in peers.items():
            found = server.ask(PATH, given)
            apart = abs(answer["probabilities"][found["label"]] - found["score"])
            if answer["label"] != found["label"] or apart > TOLERANCE:
                raise SystemExit(f"{given['text']!r}: ours is {answer}, that of {side} {found}")


def load(server: Server, path: str, bodies: Sequence[Any], clients: int, seconds: float) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        requests, out = Path(folder) / "requests.json", Path(folder) / "answers.json"
        requests.write_text(json.dumps({"path": path, "bodies": bodies}))
        options = ["--port", server.port, "--requests", requests, "--clients", clients, "--seconds", seconds]
        command = [sys.executable, "-m", "bench.serving.clients", *map(str, options), "--out", str(out)]
        time.sleep(SETTLING_SECONDS)
        subprocess.run(command, cwd=ROOT, check=True)
        found = json.loads(out.read_text())
    if set(found["statuses"]) != {"200"}:
        raise SystemExit(f"port {server.port}: answers other than 200: {found['statuses']}")
    return Run(found["seconds"], found["counted_seconds"])


def goals_of(rows: Sequence[Figures], peers: Sequence[str]) -> list[Goal]:
    """Those that the clients that were asked for allow to tell."""
    by_side = {(row.side, row.clients): row for row in rows}
    if (OURS, MANY) not in by_side:
        return []
    mine, alone = by_side[OURS, MANY], by_side[ALONE, 1]
    goals = [Goal(f"{OURS}, {MANY} clients, throughput beside {ALONE}", mine.rate / alone.rate, GAIN)]
    for side in peers:
        peer = by_side[side, MANY]
        goals.append(Goal(f"{OURS}, {MANY} clients, throughput beside {side}", mine.rate / peer.rate, FASTER))
        goals.append(Goal(f"{side}, {MANY} clients, p95 beside {OURS}", peer.p95 / mine.p95, SOONER))
    return goals


if __name__ == "__main__":
    raise SystemExit(main())
