"""The text of the house models: film reviews and books of a data folder, as JSON lines of one document each.

    python -m bench.house_text --data FOLDER --out FOLDER

FOLDER/lm_imdb_unsup has a review per line, FOLDER/lm_gutenberg hard-wrapped books with a line `== title ==` before
each. One run reads all its .txt files in one layout, so both become JSON lines: train.jsonl.gz and valid.jsonl.gz.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

TITLE = re.compile(r"== .+ ==")
DOCUMENT_WORDS = 600
"""Paragraphs of a book are joined to documents of about so many words; a review has 230."""


def paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Hard-wrapped lines joined up to each blank one; a title ends a book and is yielded as an empty paragraph."""
    gathered: list[str] = []
    for line in lines:
        title = TITLE.fullmatch(line.strip()) is not None
        if line.strip() and not title:
            gathered.append(line.strip())
            continue
        if gathered:
            yield " ".join(gathered)
        gathered = []
        if title:
            yield ""
    if gathered:
        yield " ".join(gathered)


def documents(lines: Iterable[str]) -> Iterator[str]:
    """The paragraphs of books, joined; none has text of two books."""
    gathered: list[str] = []
    words = 0
    for paragraph in paragraphs(lines):
        gathered += [paragraph] if paragraph else []
        words += len(paragraph.split())
        if gathered and (words >= DOCUMENT_WORDS or not paragraph):
            yield "\n".join(gathered)
            gathered, words = [], 0
    if gathered:
        yield "\n".join(gathered)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.house_text", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with lm_imdb_unsup and lm_gutenberg")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    for part in ("train", "valid"):
        name = f"{part}.txt.gz"
        with (
            gzip.open(given.data / "lm_imdb_unsup" / name, "rt", encoding="utf-8") as reviews,
            gzip.open(given.data / "lm_gutenberg" / name, "rt", encoding="utf-8") as books,
            gzip.open(given.out / f"{part}.jsonl.gz", "wt", encoding="utf-8", compresslevel=3) as file,
        ):
            for text in (*(line.strip() for line in reviews if line.strip()), *documents(books)):
                file.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
