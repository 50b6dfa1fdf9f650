from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headstart.errors import DataError
from headstart.tasks.role_inputs import sentences_of_text
from headstart.tasks.role_json import roles_as_json
from headstart.tasks.role_reading import read_roles
from headstart.tasks.roles import Predicate, Roles, RoleSentence
from headstart.tasks.spans import Span

WORDS = ["Cats", "pick", "fights", "up"]
PICK = Predicate(1, "pick", "pick_up.01", (Span(0, 1, "ARG0"), Span(1, 2, "V"), Span(2, 3, "ARG1"), Span(3, 4, "C-V")))


def file_of(folder: Path, *rows: object) -> Path:
    path = folder / "some.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def predicate_of(folder: Path, given: dict[str, Any]) -> Predicate:
    (sentence,) = read_roles(file_of(folder, {"words": WORDS, "predicates": [given]})).sentences
    (predicate,) = sentence.predicates or ()
    return predicate


def argument(role: str, start: object, end: object) -> dict[str, object]:
    return {"role": role, "start": start, "end": end}


def test_arguments_at_words(tmp_path: Path) -> None:
    arguments = [argument("ARG1", 2, 3), argument("V", 1, 2), argument("C-V", 3, 4), argument("ARG0", 0, 1)]
    given = {"word": 1, "lemma": "pick", "frame": "pick_up.01", "arguments": arguments}
    assert predicate_of(tmp_path, given) == PICK


def test_bio_tags_in_place_of_arguments(tmp_path: Path) -> None:
    tags = ["B-ARG0", "B-V", "B-ARG1", "B-C-V"]
    assert predicate_of(tmp_path, {"word": 1, "tags": tags}).arguments == PICK.arguments
    assert predicate_of(tmp_path, {"tags": tags}) == Predicate(1, None, None, PICK.arguments)


def test_what_allennlp_writes_is_read(tmp_path: Path) -> None:
    verb = {"verb": "pick", "description": "...", "tags": ["B-ARG0", "B-V", "B-ARG1", "O"]}
    path = file_of(tmp_path, {"words": WORDS, "verbs": [verb]})
    assert read_roles(path).sentences[0].predicates == (Predicate(1, None, None, (PICK.arguments or ())[:3]),)


def test_v_is_added_where_it_is_missing(tmp_path: Path) -> None:
    assert predicate_of(tmp_path, {"word": 1, "arguments": []}).arguments == (Span(1, 2, "V"),)
    assert predicate_of(tmp_path, {"word": 1, "tags": ["O"] * 4}).arguments == (Span(1, 2, "V"),)


def test_predicates_stand_in_order_and_a_sentence_may_have_none(tmp_path: Path) -> None:
    two = [{"word": 3, "arguments": []}, {"word": 0, "arguments": []}]
    path = file_of(tmp_path, {"tokens": WORDS, "predicates": two}, {"tokens": ["Oh"], "predicates": []})
    first, second = read_roles(path).sentences
    assert [predicate.word for predicate in first.predicates or ()] == [0, 3]
    assert second == RoleSentence(("Oh",), (), f"{path}:2")
    assert read_roles(path, "tokens").sentences == [first, second]


