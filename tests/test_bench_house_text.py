"""The text of the house models: what becomes a document."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from bench import house_text

BOOKS = """== 1_one ==

Chapter 1


A line that is
wrapped.

Another
paragraph.
== 2_two ==

The second book.
"""


def test_lines_are_joined_to_paragraphs_and_a_title_ends_a_book() -> None:
    found = list(house_text.paragraphs(BOOKS.splitlines()))
    assert found == ["", "Chapter 1", "A line that is wrapped.", "Another paragraph.", "", "The second book."]


def test_paragraphs_are_joined_to_documents_within_one_book(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ["Chapter 1\nA line that is wrapped.\nAnother paragraph.", "The second book."]
    assert list(house_text.documents(BOOKS.splitlines())) == whole
    monkeypatch.setattr(house_text, "DOCUMENT_WORDS", 7)
    cut = ["Chapter 1\nA line that is wrapped.", "Another paragraph.", "The second book."]
    assert list(house_text.documents(BOOKS.splitlines())) == cut


def test_reviews_and_books_become_one_file_of_each_part(tmp_path: Path) -> None:
    for part in ("train", "valid"):
        for name, text in (("lm_imdb_unsup", f"A review of {part}.\n\nAnother.\n"), ("lm_gutenberg", BOOKS)):
            path = tmp_path / "data" / name / f"{part}.txt.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(text.encode()))
    assert house_text.main(["--data", str(tmp_path / "data"), "--out", str(tmp_path / "text")]) == 0
    with gzip.open(tmp_path / "text" / "valid.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    assert texts[:2] == ["A review of valid.", "Another."]
    assert texts[-1] == "The second book."
    assert (tmp_path / "text" / "train.jsonl.gz").is_file()
