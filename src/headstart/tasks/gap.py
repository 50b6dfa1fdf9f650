"""GAP (Webster et al. 2018): does a pronoun refer to one of two names? Its table, and its scores of coreference chains.

The chain of the pronoun is mapped onto the names as evaluations of end-to-end models do: a name is taken for the
pronoun's entity if the chain has a mention that contains the name or is part of it. What is counted is what GAP's own
scorer counts: both names of each example, F1 over those that are coreferent, and the ratio of the F1 of feminine
pronouns to that of masculine ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headstart.errors import DataError
from headstart.metrics import F1
from headstart.tasks.coref_documents import Chain, CorefDocument, Gender, Mention, PronounExample
from headstart.tasks.coref_text import document_of_text
from headstart.text.files import Source
from headstart.text.formats import without_surrogates
from headstart.text.tables import find_column, listed_columns, rows_of_tsv

TABLES = (".tsv", ".tsv.gz")
FIELDS = ("ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref")
PRONOUNS: dict[str, Gender] = {
    "he": "masculine",
    "him": "masculine",
    "his": "masculine",
    "she": "feminine",
    "her": "feminine",
    "hers": "feminine",
}
MOST_DIGITS = 18
"""Of an offset; Python refuses to read thousands of them as a number."""
TRUTH = {"true": True, "false": False}


def gap_documents(source: Source, labelled: bool = True) -> Iterator[CorefDocument]:
    """The examples of GAP's table, which are labelled always: `predict` leaves the labels aside."""
    for where, row in rows_of_tsv(source, gap_columns, exact=True):
        yield gap_document(row, where)


def gap_columns(names: Sequence[str], where: str) -> list[str]:
    for field in FIELDS:
        if find_column(field, names, where) != field:
            raise DataError(
                f"{where}: has no column '{field}'; there are: {listed_columns(names)}. Of tables, only GAP's is read "
                f"here, with its first line."
            )
    return list(FIELDS)


def gap_document(row: dict[str, Any], where: str) -> CorefDocument:
    text = without_surrogates(row["Text"])
    gender = PRONOUNS.get(row["Pronoun"].lower())
    if gender is None:
        raise DataError(f"{where}: the pronoun '{row['Pronoun']}' is none of GAP's: {', '.join(PRONOUNS)}.")
    example = PronounExample(
        place_of(row, "Pronoun", text, where),
        place_of(row, "A", text, where),
        place_of(row, "B", text, where),
        gender,
        truth_of(row, "A-coref", where),
        truth_of(row, "B-coref", where),
    )
    return replace(document_of_text(text, row["ID"], where), pronoun=example)


def place_of(row: dict[str, Any], field: str, text: str, where: str) -> tuple[int, int]:
    """The characters of the pronoun or of a name, checked to be there."""
    wanted, offset = row[field], row[f"{field}-offset"]
    start = int(offset) if offset.isascii() and offset.isdigit() and len(offset) <= MOST_DIGITS else -1
    if start < 0 or not wanted or not text.startswith(wanted, start):
        raise DataError(
            f"{where}: '{field}-offset' is {offset!r:.20}, but {wanted!r:.40} does not stand at that character of the "
            f"text. Offsets count characters from 0."
        )
    return start, start + len(wanted)


def truth_of(row: dict[str, Any], field: str, where: str) -> bool:
    value = row[field].lower()
    if value not in TRUTH:
        raise DataError(f"{where}: '{field}' must be TRUE or FALSE, got {row[field]!r:.40}.")
    return TRUTH[value]


# --- scores -----------------------------------------------------------------------------------------------------------


def names_found(document: CorefDocument, chains: Sequence[Chain]) -> tuple[bool, bool]:
    """Whether the chain of the pronoun has name A, and name B."""
    example = example_of(document)
    pronoun = words_at(document, example.pronoun)
    chain = next((chain for chain in chains if pronoun in chain), ())
    others = [mention for mention in chain if mention != pronoun]
    return aligned(words_at(document, example.a), others), aligned(words_at(document, example.b), others)


def aligned(name: Mention, mentions: Sequence[Mention]) -> bool:
    """Whether one of the mentions contains the name, or is part of it."""
    start, end = name
    return any((first <= start and end <= last) or (start <= first and last <= end) for first, last in mentions)


def words_at(document: CorefDocument, place: tuple[int, int]) -> Mention:
    """The words that have any of these characters."""
    start, end = place
    touched = [n for n, (first, last) in enumerate(document.offsets or ()) if first < end and start < last]
    if not touched:
        raise ValueError(f"{document.where}: characters {start} to {end} hold no word")
    return touched[0], touched[-1] + 1


def gap_counts(document: CorefDocument, chains: Sequence[Chain]) -> tuple[int, int, int]:
    """(right, predicted, gold) of one example, as `F1` counts them: true positives, all predicted, all coreferent."""
    example = example_of(document)
    gold = (example.a_coref, example.b_coref)
    found = names_found(document, chains)
    return sum(g and f for g, f in zip(gold, found, strict=True)), sum(found), sum(gold)


def gap_scores(documents: Sequence[CorefDocument], predicted: Sequence[Sequence[Chain]]) -> dict[str, float | None]:
    """F1 of all examples, of masculine and of feminine pronouns, and bias, the ratio of the latter to the former.

    bias: None where either is 0, as GAP's scorer has it.
    """
    genders = np.array([example_of(document).gender for document in documents], dtype=np.str_)
    rows = [gap_counts(document, chains) for document, chains in zip(documents, predicted, strict=True)]
    counts = np.array(rows, dtype=np.float64).reshape(len(rows), 3)
    masculine, feminine = (F1.of(counts[genders == gender]) for gender in ("masculine", "feminine"))
    bias = feminine / masculine if masculine and feminine else None
    return {"f1": F1.of(counts), "masculine": masculine, "feminine": feminine, "bias": bias}


def example_of(document: CorefDocument) -> PronounExample:
    if document.pronoun is None:
        raise DataError(f"{document.where}: is no example of GAP, so that it has no pronoun to score.")
    return document.pronoun
