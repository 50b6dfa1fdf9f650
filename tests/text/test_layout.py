from __future__ import annotations

import gzip
import random
import textwrap
from pathlib import Path

import pytest

from headstart.text.documents import TextConfig, read_blocks, settle_layout

WORDS = ["film", "play", "actor", "nobody", "likes", "hates", "slow", "warm", "and", "the", "of", "it", "was"]


def reviews(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(3, 60))).capitalize() + "." for _ in range(count)]


def write(path: Path, lines: list[str], end: str = "\n") -> Path:
    data = (end.join(lines) + end).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def layout(*paths: Path) -> tuple[bool | None, str | None]:
    config, notice = settle_layout(paths, TextConfig())
    return config.one_per_line, notice


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("change", [str, str.lower, lambda line: line.rstrip("."), lambda line: f"  {line} "])
def test_a_review_per_line(name, end, change, tmp_path):
    path = write(tmp_path / name, [change(line) for line in reviews(50)], end)
    decided, notice = layout(path)
    assert decided is True
    assert notice is not None
    assert "50 lines" in notice
    assert "--no-one-per-line" in notice
    assert len(list(read_blocks([path], TextConfig()))) == 50


def test_blank_lines_at_the_ends_separate_nothing(tmp_path):
    assert layout(write(tmp_path / "a.txt", ["", *reviews(30), "", " "]))[0] is True


def test_a_blank_line_between_two_others_separates_documents(tmp_path):
    lines = reviews(30)
    assert layout(write(tmp_path / "a.txt", [*lines, "", *lines])) == (False, None)


def test_a_few_lines_are_one_document(tmp_path):
    assert layout(write(tmp_path / "a.txt", reviews(19))) == (False, None)


@pytest.mark.parametrize("width", [40, 60, 72, 100])
def test_hard_wrapped_text_is_one_document_and_the_user_is_told(width, tmp_path):
    decided, notice = layout(write(tmp_path / "a.txt", textwrap.wrap(" ".join(reviews(60)), width)))
    assert decided is False
    assert notice is not None
    assert "hard-wrapped" in notice
    assert "--one-per-line" in notice


def test_wrapped_text_of_a_script_without_case(tmp_path):
    text = "電影很長但是音樂好聽大家都喜歡看電影。" * 100
    decided, _ = layout(write(tmp_path / "a.txt", [text[i : i + 40] for i in range(0, len(text), 40)]))
    assert decided is False


def test_lines_of_equal_length_that_are_sentences(tmp_path):
    assert layout(write(tmp_path / "a.txt", ["A line of some length ends here."] * 50))[0] is True


def test_the_setting_decides_without_a_word(tmp_path):
    path = write(tmp_path / "a.txt", reviews(50))
    for given in (True, False):
        config, notice = settle_layout([path], TextConfig(one_per_line=given))
        assert (config.one_per_line, notice) == (given, None)


def test_one_answer_for_all_files(tmp_path):
    lined = write(tmp_path / "a.txt", reviews(50))
    separated = write(tmp_path / "b.txt", ["one", "", "two"])
    short = [write(tmp_path / f"short{i}.txt", reviews(3)) for i in range(3)]
    table = tmp_path / "c.csv"
    table.write_text("text\na\n\nb\n")
    assert layout(lined, table, short[0])[0] is True
    for others in ([separated], short):
        decided, notice = layout(lined, *others)
        assert decided is False
        assert notice is not None
        assert "--one-per-line" in notice
    assert layout(*short) == layout(table) == (False, None)
