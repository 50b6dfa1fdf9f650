"""Predicates and their arguments: the examples and answers of semantic role labelling.

An argument is a span of words with a role (ARG0, ARGM-TMP). V is the predicate itself, C-ARG1 continues the ARG1 before
it, R-ARG1 is a pronoun that refers to it. The arguments of one predicate do not overlap, so BIO tags can hold them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headstart.errors import DataError
from headstart.tasks.role_columns import Columns
from headstart.tasks.spans import Span, spans_of, tags_of

VERB = "V"
CONTINUATION = "C-"
REFERENCE = "R-"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A word that has arguments, such as a verb. arguments: with V, in the order of the words; None: not known."""

    word: int
    lemma: str | None = None
    frame: str | None = None
    """Its sense in PropBank, such as find.01."""
    arguments: tuple[Span, ...] | None = None


@dataclass(frozen=True, slots=True)
class Roles:
    """An answer: the predicates of a sentence, in the order of their words."""

    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class RoleSentence:
    """Words and their predicates: () if there are none, None if they are not known.

    Of a plain text: the whole line that the sentence stands in, and the characters (start, end) of each word in it.
    """

    words: tuple[str, ...]
    predicates: tuple[Predicate, ...] | None
    where: str = ""
    text: str | None = None
    offsets: tuple[tuple[int, int], ...] | None = None
    columns: Columns | None = field(default=None, compare=False, repr=False)
    """Its lines in a column file, to write it back."""


def arguments_of(tags: Sequence[str]) -> tuple[Span, ...]:
    """The arguments that one predicate's BIO tags spell."""
    return tuple(spans_of(tags))


def tags_of_arguments(arguments: Iterable[Span], length: int) -> list[str]:
    """The BIO tags of one predicate. length: the words of the sentence."""
    return tags_of(arguments, length, "bio")


def without_overlaps(arguments: Iterable[Span]) -> tuple[tuple[Span, ...], list[Span]]:
    """The arguments of one predicate that BIO can hold together, and those left out because they overlap.

    V stays, then the longest, then the first: an argument inside another is left out, and so is one around V.
    """
    kept: list[Span] = []
    left: list[Span] = []
    for span in sorted(set(arguments), key=lambda span: (span.type != VERB, span.start - span.end, span)):
        overlaps = any(span.start < other.end and other.start < span.end for other in kept)
        (left if overlaps else kept).append(span)
    return tuple(sorted(kept)), sorted(left)


def overlap_notes(left: Iterable[Span], word: int, words: Sequence[str], where: str) -> list[str]:
    """What is told of arguments that `without_overlaps` left out. word: that of their predicate."""
    texts = ((span.type, " ".join(words[span.start : span.end])) for span in left)
    return [f"{where}: {role} {text!r:.60} of the predicate '{words[word]}'" for role, text in texts]


def is_verb(argument: Span) -> bool:
    """Whether it is the predicate itself, or a further part of it, as "up" in "picked it up"."""
    return argument.type.removeprefix(CONTINUATION) == VERB


def with_verb(arguments: Sequence[Span], word: int) -> list[Span]:
    """The arguments of the predicate at `word`, and V there if none of them is the predicate itself."""
    has_verb = any(is_verb(span) and span.start <= word < span.end for span in arguments)
    return [*arguments] if has_verb else [*arguments, Span(word, word + 1, VERB)]


def base_role(role: str) -> str:
    """The role that a continuation or a reference belongs to: ARG1 for C-ARG1 and R-ARG1."""
    return role.removeprefix(CONTINUATION).removeprefix(REFERENCE)


def known_predicates(sentence: RoleSentence) -> tuple[Predicate, ...]:
    """The gold predicates with their arguments; a DataError where the sentence has none to learn from or to score."""
    if sentence.predicates is None:
        raise DataError(f"{sentence.where}: the predicates of this sentence are not given, so nothing can be scored.")
    for predicate in sentence.predicates:
        if predicate.arguments is None:
            word = sentence.words[predicate.word]
            raise DataError(
                f"{sentence.where}: the arguments of the predicate '{word}' (word {predicate.word + 1}) are not given, "
                f"so nothing can be learned or scored."
            )
    return sentence.predicates
