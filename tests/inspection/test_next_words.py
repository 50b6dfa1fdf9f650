"""The next word and the word before, and who cannot say them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from typer.testing import CliRunner

import headstart
from headstart.cli.main import app
from headstart.errors import ConfigError, DataError
from headstart.inspection.next_words import drawn, expect, generate, next_words
from headstart.pretrained import Pretrained
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import SENTENCE_END, SENTENCE_START, SPECIALS, UNKNOWN

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
    one_that_can = ".* elmo-mini, which comes with headstart, can"
    with pytest.raises(ConfigError, match=f"only an ELMo predicts the next word{one_that_can}"):
        next_words(headstart.load(pretrained_runs["bert"]), TEXT)
    with pytest.raises(ConfigError, match=f"came without the softmax{one_that_can}"):
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


def greedy(pretrained: Pretrained, words: list[str], n: int, *, backward: bool) -> list[str]:
    """By a plain loop: the whole text is read again for every word."""
    found: list[str] = []
    end, other = (SENTENCE_START, SENTENCE_END) if backward else (SENTENCE_END, SENTENCE_START)
    while len(found) < n:
        text = [*found[::-1], *words] if backward else [*words, *found]
        guesses = next_words(pretrained, text, len(pretrained.tokenizer), backward=backward)
        best = next(guess.piece for guess in guesses if guess.piece not in (UNKNOWN, other))
        if best == end:
            return found
        found.append(best)
    return found


@pytest.mark.parametrize("backward", [False, True])
def test_generating_is_predicting_again_and_again(
    elmo: Pretrained, tiny_elmo: Callable[..., Pretrained], backward: bool
) -> None:
    for pretrained, text in ((elmo, "nobody likes"), (tiny_elmo(), "the sun is"), (tiny_elmo(), "flower")):
        made = generate(pretrained, text, 12, backward=backward)
        words = [guess.piece for guess in made.words]
        assert words == greedy(pretrained, text.split(), 12, backward=backward)
        assert made.ended == (len(words) < 12)
        whole = [*words[::-1], text] if backward else [text, *words]
        assert made.text == " ".join(whole)
        first = next_words(pretrained, text, len(pretrained.tokenizer), backward=backward)
        for guess in made.words[:1]:
            assert guess.probability == pytest.approx(
                {one.piece: one.probability for one in first}[guess.piece], abs=1e-6
            )


def test_a_model_that_reads_forward_only_generates_forward_only(tiny_elmo: Callable[..., Pretrained]) -> None:
    pretrained = tiny_elmo("forward")
    assert [one.piece for one in generate(pretrained, "the sun", 6).words] == greedy(
        pretrained, ["the", "sun"], 6, backward=False
    )
    with pytest.raises(ConfigError, match=r"reads forward only.* elmo-mini, which comes with headstart, can"):
        generate(pretrained, "the sun", 6, backward=True)


@pytest.mark.parametrize(("backward", "end"), [(False, SENTENCE_END), (True, SENTENCE_START)])
def test_the_end_of_the_sentence_ends_it_and_no_other_mark_is_a_word(
    tiny_elmo: Callable[..., Pretrained], backward: bool, end: str
) -> None:
    made = generate(tiny_elmo(favour=end), "the sun", 5, backward=backward)
    assert (made.words, made.ended, made.text) == ((), True, "the sun")
    for mark in {*SPECIALS} - {end}:
        for temperature in (None, 1.0):
            made = generate(tiny_elmo(favour=mark), "the sun", 5, backward=backward, temperature=temperature)
            assert made.words
            assert not {guess.piece for guess in made.words} & {*SPECIALS}


def test_drawing_follows_the_softmax_at_its_temperature(tiny_elmo: Callable[..., Pretrained]) -> None:
    logits = torch.tensor([0.0, -torch.inf, 1.0, 2.0], dtype=torch.float64)
    rng = np.random.default_rng(0)
    counts = np.bincount([drawn(logits / 2, rng) for _ in range(20_000)], minlength=4) / 20_000
    shares = np.exp([0.0, -np.inf, 0.5, 1.0])
    assert counts == pytest.approx(shares / shares.sum(), abs=0.012)  # 3.4 deviations
    pretrained = tiny_elmo()
    texts = [generate(pretrained, "the sun", 8, temperature=1.0, seed=seed).text for seed in (0, 0, 1, 2, 3)]
    assert texts[0] == texts[1]
    assert len({*texts}) > 1
    cold = generate(pretrained, "the sun", 8, temperature=1e-4, seed=7)
    assert cold.text == generate(pretrained, "the sun", 8).text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"words": 0}, "--generate"), ({"temperature": 0.0}, "above 0"), ({"temperature": np.nan}, "nan")],
)
def test_what_cannot_be_generated(tiny_elmo: Callable[..., Pretrained], arguments: dict[str, float], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        generate(tiny_elmo(), "the sun", **arguments)  # type: ignore[arg-type]


def test_shown_as_json_and_in_a_notebook(tiny_elmo: Callable[..., Pretrained]) -> None:
    pretrained = tiny_elmo(favour=SENTENCE_END)
    expected = expect(pretrained, "the sun", 1)
    assert expected.as_table() == {
        "text": "the sun", "backward": False, "words": [{"word": "</S>", "probability": pytest.approx(1.0)}]
    }  # fmt: skip
    assert "<td>&lt;/S&gt;</td><td>100.0 %</td>" in expected._repr_html_()
    made = generate(tiny_elmo(), "the sun", 2)
    assert json.loads(json.dumps(made.as_table()))["text"] == made.text
    assert all(f"<td>{guess.piece}</td>" in made._repr_html_() for guess in made.words)
