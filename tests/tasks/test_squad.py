import gzip
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from headstart.errors import DataError
from headstart.tasks.questions import GoldAnswer, Question, QuestionFile, mixed_versions
from headstart.tasks.squad import QaInputConfig, question_line, read_questions, squad_json

DATA = Path(__file__).parents[3] / "shared" / "data"
REAL = sorted([*DATA.glob("squad/*.json.gz"), *DATA.glob("squadshifts/*.json.gz")])
CONTEXT = "Rome is old. Rome is in Italy."
PIECES = [
    "é",
    "e\u0301",
    "ﬁ",
    "🙂",
    "👩\u200d👧",
    "\t",
    "\r\n",
    "\n",
    " ",
    "\u00a0",
    "\u2028",
    "“",
    "ß",
    "İ",
    "a",
    "the",
    "  ",
]


def write(path: Path, content: Any) -> Path:
    """content: bytes, text, or a value for JSON."""
    if not isinstance(content, str | bytes):
        content = json.dumps(content)
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def document(*asked: Any, context: str = CONTEXT, **more: Any) -> dict[str, Any]:
    return {"version": "1.1", "data": [{"title": "Rome", "paragraphs": [{"context": context, "qas": asked}]}], **more}


def entry(id: str, *answers: tuple[str, int], **more: Any) -> dict[str, Any]:
    given = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": id, "question": f"What is {id}?", "answers": given, **more}


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def read(path: Path, content: Any, **config: Any) -> QuestionFile:
    return read_questions(write(path, content), QaInputConfig(**config))


def refused(path: Path, content: Any, *parts: str, **config: Any) -> None:
    """Reading fails with one message that has all these parts."""
    with pytest.raises(DataError) as caught:
        read(path, content, **config)
    message = str(caught.value)
    assert all(part in message for part in (str(path), *parts)), message
    assert "\n" not in message
    assert message.endswith((".", f"UTF-8 {path.name}"))  # a sentence, or the command that converts the file


def generated(rng: random.Random, number: int) -> Question:
    """A question about a context of marks of every length, with answers that start anywhere."""
    context = "".join(rng.choice(PIECES) for _ in range(rng.randint(5, 60))) + "x"
    answers = []
    for _ in range(rng.randint(0, 3)):
        start = rng.randrange(len(context))
        text = context[start : start + rng.randint(1, 9)]
        answers += [GoldAnswer(text, start)] if text.strip() else []
    return Question(f"é{number}", f"{rng.choice(PIECES)}who?\n", context, tuple(answers), title=f"T{number // 4}")


# --- what is read -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "A.JSON"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_squad_files(tmp_path, name, mark):
    found = read(
        tmp_path / name, mark + json.dumps(document(entry("1", ("Rome", 13), ("Rome", 0)), entry("2", ("old", 8))))
    )
    assert found.version == "1.1"
    assert found.skipped == []
    assert found.questions == [
        Question("1", "What is 1?", CONTEXT, (GoldAnswer("Rome", 13), GoldAnswer("Rome", 0))),
        Question("2", "What is 2?", CONTEXT, (GoldAnswer("old", 8),)),
    ]
    assert {question.title for question in found.questions} == {"Rome"}
    assert found.questions[1].where == f"{tmp_path / name}, question '2'"


def test_questions_without_answer_make_it_version_2(tmp_path):
    plausible = {"plausible_answers": [{"text": "not there", "answer_start": 99}]}
    impossible = [
        entry("1", is_impossible=True, **plausible),
        entry("2"),
        {"id": "3", "question": "Why?", "is_impossible": True},
    ]
    found = read(tmp_path / "a.json", document(*impossible, entry("4", ("old", 8), is_impossible=False)))
    assert [question.answers for question in found.questions] == [(), (), (), (GoldAnswer("old", 8),)]
    assert found.version == "2.0"


@pytest.mark.parametrize(
    ("said", "version"), [("v2.0", "2.0"), ("2.0", "2.0"), (2.0, "2.0"), ("1.0", "1.1"), (None, "1.1")]
)
def test_the_version_that_a_file_says(tmp_path, said, version):
    assert read(tmp_path / "a.json", document(entry("1", ("old", 8)), version=said)).version == version


