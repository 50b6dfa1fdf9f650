"""The examples of the report: which are chosen, and comparisons of pairs and of questions from end to end."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.comparison.compare import compare
from headstart.comparison.events import Began, CellDone, Compared
from headstart.comparison.examples import Group, best_cell, chosen, groups_of, numbers_shown, shares_of
from headstart.metrics import F1
from headstart.progress import result_of
from headstart.report.results import Cell, Comparison
from headstart.report.results_json import read_comparison

QUICK = {"transfer": {"fitting": {"min_steps": 4, "epochs": 1.0, "evaluations": 2}, "network": {"width": 8}}}
PLACES = ["the garden", "<b>Rome</b>", "\"R&D\" 'lab'", "the 🏝️ island", "Ñandú 🦤"]


def write_pairs(path: Path, count: int, rng: random.Random) -> None:
    """A pair says the same of the same animal, or of another."""
    rows = []
    for number in range(count):
        animal, label = rng.choice(["cat", "dog"]), ("yes", "no")[number % 2]
        other = animal if label == "yes" else {"cat": "dog", "dog": "cat"}[animal]
        first, second = f"The {animal} likes {path.stem} film {number} .", f"The {other} likes <i>it</i> & {number} ."
        rows.append(json.dumps({"premise": first, "hypothesis": second, "label": label}))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def write_questions(path: Path, count: int, rng: random.Random) -> None:
    rows = []
    for number in range(count):
        place = rng.choice(PLACES)
        before, after = ("Every child talks about old songs . " * rng.randrange(1, 9) for _ in range(2))
        context = f"{before}The dog {number} sleeps in {place} today . {after}"
        answers = [{"text": place, "answer_start": context.index(place)}]
        rows.append(json.dumps({"context": context, "question": f"Where is <the> dog {number} ?", "answers": answers}))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


WRITERS: dict[str, Callable[[Path, int, random.Random], None]] = {"pair": write_pairs, "qa": write_questions}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Path]]:
    found = {}
    for task, write in WRITERS.items():
        folder, rng = tmp_path_factory.mktemp(task), random.Random(0)
        found[task] = {name: folder / f"{name}.jsonl" for name in ("train", "dev")}
        for path, count in zip(found[task].values(), (24, 16), strict=True):
            write(path, count, rng)
    return found


@pytest.fixture(scope="module")
def compared(
    files: dict[str, dict[str, Path]], pretrained_runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[dict[str, Any], Comparison]]:
    """By task: what was asked for, and the results."""
    found = {}
    for task, given in files.items():
        out = tmp_path_factory.mktemp("compared") / task
        asked = {**given, "with_": [pretrained_runs["static"], pretrained_runs["bert"]], "labels": (6, 12), "seeds": 2}
        asked |= {"rows": ["scratch", "static-frozen", "bert-finetune"], "settings": QUICK, "out": out}
        found[task] = asked, result_of(compare(task, **asked))
    return found


class Texts(HTMLParser):
    """The text of a page, and of each <mark> in it."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.marks, self.inside = "", list[str](), False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "mark":
            self.inside = True
            self.marks.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "mark"

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.inside:
            self.marks[-1] += data


@pytest.mark.parametrize("task", WRITERS)
def test_the_report_shows_examples_with_every_rows_answer(
    task: str, compared: dict[str, tuple[dict[str, Any], Comparison]]
) -> None:
    asked, results = compared[task]
    assert read_comparison(asked["out"] / "results.json") == results
    assert 0 < len(results.examples) <= 8
    page = Texts()
    page.feed((asked["out"] / "report.html").read_text(encoding="utf-8"))
    for example in results.examples:
        assert [answer.row for answer in example.answers] == ["scratch", "static-frozen", "bert-finetune"]
        assert example.group in page.text
        for text in [*example.texts, *example.answers]:
            assert "".join(segment.text for segment in text.segments) in page.text
    assert {"pair": "of 16 pairs", "qa": "of 16 questions"}[task] in page.text
    assert results.dev.classes == ({"no": 8, "yes": 8} if task == "pair" else {})


def test_the_marked_answer_is_exactly_the_gold_answer(
    files: dict[str, dict[str, Path]], compared: dict[str, tuple[dict[str, Any], Comparison]]
) -> None:
    asked, results = compared["qa"]
    rows = [json.loads(line) for line in files["qa"]["dev"].read_text(encoding="utf-8").splitlines()]
    gold = {row["question"]: row["answers"][0]["text"] for row in rows}
    page = Texts()
    page.feed((asked["out"] / "report.html").read_text(encoding="utf-8"))
    for example in results.examples:
        question, context = example.texts
        wanted = gold[question.segments[0].text]
        assert example.gold == wanted
        assert [segment.text for segment in context.segments if segment.marked] == [wanted]
    marked = [s.text for e in results.examples for t in [*e.texts, *e.answers] for s in t.segments if s.marked]
    assert page.marks == marked


