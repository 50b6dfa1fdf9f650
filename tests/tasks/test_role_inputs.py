from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from headstart.errors import DataError
from headstart.tasks.role_inputs import RoleInputConfig, read_role_inputs, sentences_of_text
from headstart.tasks.roles import Predicate, RoleSentence

COLUMNS = "d 0 0 Cats NNS * - - (ARG0*)\nd 0 1 sleep VBP * sleep sleep.01 (V*)\n\nd 1 0 Oh UH * - -\n"


def read(path: Path, content: str, **config: object) -> list[RoleSentence]:
    path.write_text(content, encoding="utf-8")
    return list(read_role_inputs(str(path), RoleInputConfig(**config)))  # type: ignore[arg-type]


def test_each_sentence_of_a_line_is_an_example_at_exact_offsets(tmp_path: Path) -> None:
    path = tmp_path / "news.txt"
    text = "Zoë met  Éva. She left!"
    first, second, blank, rome = read(path, f"{text}\n\nRome\n")
    assert first == RoleSentence(
        ("Zoë", "met", "Éva", "."), None, f"{path}:1", text, ((0, 3), (4, 7), (9, 12), (12, 13))
    )
    assert second == RoleSentence(("She", "left", "!"), None, f"{path}:1", text, ((14, 17), (18, 22), (22, 23)))
    assert blank == RoleSentence((), None, f"{path}:2", "", ())
    assert rome.words == ("Rome",)


@pytest.mark.parametrize(
    "text", ["", " \t", "One. Two? 東京で。\n\nThree 👩‍👩‍👧 e\u0301!", "U.S. troops left. Dr. Who."]
)
def test_every_word_stands_at_its_offsets(text: str) -> None:
    found = sentences_of_text(text)
    assert all(sentence.text == text for sentence in found)
    assert [text[a:b] for sentence in found for a, b in sentence.offsets or ()] == [
        word for sentence in found for word in sentence.words
    ]
    assert "".join(word for sentence in found for word in sentence.words) == "".join(text.split())


def test_columns_give_their_predicates_without_arguments(tmp_path: Path) -> None:
    path = tmp_path / "news.gold_conll"
    first, second = read(path, COLUMNS)
    assert first == RoleSentence(("Cats", "sleep"), (Predicate(1, "sleep", "sleep.01"),), f"{path}:1")
    assert (second.words, second.predicates) == (("Oh",), ())
    assert first.columns is not None
    assert first.columns.lines == tuple(COLUMNS.splitlines()[:2])
    no_arguments = COLUMNS.replace(" (ARG0*)", "").replace(" (V*)", "")
    assert read(path, no_arguments) == [first, second]


def test_columns_without_any_predicate_leave_them_to_be_found(tmp_path: Path) -> None:
    content = "d 0 0 Cats NNS * - -\nd 0 1 sleep VBP * - -\n\nd 1 0 Oh UH * - -\n"
    found = read(tmp_path / "news.gold_conll", content)
    assert [(sentence.words, sentence.predicates) for sentence in found] == [(("Cats", "sleep"), None), (("Oh",), None)]


def test_other_columns_have_the_word_first(tmp_path: Path) -> None:
    assert [s.words for s in read(tmp_path / "a.conll", "Cats NNS\nsleep VBP\n\nOh UH\n")] == [
        ("Cats", "sleep"),
        ("Oh",),
    ]
    conllu = "".join(f"{n}\t{word}\t_\tX\t_\t_\t_\t_\t_\t_\n" for n, word in enumerate(["Cats", "sleep"], 1))
    assert [s.words for s in read(tmp_path / "a.conllu", conllu)] == [("Cats", "sleep")]


def test_json_lines_with_words(tmp_path: Path) -> None:
    words = ["Cats", "sleep", "now"]
    rows = [
        {"words": words},
        {"words": words, "predicates": None},
        {"words": words, "predicates": [1]},
        {"words": words, "predicates": [{"word": 1, "frame": "sleep.01", "arguments": "not looked at"}]},
        {"words": words, "verbs": [{"verb": "sleep", "tags": ["O", "B-V", "O"]}]},
        {"words": words, "predicates": []},
    ]
    found = read(tmp_path / "in.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    assert {sentence.words for sentence in found} == {tuple(words)}
    one = (Predicate(1),)
    assert [s.predicates for s in found] == [None, None, one, (Predicate(1, None, "sleep.01"),), one, ()]


@pytest.mark.parametrize(
    ("predicates", "message"),
    [
        (3, "the predicates must be a list, such as [3, 7] for two words; got 3"),
        ([9], "a predicate is at word 9, but the sentence has 1 words"),
        ([0, 0], "is given as a predicate twice"),
        (["x"], "expected a JSON object with 'word', got 'x'"),
    ],
)
def test_broken_predicates_are_told(tmp_path: Path, predicates: object, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path / "in.jsonl", json.dumps({"words": ["a"], "predicates": predicates}))
    assert message in str(caught.value)
    assert "in.jsonl:1: " in str(caught.value)


def test_json_lines_with_a_text_are_split(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    content = json.dumps({"id": 1, "text": "Go. Stay."})
    assert [sentence.words for sentence in read(path, content)] == [("Go", "."), ("Stay", ".")]
    named = json.dumps({"words": ["not", "these"], "body": "Go."})
    assert [sentence.words for sentence in read(path, named, text_field="body")] == [("Go", ".")]
    other = json.dumps({"id": 1, "units": ["Go", "on"]})
    assert [sentence.words for sentence in read(path, other, text_field="units")] == [("Go", "on")]


def test_what_is_asked_for_wins_over_the_suffix(tmp_path: Path) -> None:
    assert len(read(tmp_path / "news.txt", COLUMNS, input_as="columns")) == 2
    assert [s.words for s in read(tmp_path / "news.conll", "Go on\n", input_as="text")] == [("Go", "on")]
    assert [s.words for s in read(tmp_path / "a.txt", '{"words": ["Go"]}', input_as="words")] == [("Go",)]


@pytest.mark.parametrize(
    ("kind", "content"), [("text", "Cats sleep"), ("columns", COLUMNS), ("words", '{"words": ["Cats", "sleep"]}\n')]
)
def test_standard_input(kind: str, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content.encode())))
    found = list(read_role_inputs("-", RoleInputConfig(input_as=kind)))  # type: ignore[arg-type]
    assert found[0].words == ("Cats", "sleep")


def test_columns_of_tags_are_not_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"Cats NNS\n")))
    with pytest.raises(DataError, match=r"standard input:1: has 2 columns, separated by spaces\. This is neither"):
        list(read_role_inputs("-", RoleInputConfig(input_as="columns")))


def test_a_ragged_or_empty_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.conll:2: has 8 columns, but line 1, the first of this sentence, has 9"):
        read(tmp_path / "a.conll", "d 0 0 Cats N * - - *\nd 0 1 sleep V * - -\n")
    with pytest.raises(DataError, match=r"a\.conll: holds no sentence"):
        read(tmp_path / "a.conll", "\n")
