"""Question answering through the command line: files, one text with questions, a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headstart.tasks.squad import question_line, squad_json

FAST = ["--seeds", "1", "--quiet", "--set", "network.width=16", "--set", "fitting.batch=5", "--set=fitting.epochs=0.1"]
FIT = [*FAST, "--set", "fitting.min_steps=150", "--set", "fitting.learning_rate=0.02"]
PROMPT = "question> "


@pytest.fixture(scope="module")
def questions(tiny_examples: dict[str, list[Any]]) -> list[Any]:
    return tiny_examples["qa"]


@pytest.fixture(scope="module")
def answers(questions: list[Any]) -> list[str]:
    return [question.answers[0].text for question in questions]


@pytest.fixture(scope="module")
def unanswerable(questions: list[Any]) -> list[Any]:
    """The same questions about a context that does not answer them."""
    return [replace(q, id=f"no {q.id}", context="old songs remembers .", answers=()) for q in questions]


def write_squad(path: Path, questions: list[Any], version: Any = "1.1") -> Path:
    path.write_text(json.dumps(squad_json(questions, version)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def squad(questions: list[Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_squad(tmp_path_factory.mktemp("squad") / "squad.json", questions)


@pytest.fixture(scope="module")
def run(cli, squad: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows the ten questions, made by the command itself."""
    out = tmp_path_factory.mktemp("qa") / "run"
    done = cli("transfer", "qa", "--train", squad, "--dev", squad, "--out", out, *FIT)
    assert "dev F1 100.0 %" in done.stdout
    assert "exact match 100.0 %" in done.stdout
    assert done.stderr == ""
    return out


