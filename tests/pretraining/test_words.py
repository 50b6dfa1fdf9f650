from __future__ import annotations

from pathlib import Path

import pytest

from headstart.config import resolve
from headstart.errors import ConfigError, DataError
from headstart.pretraining.base import Workplace
from headstart.pretraining.words import WordsConfig, learn_words
from headstart.progress import result_of
from headstart.text.documents import TextConfig


def words_learned(corpus: Path, cache: Path, **settings: int) -> int:
    config = WordsConfig(min_count=1, **settings)
    return len(result_of(learn_words(config, TextConfig(), [corpus], Workplace(cache, 1), most=20)))


def test_a_size_is_exact_and_a_most_is_not(corpus: Path, tmp_path: Path) -> None:
    assert words_learned(corpus, tmp_path) == 20
    assert words_learned(corpus, tmp_path, size=30) == words_learned(corpus, tmp_path, most=30) == 30
    every = words_learned(corpus, tmp_path, most=10_000)
    assert 30 < every < 100
    with pytest.raises(DataError, match=f"Lower tokenizer.size to at most {every}"):
        words_learned(corpus, tmp_path, size=10_000)


def test_a_size_and_a_most_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="size and most exclude each other; got 30 and 40"):
        resolve(WordsConfig, {"size": 30, "most": 40})
