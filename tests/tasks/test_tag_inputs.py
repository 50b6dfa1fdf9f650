from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest

from headstart.tasks.tag_inputs import TagInputConfig, read_sentences, sentence_of_text
from headstart.text.words import split_words

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"  # three people in five characters
ODD = ["Rome", "été", "e\u0301te\u0301", FAMILY, "🇫🇷", "。", "漢字", "a\u00a0b", "\t", " ", "\r\n", "\n\n"]
ODD += [". ", "U.S.", "@me", "\x00", "\ufeff", "don't"]
ACCENTED = "Cafe\u0301 au lait costs 3.14 €, he said. Él no fue!\n\n東京で"


def read(path: Path, content: str, **config: object) -> list[tuple[str, ...]]:
    """The words of each example; none has gold tags."""
    path.write_text(content, encoding="utf-8")
    found = list(read_sentences(str(path), TagInputConfig(**config)))  # type: ignore[arg-type]
    assert all(sentence.tags is None for sentence in found)
    return [sentence.words for sentence in found]


def test_offsets_by_hand() -> None:
    found = sentence_of_text(f"Zoë  met\tÉva {FAMILY}.", "here")
    assert found.words == ("Zoë", "met", "Éva", FAMILY, ".")
    assert found.offsets == ((0, 3), (5, 8), (9, 12), (13, 18), (18, 19))
    assert found.sentences == ((0, 5),)
    assert (found.tags, found.where) == (None, "here")


@pytest.mark.parametrize("text", [ACCENTED, f"\t{FAMILY}\u00a0two\r\nlines ", "U.S. troops left. Dr. Who stayed?", "x"])
def test_every_word_stands_at_its_offsets_and_in_one_sentence(text: str) -> None:
    found = sentence_of_text(text)
    assert found.text == text
    assert found.offsets is not None
    assert [text[start:end] for start, end in found.offsets] == list(found.words)
    assert "".join(found.words) == "".join(text.split())
    assert found.sentences is not None
    assert [word for first, end in found.sentences for word in range(first, end)] == list(range(len(found.words)))
    assert all(first < end for first, end in found.sentences)


def test_offsets_are_exact_in_any_text_and_no_word_is_lost() -> None:
    rng = random.Random(0)
    for _ in range(500):
        text = "".join(rng.choices(ODD, k=rng.randint(0, 30)))
        found = sentence_of_text(text)
        assert [text[start:end] for start, end in found.offsets or ()] == list(found.words)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(found.offsets or ()))
        assert sorted("".join(found.words)) == sorted("".join(split_words(text)))


def test_sentences_are_marked() -> None:
    assert sentence_of_text(ACCENTED).sentences == ((0, 10), (10, 14), (14, 17))
    assert sentence_of_text(" \t").sentences == ()


def test_each_line_of_plain_text_is_an_example(tmp_path: Path) -> None:
    words = read(tmp_path / "news.txt", "Anna met Bob. He left.\n\nRome\n")
    assert words == [("Anna", "met", "Bob", ".", "He", "left", "."), (), ("Rome",)]


@pytest.mark.parametrize("name", ["news.conll", "eng.testa"])
def test_other_suffixes_are_columns_whose_tags_are_left(name: str, tmp_path: Path) -> None:
    assert read(tmp_path / name, "Anna B-PER\nleft O\n\nRome B-LOC\n") == [("Anna", "left"), ("Rome",)]
    assert read(tmp_path / name, "Anna\nleft\n\nRome\n") == [("Anna", "left"), ("Rome",)]


def test_columns_keep_their_lines_for_writing(tmp_path: Path) -> None:
    path = tmp_path / "news.conll"
    path.write_text("Anna NNP B-PER\nleft VBD O\n", encoding="utf-8")
    (found,) = read_sentences(str(path), TagInputConfig())
    assert found.lines == ("Anna NNP B-PER", "left VBD O")


@pytest.mark.parametrize("fields", [("words", "tags"), ("tokens", "ner_tags")])
def test_json_lines_with_words_are_taken_as_they_are(fields: tuple[str, str], tmp_path: Path) -> None:
    words, tags = fields
    lines = [{words: ["In", "New York"], tags: ["O", "B-LOC"]}, {words: ["Rome"], tags: ["B-LOC"]}]
    path = tmp_path / "news.jsonl"
    assert read(path, "".join(json.dumps(line) + "\n" for line in lines)) == [("In", "New York"), ("Rome",)]
    assert all(sentence.text is None for sentence in read_sentences(str(path), TagInputConfig()))
    assert read(path, json.dumps({words: ["In", "Rome"]})) == [("In", "Rome")]


def test_json_lines_with_a_text_are_split_at_exact_offsets(tmp_path: Path) -> None:
    path = tmp_path / "news.jsonl"
    assert read(path, json.dumps({"text": "In Rome.", "id": 7})) == [("In", "Rome", ".")]
    (found,) = read_sentences(str(path), TagInputConfig())
    assert (found.text, found.offsets) == ("In Rome.", ((0, 2), (3, 7), (7, 8)))


def test_a_text_field_wins_over_words(tmp_path: Path) -> None:
    line = json.dumps({"words": ["not", "these"], "body": "In Rome."})
    assert read(tmp_path / "news.jsonl", line, text_field="body") == [("In", "Rome", ".")]
    table = "id,body\n7,In Rome.\n"
    assert read(tmp_path / "news.csv", table, text_field="body") == [("In", "Rome", ".")]


def test_what_is_asked_for_wins_over_the_suffix(tmp_path: Path) -> None:
    columns = "Anna B-PER\nleft O\n"
    assert read(tmp_path / "news.txt", columns, input_as="columns") == [("Anna", "left")]
    assert read(tmp_path / "news.conll", "Anna left.\n", input_as="text") == [("Anna", "left", ".")]
    words = json.dumps({"words": ["Anna"]})
    assert read(tmp_path / "news.txt", words, input_as="words") == [("Anna",)]


def test_words_under_another_key_are_found_by_their_field(tmp_path: Path) -> None:
    content = json.dumps({"id": 1, "units": ["In", "Rome"]}) + "\n"
    for asked in ({}, {"input_as": "words"}):
        assert read(tmp_path / "in.jsonl", content, text_field="units", **asked) == [("In", "Rome")]


@pytest.mark.parametrize("tags", [[3, 0], ["O"], None, "O B-LOC"], ids=str)
def test_tags_that_a_line_has_besides_its_words_are_not_looked_at(tags: object, tmp_path: Path) -> None:
    content = json.dumps({"tokens": ["In", "Rome"], "ner_tags": tags}) + "\n"
    assert read(tmp_path / "in.jsonl", content) == [("In", "Rome")]
