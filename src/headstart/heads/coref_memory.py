"""The memory that the head of coreference takes for a document, and the blocks that keep it within a bound.

Spans and pairs of spans are scored in blocks, so that only what is kept of them grows with the document. The numbers of
bytes are those of the arrays that are alive together, rounded up; the encoder's own memory is not in them.

Letters: W words of a document, S width of a word's states, L widest span, H hidden width, N kept spans, A antecedents.
"""

from __future__ import annotations

from dataclasses import dataclass

from headstart.errors import ConfigError

BLOCK = 32_000_000
"""Bytes of a block where the user sets no tighter bound: larger ones were slower, 3.9 s with 100 MB against 2.7 s for a
document of 50,000 words on one core."""
PER_SPAN, PER_PAIR = 400, 200
"""Bytes of a possible span (its words, score and place in the order), and of a pair that is scored. Chosen so that
`held` grows about as peak memory was measured to, 10.8 kB a word from 10,000 words to 50,000."""
FLOAT = 4
FEWEST_SPANS = 10
"""Kept however short the document is: half of the words of a short sentence may be mentions."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """How much is scored at a time. words: whose spans are scored as mentions; vectors: spans whose vectors are made;
    coarse, fine: spans that are scored with all spans before them, and with the best of those."""

    words: int
    vectors: int
    coarse: int
    fine: int


@dataclass(frozen=True, slots=True)
class HeadSizes:
    """The letters above, of a head that keeps `spans_per_word` * W spans."""

    states: int
    hidden: int
    widest: int
    antecedents: int
    spans_per_word: float

    def spans(self, words: int) -> int:
        """Kept of a document at most: N."""
        return max(FEWEST_SPANS, int(self.spans_per_word * words))

    def held(self, words: int) -> int:
        """Bytes that grow with the document, however small the blocks are: states, twice, as passages and as a whole;
        possible spans; the kept spans' vectors in four projections; their scored pairs."""
        N = self.spans(words)
        states, possible = 2 * FLOAT * words * self.states, PER_SPAN * words * self.widest
        return states + possible + 4 * FLOAT * N * self.hidden + PER_PAIR * N * min(self.antecedents, N)

    def rows(self, words: int) -> tuple[int, int, int, int]:
        """Bytes of one word or span of each of the `Blocks`, in their order."""
        N = self.spans(words)
        vectors = 2 * FLOAT * (self.widest + 4) * self.states
        return 16 * FLOAT * self.hidden, vectors, 6 * FLOAT * N, 10 * FLOAT * min(self.antecedents, N) * self.hidden

    def least(self, words: int) -> int:
        """Bytes that the document needs with the smallest blocks; a block of mentions has at least L words."""
        of_word, *others = self.rows(words)
        return self.held(words) + max(of_word * self.widest, *others)

    def needed(self, words: int, memory: int | None) -> int:
        """Bytes that the document takes within a bound, or without any."""
        free = BLOCK if memory is None else min(BLOCK, memory - self.held(words))
        rows = zip((words, *[self.spans(words)] * 3), self.rows(words), strict=True)
        return max(self.least(words), self.held(words) + min(free, max(count * size for count, size in rows)))

    def blocks(self, words: int, memory: int | None) -> Blocks:
        """memory: the bound in bytes, or None."""
        least = self.least(words)
        if memory is not None and memory < least:
            raise ConfigError(
                f"A document of {words:,} words needs at least {least / 1e9:.2f} GB for its chains, but the bound is "
                f"{memory / 1e9:.2f} GB. Raise --memory, or fit a model with a lower network.antecedents, "
                f"network.spans_per_word or network.widest."
            )
        free = BLOCK if memory is None else min(BLOCK, memory - self.held(words))
        of_words, *of_spans = (max(1, free // size) for size in self.rows(words))
        return Blocks(max(self.widest, of_words), *of_spans)


def words_within(sizes: HeadSizes, memory: int) -> int:
    """Words that a training step can read together: all that it computes is kept for the gradient."""
    per_span = 4 * FLOAT * sizes.hidden + 2 * FLOAT * sizes.states
    per_word = sizes.widest * 4 * FLOAT * sizes.hidden + 4 * FLOAT * sizes.states
    per_word += int(sizes.spans_per_word * (sizes.widest * per_span + sizes.antecedents * 6 * FLOAT * sizes.hidden))
    # All pairs of kept spans are scored coarsely: c W^2 + per_word W = memory, with c bytes of the pairs of a word.
    c = 3 * FLOAT * sizes.spans_per_word**2
    return max(sizes.widest, int(2 * memory / (per_word + (per_word**2 + 4 * c * memory) ** 0.5)))
