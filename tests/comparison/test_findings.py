from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from headstart.comparison.findings import Findings, findings, labels_needed
from headstart.metrics import ACCURACY, F1
from headstart.report.results import Baseline, Cell, LabelsSaved, RowFacts, TableEntry

CURVE = [(100, 0.6), (1000, 0.7), (10_000, 0.8)]


def test_labels_needed_interpolates_in_the_logarithm() -> None:
    assert labels_needed(CURVE, 0.65) == pytest.approx(10**2.5)
    assert labels_needed(CURVE, 0.72) == pytest.approx(10**3.2)


def test_labels_needed_at_a_point_is_that_point() -> None:
    assert labels_needed(CURVE, 0.7) == 1000.0
    assert labels_needed(CURVE, 0.8) == 10_000.0


def test_labels_needed_below_the_first_is_the_first() -> None:
    assert labels_needed(CURVE, 0.1) == 100.0


def test_labels_needed_above_the_last_is_never() -> None:
    assert labels_needed(CURVE, 0.81) is None
    assert labels_needed([], 0.5) is None


def test_labels_needed_a_dip_does_not_count() -> None:
    dipping = [(100, 0.6), (1000, 0.5), (10_000, 0.8)]
    assert labels_needed(dipping, 0.6) == 100.0
    assert labels_needed(dipping, 0.7) == pytest.approx(10**3.5)


def test_labels_needed_order_does_not_count() -> None:
    assert labels_needed(CURVE[::-1], 0.65) == pytest.approx(10**2.5)


def row(name: str) -> RowFacts:
    return RowFacts(name, name.capitalize(), None, name, "finetune")


def cell(name: str, labels: int, seed: int, right: int, seconds: float = 1.0, *, collapsed: bool = False) -> Cell:
    """A row that gets so many of 100 dev examples right, always the first ones."""
    counts = np.stack([np.arange(100) < right, np.ones(100)], -1).astype(np.float64)
    return Cell(
        row=name, labels=labels, seed=seed, metric="accuracy", seconds=seconds, steps=10, best_step=5, parameters=7,
        scores={"accuracy": right / 100, "macro_f1": right / 100 - 0.01}, collapsed=collapsed, truncated=0, mix={},
        counts=counts,
    )  # fmt: skip


def found(
    right: Mapping[tuple[str, int, int], int], seconds: Mapping[str, float], baseline: Baseline | None = None
) -> Findings:
    cells = [cell(*key, n, seconds[key[0]], collapsed=n == 50) for key, n in right.items()]
    labels, seeds = sorted({key[1] for key in right}), sorted({key[2] for key in right})
    return findings(
        [row(name) for name in dict.fromkeys(key[0] for key in right)], cells, labels, seeds, ACCURACY, baseline
    )


RIGHT = {
    ("scratch", 50, 0): 60, ("scratch", 50, 1): 62, ("scratch", 500, 0): 70, ("scratch", 500, 1): 72,
    ("elmo", 50, 0): 66, ("elmo", 50, 1): 66, ("elmo", 500, 0): 79, ("elmo", 500, 1): 81,
    ("bert", 50, 0): 50, ("bert", 50, 1): 61, ("bert", 500, 0): 80, ("bert", 500, 1): 81,
}  # fmt: skip
SECONDS = {"scratch": 1.0, "elmo": 3.0, "bert": 9.0}


@pytest.fixture(scope="module")
def summary() -> Findings:
    return found(RIGHT, SECONDS)


def entry(summary: Findings, row: str, labels: int) -> TableEntry:
    return next(e for e in summary.table if (e.row, e.labels) == (row, labels))


def test_table(summary: Findings) -> None:
    assert [(e.row, e.labels) for e in summary.table] == [
        (row, labels) for row in ("scratch", "elmo", "bert") for labels in (50, 500)
    ]
    first = entry(summary, "scratch", 50)
    assert first.scores == [0.60, 0.62]
    assert first.mean == pytest.approx(0.61)
    assert first.spread == pytest.approx(0.02 / 2**0.5)
    assert first.means["macro_f1"] == pytest.approx(0.60)
    assert first.low < 0.61 < first.high
    assert (first.difference, first.p, first.collapsed) == (None, None, 0)


def test_each_row_is_held_against_the_one_before(summary: Findings) -> None:
    assert entry(summary, "elmo", 500).difference == pytest.approx(0.09)
    assert entry(summary, "bert", 500).difference == pytest.approx(0.005)
    assert entry(summary, "elmo", 500).p < 0.05 < entry(summary, "bert", 500).p
    assert entry(summary, "bert", 50).collapsed == 1


def test_labels_saved(summary: Findings) -> None:
    assert summary.labels_saved == [
        LabelsSaved("elmo", 50, 158, "Elmo with 50 labelled examples does what scratch does with 158."),
        LabelsSaved(
            "elmo", 500, None, "Elmo with 500 labelled examples does more than scratch does with 500 (the most tried)."
        ),
        LabelsSaved("bert", 50, 50, "Bert with 50 labelled examples is no better than scratch with 50."),
        LabelsSaved(
            "bert", 500, None, "Bert with 500 labelled examples does more than scratch does with 500 (the most tried)."
        ),
    ]


def test_what_may_be_chance_saves_no_labels() -> None:
    """Two of a hundred more than scratch, with the most labelled examples that were tried."""
    right = {("scratch", 50, 0): 60, ("scratch", 50, 1): 62, ("elmo", 50, 0): 62, ("elmo", 50, 1): 61}
    assert found(right, SECONDS).labels_saved == [
        LabelsSaved("elmo", 50, 50, "Elmo with 50 labelled examples is no better than scratch with 50.")
    ]


