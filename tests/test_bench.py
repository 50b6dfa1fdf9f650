"""The bench's table, its arithmetic, and what becomes of a work that fails."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from bench.__main__ import main, run_work
from bench.machine import ceiling
from bench.measure import Measurement, Setting, Side, Timed, check_close, in_turns
from bench.operations import bert, bilstm, word_vector
from bench.table import Failure, cells, summary, table
from bench.works import NEEDS

from headstart.encoders.bert import Bert, BertConfig
from headstart.encoders.elmo import ElmoConfig
from headstart.pretrained import Pretrained
from headstart.tasks.conll import TaggedSentence
from headstart.tasks.tag import Tag
from headstart.text.wordpiece import SPECIALS, build_wordpiece
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
