"""Occurrences over HTTP are those of the function behind it, in the text that the server was started with."""

from __future__ import annotations

import pytest
from tests.serving.conftest import Running

from headstart.inspection.neighbours import nearest_occurrences
from headstart.inspection.occurrence_text import marked_word
from headstart.serving.models import Models


@pytest.mark.parametrize("kind", ["elmo", "bert"])
def test_occurrences_are_those_of_nearest_occurrences(searching: Running, indexed: Models, kind: str) -> None:
    pretrained, index = indexed.index(kind)
    marked = marked_word("a dog and a [cat]")
    assert marked is not None
    expected = nearest_occurrences(pretrained, index, marked, 4)
    body = {"model": kind, "text": "a  dog and a cat", "word": "CAT", "most": 4}
    found = searching.ask("/api/occurrences", body).json
    assert (found["searched"], found["layer"]) == (len(index), index.layer)
    assert [one["sentence"] for one in found["occurrences"]] == [one.sentence for one in expected]
    for one in found["occurrences"]:
        assert one["sentence"][one["start"] : one["end"]] == one["word"]
    assert [one["cosine"] for one in found["occurrences"]] == pytest.approx([one.cosine for one in expected], abs=1e-5)


def test_only_encoders_of_contexts_are_indexed(searching: Running) -> None:
    models = searching.ask("/api/models").json["models"]
    assert [one["name"] for one in models if "occurrences" in one["can"]] == ["elmo", "bert"]
    answer = searching.ask("/api/occurrences", {"model": "static", "text": "a cat", "word": "cat"})
    assert (answer.status, answer.detail) == (422, "'static' has no text to search. Ask elmo or bert.")


def test_a_word_that_is_not_there_is_refused(searching: Running) -> None:
    answer = searching.ask("/api/occurrences", {"model": "elmo", "text": "a cat", "word": "at"})
    assert (answer.status, answer.detail) == (422, "'at' is not a word of the text.")


def test_without_a_text_nothing_is_searched(server: Running) -> None:
    answer = server.ask("/api/occurrences", {"model": "elmo", "text": "a cat", "word": "cat"})
    assert answer.detail == "'elmo' has no text to search. None that is served here can."
