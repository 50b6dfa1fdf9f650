from __future__ import annotations

import pytest

from headstart.training.schedule import DECAYS, as_seconds, rate_at


def test_linear_schedule_by_hand() -> None:
    rates = [rate_at(p, warmup=0.2, decay="linear") for p in (0.0, 0.1, 0.2, 0.6, 1.0)]
    assert rates == pytest.approx([0.0, 0.5, 1.0, 0.5, 0.0])


def test_cosine_is_half_way_down_in_the_middle() -> None:
    assert rate_at(0.5, warmup=0.0, decay="cosine") == pytest.approx(0.5)


@pytest.mark.parametrize("decay", DECAYS)
def test_every_decay_starts_at_one_after_the_warmup_and_never_leaves_the_range(decay: str) -> None:
    assert rate_at(0.1, warmup=0.1, decay=decay) == pytest.approx(1.0)
    assert all(0.0 <= rate_at(p / 50, warmup=0.1, decay=decay) <= 1.0 for p in range(-5, 60))


def test_all_warmup_is_allowed() -> None:
    assert rate_at(0.5, warmup=1.0, decay="linear") == pytest.approx(0.5)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("90", 90), ("10m", 600), ("1h30m", 5400), ("1.5h", 5400)])
def test_durations(text: str, seconds: float) -> None:
    assert as_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "ten minutes", "10x", "m"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="such as 90s, 10m or 1h30m"):
        as_seconds(text)
