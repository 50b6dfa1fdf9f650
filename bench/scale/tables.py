"""The tables of docs/scale.md: the fit and its checks, and BERT base on 1 to 64 machines for 1 to 100 billion words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from bench.scale.model import STATE_BYTES, Machine, Network, Reading, bert_network, preparing_seconds, step_time
from headstart.encoders.bert import BERT_SIZES, Bert, BertConfig

MACHINES = (1, 2, 4, 8, 16, 32, 64)
LINKS = {"1 Gbit/s": 1_000.0, "10 Gbit/s": 10_000.0}
TOKENS = 256 * 512
"""Pieces in a step, as published."""
PIECES, LENGTH, MASKED = 30_522, 512, 0.15
PIECES_PER_WORD = 1.3
"""Marks included; of reviews and novels with a vocabulary of 30,522."""
BYTES_PER_PIECE, BYTES_PER_WORD = 2.4, 5.6
"""On disk: ids of two bytes with where sentences and documents end; text."""
DAY = 86_400.0
SIZES = ("base", "large")
SERVER, SERVER_CORES = 20.0, 40
"""A machine that computes so many times as fast as the one measured, with so many cores."""
MICRO_BATCH = 1
"""Sequences that a process computes at a time, of LENGTH pieces."""
STUCK = 16
"""Machines with the slower link, for what to turn where they no longer help."""


def network(size: str) -> Network:
    return bert_network(BertConfig(**BERT_SIZES[size]), PIECES, length=LENGTH, masked=MASKED)


def tables(found: Mapping[str, Any]) -> str:
    machine = Machine(**found["machine"])
    server = Machine(**{**found["machine"], "flops": SERVER * machine.flops, "updates": SERVER / 4 * machine.updates})
    parts = [checks_table(found["checks"])]
    for what, one in (("the machine measured", machine), (f"a machine {SERVER:g} times as fast", server)):
        parts += [f"BERT base, {what}:", scaling_table(one)]
    parts += [f"{STUCK} such machines, 1 Gbit/s:", remedies_table(server)]
    parts += ["Memory of a process:", memory_table(), "Measured:", peaks_table(found["peaks"])]
    parts += ["Text:", text_table(Reading(**found["reading"]))]
    return "\n\n".join(parts)


def checks_table(checks: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            f"BERT {check['size']}, {check['tokens']:,} pieces, {check['megabits']:g} Mbit/s"
            + (", `--shard`" if check["shard"] else ""),
            f"{check['predicted']:.2f} s",
            f"{check['measured']:.2f} s",
            f"{100 * (check['predicted'] / check['measured'] - 1):+.0f} %",
        )
        for check in checks
    ]
    return markdown(("a step of two machines", "predicted", "measured", "apart"), rows)


def scaling_table(machine: Machine) -> str:
    columns = ["machines"]
    for link in LINKS:
        columns += [f"{link}: a step", "efficiency", "days for 1, 10, 100 billion words"]
    return markdown(columns, list(scaling_rows(machine)))


def scaling_rows(machine: Machine) -> Iterator[tuple[str, ...]]:
    base = network("base")
    alone = step_time(base, machine, tokens=TOKENS, machines=1, megabits=1.0).total
    for machines in MACHINES:
        row = [str(machines)]
        for megabits in LINKS.values():
            seconds = step_time(base, machine, tokens=TOKENS, machines=machines, megabits=megabits).total
            steps = 1e9 * PIECES_PER_WORD / TOKENS
            days = ", ".join(number(billions * steps * seconds / DAY) for billions in (1, 10, 100))
            row += [f"{number(seconds)} s", f"{alone / seconds / machines:.2f}", days]
        yield tuple(row)


def remedies_table(machine: Machine) -> str:
    """What can be turned where the network is waited for. All are in pieces of text a second, which steps are not."""
    slow, fast = LINKS.values()
    one = TOKENS / step_time(network("base"), machine, tokens=TOKENS, machines=1, megabits=slow).total
    ways: dict[str, tuple[int, float, int]] = {
        "as published, 131,072 pieces in a batch": (1, slow, 1),
        "a batch four times as large": (4, slow, 1),
        "a batch sixteen times as large": (16, slow, 1),
        "weights averaged after eight local steps": (1, slow, 8),
        "the same batch, a link of 10 Gbit/s": (1, fast, 1),
    }
    rows = []
    for way, (times, megabits, local) in ways.items():
        tokens = times * TOKENS
        step = step_time(network("base"), machine, tokens=tokens, machines=STUCK, megabits=megabits, local_steps=local)
        pace = tokens / step.total
        rows.append((way, f"{number(step.total)} s", f"{pace:,.0f}", f"{pace / one / STUCK:.2f}"))
    return markdown(("", "a step", "pieces a second", "efficiency"), rows)


def memory_table() -> str:
    columns = ["processes"]
    for size in SIZES:
        columns += [f"{size}: each holds the model", "`--shard`"]
    rows = []
    for processes in MACHINES:
        row = [str(processes)]
        for size in SIZES:
            row += [f"{memory_bytes(size, processes, shard=shard) / 1e9:.1f} GB" for shard in (False, True)]
        rows.append(row)
    return markdown(columns, rows)


def memory_bytes(size: str, processes: int, *, shard: bool) -> float:
    """Weights, gradients and moments of a process, and what a batch of MICRO_BATCH sequences leaves for the backward
    pass."""
    with torch.device("meta"):
        encoder = Bert(BertConfig(**BERT_SIZES[size]), PIECES)
    held = STATE_BYTES * network(size).parameters / (processes if shard else 1)
    return held + 4 * encoder.activation_floats(MICRO_BATCH, LENGTH)


def peaks_table(peaks: Mapping[str, float]) -> str:
    return markdown(("BERT base", "largest process"), [(way, f"{size / 1e9:.2f} GB") for way, size in peaks.items()])


def text_table(reading: Reading) -> str:
    rows = []
    for billions in (1, 10, 100):
        words = billions * 1e9
        minutes = [
            preparing_seconds(words * BYTES_PER_WORD, reading, cores=SERVER_CORES * machines) / 60
            for machines in (1, 8, 64)
        ]
        rows.append(
            (
                f"{billions} billion words",
                f"{words * BYTES_PER_WORD / 1e9:,.0f} GB",
                f"{words * PIECES_PER_WORD * BYTES_PER_PIECE / 1e9:,.0f} GB",
                f"{words * PIECES_PER_WORD / TOKENS:,.0f}",
                ", ".join(f"{number(each)} min" for each in minutes),
            )
        )
    prepared = f"prepared by 1, 8, 64 machines of {SERVER_CORES} cores"
    return markdown(("", "text", "shards", "steps of one pass", prepared), rows)


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
