"""What `headstart.load` gives has the verbs as methods, and is a `Pretrained` wherever one is wanted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headstart
from headstart.errors import ConfigError
from headstart.inspection.attend import attend
from headstart.inspection.fill_words import fill_words
from headstart.inspection.neighbours import neighbours
from headstart.inspection.next_words import generate, next_words
from headstart.inspection.opened import Opened
from headstart.inspection.probe import probe
from headstart.inspection.score import score_all
from headstart.inspection.scored_pairs import ScoredPair
from headstart.inspection.sense_clusters import sense_clusters
from headstart.inspection.similarity import similarity
from headstart.pretrained import Pretrained
from headstart.progress import result_of
from headstart.tasks.tag import Tag
from headstart.weights import sources

PAIRS = [ScoredPair("film", "music", 1.0), ScoredPair("film", "old songs", 2.0), ScoredPair("the cat", "dog", 5.0)]


@pytest.mark.parametrize("kind", ["static", "elmo", "bert"])
def test_it_is_the_same_encoder(kind: str, pretrained_runs: dict[str, Path]) -> None:
    opened, plain = headstart.load(pretrained_runs[kind]), sources.load(pretrained_runs[kind])
    assert isinstance(opened, Opened)
    assert isinstance(opened, Pretrained)
    assert not isinstance(plain, Opened)
    assert repr(opened) == repr(plain)
    np.testing.assert_array_equal(opened.represent(["the film"])[0], plain.represent(["the film"])[0])


def test_what_is_made_of_it_has_the_methods_too(pretrained_runs: dict[str, Path]) -> None:
    opened = headstart.load(pretrained_runs["bert"])
    text = "the [MASK] ."
    assert replace(opened, name="other").fill(text) == opened.fill(text)
    assert isinstance(opened.quantised(), Opened)
    assert len(opened.quantised().fill(text).together) == 5
    with pytest.raises(ConfigError, match="came without the masked-LM head"):
        replace(opened, heads={}).fill(text)


def test_methods_call_the_functions(
    pretrained_runs: dict[str, Path], tagged_files: tuple[Path, Path], labelled: tuple[Path, Path], tmp_path: Path
) -> None:
    words, elmo, bert = (headstart.load(pretrained_runs[kind]) for kind in ("static", "elmo", "bert"))
    assert words.neighbours("film", 3) == result_of(neighbours(words, "film", most=3))
    masks = "the [MASK] likes [MASK] ."
    assert bert.fill(masks, 2, pieces=2) == fill_words(bert, masks, 2, pieces=2)
    assert list(elmo.next_words("nobody", 4, backward=True).guesses) == next_words(elmo, "nobody", 4, backward=True)
    assert elmo.generate("nobody", 4, temperature=0.5, seed=2) == generate(elmo, "nobody", 4, temperature=0.5, seed=2)
    found = bert.attend("the film", 1).probabilities
    np.testing.assert_array_equal(found, attend(bert, "the film", 1).probabilities)
    assert bert.score(["the film"]) == score_all(bert, ["the film"])
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("a\tb\tscore\n" + "".join(f"{one.first}\t{one.second}\t{one.score}\n" for one in PAIRS))
    found = elmo.similarity(pairs, layers="top", seed=3, text_field="a", second_field="b")
    assert found == elmo.similarity(PAIRS, layers="top", seed=3)
    assert found == result_of(similarity(elmo, PAIRS, layers="top", seed=3))
    sides = [Tag.read(path, Tag.Input(column=1)) for path in tagged_files]
    assert words.probe(*tagged_files, most=80, column=1) == result_of(probe(words, *sides, most=80))
    assert words.probe(*labelled, task="classify", most=20).unit == "texts"


def test_what_is_found_in_a_text(pretrained_runs: dict[str, Path], corpus: Path, tmp_path: Path) -> None:
    elmo, query = headstart.load(pretrained_runs["elmo"]), "nobody likes the [film] ."
    where: dict[str, Any] = {"layer": 1, "words": 300, "index": tmp_path / "index"}
    found = elmo.neighbours(query, 3, among=corpus, **where)
    assert found == result_of(neighbours(elmo, query, [corpus], most=3, **where))
    assert len(found.occurrences) == 3
    how: dict[str, Any] = {"clusters": 2, "most": 20, "seed": 1}
    assert elmo.senses("film", corpus, **how) == result_of(sense_clusters(elmo, "film", [corpus], **how))


def test_vectors_of_a_file_as_the_verb_writes_them(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the film\n\nold songs .\n")
    headstart.load(pretrained_runs["bert"]).encode(text, tmp_path / "mine.npy", layers="all", pool="words")
    result_of(headstart.encode(pretrained_runs["bert"], text, tmp_path / "other.npy", layers="all", pool="words"))
    for name in ("npy", "lengths.npy"):
        np.testing.assert_array_equal(np.load(tmp_path / f"mine.{name}"), np.load(tmp_path / f"other.{name}"))


def test_a_wrong_column_of_a_method_is_one_sentence(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"text_feld.*Did you mean 'text_field'"):
        headstart.load(pretrained_runs["elmo"]).similarity(tmp_path / "pairs.tsv", text_feld="a")
