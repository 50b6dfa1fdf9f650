"""Predicates and their arguments as JSON lines, read and written.

    {"words": ["Cats", "sleep"], "predicates": [{"word": 1, "arguments": [{"role": "ARG0", "start": 0, "end": 1}]}]}

Words are counted from 0, and `end` is the word after the last. In place of `arguments` a predicate may have BIO `tags`.
What is written also has characters of the text, if there is one, as `start` and `end`; the words are then `first_word`
and `end_word`, which are read as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from headstart.errors import DataError
from headstart.tasks.conll import WORD_FIELDS, strings_of
from headstart.tasks.questions import member
from headstart.tasks.reading import choose_column
from headstart.tasks.roles import (
    VERB,
    Predicate,
    Roles,
    RoleSentence,
    arguments_of,
    is_verb,
    overlap_notes,
    with_verb,
    without_overlaps,
)
from headstart.tasks.spans import OUTSIDE, Span, illegal_places, parse_tag
from headstart.text.files import Source
from headstart.text.formats import without_surrogates
from headstart.text.tables import objects_of

PREDICATE_FIELDS = ("predicates", "verbs")
"""AllenNLP's role labeller writes `verbs`, each with its BIO `tags`."""
FORBIDDEN = frozenset("()*")
"""Columns write roles in brackets."""

Read = tuple[RoleSentence, list[str]]
"""A sentence, and what is told of its arguments that overlap."""


# --- reading ----------------------------------------------------------------------------------------------------------


def labelled_sentences(source: Source, words_field: str | None) -> Iterator[Read]:
    """The sentences of JSON lines, every predicate with its arguments."""
    for where, row in objects_of(source):
        words = words_of(row, words_field, where)
        key = next((name for name in PREDICATE_FIELDS if name in row), PREDICATE_FIELDS[0])
        predicates: list[Predicate] = []
        notes: list[str] = []
        for given in member(row, key, list, where):
            predicate, left = labelled_predicate(given, words, where)
            predicates.append(predicate)
            notes += overlap_notes(left, predicate.word, words, where)
        yield RoleSentence(words, in_order(predicates, words, where), where), notes


def unlabelled_sentences(source: Source, words_field: str | None) -> Iterator[RoleSentence]:
    """The sentences of JSON lines, their predicates where they are given, without arguments."""
    for where, row in objects_of(source):
        words = words_of(row, words_field, where)
        given = next((row[key] for key in PREDICATE_FIELDS if row.get(key) is not None), None)
        if given is None:
            yield RoleSentence(words, None, where)
            continue
        if not isinstance(given, list):
            raise DataError(f"{where}: the predicates must be a list, such as [3, 7] for two words; got {given!r:.60}.")
        predicates = [named_predicate({"word": one} if isinstance(one, int) else one, words, where) for one in given]
        yield RoleSentence(words, in_order(predicates, words, where), where)


def words_of(row: Mapping[str, Any], field: str | None, where: str) -> tuple[str, ...]:
    key = choose_column(field, WORD_FIELDS, list(row), where, "--text-field")
    words = strings_of(row[key], key, where)
    if not words:
        raise DataError(f"{where}: '{key}' holds no word. Fill it in, or remove this line.")
    return words


def labelled_predicate(given: object, words: Sequence[str], where: str) -> tuple[Predicate, list[Span]]:
    """A predicate with its arguments, and those that overlap them."""
    if not isinstance(given, dict) or ("arguments" not in given and "tags" not in given):
        raise DataError(
            f"{where}: a predicate must be an object with 'word' and 'arguments' (or BIO 'tags'), got {given!r:.60}. "
            f"Only `predict` reads predicates without them."
        )
    spans = spans_of_tags(given, words, where) if "arguments" not in given else spans_of_objects(given, words, where)
    named = named_predicate(given, words, where)
    verbs = [span for span in spans if is_verb(span)]
    if verbs and with_verb(spans, named.word) != spans:
        raise DataError(
            f"{where}: the predicate is '{words[named.word]}' (word {named.word}), but its V is at word "
            f"{verbs[0].start}. Correct one of them, or leave V out."
        )
    kept, left = without_overlaps(with_verb(spans, named.word))
    return Predicate(named.word, named.lemma, named.frame, kept), left


