"""How probable sentences are to a language model: perplexity (ELMo) or pseudo-perplexity (BERT), line by line.

Letters: B rows, T tokens, M predictions.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.batches.rows import TextRow, padded, sorted_batches, text_row
from headstart.encoders.bert import Bert
from headstart.encoders.elmo import Elmo
from headstart.errors import ConfigError, DataError
from headstart.inspection.abilities import ABLE
from headstart.inspection.language_models import MaskedLM, NextWordLM, batch_for, nats_of
from headstart.inspection.score_results import (
    Perplexity,
    PseudoPerplexity,
    Scored,
    ScoredLine,
    SentenceScore,
    Total,
)
from headstart.pretrained import Pretrained
from headstart.progress import Notice, Progress
from headstart.text.lines import Lines
from headstart.text.vocabulary import END_ID, START_ID, UNKNOWN_ID

BLOCK_TOKENS = 1 << 15
"""Tokens whose sentences are scored together, those of similar length in a batch: a second or two of work."""
BATCH_TOKENS = 4_096
"""Of hidden copies of sentences (BERT)."""
TOLD = 5
"""Lines left out that are named one by one."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A line that is to be scored. gold: the ids that are predicted; tokens: how many are encoded for that."""

    line: int
    text: str
    row: TextRow
    gold: NDArray[np.int64]
    tokens: int


class Scorer(Protocol):
    """A language model that scores sentences."""

    def sentence(self, line: int, text: str) -> Sentence:
        """A text without a word has no row.word_starts."""
        ...

    def scores(self, sentences: Sequence[Sentence]) -> Sequence[SentenceScore]: ...


class WordScorer:
    """ELMo: each word given those before it, and given those after it."""

    def __init__(self, model: NextWordLM) -> None:
        self.model = model

    def sentence(self, line: int, text: str) -> Sentence:
        """gold: the numbers of <S> w1 .. wn </S>."""
        row = text_row(self.model.encoder, self.model.tokenizer, text)
        gold = np.concatenate([[START_ID], self.model.tokenizer.encode(text).ids, [END_ID]]).astype(np.int64)
        return Sentence(line, text, row, gold, len(gold))

    def scores(self, sentences: Sequence[Sentence]) -> list[Perplexity]:
        encoder = self.model.encoder
        found: dict[int, Perplexity] = {}
        for numbers in sorted_batches([one.tokens for one in sentences], encoder.batch_tokens):
            chosen = [sentences[number] for number in numbers]
            batch = batch_for(encoder, [one.row for one in chosen])
            gold = padded([one.gold for one in chosen])[0].to(batch.mask.device)
            with torch.no_grad():
                top = encoder.infer(batch.ids, batch.mask, None, [-1]).padded(batch.mask)[0]
            followed = batch.mask[:, 1:]
            forward = self.nats(top[:, :-1], gold[:, 1:], followed, backward=False)
            has_backward = encoder.config.directions == "both"
            backward = self.nats(top[:, 1:], gold[:, :-1], followed, backward=True) if has_backward else None
            for place, (number, one) in enumerate(zip(numbers, chosen, strict=True)):
                found[number] = Perplexity(
                    sentences=1,
                    words=len(one.gold) - 2,
                    unknown=int((one.gold == UNKNOWN_ID).sum()),
                    forward_nats=float(forward[place]),
                    backward_nats=None if backward is None else float(backward[place]),
                )
        return [found[number] for number in range(len(sentences))]

    def nats(self, states: Tensor, gold: Tensor, followed: Tensor, *, backward: bool) -> Tensor:
        """-log p of the gold words, summed over each row: (B,). states: (B, T, D); gold, followed: (B, T)."""
        h = states[..., self.model.half(backward=backward)][followed]
        rows = followed.nonzero()[:, 0].cpu()
        return torch.zeros(len(gold), dtype=torch.float64).index_add_(
            0, rows, nats_of(self.model.logits, h, gold[followed])
        )


class PieceScorer:
    """BERT: each piece given all others, hidden by a mask in a copy of its sentence (Salazar et al. 2020)."""

    def __init__(self, model: MaskedLM) -> None:
        self.model = model

    def sentence(self, line: int, text: str) -> Sentence:
        row = text_row(self.model.encoder, self.model.tokenizer, text)
        gold = row.ids[1:-1]
        return Sentence(line, text, row, gold, len(gold) * len(row.ids))

    def scores(self, sentences: Sequence[Sentence]) -> list[PseudoPerplexity]:
        hidden = [(number, place) for number, one in enumerate(sentences) for place in range(1, 1 + len(one.gold))]
        lengths = [len(sentences[number].row.ids) for number, _ in hidden]
        nats = np.zeros(len(sentences))
        for chosen in sorted_batches(lengths, BATCH_TOKENS):
            pairs = [hidden[number] for number in chosen]
            h = self.model.states([self.copy_of(sentences[number].row, place) for number, place in pairs])
            gold = torch.tensor([sentences[number].row.ids[place] for number, place in pairs], device=h.device)
            np.add.at(nats, [number for number, _ in pairs], nats_of(self.model.logits, h, gold).numpy())
        return [
            PseudoPerplexity(
                sentences=1,
                words=len(one.row.word_starts),
                pieces=len(one.gold),
                unknown=int((one.gold == self.model.tokenizer.unknown).sum()),
                nats=float(loss),
            )
            for one, loss in zip(sentences, nats, strict=True)
        ]

    def copy_of(self, row: TextRow, place: int) -> TextRow:
        """The row with one piece hidden, which is its only word."""
        ids = row.ids.copy()
        ids[place] = self.model.tokenizer.mask
        return replace(row, ids=ids, word_starts=np.array([place]))


