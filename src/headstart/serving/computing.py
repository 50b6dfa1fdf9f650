"""What the batcher's thread computes: of the items of several requests, a result for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headstart.config import Table
from headstart.errors import DataError, HeadstartError
from headstart.inspection.contexts import Contexts, compare_contexts
from headstart.inspection.score import Scorer, Sentence
from headstart.inspection.score_results import SentenceScore
from headstart.pretrained import Pretrained, Vectors
from headstart.text.formats import clean
from headstart.transfer.task_model import TaskModel

MOST_SCORED_TOKENS = 1 << 16
"""Of all copies of a text that a BERT reads to score it: some seconds, in which nobody else is answered."""


def one_by_one(compute: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Of each item its result, or what went wrong with it, which is nothing to the others."""
    found: list[Any] = []
    for item in items:
        try:
            found.append(compute(item))
        except HeadstartError as error:
            found.append(error)
    return found


def size_of(item: object) -> int:
    """Characters, roughly: what decides how long an item takes."""
    if isinstance(item, str):
        return len(item)
    if isinstance(item, Mapping):
        return sum(map(len, item.values()))
    return 1


def contexts_of(pretrained: Pretrained, asked: tuple[str, str, str | None]) -> Contexts:
    return compare_contexts(pretrained, *asked)


@dataclass(frozen=True, slots=True)
class Represented:
    """A text's words and vectors: one for each word, or one; of several layers, one for each layer in these."""

    words: list[str]
    vectors: Vectors


def represented(pretrained: Pretrained, layers: Any, pool: str, texts: list[str]) -> list[Represented]:
    cleaned = [clean(text) for text in texts]
    one_layer = layers == "top" or isinstance(layers, int)
    found = []
    for text, vectors in zip(cleaned, pretrained.represent(cleaned, layers), strict=True):
        rows = vectors.transpose(1, 0, 2) if pool == "words" else mean_row(vectors)
        found.append(Represented(pretrained.words(text), rows[:, 0] if one_layer else rows))
    return found


def scored(scorer: Scorer, pretrained: Pretrained, texts: list[str]) -> list[SentenceScore | DataError]:
    """The score of each text, or why it has none."""
    sentences = [scorer.sentence(number, clean(text)) for number, text in enumerate(texts)]
    refused: dict[int, DataError] = {}
    for number, sentence in enumerate(sentences):
        try:
            check_scorable(sentence, pretrained)
        except DataError as error:
            refused[number] = error
    found = iter(scorer.scores([one for number, one in enumerate(sentences) if number not in refused]))
    return [refused[number] if number in refused else next(found) for number in range(len(texts))]


def check_scorable(sentence: Sentence, pretrained: Pretrained) -> None:
    if not len(sentence.row.word_starts):
        raise DataError(f"There is no word in the text '{sentence.text:.60}'.")
    pretrained.check_lengths([sentence.row])
    if sentence.tokens > MOST_SCORED_TOKENS:
        raise DataError(
            f"A text has {len(sentence.gold)} pieces, and is read once for each of them; at most "
            f"{math.isqrt(MOST_SCORED_TOKENS)} are scored here. Split it."
        )


def size_in_copies(text: str) -> int:
    """A BERT reads a text once for each of its pieces, which have some four characters."""
    return len(text) * max(1, len(text) // 4)


def mean_row(vectors: Vectors) -> Vectors:
    """(K, words, D) -> (1, K, D); zeros for a text without words."""
    rows: Vectors = vectors.mean(axis=1)[None] if vectors.shape[1] else np.zeros((1, *vectors.shape[::2]), np.float32)
    return rows


def answers(model: TaskModel[Any, Any], inputs: list[Mapping[str, str]]) -> list[tuple[list[Table], bool]]:
    """Of each input the answers to its examples, and whether any of them was cut."""
    examples = [model.task.of_texts(given) for given in inputs]
    found = model.answers([example for own in examples for example in own])
    rest = iter(zip(found.answers, found.cut, strict=True))
    answered = []
    for own in examples:
        pairs = [next(rest) for _ in own]
        lines = [model.task.as_json(example, answer) for example, (answer, _) in zip(own, pairs, strict=True)]
        answered.append((lines, any(cut for _, cut in pairs)))
    return answered
