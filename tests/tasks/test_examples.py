import subprocess
import sys
from collections import Counter

import pytest

from headstart.errors import ConfigError, DataError
from headstart.tasks.examples import Examples, check_dev, draw, hold_out, label_names


def made(**sizes: int) -> Examples:
    """So many examples of each class, mixed; every text is different."""
    labels = [label for label, size in sizes.items() for _ in range(size)]
    order = sorted(range(len(labels)), key=lambda i: i * 7919 % 10007)
    return Examples([f"text {i}" for i in order], [labels[i] for i in order])


def test_take_keeps_texts_with_their_labels():
    examples = Examples(["a", "b", "c"], ["1", "2", "3"])
    assert examples.take([2, 0]) == Examples(["c", "a"], ["3", "1"])
    assert len(examples) == 3


def test_each_text_needs_a_label():
    with pytest.raises(DataError, match="2 texts and 1 labels"):
        Examples(["a", "b"], ["1"])


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
    assert label_names(Examples(["x"] * len(labels), labels)) == names


def test_one_class_is_too_few():
    with pytest.raises(DataError, match="at least two different labels; all 3 have 'good'"):
        label_names(Examples(["a", "b", "c"], ["good"] * 3))
    with pytest.raises(DataError, match="there is no example"):
        label_names(Examples([], []))


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
    for count in [*range(len(set(train.labels)), 60), *range(60, len(train), 9), len(train)]:
        drawn = draw(train, count, seed)
        assert len(drawn) == len(set(drawn.texts)) == count
        assert set(drawn.labels) == set(train.labels)
        assert smaller <= set(drawn.texts)
        smaller = set(drawn.texts)


@pytest.mark.parametrize("name", ["even", "sentiment", "five"])
def test_draws_keep_the_proportions(name):
    train = MADE[name]
    whole = Counter(train.labels)
    for count in range(10 * len(whole), len(train) + 1, 5):
        found = Counter(draw(train, count, 3).labels)
        assert all(abs(found[label] - count * size / len(train)) <= 1 for label, size in whole.items())


def test_rare_classes_cost_the_others_no_more_than_themselves():
    found = Counter(draw(MADE["rare"], 50, 0).labels)
    assert found["rare"] == found["single"] == 1
    assert found["some"] == 3


def test_a_draw_keeps_pairs_and_the_order_of_the_file():
    train = MADE["five"]
    label_of = dict(zip(train.texts, train.labels, strict=True))
    drawn = draw(train, 60, 5)
    assert drawn.labels == [label_of[text] for text in drawn.texts]
    assert drawn.texts == [text for text in train.texts if text in set(drawn.texts)]
    assert draw(train, len(train), 5) == draw(train, None, 5) == train


def test_seeds_differ_and_repeat():
    train = MADE["sentiment"]
    assert draw(train, 50, 1) == draw(train, 50, 1)
    assert len({tuple(draw(train, 50, seed).texts) for seed in range(10)}) == 10


def test_every_example_has_the_same_chance():
    train = made(a=10, b=10)
    seen = Counter(text for seed in range(400) for text in draw(train, 6, seed).texts)
    # 400 draws of 3 in 10: 120 expected, with a standard deviation of 9.2.
    assert all(80 < seen[text] < 160 for text in train.texts)


def test_a_draw_is_the_same_in_another_process():
    code = (
        "from headstart.tasks.examples import Examples, draw\n"
        "import sys\n"
        "train = Examples([str(i) for i in range(60)], ['xyz'[i % 3] for i in range(60)])\n"
        "sys.stdout.write(' '.join(draw(train, 9, 4).texts))\n"
        "sys.exit('torch' in sys.modules)"
    )
    outputs = {subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout for _ in range(2)}
    train = Examples([str(i) for i in range(60)], ["xyz"[i % 3] for i in range(60)])
    assert outputs == {" ".join(draw(train, 9, 4).texts).encode()}


def test_a_draw_that_cannot_be():
    with pytest.raises(DataError, match=r"Asked for 2,000 labels, the file has 1,821"):
        draw(made(a=1000, b=821), 2000, 0)
    for count in (2, 0, -1):
        with pytest.raises(ConfigError, match=rf"Asked for {count} labels, but there are 3 classes"):
            draw(made(a=5, b=5, c=5), count, 0)


def test_check_dev_counts_texts_that_stand_in_both():
    train = Examples(["a  b", "c", "d"], ["x", "y", "x"])
    assert check_dev(train, Examples(["new", "C"], ["x", "y"]), ["x", "y"]) == []
    assert check_dev(train, Examples([" a b\n", "e"], ["x", "y"]), ["x", "y"]) == [
        "1 dev example also stands in train."
    ]
    both = Examples(["a b", "c", "e", "c"], ["x", "y", "y", "x"])
    assert check_dev(train, both, ["x", "y"]) == ["3 dev examples also stand in train."]


def test_check_dev_refuses_an_unknown_label():
    train = Examples(["a", "b"], ["positive", "negative"])
    with pytest.raises(DataError, match=r"the label 'Positive', which the training .*Did you mean 'positive'\?"):
        check_dev(train, Examples(["c"], ["Positive"]), label_names(train))
    with pytest.raises(DataError, match=r"the label '7'.*There are: negative, positive\."):
        check_dev(train, Examples(["c"], ["7"]), label_names(train))


def test_what_is_held_out_is_apart_in_proportion_and_always_the_same():
    train = MADE["sentiment"]
    rest, held = hold_out(train, 0.1)
    assert not set(rest.texts) & set(held.texts)
    assert sorted([*rest.texts, *held.texts]) == sorted(train.texts)
    assert Counter(held.labels) == {"negative": 33, "positive": 36}
    assert hold_out(train, 0.1) == (rest, held)


def test_too_few_to_hold_any_out():
    with pytest.raises(DataError, match=r"There are 2 examples, too few to hold some of them out.*--dev"):
        hold_out(made(a=1, b=1), 0.1)
