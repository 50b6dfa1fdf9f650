"""Tag schemes and the entities that tags spell: IOB1, BIO, BIOES, BILOU, or plain tags such as parts of speech.

Tags are read by the rules of conlleval, the scorer of the CoNLL shared tasks, which give every sequence, legal or not,
exactly one set of entities. A scheme is then only a way to write entities down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart.errors import DataError

Scheme = Literal["iob1", "bio", "bioes", "bilou", "plain"]
OUTSIDE = "O"
# The prefixes of an entity's first, inner and last word, and of an entity of one word. In IOB1 a first word has B only
# where the entity before it ends there and has the same type.
PREFIXES: dict[Scheme, tuple[str, str, str, str]] = {
    "iob1": ("I", "I", "I", "I"),
    "bio": ("B", "I", "I", "B"),
    "bioes": ("B", "I", "E", "S"),
    "bilou": ("B", "I", "L", "U"),
}
ALIASES = {"L": "E", "U": "S"}
KNOWN_PREFIXES = {"B", "I", "E", "S"}


class Span(NamedTuple):
    """An entity: words start to end, without end."""

    start: int
    end: int
    type: str


@lru_cache(maxsize=1 << 14)
def parse_tag(tag: str) -> tuple[str, str]:
    """(prefix, type), split at the first hyphen; BILOU's L and U are read as E and S."""
    prefix, _, type = tag.partition("-")
    return ALIASES.get(prefix, prefix), type


def is_tag(tag: str) -> bool:
    """Whether conlleval knows what to make of it; it takes every other tag for O."""
    return tag == OUTSIDE or parse_tag(tag)[0] in KNOWN_PREFIXES


def spans_of(tags: Sequence[str]) -> list[Span]:
    """The entities of any sequence of tags, by conlleval's rules."""
    spans: list[Span] = []
    first: int | None = None
    before, type_before = OUTSIDE, ""
    for place, tag in enumerate(tags):
        prefix, type = parse_tag(tag)
        if first is not None and ends_entity(before, type_before, prefix, type):
            spans.append(Span(first, place, type_before))
            first = None
        if begins_entity(before, type_before, prefix, type):
            first = place
        before, type_before = prefix, type
    if first is not None:
        spans.append(Span(first, len(tags), type_before))
    return spans


def begins_entity(before: str, type_before: str, prefix: str, type: str) -> bool:
    """Whether an entity begins at a tag with this prefix and type, given those of the tag before."""
    if prefix in (OUTSIDE, "."):  # conlleval reads a full stop as O
        return False
    return prefix in ("B", "S") or (prefix in ("I", "E") and before in ("E", "S", OUTSIDE)) or type != type_before


def ends_entity(before: str, type_before: str, prefix: str, type: str) -> bool:
    """Whether the entity that the tag before belongs to ends with it."""
    return before in ("E", "S") or prefix in ("B", "S", OUTSIDE) or type != type_before


