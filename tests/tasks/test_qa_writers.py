import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from headstart.errors import DataError
from headstart.tasks.answer_search import Answered
from headstart.tasks.qa_inputs import read_unanswered
from headstart.tasks.qa_scores import exact_match, f1, normalised
from headstart.tasks.qa_writers import AnswerLines, AnswerView, SquadPredictions
from headstart.tasks.questions import Question
from headstart.tasks.squad import QaInputConfig, read_questions

DATA = Path(__file__).parents[3] / "shared" / "data"
REAL = sorted([*DATA.glob("squad/*.json.gz"), *DATA.glob("squadshifts/*.json.gz")])
TASK: Any = None  # these writers ask nothing of it
NOTHING = Answered("", -1, -1, 0.75, 1.0, 1.0, ())
PIECES = ["é", "e\u0301", "ﬁ", "🙂", "\t", "\r\n", "\u2028", "\x1b[2J", '"', "\\", " ", "word", "\u00a0"]


def answered(context: str, start: int, end: int, probability: float = 0.5) -> Answered:
    return Answered(context[start:end], start, end, probability, 0.0, None, ())


def pairs_of(number: int, seed: int = 0) -> list[tuple[Question, Answered]]:
    rng = random.Random(seed)
    pairs = []
    for id in range(number):
        context = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 90))) + "end"
        start = rng.randrange(len(context) - 2)
        end = rng.randint(start + 1, len(context))
        pairs.append((Question(f"é\n{id}", f"Who\t{id}?", context), answered(context, start, end)))
    return pairs


@pytest.mark.parametrize("sizes", [[], [0], [1], [1, 1], [3, 0, 2], [0, 1, 0]])
def test_predictions_are_one_json_object_whatever_the_chunks(sizes):
    pairs, writer = pairs_of(sum(sizes)), SquadPredictions(TASK)
    text, done = writer.begin(), 0
    for size in sizes:
        text += writer.lines(pairs[done : done + size])
        done += size
    text += writer.end()
    assert text.endswith("}\n")
    assert json.loads(text) == {question.id: answer.text for question, answer in pairs}
    text.encode("utf-8")


def test_an_open_question_is_an_empty_prediction():
    writer = SquadPredictions(TASK)
    assert json.loads(writer.begin() + writer.lines([(Question("1", "?", "x"), NOTHING)]) + writer.end()) == {"1": ""}


def test_an_id_is_predicted_once():
    writer, question = SquadPredictions(TASK), Question("1", "?", "x", where="a.jsonl:2")
    writer.lines([(question, NOTHING)])
    with pytest.raises(DataError, match=r"a\.jsonl:2: the id '1'.*Give each question its own"):
        writer.lines([(question, NOTHING)])


def test_tab_separated_lines():
    question = Question("1", "Who\tis\r\nit?", "x\ny z")
    found = AnswerLines(TASK).lines([(question, answered("x\ny z", 0, 3)), (question, NOTHING)])
    assert found == "x y\t0.5000\tWho is it?\n\t0.7500\tWho is it?\n"


def test_a_blank_line_gets_an_empty_one():
    assert AnswerLines(TASK).lines([(Question("1", "", "x y"), NOTHING)]) == "\t\t\n"


@pytest.mark.parametrize("seed", range(20))
def test_rows_stay_rows(seed):
    pairs = pairs_of(5, seed)
    rows = AnswerLines(TASK).lines(pairs).split("\n")
    assert [row.count("\t") for row in rows] == [2] * 5 + [0]
    view = AnswerView(TASK).lines(pairs)
    assert "\x1b" not in view
    assert len(view.splitlines()) == 15


LONG = "zero " * 30 + "Rome\nItaly" + " nine" * 30


def test_the_view_shows_the_answer_in_its_context(monkeypatch):
    start = LONG.index("Rome")
    pairs = [(Question("1", "Where\nis it?", LONG), answered(LONG, start, start + 10, 0.8125))]
    left, right = "zero " * 10, " nine" * 10
    expected = f"Where is it?\n  …{left}{{}}Rome Italy{{}}{right}…  (81.2 %)\n\n"
    assert AnswerView(TASK).lines(pairs) == expected.format("[", "]")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert AnswerView(TASK).lines(pairs) == expected.format("\x1b[1;7m", "\x1b[0m")


def test_the_view_cuts_between_words():
    context = "a" * 30 + " " + "b" * 45 + " Rome " + "c" * 45 + " " + "d" * 30
    start = context.index("Rome")
    view = AnswerView(TASK).lines([(Question("1", "?", context), answered(context, start, start + 4))])
    assert view.splitlines()[1] == f"  …{'b' * 45} [Rome] {'c' * 45}…  (50.0 %)"
    whole = AnswerView(TASK).lines([(Question("1", "?", "Rome"), answered("Rome", 0, 4))])
    assert whole == "?\n  [Rome]  (50.0 %)\n\n"


def test_the_view_of_no_answer():
    assert AnswerView(TASK).lines([(Question("1", "Why?", "x"), NOTHING)]) == "Why?\n  no answer  (75.0 %)\n\n"


def test_there_is_real_data() -> None:
    if not REAL:
        pytest.skip("shared/data/squad is not there")
    assert len(REAL) == 4


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_gold_answers_of_real_files_are_written_whole_and_score_1(path):
    config = QaInputConfig()
    labelled = {question.id: question for question in read_questions(path, config).questions}
    pairs = []
    for question in read_unanswered(str(path), config):
        # A few of the published answers are "." or ":)", which the scorers normalise to nothing.
        gold = [gold for gold in labelled[question.id].answers or () if normalised(gold.text)][-1]
        pairs.append((question, answered(question.context, gold.start, gold.start + len(gold.text))))
    writer = SquadPredictions(TASK)
    predicted = json.loads(writer.begin() + writer.lines(pairs[:100]) + writer.lines(pairs[100:]) + writer.end())
    assert list(predicted) == list(labelled)
    golds = {id: [gold.text for gold in question.answers or ()] for id, question in labelled.items()}
    assert all(exact_match(predicted[id], golds[id]) == f1(predicted[id], golds[id]) == 1 for id in predicted)
    assert len(AnswerLines(TASK).lines(pairs).splitlines()) == len(pairs)
    assert len(AnswerView(TASK).lines(pairs).splitlines()) == 3 * len(pairs)
