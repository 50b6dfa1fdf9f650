"""How figures are written for people: scores, shares, times."""

from __future__ import annotations

CHANCE = 0.05
"""Differences with a smaller p are taken to be more than chance."""


def score(name: str, value: float) -> str:
    if name.endswith("accuracy"):
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}" if name == "units" else f"{value:,.2f}"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