def tags_of(spans: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """Entities that do not overlap, in the order of the words -> tags, as a scheme writes them."""
    tags = [OUTSIDE] * length
    first, inner, last, single = PREFIXES[scheme]
    before = Span(-1, -1, "")
    for span in spans:
        start, end, type = span
        suffix = f"-{type}" if type else ""
        tags[start:end] = [inner + suffix] * (end - start)
        tags[end - 1] = last + suffix
        tags[start] = (first if end - start > 1 else single) + suffix
        if scheme == "iob1" and before.end == start and before.type == type:
            tags[start] = "B" + suffix
        before = span
    return tags


def convert(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """The same entities in another scheme. What was illegal becomes legal; plain tags are left as they are."""
    return list(tags) if scheme == "plain" else tags_of(spans_of(tags), len(tags), scheme)


def scheme_of(sentences: Iterable[Sequence[str]]) -> Scheme:
    """The scheme that a corpus's tags are written in.

    A corpus with mistakes is taken for IOB1 or BIO, whichever fewer of its tags break; `illegal_places` finds them.
    """
    sentences = list(sentences)
    names = {tag for tags in sentences for tag in tags}
    prefixes = {tag.partition("-")[0] for tag in names} - {OUTSIDE}
    typed = all("-" in tag for tag in names - {OUTSIDE})
    # Tags without types, such as B, I and O alone, could be anything unless O and B are there.
    if not prefixes <= set("BIESLU") or not (typed or {OUTSIDE, "B"} <= names) or not names:
        return "plain"
    ends, bilou_ends = prefixes & set("ES"), prefixes & set("LU")
    if ends and bilou_ends:
        raise DataError(
            f"The tags mix BIOES ({', '.join(sorted(ends))}) with BILOU ({', '.join(sorted(bilou_ends))}): "
            f"{', '.join(sorted(names)[:8])}. Write all of them in one scheme."
        )
    if ends or bilou_ends:
        return "bioes" if ends else "bilou"
    not_bio = sum(len(illegal_places(tags, "bio")) for tags in sentences)
    not_iob1 = sum(len(illegal_places(tags, "iob1")) for tags in sentences)
    return "iob1" if not_iob1 < not_bio else "bio"


def scheme_of_names(labels: Sequence[str]) -> Scheme:
    """The scheme of a model's tag names, where nothing else tells it."""
    prefixes = {label.partition("-")[0] for label in labels} - {OUTSIDE}
    if OUTSIDE not in labels or not prefixes or not prefixes <= set("BIESLU"):
        return "plain"
    if prefixes & set("ES"):
        return "bioes"
    if prefixes & set("LU"):
        return "bilou"
    begun = {parse_tag(label)[1] for label in labels if label.startswith("B")}
    # Some models have no B- tags at all: their tags are IOB1, in which I- may begin an entity.
    return "bio" if {parse_tag(label)[1] for label in labels if label.startswith("I")} <= begun else "iob1"


def illegal_places(tags: Sequence[str], scheme: Scheme) -> list[int]:
    """The words whose tag may not follow the one before it, and the last word's if no sentence may end with it."""
    pairs = zip([OUTSIDE, *tags], tags, strict=False)
    places = [place for place, (before, tag) in enumerate(pairs) if not may_follow(before, tag, scheme)]
    if tags and not may_follow(tags[-1], OUTSIDE, scheme):
        places.append(len(tags) - 1)
    return places


@lru_cache(maxsize=1 << 16)
def may_follow(before: str, tag: str, scheme: Scheme) -> bool:
    """Whether a scheme allows one tag after another. A sentence begins as if after O and ends as if before O."""
    if scheme == "plain":
        return True
    (left, left_type), (right, right_type) = parse_tag(before), parse_tag(tag)
    same = left_type == right_type and left != OUTSIDE
    if scheme == "bio":
        return right != "I" or same
    if scheme == "iob1":
        return right != "B" or same
    inside = left in ("B", "I")  # an entity that has begun has to go on until its last word
    return (right in ("I", "E")) == inside and (same or not inside)


def tag_names(sentences: Iterable[Sequence[str]], scheme: Scheme) -> list[str]:
    """Every tag that a scheme needs for the types of these sentences, also those that do not occur; O is first.

    All of them, so that no type has a first word but no last one. Plain tags are those that occur.
    """
    names = {tag for tags in sentences for tag in tags}
    if scheme == "plain":
        return sorted(names)
    types = sorted({parse_tag(tag)[1] for tag in names - {OUTSIDE}})
    prefixes = sorted(set(PREFIXES[scheme]) | ({"B"} if scheme == "iob1" else set()))
    return [OUTSIDE, *(f"{prefix}-{type}" if type else prefix for type in types for prefix in prefixes)]


Allowed = NDArray[np.bool_]


def legal_transitions(names: Sequence[str], scheme: Scheme) -> tuple[Allowed, Allowed, Allowed]:
    """Which of C tags may begin a sentence (C,), which may follow which (C, C) as [before, after], which end one (C,).

    With every tag of a scheme in `names` (as `tag_names` gives them), each beginning can be completed.
    """
    start = np.array([may_follow(OUTSIDE, name, scheme) for name in names], dtype=bool)
    transition = np.array([[may_follow(a, b, scheme) for b in names] for a in names], dtype=bool)
    end = np.array([may_follow(name, OUTSIDE, scheme) for name in names], dtype=bool)
    return start, transition.reshape(len(names), len(names)), end
