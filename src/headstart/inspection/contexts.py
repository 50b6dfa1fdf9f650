"""One word in two sentences: how alike its vectors are, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass

from headstart.errors import DataError
from headstart.inspection.neighbours import unit
from headstart.pretrained import Pretrained


@dataclass(frozen=True, slots=True)
class Contexts:
    """cosines: of the word's two vectors, one for each layer; places: the word's number in each sentence, from 0."""

    encoder: str
    word: str
    places: tuple[int, int]
    cosines: tuple[float, ...]


def compare_contexts(pretrained: Pretrained, first: str, second: str, word: str | None = None) -> Contexts:
    """word: one that both sentences have, in any case; None: the longest of those. Its first occurrence counts."""
    words = [[one.lower() for one in pretrained.words(sentence)] for sentence in (first, second)]
    chosen = shared_word(words[0], words[1], word)
    places = (words[0].index(chosen), words[1].index(chosen))
    one, other = pretrained.represent([first, second])
    cosines = (unit(one[:, places[0]]) * unit(other[:, places[1]])).sum(axis=1)
    return Contexts(pretrained.name, chosen, places, tuple(float(cosine) for cosine in cosines))


def shared_word(first: list[str], second: list[str], word: str | None) -> str:
    shared = [one for one in first if one in second]
    if word is None:
        if not shared:
            raise DataError("The two sentences have no word in common. Give two that share one.")
        return max(shared, key=len)  # of equals, the first
    if word.lower() not in shared:
        raise DataError(
            f"'{word}' is not a word of both sentences; they share {', '.join(dict.fromkeys(shared)) or 'none'}."
        )
    return word.lower()
