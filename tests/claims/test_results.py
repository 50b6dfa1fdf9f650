from __future__ import annotations

import pytest

from headstart.claims.results import (
    ClaimResult,
    ClaimTable,
    Expected,
    Finding,
    Measured,
    Outcome,
    Picture,
    Verdict,
    found,
    found_over_seeds,
    over_seeds,
    point,
    result_from_json,
    result_to_json,
    verdict_of,
)
from headstart.report.lines import Point


@pytest.mark.parametrize(
    ("interval", "expected", "verdict"),
    [
        ((0.01, 0.05), "above", "holds"),
        ((-0.01, 0.05), "above", "undecided"),
        ((-0.05, -0.01), "above", "fails"),
        ((0.0, 0.05), "above", "undecided"),
        ((-0.05, -0.01), "below", "holds"),
        ((0.01, 0.05), "below", "fails"),
        ((-0.01, 0.05), "below", "undecided"),
        ((-0.01, 0.015), "near", "holds"),
        ((-0.01, 0.03), "near", "undecided"),
        ((0.025, 0.03), "near", "fails"),
        ((-0.05, -0.03), "near", "fails"),
    ],
)
def test_the_interval_decides_the_verdict(interval: tuple[float, float], expected: Expected, verdict: Verdict) -> None:
    assert verdict_of(Measured(sum(interval) / 2, interval), expected, margin=0.02) == verdict


def test_a_number_without_an_interval_is_certain() -> None:
    assert found("x", Measured(-3.0), "below").verdict == "holds"
    assert found("x", Measured(-3.0)).verdict == "fails"


def test_the_mean_of_three_seeds_has_the_t_interval_of_the_books() -> None:
    measured = over_seeds([1.0, 2.0, 3.0])
    assert measured.value == 2.0
    assert measured.interval == pytest.approx((2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5), abs=2e-3)


def test_one_seed_decides_nothing_and_equal_seeds_decide_all() -> None:
    assert found_over_seeds("x", [5.0]) == Finding("x", "undecided", Measured(5.0))
    assert found_over_seeds("x", [5.0, 5.0]).verdict == "holds"
    assert found_over_seeds("x", [5.0, -4.0]).verdict == "undecided"


@pytest.mark.parametrize(
    ("measured", "text"),
    [
        (Measured(0.8314, (0.8, 0.86), "%"), "83.1 (80.0 to 86.0)"),
        (Measured(0.021, (-0.004, 0.046), "points"), "+2.1 (-0.4 to +4.6)"),
        (Measured(-0.0002, (-0.01, 0.0001), "points"), "0.0 (-1.0 to 0.0)"),
        (Measured(2.8e-17), "0"),
        (Measured(142.371), "142"),
        (Measured(3.14159), "3.14"),
        (Measured(40.0), "40"),
        (Measured(1234.5, unit="s"), "1,234.5 s"),
        (Measured(2.5, unit="x"), "2.5 x"),
        (Measured(float("inf")), "inf"),
    ],
)
def test_numbers_are_written_in_their_unit(measured: Measured, text: str) -> None:
    assert str(measured) == text


def test_shares_are_drawn_in_per_cent() -> None:
    assert point(2, Measured(0.5, (0.25, 0.75), "%")) == Point(2, 50.0, 25.0, 75.0)
    assert point(2, Measured(0.5)) == Point(2, 0.5)


def test_a_row_without_a_cell_for_each_column_is_refused() -> None:
    with pytest.raises(ValueError, match="a row has 1 cells for 2 columns"):
        ClaimTable("t", ["a", "b"], [["only one"]])


def test_a_result_comes_back_from_its_json_and_a_broken_one_does_not() -> None:
    table = ClaimTable("t", ["a", "b"], [["x", Measured(float("inf"))], ["y", None]])
    outcome = Outcome([table], [found("s", Measured(0.1, (0.0, 0.2), "points"), p=0.05)], [Picture("p", "t", "<svg/>")])
    result = ClaimResult(
        name="n", number=1, title="t", source="s", command="c", key="k", seconds=1.5, threads=2, scale="quick",
        machine="A processor, 2 cores", headstart="0.1.0", outcome=outcome,
    )  # fmt: skip
    text = result_to_json(result)
    assert result_from_json(text) == result
    assert result_from_json(text[:-20]) is None
    assert result_from_json("{}") is None
