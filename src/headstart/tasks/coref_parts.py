"""The passages of a document as the loss reads them: which words each keeps, their sentences and their mentions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headstart.tasks.base import Passage, Target
from headstart.tasks.coref_documents import Chain, CorefDocument
from headstart.tasks.windows import most_central, words_in

# The first column of a target's rows says what they are; a row is (PLACE, start, first, end), (GENRE, number, 0, 0),
# (SENTENCE, first, end, 0) or (MENTION, first, end, chain), all words counted over the whole document.
PLACE, GENRE, SENTENCE, MENTION = range(4)


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """What a passage adds to a document: of its words, from `start`, those from `first` to `end`; neighbouring passages
    overlap, and each word is read in one of them. Of these words: the genre, the sentences (first, end) they are in,
    and the mentions (first, end, chain) that begin there, chains from 1."""

    start: int
    first: int
    end: int
    genre: int
    sentences: NDArray[np.int64]
    mentions: NDArray[np.int64]

    @property
    def words(self) -> int:
        return self.end - self.first

    def as_target(self) -> Target:
        rows = [np.array([[PLACE, self.start, self.first, self.end], [GENRE, self.genre, 0, 0]])]
        rows.append(np.insert(np.pad(self.sentences, ((0, 0), (0, 1))), 0, SENTENCE, axis=1))
        rows.append(np.insert(self.mentions, 0, MENTION, axis=1))
        return np.concatenate(rows).astype(np.int64)

    @staticmethod
    def of_target(target: Target) -> DocumentPart:
        _, start, first, end = target[0].tolist()
        sentences, mentions = (target[target[:, 0] == kind, 1:] for kind in (SENTENCE, MENTION))
        return DocumentPart(start, first, end, int(target[1, 1]), sentences[:, :2], mentions)


@dataclass(frozen=True, slots=True)
class JoinedParts:
    """Consecutive parts of a document as one. kept: of each part's passage, the words (first, end) that are read;
    sentences: (W,), the number of each word's sentence; mentions: as (first, end) -> chain, counted from the first."""

    kept: list[tuple[int, int]]
    genre: int
    sentences: NDArray[np.int64]
    mentions: dict[tuple[int, int], int]

    def chains_at(self, spans: NDArray[np.int64]) -> NDArray[np.int64]:
        """The gold chain of each span, (M, 2) -> (M,), 0 for no mention."""
        return np.array([self.mentions.get((first, end), 0) for first, end in spans.tolist()], dtype=np.int64)


def parts_of(
    document: CorefDocument, chains: Sequence[Chain], passages: Sequence[Passage], genre: int
) -> list[DocumentPart]:
    windows = [(passage.start, passage.start + words_in(passage)) for passage in passages]
    chosen = most_central(windows, len(document.words))
    sentences = np.array(document.sentences, dtype=np.int64).reshape(-1, 2)
    listed = sorted((*mention, number) for number, chain in enumerate(chains, 1) for mention in chain)
    mentions = np.array(listed, dtype=np.int64).reshape(-1, 3)
    found = []
    for number, (start, _) in enumerate(windows):
        # Windows are sorted, and so are the words that each keeps; one whose words are all kept elsewhere keeps none.
        first, end = np.searchsorted(chosen, [number, number + 1]).tolist()
        inside = (sentences[:, 0] < end) & (sentences[:, 1] > first)
        begun = (mentions[:, 0] >= first) & (mentions[:, 0] < end)
        found.append(DocumentPart(start, first, end, genre, sentences[inside], mentions[begun]))
    return found


def documents_in(parts: Sequence[DocumentPart]) -> list[tuple[range, JoinedParts]]:
    """The documents that some parts belong to, each with the numbers of its parts. A document's parts are consecutive,
    and one that has its first word begins a document."""
    begins = [number for number, part in enumerate(parts) if not number or not part.first]
    ends = [*begins[1:], len(parts)]
    return [(range(a, b), joined_parts(parts[a:b])) for a, b in zip(begins, ends, strict=True)]


def joined_parts(parts: Sequence[DocumentPart]) -> JoinedParts:
    first, end = parts[0].first, parts[-1].end
    kept = [(part.first - part.start, part.end - part.start) for part in parts]
    bounds = np.unique(np.concatenate([part.sentences for part in parts]), axis=0)
    sentences = np.searchsorted(bounds[:, 0], np.arange(first, end), side="right")
    listed = np.concatenate([part.mentions for part in parts]).tolist()
    # A mention that goes on behind the last part cannot be found there.
    mentions = {(s - first, e - first): chain for s, e, chain in listed if e <= end}
    return JoinedParts(kept, parts[0].genre, sentences.astype(np.int64), mentions)