ROME = (GoldAnswer("Rome", 0),)
FORMS = [
    ([{"text": "Rome", "answer_start": 0}], ROME),
    ({"text": "Rome", "answer_start": 0}, ROME),
    ({"text": ["Rome", "Rome"], "answer_start": [13, 0]}, (GoldAnswer("Rome", 13), *ROME)),
    (["Rome", "in Italy"], (*ROME, GoldAnswer("in Italy", 21))),
    (["Rome", {"text": "Rome", "answer_start": 13}], (*ROME, GoldAnswer("Rome", 13))),
    ("Rome", ROME),
    ([], ()),
    ({"text": [], "answer_start": []}, ()),
    (None, ()),
]


@pytest.mark.parametrize(("given", "answers"), FORMS)
@pytest.mark.parametrize("field", ["answers", "answer"])
def test_the_forms_of_answers_in_json_lines(tmp_path, given, answers, field):
    record = {"context": CONTEXT, "question": "Which?", field: given}
    found = read(tmp_path / "a.jsonl.gz", f"\n{lines(record)}\n")
    assert found == QuestionFile([Question("line 2", "Which?", CONTEXT, answers)], "1.1" if answers else "2.0", [])


def test_keys_of_json_lines(tmp_path):
    for name in ("context", "passage", "text"):
        record = {"extra": 1, name: CONTEXT, "question": "Which?", "answer": "old", "id": 7}
        assert read(tmp_path / "a.jsonl", lines(record)).questions[0].id == "7"
    named = {"context": "", "body": CONTEXT, "q": "Which?", "a": "old"}
    fields = {"context_field": "body", "question_field": "q", "answers_field": "a"}
    assert read(tmp_path / "a.jsonl", lines(named), **fields).questions[0].context == CONTEXT


def test_ids_that_are_missing_are_places_in_the_file(tmp_path):
    asked = [{"question": "Who?", "answers": []}, {"question": "What?", "answers": [], "id": None}]
    found = read(tmp_path / "a.json", document(*asked)).questions
    assert [question.id for question in found] == ["question 1", "question 2"]
    assert found[1].where.endswith("article 1, paragraph 1, question 2")


def test_lone_surrogates_are_replaced_in_place(tmp_path):
    raw = json.dumps(document(entry("1", ("\ud800b", 1)), context="a\ud800b 🙂"))
    assert read(tmp_path / "a.json", raw).questions[0].answers == (GoldAnswer("\ufffdb", 1),)


# --- there and back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_every_character_keeps_its_place(tmp_path, seed):
    rng = random.Random(seed)
    questions = [generated(rng, number) for number in range(8)]
    for version in ("1.1", "2.0"):
        found = read(tmp_path / "a.json", squad_json(questions, version)).questions
        assert found == questions
        assert [question.title for question in found] == [question.title for question in questions]
    text = "".join(json.dumps(question_line(question), ensure_ascii=False) + "\n" for question in questions)
    assert read(tmp_path / "a.jsonl", text).questions == questions


def test_there_is_real_data() -> None:
    if not REAL:
        pytest.skip("shared/data/squad is not there")
    assert len(REAL) == 4


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_files_are_read_and_written_without_loss(tmp_path, path):
    found = read_questions(path, QaInputConfig())
    assert (found.version, found.skipped) == ("1.1", [])
    with gzip.open(path, "rt", encoding="utf-8") as file:
        expected = [{"title": a["title"], "paragraphs": a["paragraphs"]} for a in json.load(file)["data"]]
    assert squad_json(found.questions, found.version)["data"] == expected
    text = lines(*map(question_line, found.questions))
    assert read(tmp_path / "a.jsonl", text) == found


# --- bad answers ------------------------------------------------------------------------------------------------------