def scorer_of(pretrained: Pretrained) -> Scorer:
    """A ConfigError names models that can, if this one cannot."""
    if isinstance(pretrained.encoder, Elmo):
        return WordScorer(NextWordLM.of(pretrained))
    if isinstance(pretrained.encoder, Bert):
        return PieceScorer(MaskedLM.of(pretrained))
    name, title = pretrained.name or "This encoder", pretrained.encoder.title
    raise ConfigError(
        f"{name}: only a language model scores sentences; this is {title}. {ABLE['next words']} (perplexity) and "
        f"{ABLE['masks']} (pseudo-perplexity), which come with headstart, can."
    )


def score(
    pretrained: Pretrained, texts: Lines | Sequence[str]
) -> Generator[Progress | Notice | ScoredLine, None, Total]:
    """Score every sentence, in order, in memory that does not grow with their number.

    A sentence that is longer than what the encoder reads is left out, with a notice.
    """
    scorer, room = scorer_of(pretrained), pretrained.encoder.longest
    total: SentenceScore | None = None
    left_out = empty = 0
    block: list[Sentence] = []
    held = read = 0
    for line, where, text in located(texts):
        read = line
        sentence = scorer.sentence(line, text)
        if not len(sentence.row.word_starts):
            empty += 1
            continue
        if room is not None and len(sentence.row.ids) > room:
            left_out += 1
            if left_out <= TOLD:
                yield Notice(left_out_note(where, len(sentence.row.ids), pretrained, last=left_out == TOLD))
            continue
        if block and held + sentence.tokens > BLOCK_TOKENS:
            total = yield from scored_block(scorer, block, total)
            yield Progress("scoring", block[-1].line, expected(texts), "lines")
            block, held = [], 0
        block.append(sentence)
        held += sentence.tokens
    if block:
        total = yield from scored_block(scorer, block, total)
    yield Progress("scoring", read, read, "lines")
    if total is None:
        raise nothing_to_score(texts, left_out)
    return Total(total, left_out, empty)


def scored_block(
    scorer: Scorer, block: Sequence[Sentence], total: SentenceScore | None
) -> Generator[ScoredLine, None, SentenceScore | None]:
    """total: of the blocks before. Gives that of all."""
    for sentence, found in zip(block, scorer.scores(block), strict=True):
        total = found if total is None else total + found  # type: ignore[operator]  # one scorer gives one kind
        yield ScoredLine(sentence.line, sentence.text, found)
    return total


def located(texts: Lines | Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """(number, where it stands, text) of each."""
    for number, text in enumerate(texts, start=1):
        yield number, texts.where if isinstance(texts, Lines) else f"sentence {number}", text


def expected(texts: Lines | Sequence[str]) -> int:
    return texts.expected() if isinstance(texts, Lines) else len(texts)


def left_out_note(where: str, pieces: int, pretrained: Pretrained, *, last: bool) -> str:
    more = " Further ones are only counted." if last else ""
    return (
        f"{where}: left out: has {pieces:,} pieces with its marks, and this {pretrained.encoder.title} reads "
        f"{pretrained.encoder.longest:,}. Split it.{more}"
    )


def nothing_to_score(texts: Lines | Sequence[str], left_out: int) -> DataError:
    if left_out:
        return DataError(f"All {left_out:,} sentences are longer than what this encoder reads. Split them.")
    return (
        texts.nothing_there() if isinstance(texts, Lines) else DataError("There is no sentence with a word to score.")
    )


def score_all(pretrained: Pretrained, sentences: Sequence[str]) -> Scored:
    """`score` for a list of sentences, all at once."""
    if isinstance(sentences, str):
        raise DataError("A list of sentences is wanted, one string was given. Put it in a list.")
    lines: list[ScoredLine] = []
    work = score(pretrained, sentences)
    while True:
        try:
            event = next(work)
        except StopIteration as end:
            return Scored(tuple(lines), end.value)
        if isinstance(event, ScoredLine):
            lines.append(event)
