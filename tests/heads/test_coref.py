"""The head of coreference against plain loops: mentions, antecedents, the spans that are kept, the loss."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from headstart.errors import ConfigError
from headstart.heads import coref_memory
from headstart.heads.coref import (
    CorefHead,
    CorefHeadConfig,
    DocumentWords,
    Links,
    bucket,
    coref_loss,
    kept_spans,
    mention_loss,
)
from headstart.heads.coref_memory import Blocks, HeadSizes, words_within

S, SENTENCES = 6, [4, 1, 7]


def head(**settings: object) -> CorefHead:
    torch.manual_seed(0)
    given = {"cell": "none", "hidden": 5, "feature_width": 3, "widest": 4, "antecedents": 3, **settings}
    made = CorefHead(S, 0, 2, CorefHeadConfig(**given)).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def document(lengths: list[int] = SENTENCES, genre: int = 1) -> DocumentWords:
    states = torch.randn(sum(lengths), S, generator=torch.Generator().manual_seed(1))
    return DocumentWords(states, torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths)), genre)


def plain_spans(words: DocumentWords, widest: int) -> list[tuple[int, int]]:
    W = len(words.states)
    every = ((a, b) for a in range(W) for b in range(a + 1, min(W, a + widest) + 1))
    return [(a, b) for a, b in every if words.sentences[a] == words.sentences[b - 1]]


def parts_of_span(net: CorefHead, words: DocumentWords, span: tuple[int, int]) -> tuple[Tensor, ...]:
    """start, end, attended, width."""
    x, (a, b) = words.states, span
    weights = net.attention(x[a:b])[:, 0].softmax(dim=0)
    return x[a], x[b - 1], weights @ x[a:b], net.widths.weight[b - a - 1]


def plain_mention(net: CorefHead, words: DocumentWords, span: tuple[int, int]) -> Tensor:
    start, end, attended, width = parts_of_span(net, words, span)
    weights = torch.cat([net.start.weight, net.end.weight, net.inside.weight, net.width.weight], dim=1)
    hidden = weights @ torch.cat([start, end, attended, width]) + net.start.bias
    return net.mention(hidden.relu())[0]


def plain_vector(net: CorefHead, words: DocumentWords, span: tuple[int, int]) -> Tensor:
    return net.span(torch.cat(parts_of_span(net, words, span))).relu()


# --- mentions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [SENTENCES, [1], [2], [1, 1, 1], [12]])
def test_mention_scores_against_a_loop_over_spans(lengths: list[int]) -> None:
    net, words = head(), document(lengths)
    with torch.no_grad():
        spans, scores = net.mention_scores(words)
        listed = plain_spans(words, 4)
        assert [tuple(span) for span in spans.tolist()] == listed
        torch.testing.assert_close(scores, torch.stack([plain_mention(net, words, span) for span in listed]))


def test_words_without_attention_are_scored_all_the_same() -> None:
    """exp of their attention is 0 beside that of the document's most attended word."""
    net, words = head(), document()
    with torch.no_grad():
        net.attention.weight.mul_(200)
        spans, scores = net.mention_scores(words)
        assert scores.isfinite().all()
        assert net.span_vectors(words, spans).isfinite().all()


def test_span_vectors_against_a_loop() -> None:
    net, words = head(), document()
    spans = plain_spans(words, 4)
    with torch.no_grad():
        found = net.span_vectors(words, torch.tensor(spans))
        torch.testing.assert_close(found, torch.stack([plain_vector(net, words, span) for span in spans]))


# --- antecedents ------------------------------------------------------------------------------------------------------


def test_antecedents_against_a_loop_over_pairs() -> None:
    net, words = head(), document()
    spans = torch.tensor(plain_spans(words, 4)[::2])
    N, A = len(spans), 3
    with torch.no_grad():
        mentions = torch.randn(N)
        links = net.links(words, spans, mentions)
        v = net.span_vectors(words, spans)
        assert links.scores.shape == (N, A)
        for i in range(N):
            coarse = {j: net.coarse(v[i]) @ v[j] + mentions[i] + mentions[j] for j in range(i)}
            best = sorted(coarse, key=lambda j: float(coarse[j]), reverse=True)[:A]
            assert links.antecedents[i, : len(best)].tolist() == best
            assert links.scores[i, len(best) :].tolist() == [-torch.inf] * (A - len(best))
            for place, j in enumerate(best):
                features = torch.cat([net.distances.weight[bucket(torch.tensor(i - j))], net.genres.weight[1]])
                pair = torch.cat([v[i], v[j], v[i] * v[j], features])
                layers = [net.later, net.earlier, net.product, net.features]
                hidden = torch.cat([layer.weight for layer in layers], dim=1) @ pair + net.later.bias
                torch.testing.assert_close(links.scores[i, place], coarse[j] + net.link(hidden.relu())[0])


@pytest.mark.parametrize("blocks", [Blocks(4, 1, 1, 1), Blocks(5, 2, 4, 3)])
def test_blocks_change_nothing(blocks: Blocks, monkeypatch: pytest.MonkeyPatch) -> None:
    net, words = head(), document()
    with torch.no_grad():
        spans, mentions = net.mention_scores(words)
        links = net.links(words, spans, mentions)
        monkeypatch.setattr(net, "blocks", lambda words: blocks)
        other_spans, other_mentions = net.mention_scores(words)
        others = net.links(words, spans, mentions)
    assert other_spans.tolist() == spans.tolist()
    torch.testing.assert_close(other_mentions, mentions)
    torch.testing.assert_close(others.scores, links.scores)
    real = links.scores.isfinite()
    assert links.antecedents[real].tolist() == others.antecedents[real].tolist()


