"""What `predict` tags: CoNLL columns, JSON lines with words or with a text, and plain text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from headstart.config import Section
from headstart.tasks.conll import WORD_FIELDS, TaggedSentence, read_columns, read_jsonl
from headstart.tasks.inputs import read_inputs
from headstart.text.files import Source
from headstart.text.lines import STANDARD_INPUT
from headstart.text.sentences import sentence_spans
from headstart.text.tables import json_object
from headstart.text.words import word_spans

PLAIN = (".txt", ".md", ".csv", ".parquet", ".txt.gz", ".md.gz", ".csv.gz", ".parquet.gz")
JSON = (".jsonl", ".jsonl.gz")
InputKind = Literal["text", "columns", "words"]


class TagInputConfig(Section):
    """How the files of a tagging task are read."""

    column: int | None = None
    """The column with the tag, counted from 0, or from -1 backwards; unset: the last one."""

    text_field: str | None = None
    """JSON lines: the key with the words. What `predict` reads may also be tables with a column of plain text."""

    label_field: str | None = None
    """JSON lines: the key with the tags."""

    input_as: InputKind | None = None
    """What `predict` reads: plain text, CoNLL columns, or JSON lines with words; unset: by the file's suffix."""


def read_sentences(source: str, config: TagInputConfig) -> Iterator[TaggedSentence]:
    """Examples without gold tags. Each text (a line, or a record) is one example, with its sentences marked."""
    kind = config.input_as or input_kind(source, config.text_field)
    if kind == "text":
        for found in read_inputs(source, config.text_field):
            yield sentence_of_text(found.text, found.where)
        return
    if kind == "columns":
        yield from (replace(sentence, tags=None) for sentence in read_columns(source, tag_required=False))
    else:
        yield from read_jsonl(source, config.text_field, with_tags=False)


def input_kind(source: str, text_field: str | None) -> InputKind:
    """What a file holds, by its suffix, and JSON lines by their first line."""
    name = Path(source).name.lower()
    if name.endswith(JSON):
        return "words" if has_words(source, text_field) else "text"
    is_text = source == STANDARD_INPUT or name.endswith(PLAIN) or text_field is not None
    return "text" if is_text else "columns"


def has_words(source: str, field: str | None) -> bool:
    """Whether the first line of a JSON lines file has a list of words rather than a text."""
    with Source(Path(source).expanduser()) as file:
        first = next((line for line in file.lines() if line.strip()), "{}")
    record = json_object(first, f"{source}:1")
    return any(isinstance(record.get(name), list) for name in ((field,) if field else WORD_FIELDS))


def sentence_of_text(text: str, where: str = "") -> TaggedSentence:
    """A plain text as words at exact character offsets, with its sentences, none of them without words."""
    offsets: list[tuple[int, int]] = []
    sentences: list[tuple[int, int]] = []
    for first, last in sentence_spans(text, lines_are_sentences=False):
        before = len(offsets)
        offsets += [(first + start, first + end) for start, end in word_spans(text[first:last])]
        if len(offsets) > before:
            sentences.append((before, len(offsets)))
    words = tuple([text[start:end] for start, end in offsets])
    return TaggedSentence(words, None, where, text, tuple(offsets), tuple(sentences))
