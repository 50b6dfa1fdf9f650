"""`headstart layers` as its user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import CommandLine

QUICK = ["--seeds", "1", "--set", "fitting.min_steps=3", "--set", "fitting.epochs=1", "--quiet"]


@pytest.fixture(scope="module")
def runs(
    cli: CommandLine,
    pretrained_runs: dict[str, Path],
    labelled: tuple[Path, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Path]:
    """A frozen and a fine-tuned task model, as `transfer` leaves them."""
    folder = tmp_path_factory.mktemp("tasks")
    data = ["--train", labelled[0], "--dev", labelled[1], "--pool", "mean", "--cell", "none"]
    made = {"frozen": pretrained_runs["elmo"], "finetune": pretrained_runs["bert"]}
    for how, source in made.items():
        cli("transfer", "sentiment", "--from", source, "--how", how, *data, "--out", folder / how, *QUICK)
    return {how: folder / how for how in made}


def test_weights_side_by_side_and_who_has_none(cli: CommandLine, runs: dict[str, Path]) -> None:
    headers, row, note = cli("layers", *runs.values()).stdout.splitlines()
    assert headers.split() == ["run", "task", "encoder", "words", "layer", "1", "layer", "2", "gamma"]
    assert row.split()[:3] == ["frozen", "classify", "elmo"]
    weights = json.loads(cli("layers", runs["frozen"], "--json").stdout)["mixes"][0]["weights"]
    assert row.split()[3:6] == [f"{weight:.2f}" for weight in weights]
    assert sum(weights) == pytest.approx(1)
    assert note == "finetune: reads the last layer alone (finetune)"


def test_a_picture_where_there_is_anything_to_draw(cli: CommandLine, runs: dict[str, Path], tmp_path: Path) -> None:
    cli("layers", *runs.values(), "--plot", tmp_path / "layers.svg")
    assert ">layer 2<" in (tmp_path / "layers.svg").read_text(encoding="utf-8")
    refused = cli.refusal("layers", runs["finetune"], "--plot", tmp_path / "none.svg")
    assert refused == "There are no layer weights to draw. finetune: reads the last layer alone (finetune)"
    assert [path.name for path in tmp_path.iterdir()] == ["layers.svg"]
