"""The head of coreference (Lee et al. 2017, 2018): spans are scored as mentions, the best kept; each of them is scored
with the spans before it, coarsely with all and finely with the best; "no antecedent" always scores 0.

Letters: W words of a document, S width of a word's states, L widest span, H hidden width, N kept spans, A antecedents.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import ByteSize, Field
from torch import Tensor, nn

from headstart.config import Width
from headstart.heads.coref_memory import Blocks, HeadSizes
from headstart.heads.recurrent import RecurrentConfig
from headstart.heads.two_texts import WordReader

DISTANCES = 10
"""Buckets of the distance between two mentions: 1, 2, 3, 4, then each twice as wide as the one before."""
RARE = -3.0
"""The score of every span as a mention before anything is learned: about one in twenty is. From 0, a hundred steps
teach little else (CoNLL F1 29.7 against 36.3 after them)."""
LOWEST = -30.0
"""Attention of a word is at least this, seen from the document's highest, so that exp of it is never 0: the attention
of a span is divided by the sum of its words'."""


class CorefHeadConfig(RecurrentConfig):
    """The network between the words' vectors and the chains."""

    widest: Width = 12
    """Words of the longest span that may be a mention."""

    spans_per_word: float = Field(default=0.4, gt=0, le=2)
    """Spans that are kept as possible mentions, for each word of the document."""

    antecedents: int = Field(default=50, ge=1)
    """Spans before each kept one that are scored finely."""

    hidden: Width = 150
    """Width of the scorers, and of the vectors of spans that they compare."""

    feature_width: Width = 20
    """Width of the vectors of a span's length, of the distance of two spans and of the genre."""

    singletons: bool | None = None
    """Whether a mention that no other refers to is a chain of its own; unset: if the training documents have such."""

    memory: ByteSize | None = Field(default=None, gt=0)
    """What the head may take for a document, such as "2GB", beside the encoder; unset: blocks of 32 MB."""


@dataclass(frozen=True, slots=True)
class DocumentWords:
    """What the head knows of a document. states: (W, S); sentences: (W,), the number of each word's sentence, rising;
    genre: its number, 0 where it is not known."""

    states: Tensor
    sentences: Tensor
    genre: int


@dataclass(frozen=True, slots=True)
class Links:
    """Kept spans by their place, first word and then last. spans: (N, 2), words from first to end; mentions: (N,), the
    score of each as a mention; antecedents: (N, A), numbers of spans before it; scores: (N, A), -inf for none."""

    spans: Tensor
    mentions: Tensor
    antecedents: Tensor
    scores: Tensor