@pytest.mark.parametrize("task", WRITERS)
def test_what_is_said_to_be_right_is_what_the_metric_counts(
    task: str, compared: dict[str, tuple[dict[str, Any], Comparison]]
) -> None:
    for example in compared[task][1].examples:
        for answer in example.answers:
            said = "".join(segment.text for segment in answer.segments if segment.marked or len(answer.segments) == 1)
            # The garden and garden are both right, so that only one direction holds.
            assert answer.right == 1 or said != example.gold
            assert answer.right < 1 or said.removeprefix("the ") in example.gold


@pytest.mark.parametrize("task", WRITERS)
def test_a_cell_does_not_repeat_its_examples(task: str, compared: dict[str, tuple[dict[str, Any], Comparison]]) -> None:
    for path in (compared[task][0]["out"] / "cells").iterdir():
        keys = {"pair": {"label", "probabilities"}, "qa": {"answer", "start", "end", "probability"}}[task]
        assert all(set(answer) == keys for answer in json.loads(path.read_text())["answers"])


@pytest.mark.parametrize("task", WRITERS)
def test_a_stopped_comparison_ends_with_the_same_examples(
    task: str, compared: dict[str, tuple[dict[str, Any], Comparison]], tmp_path: Path
) -> None:
    asked, whole = compared[task]
    again = list(compare(task, **asked))
    assert [type(event) for event in again] == [Began, Compared]
    assert again[-1].results == whole
    for event in compare(task, **{**asked, "out": tmp_path / "out"}):
        if isinstance(event, CellDone) and event.done == 7:
            break
    *_, last = compare(task, **{**asked, "out": tmp_path / "out"})
    assert last.results.examples == whole.examples


def test_a_comparison_of_tags_shows_no_examples(tagged_files: tuple[Path, Path], tmp_path: Path) -> None:
    train, dev = tagged_files
    asked = {"labels": (6,), "seeds": 1, "rows": ["scratch"], "settings": QUICK, "out": tmp_path / "out"}
    assert result_of(compare("ner", train=train, dev=dev, **asked)).examples == []
    assert "<h2>Examples</h2>" not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


# --- which are chosen -------------------------------------------------------------------------------------------------


def groups(*shares: Sequence[float]) -> dict[str, Group]:
    """Of rows A, B, ..., of which the last is the best, and A is what it is held against."""
    titles = [chr(ord("A") + place) for place in range(len(shares))]
    best, other = len(shares) - 1, 0 if len(shares) > 1 else None
    return {group.title: group for group in groups_of(titles, best, other, np.array(shares))}


def test_examples_are_grouped_by_who_was_right() -> None:
    found = groups([0, 1, 0, 1, 0.4], [0, 1, 1, 0, 0], [1, 1, 0, 0, 0.6])
    assert {title: group.members for title, group in found.items()} == {
        "C does better than A": [0, 4],
        "A does better than C": [3],
        "Every row is wrong": [],
        "Every row is right": [1],
    }
    assert found["C does better than A"].clear == [0]
    assert {title: group.members for title, group in groups([0, 0.5, 1]).items()} == {
        "A is wrong": [0],
        "A is right": [2],
    }


def test_what_one_group_lacks_others_give() -> None:
    many, few, none = (Group("", list(range(n)), list(range(n)), 2) for n in (50, 1, 0))
    assert numbers_shown([many, many, many, many]) == [2, 2, 2, 2]
    assert numbers_shown([many, few, none, many]) == [4, 1, 0, 3]
    assert numbers_shown([few, none]) == [1, 0]


def test_examples_come_from_the_whole_of_dev() -> None:
    group = Group("", list(range(100)), list(range(100)), 4)
    assert chosen(group, 4) == [12, 37, 62, 87]
    assert chosen(replace(group, clear=[5, 6, 7]), 3) == [5, 6, 7]
    assert chosen(replace(group, clear=[]), 0) == []


def test_the_answers_are_those_of_the_model_that_is_kept() -> None:
    """As in `ComparisonFolder.keep_if_best`: not a collapsed one if there is another, and the earlier of equals."""

    def cell(seed: int, accuracy: float, *, collapsed: bool = False) -> Cell:
        return Cell(
            row="a", labels=50, seed=seed, metric="accuracy", scores={"accuracy": accuracy}, seconds=1.0, steps=1,
            best_step=1, collapsed=collapsed, mix={}, parameters=1, truncated=0,
        )  # fmt: skip

    cells = [cell(0, 0.5), cell(1, 0.7), cell(2, 0.7), cell(3, 0.9, collapsed=True)]
    best = best_cell("a", 50, cells)
    assert best is not None
    assert best.seed == 1
    assert best_cell("b", 50, cells) is None


def test_nothing_found_where_there_is_nothing_to_find_is_right() -> None:
    right, half, wrong, missed, nothing = [1, 1, 1], [1, 2, 2], [0, 1, 0], [0, 0, 2], [0, 0, 0]
    counts = np.array([right, half, wrong, missed, nothing], dtype=np.float64)
    assert shares_of(F1, counts).tolist() == [1, 0.5, 0, 0, 1]
