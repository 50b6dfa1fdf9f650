"""Scores of sentences against plain loops that compute one prediction at a time."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import headstart
from headstart.batches.rows import text_row
from headstart.errors import ConfigError, DataError
from headstart.inspection import language_models
from headstart.inspection import score as score_module
from headstart.inspection.language_models import MaskedLM, NextWordLM
from headstart.inspection.score import score, score_all
from headstart.inspection.score_results import Perplexity, PseudoPerplexity, ScoredLine
from headstart.pretrained import Pretrained
from headstart.progress import Notice, Progress
from headstart.text.lines import Lines

TEXTS = ["the sun is set .", "", "sunset", "a flower is a flower is a zzz .", "suns set .", "  "]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks, batches and chunks of logits."""
    monkeypatch.setattr(score_module, "BLOCK_TOKENS", 40)
    monkeypatch.setattr(score_module, "BATCH_TOKENS", 12)
    monkeypatch.setattr(language_models, "CHUNK", 3)


def words_one_by_one(pretrained: Pretrained, text: str, *, backward: bool) -> float:
    """-log p of the words, each by a softmax of its own, in a sentence that is read alone."""
    model = NextWordLM.of(pretrained)
    ids = [0, *model.tokenizer.encode(text).ids.tolist(), 1]
    row = text_row(model.encoder, model.tokenizer, text)
    total = 0.0
    with torch.no_grad():
        top = model.encoder.hidden_states(torch.tensor(row.ids)[None], torch.ones(1, len(ids), dtype=torch.bool))[-1]
        for place in range(1, len(ids)):
            at, gold = (place, ids[place - 1]) if backward else (place - 1, ids[place])
            state = top[0, at, model.half(backward=backward)]
            total -= float(model.logits(state).log_softmax(-1)[gold])
    return total


def pieces_one_by_one(pretrained: Pretrained, text: str) -> float:
    model = MaskedLM.of(pretrained)
    ids = text_row(model.encoder, model.tokenizer, text).ids
    total = 0.0
    for place in range(1, len(ids) - 1):
        hidden = torch.tensor(ids)[None].clone()
        hidden[0, place] = model.tokenizer.mask
        with torch.no_grad():
            top = model.encoder.hidden_states(hidden, torch.ones_like(hidden, dtype=torch.bool))[-1]
            total -= float(model.logits(top[0, place]).log_softmax(-1)[ids[place]])
    return total


def test_elmo_gives_the_perplexity_of_both_directions(
    pretrained_runs: dict[str, Path], tiny_elmo: Callable[..., Pretrained]
) -> None:
    for pretrained in (tiny_elmo(), headstart.load(pretrained_runs["elmo"])):
        found = score_all(pretrained, TEXTS)
        assert [line.line for line in found.lines] == [1, 3, 4, 5]
        for line in found.lines:
            assert isinstance(line.score, Perplexity)
            n = len(TEXTS[line.line - 1].split())
            forward, backward = (words_one_by_one(pretrained, line.text, backward=way) for way in (False, True))
            assert line.score.forward == pytest.approx(math.exp(forward / (n + 1)), rel=1e-5)
            assert line.score.backward == pytest.approx(math.exp(backward / (n + 1)), rel=1e-5)
        total = found.total.score
        assert isinstance(total, Perplexity)
        nats = [line.score.forward_nats for line in found.lines if isinstance(line.score, Perplexity)]
        assert total.forward == pytest.approx(math.exp(sum(nats) / (18 + 4)))
        assert (total.sentences, total.words, found.total.empty, found.total.left_out) == (4, 18, 2, 0)


def test_words_outside_the_vocabulary_are_told(tiny_elmo: Callable[..., Pretrained]) -> None:
    found = score_all(tiny_elmo(), TEXTS)
    assert [line.score.unknown for line in found.lines] == [0, 1, 1, 1]  # sunset, zzz, suns
    assert found.total.score.unknown_note == "3 of 18 words are outside the vocabulary and count as one class."


