"""How figures are written for people: scores, shares, times."""

from __future__ import annotations

import re

CHANCE = 0.05
"""Differences with a smaller p are called more than chance."""
SCORE_NAMES = {
    "macro_f1": "macro-F1",
    "f1": "F1",
    "conll_f1": "CoNLL F1",
    "muc_f1": "MUC F1",
    "b_cubed_f1": "B-cubed F1",
    "ceaf_e_f1": "CEAF-e F1",
    "lea_f1": "LEA F1",
    "mentions_f1": "mention F1",
}


def score(name: str, value: float) -> str:
    """A pretraining score: accuracies are shares, perplexities are not."""
    if name.endswith("accuracy"):
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}" if name == "units" else f"{value:,.2f}"


def score_name(name: str) -> str:
    """A task score's name as it is written in text."""
    return SCORE_NAMES.get(name, name.replace("_", " "))


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def short_duration(seconds: float) -> str:
    """For tables and pictures: two digits below ten seconds, and no part that is zero."""
    if 0 < seconds < 10:
        return f"{seconds:.2g} s"
    return re.sub(" 0 (s|min)$", "", duration(seconds))


def around(sentence: str, start: int, end: int, width: int) -> tuple[str, str, str]:
    """What stands before sentence[start:end], it, and what stands after it, cut at spaces to about `width` characters.

    An ellipsis stands for what is cut. Half of the room is for each side; what one does not need goes to the other.
    """
    before, word, after = sentence[:start], sentence[start:end], sentence[end:]
    room = max(0, width - len(word))
    left = max(room // 2, room - len(after))
    if len(before) > left:
        kept = before[len(before) - max(0, left - 1) :]
        before = f"…{kept[kept.find(' ') :] if ' ' in kept else ''}"
    if len(after) > room - len(before):
        kept = after[: max(0, room - len(before) - 1)]
        after = f"{kept[: kept.rfind(' ') + 1]}…"
    return before, word, after