def named_predicate(given: object, words: Sequence[str], where: str) -> Predicate:
    """A predicate without its arguments. Without 'word' it is the first word that its BIO tags call V."""
    if isinstance(given, dict) and "word" not in given and "tags" in given:
        verbs = [span.start for span in spans_of_tags(given, words, where) if span.type == VERB]
        if not verbs:
            raise DataError(f"{where}: a predicate has neither a 'word' nor a tag B-V. Say which word it is.")
        given = {**given, "word": verbs[0]}
    word = member(given, "word", int, where)
    if not 0 <= word < len(words):
        raise DataError(
            f"{where}: a predicate is at word {word}, but the sentence has {len(words)} words, 0 to {len(words) - 1}."
        )
    return Predicate(word, optional_text(given, "lemma", where), optional_text(given, "frame", where))


def optional_text(given: object, key: str, where: str) -> str | None:
    if not isinstance(given, dict) or given.get(key) is None:
        return None
    return without_surrogates(member(given, key, str, where)).strip() or None


def spans_of_objects(given: Mapping[str, Any], words: Sequence[str], where: str) -> list[Span]:
    spans: list[Span] = []
    for one in member(given, "arguments", list, where):
        role = member(one, "role", str, where)
        if not role or role != "".join(role.split()) or FORBIDDEN & set(role):
            raise DataError(
                f"{where}: a role must be a name such as ARG0, without blanks or brackets; got {role!r:.40}."
            )
        first, last = ("first_word", "end_word") if "first_word" in one else ("start", "end")
        start, end = member(one, first, int, where), member(one, last, int, where)
        if not 0 <= start < end <= len(words):
            raise DataError(
                f"{where}: {role} goes from word {start} to {end} (not included), but the sentence has words 0 to "
                f"{len(words) - 1}. '{first}' must be less than '{last}', and both are counted from 0."
            )
        spans.append(Span(start, end, without_surrogates(role)))
    return spans


def spans_of_tags(given: Mapping[str, Any], words: Sequence[str], where: str) -> list[Span]:
    tags = strings_of(given["tags"], "tags", where)
    if len(tags) != len(words):
        raise DataError(f"{where}: a predicate has {len(tags)} tags for {len(words)} words. Each word needs one tag.")
    strange = [place for place, tag in enumerate(tags) if tag != OUTSIDE and parse_tag(tag)[0] not in ("B", "I")]
    wrong = strange or illegal_places(tags, "bio")
    if wrong:
        raise DataError(
            f"{where}: the tags of a predicate must be BIO (B-ARG0, I-ARG0, O); '{tags[wrong[0]]}' at word {wrong[0]} "
            f"is not, after {'the beginning' if wrong[0] == 0 else repr(tags[wrong[0] - 1])}."
        )
    return list(arguments_of(tags))


def in_order(predicates: Sequence[Predicate], words: Sequence[str], where: str) -> tuple[Predicate, ...]:
    ordered = sorted(predicates, key=lambda predicate: predicate.word)
    for one, other in pairwise(ordered):
        if one.word == other.word:
            raise DataError(
                f"{where}: the word '{words[one.word]}' (word {one.word}) is given as a predicate twice. Give all its "
                f"arguments at once."
            )
    return tuple(ordered)


# --- writing ----------------------------------------------------------------------------------------------------------


def roles_as_json(sentence: RoleSentence, roles: Roles) -> dict[str, Any]:
    """A sentence with the predicates of an answer, at words, and at exact characters where there is a text."""
    found: dict[str, Any] = {} if sentence.text is None else {"text": sentence.text}
    found["words"] = list(sentence.words)
    found["predicates"] = [predicate_as_json(sentence, predicate) for predicate in roles.predicates]
    return found


def predicate_as_json(sentence: RoleSentence, predicate: Predicate) -> dict[str, Any]:
    word = predicate.word
    found: dict[str, Any] = {"word": word, **place_of(sentence, word, word + 1)}
    del found["first_word"], found["end_word"]
    found |= {key: value for key in ("lemma", "frame") if (value := getattr(predicate, key)) is not None}
    if predicate.arguments is not None:
        arguments = predicate.arguments
        found["arguments"] = [{"role": role, **place_of(sentence, start, end)} for start, end, role in arguments]
    return found


def place_of(sentence: RoleSentence, start: int, end: int) -> dict[str, Any]:
    """What some words are, and where they stand."""
    place: dict[str, Any] = {"first_word": start, "end_word": end}
    if sentence.text is None or sentence.offsets is None:
        return {"text": " ".join(sentence.words[start:end]), **place}
    first, last = sentence.offsets[start][0], sentence.offsets[end - 1][1]
    return {"text": sentence.text[first:last], **place, "start": first, "end": last}