def test_the_genre_counts() -> None:
    net = head()
    spans = torch.tensor(plain_spans(document(), 4))
    with torch.no_grad():
        one, other = (net.links(document(genre=genre), spans, torch.zeros(len(spans))).scores for genre in (0, 1))
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    ("distance", "number"),
    [(-3, 0), (0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (7, 5), (8, 6), (15, 6), (16, 7), (31, 7), (32, 8),
     (63, 8), (64, 9), (10**6, 9)],
)  # fmt: skip
def test_buckets_of_distances(distance: int, number: int) -> None:
    assert bucket(torch.tensor([distance])).tolist() == [number]


# --- kept spans -------------------------------------------------------------------------------------------------------


def cross(one: tuple[int, int], other: tuple[int, int]) -> bool:
    (a, b), (c, d) = sorted([one, other])
    return a < c < b < d


def greedy(spans: list[tuple[int, int]], scores: np.ndarray, most: int) -> list[int]:
    kept: list[int] = []
    for number in sorted(range(len(spans)), key=lambda n: -scores[n]):
        if len(kept) < most and not any(cross(spans[number], spans[other]) for other in kept):
            kept.append(number)
    return sorted(kept)


@pytest.mark.parametrize("seed", range(20))
def test_kept_spans_against_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    words = int(rng.integers(1, 15))
    spans = [(a, b) for a in range(words) for b in range(a + 1, min(words, a + 5) + 1)]
    scores = rng.standard_normal(len(spans)).astype(np.float32)
    for most in (1, 3, words, 4 * words):
        kept = kept_spans(np.array(spans), scores, most).tolist()
        assert kept == greedy(spans, scores, most)
        assert not any(cross(spans[a], spans[b]) for a, b in itertools.combinations(kept, 2))


# --- loss -------------------------------------------------------------------------------------------------------------


def test_the_loss_by_hand() -> None:
    """Three spans: the second is no mention, the third refers to the first."""
    antecedents = torch.tensor([[0, 1], [0, 1], [1, 0]])
    inf = -torch.inf
    scores = torch.tensor([[inf, inf], [1.0, inf], [0.5, 2.0]])
    links = Links(torch.zeros(3, 2), torch.zeros(3), antecedents, scores)
    e = np.e
    second = np.log(1 + e)  # none is right: -log(1 / (1 + e^1))
    third = -np.log(e**2 / (1 + e**0.5 + e**2))
    assert coref_loss(links, torch.tensor([1, 0, 1])).item() == pytest.approx(second + third, rel=1e-6)
    # The first span alone in its chain: the third has no gold antecedent, and should have none.
    third = np.log(1 + e**0.5 + e**2)
    assert coref_loss(links, torch.tensor([1, 0, 2])).item() == pytest.approx(second + third, rel=1e-6)


def test_the_loss_of_mentions_by_hand() -> None:
    found = mention_loss(torch.tensor([0.0, 2.0]), torch.tensor([True, False]))
    assert found.item() == pytest.approx(np.log(2) + np.log(1 + np.e**2), rel=1e-6)


def test_every_parameter_gets_a_gradient() -> None:
    net, words = head(), document([6, 6, 6])
    spans, mentions = net.mention_scores(words)
    links = net.links(words, spans, mentions)
    chains = torch.arange(len(spans)) % 3
    (coref_loss(links, chains) + mention_loss(mentions, chains > 0)).backward()
    assert [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()] == []
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())


# --- memory -----------------------------------------------------------------------------------------------------------


def sizes() -> HeadSizes:
    return HeadSizes(states=256, hidden=150, widest=12, antecedents=50, spans_per_word=0.4)


@pytest.mark.parametrize("words", [1, 10, 1_000, 50_000])
def test_what_is_needed_is_within_the_bound(words: int) -> None:
    least = sizes().least(words)
    for memory in (least, 2 * least, 10 * least):
        assert least <= sizes().needed(words, memory) <= memory
        blocks = sizes().blocks(words, memory)
        free = memory - sizes().held(words)
        of_word, *of_spans = sizes().rows(words)
        assert blocks.words * of_word <= max(free, 12 * of_word)
        for rows, size in zip((blocks.vectors, blocks.coarse, blocks.fine), of_spans, strict=True):
            assert rows >= 1
            assert rows * size <= free
    with pytest.raises(ConfigError, match=rf"document of {words:,} words needs at least .* Raise --memory, or"):
        sizes().blocks(words, least - 1)


def test_without_a_bound_blocks_stay_small() -> None:
    found = sizes().blocks(50_000, None)
    assert found.coarse * sizes().rows(50_000)[2] <= coref_memory.BLOCK
    assert sizes().needed(50_000, None) < 1_000_000_000


def test_a_training_step_reads_more_words_with_more_memory() -> None:
    found = [words_within(sizes(), memory) for memory in (1, 10**8, 10**9, 10**10)]
    assert found == sorted(set(found))
    assert found[0] == 12


@pytest.fixture(autouse=True)
def one_seed() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
