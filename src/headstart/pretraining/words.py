"""Whole words as units: the settings and the vocabulary that word vectors and ELMo share."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from pydantic import Field

from headstart.pretraining.base import VocabularyConfig, Workplace
from headstart.progress import Progress
from headstart.text.documents import TextConfig
from headstart.text.tokenise import count_words
from headstart.text.tokenizer import WordTokenizer


class WordsConfig(VocabularyConfig):
    """Whole words as units; without a size, as many as the text supports, up to 400,000 (static) or 30,000 (ELMo)."""

    min_count: int = Field(default=5, ge=1)
    """Rarer words are outside the vocabulary."""
    lowercase: bool = False
    """Fold case before anything else."""


def learn_words(
    settings: WordsConfig, text: TextConfig, paths: list[Path], place: Workplace, *, most: int
) -> Generator[Progress, None, WordTokenizer]:
    """Count the words of the text and keep the frequent ones, at most `most` unless the settings say how many."""
    counts = yield from count_words(paths, text, lowercase=settings.lowercase, cache=place.cache, workers=place.workers)
    return WordTokenizer(counts.vocabulary(settings.size, settings.min_count, most=settings.most or most))
