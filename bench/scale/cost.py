"""What a training step costs on several machines: a model, fitted to runs here, checked against others, extrapolated.

    python -m bench.scale cost --text TEXT [--out FILE]     # measure, fit, check; needs root for the network namespaces
    python -m bench.scale cost --tables FILE                # the tables of docs/scale.md, from what was measured

A "machine" of the fit is one core with a network namespace of its own, with a cable of a limited rate to the other one.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from bench.scale.model import BACKWARD, Machine, Network, Reading, bert_network, step_time
from bench.scale.peaks import peaks
from bench.scale.preparing import seconds_before_training
from bench.scale.speed import RUN, Training, alone, apart, run_alone
from bench.scale.tables import tables
from headstart.encoders.bert import BERT_SIZES, BertConfig
from headstart.text.documents import TextConfig, settle_layout
from headstart.text.jobs import read_jobs
from headstart.training.optim import AdamW, OptimizerConfig

PIECES, LENGTH, MASKED = 12_000, 128, 0.15
SIZE, TOKENS = "small", 4096
FITTED = (400.0, 100.0)
"""Rates of the cable, in megabits a second, that the model is fitted to; in both, gradients are waited for."""
CHECKS = (
    ("small", 4096, 200.0, False),
    ("small", 8192, 100.0, False),
    ("mini", 1024, 100.0, False),
    ("small", 4096, 200.0, True),
)
"""(size, tokens in the batch, megabits a second, whether sharded): predicted, then measured."""
STEPS = 8
BASE_TOKENS, BASE_STEPS = 4096, 7


def training(size: str, tokens: int, text: Path, steps: int = STEPS) -> Training:
    settings = (
        f"training.batch={tokens}",
        f"objective.length={LENGTH}",
        f"objective.mask_rate={MASKED}",
        f"tokenizer.size={PIECES}",
        "objective.nsp=false",
        "training.precision=float32",
    )
    return Training("bert", size, text, steps, settings)


def network(size: str) -> Network:
    return bert_network(BertConfig(**BERT_SIZES[size]), PIECES, length=LENGTH, masked=MASKED)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scale cost", description=__doc__)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--tables", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, default=Path("bench/results/scale.json"))
    given = parser.parse_args(arguments)
    if given.tables is not None:
        print(tables(json.loads(given.tables.read_text())))
        return 0
    if given.text is None:
        parser.error("--text is needed to measure")
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        found = measured(given.text.resolve(), Path(name))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=1) + "\n")
    print(tables(found))
    return 0


def measured(text: Path, folder: Path) -> dict[str, object]:
    updates = update_rate(network(SIZE).parameters)
    one = told("one core", alone(training(SIZE, TOKENS, text), folder, threads=1, cores="0"))
    two = {rate: told(f"two, {rate:g} Mbit/s", apart(training(SIZE, TOKENS, text), folder, rate)) for rate in FITTED}
    core = fitted(network(SIZE), TOKENS, one, two, updates)
    checks = []
    for size, tokens, rate, shard in CHECKS:
        expected = step_time(network(size), core, tokens=tokens, machines=2, megabits=rate, shard=shard).total
        run = training(size, tokens, text, STEPS if size == SIZE else 4 * STEPS)
        what = {"size": size, "tokens": tokens, "megabits": rate, "shard": shard}
        seconds = told(f"{what}", apart(run, folder, rate, ["--shard"] if shard else ()))
        checks.append({**what, "predicted": expected, "measured": seconds})
    settings = (f"training.batch={BASE_TOKENS}", f"objective.length={LENGTH}", f"tokenizer.size={PIECES}")
    base = Training("bert", "base", text, BASE_STEPS, settings)
    whole = told("base, both cores", alone(base, folder, threads=2))
    return {
        "one": one,
        "two": {f"{rate:g}": seconds for rate, seconds in two.items()},
        "core": asdict(core),
        "checks": checks,
        "base": {"tokens": BASE_TOKENS, "seconds": whole, "precision": "bfloat16 where the processor multiplies it"},
        "machine": asdict(whole_machine(core, whole)),
        "reading": asdict(reading_of(text, folder)),
        "peaks": peaks(text, folder),
    }


def told(what: str, seconds: float) -> float:
    print(f"{what}: {seconds:.3f} s a step", flush=True)
    return seconds


def update_rate(parameters: int) -> float:
    """Parameters a second through clipping and AdamW, on one thread."""
    torch.set_num_threads(1)
    model = torch.nn.Linear(1000, parameters // 1000)
    optimizer, seconds = AdamW(model, OptimizerConfig()), []
    for _ in range(5):
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        began = time.perf_counter()
        optimizer.step(1.0)
        seconds.append(time.perf_counter() - began)
    return parameters / sorted(seconds)[2]


def reading_of(text: Path, folder: Path) -> Reading:
    """On one core, with an empty cache."""
    shutil.rmtree(folder / "home", ignore_errors=True)
    run_alone(Training("bert", "tiny", text, 1), folder, threads=1, cores="0")
    layout, _ = settle_layout([text], TextConfig())
    began = time.perf_counter()
    for _ in read_jobs([text], layout):
        pass
    took = time.perf_counter() - began
    size = text.stat().st_size
    found = Reading(read=size / took, prepared=size / seconds_before_training(folder / RUN))
    print(f"text: read {found.read / 1e6:.1f} MB/s, prepared {found.prepared / 1e6:.2f} MB/s", flush=True)
    return found


def fitted(net: Network, tokens: int, one: float, two: dict[float, float], updates: float) -> Machine:
    """Compute from one machine; the cable's share and what is hidden from two machines with cables of two rates.

    waiting = sent / (share * rate) - hidden * backward, for two rates: two equations with two unknowns.
    """
    update = net.parameters / updates
    flops = tokens * net.flops / (one - update)
    core = Machine(flops=flops, updates=updates, share_of_link=1.0, hidden=0.0)
    (fast, fast_took), (slow, slow_took) = sorted(two.items(), reverse=True)
    at_fast, at_slow = (step_time(net, core, tokens=tokens, machines=2, megabits=rate) for rate in (fast, slow))
    share = (at_slow.travelling - at_fast.travelling) / (slow_took - fast_took)
    core = replace(core, share_of_link=share)
    at_fast = step_time(net, core, tokens=tokens, machines=2, megabits=fast)
    hidden = (at_fast.total - fast_took) / (BACKWARD * at_fast.compute)
    return replace(core, hidden=min(max(hidden, 0.0), 1.0))


def whole_machine(core: Machine, base_seconds: float) -> Machine:
    """The machine with all its cores, from a step of BERT base."""
    net = bert_network(BertConfig(**BERT_SIZES["base"]), PIECES, length=LENGTH, masked=MASKED)
    updates = 2 * core.updates
    return replace(core, flops=BASE_TOKENS * net.flops / (base_seconds - net.parameters / updates), updates=updates)
