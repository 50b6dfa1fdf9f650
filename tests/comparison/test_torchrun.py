"""A comparison by real processes under torchrun, stopped, killed and gone on with: the table of one process."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.pretraining.launched import (
    one_home,  # noqa: F401 (a fixture)
    torchrun,
    workers,
)

import headstart
from headstart.comparison.events import CellDone, RowPretraining
from headstart.report.results import Comparison

SETTINGS = [
    "transfer.fitting.min_steps=40", "transfer.fitting.epochs=1", "transfer.network.width=8",
    "pretrain.bert.training.steps=6", "pretrain.bert.training.batch=256", "pretrain.bert.encoder.width=16",
    "pretrain.bert.encoder.inner=32", "pretrain.bert.objective.length=32",
]  # fmt: skip
ROWS = ["scratch", "static-frozen", "elmo-frozen", "bert-finetune"]
CELLS = 16


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, rng = tmp_path_factory.mktemp("examples"), random.Random(0)
    for name, count in (("train", 60), ("dev", 30)):
        verbs = ["likes", "hates"] * (count // 2)
        texts = [
            f"The {rng.choice(['cat', 'dog'])} {verb} the film {number} {name} ." for number, verb in enumerate(verbs)
        ]
        lines = [
            f"{text},{rng.choice(verbs[:2]) if rng.random() < 0.3 else verb}"
            for text, verb in zip(texts, verbs, strict=True)
        ]
        (folder / f"{name}.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    return {name: folder / f"{name}.csv" for name in ("train", "dev")}


def cells_of(out: Path) -> set[str]:
    return {path.name for path in (out / "cells").glob("*.json")}


def wait_for_cells(out: Path, count: int, process: subprocess.Popen[str]) -> None:
    while len(cells_of(out)) < count:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)


def wait_for_restart(before: dict[int, int], process: subprocess.Popen[str]) -> dict[int, int]:
    """The processes that torchrun has started in the place of those `before`."""
    found: dict[int, int] = {}
    while len(found) < len(before) or set(found.values()) & set(before.values()):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
        with suppress(FileNotFoundError, ProcessLookupError):  # of a process that has just ended
            found = workers(process.pid)
    return found


def same(results: Comparison) -> Comparison:
    """What must be the same each time: all but what was measured with a clock, and the paths."""
    cells = [replace(cell, seconds=0.0) for cell in results.cells]
    table = [replace(entry, seconds=0.0) for entry in results.table]
    return replace(
        results, advice=None, cells=cells, table=table, rows=[replace(row, source=None) for row in results.rows]
    )


def test_killed_restarted_and_stopped_it_goes_on_to_the_table_and_models_of_one_process(
    pretrained_runs: dict[str, Path], examples: dict[str, Path], corpus: Path, tmp_path: Path
) -> None:
    out, encoders = tmp_path / "out", [pretrained_runs["static"], pretrained_runs["elmo"]]
    command: list[Any] = ["compare", "sentiment", "--train", examples["train"], "--dev", examples["dev"]]
    command += ["--text", corpus, "--labels", "4,10", "--seeds", "2", "--rows", ",".join(ROWS), "--out", out]
    command += [part for one in encoders for part in ("--with", one)]
    command += [part for one in SETTINGS for part in ("--set", one)]
    with torchrun(*command, restarts=1) as process:
        wait_for_cells(out, 2, process)
        first = workers(process.pid)
        os.kill(first[1], signal.SIGKILL)
        second = wait_for_restart(first, process)
        before = len(cells_of(out))
        wait_for_cells(out, before + 3, process)
        os.kill(second[1], signal.SIGTERM)
        said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said  # and torchrun has not restarted what was asked to stop
    assert said.count("Process 1 has ended without a word") == 1
    assert said.count("Stopped, with everything saved.") == 1
    assert said.count("Pretraining BERT") == 1
    assert "2 processes" in (out / "pretrained" / "bert" / "CARD.md").read_text()
    assert f"{CELLS} runs; {before} are done already." in said
    assert before + 3 <= len(cells_of(out)) < CELLS

    alone = tmp_path / "alone"
    shutil.copytree(out, alone)
    for made in ("cells", "models"):
        shutil.rmtree(alone / made)
    went_on, whole = (
        list(
            headstart.compare(
                "sentiment", **examples, text=corpus, labels=(4, 10), seeds=2, rows=ROWS, out=folder,
                with_=encoders, settings=SETTINGS, cache=tmp_path / "cache",
            )
        )
        for folder in (out, alone)
    )  # fmt: skip
    assert not any(isinstance(event, RowPretraining) for event in whole)  # only the fits are to be the same
    assert sum(isinstance(event, CellDone) for event in whole) == CELLS
    assert same(went_on[-1].results) == same(whole[-1].results)
    for row in ROWS:
        mine, theirs = (folder / "models" / row for folder in (out, alone))
        assert (mine / "weights.safetensors").read_bytes() == (theirs / "weights.safetensors").read_bytes()
        assert mine.with_name(f"{row}.json").read_bytes() == theirs.with_name(f"{row}.json").read_bytes()
