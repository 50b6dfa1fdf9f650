"""Counts against a dictionary filled word by word, whatever the memory cap; and folders that are not whole."""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.errors import DataError
from headstart.pretraining.static import cooccurrence
from headstart.pretraining.static.cooccurrence import (
    Cooccurrences,
    count_block,
    count_cooccurrences,
    write_cooccurrences,
)
from headstart.text.shards import Shards

V = 30
MakeShards = Callable[..., Shards]


class TextInMemory:
    """Sentences with the methods of Shards that counting uses."""

    def __init__(self, sentences: list[list[int]], vocabulary_size: int = V) -> None:
        self.sentences = [np.array(sentence, np.int32) for sentence in sentences]
        self.vocabulary_size = vocabulary_size
        self.n_units = sum(map(len, sentences))
        self.starts = np.cumsum([0, *map(len, sentences)])[:-1]

    def sentences_between(self, first: int, last: int) -> list[NDArray[Any]]:
        a, b = np.searchsorted(self.starts, [first, last])
        return self.sentences[a:b]


def random_text(rng: np.random.Generator, n_sentences: int) -> TextInMemory:
    """A third of the words are outside the vocabulary, some of the sentences are empty."""
    lengths = rng.integers(0, 25, n_sentences)
    return TextInMemory([rng.integers(3, V + V // 2, length).tolist() for length in lengths])


def count_slowly(text: TextInMemory, window: int) -> dict[tuple[int, int], float]:
    """X over ordered pairs, as the definition says it."""
    X: dict[tuple[int, int], float] = defaultdict(float)
    for sentence in text.sentences:
        for here, word in enumerate(sentence.tolist()):
            for there in range(max(0, here - window), min(len(sentence), here + window + 1)):
                neighbour = int(sentence[there])
                if there != here and word < V and neighbour < V:
                    X[word, neighbour] += 1 / abs(here - there)
    return X


def finish(counting: Any) -> tuple[list[Any], Cooccurrences]:
    readings = []
    while True:
        try:
            readings.append(next(counting))
        except StopIteration as end:
            return readings, end.value


def as_dictionary(counted: Cooccurrences) -> dict[tuple[int, int], float]:
    keys = zip(counted.rows.tolist(), counted.columns.tolist(), strict=True)
    return dict(zip(keys, counted.counts.tolist(), strict=True))


@pytest.mark.parametrize("window", [1, 4, 10])
@pytest.mark.parametrize("most_pairs", [40, 8_000_000])
def test_counts_equal_those_of_the_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int, most_pairs: int
) -> None:
    monkeypatch.setattr(cooccurrence, "BLOCK_UNITS", 50)
    text = random_text(np.random.default_rng(window), 200)
    readings, counted = finish(write_cooccurrences(text, tmp_path, window=window, seed=0, most_pairs=most_pairs))

    slow = count_slowly(text, window)
    assert all(row <= column for row, column in as_dictionary(counted))
    assert len(counted) == len(as_dictionary(counted))
    both_ways = as_dictionary(counted) | {(j, i): x for (i, j), x in as_dictionary(counted).items()}
    assert both_ways == pytest.approx(slow, rel=1e-5)
    assert readings[-1].stage == "shuffling pairs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.json", "pairs.bin"]
    if most_pairs == 40:
        assert readings[-1].total > 1, "the cap was meant to force several runs"


def test_a_word_outside_the_vocabulary_keeps_its_place() -> None:
    keys, counts = count_block([np.array([3, V + 7, 5])], 2, V)
    assert keys.tolist() == [3 * V + 5]
    assert counts.tolist() == [1 / 2]


def test_a_word_beside_itself_counts_from_either_side() -> None:
    keys, counts = count_block([np.array([4, 4])], 5, V)
    assert keys.tolist() == [4 * V + 4]
    assert counts.tolist() == [2.0]


def test_pairs_are_shuffled_and_the_seed_says_how(tmp_path: Path) -> None:
    text = random_text(np.random.default_rng(0), 300)
    _, first = finish(write_cooccurrences(text, tmp_path / "a", window=10, seed=1))
    _, again = finish(write_cooccurrences(text, tmp_path / "b", window=10, seed=1))
    _, other = finish(write_cooccurrences(text, tmp_path / "c", window=10, seed=2))
    assert np.array_equal(first.pairs, again.pairs)
    assert not np.array_equal(first.pairs, other.pairs)
    assert as_dictionary(first) == as_dictionary(other)
    assert not np.all(np.diff(first.rows.astype(int)) >= 0)


def test_text_without_neighbours_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No two words of the vocabulary stand within 10 words"):
        finish(write_cooccurrences(TextInMemory([[5], [6], [V, 7]]), tmp_path, window=10, seed=0))


def test_a_full_disk_is_one_sentence_and_leaves_no_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(file: IO[bytes], array: NDArray[Any]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cooccurrence, "write_array", fail)
    with pytest.raises(DataError, match="cannot be written \\(No space left on device\\)"):
        finish(write_cooccurrences(random_text(np.random.default_rng(0), 20), tmp_path, window=10, seed=0))
    assert list(tmp_path.iterdir()) == []


def test_a_counting_that_was_stopped_cannot_be_opened(tmp_path: Path) -> None:
    counting = write_cooccurrences(random_text(np.random.default_rng(0), 20), tmp_path, window=10, seed=0)
    next(counting)
    counting.close()
    with pytest.raises(DataError, match="holds no finished co-occurrence counts"):
        Cooccurrences.open(tmp_path)


def test_a_shortened_file_cannot_be_opened(tmp_path: Path) -> None:
    _, counted = finish(write_cooccurrences(random_text(np.random.default_rng(0), 20), tmp_path, window=10, seed=0))
    path = tmp_path / "pairs.bin"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(DataError, match=f"with {len(counted) - 1} co-occurrence counts, index.json says"):
        Cooccurrences.open(tmp_path)


def test_a_text_is_counted_once(tmp_path: Path, make_shards: MakeShards) -> None:
    shards = make_shards([[[3, 4, 5], [6, 7]], [[3, 4]]], vocabulary=8)
    readings, counted = finish(count_cooccurrences(shards, cache=tmp_path, window=2))
    assert as_dictionary(counted) == pytest.approx({(3, 4): 2.0, (3, 5): 0.5, (4, 5): 1.0, (6, 7): 1.0})
    assert readings
    readings, again = finish(count_cooccurrences(shards, cache=tmp_path, window=2))
    assert readings == []
    assert np.array_equal(counted.pairs, again.pairs)
    readings, _ = finish(count_cooccurrences(shards, cache=tmp_path, window=1))
    assert readings, "another window is another count"
