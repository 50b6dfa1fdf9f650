import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from headstart.errors import DataError
from headstart.tasks.qa_inputs import questions_about, read_context, read_unanswered
from headstart.tasks.questions import GoldAnswer, Question
from headstart.tasks.squad import QaInputConfig, question_line, squad_json

RECORD = {"n": [1], "context": "Rome\r\n is é old.\t", "question": "How old?", "answers": "ignored"}


def write(path: Path, content: Any) -> Path:
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read(source: Path | str, **config: Any) -> list[Question]:
    return list(read_unanswered(str(source), QaInputConfig(**config)))


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def pipe(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.txt", "questions", "-"])
def test_json_lines_keep_their_other_keys(tmp_path, monkeypatch, name):
    content = "\ufeff\n" + lines(RECORD, {**RECORD, "id": "x"}, {**RECORD, "id": "x"})
    pipe(monkeypatch, content)
    found = read("-" if name == "-" else write(tmp_path / name, content))
    assert [question.id for question in found] == ["line 2", "x", "x"]
    assert found[0] == Question("line 2", "How old?", str(RECORD["context"]))
    assert found[0].record == RECORD
    where = "standard input" if name == "-" else str(tmp_path / name)
    assert [question.where for question in found] == [
        f"{where}:2",
        f"{where}:3, question 'x'",
        f"{where}:4, question 'x'",
    ]


def test_lines_are_answered_as_they_come(tmp_path):
    found = read_unanswered(str(write(tmp_path / "a.jsonl", lines(RECORD) + "oh\n")), QaInputConfig())
    assert next(found).question == "How old?"
    with pytest.raises(DataError, match=r"a\.jsonl:2"):
        next(found)


@pytest.mark.parametrize("answers", [None, (), (GoldAnswer("not there", 3),)])
def test_squad_files_with_and_without_answers(tmp_path, answers):
    questions = [Question(id, "Who?", "e\u0301 🙂", answers) for id in "ab"]
    content = json.dumps(squad_json(questions, "2.0"))
    assert read(write(tmp_path / "a.json.gz", content)) == [Question(id, "Who?", "e\u0301 🙂") for id in "ab"]
    assert read(write(tmp_path / "b.json", '{"data": []}')) == []


def test_a_question_without_label_is_read_back_equal(tmp_path):
    question = Question("7", "Who?", "ﬁ\r\n\t🙂 x")
    assert read(write(tmp_path / "a.jsonl", lines(question_line(question)))) == [question]


def test_keys_can_be_named(tmp_path):
    path = write(tmp_path / "a.jsonl", lines({"body": "x", "ask": "y"}))
    assert read(path, context_field="body", question_field="ask") == [Question("line 1", "y", "x")]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (
            "Who is it?\n",
            [":1: expected a JSON object", "'Who is it?'", '{"context": "...", "question": "..."}', "--context FILE"],
        ),
        (lines(RECORD) + "\nWho?\n", [":3: expected a JSON object", "--question"]),
        ("[1]\n", [":1: expected a JSON object"]),
        ('{"context": "x",\n', [":1: not JSON"]),
        (lines({"question": "x"}), [":1", "'context' or 'passage' or 'text'", "--context-field"]),
        (lines({"context": "x"}), [":1", "'question'", "--question-field"]),
        (lines(RECORD, {"question": "x"}), [":2: has no key 'context'", "there are: question"]),
        (lines({**RECORD, "question": " "}), [":1: the question is empty"]),
        (lines({**RECORD, "context": None}), [":1: the context is empty"]),
        (lines({**RECORD, "context": 3}), [":1: 'context' must be text", "--context-field"]),
        (lines({"data": []}), ["whole SQuAD file", ".json"]),
    ],
)
@pytest.mark.parametrize("name", ["a.jsonl", "-"])
def test_lines_that_are_wrong(tmp_path, monkeypatch, content, parts, name):
    pipe(monkeypatch, content)
    with pytest.raises(DataError) as caught:
        read("-" if name == "-" else write(tmp_path / name, content))
    assert all(part in str(caught.value) for part in parts), str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_wrong(tmp_path):
    with pytest.raises(DataError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(DataError, match=r"none\.jsonl: cannot be read"):
        read(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="has no 'data'"):
        read(write(tmp_path / "a.json", "{}"))
    twice = squad_json([Question("1", "a", "x"), Question("1", "b", "x")], "1.1")
    with pytest.raises(DataError, match="has the id '1'"):
        read(write(tmp_path / "a.json", json.dumps(twice)))


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_a_context_is_read_exactly(tmp_path, name):
    text = " é e\u0301\r\n\rﬁ\u2028🙂\t\n\n"
    assert read_context(write(tmp_path / name, "\ufeff" + text)) == text


def test_contexts_that_are_wrong(tmp_path):
    for content in ("", " \n"):
        with pytest.raises(DataError, match=r"a\.txt: is empty"):
            read_context(write(tmp_path / "a.txt", content))
    with pytest.raises(DataError, match=r"a\.txt:2: not UTF-8"):
        read_context(write(tmp_path / "a.txt", b"x\n\xe9"))
    with pytest.raises(DataError, match="cannot be read"):
        read_context(tmp_path / "none.txt")


def test_questions_about_one_context():
    found = list(questions_about("x\r\n", ["Who?", "\udce9?"], "a.txt"))
    assert found == [Question("question 1", "Who?", "x\r\n"), Question("question 2", "\ufffd?", "x\r\n")]
    assert found[1].where == "a.txt, question 2"
    with pytest.raises(DataError, match=r"a\.txt, question 2: the question is empty"):
        list(questions_about("x", ["Who?", ""], "a.txt"))