class CorefHead(WordReader):
    """`forward` gives the states of words, (B, W, S), which the methods below read document by document."""

    def __init__(self, inputs: int, joined: int, genres: int, config: CorefHeadConfig) -> None:
        super().__init__(inputs, joined, config)
        self.config = config
        S, H, E = self.out_width, config.hidden, config.feature_width
        self.sizes = HeadSizes(S, H, config.widest, config.antecedents, config.spans_per_word)
        self.attention = nn.Linear(S, 1)
        self.widths = nn.Embedding(config.widest, E)
        # A linear layer of [start; end; attended; width] is the sum of one of each: no array of all spans' vectors.
        self.start, self.end, self.inside = nn.Linear(S, H), nn.Linear(S, H, bias=False), nn.Linear(S, H, bias=False)
        self.width = nn.Linear(E, H, bias=False)
        self.mention = nn.Linear(H, 1)
        nn.init.constant_(self.mention.bias, RARE)
        self.span = nn.Linear(3 * S + E, H)
        self.coarse = nn.Linear(H, H, bias=False)
        self.distances = nn.Embedding(DISTANCES, E)
        self.genres = nn.Embedding(genres, E)
        self.later, self.earlier = nn.Linear(H, H), nn.Linear(H, H, bias=False)
        self.product, self.features = nn.Linear(H, H, bias=False), nn.Linear(2 * E, H, bias=False)
        self.link = nn.Linear(H, 1)

    def blocks(self, words: int) -> Blocks:
        """What is scored at a time of a document of so many words; the blocks change no score."""
        return self.sizes.blocks(words, self.config.memory)

    def mention_scores(self, words: DocumentWords) -> tuple[Tensor, Tensor]:
        """Of all spans within one sentence: (M, 2), by first word and then width, and their scores (M,)."""
        x = self.dropout(words.states)
        # The same constant for all words leaves each span's softmax as it is.
        attention = self.attention(x)
        weights = (attention - attention.detach().max()).clamp(min=LOWEST).exp()
        at_once = self.blocks(len(x)).words
        found = [
            self._mentions_from(x, weights, words.sentences, first, min(first + at_once, len(x)))
            for first in range(0, len(x), at_once)
        ]
        return torch.cat([spans for spans, _ in found]), torch.cat([scores for _, scores in found])

    def _mentions_from(
        self, x: Tensor, weights: Tensor, sentences: Tensor, first: int, end: int
    ) -> tuple[Tensor, Tensor]:
        """Of the spans that begin with one of these words."""
        behind = min(len(x), end + self.config.widest - 1)
        x, weights, sentences = x[first:behind], weights[first:behind], sentences[first:behind]
        starts, ends, weighted = self.start(x[: end - first]), self.end(x), weights * self.inside(x)
        total, share = weighted[: end - first], weights[: end - first]
        of_widths = self.width(self.widths.weight)
        scores, spans = [], []
        for width in range(1, min(self.config.widest, len(x)) + 1):
            last = min(end - first, len(x) - width + 1)
            if width > 1:
                total, share = total[:last] + weighted[width - 1 :][:last], share[:last] + weights[width - 1 :][:last]
            inside = (sentences[:last] == sentences[width - 1 :][:last]).nonzero()[:, 0]
            if not len(inside):
                break  # no sentence is as long, so that none is longer
            hidden = starts[inside] + ends[inside + width - 1] + total[inside] / share[inside] + of_widths[width - 1]
            scores.append(self.mention(self.dropout(hidden.relu()))[:, 0])
            spans.append(torch.stack([inside + first, inside + first + width], dim=1))
        found = torch.cat(spans)
        order = (found[:, 0] * (self.config.widest + 1) + found[:, 1] - found[:, 0]).argsort()
        return found[order], torch.cat(scores)[order]

    def span_vectors(self, words: DocumentWords, spans: Tensor) -> Tensor:
        """[start; end; attended; width], projected. spans: (N, 2) -> (N, H)."""
        x = self.dropout(words.states)
        attention = self.attention(x)[:, 0]
        parts = torch.split(spans, self.blocks(len(x)).vectors)
        return torch.cat([self._vectors_of(x, attention, part) for part in parts])

    def _vectors_of(self, x: Tensor, attention: Tensor, spans: Tensor) -> Tensor:
        places = spans[:, :1] + torch.arange(self.config.widest, device=spans.device)  # (N, L)
        inside = places < spans[:, 1:]
        places = places.clamp(max=len(x) - 1)
        weights = attention[places].masked_fill(~inside, -torch.inf).softmax(dim=1)
        attended = torch.einsum("nl,nls->ns", weights, x[places])
        width = self.widths(spans[:, 1] - spans[:, 0] - 1)
        vectors = self.span(torch.cat([x[spans[:, 0]], x[spans[:, 1] - 1], attended, width], dim=1)).relu()
        dropped: Tensor = self.dropout(vectors)
        return dropped

    def links(self, words: DocumentWords, spans: Tensor, mentions: Tensor) -> Links:
        """The best antecedents of kept spans. spans: (N, 2), in order; mentions: (N,), their scores."""
        blocks = self.blocks(len(words.states))
        vectors = self.span_vectors(words, spans)
        best, antecedents = self.coarse_scores(vectors, mentions, blocks.coarse)
        return Links(spans, mentions, antecedents, best + self.fine(vectors, antecedents, words.genre, blocks.fine))

    def coarse_scores(self, vectors: Tensor, mentions: Tensor, at_once: int) -> tuple[Tensor, Tensor]:
        """A bilinear form of both vectors and both mention scores: the best A of each span, -inf for one that is not
        before it, and their numbers, (N, A) each."""
        N = len(vectors)
        A = min(self.config.antecedents, N)
        numbers = torch.arange(N, device=vectors.device)
        projected = self.coarse(vectors)
        found = []
        for first in range(0, N, at_once):
            part = slice(first, first + at_once)
            # Only spans before the block's last can be antecedents; there are at least A columns for topk.
            before = max(A, min(first + at_once, N))
            scores = projected[part] @ vectors[:before].T + mentions[part, None] + mentions[:before]
            found.append(scores.masked_fill(numbers[part, None] <= numbers[:before], -torch.inf).topk(A, dim=1))
        return torch.cat([values for values, _ in found]), torch.cat([places for _, places in found])

    def fine(self, vectors: Tensor, antecedents: Tensor, genre: int, at_once: int) -> Tensor:
        """A network of both vectors, their product, distance and genre. antecedents: (N, A) -> (N, A)."""
        N = len(vectors)
        later, earlier = self.later(vectors), self.earlier(vectors)
        genres = self.genres.weight[genre].expand(DISTANCES, -1)
        features = self.features(torch.cat([self.distances.weight, genres], dim=1))  # (DISTANCES, H)
        numbers = torch.arange(N, device=vectors.device)[:, None]
        distances = bucket(numbers - antecedents)
        found = []
        for first in range(0, N, at_once):
            part = slice(first, first + at_once)
            # F.embedding takes rows as indexing does; its gradient is faster to add up.
            pairs = self.product(vectors[part, None] * F.embedding(antecedents[part], vectors))
            hidden = later[part, None] + F.embedding(antecedents[part], earlier) + pairs
            hidden = hidden + F.embedding(distances[part], features)
            found.append(self.link(self.dropout(hidden.relu()))[..., 0])
        return torch.cat(found)


