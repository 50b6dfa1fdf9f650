"""The bench's table, its arithmetic, and what becomes of a work that fails."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.__main__ import main, run_work
from bench.encoder_runs import counted, frozen_model, planned
from bench.machine import ceiling
from bench.measure import Measurement, Setting, Side, Timed, check_close, in_turns
from bench.operations import bert, bilstm, word_vector
from bench.samples import evenly
from bench.table import Failure, cells, summary, table
from bench.works import NEEDS, SNLI_DEV, SNLI_TRAIN, SQUAD_DEV, SQUAD_TRAIN
from bench.works.frozen_two_texts import anew

from headstart.encoders.bert import Bert, BertConfig
from headstart.encoders.elmo import ElmoConfig
from headstart.pretrained import Pretrained
from headstart.tasks.conll import TaggedSentence
from headstart.tasks.pair import Pair
from headstart.tasks.pair_reading import PairExample
from headstart.tasks.qa import Qa
from headstart.tasks.questions import GoldAnswer, Question
from headstart.tasks.squad import squad_json
from headstart.tasks.tag import Tag
from headstart.text.wordpiece import SPECIALS, build_wordpiece
from headstart.transfer.fitting import epoch_batches
from headstart.transfer.start import Start
from headstart.weights.huggingface import write_huggingface


def row(**changes: object) -> Measurement:
    given = {
        "work": "adding",
        "unit": "sums/s",
        "ours": [100.0, 400.0, 300.0],
        "peer": [100.0, 50.0, 200.0],
        "peer_name": "abacus",
        "goal": 2.0,
        "flops_per_unit": 1e6,
    }
    return Measurement(**{**given, **changes})  # type: ignore[arg-type]


def test_the_ratio_is_of_medians_and_the_share_is_of_the_ceiling() -> None:
    assert row().ratio == 3.0
    assert row().share(ceiling=1e9) == pytest.approx(0.3)
    assert row(flops_per_unit=None).share(1e9) is None


def test_a_goal_is_reached_by_the_ratio_and_nothing_else_lacking() -> None:
    assert row(goal=3.0).reached
    assert not row(goal=3.01).reached
    assert row(goal=None).reached
    assert not row(shortfall="accuracy lost").reached


def test_a_row_marks_what_was_missed_and_leaves_blank_what_is_not_known() -> None:
    assert cells(row(), 1e9) == ("adding", "300", "100", "3.00", "2.00", "30%", "sums/s; peer: abacus")
    assert cells(row(goal=4.0), 1e9)[4] == "4.00 missed"
    assert cells(row(goal=None, flops_per_unit=None), 1e9)[4:6] == ("", "")
    assert cells(Failure("adding", "no beads"), 1e9)[-1] == "FAILED: no beads"


def test_the_columns_of_the_table_stand_under_each_other() -> None:
    shown = table([row(), row(work="a longer name of a work", ours=[123456.0])], 1e9).splitlines()
    assert len(shown) == 3
    assert {line.index(unit) for line, unit in zip(shown[1:], ("sums/s", "sums/s"), strict=True)} == {
        shown[1].index("sums/s")
    }
    ends = [line.index(figure) + len(figure) for line, figure in zip(shown, ("ours", "300", "123,456"), strict=True)]
    assert len(set(ends)) == 1


def test_the_summary_names_what_was_missed_and_what_failed() -> None:
    rows = [row(), row(work="carrying", goal=9.0), row(work="seen", goal=None), Failure("dividing", "by zero")]
    assert summary(rows) == "1 of 2 goals reached. missed: carrying. failed: dividing."


def test_sides_take_turns_and_the_first_round_does_not_count() -> None:
    order: list[str] = []

    def side(name: str, units: float) -> Side:
        def work() -> Timed:
            order.append(name)
            return Timed(units, 0.5)

        return Side(work, lambda: order.append(f"before {name}"))

    rates = in_turns({"ours": side("ours", 10), "peer": side("peer", 5)}, repeats=2)
    assert order == ["before ours", "ours", "before peer", "peer"] * 3
    assert rates == {"ours": [20.0, 20.0], "peer": [10.0, 10.0]}
    order.clear()
    assert in_turns({"ours": side("ours", 10)}, repeats=1) == {"ours": [20.0]}
    assert order == ["before ours", "ours"]


def test_sides_that_compute_something_else_are_not_compared() -> None:
    check_close("sums", np.array([1.0]), np.array([1.001]), 0.01)
    with pytest.raises(RuntimeError, match=r"0\.1 apart"):
        check_close("sums", np.array([1.0]), np.array([1.1]), 0.01)
    with pytest.raises(RuntimeError, match="shapes"):
        check_close("sums", np.zeros(2), np.zeros(3), 0.01)
    with pytest.raises(RuntimeError, match="nan apart"):
        check_close("sums", np.array([np.nan]), np.array([1.0]), 0.01)


def test_operations_are_two_for_each_weight_that_a_row_meets() -> None:
    elmo = ElmoConfig(cell=3, projection=2, layers=1, filters=[[1, 4]], highway=1)
    assert bilstm(elmo) == 2 * 2 * ((2 + 2) * 4 * 3 + 3 * 2)
    assert word_vector(elmo) == 2 * (4 * 8 + 4 * 2)
    width, inner = 4, 16
    small = BertConfig(layers=1, width=width, heads=1, inner=inner)
    products = 2 * (4 * width * width + 2 * width * inner)
    assert bert(small, [6, 6]) == products + 2 * 2 * 6 * width
    # Lengths 2 and 4: of six pieces two see 2 others' worth, four see 4.
    assert bert(small, [2, 4]) == pytest.approx(products + 2 * 2 * (2 * 2 + 4 * 4) / 6 * width)


def test_pieces_whose_top_layer_nobody_reads_need_only_their_keys_and_values_there() -> None:
    one, two = (BertConfig(layers=layers, width=4, heads=1, inner=16) for layers in (1, 2))
    assert bert(one, [3, 5], [3, 5]) == bert(one, [3, 5])
    assert bert(one, [3, 5], [0, 0]) == 2 * 2 * 4 * 4
    assert bert(two, [6], [0]) == bert(one, [6]) + 2 * 2 * 4 * 4
    assert bert(two, [6], [3]) == pytest.approx((bert(two, [6]) + bert(two, [6], [0])) / 2)


def test_a_work_without_its_text_is_left_out_with_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_work("word2vec", Setting(data=tmp_path, repeats=1), tmp_path) == []
    assert "lm_imdb_unsup/train.txt.gz" in capsys.readouterr().out


def test_the_ceiling_is_a_rate_that_each_library_reaches() -> None:
    found = ceiling([64])
    assert len(found) == 3
    assert all(1e6 < rate < 1e14 for rate in found.values())


def test_a_work_that_fails_is_a_row_and_the_others_still_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = {"ceiling": 1e9, "ceiling_by_library": {"fingers": 1e9}, "machine": {"processor": "hand", "cores": 2}}
    monkeypatch.setattr("bench.__main__.measured_machine", lambda setting, logs: machine)
    broken = tmp_path / "lm_imdb_unsup/train.txt.gz"
    broken.parent.mkdir()
    broken.write_text("not gzipped")
    out = tmp_path / "found.json"
    works = ["--only", "word2vec", "startup"]
    assert main(["--data", str(tmp_path), "--quick", "--out", str(out), *works]) == 1
    record = json.loads(out.read_text())
    assert [failed["work"] for failed in record["failed"]] == ["word2vec"]
    assert "gzip" in record["failed"][0]["why"]
    (measured,) = record["rows"]
    assert measured["work"] == "headstart --help"
    assert len(measured["ours"]) == record["repeats"] == 1
    assert record["machine"] == machine["machine"]
    assert record["ceiling"] == {"before": {"fingers": 1e9}, "after": {"fingers": 1e9}}
    shown = capsys.readouterr().out
    assert "word2vec  FAILED: " in shown
    assert "quick" in shown


def test_every_work_has_its_module() -> None:
    assert all(importlib.util.find_spec(f"bench.works.{name}") for name in NEEDS)


def test_the_trainer_learns_and_is_scored_at_each_words_first_piece(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from bench.peers.trainer import TaggerTrainer
    from transformers import EvalPrediction

    tokenizer = build_wordpiece([*SPECIALS, "rome", "in", "an", "##na", "."], lowercase=True)
    encoder = Bert(BertConfig(layers=1, width=8, heads=2, inner=8, positions=16), len(tokenizer))
    write_huggingface(Pretrained(encoder, tokenizer), tmp_path / "hf")
    sentences = [
        TaggedSentence(("Anna", "in", "Rome", "."), ("I-PER", "O", "I-LOC", "O"), "1"),
        TaggedSentence(("Rome", "Rome"), ("I-LOC", "B-LOC"), "2"),
    ]
    task = Tag.learn(sentences)
    side = TaggerTrainer(tmp_path / "hf", task)
    rows = side.rows(sentences)
    outside, loc, per = (task.labels.index(tag) for tag in ("O", "B-LOC", "B-PER"))
    assert [row["labels"] for row in rows] == [
        [-100, per, -100, outside, loc, outside, -100],
        [-100, loc, loc, -100],
    ]
    logits = np.full((2, 7, len(task.labels)), -100.0)
    for number, row in enumerate(rows):
        for place, label in enumerate(row["labels"]):
            logits[number, place, max(label, 0)] = 1.0
    labels = np.full((2, 7), -100)
    assert side.score(EvalPrediction(predictions=logits, label_ids=labels), sentences) == 1.0
    logits[1, 2, task.labels.index("I-LOC")] = 2.0  # one entity of two words instead of two: 2 right of 3 and of 4
    assert side.score(EvalPrediction(predictions=logits, label_ids=labels), sentences) == pytest.approx(4 / 7)


# --- two texts --------------------------------------------------------------------------------------------------------

PAIRS = [
    PairExample("Anna in Rome .", "in Rome", "entailment"),
    PairExample("Anna in Rome .", "Anna", "neutral"),
    PairExample("Rome .", "Anna", "neutral"),
]
QUESTIONS = [
    Question("1", "in Rome .", "Anna in Rome .", (GoldAnswer("Anna", 0),)),
    Question("2", "Anna in .", "Anna in Rome .", (GoldAnswer("in Rome", 5), GoldAnswer("Rome", 8))),
]


def small_bert() -> Pretrained:
    tokenizer = build_wordpiece([*SPECIALS, "rome", "in", "an", "##na", "."], lowercase=True)
    return Pretrained(Bert(BertConfig(layers=1, width=8, heads=2, inner=8, positions=400), len(tokenizer)), tokenizer)


def small_model(folder: Path) -> Path:
    write_huggingface(small_bert(), folder / "hf")
    return folder / "hf"


def test_examples_of_dev_are_spread_over_the_file() -> None:
    assert evenly(range(10), 4) == [0, 3, 6, 9]
    assert evenly(range(3), 4) == evenly(range(3), None) == [0, 1, 2]


@pytest.mark.parametrize(("kind", "examples"), [(Pair, PAIRS), (Qa, QUESTIONS)])
def test_what_an_encoder_reads_of_two_texts_is_counted(kind: Any, examples: list[Any]) -> None:
    model = frozen_model(Start("small", "bert", (small_bert(),)), kind.learn(examples))
    plan = planned(model, examples)
    distinct = len({text for example in examples for text in texts_of(example)})
    assert plan["standing"].texts == 2 * len(examples)
    assert plan["distinct"].texts == distinct < 2 * len(examples)
    with counted(model.encoder) as once:
        model.answers(examples)
    with counted(model.encoder) as each_time:
        anew(model, examples)
    assert once == plan["evaluate"] == plan["distinct"]
    assert each_time == plan["standing"]
    model.answers(examples)
    assert once == plan["evaluate"]  # nothing is counted any more


def texts_of(example: PairExample | Question) -> tuple[str, str]:
    if isinstance(example, Question):
        return example.question, example.context
    return example.first, example.second


def test_the_trainer_reads_pairs_in_one_row_and_in_our_order(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from bench.peers.trainer import OurOrder, PairTrainer
    from transformers import EvalPrediction

    side = PairTrainer(small_model(tmp_path), Pair.learn(PAIRS))
    rows = side.rows(PAIRS)
    assert [row["labels"] for row in rows] == [0, 1, 1]
    assert rows[0]["token_type_ids"] == [0] * 7 + [1] * 3  # [CLS] an ##na in rome . [SEP], in rome [SEP]
    logits = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0]])
    found = EvalPrediction(predictions=logits, label_ids=np.array([0, 1, 1]))
    assert side.scores(found, PAIRS) == {"accuracy": pytest.approx(2 / 3)}
    order = OurOrder([5, 3, 9, 1, 7], batch=2, seed=4)
    assert len(order) == 3
    assert [list(order), list(order)] == [epoch_batches([5, 3, 9, 1, 7], 2, epoch, 4) for epoch in (0, 1)]


def test_the_trainer_learns_answers_in_windows_and_finds_the_best_span(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from bench.peers.questions import LONGEST, QuestionTrainer

    long = Question("3", "Anna", "in " * 400 + "Rome", (GoldAnswer("Rome", 1200),))
    questions = [*QUESTIONS, long]
    side = QuestionTrainer(small_model(tmp_path), Qa.learn(questions), "longest")
    rows = side.rows(questions)
    places = [(row["start_positions"], row["end_positions"]) for row in rows]
    # [CLS] in rome . [SEP] an ##na in rome . [SEP], then [CLS] an ##na in . [SEP] an ##na in rome . [SEP]
    assert places[:2] == [(5, 6), (8, 9)]
    assert places[2] == (0, 0)  # the first window of the long context does not hold the answer
    assert len(rows) == 4
    assert len(rows[2]["input_ids"]) == LONGEST
    assert places[3][0] == places[3][1] == len(rows[3]["input_ids"]) - 2
    start, end = (np.full((4, LONGEST), -100.0, dtype=np.float32) for _ in range(2))
    for number, row in enumerate(rows):
        start[number, : len(row["input_ids"])] = end[number, : len(row["input_ids"])] = 0.0
    for number, (first, last) in enumerate(places):
        start[number, first], end[number, last] = 2.0, 2.0
    # Of the second question, a better end before the start, and one in the question.
    end[1, 6], end[1, 2] = 3.0, 4.0
    assert side.texts((start, end), questions) == ["Anna", "in Rome", "Rome"]
    padded = QuestionTrainer(side.files, side.task, "max")
    assert {len(row["input_ids"]) for row in padded.dev_rows(questions)} == {LONGEST}
    assert "start_positions" not in padded.dev_rows(questions)[0]
    assert [(row["start_positions"], row["end_positions"]) for row in padded.rows(questions)] == places
    assert padded.texts((start, end), questions) == ["Anna", "in Rome", "Rome"]


@pytest.mark.filterwarnings("ignore")  # the Trainer's own
@pytest.mark.parametrize("script", ["pairs", "questions"])
def test_whole_runs_of_both_sides_are_told(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    monkeypatch.setenv("HEADSTART_HOME", str(tmp_path / "home"))
    write_data(tmp_path)
    more = ["--order", "ours"] if script == "pairs" else ["--padding", "both"]
    arguments = ["--data", str(tmp_path), "--model", str(small_model(tmp_path)), f"--{script}", "4", "--batch", "2"]
    importlib.import_module(f"bench.{script}").main([*arguments, "--dev", "2", *more])
    shown = capsys.readouterr().out.splitlines()
    told = [line for line in shown if line.startswith(("headstart", "transformers' Trainer"))]
    assert len(told) == (2 if script == "pairs" else 3)
    assert all(line.count("%") == (1 if script == "pairs" else 2) for line in told)
    assert all("both" in line for line in told[1:])


def write_data(folder: Path) -> None:
    pairs = [
        {"gold_label": pair.label, "sentence1": pair.first, "sentence2": f"{pair.second} {'.' * number}"}
        for number in range(4)
        for pair in PAIRS
    ]
    lines = "".join(f"{json.dumps(pair)}\n" for pair in pairs)
    questions = [
        Question(f"{number} {one.id}", one.question, one.context, one.answers)
        for number in range(4)
        for one in QUESTIONS
    ]
    squad = json.dumps(squad_json(questions, "1.1"))
    for name, text in {SNLI_TRAIN: lines, SNLI_DEV: lines, SQUAD_TRAIN: squad, SQUAD_DEV: squad}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        data = text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
