from __future__ import annotations

import pytest

from headstart.report.wording import around, short_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 s"), (0.42, "0.42 s"), (4.2, "4.2 s"), (42, "42 s"), (95, "1 min 35 s"), (600, "10 min")],
)
def test_short_duration_leaves_out_what_is_zero(seconds: float, text: str) -> None:
    assert short_duration(seconds) == text


def test_a_sentence_is_cut_around_its_word() -> None:
    sentence = "one two three four five six seven eight"
    start = sentence.index("four")
    assert around(sentence, start, start + 4, 80) == ("one two three ", "four", " five six seven eight")
    assert around(sentence, start, start + 4, 20) == ("… three ", "four", " five …")
    assert around(sentence, 0, 3, 20) == ("", "one", " two three four …")
    last = len(sentence)
    assert around(sentence, last - 5, last, 20) == ("… six seven ", "eight", "")


@pytest.mark.parametrize("width", range(5, 60))
def test_a_cut_sentence_fits_and_is_part_of_the_whole(width: int) -> None:
    sentence = "one two three four five six seven eight"
    for word in sentence.split():
        start = sentence.index(word)
        before, middle, after = around(sentence, start, start + len(word), width)
        assert middle == word
        assert len(before + middle + after) <= max(width, len(word) + 2)
        assert sentence[:start].endswith(before.removeprefix("…"))
        assert sentence[start + len(word) :].startswith(after.removesuffix("…"))
