from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.serving.conftest import Running

import headstart.serving.computing as computing
from headstart.inspection.contexts import compare_contexts
from headstart.inspection.fill import fill
from headstart.inspection.neighbours import word_neighbours
from headstart.inspection.next_words import next_words
from headstart.inspection.score import score_all
from headstart.serving.models import Models
from headstart.tasks import TASKS, task_class
from headstart.text.tokenizer import WordTokenizer

TEXTS = ["the cat sat on the mat .", "a good film", "", "the dog saw the cat"]


def test_models_tell_what_they_can_do(server: Running) -> None:
    found = {one["name"]: one for one in server.ask("/api/models").json["models"]}
    assert set(found) == {"static", "elmo", "bert", *TASKS}
    assert {name: one["can"] for name, one in found.items() if name in ("static", "elmo", "bert")} == {
        "static": ["represent", "neighbours"],
        "elmo": ["represent", "next", "score"],
        "bert": ["represent", "fill", "attention", "score"],
    }
    for name in TASKS:
        assert (found[name]["can"], found[name]["asks"]) == (["predict"], list(task_class(name).asks))


@pytest.mark.parametrize("kind", ["static", "elmo", "bert"])
def test_vectors_are_those_of_represent(server: Running, served_models: Models, kind: str) -> None:
    pretrained = served_models.encoder(kind, "represent")
    whole = pretrained.represent(TEXTS)
    body = {"model": kind, "texts": TEXTS, "layers": "all", "pool": "words"}
    for found, text, vectors in zip(server.ask("/api/represent", body).json["texts"], TEXTS, whole, strict=True):
        assert found["words"] == pretrained.words(text)
        shape = (vectors.shape[1], vectors.shape[0], vectors.shape[2])
        assert np.allclose(np.array(found["vectors"]).reshape(shape), vectors.transpose(1, 0, 2), atol=1e-5)
    means = server.ask("/api/represent", {"model": kind, "texts": TEXTS}).json["texts"]
    for found, vectors in zip(means, whole, strict=True):
        mean = vectors[-1].mean(axis=0) if vectors.shape[1] else np.zeros(vectors.shape[2])
        assert np.allclose(found["vectors"], [mean], atol=1e-5)


def test_guesses_are_those_of_the_functions(server: Running, served_models: Models) -> None:
    bert, elmo = served_models.encoder("bert", "fill"), served_models.encoder("elmo", "next")
    static = served_models.encoder("static", "neighbours")
    text = "the [MASK] sat on the [MASK] ."
    found = server.ask("/api/fill", {"model": "bert", "text": text, "most": 3}).json["guesses"]
    assert [[one["word"] for one in guesses] for guesses in found] == [
        [guess.piece for guess in guesses] for guesses in fill(bert, text, 3)
    ]
    for backward in (False, True):
        body = {"model": "elmo", "text": "the cat", "most": 4, "backward": backward}
        (guesses,) = server.ask("/api/next", body).json["guesses"]
        expected = next_words(elmo, "the cat", 4, backward=backward)
        assert [one["word"] for one in guesses] == [guess.piece for guess in expected]
        assert [one["probability"] for one in guesses] == pytest.approx([guess.probability for guess in expected])
    assert isinstance(static.tokenizer, WordTokenizer)
    word = static.tokenizer.vocabulary.words[5]
    near = server.ask("/api/neighbours", {"model": "static", "word": word, "most": 2}).json["neighbours"]
    assert [one["word"] for one in near] == [one.word for one in word_neighbours(static, word, 2)]


@pytest.mark.parametrize("kind", ["elmo", "bert"])
def test_scores_are_those_of_the_function(server: Running, served_models: Models, kind: str) -> None:
    texts = [text for text in TEXTS if text]
    found = server.ask("/api/score", {"model": kind, "texts": texts}).json["scores"]
    expected = score_all(served_models.encoder(kind, "score"), texts)
    assert rounded(found) == rounded([line.score.as_table() for line in expected.lines])


