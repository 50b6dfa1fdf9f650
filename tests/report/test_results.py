from __future__ import annotations

from dataclasses import replace

import pytest

from headstart.report.results import Comparison, LayerWeights, TransferResults


def test_transfer_results_have_mean_spread_and_the_best_runs_mix(transferred: TransferResults) -> None:
    assert (transferred.scores, transferred.mean) == ([0.5, 0.7], pytest.approx(0.6))
    assert transferred.spread == pytest.approx(0.2 / 2**0.5)
    assert transferred.means == pytest.approx({"f1": 0.6, "precision": 0.5})
    assert transferred.mix == {"input": LayerWeights([0.1, 0.9])}
    assert replace(transferred, runs=transferred.runs[1:]).spread is None


def test_a_row_is_collapsed_when_most_of_its_seeds_are(finished: Comparison) -> None:
    entry = finished.table[0]  # three seeds
    assert [replace(entry, collapsed=count).is_collapsed for count in range(4)] == [False, False, True, True]


def test_budgets_are_those_that_have_a_score(finished: Comparison) -> None:
    assert finished.budgets == [50, 1000]
    assert {entry.labels for entry in finished.with_most_labels()} == {1000}
    half_way = replace(finished, table=[entry for entry in finished.table if entry.labels == 50])
    assert half_way.budgets == [50]
    assert replace(finished, table=[]).with_most_labels() == []
