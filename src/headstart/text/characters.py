"""ELMo's character ids: a word is its UTF-8 bytes between two marks, 50 ids in all (Peters et al. 2018).

As published, bytes are 0-255 and the marks 256-260, and 1 is added to every id: 0 is for the padding of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from headstart.text.vocabulary import SENTENCE_END, SENTENCE_START

MAX_CHARACTERS = 50
N_CHARACTERS = 262
BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = 257, 258, 259, 260, 261
MOST_BYTES = MAX_CHARACTERS - 2


@lru_cache(maxsize=1 << 16)
def characters_of(word: str) -> NDArray[np.int16]:
    """(50,) ids of one word, read-only. <S> and </S> give the sentence marks."""
    row = np.full(MAX_CHARACTERS, PADDING, dtype=np.int16)
    if word in SENTENCE_MARKS:
        row[:3] = BEGIN_WORD, SENTENCE_MARKS[word], END_WORD
    else:
        encoded = np.frombuffer(word.encode("utf-8", "ignore")[:MOST_BYTES], dtype=np.uint8)
        row[0], row[len(encoded) + 1] = BEGIN_WORD, END_WORD
        np.add(encoded, 1, out=row[1 : len(encoded) + 1], dtype=np.int16)
    row.flags.writeable = False
    return row


def character_table(words: Sequence[str]) -> NDArray[np.int16]:
    """(V, 50) ids of many words."""
    encoded = [word.encode("utf-8", "ignore")[:MOST_BYTES] for word in words]
    lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
    table = np.full((len(words), MAX_CHARACTERS), PADDING, dtype=np.int16)
    table[:, 0] = BEGIN_WORD
    rows = np.repeat(np.arange(len(words)), lengths)
    starts = np.cumsum(lengths) - lengths
    columns = np.arange(len(rows)) - np.repeat(starts, lengths) + 1
    table[rows, columns] = np.frombuffer(b"".join(encoded), dtype=np.uint8).astype(np.int16) + 1
    table[np.arange(len(words)), lengths + 1] = END_WORD
    for row, word in enumerate(words):
        if word in SENTENCE_MARKS:
            table[row] = PADDING
            table[row, :3] = BEGIN_WORD, SENTENCE_MARKS[word], END_WORD
    return table


SENTENCE_MARKS = {SENTENCE_START: BEGIN_SENTENCE, SENTENCE_END: END_SENTENCE}
