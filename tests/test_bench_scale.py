"""The model of cost against numbers by hand and the real network; how the bench reads a run and limits a cable."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

pytest.importorskip("bench", reason="bench/ is importable from the repository's folder only")

from bench.scale import grid, tables
from bench.scale.cost import fitted
from bench.scale.model import Machine, Network, Reading, bert_network, preparing_seconds, step_time
from bench.scale.speed import seconds_per_step

from headstart.encoders.bert import Bert, BertConfig
from headstart.heads.language_model import MaskedLMHead

MACHINE = Machine(flops=1e9, updates=1e6, share_of_link=0.5, hidden=0.3, exchange_seconds=0.001)
READING = Reading(read=1e8, prepared=1e6)
NETWORK = Network(parameters=1_000_000, flops=1e6)


def test_a_step_of_one_machine_is_compute_and_update() -> None:
    found = step_time(NETWORK, MACHINE, tokens=3_000, machines=1, megabits=1.0)
    assert (found.compute, found.update, found.waiting) == (3.0, 1.0, 0.0)
    assert found.total == 4.0


def test_gradients_travel_twice_around_a_ring_and_backward_hides_some_of_it() -> None:
    """4 MB x 2 x 3/4 at half of 16 Mbit/s, which are 1 MB/s, and six exchanges of a millisecond; 0.3 x 2/3 x 0.75 s
    hidden."""
    found = step_time(NETWORK, MACHINE, tokens=3_000, machines=4, megabits=16.0)
    assert found.compute == 0.75
    assert found.travelling == pytest.approx(6.006)
    assert found.waiting == pytest.approx(6.006 - 0.15)


def test_a_cable_that_is_quick_enough_is_not_waited_for() -> None:
    assert step_time(NETWORK, replace(MACHINE, hidden=1.0), tokens=30_000, machines=2, megabits=1e4).waiting == 0


def test_sharded_weights_travel_once_more_and_each_process_updates_its_own() -> None:
    whole = step_time(NETWORK, MACHINE, tokens=3_000, machines=2, megabits=16.0)
    sharded = step_time(NETWORK, MACHINE, tokens=3_000, machines=2, megabits=16.0, shard=True)
    assert sharded.update == whole.update / 2
    assert sharded.travelling - 0.002 == pytest.approx(1.5 * (whole.travelling - 0.002))


def test_a_machine_is_found_again_from_the_times_of_its_steps() -> None:
    def seconds(machines: int, megabits: float) -> float:
        return step_time(NETWORK, MACHINE, tokens=3_000, machines=machines, megabits=megabits).total

    found = fitted(NETWORK, 3_000, seconds(1, 1.0), {rate: seconds(2, rate) for rate in (8.0, 2.0)}, 1e6)
    assert asdict(replace(found, exchange_seconds=0.001)) == pytest.approx(asdict(MACHINE), rel=0.01)


def test_the_network_has_as_many_parameters_as_the_one_that_is_trained() -> None:
    config = BertConfig(layers=3, width=16, heads=4, inner=40, positions=20)
    real = [Bert(config, 50), MaskedLMHead(16, 50, 1e-12, untied=False)]
    assert bert_network(config, 50, length=8, masked=0.15).parameters == sum(
        parameter.numel() for module in real for parameter in module.parameters()
    )


def test_the_tables_have_a_row_for_every_number_of_machines() -> None:
    check = {"size": "mini", "tokens": 1024, "megabits": 50.0, "shard": True, "predicted": 1.1, "measured": 1.0}
    found = {"machine": asdict(MACHINE), "checks": [check], "peaks": {"alone": 2e9}, "reading": asdict(READING)}
    text = tables.tables(found)
    assert "| BERT mini, 1,024 pieces, 50 Mbit/s, `--shard` | 1.10 s | 1.00 s | +10 % |" in text
    assert "| alone | 2.00 GB |" in text
    assert all(text.count(f"\n| {machines} |") == 3 for machines in tables.MACHINES)
    assert "| 1 billion words | 6 GB |" in text


def test_local_steps_divide_what_travels_and_hide_nothing() -> None:
    found = step_time(NETWORK, MACHINE, tokens=3_000, machines=4, megabits=16.0, local_steps=6)
    assert found.waiting == pytest.approx(6.006 / 6)


def test_preparing_is_bound_by_the_cores_or_by_reading() -> None:
    """1 GB: 1,000 s of one core; two readings take 20 s, whatever the cores."""
    assert preparing_seconds(1e9, READING, cores=10) == 100.0
    assert preparing_seconds(1e9, READING, cores=1_000) == 20.0


def test_a_process_of_a_sharded_model_holds_its_share_of_the_parameters() -> None:
    whole, half = (tables.memory_bytes("base", 2, shard=shard) for shard in (False, True))
    assert whole - half == 8 * tables.network("base").parameters


def test_the_time_of_a_step_leaves_out_the_first_ones_and_the_last(tmp_path: Path) -> None:
    elapsed = [5.0, 6.0, 7.0, 8.0, 9.0, 10.1, 11.1, 30.0]
    lines = [{"step": n, "loss": 1.0, "elapsed": moment} for n, moment in enumerate(elapsed, start=1)]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, [*lines, {"final": {}}])))
    assert seconds_per_step(tmp_path) == pytest.approx(1.0)


def test_comparisons_are_the_same_but_for_their_times(tmp_path: Path) -> None:
    for name, seconds, weight in (("whole", 1.0, b"a"), ("slower", 2.0, b"a"), ("other", 1.0, b"b")):
        model = tmp_path / name / "models" / "scratch"
        model.mkdir(parents=True)
        (model / "weights.safetensors").write_bytes(weight)
        results = {"cells": [{"accuracy": 0.5, "seconds": seconds}], "advice": {"sentence": f"{seconds} s"}}
        (tmp_path / name / "results.json").write_text(json.dumps(results))
    whole = tmp_path / "whole"
    assert grid.difference(tmp_path / "slower", whole) == ""
    assert grid.difference(tmp_path / "other", whole) == "another model: scratch"
    (tmp_path / "slower" / "cell.json.1.partial").touch()
    assert grid.difference(tmp_path / "slower", whole) == "left over: cell.json.1.partial"
    (tmp_path / "slower" / "results.json").write_text(json.dumps({"cells": [{"accuracy": 0.6, "seconds": 1.0}]}))
    assert grid.difference(tmp_path / "slower", whole) == "other results: cells"
