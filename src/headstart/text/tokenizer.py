"""The Tokenizer protocol, the table of tokenizers, and the word tokenizer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from headstart.errors import CheckpointError
from headstart.text import words
from headstart.text.encoding import Encoding, SentenceIds, places_of
from headstart.text.runs import RunCache, flatten, to_bytes
from headstart.text.vocabulary import SPECIALS, Vocabulary
from headstart.text.wordpiece import TOKENIZER, VOCAB, WordPieceTokenizer
from headstart.text.wordpiece_loading import load_wordpiece

__all__ = ["TOKENIZERS", "Encoding", "SentenceIds", "Tokenizer", "WordTokenizer", "load_tokenizer"]

WORDS = "words.tsv"


class Tokenizer(Protocol):
    """Text -> units with ids. Tokenizers with equal fingerprints give equal ids for every text."""

    @property
    def kind(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    def __len__(self) -> int:
        """The number of ids."""
        ...

    def __hash__(self) -> int:
        """Of the object itself, so that what is found with it can be kept."""
        ...

    def encode(self, text: str) -> Encoding:
        """The units of one text, with their spans."""
        ...

    def encode_words(self, words: Sequence[str]) -> Encoding:
        """The units of a text that is already split into words. Every word has at least one unit."""
        ...

    def encode_sentences(self, sentences: list[str]) -> SentenceIds:
        """Only the ids, of many sentences: the fast path."""
        ...

    def save(self, directory: Path) -> None: ...


class WordTokenizer:
    """Whole words. An out-of-vocabulary word is <UNK> in `encode`, and kept as an extra in `encode_sentences`.

    A word of the text that is spelled like a special token (<S>, </S>, <UNK>) is out of vocabulary too.
    """

    kind = "words"

    def __init__(self, vocabulary: Vocabulary, lowercase: bool | None = None) -> None:
        """lowercase: None takes the vocabulary's."""
        if lowercase is not None and lowercase != vocabulary.lowercase:
            vocabulary = replace(vocabulary, lowercase=lowercase)
        self.vocabulary = vocabulary
        self.lowercase = vocabulary.lowercase
        described = f"words {words.RULE} {vocabulary.fingerprint()}"
        self.fingerprint = hashlib.sha256(described.encode()).hexdigest()
        self._cache = RunCache()

    def __len__(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> Encoding:
        return self._encoding(text, words.word_spans(text))

    def encode_words(self, words: Sequence[str]) -> Encoding:
        return self._encoding(" ".join(words), places_of(words))

    def _encoding(self, text: str, spans: list[tuple[int, int]]) -> Encoding:
        units = [text[first:last] for first, last in spans]
        ids = [self._id(word.lower() if self.lowercase else word) for word in units]
        return Encoding(
            text,
            units,
            np.array([self.vocabulary.unknown if id is None else id for id in ids], dtype=np.int32),
            np.array(spans, dtype=np.int32).reshape(-1, 2),
            np.arange(len(units), dtype=np.int32),
        )

    def encode_sentences(self, sentences: list[str]) -> SentenceIds:
        self._cache.make_room()
        known = self._cache.get
        extras: dict[str, int] = {}
        pieces: list[bytes] = []
        counts: list[int] = []
        for sentence in sentences:
            runs = sentence.split()
            counts.append(len(runs))
            pieces += [known(run) or self._encode_run(run, extras) for run in runs]
        ids, lengths = flatten(pieces, counts)
        return SentenceIds(ids, lengths, list(extras))

    def save(self, directory: Path) -> None:
        self.vocabulary.save(directory / WORDS)

    def _encode_run(self, run: str, extras: dict[str, int]) -> bytes:
        """The ids of a run. Cached only if every word is known: the number of an extra is valid for one call."""
        found = [word.lower() if self.lowercase else word for word in words.split_words(run)]
        ids = [self._id(word) for word in found]
        numbered = [
            len(self) + extras.setdefault(word, len(extras)) if id is None else id
            for word, id in zip(found, ids, strict=True)
        ]
        encoded = to_bytes(numbered)
        if None not in ids:
            self._cache.keep(run, encoded)
        return encoded

    def _id(self, word: str) -> int | None:
        id = self.vocabulary.index.get(word)
        return None if id is None or id < len(SPECIALS) else id


TOKENIZERS: dict[str, type[WordTokenizer] | type[WordPieceTokenizer]] = {
    "words": WordTokenizer,
    "wordpiece": WordPieceTokenizer,
}


def load_tokenizer(directory: Path) -> Tokenizer:
    """The tokenizer that was saved in a folder."""
    if (directory / WORDS).is_file():
        return WordTokenizer(Vocabulary.load(directory / WORDS))
    if (directory / TOKENIZER).is_file() or (directory / VOCAB).is_file():
        return load_wordpiece(directory)
    raise CheckpointError(f"{directory}: no tokenizer is there; looked for {WORDS}, {TOKENIZER} and {VOCAB}.")
