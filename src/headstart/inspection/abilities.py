"""Which models can do what: a refusal names one that can, and that needs no download."""

from __future__ import annotations

from typing import Literal

Ability = Literal["masks", "next words", "words", "contexts"]
ABLE: dict[Ability, str] = {
    "masks": "bert-mini",
    "next words": "elmo-mini",
    "words": "words-mini",
    "contexts": "elmo-mini",
}
"""masks: predicts hidden pieces; next words: predicts the next word and the word before; words: a vector per word;
contexts: a vector per occurrence of a word."""


def one_that_can(ability: Ability) -> str:
    """The last sentence of a refusal."""
    return f"{ABLE[ability]}, which comes with headstart, can."
