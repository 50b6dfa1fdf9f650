from __future__ import annotations

from pathlib import Path

import pytest

from headstart.config import resolve
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.pretraining.base import Workplace
from headstart.pretraining.words import WordsConfig, learn_words
from headstart.progress import result_of
from headstart.text.documents import TextConfig
from headstart.text.tokenizer import WordTokenizer


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


def learned(text: Path, folder: Path, **settings: object) -> WordTokenizer:
    config = WordsConfig(min_count=1, **settings)  # type: ignore[arg-type]
    return result_of(learn_words(config, TextConfig(), [text], Workplace(folder / "cache", 1), most=100))


@pytest.mark.parametrize("given_as", ["folder", "file"])
def test_given_words_are_kept_with_the_counts_of_the_text(given_as: str, tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.txt", tmp_path / "part.txt"
    whole.write_text("the cat saw the dog\n")
    part.write_text("a dog saw a dog\n")
    before = learned(whole, tmp_path)
    before.save(tmp_path)
    after = learned(part, tmp_path, path=str(tmp_path if given_as == "folder" else tmp_path / "words.tsv"))
    assert after.vocabulary.words == before.vocabulary.words
    assert after.fingerprint == before.fingerprint
    assert {word: int(n) for word, n in zip(after.vocabulary.words, after.vocabulary.counts, strict=True) if n} == {
        "dog": 2,
        "saw": 1,
    }


def test_a_folder_without_words_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("some text\n")
    with pytest.raises(CheckpointError, match="the vocabulary cannot be read"):
        learned(tmp_path / "text.txt", tmp_path, path=str(tmp_path))
