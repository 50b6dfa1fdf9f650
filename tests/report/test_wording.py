from __future__ import annotations

import pytest

from headstart.report.wording import short_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 s"), (0.42, "0.42 s"), (4.2, "4.2 s"), (42, "42 s"), (95, "1 min 35 s"), (600, "10 min")],
)
def test_short_duration_leaves_out_what_is_zero(seconds: float, text: str) -> None:
    assert short_duration(seconds) == text
