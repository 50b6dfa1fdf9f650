"""The tables of docs/scale.md: the fit and its checks, and BERT base on 1 to 64 machines for 1 to 100 billion words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.scale.model import STATE_BYTES, Machine, Network, bert_network, step_time
from headstart.encoders.bert import BERT_SIZES, BertConfig

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
SERVER = 20.0
"""A machine that computes so many times as fast as the one measured, such as a server with 40 cores."""


def base() -> Network:
    return bert_network(BertConfig(**BERT_SIZES["base"]), PIECES, length=LENGTH, masked=MASKED)


def tables(found: Mapping[str, Any]) -> str:
    machine = Machine(**found["machine"])
    server = Machine(**{**found["machine"], "flops": SERVER * machine.flops, "updates": SERVER / 4 * machine.updates})
    parts = [checks_table(found["checks"])]
    for what, one in (("the machine measured", machine), (f"a machine {SERVER:g} times as fast", server)):
        parts += [f"BERT base, {what}:", scaling_table(one)]
    parts += ["Text:", text_table()]
    return "\n\n".join(parts)


def checks_table(checks: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            f"BERT {check['size']}, {check['tokens']:,} pieces, {check['megabits']:g} Mbit/s",
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
    network = base()
    alone = step_time(network, machine, tokens=TOKENS, machines=1, megabits=1.0).total
    for machines in MACHINES:
        row = [str(machines)]
        for megabits in LINKS.values():
            seconds = step_time(network, machine, tokens=TOKENS, machines=machines, megabits=megabits).total
            steps = 1e9 * PIECES_PER_WORD / TOKENS
            days = ", ".join(number(billions * steps * seconds / DAY) for billions in (1, 10, 100))
            row += [f"{number(seconds)} s", f"{alone / seconds / machines:.2f}", days]
        yield tuple(row)


def text_table() -> str:
    rows = [
        (
            f"{billions} billion words",
            f"{billions * BYTES_PER_WORD:,.0f} GB",
            f"{billions * PIECES_PER_WORD * BYTES_PER_PIECE:,.1f} GB",
            f"{billions * 1e9 * PIECES_PER_WORD / TOKENS:,.0f}",
        )
        for billions in (1, 10, 100)
    ]
    return markdown(("", "text", "shards", "steps of one pass"), rows)


def memory_bytes(network: Network, processes: int, *, shard: bool) -> float:
    """Weights, gradients and moments in each process."""
    return STATE_BYTES * network.parameters / (processes if shard else 1)


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
