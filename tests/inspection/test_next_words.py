"""The next word and the word before, and who cannot say them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from typer.testing import CliRunner

import headstart
from headstart.cli.main import app
from headstart.errors import ConfigError, DataError
from headstart.inspection.next_words import next_words
from headstart.pretrained import Pretrained
from headstart.text.tokenizer import WordTokenizer

TEXT = "nobody likes the old film"


@pytest.fixture
def elmo(pretrained_runs: dict[str, Path]) -> Pretrained:
    return headstart.load(pretrained_runs["elmo"])


@pytest.mark.parametrize("backward", [False, True])
def test_the_guesses_are_the_softmax_of_the_state_that_has_read_the_whole_text(
    elmo: Pretrained, pretrained_runs: dict[str, Path], backward: bool
) -> None:
    top = elmo.represent([TEXT], layers="top")[0][0]
    width = top.shape[1] // 2
    state = top[0, width:] if backward else top[-1, :width]
    weights = load_file(pretrained_runs["elmo"] / "weights.safetensors")
    logits = weights["head.weight"] @ state + weights["head.bias"]
    chances = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    guesses = next_words(elmo, TEXT, most=len(chances), backward=backward)
    assert isinstance(elmo.tokenizer, WordTokenizer)
    order = {word: number for number, word in enumerate(elmo.tokenizer.vocabulary.words)}
    assert [guess.probability for guess in guesses] == pytest.approx(sorted(chances, reverse=True), abs=1e-6)
    assert chances[[order[guess.piece] for guess in guesses]] == pytest.approx(
        [guess.probability for guess in guesses], abs=1e-6
    )


def test_who_cannot_say_so(elmo: Pretrained, pretrained_runs: dict[str, Path]) -> None:
    with pytest.raises(ConfigError, match="only an ELMo predicts the next word"):
        next_words(headstart.load(pretrained_runs["bert"]), TEXT)
    with pytest.raises(ConfigError, match="came without the softmax"):
        next_words(replace(elmo, heads={}), TEXT)
    with pytest.raises(ConfigError, match="got 0"):
        next_words(elmo, TEXT, most=0)
    with pytest.raises(DataError, match="has no word"):
        next_words(elmo, "  ")


def test_on_the_command_line_each_guess_is_a_line(pretrained_runs: dict[str, Path]) -> None:
    arguments = ["next", str(pretrained_runs["elmo"]), TEXT, "--backward", "--most", "3", "--quiet"]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    guesses = next_words(headstart.load(pretrained_runs["elmo"]), TEXT, 3, backward=True)
    assert done.stdout.splitlines() == [f"{100 * guess.probability:5.1f} %  {guess.piece}" for guess in guesses]
