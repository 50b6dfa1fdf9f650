"""Labels of one file in one spelling: the same class can be stored as 1, "1" or 1.0."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from headstart.errors import DataError

Labelled = tuple[str, str, str]
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE_FLOAT = re.compile(r"([+-]?[0-9]{1,15})\.0+")
BOOLEANS = frozenset({"true", "false"})
BITS = frozenset({"0", "1", "0.0", "1.0"})
NAN = "nan"


def unify_labels(examples: Iterable[Labelled]) -> Iterator[Labelled]:
    """The examples of one file, (where, text, label), with one spelling for each class and "" for a missing label.

    All labels are needed to tell: "1.0" is the class 1 if the file also says "1", and "nan" is a missing label if the
    others are numbers. Among words it is a class: it is the code of a language.
    """
    found = list(examples)
    places: dict[str, str] = {}
    for where, _, label in found:
        places.setdefault(label.strip(), where)
    check_booleans(places)
    spelling = spellings(set(places))
    for where, text, label in found:
        yield where, text, spelling.get(label.strip(), label)


def spellings(labels: set[str]) -> dict[str, str]:
    """label -> how it is spelled, for those that change."""
    changed = {label: "" for label in labels if label == "NaN"}
    words = {label for label in labels if label and label.lower() != NAN}
    if all(NUMBER.fullmatch(label) for label in words):
        changed |= {label: "" for label in labels if label.lower() == NAN}
    whole = {label: str(int(match[1])) for label in labels if (match := WHOLE_FLOAT.fullmatch(label))}
    if any(integer in labels for integer in whole.values()):
        changed |= whole
    return changed


def check_booleans(places: dict[str, str]) -> None:
    """true and 1 may be one class or two; that is for the user to say."""
    boolean = next((label for label in places if label.lower() in BOOLEANS), None)
    bit = next((label for label in places if label in BITS), None)
    if boolean is not None and bit is not None:
        raise DataError(
            f"{places[boolean]}: has the label '{boolean}', but {places[bit]} has '{bit}'. Write the labels of one "
            f"class in one way."
        )
