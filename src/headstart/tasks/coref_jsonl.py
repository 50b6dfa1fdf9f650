"""Documents of JSON lines, with their coreference chains.

{"document": "a", "sentences": [["Anna", "left", "."], ["She", "ran", "."]], "chains": [[[0, 1], [3, 4]]]}

A mention is [first word, end], without end, counted over the whole document. The files of end-to-end models, which have
`doc_key` and `clusters` with the last word instead of the end, are read, too. Optional: part, genre, and speakers, one
for each sentence or a list of them for its words. Documents to be predicted may have a `text` instead of sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headstart.errors import DataError
from headstart.tasks.conll import strings_of
from headstart.tasks.coref_documents import Chain, CorefDocument, Mention, genre_of, sorted_chains
from headstart.text.files import Source
from headstart.text.tables import listed_columns, objects_of

JSON_LINES = (".jsonl", ".jsonlines", ".jsonl.gz", ".jsonlines.gz")
NAMES = ("document", "doc_key")
CHAINS, CLUSTERS = "chains", "clusters"
LABELLED = 'such as {"document": "a", "sentences": [["Anna", "left"]], "chains": [[[0, 1]]]}'


def documents_in_json(source: Source, labelled: bool = True) -> Iterator[CorefDocument]:
    for where, record in objects_of(source):
        yield document_of(record, where, f"line {source.line}", labelled)


def document_of(record: Mapping[str, Any], where: str, default_name: str, labelled: bool = True) -> CorefDocument:
    sentences = sentences_of(record, where)
    words = tuple([word for sentence in sentences for word in sentence])
    if not words:
        raise DataError(f"{where}: this document holds no word. Fill it in, or remove this line.")
    bounds: list[tuple[int, int]] = []
    for sentence in filter(None, sentences):
        first = bounds[-1][1] if bounds else 0
        bounds.append((first, first + len(sentence)))
    name, part = name_of(record, where, default_name)
    genre = record.get("genre")
    return CorefDocument(
        name,
        part,
        words,
        tuple(bounds),
        chains_of(record, len(words), where) if labelled else None,
        genre if isinstance(genre, str) else genre_of(name),
        speakers_of(record, sentences, where),
        where,
    )


def name_of(record: Mapping[str, Any], where: str, default: str) -> tuple[str, str]:
    """(name, part)."""
    name = next((record[key] for key in NAMES if key in record), default)
    if not isinstance(name, str):
        raise DataError(f"{where}: the document's name must be text, got {name!r:.60}.")
    return name, str(record.get("part", "0"))


def sentences_of(record: Mapping[str, Any], where: str) -> list[tuple[str, ...]]:
    given = record.get("sentences")
    if not isinstance(given, list):
        there = listed_columns(list(record)) if given is None else f"{given!r:.60}"
        raise DataError(f"{where}: 'sentences' must be lists of words, {LABELLED}; got {there}.")
    return [strings_of(sentence, "sentences", where) for sentence in given]


def chains_of(record: Mapping[str, Any], words: int, where: str) -> tuple[Chain, ...]:
    """`chains`, or `clusters`, in which a mention is given by its first and last word."""
    keys = [key for key in (CHAINS, CLUSTERS) if key in record]
    if len(keys) != 1:
        there = "both" if keys else f"neither, but {listed_columns(list(record))}"
        raise DataError(f"{where}: needs either '{CHAINS}' or '{CLUSTERS}'; has {there}. Only `predict` needs none.")
    after_last = 1 if keys[0] == CLUSTERS else 0
    given = record[keys[0]]
    if not isinstance(given, list) or not all(isinstance(chain, list) for chain in given):
        raise DataError(f"{where}: '{keys[0]}' must be a list of lists of mentions, {LABELLED}; got {given!r:.60}.")
    chains = [[mention_of(mention, after_last, words, keys[0], where) for mention in chain] for chain in given]
    return sorted_chains(filter(None, chains))


def mention_of(given: object, after_last: int, words: int, key: str, where: str) -> Mention:
    numbers = given if isinstance(given, list) else []
    if len(numbers) == 2 and all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        first, end = numbers[0], numbers[1] + after_last
        if 0 <= first < end <= words:
            return first, end
    form = "[first word, last word]" if after_last else "[first word, end], without end"
    raise DataError(
        f"{where}: a mention in '{key}' is {form}, counted from 0 over the {words:,} words of the document; got "
        f"{given!r:.60}."
    )


def speakers_of(
    record: Mapping[str, Any], sentences: list[tuple[str, ...]], where: str
) -> tuple[str, ...] | None:  # fmt: skip
    given = record.get("speakers")
    if given is None:
        return None
    rows = given if isinstance(given, list) else []
    found = [
        [row] * len(sentence) if isinstance(row, str) else row for row, sentence in zip(rows, sentences, strict=False)
    ]
    fits = len(rows) == len(sentences) and all(
        isinstance(row, list) and len(row) == len(sentence) and all(isinstance(one, str) for one in row)
        for row, sentence in zip(found, sentences, strict=False)
    )
    if not fits:
        raise DataError(
            f"{where}: 'speakers' must have a name for each of the {len(sentences):,} sentences, or a list of names "
            f"for its words; got {given!r:.60}."
        )
    return tuple([one for row in found for one in row]) if any(one for row in found for one in row) else None
