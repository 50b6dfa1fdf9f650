"""ELMo's batches from shards: sentences <S> w1 .. wn </S>, as input and as targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.batches.order import Permutation, seed_of
from headstart.encoders.elmo import TokenKind
from headstart.pretraining.sequences import Ids, Sentences, Sequences, Windows
from headstart.text.characters import MAX_CHARACTERS, character_table, characters_of
from headstart.text.shards import Shards
from headstart.text.vocabulary import END_ID, START_ID, UNKNOWN_ID, Vocabulary

POOL_BATCHES = 32
SPELLED_WORDS = 128
"""Words of the table that the character network learns to spell in each batch."""
Unit = Literal["sentence", "window"]


@dataclass(frozen=True, slots=True)
class WordsToSpell:
    """words: (n,) numbers; characters: (n, 50); drawn: all words of the batch, of which these may be a share."""

    words: Tensor
    characters: Tensor
    drawn: Tensor

    def to(self, device: torch.device) -> WordsToSpell:
        return WordsToSpell(self.words.to(device), self.characters.to(device), self.drawn.to(device))

    def share(self, rank: int, world: int) -> WordsToSpell:
        """None of them for a rank that is not below `world`."""
        mine = slice(rank, None, world) if rank < world else slice(0)
        return WordsToSpell(self.words[mine], self.characters[mine], self.drawn)


@dataclass(frozen=True, slots=True)
class LanguageModelBatch:
    """Sentences with their boundary tokens, <S> w1 .. wn </S>, padded at the end.

    ids: (B, T) or (B, T, C), as the encoder's token layer reads them, 0 in padding; mask: (B, T), True at real tokens;
    targets: (B, T) word ids of all tokens; spelled: words that the character network learns to spell, where there is a
    table whose rows it can learn from.
    """

    ids: Tensor
    mask: Tensor
    targets: Tensor
    spelled: WordsToSpell | None = None

    def to(self, device: torch.device) -> LanguageModelBatch:
        spelled = None if self.spelled is None else self.spelled.to(device)
        return LanguageModelBatch(self.ids.to(device), self.mask.to(device), self.targets.to(device), spelled)

    def counts(self) -> dict[str, int]:
        """Targets per direction: every token but the first (forward) or but the last (backward) of its sentence."""
        pairs = int((self.mask[:, 1:] & self.mask[:, :-1]).sum())
        counts = {"forward": pairs, "backward": pairs}
        return counts if self.spelled is None else {**counts, "spelling": len(self.spelled.words)}

    def share(self, rank: int, world: int) -> LanguageModelBatch:
        """Every `world`-th sentence: neighbours in a batch are of about the same length."""
        rows = slice(rank, None, world)
        ranks_with_rows = min(world, len(self.ids))
        spelled = self.spelled and self.spelled.share(rank, ranks_with_rows)
        return LanguageModelBatch(self.ids[rows], self.mask[rows], self.targets[rows], spelled)

    def parts(self, n: int) -> list[LanguageModelBatch]:
        """Undivided: the two directions run on two cores already."""
        return [self]


class LanguageModelBatches:
    """Batch i of a corpus, for any i, without reading what comes before it.

    Sequences are drawn in a shuffled order in pools of 32 batches; a pool is sorted by length and cut into batches of
    about `batch_tokens`, so that batches cost about the same and hold little padding. An epoch sees each sequence once.
    """

    def __init__(
        self,
        shards: Shards,
        vocabulary: Vocabulary,
        *,
        tokens: TokenKind = "characters",
        unit: Unit,
        longest: int,
        batch_tokens: int,
        seed: int,
    ) -> None:
        self.shards, self.vocabulary, self.tokens = shards, vocabulary, tokens
        self.sequences: Sequences = Sentences(shards) if unit == "sentence" else Windows(shards, longest)
        self.table = character_table(vocabulary.words)
        roots = np.sqrt(vocabulary.counts)
        self.spelling_shares = np.cumsum(roots) / max(1.0, roots.sum())
        self.seed = seed
        mean_length = 2 + shards.n_units / len(self.sequences)
        self.pool_size = max(POOL_BATCHES, int(POOL_BATCHES * batch_tokens / mean_length))
        self.pools = -(-len(self.sequences) // self.pool_size)
        self._order: tuple[int, Permutation] | None = None
        self._pool: tuple[int, list[NDArray[np.int64]]] | None = None

    def __len__(self) -> int:
        """Batches in an epoch."""
        last = len(self.sequences) - (self.pools - 1) * self.pool_size
        return (self.pools - 1) * POOL_BATCHES + max(1, round(POOL_BATCHES * last / self.pool_size))

    def __getitem__(self, number: int) -> LanguageModelBatch:
        """Batch `number` of the run; numbers go on through the epochs."""
        epoch, place = divmod(number, len(self))
        pool, slot = divmod(place, POOL_BATCHES)
        batch = self.collate(self._cut(epoch, pool)[slot])
        return batch if self.tokens != "both" else replace(batch, spelled=self._words_to_spell(number))

    def _words_to_spell(self, number: int) -> WordsToSpell:
        """Drawn by the root of their count; by the count itself, little but the most frequent would be learned."""
        rng = np.random.default_rng(seed_of(self.seed, "spelling", number))
        words = np.searchsorted(self.spelling_shares, rng.random(SPELLED_WORDS), side="right")
        numbers = torch.from_numpy(words)
        return WordsToSpell(numbers, torch.from_numpy(self.table[words].astype(np.int64)), numbers)

    def _cut(self, epoch: int, pool: int) -> list[NDArray[np.int64]]:
        """The sequence numbers of each batch of a pool, the batches in a shuffled order."""
        key = epoch * self.pools + pool
        if self._pool is None or self._pool[0] != key:
            if self._order is None or self._order[0] != epoch:
                self._order = (epoch, Permutation(len(self.sequences), self.seed, "sequences", epoch))
            first = pool * self.pool_size
            last = min(first + self.pool_size, len(self.sequences))
            drawn = self._order[1].take(np.arange(first, last))
            is_last = pool == self.pools - 1
            n_batches = len(self) - (self.pools - 1) * POOL_BATCHES if is_last else POOL_BATCHES
            batches = cut_by_work(drawn, self.sequences.lengths(drawn) + 2, n_batches)
            order = Permutation(n_batches, self.seed, "batches", key).take(np.arange(n_batches))
            self._pool = (key, [batches[i] for i in order])
        return self._pool[1]

    def collate(self, numbers: NDArray[np.int64]) -> LanguageModelBatch:
        words = [self.sequences[int(i)] for i in numbers]
        T = 2 + max((len(ids) for ids in words), default=0)
        targets = np.zeros((len(words), T), dtype=np.int64)
        mask = np.zeros((len(words), T), dtype=bool)
        for row, ids in enumerate(words):
            n = len(ids)
            known = np.where(ids < len(self.table), ids, UNKNOWN_ID)
            targets[row, : n + 2] = np.concatenate([[START_ID], known, [END_ID]])
            mask[row, : n + 2] = True
        ids = targets if self.tokens == "words" else self._spelled(words, mask, targets)
        return LanguageModelBatch(torch.from_numpy(ids), torch.from_numpy(mask), torch.from_numpy(targets))

    def _spelled(self, words: list[Ids], mask: NDArray[np.bool_], targets: NDArray[np.int64]) -> NDArray[np.int64]:
        """(B, T, C), the characters; those of words in the table are left out, and its number stands before them."""
        columns = MAX_CHARACTERS + (self.tokens == "both")
        found = np.zeros((*targets.shape, columns), dtype=np.int64)
        if self.tokens == "both":
            found[..., 0] = targets
        else:
            found[mask] = self.table[targets[mask]]
        for row, ids in enumerate(words):
            for place in np.flatnonzero(ids >= len(self.table)):
                found[row, 1 + place, -MAX_CHARACTERS:] = characters_of(self.shards.extra(int(ids[place])))
        return found


def cut_by_work(drawn: NDArray[np.int64], lengths: NDArray[np.int64], n_batches: int) -> list[NDArray[np.int64]]:
    """Sort by length and cut into `n_batches` groups of about equal total length."""
    order = np.argsort(lengths, kind="stable")
    drawn, ends = drawn[order], np.cumsum(lengths[order])
    cuts = np.searchsorted(ends, np.arange(1, n_batches) * ends[-1] / n_batches)
    # Every batch gets at least one sequence: with as many batches as sequences the cuts could coincide.
    floor = np.arange(1, n_batches)
    cuts = np.minimum(np.maximum.accumulate(np.maximum(cuts, floor) - floor) + floor, len(drawn) - n_batches + floor)
    return np.split(drawn, cuts)
