from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headstart.errors import DataError
from headstart.inspection.contexts import compare_contexts, shared_word
from headstart.pretrained import load_run

FIRST, SECOND = "The cat sat on the mat .", "a mat for the old dog and the Cat"


@pytest.mark.parametrize("kind", ["static", "elmo", "bert"])
def test_cosines_are_those_of_the_vectors(pretrained_runs: dict[str, Path], kind: str) -> None:
    pretrained = load_run(pretrained_runs[kind])
    found = compare_contexts(pretrained, FIRST, SECOND, "CAT")
    assert (found.word, found.places) == ("cat", (1, 8))
    one, other = pretrained.represent([FIRST, SECOND])
    for layer, cosine in enumerate(found.cosines):
        a, b = one[layer, 1], other[layer, 8]
        assert cosine == pytest.approx(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)), abs=1e-5)
    assert len(found.cosines) == pretrained.encoder.shape[0]


def test_a_static_vector_is_the_same_everywhere(pretrained_runs: dict[str, Path]) -> None:
    assert compare_contexts(load_run(pretrained_runs["static"]), FIRST, SECOND).cosines == pytest.approx((1.0,))


def test_the_word_is_the_longest_that_both_have() -> None:
    assert shared_word(["a", "cat", "mat"], ["mat", "a", "cat"], None) == "cat"


def test_what_is_not_shared_is_told() -> None:
    with pytest.raises(DataError, match="no word in common"):
        shared_word(["a"], ["b"], None)
    with pytest.raises(DataError, match="'dog' is not a word of both sentences; they share a, cat"):
        shared_word(["a", "cat", "dog", "a"], ["a", "cat"], "dog")