@pytest.fixture(scope="module")
def run_2(cli, questions, unanswerable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that also knows when there is no answer."""
    folder = tmp_path_factory.mktemp("qa2")
    both = write_squad(folder / "both.json", [*questions, *unanswerable], "2.0")
    assert (
        "dev F1 100.0 %" in cli("transfer", "qa", "--train", both, "--dev", both, "--out", folder / "run", *FIT).stdout
    )
    return folder / "run"


@pytest.fixture
def text(questions: list[Any], tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(questions[0].context, encoding="utf-8")
    return path


def answers_in(shown: str) -> list[str]:
    return [line.split("\t")[0] for line in shown.splitlines()]


def objects(shown: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shown.splitlines()]


# --- files ------------------------------------------------------------------------------------------------------------


def test_evaluate_also_writes_predictions_without_answering_twice(
    cli, run: Path, squad: Path, questions: list[Any], answers: list[str], tmp_path: Path, monkeypatch
) -> None:
    from headstart.transfer.task_model import TaskModel

    asked: list[int] = []
    answering = TaskModel.answers

    def counted(self: Any, examples: Any) -> Any:
        asked.append(len(examples))
        return answering(self, examples)

    monkeypatch.setattr(TaskModel, "answers", counted)
    path = tmp_path / "new" / "predictions.json"
    assert cli("evaluate", run, "--data", squad, "--predictions", path).stdout == (
        "10 questions: F1 100.0 %, exact match 100.0 %\n"
    )
    assert asked == [10]
    by_id = {question.id: answer for question, answer in zip(questions, answers, strict=True)}
    assert json.loads(path.read_text(encoding="utf-8")) == by_id
    assert [path.name for path in path.parent.iterdir()] == ["predictions.json"]
    again = tmp_path / "predict.json"
    shown = cli("predict", run, "--in", squad, "--to", "squad", "--predictions", again).stdout
    assert shown == again.read_text(encoding="utf-8") == path.read_text(encoding="utf-8")
    found = json.loads(cli("evaluate", run, "--data", squad, "--json").stdout)
    assert (found["examples"], found["f1"], found["exact_match"]) == (10, 1.0, 1.0)


def test_every_candidate_stands_where_it_says(cli, run: Path, questions: list[Any], answers: list[str]) -> None:
    given = "".join(json.dumps(question_line(question) | {"note": 1}) + "\n" for question in questions)
    found = objects(cli("predict", run, "--json", input=given).stdout)
    assert [one["answer"] for one in found] == answers
    assert [(one["id"], one["note"]) for one in found] == [(question.id, 1) for question in questions]
    for one, question in zip(found, questions, strict=True):
        assert one["best"][0]["answer"] == one["answer"]
        assert sum(each["probability"] for each in one["best"]) <= 1.001
        for each in (one, *one["best"]):
            assert question.context[each["start"] : each["end"]] == each["answer"]


def test_keys_are_named_for_every_command(cli, questions: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    lines = [{"body": q.context, "ask": q.question, "gold": q.answers[0].text} for q in questions]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    inputs = ["--context-field", "body", "--question-field", "ask"]
    named = [*inputs, "--answers-field", "gold"]
    few = ["--set", "fitting.min_steps=2"]
    cli("transfer", "qa", "--train", path, "--dev", path, "--out", tmp_path / "run", *named, *FAST, *few)
    assert cli("evaluate", tmp_path / "run", "--data", path, *named).stdout.startswith("10 questions: F1 ")
    assert len(answers_in(cli("predict", tmp_path / "run", "--in", path, *inputs).stdout)) == 10
    assert "Name the right one with --context-field" in cli.refusal("predict", tmp_path / "run", "--in", path)


def test_lengths_of_a_run_can_be_overridden(cli, squad: Path, tmp_path: Path, run: Path) -> None:
    """As settings of `transfer` they are saved; for `evaluate` they count once."""
    out, few = tmp_path / "run", ["--set", "fitting.min_steps=2"]
    cli(
        "transfer", "qa", "--train", squad, "--dev", squad, "--out", out, *FAST, *few, "--longest", "9", "--stride", "3"
    )
    saved = (out / "config.toml").read_text(encoding="utf-8")
    assert "longest = 9\n" in saved
    assert "stride = 3\n" in saved
    before = cli("evaluate", run, "--data", squad).stdout
    assert "10 questions were longer than what the model reads; the end of each was left out." in (
        cli("evaluate", run, "--data", squad, "--longest", "2", "--stride", "1").stdout
    )
    assert cli("evaluate", run, "--data", squad).stdout == before


def test_questions_without_answer(cli, run_2: Path, questions, unanswerable, tmp_path: Path) -> None:
    data = write_squad(tmp_path / "dev.json", [questions[0], *unanswerable], "2.0")
    shown = cli("evaluate", run_2, "--data", data, "--predictions", tmp_path / "p.json").stdout
    assert "11 questions: F1 100.0 %" in shown
    assert json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))["no q0"] == ""
    (tmp_path / "text.txt").write_text(unanswerable[0].context, encoding="utf-8")
    asked = ["--context", tmp_path / "text.txt", "--question", unanswerable[0].question]
    assert "\n  no answer  (" in cli("predict", run_2, *asked, "--to", "view").stdout
    (found,) = objects(cli("predict", run_2, *asked, "--json").stdout)
    assert (found["answer"], found["start"], found["end"]) == ("", None, None)
    assert found["probability"] == found["no_answer_probability"] > 0.5


def test_a_bert_from_elsewhere_is_told_that_questions_may_have_no_answer(
    cli, questions, unanswerable, pretrained_runs: dict[str, Path], run: Path, tmp_path: Path
) -> None:
    """Its files do not tell whether it was trained on SQuAD 2.0, so that it answers every question until then."""
    both = write_squad(tmp_path / "both.json", [*questions, *unanswerable], "2.0")
    own, folder = tmp_path / "own", tmp_path / "hf"
    given = ["--train", both, "--dev", both, "--from", pretrained_runs["bert"], "--how", "finetune", "--out", own]
    cli("transfer", "qa", *given, *FAST, "--set", "fitting.min_steps=2")
    cli("export", own, "--to", "hf", "--out", folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if k != "headstart"}))
    assert "from elsewhere that was trained on both, give --no-answer-threshold 0." in (
        cli.refusal("evaluate", folder, "--data", both)
    )
    for threshold in ("-1e9", "0", "1e9"):
        asked = ["--data", both, "--no-answer-threshold", threshold]
        shown = cli("evaluate", folder, *asked, "--longest", "384").stdout
        assert shown == cli("evaluate", own, *asked).stdout
        assert ("NoAns        100.0 %" in shown) == (threshold == "-1e9") or threshold == "0"
    never = cli("predict", folder, "--in", both, "--no-answer-threshold", "-1e9").stdout
    assert set(answers_in(never)) == {""}
    assert "" not in answers_in(cli("predict", folder, "--in", both).stdout)
    refused = cli.refusal("evaluate", run, "--data", both, "--no-answer-threshold", "0")
    assert "trained on questions that all have an answer" in refused
    assert "must be a number" in cli.refusal("predict", own, "--in", both, "--no-answer-threshold", "nan")


@pytest.mark.parametrize("command", ["transfer", "evaluate"])
def test_an_answer_that_is_not_in_its_context(cli, run: Path, questions, command: str, tmp_path: Path) -> None:
    bad = replace(questions[0], id="bad", answers=(replace(questions[0].answers[0], text="Zeus"),))
    data = write_squad(tmp_path / "dev.json", [bad, *questions[1:]])
    out = tmp_path / "run"
    given = [
        "transfer",
        "qa",
        "--train",
        data,
        "--dev",
        data,
        "--out",
        out,
        "--seeds",
        "1",
        "--set=fitting.min_steps=2",
    ]
    if command == "evaluate":
        given = ["evaluate", run, "--data", data]
    said = cli.refusal(*given)
    assert said.startswith(f"{data}, question 'bad' (")
    assert "'Zeus'" in said
    assert said.endswith("leave such questions out with --skip-bad.")
    assert not out.exists()
    done = cli(*given, "--skip-bad")
    assert f"{data}: 1 question was left out; the first: {data}, question 'bad'" in done.stderr
    if command == "evaluate":
        assert "9 questions: F1 100.0 %" in done.stdout


def test_a_dev_file_of_squad_2_needs_a_training_file_of_it(
    cli, run: Path, squad: Path, questions, unanswerable, tmp_path: Path
) -> None:
    data = write_squad(tmp_path / "dev.json", [*questions, *unanswerable], "2.0")
    said = cli.refusal("transfer", "qa", "--train", squad, "--dev", data, "--out", tmp_path / "run")
    assert said.startswith(f"{data}, question 'no q0'")
    assert "SQuAD 1.1" in said
    assert not (tmp_path / "run").exists()
    assert "SQuAD 1.1" in cli.refusal("evaluate", run, "--data", data)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"question": "who ?"}, "a.jsonl:1: has no column 'context' or 'passage' or 'text'"),
        ({"context": "x", "ask": "who ?"}, "a.jsonl:1: has no column 'question'"),
        ({"context": "x", "question": " "}, "a.jsonl:1: the question is empty"),
        ({"context": "", "question": "who ?"}, "a.jsonl:1: the context is empty"),
        ({"context": "x", "question": "who ?", "id": []}, "a.jsonl:1: 'id' must be text"),
    ],
)
def test_bad_lines_are_one_sentence(cli, run: Path, line: dict[str, Any], says: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert says in cli.refusal("predict", run, "--in", tmp_path / "a.jsonl")


def test_predictions_by_id_need_an_id_for_each_question(cli, run: Path, questions, tmp_path: Path) -> None:
    line = json.dumps(question_line(questions[0])) + "\n"
    path = tmp_path / "p.json"
    done = cli.ended("predict", run, "--predictions", path, input=line * 2)
    assert "the id 'q0' is that of an earlier question" in str(done.exception)
    assert list(tmp_path.iterdir()) == []
    assert "is a folder" in cli.refusal("predict", run, "--predictions", tmp_path, input=line)


# --- one text ---------------------------------------------------------------------------------------------------------


def test_questions_about_one_text(cli, run: Path, questions, answers, text: Path) -> None:
    first, second = questions[0].question, "who likes nothing ?"
    done = cli("predict", run, "--context", text, "--question", first, "--question", second)
    assert answers_in(done.stdout)[0] == answers[0]
    assert [line.split("\t")[2] for line in done.stdout.splitlines()] == [first, second]
    piped = cli("predict", run, "--context", "-", "--question", first, "--to", "view", input=text.read_text("utf-8"))
    assert piped.stdout.startswith(f"{first}\n  ")
    assert f"[{answers[0]}]" in piped.stdout
    found = objects(cli("predict", run, "--context", text, "--json", input=f"{first}\n\n  {second}\r\n").stdout)
    assert [one["question"] for one in found] == [first, "", second]
    assert [one["answer"] for one in found][:2] == [answers[0], ""]


@pytest.mark.parametrize("words", [1, 50_000])
def test_a_text_of_any_length(cli, run: Path, run_2: Path, squad, pretrained_runs, words: int, tmp_path: Path) -> None:
    bert, few = tmp_path / "bert", ["--how", "finetune", "--set", "fitting.min_steps=2", *FAST]
    cli("transfer", "qa", "--from", pretrained_runs["bert"], "--train", squad, "--dev", squad, "--out", bert, *few)
    path = tmp_path / "text.txt"
    context = " ".join(f"{('cat', 'film', 'nobody')[number % 3]}{number % 7}" for number in range(words))
    path.write_text(context, encoding="utf-8")
    began = time.monotonic()
    for model in (run, run_2, bert):
        asked = ["--context", path, "--question", "who likes the film ?", "--question", "x"]
        for one in objects(cli("predict", model, *asked, "--json").stdout):
            for each in one["best"]:
                assert 0 <= each["start"] < each["end"] <= len(context)
                assert context[each["start"] : each["end"]] == each["answer"]
    assert time.monotonic() - began < 30


def test_lines_with_long_contexts_are_answered_in_small_groups(questions, monkeypatch: pytest.MonkeyPatch) -> None:
    from headstart.cli import predict
    from headstart.tasks.qa import Qa

    assert [len(chunk) for chunk in predict.in_chunks(iter(questions), Qa.key)] == [10]
    monkeypatch.setattr(predict, "CHARACTERS_AT_ONCE", 3 * min(len(Qa.key(one)) for one in questions))
    groups = list(predict.in_chunks(iter(questions), Qa.key))
    assert max(map(len, groups)) == 3
    assert [one for group in groups for one in group] == questions


def test_many_questions_about_a_long_text_are_answered_in_groups(
    cli, run: Path, text: Path, questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headstart.cli import asking

    lines = "".join(f"{question.question}\n" for question in questions)
    whole = cli("predict", run, "--context", text, input=lines).stdout
    monkeypatch.setattr(asking, "CHARACTERS_AT_ONCE", 3 * len(questions[0].context))
    assert [len(group) for group in asking.asked(str(text), ["who ?"] * 10)] == [3, 3, 3, 1]
    assert cli("predict", run, "--context", text, input=lines).stdout == whole
    assert whole.count("\n") == len(questions)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--question", "who ?"], "--question needs the text that it is about: add --context FILE."),
        (["--in", "{text}", "--question", "who ?"], "--question needs the text that it is about"),
        (["--in", "{text}", "--context", "{text}"], "--in and --context are two ways"),
        (["--context", "-"], "give the questions with --question"),
        (["--context", "none.txt", "--question", "who ?"], "none.txt: cannot be read"),
        (["--context", "{text}", "--question", " "], "question 1: the question is empty"),
        (["--context", "{empty}", "--question", "who ?"], "empty.txt: is empty. Give the text"),
        (["--context", "-", "--question", "who ?"], "standard input: is empty. Give the text"),
        (["--in", "{text}"], "expected a JSON object with a context and a question"),
        (["--context", "{text}", "--question", "who ?", "--to", "conll"], "No format called 'conll'"),
        (["--context", "{text}", "--question", "who ?", "--html", "x.html"], "--html is for tagging"),
        (
            ["--context", "{text}", "--question", "who ?", "--separator", ";"],
            "--separator is not for question answering",
        ),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(
    cli, run: Path, text: Path, arguments: list[str], says: str, tmp_path: Path
) -> None:
    (tmp_path / "empty.txt").write_text(" \n", encoding="utf-8")
    places = {"{text}": str(text), "{empty}": str(tmp_path / "empty.txt")}
    assert says in cli.refusal("predict", run, *(places.get(part, part) for part in arguments))


# --- terminal ---------------------------------------------------------------------------------------------------------


class Terminal:
    """A process on a terminal of its own. stdout: where else its standard output goes."""

    def __init__(self, *arguments: str | Path, stdout: int | None = None) -> None:
        self.screen, end = pty.openpty()
        self.shown = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headstart", *map(str, arguments)],
            stdin=end,
            stdout=end if stdout is None else stdout,
            stderr=end,
            env={**os.environ, "TERM": "dumb", "OMP_NUM_THREADS": "1"},
        )
        os.close(end)

    def read(self) -> bool:
        """Wait for more to be shown; False once the process has closed its terminal."""
        assert select.select([self.screen], [], [], 60)[0], f"nothing more came after {self.shown!r}"
        try:
            some = os.read(self.screen, 4096)
        except OSError:  # how Linux tells that the other end is closed
            some = b""
        self.shown += some.decode().replace("\r\n", "\n")
        return bool(some)

    def wait_for_prompt(self, number: int) -> None:
        while self.shown.count(PROMPT) < number:
            assert self.read(), self.shown

    def type(self, text: str) -> None:
        os.write(self.screen, text.encode())

    def end(self) -> int:
        while self.read():
            pass
        os.close(self.screen)
        return self.process.wait(60)


def test_a_dialogue_ends_with_an_empty_line(run: Path, text: Path, questions, answers) -> None:
    terminal = Terminal("predict", run, "--context", text)
    terminal.wait_for_prompt(1)
    assert terminal.shown.startswith(f"{text}: {len(questions[0].context.split())} words. Ask about them")
    terminal.type(f"{questions[0].question}\n")
    terminal.wait_for_prompt(2)
    assert f"\x1b[1;7m{answers[0]}\x1b[0m" in terminal.shown
    assert " %)\n" in terminal.shown
    terminal.type("\n")
    assert terminal.end() == 0


def test_a_dialogue_into_a_file_has_its_prompts_on_stderr(run: Path, text: Path, questions, answers, tmp_path) -> None:
    with (tmp_path / "out.tsv").open("wb") as file:
        terminal = Terminal("predict", run, "--context", text, stdout=file.fileno())
        terminal.wait_for_prompt(1)
        terminal.type(f"{questions[0].question}\n")
        terminal.wait_for_prompt(2)
        terminal.type("\x04")  # Ctrl-D
        assert terminal.end() == 0
    assert answers_in((tmp_path / "out.tsv").read_text(encoding="utf-8")) == [answers[0]]


def test_ctrl_c_ends_a_dialogue_in_one_line(run: Path, text: Path) -> None:
    terminal = Terminal("predict", run, "--context", text)
    terminal.wait_for_prompt(1)
    for _ in range(12):
        time.sleep(0.5)  # readline notices a signal only once it waits for a key
        terminal.process.send_signal(signal.SIGINT)
        if select.select([terminal.screen], [], [], 5)[0]:
            break
    assert terminal.end() == 130
    assert terminal.shown.endswith("\nheadstart: Stopped.\n")


def test_a_terminal_without_a_question_is_told_the_ways(run: Path) -> None:
    terminal = Terminal("predict", run)
    assert terminal.end() == 2
    assert terminal.shown.startswith('headstart: There is no question. Give --context FILE and --question "..."')
    assert terminal.shown.count("\n") == 1
