"""Files of scored pairs, as they are published."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from headstart.errors import DataError
from headstart.inspection.scored_pairs import ScoredPair, read_scored_pairs
from headstart.tasks.pair_reading import PairInputConfig


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("EN-WS.txt", "tiger\tcat\t7.35\r\nlove\tsex\t6\r\n\r\n"),
        ("men.txt", "tiger cat 7.35\nlove  sex 6\n"),
        ("ws.csv", "tiger,cat,7.35\nlove,sex,6\n"),
        ("combined.csv", "Word 1,Word 2,Human (mean)\ntiger,cat,7.35\nlove,sex,6.00\n"),
        ("SimLex-999.txt", "word1\tword2\tPOS\tSimLex999\tconc(w1)\ntiger\tcat\tN\t7.35\t4.1\nlove\tsex\tN\t6\t2.9\n"),
        ("SICK.txt", "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
                     "1\ttiger\tcat\t7.35\tNEUTRAL\n2\tlove\tsex\t6\tNEUTRAL\n"),
        ("sts.tsv", "genre\tsentence1\tsentence2\tscore\nnews\ttiger\tcat\t7.35\nnews\tlove\tsex\t6\n"),
        ("sts.csv", 'sentence1,sentence2,score\n"tiger","cat",7.35\nlove,sex,6\n'),
        ("sts.jsonl", '{"sentence1": "tiger", "sentence2": "cat", "label": 7.35}\n'
                      '{"sentence1": "love", "sentence2": "sex", "label": 6}\n'),
    ],
)  # fmt: skip
def test_the_usual_files(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    wanted = [ScoredPair("tiger", "cat", 7.35), ScoredPair("love", "sex", 6.0)]
    assert read_scored_pairs(path) == wanted
    with gzip.open(tmp_path / f"{name}.gz", "wt", newline="") as file:
        file.write(text)
    assert read_scored_pairs(tmp_path / f"{name}.gz") == wanted


def test_columns_by_name(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("a;b;score;how\nx y;z;1;2\n")
    config = PairInputConfig(text_field="a", second_field="b", label_field="how")
    assert read_scored_pairs(path, config) == [ScoredPair("x y", "z", 2.0)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tiger\tcat\t7\nlove\tsex\n", ":2: expected two words, or texts, and their score"),
        ("tiger\tcat\t7\nlove\tsex\thigh\n", ":2: the score must be a number; got 'high'"),
        ("tiger\tcat\t7\nlove\tsex\tnan\n", ":2: the score must be a number; got 'nan'"),
        ("tiger\tcat\t7\n\tsex\t3\n", ":2: the first text is empty"),
        ("word1\tword2\tfreq\ntiger\tcat\t7\n", ":1: has no column 'relatedness_score' or .* --label-field"),
        ("word1\tword2\tscore\n", "holds no pair"),
        ("", ":1: expected two words and their score, or the names of columns"),
        ("tiger cat\n", ":1: expected two words and their score, or the names of columns.*'tiger cat'"),
    ],
)
def test_what_is_no_pair_is_told_with_its_line(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=says):
        read_scored_pairs(path)
    with pytest.raises(DataError, match="no such file"):
        read_scored_pairs(tmp_path / "none.txt")
