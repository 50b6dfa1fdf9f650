"""The occurrences nearest to a vector: every vector compared or, in a large index, those that faiss finds.

Cosines are of vectors less their mean: contextual vectors share one large component, which would give every pair a
cosine near one.

Letters: n occurrences, D width.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.atomic import write_atomically
from headstart.pretrained import Vectors
from headstart.progress import Progress

SEARCH = "search-"
LARGEST_EXACT = 500_000
"""Occurrences up to which every vector is compared: about 0.1 s for width 384, once the file is in memory."""
BLOCK = 16_384
"""Rows that are converted and multiplied at a time: with fewer, the cores wait for each other."""
ADDED = 65_536
FIRST = 64
"""Occurrences asked for at first; most searches show less."""
CANDIDATES = 4
"""Of each occurrence wanted, how many faiss gives: its order is that of rounded vectors, and is made exact here."""
LISTS = 2.0
"""Lists of an inverted index, in square roots of n, as its makers advise (1 to 4)."""
PROBED = 8
"""One of so many lists is searched: a recall above 0.9 on data without clear clusters."""
POINTS_PER_LIST = 64
"""Vectors that the centres of the lists are learned from; faiss warns of fewer than 39."""


@dataclass(frozen=True, slots=True)
class Centre:
    """mean: (D,) of all vectors; lengths: (n,), each vector's distance from it."""

    mean: Vectors
    lengths: Vectors

    @property
    def occurrences(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True)
class OccurrenceIndex:
    """The occurrences of a text, mapped from disk. vectors: (n, D); places: (n, 3), sentence, start and end."""

    folder: Path
    layer: int
    vectors: NDArray[np.float16] = field(repr=False)
    places: NDArray[np.uint32] = field(repr=False)
    text: NDArray[np.uint8] = field(repr=False)
    ends: NDArray[np.uint64] = field(repr=False)
    centre: Centre = field(repr=False)

    def __len__(self) -> int:
        return len(self.vectors)

    def sentence(self, number: int) -> str:
        start = int(self.ends[number - 1]) if number else 0
        return self.text[start : int(self.ends[number])].tobytes().decode()

    def place(self, occurrence: int) -> tuple[str, int, int]:
        """Its sentence, and where the word begins and ends in it."""
        number, start, end = self.places[occurrence].tolist()
        return self.sentence(number), start, end

    def ranked(self, vector: Vectors) -> Iterator[tuple[int, float]]:
        """Occurrences and their cosines to a vector of the same layer, (D,), nearest first."""
        query: Vectors = vector - self.centre.mean
        query /= max(float(np.linalg.norm(query)), float(np.finfo(np.float32).tiny))
        seen: set[int] = set()
        wanted = FIRST
        while len(seen) < len(self):
            numbers, cosines = self.nearest(query, min(wanted, len(self)))
            fresh = [pair for pair in zip(numbers.tolist(), cosines.tolist(), strict=True) if pair[0] not in seen]
            if not fresh:
                return
            yield from fresh
            seen.update(numbers.tolist())
            wanted *= CANDIDATES

    def nearest(self, query: Vectors, most: int, *, exact: bool = False) -> tuple[NDArray[np.int64], Vectors]:
        """query: (D,), centred and of length one. exact: compare every vector, also where faiss is at hand."""
        if exact or self.search is None:
            cosines = self.cosines(query)
            numbers = np.argpartition(-cosines, most - 1)[:most].astype(np.int64)
            return ordered(numbers, cosines[numbers])
        numbers = self.search.search(query[None], min(CANDIDATES * most, len(self)))[1][0]
        numbers = np.sort(numbers[numbers >= 0])  # ascending, so that the disk is read in one direction
        dots = products(self.vectors[numbers], query) - np.dot(self.centre.mean, query)
        numbers, cosines = ordered(numbers, dots / self.centre.lengths[numbers])
        return numbers[:most], cosines[:most]

    def cosines(self, query: Vectors) -> Vectors:
        """Of every occurrence, (n,)."""
        dots = np.empty(len(self), np.float32)
        for start in range(0, len(self), BLOCK):
            dots[start : start + BLOCK] = products(self.vectors[start : start + BLOCK], query)
        dots -= np.dot(self.centre.mean, query)
        dots /= self.centre.lengths
        return dots

    @cached_property
    def search(self) -> Any:
        """The faiss index, which stays on disk except for what is read; None: there is none, or no faiss."""
        path = search_file(self.folder, len(self))
        if not path.is_file() or not can_search():
            return None
        import faiss

        found: Any = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
        found.nprobe = max(1, found.nlist // PROBED)
        return found


def ordered(numbers: NDArray[np.int64], cosines: Vectors) -> tuple[NDArray[np.int64], Vectors]:
    """Largest cosine first; of equals, the first in the text."""
    order = np.lexsort((numbers, -cosines))
    return numbers[order], cosines[order]


def products(rows: NDArray[np.float16], query: Vectors) -> Vectors:
    """(n, D) and (D,) -> (n,). torch converts float16 six times as fast as numpy."""
    found: Vectors = (torch.from_numpy(rows).float() @ torch.from_numpy(query)).numpy()
    return found


def as_float32(rows: NDArray[np.float16]) -> Vectors:
    found: Vectors = torch.from_numpy(rows).float().numpy()
    return found


def centre_of(vectors: NDArray[np.float16]) -> Generator[Progress, None, Centre]:
    """The mean of all vectors, and each one's distance from it."""
    n, D = vectors.shape
    total, lengths = np.zeros(D), np.empty(n, np.float32)
    for start in range(0, n, ADDED):
        total += as_float32(vectors[start : start + ADDED]).sum(axis=0, dtype=np.float64)
        yield Progress("centring", min(n, start + ADDED) // 2, n, "words")
    mean = (total / n).astype(np.float32)
    for start in range(0, n, ADDED):
        lengths[start : start + ADDED] = np.linalg.norm(as_float32(vectors[start : start + ADDED]) - mean, axis=1)
        yield Progress("centring", (n + min(n, start + ADDED)) // 2, n, "words")
    # The one word of a text is its mean: a cosine of zero rather than none.
    return Centre(mean, np.maximum(lengths, np.finfo(np.float32).tiny))


def can_search() -> bool:
    return find_spec("faiss") is not None


def search_file(folder: Path, occurrences: int) -> Path:
    return folder / f"{SEARCH}{occurrences}.faiss"


def build_search(folder: Path, vectors: NDArray[np.float16], centre: Centre) -> Generator[Progress, None, None]:
    """An inverted index with a byte for each number: the graph of HNSW takes eight times as long to build."""
    import faiss

    n, D = vectors.shape
    lists = max(1, round(LISTS * n**0.5))
    yield Progress("learning the lists of the search", 0, 1, "indexes")
    index = faiss.index_factory(D, f"IVF{lists},SQ8", faiss.METRIC_INNER_PRODUCT)
    sample = np.unique(np.linspace(0, n - 1, min(n, POINTS_PER_LIST * lists)).astype(np.int64))
    index.train((as_float32(vectors[sample]) - centre.mean) / centre.lengths[sample, None])
    for start in range(0, n, ADDED):
        rows = slice(start, start + ADDED)
        index.add((as_float32(vectors[rows]) - centre.mean) / centre.lengths[rows, None])
        yield Progress("filling the lists of the search", min(n, start + ADDED), n, "words")
    before = list(folder.glob(f"{SEARCH}*"))
    # faiss reports a full disk as a RuntimeError.
    write_atomically(search_file(folder, n), lambda path: faiss.write_index(index, str(path)), RuntimeError)
    for older in before:
        older.unlink()
