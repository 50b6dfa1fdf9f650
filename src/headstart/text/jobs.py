"""The work on one piece of text, tokenising or counting: the same code in this process and in a worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.text.documents import Block, TextConfig, read_blocks
from headstart.text.encoding import SentenceIds
from headstart.text.frames import Frame
from headstart.text.sentences import sentence_spans
from headstart.text.tokenizer import Tokenizer, load_tokenizer
from headstart.text.wordpiece_learning import PieceWords
from headstart.text.words import split_words

JOB_CHARACTERS = 1 << 16
TOKENISE, COUNT, COUNT_PIECES = "tokenise", "count", "count pieces"
Work = Callable[[list[str]], Frame]


@dataclass(frozen=True, slots=True)
class Job:
    """Consecutive blocks of text. read: bytes on disk read up to its end."""

    texts: list[str]
    starts: NDArray[np.bool_]  # (blocks,), whether a block starts a document
    read: int


def read_jobs(
    paths: Sequence[Path],
    config: TextConfig,
    characters: int = JOB_CHARACTERS,
    choose: Callable[[Iterable[Block]], Iterable[Block]] = iter,
) -> Iterator[Job]:
    """The text, or the blocks chosen of it, in jobs of about `characters` characters.

    Where a job ends depends on the text alone.
    """
    read = 0

    def on_bytes(n: int) -> None:
        nonlocal read
        read = n

    texts: list[str] = []
    starts: list[bool] = []
    length = 0
    for block in choose(read_blocks(paths, config, on_bytes)):
        texts.append(block.text)
        starts.append(block.starts_document)
        length += len(block.text)
        if length >= characters:
            yield Job(texts, np.array(starts), read)
            texts, starts, length = [], [], 0
    if texts:
        yield Job(texts, np.array(starts), read)


def tokenising(tokenizer: Tokenizer, lines_are_sentences: bool, max_sentence: int | None) -> Work:
    """Blocks -> a frame of ids, sentence lengths and sentences per block; its texts are the out-of-vocabulary words."""

    def tokenise(texts: list[str]) -> Frame:
        spans = [sentence_spans(text, lines_are_sentences) for text in texts]
        sentences = [text[first:last] for text, mine in zip(texts, spans, strict=True) for first, last in mine]
        found = tokenizer.encode_sentences(sentences)
        block_of_sentence = np.repeat(np.arange(len(texts)), [len(mine) for mine in spans])
        if max_sentence is not None:
            block_of_sentence = np.repeat(block_of_sentence, found.pieces(max_sentence))
            found = found.cut(max_sentence)
        per_block = np.bincount(block_of_sentence, minlength=len(texts))
        return Frame(arrays=[found.ids, found.lengths, per_block], texts=found.extras)

    return tokenise


def tokenised(frame: Frame) -> tuple[SentenceIds, NDArray[np.int64]]:
    """Unpack the result of `tokenising`: the sentences, and how many each block has."""
    ids, lengths, per_block = frame.arrays
    return SentenceIds(ids, lengths, frame.texts), per_block


def counting(lowercase: bool) -> Work:
    """Blocks -> a frame of words and their counts."""

    def count(texts: list[str]) -> Frame:
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(split_words(text))
        if lowercase:
            # Split first and lowercase then, as the tokenizer does: a lowercased text may split differently.
            lowered: Counter[str] = Counter()
            for word, n in counts.items():
                lowered[word.lower()] += n
            counts = lowered
        return counts_frame(counts)

    return count


def counting_pieces(lowercase: bool) -> Work:
    """Blocks -> a frame of the words that WordPiece is learned from, and their counts."""
    words = PieceWords(lowercase)
    return lambda texts: counts_frame(words.count(texts))


def counts_frame(counts: Counter[str]) -> Frame:
    return Frame(arrays=[np.array(list(counts.values()), dtype=np.int64)], texts=list(counts))


def counted(frame: Frame) -> dict[str, int]:
    return dict(zip(frame.texts, frame.arrays[0].tolist(), strict=True))


def work_from(order: Frame) -> Work:
    """The work that the first message to a worker describes."""
    header = order.header
    if header["work"] == COUNT:
        return counting(header["lowercase"])
    if header["work"] == COUNT_PIECES:
        return counting_pieces(header["lowercase"])
    tokenizer = load_tokenizer(Path(header["tokenizer"]))
    return tokenising(tokenizer, header["lines_are_sentences"], header["max_sentence"])
