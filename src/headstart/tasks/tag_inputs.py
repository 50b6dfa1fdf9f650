"""What `predict` tags: CoNLL columns, JSON lines with words or with a text, and plain text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from headstart.config import Section
from headstart.tasks.conll import WORD_FIELDS, TaggedSentence, read_columns, read_jsonl
from headstart.tasks.inputs import read_inputs
from headstart.tasks.plain_text import sentences_and_words
from headstart.text.files import Source
from headstart.text.lines import STANDARD_INPUT

PLAIN = (".txt", ".md", ".csv", ".parquet", ".txt.gz", ".md.gz", ".csv.gz", ".parquet.gz")
JSON = (".jsonl", ".jsonl.gz")


class TagInputConfig(Section):
    """How the files of a tagging task are read."""

    column: int | None = None
    """The column with the tag, counted from 0, or from -1 backwards; unset: the last one."""

    text_field: str | None = None
    """JSON lines: the key with the words. What `predict` reads may also be tables with a column of plain text."""

    label_field: str | None = None
    """JSON lines: the key with the tags."""

    input_as: Literal["text", "columns", "words"] | None = None
    """What `predict` reads: plain text, CoNLL columns, or JSON lines with words; unset: by the file's suffix."""


def read_sentences(source: str, config: TagInputConfig) -> Iterator[TaggedSentence]:
    """Examples without gold tags. Each text (a line, or a record) is one example, with its sentences marked."""
    name = Path(source).name.lower()
    kind = config.input_as
    if kind is None:
        is_text = source == STANDARD_INPUT or name.endswith(PLAIN) or config.text_field is not None
        kind = "text" if is_text else "columns"
        if name.endswith(JSON):
            kind = "text" if config.text_field is not None or not has_words(source) else "words"
    if kind == "text":
        for found in read_inputs(source, config.text_field):
            yield sentence_of_text(found.text, found.where)
        return
    sentences = (
        read_columns(source, tag_required=False) if kind == "columns" else read_jsonl(source, tag_required=False)
    )
    yield from (replace(sentence, tags=None) for sentence in sentences)


def has_words(source: str) -> bool:
    """Whether the first line of a JSON lines file has a list of words rather than a text."""
    with Source(Path(source).expanduser()) as file:
        first = next((line for line in file.lines() if line.strip()), "")
    return any(f'"{field}"' in first for field in WORD_FIELDS)


def sentence_of_text(text: str, where: str = "") -> TaggedSentence:
    """A plain text as words at exact character offsets, with its sentences."""
    words: list[str] = []
    offsets: list[tuple[int, int]] = []
    sentences: list[tuple[int, int]] = []
    for sentence in sentences_and_words(text):
        first = len(words)
        for word, start, end in sentence:
            words.append(word)
            offsets.append((start, end))
        sentences.append((first, len(words)))
    return TaggedSentence(tuple(words), None, where, text, tuple(offsets), tuple(sentences))
