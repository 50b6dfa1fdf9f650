"""The documents that `predict` resolves: plain text, JSON lines, CoNLL-2012's columns, or GAP's table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Literal

from headstart.config import Section
from headstart.errors import ConfigError, DataError
from headstart.tasks.coref_documents import CorefDocument
from headstart.tasks.coref_jsonl import JSON_LINES, document_of, name_of
from headstart.tasks.coref_reading import COLUMNS, documents_in_columns, files_of
from headstart.tasks.coref_text import document_of_text
from headstart.tasks.gap import TABLES, gap_documents
from headstart.tasks.inputs import JSON_OBJECT
from headstart.text.files import Source
from headstart.text.formats import clean, text_of, without_surrogates
from headstart.text.lines import STANDARD_INPUT, StandardInput
from headstart.text.tables import json_object

TEXT = "text"


class CorefInputConfig(Section):
    """How files of documents are read."""

    text_field: str | None = None
    """JSON lines that `predict` reads: the key with a document's text; unset: 'text', if there are no sentences."""

    input_as: Literal["text", "columns", "words"] | None = None
    """What `predict` reads: plain text, CoNLL columns, or JSON lines; unset: by the file's suffix."""

    one_per_line: bool = False
    """Whether each line of the plain text that `predict` reads is a document; otherwise all of it is one."""


def read_unresolved(source: str, config: CorefInputConfig) -> Iterator[CorefDocument]:
    """Documents of a file, of a folder of columns or JSON lines, or of standard input ("-"), without their chains.

    A whole text file is one document, unless `one_per_line`. Standard input, and a file of no known suffix, is JSON
    lines if it begins with a JSON object.
    """
    if source == STANDARD_INPUT:
        yield from in_source(StandardInput(), config)
        return
    for path in files_of(Path(source).expanduser()):
        with Source(path) as opened:
            yield from in_source(opened, config)


def in_source(source: Source, config: CorefInputConfig) -> Iterator[CorefDocument]:
    name = source.path.name.lower()
    kind = config.input_as
    if kind == "columns" or (kind is None and name.endswith(COLUMNS)):
        yield from documents_in_columns(source, labelled=False)
    elif kind is None and name.endswith(TABLES):
        yield from (replace(document, pronoun=None) for document in gap_documents(source))
    else:
        are_json = kind == "words" or (kind is None and name.endswith(JSON_LINES))
        yield from in_lines(source, source.lines(), config, are_json)


def in_lines(
    source: Source, lines: Iterator[str], config: CorefInputConfig, are_json: bool
) -> Iterator[CorefDocument]:  # fmt: skip
    first = next(lines, "")
    lines = chain([first] if first else [], lines)
    if are_json or (config.input_as is None and JSON_OBJECT.match(first)):
        for line in lines:
            if line.strip():
                yield json_document(line, f"{source.path}:{source.line}", f"line {source.line}", config)
        return
    if config.text_field is not None:
        raise ConfigError(
            f"{source.path}: is plain text, without keys, so there is no field '{config.text_field}'. Remove "
            f"--text-field."
        )
    stem = source.path.name.partition(".")[0] or source.path.name
    if config.one_per_line:
        for line in lines:
            where = f"{source.path}:{source.line}"
            yield document_of_text(clean(line.rstrip("\r\n")), f"{stem}, line {source.line}", where)
        return
    text = without_surrogates("".join(lines))
    if not text.strip():
        raise DataError(f"{source.path}: is empty. Give the text of a document.")
    yield document_of_text(text, stem, str(source.path))


def json_document(line: str, where: str, default_name: str, config: CorefInputConfig) -> CorefDocument:
    """With sentences: a document of those words; with a text: one of that text."""
    record = json_object(line, where)
    if config.text_field is None and "sentences" in record:
        return document_of(record, where, default_name, labelled=False)
    field = config.text_field or TEXT
    if field not in record:
        raise DataError(f"{where}: has neither 'sentences' nor '{field}'; there are: {', '.join(record) or 'none'}.")
    name, part = name_of(record, where, default_name)
    text = without_surrogates(text_of(record[field], field, where))
    return replace(document_of_text(text, name, where), part=part)
