"""Word vectors read from GloVe and word2vec files, in one pass and with no more in memory than is kept."""

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
from headstart.text.vocabulary import SPECIALS, UNKNOWN, Vocabulary
from headstart.weights.vector_blocks import Block, Unpacked, binary_blocks, parse_vectors, text_blocks
from headstart.weights.vector_files import Layout, layout_of

GROWTH = 1.125
OTHER_UNKNOWN = "<unk>"


def looks_like_vectors(path: Path) -> bool:
    """Whether the file begins as word vectors do. A word and one number a line are more likely counts."""
    try:
        layout = layout_of(path) if path.is_file() else None
    except DataError:
        return False
    return layout is not None and (layout.count is not None or layout.dim > 1)


def read_vectors(path: Path, words: Collection[str] | None = None) -> Generator[Progress, None, Pretrained]:
    """GloVe text, word2vec text or word2vec binary, packed with gzip or not. words: keep these alone.

    The marks <S>, </S> and <UNK> take their vectors from the file, <UNK> from <unk> if need be. Where it has none, <S>
    and </S> are zero and <UNK> is the mean of the vectors kept: a word never seen should look like the average word.
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
            f"{path}:1: the first line promises {layout.count:,} words, but the file has {seen:,}. It was cut short or "
            f"changed; fetch it again, or correct its first line."
        )
    return table.pretrained()


def read_word_list(path: Path) -> list[str]:
    """One word a line, each once, in the order of the file."""
    with Source(path) as source:
        lines = (line.strip(" \t\r\n") for line in source.lines())
        words = list(dict.fromkeys(line for line in lines if line))
    if not words:
        raise DataError(f"{path}: the list has no words; wanted one word a line.")
    return words


class Table:
    """The vectors kept so far, the marks' first. Of a word that comes twice, the first is kept."""

    def __init__(self, path: Path, layout: Layout, wanted: frozenset[str] | None) -> None:
        self.path = path
        self.layout = layout
        self.wanted = wanted
        self.vectors: NDArray[np.float32] = np.zeros((len(SPECIALS), layout.dim), np.float32)
        self.index: dict[str, int] = {}
        self.marks: set[str] = set()
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
            # In place: two tables at a time would be twice the memory.
            self.vectors.resize((max(max(rows) + 1, int(GROWTH * len(self.vectors))), self.layout.dim), refcheck=False)
        self.vectors[list(rows)] = vectors

    def _choose(self, words: list[str]) -> Iterator[tuple[int, int]]:
        """(which word of the block, the row for it)"""
        for position, word in enumerate(words):
            if not word:
                continue
            if word in SPECIALS or word == OTHER_UNKNOWN:
                row = SPECIALS.index(word) if word in SPECIALS else SPECIALS.index(UNKNOWN)
                if word not in self.marks and (word != OTHER_UNKNOWN or UNKNOWN not in self.marks):
                    yield position, row
                elif word in SPECIALS:
                    self.repeated.add(word)
                self.marks.add(word)
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
        if not self.marks & {UNKNOWN, OTHER_UNKNOWN}:
            self.vectors[SPECIALS.index(UNKNOWN)] = self.vectors[len(SPECIALS) :].mean(axis=0, dtype=np.float64)
        # Files are sorted by falling frequency; the counts say no more than that.
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
                f"{self.path}: no word in it can be used: they are empty or not UTF-8, such as {self.skipped.example}. "
                f"Convert the file to UTF-8 first."
            )
        if self.wanted is None:
            raise DataError(f"{self.path}: there are no words in it.")
        example = f", such as {min(self.wanted)!r}" if self.wanted else ""
        raise DataError(
            f"{self.path}: it has none of the {len(self.wanted):,} wanted words{example}. They are sought letter by "
            f"letter; see whether the file has capital letters."
        )

    def _notices(self) -> Iterator[str]:
        if self.wanted is not None:
            found = len(self.wanted & (self.index.keys() | self.marks))
            yield f"{self.path.name} has {found:,} of the {len(self.wanted):,} wanted words."
        if self.repeated.count:
            yield (
                f"{self.path.name}: {self.repeated.count:,} entries repeat a word, such as {self.repeated.example}; "
                f"the first vector of each word was kept."
            )
        if self.skipped.count:
            yield (
                f"{self.path.name}: {self.skipped.count:,} words were left out, such as {self.skipped.example}: they "
                f"are empty, not UTF-8, or have a tab or a line break inside."
            )


@dataclass(slots=True)
class Tally:
    """How often something was met, and the first of it."""

    count: int = 0
    example: str = ""

    def add(self, word: str | bytes) -> None:
        self.count += 1
        self.example = self.example or repr(word)


def decode_words(words: list[bytes]) -> list[str]:
    """Empty for those that a vocabulary cannot hold."""
    together = b"\n".join(words)
    if together.count(b"\n") < len(words) and b"\t" not in together and b"\r" not in together:
        try:
            return together.decode("utf-8").split("\n") if words else []
        except UnicodeDecodeError:
            pass  # one by one, then
    return [decode_word(word) for word in words]


def decode_word(word: bytes) -> str:
    try:
        text = word.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return "" if any(character in text for character in "\t\r\n") else text
