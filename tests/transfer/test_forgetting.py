"""What is measured when an encoder changes under its language model, for every generation."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch
from torch import nn

import headstart
from headstart.errors import CheckpointError, DataError
from headstart.pretraining.objectives import OBJECTIVES
from headstart.transfer.forgetting import Forgetting, forgetting

ResultT = TypeVar("ResultT")
WORDS = {"objective.dim": 8, "tokenizer.min_count": 1}
TINY: dict[str, dict[str, Any]] = {
    "skipgram": {"steps": 60, "settings": {**WORDS, "objective.step_words": 2000, "objective.learning_rate": 0.1}},
    "cbow": {"steps": 60, "settings": {**WORDS, "objective.step_words": 2000, "objective.learning_rate": 0.1}},
    "glove": {"steps": 30, "settings": {**WORDS, "objective.pairs_per_step": 2000}},
    "elmo": {
        "size": "tiny",
        "steps": 60,
        "settings": {"encoder.cell": 16, "encoder.projection": 8, "training.batch": 200},
    },
    "bert": {
        "size": "tiny",
        "steps": 60,
        "settings": {"encoder.width": 16, "encoder.inner": 32, "training.batch": 256, "objective.length": 32},
    },
}


def pretrain(kind: str, text: Path, out: Path, **options: Any) -> dict[str, float]:
    *_, finished = headstart.pretrain(kind, text, out=out, **{**TINY[kind], **options})
    return dict(finished.scores)


def result(generator: Generator[Any, None, ResultT]) -> ResultT:
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]


def measured(run: Path, encoder: nn.Module, **options: Any) -> Forgetting:
    found = result(forgetting(run, encoder, **options))
    assert found is not None
    return found


def disturb(encoder: nn.Module) -> None:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter += parameter.std(correction=0) * torch.randn(parameter.shape, generator=generator)


@pytest.fixture(scope="module", params=OBJECTIVES)
def run(request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of each generation that holds out every tenth document of its own text."""
    out = tmp_path_factory.mktemp("forgetting") / str(request.param)
    settings = {**TINY[request.param]["settings"], "text.valid_share": 0.1}
    pretrain(request.param, corpus, out, settings=settings)
    return out


def test_an_unchanged_encoder_has_forgotten_nothing(run: Path) -> None:
    found = measured(run, headstart.load(run).encoder)
    assert found.after == found.before > 1


def test_a_disturbed_encoder_has_forgotten_something(run: Path) -> None:
    encoder = headstart.load(run).encoder
    unchanged = measured(run, encoder)
    disturb(encoder)
    found = measured(run, encoder)
    assert found.before == unchanged.before
    assert found.after > found.before


def test_the_encoder_and_the_random_numbers_stay_as_they_were(run: Path) -> None:
    encoder = headstart.load(run).encoder
    disturb(encoder)
    tensors = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    state = torch.get_rng_state()
    measured(run, encoder)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in encoder.state_dict().items())


@pytest.mark.parametrize("kind", ["skipgram", "elmo", "bert"])
def test_what_is_measured_first_is_the_perplexity_that_the_run_reported(
    kind: str, corpus: Path, tmp_path: Path
) -> None:
    scores = pretrain(kind, corpus, tmp_path / "run")
    found = measured(tmp_path / "run", headstart.load(tmp_path / "run").encoder, units=100_000)
    assert found.before == pytest.approx(scores["perplexity"], rel=1e-6)


@pytest.mark.parametrize("kind", ["skipgram", "bert"])
def test_a_run_with_its_own_held_out_text_is_measured_on_it_alone(kind: str, corpus: Path, tmp_path: Path) -> None:
    text, valid = tmp_path / "text.txt", tmp_path / "valid.txt"
    text.write_bytes(corpus.read_bytes())
    valid.write_text("The cat likes the garden .\nNobody hates old songs .\n" * 20)  # one document: no pairs to draw
    pretrain(kind, text, tmp_path / "run", valid=valid)
    encoder = headstart.load(tmp_path / "run").encoder
    text.unlink()
    first = measured(tmp_path / "run", encoder)
    assert measured(tmp_path / "run", encoder, held_out=[str(valid)]) == first
    assert measured(tmp_path / "run", encoder, held_out=[str(corpus)]) != first


def test_text_that_is_gone_or_changed_is_not_measured(corpus: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(corpus.read_bytes())
    pretrain("skipgram", text, tmp_path / "run")
    encoder = headstart.load(tmp_path / "run").encoder
    text.write_text(text.read_text() + "\nOne more document .\n")
    assert result(forgetting(tmp_path / "run", encoder)) is None
    text.unlink()
    assert result(forgetting(tmp_path / "run", encoder)) is None
    with pytest.raises(DataError, match="no such file"):
        result(forgetting(tmp_path / "run", encoder, held_out=[str(text)]))


def test_a_run_that_held_out_nothing_is_not_measured(corpus: Path, tmp_path: Path) -> None:
    settings = {**TINY["skipgram"]["settings"], "text.valid_share": 0.0}
    pretrain("skipgram", corpus, tmp_path / "run", settings=settings)
    assert result(forgetting(tmp_path / "run", headstart.load(tmp_path / "run").encoder)) is None


def test_an_encoder_of_another_run_is_refused(corpus: Path, tmp_path: Path) -> None:
    pretrain("skipgram", corpus, tmp_path / "run")
    pretrain("skipgram", corpus, tmp_path / "wide", settings={**TINY["skipgram"]["settings"], "objective.dim": 9})
    pretrain("elmo", corpus, tmp_path / "elmo")
    with pytest.raises(CheckpointError, match=r"'vectors' has shape \(\d+, 9\), wanted \(\d+, 8\)"):
        result(forgetting(tmp_path / "run", headstart.load(tmp_path / "wide").encoder))
    with pytest.raises(CheckpointError, match="on one side only"):
        result(forgetting(tmp_path / "run", headstart.load(tmp_path / "elmo").encoder))
    with pytest.raises(CheckpointError, match="no such folder"):
        result(forgetting(tmp_path / "none", headstart.load(tmp_path / "run").encoder))
