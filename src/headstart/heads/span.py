"""The heads of extractive question answering: where an answer starts and where it ends, for every word.

A row holds the question, then its context. The score of "no answer" is in column 0: at [CLS] where both are read
together, at the question's first word where they are read apart. The question's other columns are no answers.

Letters: B batch, W words of both texts, Q words of the question, C words of the context, S width of a word's states.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from headstart.heads.pool import MaxPool
from headstart.heads.recurrent import Head, Pooled, RecurrentConfig
from headstart.heads.two_texts import TwoTexts, WordReader, each, joined_again, soft_alignment, split

NO_ANSWER = 0
"""The column of the score of "no answer"."""


class SpanHeadConfig(RecurrentConfig):
    """The network between the vectors of a question's and a context's words and the answer."""

    reads: Literal["together", "apart"] = "apart"
    """together: question and context in one sequence (BERT), each of whose pieces is scored by itself; apart: each
    alone, then the question's and the context's words attend to each other."""

    longest_answer: int = Field(default=30, ge=1)
    """Words, or pieces of texts read together, of the longest answer that is looked for."""

    @property
    def reads_together(self) -> bool:
        return self.reads == "together"

    @property
    def reads_first_position(self) -> bool:
        return self.reads_together

    @property
    def reads_every_piece(self) -> bool:
        return self.reads_together


class SpanHead(WordReader):
    """Words' vectors of a question and its context -> start and end scores (B, W, 2)."""

    def __init__(self, inputs: int, joined: int, config: SpanHeadConfig) -> None:
        super().__init__(inputs, joined, config)
        self.config = config


class PlainSpanHead(SpanHead):
    """A linear layer on each word, as BERT's (Devlin et al. 2019), after a recurrent network if there is one."""

    def __init__(self, inputs: int, joined: int, config: SpanHeadConfig) -> None:
        super().__init__(inputs, joined, config)
        self.output = nn.Linear(self.out_width, 2)

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        joined: Tensor | None = None,
        pooled: Pooled | None = None,
        parts: Tensor | None = None,
    ) -> Tensor:
        """-> start and end scores (B, W, 2), zero at padding."""
        scores: Tensor = self.output(self.dropout(self.words(x, mask, joined)))
        return scores.masked_fill(~mask[..., None], 0.0)

    @property
    def is_plain(self) -> bool:
        return self.recurrent is None

    def unused_parameters(self) -> list[nn.Parameter]:
        """The bias is added to the scores of all words alike, no answer among them, and changes no probability."""
        return [self.output.bias]


class AttentiveSpanHead(SpanHead):
    """BiDAF (Seo et al. 2017) in short: question and context are read alone, attend to each other, and a second
    network reads what each word of the context has found.

    Beside the states, the context's vectors themselves are aligned with the question's (DrQA, Chen et al. 2017): a word
    of the question that is in the context too is seen before any network has learned to carry it there.
    """

    def __init__(self, inputs: int, joined: int, config: SpanHeadConfig) -> None:
        super().__init__(inputs, joined, config)
        P = config.width
        self.project = nn.Linear(inputs, P)
        # Without a recurrent network the projected vectors take the place of the states.
        S = P if self.recurrent is None else self.out_width
        weights = torch.full((P,), P**-0.5) if self.recurrent is None else self.product_weights(joined)
        self.similarity = TrilinearSimilarity(weights)
        self.merge = nn.Linear(4 * S + 2 * P, P)
        self.modelling = WordReader(P, 0, config)
        M = self.modelling.out_width
        self.start = nn.Linear(P + M, 1)
        self.end = nn.Linear(P + 2 * M, 1)
        self.pool = MaxPool(M, 0)
        self.none = nn.Linear(M, 2)

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        joined: Tensor | None = None,
        pooled: Pooled | None = None,
        parts: Tensor | None = None,
    ) -> Tensor:
        """-> start and end scores (B, W, 2), zero at padding."""
        vectors = split(x, mask, parts)
        beside = None if joined is None else split(joined, mask, parts)
        projected = each(vectors, self.projected)
        states = projected if self.recurrent is None else self.states(vectors, beside)
        real = states.second_mask
        merged = self.merged(states, projected)
        read = self.modelling(merged, real)
        scores = self.answer_scores(self.dropout(merged), self.dropout(read), real)
        question = scores.new_zeros(*states.first_mask.shape, 2)
        words = joined_again(question, scores, mask, parts)
        none = self.none(self.dropout(self.pool(read, real)))[:, None]
        return torch.cat([none, words[:, 1:]], dim=1).masked_fill(~mask[..., None], 0.0)

    def projected(self, x: Tensor, mask: Tensor) -> Tensor:
        """ReLU(linear(x)) of one text, (B, W, P), zero at padding."""
        projected: Tensor = self.project(self.dropout(x)).relu()
        return projected.masked_fill(~mask[..., None], 0.0)

    def merged(self, states: TwoTexts, projected: TwoTexts) -> Tensor:
        """G': each word of the context with what attention found for it, (B, C, P); anything at padding."""
        c = states.second
        to_query, to_context = attention_both_ways(self.similarity(states), states)
        aligned = aligned_question(projected)
        found = [c, to_query, c * to_query, c * to_context, aligned, projected.second * aligned]
        merged: Tensor = self.merge(torch.cat(found, dim=2)).relu()
        return merged

    def answer_scores(self, merged: Tensor, read: Tensor, mask: Tensor) -> Tensor:
        """merged: (B, C, P), read: (B, C, M) -> start and end scores of the context's words (B, C, 2)."""
        start = self.start(torch.cat([merged, read], dim=2))
        at_start = soft_alignment(start.mT, mask[:, None]) @ read  # (B, 1, M), the answer's expected first word
        # A product, because what is added to all words alike would not tell one end from another.
        end = self.end(torch.cat([merged, read, read * at_start], dim=2))
        return torch.cat([start, end], dim=2)


