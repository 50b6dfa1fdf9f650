from __future__ import annotations

from headstart.inspection.distinctive import context_of, distinctive_words


def test_distinctive_words_by_hand() -> None:
    inside = [frozenset({"the", "stage"}), frozenset({"the", "stage"}), frozenset({"the", "stage", "actor"})]
    outside = [frozenset({"the", "ball"}), frozenset({"the", "ball"}), frozenset({"the", "ball"})]
    assert distinctive_words(inside, outside) == ("stage",)
    assert distinctive_words(outside, inside) == ("ball",)
    assert distinctive_words(inside, []) == ()


def test_a_context_is_the_content_words_around() -> None:
    sentence = "Red blue , green amber pink of GOLD white [it] black 10 !"
    start = sentence.index("[it]") + 1
    assert context_of(sentence, start, start + 2) == {"green", "amber", "pink", "gold", "white", "black"}
