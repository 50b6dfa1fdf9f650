import subprocess
import sys
from collections import Counter

import pytest

from headstart.errors import ConfigError, DataError
from headstart.tasks.classify import Classify, TextExample, label_names
from headstart.tasks.examples import check_dev, content_of, draw, hold_out

TASK = Classify(("x", "y"))


def texts_of(examples: list[TextExample]) -> list[str]:
    return [example.text for example in examples]


def labels_of(examples: list[TextExample]) -> list[str]:
    return [str(example.label) for example in examples]


def given(texts: list[str], labels: list[str]) -> list[TextExample]:
    return [TextExample(text, label) for text, label in zip(texts, labels, strict=True)]


def made(**sizes: int) -> list[TextExample]:
    """So many examples of each class, mixed; every text is different."""
    labels = [label for label, size in sizes.items() for _ in range(size)]
    order = sorted(range(len(labels)), key=lambda i: i * 7919 % 10007)
    return [TextExample(f"text {i}", labels[i]) for i in order]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["10", "9", "-1", "9"], ["-1", "9", "10"]),
        (["10", "9", "x"], ["10", "9", "x"]),
        (["positive", "very negative", "neutral"], ["very negative", "neutral", "positive"]),
        (["positive", "negative", "mixed"], ["mixed", "negative", "positive"]),
    ],
)
def test_label_names_are_in_order(labels, names):
    assert label_names(given(["x"] * len(labels), labels)) == names


def test_one_class_is_too_few():
    with pytest.raises(DataError, match="at least two different labels; all 3 have 'good'"):
        label_names(given(["a", "b", "c"], ["good"] * 3))
    with pytest.raises(DataError, match="there is no example"):
        label_names(given([], []))


MADE = {
    "even": made(a=100, b=100),
    "sentiment": made(negative=331, positive=361),
    "five": made(a=109, b=222, c=162, d=232, e=129),
    "rare": made(common=500, some=30, rare=2, single=1),
}


@pytest.mark.parametrize("train", MADE.values(), ids=MADE)
@pytest.mark.parametrize("seed", [0, 1])
def test_draws_are_nested_and_no_class_is_left_out(train, seed):
    smaller: set[str] = set()
    for count in [*range(len(set(labels_of(train))), 60), *range(60, len(train), 9), len(train)]:
        drawn = draw(TASK, train, count, seed)
        assert len(drawn) == len(set(texts_of(drawn))) == count
        assert set(labels_of(drawn)) == set(labels_of(train))
        assert smaller <= set(texts_of(drawn))
        smaller = set(texts_of(drawn))


@pytest.mark.parametrize("name", ["even", "sentiment", "five"])
def test_draws_keep_the_proportions(name):
    train = MADE[name]
    whole = Counter(labels_of(train))
    for count in range(10 * len(whole), len(train) + 1, 5):
        found = Counter(labels_of(draw(TASK, train, count, 3)))
        assert all(abs(found[label] - count * size / len(train)) <= 1 for label, size in whole.items())


def test_rare_classes_cost_the_others_no_more_than_themselves():
    found = Counter(labels_of(draw(TASK, MADE["rare"], 50, 0)))
    assert found["rare"] == found["single"] == 1
    assert found["some"] == 3


def test_a_draw_keeps_pairs_and_the_order_of_the_file():
    train = MADE["five"]
    label_of = dict(zip(texts_of(train), labels_of(train), strict=True))
    drawn = draw(TASK, train, 60, 5)
    assert labels_of(drawn) == [label_of[text] for text in texts_of(drawn)]
    assert texts_of(drawn) == [text for text in texts_of(train) if text in set(texts_of(drawn))]
    assert draw(TASK, train, len(train), 5) == draw(TASK, train, None, 5) == train


def test_seeds_differ_and_repeat():
    train = MADE["sentiment"]
    assert draw(TASK, train, 50, 1) == draw(TASK, train, 50, 1)
    assert len({tuple(texts_of(draw(TASK, train, 50, seed))) for seed in range(10)}) == 10


def test_every_example_has_the_same_chance():
    train = made(a=10, b=10)
    seen = Counter(text for seed in range(400) for text in texts_of(draw(TASK, train, 6, seed)))
    # 400 draws of 3 in 10: 120 expected, with a standard deviation of 9.2.
    assert all(80 < seen[text] < 160 for text in texts_of(train))


def test_a_draw_is_the_same_in_another_process():
    code = (
        "from headstart.tasks.classify import Classify, TextExample\n"
        "from headstart.tasks.examples import draw\n"
        "import sys\n"
        "train = [TextExample(str(i), 'xyz'[i % 3]) for i in range(60)]\n"
        "sys.stdout.write(' '.join(e.text for e in draw(Classify(tuple('xyz')), train, 9, 4)))"
    )
    outputs = {subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout for _ in range(2)}
    train = given([str(i) for i in range(60)], ["xyz"[i % 3] for i in range(60)])
    assert outputs == {" ".join(texts_of(draw(TASK, train, 9, 4))).encode()}


def test_a_draw_that_cannot_be():
    with pytest.raises(DataError, match=r"Asked for 2,000 labels, the file has 1,821"):
        draw(TASK, made(a=1000, b=821), 2000, 0)
    for count in (2, 0, -1):
        with pytest.raises(ConfigError, match=rf"Asked for {count} labels, but there are 3 classes"):
            draw(TASK, made(a=5, b=5, c=5), count, 0)


def test_check_dev_counts_texts_that_stand_in_both():
    train = given(["a  b", "c", "d"], ["x", "y", "x"])
    assert check_dev(TASK, train, given(["new", "C"], ["x", "y"])) == []
    one = given([" a b\n", "e"], ["x", "y"])
    assert check_dev(TASK, train, one) == ["1 dev example also stands in train."]
    both = given(["a b", "c", "e", "c"], ["x", "y", "y", "x"])
    assert check_dev(TASK, train, both) == ["3 dev examples also stand in train."]


def test_check_dev_refuses_an_unknown_label():
    train = given(["a", "b"], ["positive", "negative"])
    with pytest.raises(DataError, match=r"the label 'Positive', which the training .*Did you mean 'positive'\?"):
        check_dev(Classify.learn(train), train, given(["c"], ["Positive"]))
    with pytest.raises(DataError, match=r"the label '7'.*There are: negative, positive\."):
        check_dev(Classify.learn(train), train, given(["c"], ["7"]))


def test_what_is_held_out_is_apart_in_proportion_and_always_the_same():
    train = MADE["sentiment"]
    rest, held = hold_out(TASK, train, 0.1)
    assert not set(texts_of(rest)) & set(texts_of(held))
    assert sorted([*texts_of(rest), *texts_of(held)]) == sorted(texts_of(train))
    assert Counter(labels_of(held)) == {"negative": 33, "positive": 36}
    assert hold_out(TASK, train, 0.1) == (rest, held)


def test_too_few_to_hold_any_out():
    with pytest.raises(DataError, match=r"There are 2 examples, too few to hold some of them out.*--dev"):
        hold_out(TASK, made(a=1, b=1), 0.1)


def test_content_depends_on_inputs_and_answers_alone():
    train = given(["a", "b"], ["x", "y"])
    assert content_of(TASK, train) == content_of(TASK, [TextExample("a", "x", {"id": 7}), TextExample("b", "y")])
    assert content_of(TASK, train) != content_of(TASK, given(["a", "b"], ["x", "x"]))