BAD = [
    (("Rome", 1), ["'Rome' is not at character 1", "where 'ome ' stands", "it occurs at character 0"]),
    (("Rome", -17), ["at character -17", "which has 30 characters"]),
    (("Rome", 300), ["at character 300", "which has 30 characters"]),
    (("Paris", 0), ["where 'Rome ' stands", "does not occur anywhere"]),
    (("", 0), ["an answer is empty", "an empty list of answers"]),
    ((" ", 4), ["an answer is empty"]),
]


@pytest.mark.parametrize(("bad", "parts"), BAD)
def test_an_answer_that_is_not_in_its_context(tmp_path, bad, parts):
    content = document(entry("good", ("old", 8)), entry("bad", bad), entry("half", ("Rome", 0), bad))
    refused(tmp_path / "a.json", content, "question 'bad' ('What is bad?')", *parts, "--skip-bad")
    found = read(tmp_path / "a.json", content, skip_bad=True)
    assert [question.id for question in found.questions] == ["good", "half"]
    assert found.questions[1].answers == ROME
    assert found.version == "1.1"
    assert len(found.skipped) == 1
    assert all(part in found.skipped[0] for part in parts)
    refused(tmp_path / "a.json", document(entry("half", ("Rome", 0), bad)), "question 'half'", "--skip-bad")


def test_a_long_question_is_named_by_its_beginning(tmp_path):
    record = {"context": CONTEXT, "question": "Which of them " * 50, "answers": ["Paris"]}
    refused(tmp_path / "a.jsonl", lines(record), " ('Which of them ", " them…'): the answer 'Paris' does not occur")


def test_a_text_that_does_not_occur(tmp_path):
    record = {"context": CONTEXT, "question": "Which?", "answers": ["Rome", "rome"]}
    refused(tmp_path / "a.jsonl", lines(record), "a.jsonl:1", "'rome' does not occur in the context", "--skip-bad")
    assert read(tmp_path / "a.jsonl", lines(record), skip_bad=True).questions[0].answers == ROME


def test_nothing_is_left(tmp_path):
    refused(
        tmp_path / "a.json", document(entry("1", ("x", 0))), "holds no question", "all 1 were left out", skip_bad=True
    )


# --- bad files --------------------------------------------------------------------------------------------------------

WRONG = [
    ("", "is empty"),
    ("  \n", "is empty"),
    (json.dumps(document(entry("1", ("old", 8))))[:-20], "not JSON", "cut short"),
    (lines({"a": 1}, {"a": 2}), "not JSON", ".jsonl"),
    ([1], "expected a JSON object with 'data'", "[1]"),
    ({"version": "1.1"}, "has no 'data'", "there are: version"),
    ({"data": {}}, "'data' must be a list", "{}"),
    ({"data": []}, "holds no question"),
    ({"data": ["x"]}, "article 1", "expected a JSON object with 'paragraphs'", "'x'"),
    ({"data": [{"title": "x"}]}, "article 1", "has no 'paragraphs'"),
    ({"data": [{"paragraphs": [{"qas": []}]}]}, "article 1, paragraph 1", "has no 'context'"),
    ({"data": [{"paragraphs": [{"context": 3, "qas": []}]}]}, "'context' must be text", "3"),
    ({"data": [{"paragraphs": [{"context": "x"}]}]}, "has no 'qas'"),
    (document("x"), "paragraph 1, question 1", "with 'question'"),
    (document({"id": "1", "answers": []}), "has no 'question'", "there are: id, answers"),
    (document({"id": "1", "question": "Who?"}), "question '1'", "has no 'answers'", "predict"),
    (document(entry("1"), context=" \n"), "question '1'", "the context is empty"),
    (document({"id": "1", "question": "\t", "answers": []}), "question '1'", "the question is empty"),
    (document({"id": 1.5, "question": "x", "answers": []}), "'id' must be text or a whole number", "1.5"),
    (document({"id": "1", "question": "x", "answers": 3}), "'answers' must be a list", "3"),
    (document({"id": "1", "question": "x", "answers": [3]}), "with 'text'", "3"),
    (document({"id": "1", "question": "x", "answers": [{"text": "Rome"}]}), "has no 'answer_start'"),
    (document(entry("1", ("Rome", "0"))), "'answer_start' must be a whole number", "'0'"),
    (document(entry("1", ("Rome", 0.0))), "'answer_start' must be a whole number"),
    (document(entry("1", ("Rome", False))), "'answer_start' must be a whole number"),
    (document({"id": "1", "question": "x", "answers": {"text": ["a"], "answer_start": []}}), "1 answers have 0 values"),
    (document(entry("1", ("Rome", 0), is_impossible=True)), "'is_impossible' is true", "'Rome'"),
    (document(entry("1", is_impossible="no")), "'is_impossible' must be true or false", "'no'"),
    (document(entry("1"), entry("2"), entry("1")), "question 3: has the id '1'", "paragraph 1, question 1 has, too"),
    (b"\xff\xfe{\x00", "UTF-16"),
    (b'{"a": "\xe9"}', "not UTF-8"),
]