def test_a_model_that_reads_forward_only_has_no_backward_perplexity(tiny_elmo: Callable[..., Pretrained]) -> None:
    found = score_all(tiny_elmo("forward"), TEXTS[:1]).total
    assert isinstance(found.score, Perplexity)
    assert found.score.backward is None
    assert found.as_table()["total"]["backward_perplexity"] is None
    assert found.score.cells()[1] == "-"


def test_bert_gives_the_pseudo_perplexity_of_each_piece_and_each_word(tiny_bert: Pretrained) -> None:
    found = score_all(tiny_bert, TEXTS)
    nats = 0.0
    for line, (pieces, words) in zip(found.lines, [(5, 5), (2, 1), (9, 9), (4, 3)], strict=True):
        assert isinstance(line.score, PseudoPerplexity)
        own = pieces_one_by_one(tiny_bert, line.text)
        assert (line.score.pieces, line.score.words) == (pieces, words)
        assert line.score.nats == pytest.approx(own, rel=1e-5)
        assert line.score.per_piece == pytest.approx(math.exp(own / pieces), rel=1e-5)
        assert line.score.per_word == pytest.approx(math.exp(own / words), rel=1e-5)
        nats += own
    assert isinstance(found.total.score, PseudoPerplexity)
    assert found.total.score.per_piece == pytest.approx(math.exp(nats / 20), rel=1e-5)
    names = {*found.total.as_table()["total"], *found.lines[0].as_table()}
    assert not any("perplexity" in name and not name.startswith("pseudo_perplexity_per_") for name in names)


def test_what_is_too_long_is_left_out_with_its_line(tiny_bert: Pretrained, tmp_path: Path) -> None:
    path = tmp_path / "text.txt.gz"
    with gzip.open(path, "wt") as file:
        file.write("\n".join(["the sun", *["the " * 15] * 7, "set"]))
    events = list(score(tiny_bert, Lines(path)))
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert notices[0] == f"{path}:2: left out: has 17 pieces with its marks, and this BERT reads 16. Split it."
    assert len(notices) == 5
    assert notices[-1].endswith("Further ones are only counted.")
    assert [event.line for event in events if isinstance(event, ScoredLine)] == [1, 9]
    assert events[-1] == Progress("scoring", 9, 9, "lines")
    assert score_all(tiny_bert, ["the sun", "the " * 15]).total.left_out == 1
    with pytest.raises(DataError, match="All 1 sentences are longer"):
        score_all(tiny_bert, ["the " * 15])


class Told(list[str]):
    """Sentences that say how many of them were read."""

    read = 0

    def __iter__(self) -> Iterator[str]:
        for text in super().__iter__():
            self.read += 1
            yield text


def test_lines_are_scored_while_later_ones_are_not_read(tiny_elmo: Callable[..., Pretrained]) -> None:
    texts = Told(["the sun is set ."] * 1_000)
    first = next(event for event in score(tiny_elmo(), texts) if isinstance(event, ScoredLine))
    assert first.line == 1
    assert texts.read <= 7


def test_who_cannot_score_says_who_can(pretrained_runs: dict[str, Path], tiny_bert: Pretrained) -> None:
    with pytest.raises(ConfigError, match=r"only a language model.* elmo-mini \(perplexity\) and bert-mini \(pseudo-"):
        score_all(headstart.load(pretrained_runs["static"]), TEXTS)
    with pytest.raises(ConfigError, match=r"came without the masked-LM head.* bert-mini"):
        score_all(replace(tiny_bert, heads={}), TEXTS)
    with pytest.raises(DataError, match="no sentence with a word"):
        score_all(tiny_bert, ["", " "])
    with pytest.raises(DataError, match="one string was given"):
        score_all(tiny_bert, "the sun")


def test_a_hopeless_sentence_has_a_number_too() -> None:
    lost = PseudoPerplexity(sentences=1, words=1, pieces=1, unknown=0, nats=1e6)
    assert np.isfinite(lost.per_piece)


def test_shown_in_a_notebook(tiny_bert: Pretrained) -> None:
    found = score_all(tiny_bert, ["the < sun"])
    html = found._repr_html_()
    assert "<td>1</td><td>the &lt; sun</td>" in html
    assert "<th>per piece</th><th>per word</th>" in html
    assert found.as_table()["lines"][0]["line"] == 1
