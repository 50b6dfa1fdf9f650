from __future__ import annotations

from headstart.claims.labels_saved import steps_until


def test_the_first_step_at_a_score_counts_even_if_it_is_lost_again() -> None:
    curve = [(10, 0.4), (20, 0.7), (30, 0.6)]
    assert steps_until(curve, 0.4) == 10
    assert steps_until(curve, 0.55) == 20
    assert steps_until(curve, 0.7) == 20
    assert steps_until(curve, 0.71) is None
