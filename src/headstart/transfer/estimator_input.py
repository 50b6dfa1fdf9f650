"""What an estimator's user passes in, checked: texts, labels, sentences, tags; every mistake is one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.config import nearest
from headstart.errors import ConfigError, DataError
from headstart.tasks.conll import TaggedSentence
from headstart.tasks.tag_inputs import sentence_of_text
from headstart.text.formats import clean, clean_word, without_surrogates

Texts = Iterable[str]
Words = Sequence[str]


def checked_texts(texts: Texts) -> list[str]:
    if texts is None or isinstance(texts, str | bytes):
        what = "one text was given. Put it in a list" if isinstance(texts, str | bytes) else "None was given"
        raise DataError(f"A list of texts is wanted, and {what}.")
    found = list(texts)
    for number, text in enumerate(found, 1):
        if not isinstance(text, str):
            raise DataError(f"Text {number:,} of {len(found):,} is not a string; got {text!r:.60}.")
        if not text.strip():
            raise DataError(f"Text {number:,} of {len(found):,} is empty. Leave it out, or fill it in.")
    return [clean(str(text)) for text in found]


def checked_sentences(sentences: Iterable[Words | str]) -> list[TaggedSentence]:
    if sentences is None or isinstance(sentences, str | bytes):
        raise DataError("A list of sentences is wanted, each a list of words or a string. Put a single one in a list.")
    found: list[TaggedSentence] = []
    for number, sentence in enumerate(sentences, 1):
        if isinstance(sentence, str):
            # Line breaks stay as they are: entities are told at the characters of this very string.
            found.append(sentence_of_text(without_surrogates(sentence), f"sentence {number:,}"))
            continue
        words = list(sentence) if isinstance(sentence, Iterable) else [sentence]
        if not words or not all(isinstance(word, str) and word.strip() for word in words):
            raise DataError(f"Sentence {number:,} must be a list of words, none of them empty; got {sentence!r:.60}.")
        found.append(TaggedSentence(tuple(clean_word(word) for word in words), None, f"sentence {number:,}"))
    return found


def tagged_sentences(sentences: Iterable[Words], tags: Iterable[Words]) -> list[TaggedSentence]:
    found = checked_sentences(sentences)
    rows = [] if tags is None else [tuple(map(str, row)) for row in tags]
    check_pairs(len(found), len(rows))
    for number, (example, row) in enumerate(zip(found, rows, strict=True), 1):
        if not example.words:
            raise DataError(f"Sentence {number:,} has no words, so there is nothing to tag. Leave it out.")
        if len(example.words) != len(row):
            raise DataError(f"Sentence {number:,} has {len(example.words):,} words and {len(row):,} tags.")
    return [
        TaggedSentence(example.words, row, example.where, example.text, example.offsets, example.sentences)
        for example, row in zip(found, rows, strict=True)
    ]


def checked_share(share: object) -> float:
    if isinstance(share, bool) or not isinstance(share, Real) or not 0 <= float(share) < 1:
        raise ConfigError(f"validation_fraction is a share of the examples, from 0 to below 1; got {share!r:.60}.")
    return float(share)


def check_pairs(examples: int, labels: int) -> None:
    if examples != labels:
        raise DataError(f"There are {examples:,} texts and {labels:,} labels; each text needs one label.")


def classes_of(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct labels in order, in their own type."""
    if values.dtype.kind == "f" and not np.array_equal(values, np.round(values)):
        raise DataError("Labels are classes: whole numbers or strings. Got numbers with fractions, or NaN.")
    if values.dtype.kind == "O" and any(value is None or value != value for value in values.tolist()):
        raise DataError("Some labels are missing (None or NaN). Leave these texts out, or label them.")
    try:
        classes: NDArray[Any] = np.unique(values)
    except TypeError as error:
        raise DataError("Labels are either all numbers or all strings; got a mixture, or missing ones.") from error
    if len(classes) < 2:
        raise DataError(f"At least two classes are needed; got {len(classes)} in {len(values):,} labels.")
    return classes


def label_texts(labels: NDArray[Any], classes: NDArray[Any]) -> list[str]:
    """The labels as the classifier names them; one that is not among `classes` is an error."""
    names = {value: str(value) for value in classes.tolist()}
    values = labels.tolist()
    for number, value in enumerate(values, 1):
        if value not in names:
            raise DataError(
                f"Label {number:,} of the validation pair, {value!r}, is not one of the classes in training."
                f"{nearest(str(value), names.values())}"
            )
    return [names[value] for value in values]


def as_array(labels: Iterable[Any]) -> NDArray[Any]:
    if labels is None or isinstance(labels, str | bytes):
        raise DataError(f"A list of labels is wanted, one for each text; got {labels!r:.60}.")
    listed = labels if hasattr(labels, "__array__") else list(labels)
    if not hasattr(listed, "__array__") and any(isinstance(value, float) and value != value for value in listed):
        # numpy would turn a NaN among strings into the class 'nan'.
        raise DataError("Some labels are missing (NaN). Leave these texts out, or label them.")
    values: NDArray[Any] = np.asarray(listed)
    if values.ndim != 1:
        raise DataError(f"Labels come as one list, one for each text; got an array of shape {values.shape}.")
    return values