@pytest.mark.parametrize(("content", "parts"), [(content, parts) for content, *parts in WRONG])
def test_squad_files_that_are_wrong(tmp_path, content, parts):
    refused(tmp_path / "a.json", content, *parts)


GOOD_LINE = {"context": CONTEXT, "question": "Which?", "answers": []}
WRONG_LINES = [
    ("", "holds no question"),
    ("\n\n", "holds no question"),
    ("plain\n", "a.jsonl:1: not JSON"),
    ("[1]\n", "a.jsonl:1: expected a JSON object"),
    (lines({"question": "x", "answers": []}), "'context' or 'passage' or 'text'", "--context-field"),
    (lines({"context": "x", "answers": []}), "'question'", "--question-field"),
    (lines({"context": "x", "question": "x"}), "'answers' or 'answer'", "--answers-field"),
    (lines(GOOD_LINE, {"context": "x", "question": "x"}), "a.jsonl:2: has no key 'answers'", "Every line"),
    (lines({**GOOD_LINE, "context": ["x"]}), "'context' must be text", "--context-field"),
    (lines({**GOOD_LINE, "question": None}), "a.jsonl:1", "the question is empty"),
    (lines({**GOOD_LINE, "id": "1"}, {**GOOD_LINE, "id": 1}), "a.jsonl:2: has the id '1', which", "a.jsonl:1 has, too"),
    (lines(document(entry("1"))), "whole SQuAD file", ".json"),
]


@pytest.mark.parametrize(("content", "parts"), [(content, parts) for content, *parts in WRONG_LINES])
def test_json_lines_that_are_wrong(tmp_path, content, parts):
    refused(tmp_path / "a.jsonl", content, *parts)


def test_other_files(tmp_path):
    refused(tmp_path / "a.csv", "a,b\n", "files of this kind", ".json, .json.gz, .jsonl, .jsonl.gz")
    for name in ("none.json", "none.jsonl"):
        with pytest.raises(DataError, match=f"{name}: cannot be read"):
            read_questions(tmp_path / name, QaInputConfig())
    packed = gzip.compress(json.dumps(document(entry("1"))).encode())[:-12]
    (tmp_path / "cut.json.gz").write_bytes(packed)
    with pytest.raises(DataError, match="damaged or cut short"):
        read_questions(tmp_path / "cut.json.gz", QaInputConfig())


def test_one_key_is_not_for_two_things(tmp_path):
    with pytest.raises(ValidationError, match="must differ"):
        QaInputConfig(context_field="a", question_field="a")
    refused(tmp_path / "a.jsonl", lines(GOOD_LINE), "three keys", context_field="question")


# --- two files --------------------------------------------------------------------------------------------------------


def test_training_and_validation_questions_of_one_kind():
    answered = Question("1", "?", "x", (GoldAnswer("x", 0),))
    none = replace(answered, answers=(), where="dev.json, question '9'")
    assert mixed_versions([answered], [answered]) is None
    assert mixed_versions([answered, none], [none]) is None
    notice = mixed_versions([answered, none], [answered])
    assert notice is not None
    assert notice.startswith("1 of the 2 training questions")
    with pytest.raises(DataError, match=r"dev\.json, question '9': has no answer, as 1 of the 2 validation.*Train on"):
        mixed_versions([answered], [answered, none])
