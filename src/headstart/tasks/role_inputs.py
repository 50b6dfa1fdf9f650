"""What `predict` labels with roles: plain text, column files, and JSON lines with words or with a text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from headstart.config import Section
from headstart.tasks.conll import read_columns
from headstart.tasks.inputs import read_inputs
from headstart.tasks.role_columns import RoleColumnFile
from headstart.tasks.role_json import unlabelled_sentences
from headstart.tasks.role_reading import predicates_of, words_of
from headstart.tasks.roles import RoleSentence
from headstart.tasks.tag_inputs import InputKind, input_kind, sentence_of_text
from headstart.text.files import Source
from headstart.text.lines import STANDARD_INPUT, StandardInput


class RoleInputConfig(Section):
    """How the files of semantic role labelling are read."""

    text_field: str | None = None
    """JSON lines: the key with the words. What `predict` reads may also be tables with a column of plain text."""

    input_as: InputKind | None = None
    """What `predict` reads: plain text, columns, or JSON lines with words; unset: by the file's suffix."""


def read_role_inputs(source: str, config: RoleInputConfig) -> Iterator[RoleSentence]:
    """Sentences without arguments; their predicates where the file gives them.

    source: a file, or "-" for standard input. A plain text is split into sentences and words; a blank line is a
    sentence without words.
    """
    kind = config.input_as or input_kind(source, config.text_field)
    if kind == "text":
        for found in read_inputs(source, config.text_field):
            yield from sentences_of_text(found.text, found.where)
        return
    with StandardInput() if source == STANDARD_INPUT else Source(Path(source).expanduser()) as opened:
        yield from in_columns(opened) if kind == "columns" else unlabelled_sentences(opened, config.text_field)


def sentences_of_text(text: str, where: str = "") -> list[RoleSentence]:
    """The sentences of a plain text, each with the whole text and its words at exact character offsets of it."""
    whole = sentence_of_text(text, where)
    offsets = whole.offsets or ()
    bounds = whole.sentence_bounds or [(0, 0)]
    return [RoleSentence(whole.words[a:b], None, where, text, offsets[a:b]) for a, b in bounds]


def in_columns(source: Source) -> Iterator[RoleSentence]:
    """The predicates are not known if the file marks none at all: some of its sentences would have one."""
    file = RoleColumnFile(source)
    if file.layout is None and not isinstance(source, StandardInput):
        # The word is first, as files of tags have it, or it is CoNLL-U; the file is read again for that.
        yield from (RoleSentence(found.words, None, found.where) for found in read_columns(source.path, None, False))
        return
    layout = file.known_layout()
    sentences = []
    for block in file.blocks:
        rows = file.rows(block)
        predicates = tuple(predicates_of(rows, layout))
        sentences.append(RoleSentence(words_of(rows), predicates, file.where(block), columns=file.columns(block)))
    given = any(sentence.predicates for sentence in sentences)
    yield from (sentence if given else replace(sentence, predicates=None) for sentence in sentences)
