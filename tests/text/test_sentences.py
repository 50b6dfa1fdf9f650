import random
from itertools import pairwise

import pytest

from headstart.text.sentences import sentence_spans


def split(text: str, lines_are_sentences: bool = False) -> list[str]:
    return [text[first:last] for first, last in sentence_spans(text, lines_are_sentences)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["It rains.", "We stay!", "Do you?", "Yes…"],
        ["Mr. Smith met Dr. Jones vs. St. John etc. Today.", "Then he left."],
        ["J. R. R. Tolkien lived in the U.S. Army base.", "He wrote."],
        ['He said "Go."', "Then he went.", "(He ran.)", "Fast."],
        ['"No!" she said.', "He left... and came back.", "See No. 5.", "No.", "Fine."],
        ["Pi is 3.14 or so.", "In 1990.", "That was it."],
        ["1. The first.", "2. The second."],
        ["What?!", "So . . .", "It ends .", "Here , he said . ''", "Next ."],
        ["Él vino.", "¿Por qué?", "Ünlü biri."],
        ["यह है।", "वह है।"],
    ],
)
def test_sentences_are_found_again(sentences):
    assert split(" ".join(sentences)) == sentences


def test_chinese_and_japanese_need_no_space():
    assert split("他说：「是吗？」我不知道。好！再见") == ["他说：「是吗？」", "我不知道。", "好！", "再见"]


def test_a_blank_line_ends_a_sentence_and_lines_are_sentences_only_if_asked():
    text = "A title\n \nIt was\nhard-wrapped. So\nit is."
    assert split(text) == ["A title", "It was\nhard-wrapped.", "So\nit is."]
    assert split(text, lines_are_sentences=True) == ["A title", "It was", "hard-wrapped. So", "it is."]


@pytest.mark.parametrize("text", ["", " \n\n ", ".", ". . .", "a", "。"])
def test_the_smallest_texts(text):
    assert "".join(split(text)).split() == "".join(text.split("\n")).split() or split(text) == [text.strip()]


def test_spans_are_trimmed_in_order_and_leave_out_white_space_alone():
    rng = random.Random(5)
    for _ in range(500):
        text = "".join(rng.choices("ab AB.!?…。\"')\n 1", k=rng.randrange(60)))
        for lines_are_sentences in (False, True):
            spans = sentence_spans(text, lines_are_sentences)
            assert all(first < last and text[first:last] == text[first:last].strip() for first, last in spans)
            assert all(before[1] <= after[0] for before, after in pairwise(spans))
            assert "".join("".join(text[a:b] for a, b in spans).split()) == "".join(text.split())
