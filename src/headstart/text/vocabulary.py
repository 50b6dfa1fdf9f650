"""Words and their counts, numbered by descending count."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.atomic import write_text
from headstart.errors import CheckpointError, DataError
from headstart.text.building import CACHE_ADVICE

SENTENCE_START, SENTENCE_END, UNKNOWN = SPECIALS = ("<S>", "</S>", "<UNK>")
START_ID, END_ID, UNKNOWN_ID = range(len(SPECIALS))
HEADER = "# headstart words lowercase="
MOST_DIGITS = 18  # more do not fit into int64
COUNTS_HEADER = "# headstart counts"


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """words: specials first, then by descending count, ties alphabetically. counts: (V,), 0 for the specials."""

    words: tuple[str, ...]
    counts: NDArray[np.int64]
    lowercase: bool = False
    index: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {word: id for id, word in enumerate(self.words)})

    def __len__(self) -> int:
        return len(self.words)

    @property
    def unknown(self) -> int:
        return self.index[UNKNOWN]

    def id(self, word: str) -> int:
        """The word's id, or that of <UNK>."""
        return self.index.get(word, self.unknown)

    def fingerprint(self) -> str:
        return hashlib.sha256("\n".join([str(self.lowercase), *self.words]).encode("utf-8", "replace")).hexdigest()

    def save(self, path: Path) -> None:
        """A header line with `lowercase`, then one `word TAB count` a line."""
        lines = (f"{word}\t{count}" for word, count in zip(self.words, self.counts.tolist(), strict=True))
        text = "\n".join([f"{HEADER}{str(self.lowercase).lower()}", *lines, ""])
        write_text(path, text)

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        try:
            lines = path.read_bytes().decode("utf-8").split("\n")
        except OSError as error:
            raise CheckpointError(f"{path}: the vocabulary cannot be read ({error.strerror}).") from error
        except UnicodeDecodeError as error:
            raise CheckpointError(
                f"{path}: the vocabulary is not UTF-8 ({error.reason} at byte {error.start})."
            ) from error
        flag = lines[0].removeprefix(HEADER)
        if not lines[0].startswith(HEADER) or flag not in ("true", "false"):
            raise CheckpointError(f"{path}:1: expected '{HEADER}true' or 'false', got {lines[0][:60]!r}.")
        if lines[-1]:
            raise CheckpointError(f"{path}:{len(lines)}: the file is cut short: its last line has no end.")
        words, counts = parse_counts(lines[1:-1], path, first_line=2)
        missing = [special for special in SPECIALS if special not in words[: len(SPECIALS)]]
        if missing:
            raise CheckpointError(
                f"{path}:2: the first words must be {', '.join(SPECIALS)}; {missing[0]} is not there."
            )
        vocabulary = cls(tuple(words), np.array(counts, dtype=np.int64), flag == "true")
        if len(vocabulary.index) < len(words):
            repeated = Counter(words).most_common(1)[0][0]
            raise CheckpointError(f"{path}: the word {repeated!r} stands there more than once.")
        return vocabulary


def parse_counts(lines: list[str], path: Path, first_line: int) -> tuple[list[str], list[int]]:
    words: list[str] = []
    counts: list[int] = []
    for number, line in enumerate(lines, start=first_line):
        word, tab, count = line.rpartition("\t")
        if not word or not tab or not count.isascii() or not count.isdigit() or len(count) > MOST_DIGITS:
            raise CheckpointError(f"{path}:{number}: expected 'word TAB count', got {line[:60]!r}.")
        words.append(word)
        counts.append(int(count))
    return words, counts


def sum_of(header: str, lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join([header, *lines]).encode("utf-8", "replace")).hexdigest()


class WordCounter:
    """Counts words in bounded memory: beyond `most` distinct words, those with the lowest counts are dropped.

    A dropped word that occurs again is counted from 0, so the counts of rare words can be too low.
    """

    def __init__(self, most: int = 2_000_000, lowercase: bool = False) -> None:
        self.most = most
        self.lowercase = lowercase
        self.counts: Counter[str] = Counter()
        self.floor = 0
        self.total = 0

    def add(self, counts: Mapping[str, int]) -> None:
        self.counts.update(counts)
        self.total += sum(counts.values())
        while len(self.counts) > self.most:
            self.floor += 1
            self.counts = Counter({word: count for word, count in self.counts.items() if count > self.floor})

    def vocabulary(
        self, size: int | None, min_count: int, specials: Iterable[str] = SPECIALS, most: int | None = None
    ) -> Vocabulary:
        """The most frequent words. size: the number of entries, specials included; None: every word, up to `most`.

        A size that the text cannot fill is an error: the shape of a model should not silently depend on its text.
        """
        specials = tuple(specials)
        frequent = [(word, n) for word, n in self.counts.items() if n >= min_count and word not in specials]
        if size is not None and len(frequent) + len(specials) < size:
            raise DataError(
                f"The text has {len(frequent):,} different words that occur at least {min_count} times, so a "
                f"vocabulary of {size:,} ({len(specials)} marks among them) cannot be filled. Lower tokenizer.size "
                f"to at most {len(frequent) + len(specials):,} or lower tokenizer.min_count."
            )
        if not frequent:
            raise DataError(f"The text has no word that occurs at least {min_count} times. Lower tokenizer.min_count.")
        frequent.sort(key=lambda entry: (-entry[1], entry[0]))
        entries = size if size is not None else most
        kept = frequent if entries is None else frequent[: max(entries - len(specials), 0)]
        words = specials + tuple(word for word, _ in kept)
        counts = np.array([0] * len(specials) + [n for _, n in kept], dtype=np.int64)
        return Vocabulary(words, counts, self.lowercase)

    def save(self, path: Path) -> None:
        """Into the cache: a header with total, floor and checksum, then one `word TAB count` a line."""
        lines = [f"{word}\t{count}" for word, count in self.counts.items()]
        header = f"{COUNTS_HEADER}\t{self.total}\t{self.floor}"
        write_text(path, "\n".join([f"{header}\t{sum_of(header, lines)}", *lines, ""]), CACHE_ADVICE)

    @classmethod
    def load(cls, path: Path, lowercase: bool) -> WordCounter | None:
        """The saved counts, or None if they are missing or damaged: they can be counted again."""
        try:
            first, *lines, last = path.read_bytes().decode("utf-8").split("\n")
            header, total, floor, noted = first.split("\t")
            words, counts = parse_counts(lines, path, first_line=2)
            counter = cls(lowercase=lowercase)
            counter.total, counter.floor = int(total), int(floor)
        except (OSError, ValueError, CheckpointError):
            return None
        if last or header != COUNTS_HEADER or noted != sum_of(f"{header}\t{total}\t{floor}", lines):
            return None
        counter.counts = Counter(dict(zip(words, counts, strict=True)))
        return counter
