"""The models that refusals name do what they are named for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import headstart
from headstart.inspection.abilities import ABLE, Ability, one_that_can
from headstart.inspection.opened import Opened
from headstart.weights.catalogue import catalogue

DOES: dict[Ability, Callable[[Opened], object]] = {
    "masks": lambda model: model.fill("A [MASK] film ."),
    "next words": lambda model: model.next_words("A good"),
    "words": lambda model: model.neighbours("film").neighbours,
    "contexts": lambda model: np.ptp([R[-1, 1] for R in model.represent(["a film", "old film"])], axis=0).any(),
}


@pytest.mark.parametrize("ability", ABLE)
def test_the_one_that_is_named_can_and_comes_with_the_package(ability: Ability) -> None:
    assert catalogue()[ABLE[ability]].package is not None
    assert DOES[ability](headstart.load(ABLE[ability]))
    assert one_that_can(ability) == f"{ABLE[ability]}, which comes with headstart, can."
