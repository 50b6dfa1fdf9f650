"""What heads do, as tables."""

from __future__ import annotations

from headstart.inspection.heads import HeadSummary, heads_table, shares_table, standing_out

BEFORE = HeadSummary(1, 1, 0.1, 0.0, 0.8, 0.0, 0.1, 0.0, 0.64, 1.0)
MARKS = HeadSummary(1, 2, 0.3, 0.5, 0.1, 0.0, 0.1, 0.0, 1.17, 1.5)
BROAD = HeadSummary(2, 1, 0.0, 0.1, 0.1, 0.2, 0.1, 0.5, 1.36, 2.25)
ITSELF = HeadSummary(2, 2, 0.1, 0.1, 0.1, 0.6, 0.1, 0.0, 1.23, 0.5)
HEADS = [BEFORE, MARKS, BROAD, ITSELF]


def test_each_head_is_named_by_the_place_that_it_looks_at_most() -> None:
    assert heads_table(HEADS) == (["layer", "1", "2"], [["1", "<80", "S50"], ["2", "*50", "=60"]])


def test_the_heads_that_stand_out_for_each_place_among_the_words() -> None:
    headers, rows = standing_out(HEADS)
    assert headers == ["most to", "layer-head", "", ""]
    assert rows[0] == ["the word before", "1-1 80", "1-2 10", "2-1 10"]
    assert [row[1] for row in rows] == ["1-1 80", "2-2 60", "1-1 10", "2-1 50"]


def test_all_shares_of_a_head() -> None:
    headers, rows = shares_table(HEADS[2:])
    assert headers == ["layer", "head", "[CLS]", "[SEP]", "before", "itself", "after", "others", "entropy", "distance"]
    assert rows[0] == ["2", "1", "0", "10", "10", "20", "10", "50", "1.36", "2.2"]