def test_a_text_that_is_read_too_often_is_not_scored(
    server: Running, served_models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "the cat sat"
    pieces = score_all(served_models.encoder("bert", "score"), [text]).total.score.as_table()["pieces"]
    monkeypatch.setattr(computing, "MOST_SCORED_TOKENS", pieces * (pieces + 2) - 1)
    refused = server.ask("/api/score", {"model": "bert", "texts": [text]})
    assert (refused.status, refused.detail.startswith(f"A text has {pieces} pieces")) == (422, True)
    monkeypatch.setattr(computing, "MOST_SCORED_TOKENS", pieces * (pieces + 2))
    assert server.ask("/api/score", {"model": "bert", "texts": [text]}).status == 200


def test_contexts_are_those_of_every_encoder(server: Running, served_models: Models) -> None:
    first, second = "the cat sat", "a dog and a cat"
    found = server.ask("/api/contexts", {"first": first, "second": second}).json
    assert (found["word"], [one["model"] for one in found["models"]]) == ("cat", ["static", "elmo", "bert"])
    for one in found["models"]:
        expected = compare_contexts(served_models.encoder(one["model"], "represent"), first, second).cosines
        assert one["cosines"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_answers_as_its_model_does(server: Running, served_models: Models, name: str) -> None:
    model = served_models.task(name)
    inputs = [{asked: f"{text} {asked} ." for asked in model.task.asks} for text in ("Ada met Eve .", "a good film")]
    answer = server.ask("/api/predict", {"model": name, "inputs": inputs}).json
    assert (answer["task"], answer["truncated"]) == (name, 0)
    for given, lines in zip(inputs, answer["answers"], strict=True):
        examples = model.task.of_texts(given)
        expected = [model.task.as_json(*pair) for pair in zip(examples, model.answers(examples).answers, strict=True)]
        assert rounded(lines) == rounded(expected)


def rounded(value: Any) -> Any:
    """Numbers to four digits: other texts of a batch may change the last bits."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


def test_many_clients_at_once_get_what_one_gets(server: Running) -> None:
    bodies = [{"model": "classify", "inputs": [{"text": f"a good film {n % 7} " * (n % 5 + 1)}]} for n in range(40)]
    alone = [server.ask("/api/predict", body).json["answers"] for body in bodies]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda body: server.ask("/api/predict", body).json["answers"], bodies))
    assert rounded(together) == rounded(alone)


REFUSED = [
    ("/api/represent", {"model": "no", "texts": ["a"]}, 404, "No model called 'no'"),
    ("/api/represent", {"model": "bert"}, 422, "texts: Field required."),
    ("/api/represent", {"model": "bert", "texts": []}, 422, "texts: List should have at least 1 item"),
    ("/api/represent", {"model": "bert", "texts": ["a"], "layers": 50}, 422, "There is no layer 50"),
    ("/api/represent", {"model": "bert", "texts": ["a"], "lairs": 1}, 422, "lairs: Extra inputs are not permitted."),
    ("/api/represent", {"model": "bert", "texts": ["cat " * 3000]}, 422, "reads"),
    ("/api/represent", {"model": "bert", "texts": ["a"] * 65}, 422, "at most 64 are taken"),
    ("/api/represent", {"model": "bert", "texts": ["a" * 20_001]}, 422, "at most 20,000 are"),
    ("/api/fill", {"model": "elmo", "text": "a [MASK]"}, 422, "'elmo' cannot do 'fill'. Ask bert."),
    ("/api/fill", {"model": "bert", "text": "a"}, 422, "has no [MASK]"),
    ("/api/next", {"model": "bert", "text": "a"}, 422, "Ask elmo."),
    ("/api/next", {"model": "elmo", "text": " "}, 422, "has no word"),
    ("/api/score", {"model": "static", "texts": ["a"]}, 422, "Ask elmo or bert."),
    ("/api/score", {"model": "elmo", "texts": ["the cat", " "]}, 422, "no word in the text"),
    ("/api/score", {"model": "bert", "texts": ["the cat", "cat " * 3000]}, 422, "Split it."),
    ("/api/neighbours", {"model": "static", "word": "zzzzzz"}, 422, "not in the vocabulary"),
    ("/api/predict", {"model": "bert", "inputs": [{"text": "a"}]}, 422, "predicts nothing. Ask classify or"),
    ("/api/predict", {"model": "pair", "inputs": [{"text": "a"}]}, 422, "wanted first and second"),
    ("/api/predict", {"model": "qa", "inputs": [{"question": "a", "context": ""}]}, 422, "the context is empty"),
    ("/api/predict", [1], 422, "the body: Input should be a valid dictionary"),
    ("/api/contexts", {"first": "a", "second": "b"}, 422, "no word in common"),
    ("/api/nothing", {}, 404, "Not Found."),
    ("/api/predict", None, 405, "Method Not Allowed."),
]


@pytest.mark.parametrize(("path", "body", "status", "sentence"), REFUSED, ids=str)
def test_what_is_refused_is_told_in_a_sentence(
    server: Running, path: str, body: object, status: int, sentence: str
) -> None:
    answer = server.ask(path, body)
    assert answer.status == status
    assert sentence in answer.detail
    assert "\n" not in answer.detail


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b"\xff", b'{"model": "\\ud800", "texts": ["a"]}', b"nan"])
def test_what_is_no_json_is_refused(server: Running, body: bytes) -> None:
    answer = server.ask("/api/represent", body)
    assert 400 <= answer.status < 500
    assert answer.detail


def test_a_character_that_utf8_cannot_hold_is_refused(server: Running) -> None:
    answer = server.ask("/api/represent", b'{"model": "bert", "texts": ["a \\ud800 b"]}')
    assert (answer.status, "texts.0" in answer.detail) == (422, True)


def test_the_schema_names_every_route(server: Running) -> None:
    paths = server.ask("/openapi.json").json["paths"]
    assert {
        f"/api/{name}" for name in ("models", "represent", "neighbours", "fill", "next", "score", "predict")
    } <= set(paths)