def test_overlapping_arguments_are_left_out_and_told(tmp_path: Path) -> None:
    given = {"word": 1, "arguments": [argument("ARG1", 0, 4), argument("ARG2", 2, 3)]}
    file = read_roles(file_of(tmp_path, {"words": WORDS, "predicates": [given]}))
    assert (file.sentences[0].predicates or ())[0].arguments == (Span(1, 2, "V"), Span(2, 3, "ARG2"))
    assert file.overlapping == [f"{file.path}:1: ARG1 'Cats pick fights up' of the predicate 'pick'"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"words": WORDS}, ":2: has no 'predicates'; there are: words."),
        ({"words": [], "predicates": []}, ":2: 'words' holds no word"),
        ({"words": "Cats", "predicates": []}, ":2: 'words' must be a list of strings"),
        ({"predicates": []}, ":2: has no column 'words' or 'tokens'"),
        ({"words": WORDS, "predicates": {}}, ":2: 'predicates' must be a list, got {}"),
        ({"words": WORDS, "predicates": [1]}, ":2: a predicate must be an object with 'word' and 'arguments'"),
        ({"words": WORDS, "predicates": [{"word": 1}]}, "Only `predict` reads predicates without them"),
    ],
)
def test_broken_lines_are_told(tmp_path: Path, given: object, message: str) -> None:
    path = file_of(tmp_path, {"words": ["Oh"], "predicates": []}, given)
    with pytest.raises(DataError) as caught:
        read_roles(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"word": 4, "arguments": []}, "a predicate is at word 4, but the sentence has 4 words, 0 to 3."),
        ({"word": True, "arguments": []}, "'word' must be a whole number, got True"),
        ({"word": -1, "arguments": []}, "a predicate is at word -1"),
        ({"arguments": []}, "has no 'word'"),
        ({"tags": ["O"] * 4}, "a predicate has neither a 'word' nor a tag B-V"),
        ({"word": 1, "tags": ["O"] * 3}, "a predicate has 3 tags for 4 words"),
        ({"word": 1, "tags": ["I-A", "O", "O", "O"]}, "'I-A' at word 0 is not, after the beginning"),
        ({"word": 1, "tags": ["O", "B-V", "I-A", "O"]}, "'I-A' at word 2 is not, after 'B-V'"),
        ({"word": 1, "tags": ["O", "B-V", "E-A", "O"]}, "'E-A' at word 2 is not"),
        ({"word": 1, "tags": None}, "'tags' must be a list of strings"),
        ({"word": 1, "arguments": [argument("ARG0", 2, 2)]}, "ARG0 goes from word 2 to 2 (not included)"),
        ({"word": 1, "arguments": [argument("ARG0", 3, 5)]}, "but the sentence has words 0 to 3"),
        ({"word": 1, "arguments": [argument("ARG0", "0", 1)]}, "'start' must be a whole number, got '0'"),
        ({"word": 1, "arguments": [argument("A B", 0, 1)]}, "a role must be a name such as ARG0"),
        ({"word": 1, "arguments": [argument("(A", 0, 1)]}, "a role must be a name such as ARG0"),
        ({"word": 1, "arguments": [argument("", 0, 1)]}, "a role must be a name such as ARG0"),
        ({"word": 1, "arguments": [argument("V", 3, 4)]}, "the predicate is 'pick' (word 1), but its V is at word 3"),
        ({"word": 1, "arguments": [], "frame": 7}, "'frame' must be text, got 7"),
    ],
)
def test_broken_predicates_are_told(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as caught:
        predicate_of(tmp_path, given)
    assert message in str(caught.value)
    assert "some.jsonl:1: " in str(caught.value)


def test_a_word_is_one_predicate(tmp_path: Path) -> None:
    path = file_of(tmp_path, {"words": WORDS, "predicates": [{"word": 1, "arguments": []}] * 2})
    with pytest.raises(DataError, match=r"the word 'pick' \(word 1\) is given as a predicate twice"):
        read_roles(path)


def test_roles_of_a_text_are_at_its_characters() -> None:
    _, sentence = sentences_of_text("Oh! Cats  pick fights up")
    found = roles_as_json(sentence, Roles((PICK,)))
    assert (found["text"], found["words"]) == ("Oh! Cats  pick fights up", WORDS)
    (predicate,) = found["predicates"]
    first, *_, last = predicate.pop("arguments")
    assert predicate == {
        "word": 1, "text": "pick", "start": 10, "end": 14, "lemma": "pick", "frame": "pick_up.01",
    }  # fmt: skip
    assert first == {"role": "ARG0", "text": "Cats", "first_word": 0, "end_word": 1, "start": 4, "end": 8}
    assert last == {"role": "C-V", "text": "up", "first_word": 3, "end_word": 4, "start": 22, "end": 24}


def test_roles_of_words_are_at_words() -> None:
    found = roles_as_json(RoleSentence(tuple(WORDS), None), Roles((Predicate(0), PICK)))
    assert found["predicates"][0] == {"word": 0, "text": "Cats"}
    assert found["predicates"][1]["arguments"][0] == {"role": "ARG0", "text": "Cats", "first_word": 0, "end_word": 1}
    assert "text" not in found


@pytest.mark.parametrize("text", ["Cats pick fights up", "Oh!  Cats pick\tfights up "])
def test_what_is_written_is_read_back(tmp_path: Path, text: str) -> None:
    sentence = sentences_of_text(text)[-1]
    path = file_of(tmp_path, roles_as_json(sentence, Roles((PICK,))))
    assert read_roles(path).sentences == [RoleSentence(tuple(WORDS), (PICK,), f"{path}:1")]
