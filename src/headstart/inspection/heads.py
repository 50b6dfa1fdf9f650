"""What attention heads do, in figures and tables: how much of their attention goes to which place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SYMBOLS = {"[CLS]": "C", "[SEP]": "S", "before": "<", "itself": "=", "after": ">", "others": "*"}
"""By the place that a head looks at."""
LEGEND = "C [CLS], S [SEP], < the word before, = the word itself, > the word after, * other words"
TITLES = {"before": "the word before", "itself": "the word itself", "after": "the word after", "others": "other words"}
STAND_OUT = 3
"""Heads that are named for each place."""
TINY = np.finfo(np.float64).tiny
Cells = tuple[list[str], list[list[str]]]
"""Headers and rows."""


@dataclass(frozen=True, slots=True)
class HeadSummary:
    """What one head does, as means over the units of words, that is without those of [CLS] and [SEP].

    The shares to_cls .. to_others are of different places and sum to 1. before, after: the units next to a unit, if
    they are words' too.
    """

    layer: int
    head: int
    to_cls: float
    to_sep: float
    to_before: float
    to_itself: float
    to_after: float
    to_others: float
    entropy: float
    """In nats: 0 where all attention is on one unit, log(units) where it is on all alike."""
    distance: float
    """How many units away attention is, [CLS] and [SEP] left out."""

    @property
    def shares(self) -> dict[str, float]:
        """Each share by the name of its place."""
        return {
            "[CLS]": self.to_cls,
            "[SEP]": self.to_sep,
            "before": self.to_before,
            "itself": self.to_itself,
            "after": self.to_after,
            "others": self.to_others,
        }


def summarise(layer: int, head: int, attention: NDArray[np.float32], of_words: NDArray[np.bool_]) -> HeadSummary:
    """attention: (T, T); of_words: (T,), False at [CLS] and [SEP]."""
    places = np.flatnonzero(of_words)
    rows = attention[places].astype(np.float64)  # (n, T)
    between = rows[:, places]  # (n, n)
    n = len(places)
    before, itself, after = (float(np.trace(between, offset)) / n for offset in (-1, 0, 1))
    to_cls, to_sep = (float(rows[:, place].mean()) for place in (0, -1))
    apart = np.abs(places[:, None] - places)
    return HeadSummary(
        layer=layer,
        head=head,
        to_cls=to_cls,
        to_sep=to_sep,
        to_before=before,
        to_itself=itself,
        to_after=after,
        to_others=max(0.0, 1 - (to_cls + to_sep + before + itself + after)),
        entropy=float(-(rows * np.log(np.maximum(rows, TINY))).sum(axis=1).mean()),
        distance=float((between * apart).sum() / max(between.sum(), TINY)),
    )


def heads_table(heads: Sequence[HeadSummary]) -> Cells:
    """A row for each layer, a cell for each head."""
    rows: dict[int, list[str]] = {}
    for head in heads:
        rows.setdefault(head.layer, [str(head.layer)]).append(strongest_place(head))
    return ["layer", *dict.fromkeys(str(head.head) for head in heads)], list(rows.values())


def strongest_place(head: HeadSummary) -> str:
    place, share = max(head.shares.items(), key=lambda pair: pair[1])
    return f"{SYMBOLS[place]}{100 * share:.0f}"


def standing_out(heads: Sequence[HeadSummary]) -> Cells:
    """A row for each place among the words: the heads with the largest shares for it, in %.

    In many heads [CLS] or [SEP] takes most of the attention, as if there were nothing to look at (Clark et al. 2019).
    """
    rows = []
    for place, title in TITLES.items():
        best = sorted(heads, key=lambda head: -head.shares[place])[:STAND_OUT]
        rows.append([title, *(f"{head.layer}-{head.head} {100 * head.shares[place]:.0f}" for head in best)])
    return ["most to", "layer-head", *[""] * (len(rows[0]) - 2)], rows


def shares_table(heads: Sequence[HeadSummary]) -> Cells:
    """A row for each head: all its shares in %, its entropy and its distance."""
    headers = ["layer", "head", *SYMBOLS, "entropy", "distance"]
    return headers, [
        [
            str(head.layer),
            str(head.head),
            *(f"{100 * share:.0f}" for share in head.shares.values()),
            f"{head.entropy:.2f}",
            f"{head.distance:.1f}",
        ]
        for head in heads
    ]