class TrilinearSimilarity(nn.Module):
    """w . [c; q; c * q] of every word c of the context and q of the question (Seo et al. 2017)."""

    def __init__(self, product: Tensor) -> None:
        """product: (S,), what the weights of c * q start with."""
        super().__init__()
        self.context = nn.Linear(len(product), 1, bias=False)
        self.question = nn.Linear(len(product), 1, bias=False)
        self.product = nn.Parameter(product)

    def forward(self, states: TwoTexts) -> Tensor:
        """(B, C, Q), summed term by term: an array of every [c; q; c * q] would be 3 S as large."""
        q, c = states.first, states.second
        similarity: Tensor = (c * self.product) @ q.mT + self.context(c) + self.question(q).mT
        return similarity


def attention_both_ways(similarity: Tensor, states: TwoTexts) -> tuple[Tensor, Tensor]:
    """(for each word of the context the question's words that it is like, (B, C, S); the words of the context that are
    most like any word of the question, (B, 1, S)). similarity: (B, C, Q)."""
    asked = states.first_mask[:, None]
    to_query = soft_alignment(similarity, asked) @ states.first
    best = similarity.masked_fill(~asked, torch.finfo(similarity.dtype).min).amax(dim=2)
    # Without a question all words of the context are alike, whatever the least number is.
    best = best.masked_fill(~asked.any(dim=2), 0.0)
    to_context = soft_alignment(best, states.second_mask)[:, None] @ states.second
    return to_query, to_context


def aligned_question(projected: TwoTexts) -> Tensor:
    """For each word of the context, the question's words that are like it, by their projected vectors. (B, C, P)."""
    q, c = projected.first, projected.second
    scores = (c * q.shape[2] ** -0.5) @ q.mT
    return soft_alignment(scores, projected.first_mask[:, None]) @ q


def span_head(inputs: int, joined: int, config: SpanHeadConfig) -> Head:
    head = PlainSpanHead if config.reads_together else AttentiveSpanHead
    return head(inputs, joined, config)


def span_loss(scores: Tensor, mask: Tensor, starts: Tensor, ends: Tensor, first_context: Tensor) -> Tensor:
    """The mean of -log p(start) and -log p(end), summed over rows. ().

    scores: (B, W, 2); mask: (B, W); starts, ends: (B,), columns, 0 for no answer; first_context: (B,), the column of
    the context's first word. The probabilities are of column 0 and the context's columns alone.
    """
    columns = torch.arange(mask.shape[1], device=mask.device)
    possible = (columns == NO_ANSWER) | (mask & (columns >= first_context[:, None]))
    log_p = scores.masked_fill(~possible[..., None], -torch.inf).log_softmax(dim=1)
    gold = torch.stack([starts, ends], dim=1)[:, None]  # (B, 1, 2)
    return -log_p.gather(1, gold).sum() / 2
