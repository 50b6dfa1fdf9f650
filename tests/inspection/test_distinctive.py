from __future__ import annotations

from headstart.inspection.distinctive import context_of, distinctive_words


def test_distinctive_words_by_hand() -> None:
    inside = [frozenset({"the", "stage"}), frozenset({"the", "stage"}), frozenset({"the", "stage", "actor"})]
    outside = [frozenset({"the", "ball"}), frozenset({"the", "ball"}), frozenset({"the", "ball"})]
    assert distinctive_words(inside, outside) == ("stage",)
    assert distinctive_words(outside, inside) == ("ball",)
    assert distinctive_words(inside, []) == ()


def test_a_context_is_the_words_around() -> None:
    sentence = "One two , three four five six SEVEN eight [it] nine 10 !"
    start = sentence.index("it")
    assert context_of(sentence, start, start + 2) == {"three", "four", "five", "six", "seven", "eight", "nine"}
