"""Reads word vectors of GloVe and word2vec in one pass; memory holds only those that are kept."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from headstart.encoders.static import Static, StaticConfig
from headstart.errors import DataError
from headstart.pretrained import Pretrained
from headstart.progress import Progress
from headstart.text.formats import Source
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import SPECIALS, UNKNOWN, UNKNOWN_ID, Vocabulary
from headstart.weights.vector_blocks import Block, Unpacked, binary_blocks, parse_vectors, text_blocks
from headstart.weights.vector_files import Layout, layout_of

GROWTH = 1.125  # of the table when it is full
OTHER_UNKNOWN = "<unk>"  # as GloVe and others write it


def looks_like_vectors(path: Path) -> bool:
    """Whether a file starts like word vectors. A word and one number per line are more likely counts."""
    try:
        layout = layout_of(path) if path.is_file() else None
    except DataError:
        return False
    return layout is not None and (layout.count is not None or layout.dim > 1)


def read_vectors(path: Path, words: Collection[str] | None = None) -> Generator[Progress, None, Pretrained]:
    """GloVe text, word2vec text or word2vec binary, each also gzipped. words: keep only these.

    The vectors of the special tokens <S>, </S> and <UNK> are those in the file; that of <UNK> may be called <unk>. If
    there are none, <S> and </S> are zero, and <UNK> is the mean of the vectors kept, as an average word would be.
    """
    layout = layout_of(path)
    table = Table(path, layout, None if words is None else frozenset(words))
    blocks = binary_blocks if layout.binary else text_blocks
    seen = 0
    with Unpacked(path) as source:
        source.read(layout.start)
        for block in blocks(source, layout):
            seen += len(block.words)
            table.add(block)
            yield Progress("vectors", source.position(), source.size)
    if layout.count is not None and seen != layout.count:
        raise DataError(
            f"{path}:1: the header says {layout.count:,} words, but the file has {seen:,}. It was cut short or "
            f"changed; download it again, or correct the header."
        )
    return table.pretrained()


def read_word_list(path: Path) -> list[str]:
    """The words of a file with one word per line, without repetitions."""
    with Source(path) as source:
        lines = (line.strip(" \t\r\n") for line in source.lines())
        words = list(dict.fromkeys(line for line in lines if line))
    if not words:
        raise DataError(f"{path}: the list has no words; wanted one word per line.")
    return words


class Table:
    """The vectors kept so far, the special tokens' first. Of repeated words, the first vector is kept.

    wanted: the words to keep; None for all. specials: the special tokens that the file has.
    """

    def __init__(self, path: Path, layout: Layout, wanted: frozenset[str] | None) -> None:
        self.path = path
        self.layout = layout
        self.wanted = wanted
        self.vectors: NDArray[np.float32] = np.zeros((len(SPECIALS), layout.dim), np.float32)
        self.index: dict[str, int] = {}
        self.specials: set[str] = set()
        self.repeated = Tally()
        self.skipped = Tally()
        self.readable = False
        self.lowercase = True

    def add(self, block: Block) -> None:
        words = decode_words(block.words)
        self.readable = self.readable or any(words)
        for raw, word in zip(block.words, words, strict=True):
            if not word:
                self.skipped.add(raw)
        if self.lowercase:
            self.lowercase = all(word == word.lower() or word in SPECIALS for word in words if word)
        chosen = list(self._choose(words))
        if not chosen:
            return
        positions, rows = zip(*chosen, strict=True)
        vectors = parse_vectors(block, positions, self.layout, self.path)
        if max(rows) >= len(self.vectors):
            # In place: a copy would take twice the memory.
            self.vectors.resize((max(max(rows) + 1, int(GROWTH * len(self.vectors))), self.layout.dim), refcheck=False)
        self.vectors[list(rows)] = vectors

    def _choose(self, words: list[str]) -> Iterator[tuple[int, int]]:
        """(position in the block, row in the table) of each word to keep."""
        for position, word in enumerate(words):
            if not word:
                continue
            if word in SPECIALS or word == OTHER_UNKNOWN:
                row = SPECIALS.index(word) if word in SPECIALS else UNKNOWN_ID
                if word not in self.specials and (word != OTHER_UNKNOWN or UNKNOWN not in self.specials):
                    yield position, row
                elif word in SPECIALS:
                    self.repeated.add(word)
                self.specials.add(word)
            if word in SPECIALS or (self.wanted is not None and word not in self.wanted):
                continue
            if word in self.index:
                self.repeated.add(word)
                continue
            self.index[word] = row = len(SPECIALS) + len(self.index)
            yield position, row

    def pretrained(self) -> Pretrained:
        self._check_words()
        kept = len(self.index)
        self.vectors.resize((len(SPECIALS) + kept, self.layout.dim), refcheck=False)
        if not self.specials & {UNKNOWN, OTHER_UNKNOWN}:
            self.vectors[UNKNOWN_ID] = self.vectors[len(SPECIALS) :].mean(axis=0, dtype=np.float64)
        # The files have no counts, but are sorted by frequency: falling counts keep that order.
        counts = np.concatenate([np.zeros(len(SPECIALS), np.int64), np.arange(kept, 0, -1, dtype=np.int64)])
        vocabulary = Vocabulary((*SPECIALS, *self.index), counts, self.lowercase)
        encoder = Static(StaticConfig(dim=self.layout.dim), 0)
        encoder.vectors = nn.Parameter(torch.from_numpy(self.vectors))
        tokenizer = WordTokenizer(vocabulary)
        return Pretrained(encoder, tokenizer, name=self.path.name, notices=tuple(self._notices()))

    def _check_words(self) -> None:
        if self.index:
            return
        if self.skipped.count and not self.readable:
            raise DataError(
                f"{self.path}: none of its words can be used: they are empty or not UTF-8, such as "
                f"{self.skipped.example}. Convert the file to UTF-8 first."
            )
        if self.wanted is None:
            raise DataError(f"{self.path}: has no words.")
        example = f", such as {min(self.wanted)!r}" if self.wanted else ""
        raise DataError(
            f"{self.path}: has none of the {len(self.wanted):,} wanted words{example}. Upper and lower case must match."
        )

    def _notices(self) -> Iterator[str]:
        if self.wanted is not None:
            found = len(self.wanted & (self.index.keys() | self.specials))
            yield f"{self.path.name} has {found:,} of the {len(self.wanted):,} wanted words."
        if self.repeated.count:
            yield (
                f"{self.path.name}: {self.repeated.count:,} entries repeat a word, such as {self.repeated.example}; "
                f"the first vector of each word was kept."
            )
        if self.skipped.count:
            yield (
                f"{self.path.name}: {self.skipped.count:,} words were left out, such as {self.skipped.example}: they "
                f"are empty, not UTF-8, or have a tab or a line break in them."
            )


@dataclass(slots=True)
class Tally:
    """How many there were, and the first of them."""

    count: int = 0
    example: str = ""

    def add(self, word: str | bytes) -> None:
        self.count += 1
        self.example = self.example or repr(word)


def decode_words(words: list[bytes]) -> list[str]:
    """The words as strings; empty for those that a vocabulary cannot hold. All are decoded at once if possible."""
    together = b"\n".join(words)
    if together.count(b"\n") < len(words) and b"\t" not in together and b"\r" not in together:
        try:
            return together.decode("utf-8").split("\n") if words else []
        except UnicodeDecodeError:
            pass  # find out below which one it was
    return [decode_word(word) for word in words]


def decode_word(word: bytes) -> str:
    try:
        text = word.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return "" if any(character in text for character in "\t\r\n") else text