def bucket(distances: Tensor) -> Tensor:
    """1, 2, 3, 4, 5 to 7, 8 to 15, 16 to 31, 32 to 63, 64 and more, as numbers from 1; 0 for what is not before."""
    logarithm = distances.clamp(min=1).float().log2().floor().long() + 3
    return torch.where(distances <= 4, distances, logarithm).clamp(0, DISTANCES - 1)


def kept_spans(spans: NDArray[np.int64], scores: NDArray[np.float32], most: int) -> NDArray[np.int64]:
    """The numbers of the best spans of which no two cross, at most so many, in the order of `spans`.

    Two spans cross if they share words and neither holds the other.
    """
    kept: list[int] = []
    furthest: dict[int, int] = {}  # first word -> the last word of its longest span
    nearest: dict[int, int] = {}  # last word -> the first word of its longest span
    for number in np.argsort(-scores, kind="stable").tolist():
        if len(kept) == most:
            break
        first, last = int(spans[number, 0]), int(spans[number, 1]) - 1
        inner = range(first + 1, last + 1)
        if any(furthest.get(word, -1) > last for word in inner):
            continue
        if any(nearest.get(word, first) < first for word in range(first, last)):
            continue
        kept.append(number)
        furthest[first] = max(furthest.get(first, -1), last)
        nearest[last] = min(nearest.get(last, first), first)
    return np.array(sorted(kept), dtype=np.int64)


def coref_loss(links: Links, chains: Tensor) -> Tensor:
    """-log of the probability of the gold antecedents, summed over spans. chains: (N,), 0 for no mention. ().

    A span without a gold antecedent among those scored should have none.
    """
    nothing = links.scores.new_zeros(len(links.scores), 1)
    scores = torch.cat([nothing, links.scores], dim=1)
    numbers = torch.arange(len(chains), device=chains.device)[:, None]
    same = (chains[:, None] == chains[links.antecedents]) & (chains[:, None] > 0) & (links.antecedents < numbers)
    gold = torch.cat([~same.any(dim=1, keepdim=True), same], dim=1)
    right = scores.masked_fill(~gold, -torch.inf).logsumexp(dim=1)
    return (scores.logsumexp(dim=1) - right).sum()


def mention_loss(scores: Tensor, gold: Tensor) -> Tensor:
    """Binary cross-entropy of all spans, summed. scores: (M,); gold: (M,), True at mentions. ()."""
    return F.binary_cross_entropy_with_logits(scores, gold.to(scores), reduction="sum")
