"""Co-occurrence counts for GloVe, of a text of any size in bounded memory, kept on disk.

Distances are those of the text: a word outside the vocabulary is not counted but keeps its place. (GloVe's own tool
removes such words first, so that words farther apart than the window count as neighbours.)
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import DataError
from headstart.progress import Progress
from headstart.text.building import cache_entry, cache_key, is_whole
from headstart.text.documents import file_digest
from headstart.text.shards import Shards

FORMAT = 1
PAIR = np.dtype([("row", "<i4"), ("column", "<i4"), ("count", "<f4")])
BLOCK_UNITS = 200_000

Keys = NDArray[np.int64]
Counts = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cooccurrences:
    """X of GloVe's paper, memory-mapped: X[row, column] = X[column, row] = count, every pair once, row <= column.

    The pairs lie on disk in shuffled order, so that any slice of them is a random sample, read in one go.
    """

    pairs: NDArray[Any]
    vocabulary_size: int
    window: int

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def rows(self) -> NDArray[np.int32]:
        return self.pairs["row"]

    @property
    def columns(self) -> NDArray[np.int32]:
        return self.pairs["column"]

    @property
    def counts(self) -> NDArray[np.float32]:
        return self.pairs["count"]

    @classmethod
    def open(cls, directory: Path) -> Cooccurrences:
        """DataError unless the folder holds finished counts."""
        try:
            index = json.loads((directory / "index.json").read_text(encoding="utf-8"))
            pairs = np.memmap(directory / "pairs.bin", dtype=PAIR, mode="r")
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(
                f"{directory}: holds no finished co-occurrence counts ({error}). Remove the folder and count again."
            ) from error
        if not isinstance(index, dict) or index.get("format") != FORMAT or index.get("pairs") != len(pairs):
            raise DataError(
                f"{directory}: expected format {FORMAT} with {len(pairs)} co-occurrence counts, index.json says "
                f"{index!r:.80}. Remove the folder and count again."
            )
        return cls(pairs, index["vocabulary_size"], index["window"])


def count_cooccurrences(
    shards: Shards, *, cache: Path, window: int = 10, seed: int = 0
) -> Generator[Progress, None, Cooccurrences]:
    """Count the pairs of a text as `write_cooccurrences` does, or open what was counted of the same text before."""
    key = cache_key(
        text=[file_digest(path) for path in sorted(shards.directory.iterdir())],
        vocabulary_size=shards.vocabulary_size,
        window=window,
        seed=seed,
        format=FORMAT,
    )
    target = cache / "pairs" / key
    if not is_whole(target):
        with cache_entry(target) as folder:
            yield from write_cooccurrences(shards, folder, window=window, seed=seed)
    return Cooccurrences.open(target)


def write_cooccurrences(
    shards: Shards, directory: Path, *, window: int, seed: int, most_pairs: int = 8_000_000
) -> Generator[Progress, None, Cooccurrences]:
    """Count pairs within `window` words and one sentence, each worth 1 / distance, and write them to `directory`.

    An external merge sort: at most about `most_pairs` distinct pairs (some 100 bytes each at the peak) are in memory at
    once; sorted runs beyond that go to disk and are merged. index.json is written last: where it is, the counts are
    complete.
    """
    scratch = directory / "runs"
    try:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        (directory / "index.json").unlink(missing_ok=True)
        runs = Runs(scratch, most_pairs)
        for first in range(0, shards.n_units, BLOCK_UNITS):
            last = min(first + BLOCK_UNITS, shards.n_units)
            runs.add(*count_block(shards.sentences_between(first, last), window, shards.vocabulary_size))
            yield Progress("counting pairs", last, shards.n_units, "tokens")
        runs.spill()
        if not runs.paths:
            raise DataError(
                f"No two words of the vocabulary stand within {window} words of each other in a sentence, so there is "
                "nothing to count. Give more text, or lower the vocabulary's min_count."
            )
        yield from shuffle_runs(runs, directory / "pairs.bin", shards.vocabulary_size, np.random.default_rng(seed))
        write_index(directory, shards.vocabulary_size, window)
    except OSError as error:
        raise DataError(
            f"{directory}: the co-occurrence counts cannot be written ({error.strerror or error}). "
            "Free some space there, or choose another cache folder with HEADSTART_HOME."
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Cooccurrences.open(directory)


def count_block(sentences: Sequence[NDArray[Any]], window: int, vocabulary_size: int) -> tuple[Keys, Counts]:
    """The pairs of some sentences: sorted keys (row * vocabulary size + column, row <= column) and their counts."""
    if not sentences:
        return np.empty(0, np.int64), np.empty(0, np.float64)
    # All sentences in one array. `words_after` is how many words of its own sentence follow each word, so that no pair
    # crosses a sentence's end; 0 for words outside the vocabulary, which start no pair.
    ids = np.concatenate(sentences).astype(np.int64)
    lengths = np.array([len(sentence) for sentence in sentences])
    words_after = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(ids)) - 1
    words_after[ids >= vocabulary_size] = 0

    # The distance is in the key's lowest bits: one plain sort, faster than an argsort, groups equal pairs and carries
    # the distances, hence the weights, along.
    bits = window.bit_length()
    found = []
    for distance in range(1, window + 1):
        here = np.flatnonzero(words_after >= distance)
        here = here[ids[here + distance] < vocabulary_size]
        a, b = ids[here], ids[here + distance]
        found.append(((np.minimum(a, b) * vocabulary_size + np.maximum(a, b)) << bits) | distance)
    tagged = np.sort(np.concatenate(found))
    weight_of = np.zeros(window + 1)
    weight_of[1:] = 1.0 / np.arange(1, window + 1)
    keys, counts = sum_sorted(tagged >> bits, weight_of[tagged & ((1 << bits) - 1)])
    # X is symmetric and stored once: X[a, b] and X[b, a] each get one count. Both are the same cell where a = b, which
    # therefore gets two.
    counts[keys // vocabulary_size == keys % vocabulary_size] *= 2
    return keys, counts


def sum_sorted(keys: Keys, counts: Counts) -> tuple[Keys, Counts]:
    """Equal neighbouring keys become one, their counts added."""
    if not len(keys):
        return keys, counts
    # reduceat sums from each start to the next, so the starts are where the key changes.
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return keys[starts], np.add.reduceat(counts, starts)


def merge(parts: Sequence[tuple[Keys, Counts]]) -> tuple[Keys, Counts]:
    keys = np.concatenate([part[0] for part in parts])
    counts = np.concatenate([part[1] for part in parts])
    order = np.argsort(keys, kind="stable")  # numpy's stable sort recognises sorted runs and only merges them
    return sum_sorted(keys[order], counts[order])


class Runs:
    """Sorted (key, count) runs: a pile in memory, written out whenever it holds `most_pairs` distinct pairs."""

    def __init__(self, scratch: Path, most_pairs: int) -> None:
        self.scratch = scratch
        self.most_pairs = most_pairs
        self.paths: list[tuple[Path, Path]] = []
        self.pile: list[tuple[Keys, Counts]] = []
        self.total = 0  # pairs in all written runs

    def add(self, keys: Keys, counts: Counts) -> None:
        if not len(keys):
            return
        self.pile.append((keys, counts))
        if sum(len(part[0]) for part in self.pile) < self.most_pairs:
            return
        self.pile = [merge(self.pile)]
        if len(self.pile[0][0]) > self.most_pairs // 2:
            self.spill()

    def spill(self) -> None:
        if not self.pile:
            return
        keys, counts = merge(self.pile)
        self.pile = []
        number = len(self.paths)
        paths = self.scratch / f"{number:05d}.keys", self.scratch / f"{number:05d}.counts"
        for path, array in zip(paths, (keys, counts), strict=True):
            with path.open("wb") as file:
                write_array(file, array)
        self.paths.append(paths)
        self.total += len(keys)

    def ranges(self) -> Generator[tuple[Keys, Counts], None, None]:
        """All pairs once, in order of their keys, some `most_pairs` at a time."""
        runs = [(np.memmap(k, np.int64, "r"), np.memmap(c, np.float64, "r")) for k, c in self.paths]
        # Quantiles of a sample of the keys cut the runs into ranges of about equal size. Every range holds all counts
        # of its keys, so ranges can be merged one by one.
        n_ranges = self.n_ranges()
        sample = np.sort(np.concatenate([keys[:: max(1, self.total // (1000 * n_ranges))] for keys, _ in runs]))
        bounds = sample[[len(sample) * part // n_ranges for part in range(1, n_ranges)]]
        cuts = [np.concatenate(([0], np.searchsorted(keys, bounds), [len(keys)])) for keys, _ in runs]
        for part in range(n_ranges):
            yield merge(
                [
                    (np.asarray(keys[cut[part] : cut[part + 1]]), np.asarray(counts[cut[part] : cut[part + 1]]))
                    for (keys, counts), cut in zip(runs, cuts, strict=True)
                ]
            )

    def n_ranges(self) -> int:
        return -(-self.total // self.most_pairs)


def shuffle_runs(
    runs: Runs, path: Path, vocabulary_size: int, rng: np.random.Generator
) -> Generator[Progress, None, None]:
    """Deal the merged pairs into random heaps that fit in memory and shuffle each: a uniform shuffle of all pairs."""
    heaps = [runs.scratch / f"{heap:05d}.heap" for heap in range(runs.n_ranges())]
    files = [heap.open("wb") for heap in heaps]
    try:
        for done, (keys, counts) in enumerate(runs.ranges(), start=1):
            pairs = np.empty(len(keys), PAIR)
            pairs["row"], pairs["column"], pairs["count"] = keys // vocabulary_size, keys % vocabulary_size, counts
            heap_of = rng.integers(len(heaps), size=len(pairs))
            for number, file in enumerate(files):
                write_array(file, pairs[heap_of == number])
            yield Progress("merging pairs", done, len(heaps), "parts")
    finally:
        for file in files:
            file.close()
    with path.open("wb") as out:
        for done, heap in enumerate(heaps, start=1):
            write_array(out, rng.permutation(np.fromfile(heap, PAIR)))
            yield Progress("shuffling pairs", done, len(heaps), "parts")
        out.flush()
        os.fsync(out.fileno())


def write_array(file: IO[bytes], array: NDArray[Any]) -> None:
    file.write(np.ascontiguousarray(array).view(np.uint8).data)


def write_index(directory: Path, vocabulary_size: int, window: int) -> None:
    n_pairs = (directory / "pairs.bin").stat().st_size // PAIR.itemsize
    index = {"format": FORMAT, "pairs": n_pairs, "vocabulary_size": vocabulary_size, "window": window}
    unfinished = directory / "index.json.part"
    unfinished.write_text(json.dumps(index), encoding="utf-8")
    unfinished.replace(directory / "index.json")
