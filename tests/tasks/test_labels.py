"""Tasks with one label per example: what text classification and sentence pairs have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.errors import ConfigError, DataError
from headstart.tasks.classify import Classify, Prediction, TextExample
from headstart.tasks.examples import check_dev, read_task
from headstart.tasks.labels import OneLabel
from headstart.tasks.pair import Pair
from headstart.tasks.pair_reading import PairExample, PairInputConfig
from headstart.tasks.reading import ExamplesConfig
from headstart.text.words import split_words

LABELS = ("no", "perhaps", "yes")
EXAMPLES: dict[type[OneLabel[Any]], list[Any]] = {
    Classify: [TextExample(f"text {n}", label) for n, label in enumerate(["yes", "no", "perhaps", "yes"])],
    Pair: [PairExample(f"one {n}", "two", label) for n, label in enumerate(["yes", "no", "perhaps", "yes"])],
}
KINDS = pytest.mark.parametrize("kind", EXAMPLES)


def answers(*labels: str) -> list[Prediction]:
    return [Prediction(label, np.array([name == label for name in LABELS], dtype=np.float32)) for label in labels]


@KINDS
def test_labels_are_learned_in_one_order_and_kept_by_a_saved_run(kind: type[OneLabel[Any]]) -> None:
    task = kind.learn(EXAMPLES[kind])
    assert task.labels == LABELS
    assert kind.learn(EXAMPLES[kind][::-1]) == task
    reordered = kind(LABELS[::-1])
    assert kind.from_table(reordered.to_table()) == reordered
    assert [int(target) for example in EXAMPLES[kind] for target in reordered.targets(example, [])] == [0, 2, 1, 0]


@KINDS
def test_fewer_than_two_labels_are_refused(kind: type[OneLabel[Any]]) -> None:
    with pytest.raises(ConfigError, match="two classes or more; got 1"):
        kind(("only",))
    with pytest.raises(DataError, match="at least two different labels; all 1 have 'yes'"):
        kind.learn(EXAMPLES[kind][:1])


@KINDS
def test_scores_and_baseline(kind: type[OneLabel[Any]]) -> None:
    task = kind(LABELS)
    given = answers("yes", "yes", "perhaps", "no")
    # F1: no 0 of 1 + 1; perhaps 2 / (1 + 1); yes 2 / (2 + 2)
    assert task.scores(EXAMPLES[kind], given) == pytest.approx({"accuracy": 0.5, "macro_f1": 0.5})
    assert task.metric.of(task.all_counts(EXAMPLES[kind], given)) == 0.5
    assert task.details(EXAMPLES[kind], given)["confusion"]["yes"] == {"no": 1, "perhaps": 0, "yes": 1}
    name, always = task.baseline(EXAMPLES[kind], EXAMPLES[kind])
    assert (name, {answer.label for answer in always}) == ("always 'yes'", {"yes"})
    assert task.collapsed(always)
    assert not task.collapsed(given)


@KINDS
def test_softmax_of_the_scores_is_the_answer(kind: type[OneLabel[Any]]) -> None:
    scores = [[np.log(np.array([0.2, 0.7, 0.1], dtype=np.float32))]]
    (found,) = kind(LABELS).decode(None, EXAMPLES[kind][:1], [[]], scores)  # type: ignore[arg-type]
    assert found.label == "perhaps"
    assert found.probabilities == pytest.approx([0.2, 0.7, 0.1])


def test_a_label_that_training_never_showed_is_told_with_its_place(tmp_path: Path) -> None:
    train, dev = tmp_path / "train.csv", tmp_path / "dev.csv"
    train.write_text("premise,hypothesis,label\na,b,yes\nc,d,no\n")
    dev.write_text("premise,hypothesis,label\na,c,yes\nc,e,perhaps\n")
    with pytest.raises(DataError, match=r"dev\.csv:3: has the label 'perhaps', which the training examples never"):
        read_task(Pair, train, dev, PairInputConfig())
    train.write_text("text,label\na,yes\nc,no\n")
    dev.write_text("text,label\na,yes\n\nc,yess\n")
    with pytest.raises(DataError, match=r"dev\.csv:4: has the label 'yess', which .* showed\. Did you mean 'yes'\?"):
        read_task(Classify, train, dev, ExamplesConfig())
    with pytest.raises(DataError, match="Example 2 of those to be scored has the label 'maybe'"):
        Pair(LABELS).check([PairExample("a", "b", "yes"), PairExample("a", "b", "maybe")], "the model")


# --- sentence pairs ---------------------------------------------------------------------------------------------------


def test_a_pair_is_the_same_where_both_texts_are() -> None:
    train = [PairExample("a  b", "c", "x"), PairExample("d", "e", "y")]
    dev = [PairExample("a b", "c", "x"), PairExample("a b", "new", "x"), PairExample("e", "d", "y")]
    assert check_dev(Pair(("x", "y")), train, dev) == ["1 dev pair also stands in train."]
    assert check_dev(Pair(("x", "y")), train, [*train, train[0]]) == ["3 dev pairs also stand in train."]


def test_the_words_of_a_pair_are_those_of_both_texts() -> None:
    first, second = "It isn't U.S. news", "3.14, e.g. 三十"
    assert Pair.words(PairExample(first, second)) == [*split_words(first), *split_words(second)]


def test_only_a_pair_without_any_text_is_empty() -> None:
    assert Pair.is_empty(PairExample("", " "))
    assert not Pair.is_empty(PairExample("a", ""))
    assert not Pair.is_empty(PairExample("", "a"))


def test_pairs_without_a_label_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = ["gold_label;premise;hypothesis", "yes;a;b", "-;c;d", "no;e;f"]
    path.write_text("\n".join([*rows, ""]))
    assert len(Pair.read(path, PairInputConfig())) == 2
    separator, left_out = Pair.notices(path, PairInputConfig())
    assert "separated by ';'" in separator
    assert left_out == f"{path}: 1 pair without a label ('-') is left out."
    path.write_text("\n".join([*rows, *["-;g;h"] * 1999, ""]))
    assert Pair.notices(path, PairInputConfig(separator=";")) == [
        f"{path}: 2,000 pairs without a label ('-') are left out."
    ]
    path.write_text("label,premise,hypothesis\n-,a,b\nx,c,d\n")
    assert Pair.notices(path, PairInputConfig()) == []
