"""The growth charts: the figures of a point, their table and picture, and one point measured in a real process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytest.importorskip("bench", reason="bench/ is importable from the repository's folder only")

from bench.growth.picture import apart, picture, short_number
from bench.growth.series import SERIES, TOKENS, cases
from bench.growth.table import Point, lines_of, markdown
from bench.growth.works import WORKS, next_word_batch

ROOT = Path(__file__).parents[1]


def point(series: str, line: str, x: float, seconds: float, peak_bytes: int) -> Point:
    return Point(series=series, line=line, x=x, tokens=1_000, seconds=seconds, peak_bytes=peak_bytes)


POINTS = [
    point("length", "BERT mini, training", 512, 0.9, 600_000_000),
    point("length", "BERT mini, training", 32, 0.3, 300_000_000),
    point("length", "ELMo mini, training", 32, 0.5, 400_000_000),
    point("stream", "BERT tiny, encoding", 1_000_000, 0.02, 90_000_000),
]


class NoText:
    """Stands for the files: the plan does not read them."""

    folder = Path("texts")

    def words(self) -> Path:
        return Path("words.txt")

    def sentences(self) -> Path:
        return Path("sentences.txt")


def test_a_table_for_each_thing_that_grows_smallest_first() -> None:
    lines = markdown(POINTS).splitlines()
    assert lines[0] == f"| {SERIES['length']} | BERT mini, training | ELMo mini, training |"
    assert lines[2] == "| 32 | 300.0 µs, 300 MB | 500.0 µs, 400 MB |"
    assert lines[3] == "| 512 | 900.0 µs, 600 MB |  |"
    assert lines[4] == "| last / first | time 3.00, memory 2.00 | time 1.00, memory 1.00 |"
    assert lines[8] == "| 1,000,000 | 20.0 µs, 90 MB |"
    assert list(lines_of(POINTS, "length")) == ["BERT mini, training", "ELMo mini, training"]


def test_the_picture_has_two_charts_for_each_and_repeats_itself() -> None:
    text = picture(POINTS)
    assert text == picture(POINTS)
    ElementTree.fromstring(text)
    assert len(re.findall(r'id="growth-axes_\d+"', text)) == 4
    for name in ("time per token, µs", "peak memory, MB", SERIES["length"], SERIES["stream"], "BERT tiny, encoding"):
        assert name in text
    assert [short_number(x) for x in (32, 1_500, 10_000, 800_000, 1e6)] == ["32", "1.5k", "10k", "800k", "1M"]


@pytest.mark.parametrize("quick", [False, True])
def test_every_case_names_a_work_and_lengths_share_their_tokens(quick: bool) -> None:
    for series in ("length", "batch", "vocabulary", "stream"):
        planned = cases(series, NoText(), quick)  # type: ignore[arg-type]
        assert planned
        assert len({(case.line, case.x) for case in planned}) == len(planned)
        assert all(case.work in WORKS for case in planned)
    lengths = cases("length", NoText(), quick)  # type: ignore[arg-type]
    assert {case.options["B"] * case.options["T"] for case in lengths} == {TOKENS}


def test_the_words_to_foretell_lie_in_the_vocabulary_frequent_ones_more_often(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a\nfilm\n", encoding="utf-8")
    targets = next_word_batch(8, 32, 50, tmp_path / "words.txt").targets
    assert int(targets.min()) == 0
    assert int(targets.max()) < 50
    assert (targets < 7).float().mean() == pytest.approx(0.5, abs=0.15)  # log 8 is half of log 51


def test_a_point_is_measured_in_a_process_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "sentences.txt").write_text("a warm film\ndull and long\n", encoding="utf-8")
    options = json.dumps({"n": 50, "sentences": str(tmp_path / "sentences.txt")})
    command = [sys.executable, "-m", "bench.growth.child", "stream", options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["tokens"] == 150
    assert figures["seconds"] > 0
    assert 1_000_000 < figures["peak_bytes"] < 1_000_000_000


def test_labels_on_the_axis_do_not_meet() -> None:
    assert apart([10e3, 50e3, 100e3, 200e3, 400e3, 800e3]) == [10e3, 50e3, 200e3, 800e3]
    assert apart([1, 2, 4, 8, 16, 32, 64]) == [1, 2, 4, 8, 16, 32, 64]
    assert apart([5.0]) == [5.0]
