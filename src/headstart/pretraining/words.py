"""Whole words as units: the settings and the vocabulary that word vectors and ELMo share."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import numpy as np
from pydantic import Field

from headstart.pretraining.base import VocabularyConfig, Workplace
from headstart.progress import Progress
from headstart.text.counting import count_words
from headstart.text.documents import TextConfig
from headstart.text.tokenizer import WORDS, WordTokenizer
from headstart.text.vocabulary import SPECIALS, Vocabulary


class WordsConfig(VocabularyConfig):
    """Whole words as units; without a size, as many as the text supports, up to 400,000 (static) or 30,000 (ELMo)."""

    min_count: int = Field(default=5, ge=1)
    """Rarer words are outside the vocabulary."""
    lowercase: bool = False
    """Fold case before anything else."""
    path: str | None = None
    """A words.tsv, or a run with one, whose words are used instead of those of the text."""


def learn_words(
    settings: WordsConfig, text: TextConfig, paths: list[Path], place: Workplace, *, most: int
) -> Generator[Progress, None, WordTokenizer]:
    """Count the words of the text and keep the frequent ones, at most `most` unless the settings say how many.

    Words that are given have the counts that they have in this text, 0 for some.
    """
    given = None
    if settings.path is not None:
        path = Path(settings.path)
        given = Vocabulary.load(path / WORDS if path.is_dir() else path)
    lowercase = settings.lowercase if given is None else given.lowercase
    counted = yield from count_words(
        paths, text, lowercase=lowercase, cache=place.cache, workers=place.workers, machines=place.machines
    )
    if given is None:
        return WordTokenizer(counted.vocabulary(settings.size, settings.min_count, most=settings.most or most))
    here = np.array([counted.counts.get(word, 0) for word in given.words], dtype=np.int64)
    here[: len(SPECIALS)] = 0
    return WordTokenizer(Vocabulary(given.words, here, lowercase))