def test_advice_names_the_best_and_what_is_as_good(summary: Findings) -> None:
    best = entry(summary, "bert", 500)
    assert summary.advice is not None
    assert (summary.advice.row, summary.advice.run) == ("bert", "models/bert")
    assert summary.advice.sentence == (
        f"Deploy models/bert: 80.5 % ({100 * best.low:.1f} to {100 * best.high:.1f} %) with 500 labelled examples. "
        "models/elmo is not worse by more than chance and trains faster."
    )


def test_one_seed_has_no_spread() -> None:
    summary = found({key: n for key, n in RIGHT.items() if key[2] == 0}, SECONDS)
    assert entry(summary, "elmo", 50).spread is None
    assert summary.advice is not None
    assert "one seed only" in summary.advice.sentence


def test_half_way() -> None:
    """After three cells: what there is, compared where it can be."""
    done = [("scratch", 50, 0), ("elmo", 50, 0), ("scratch", 50, 1)]
    rows = [row(name) for name in ("scratch", "elmo", "bert")]
    summary = findings(rows, [cell(*key, RIGHT[key]) for key in done], [50, 500], [0, 1], ACCURACY)
    assert [(e.row, len(e.scores)) for e in summary.table] == [("scratch", 2), ("elmo", 1)]
    assert entry(summary, "elmo", 50).difference == pytest.approx(0.06)


def test_nothing_yet() -> None:
    assert findings([], [], [50], [0], ACCURACY) == Findings([], [], None)


def test_without_scratch_no_labels_are_saved() -> None:
    assert found({key: n for key, n in RIGHT.items() if key[0] != "scratch"}, SECONDS).labels_saved == []


def test_a_slower_later_row_is_not_advised() -> None:
    advice = found({("scratch", 50, 0): 80, ("elmo", 50, 0): 80}, SECONDS).advice
    assert advice is not None
    assert advice.row == "scratch"
    assert "elmo" not in advice.sentence


MAJORITY = Baseline("Always 'no'", 0.95, np.stack([np.arange(100) < 95, np.ones(100)], -1).astype(np.float64))


def advised(*cells: Cell, baseline: Baseline | None = MAJORITY) -> tuple[str | None, str]:
    rows = [row(name) for name in dict.fromkeys(cell.row for cell in cells)]
    seeds = sorted({cell.seed for cell in cells})
    advice = findings(rows, list(cells), [cells[0].labels], seeds, ACCURACY, baseline).advice
    assert advice is not None
    return advice.row, advice.sentence


def test_a_collapsed_row_is_not_advised_however_many_it_gets_right() -> None:
    """Labels 95 to 5: one label for everything is right in 95.0 %, and worth nothing."""
    collapsed = [cell("bert", 50, seed, 95, collapsed=True) for seed in range(3)]
    name, sentence = advised(*collapsed)
    assert name is None
    assert sentence.startswith("Deploy none of these yet")
    assert "gives all examples the same answer" in sentence
    name, sentence = advised(*(cell("scratch", 50, seed, 90) for seed in range(3)), *collapsed)
    assert name is None
    assert "no row is better than the baseline (Always 'no': 95.0 %) by more than chance" in sentence
    assert "Scratch: 90.0 %" in sentence
    assert "models/bert" not in sentence


def test_a_row_that_collapsed_in_few_seeds_may_be_advised() -> None:
    cells = [cell("bert", 50, 0, 50, collapsed=True), *(cell("bert", 50, seed, 90) for seed in (1, 2, 3, 4))]
    assert advised(*cells, baseline=None)[0] == "bert"
    most = [cell("bert", 50, seed, 90, collapsed=seed < 3) for seed in range(5)]
    assert advised(*most, baseline=None)[0] is None


def test_better_than_the_baseline_by_more_than_chance_is_advised() -> None:
    low = Baseline("Always 'no'", 0.5, np.stack([np.arange(100) < 50, np.ones(100)], -1).astype(np.float64))
    assert advised(*(cell("elmo", 50, seed, 80) for seed in range(3)), baseline=low)[0] == "elmo"
    assert advised(*(cell("elmo", 50, seed, 51) for seed in range(3)), baseline=low)[0] is None


def test_a_row_no_better_than_the_baseline_is_not_named_as_good_enough() -> None:
    weak = [cell("scratch", 50, seed, 95 if seed else 100, 1.0) for seed in range(3)]
    strong = [cell("bert", 50, seed, 100, 9.0) for seed in range(3)]
    name, sentence = advised(*weak, *strong)
    assert name == "bert"
    assert "models/scratch" not in sentence


def test_rows_are_compared_by_f1_where_that_is_the_metric() -> None:
    """Row a finds both of two entities and 6 that are none, row b one of two and nothing else."""

    def f1_cell(name: str, per_example: list[list[float]]) -> Cell:
        counts = np.array(per_example * 50)
        return Cell(
            row=name, labels=50, seed=0, metric="f1", scores={"f1": F1.of(counts)}, seconds=1.0, steps=1, best_step=1,
            collapsed=False, mix={}, parameters=1, truncated=0, counts=counts,
        )  # fmt: skip

    a, b = f1_cell("a", [[1, 4, 1], [1, 4, 1]]), f1_cell("b", [[1, 1, 1], [0, 0, 1]])
    nothing = Baseline("No entity", 0.0, np.array([[0.0, 0.0, 1.0]] * 100))
    summary = findings([row("a"), row("b")], [a, b], [50], [0], F1, nothing)
    assert [e.mean for e in summary.table] == pytest.approx([2 * 2 / (8 + 2), 2 * 1 / (1 + 2)])
    assert summary.table[1].difference == pytest.approx(2 / 3 - 0.4)
    assert summary.table[1].p is not None
    assert summary.table[1].p < 0.01
    assert summary.advice is not None
    assert summary.advice.row == "b"
