"""Learns a WordPiece vocabulary with the tokenizers library, reproducibly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
import tokenizers  # type: ignore[import-untyped]
from tokenizers import models, normalizers, pre_tokenizers, trainers

from headstart.errors import DataError
from headstart.text.wordpiece import SPECIALS, WordPieceTokenizer, build_wordpiece

# Of more characters than this, the most frequent that cover this share of the text are kept.
CHARACTERS_KEPT = 1000
CHARACTER_COVERAGE = 0.9999
COUNTED_AT_ONCE = 1 << 20


def learn_wordpiece(
    texts: Iterable[str], *, size: int, lowercase: bool, min_count: int = 2, exact: bool = False
) -> WordPieceTokenizer:
    """Learn at most `size` pieces, specials included. The same texts give the same pieces and ids.

    texts: read twice; an iterator is first copied to memory. exact: fewer pieces than `size` are an error.
    """
    if isinstance(texts, Iterator):
        texts = list(texts)
    backend = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    normalizer = backend.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    splitter = backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    alphabet = choose_alphabet(count_characters(texts, normalizer), normalizer, splitter, size - len(SPECIALS))
    # The library numbers characters in the order of a randomly seeded hash table, and breaks ties between merges by
    # these numbers. Passing the characters as special tokens fixes their order, and with it the result.
    pieces = sorted(alphabet) + sorted(form for forms in alphabet.values() for form in forms)
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=min_count,
        special_tokens=[*SPECIALS, *pieces],
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    vocabulary = backend.get_vocab()
    if exact and len(vocabulary) < size:
        raise DataError(
            f"The text gives {len(vocabulary):,} pieces that occur at least {min_count} times, so a vocabulary "
            f"of {size:,} cannot be filled. Lower tokenizer.size to at most {len(vocabulary):,} or lower "
            "tokenizer.min_count."
        )
    return build_wordpiece(sorted(vocabulary, key=vocabulary.__getitem__), lowercase)


def count_characters(texts: Iterable[str], normalizer: normalizers.Normalizer) -> Counter[str]:
    """Counts of characters after BERT's normalisation, which is per character and so done once for each."""
    totals = np.zeros(0x110000, dtype=np.int64)
    for text in joined(texts):
        counts = np.bincount(np.frombuffer(text.encode("utf-32-le", "replace"), dtype="<u4"))
        totals[: len(counts)] += counts
    characters: Counter[str] = Counter()
    for code in np.flatnonzero(totals).tolist():
        for character in normalizer.normalize_str(chr(code)):
            if not character.isspace():
                characters[character] += int(totals[code])
    return characters


def joined(texts: Iterable[str]) -> Iterator[str]:
    """Texts joined into larger ones, because counting has a cost per call."""
    parts: list[str] = []
    length = 0
    for text in texts:
        parts.append(text)
        length += len(text)
        if length >= COUNTED_AT_ONCE:
            yield "".join(parts)
            parts, length = [], 0
    yield "".join(parts)


def choose_alphabet(
    counts: Counter[str], normalizer: normalizers.Normalizer, splitter: pre_tokenizers.PreTokenizer, room: int
) -> dict[str, list[str]]:
    """The characters of the vocabulary, each with its ## form (none if BERT always splits at it).

    Characters with equal counts are kept or dropped together, so that ties are not broken by chance.
    """
    total = sum(counts.values())
    alphabet: dict[str, list[str]] = {}
    covered = used = 0
    for group in groups_of_equal_count(counts):
        forms = {character: inner_forms(character, normalizer, splitter) for character in group}
        used += sum(1 + len(inner) for inner in forms.values())
        rare = len(alphabet) + len(group) > CHARACTERS_KEPT and covered >= CHARACTER_COVERAGE * total
        if used > room or rare:
            break
        alphabet |= forms
        covered += sum(counts[character] for character in group)
    if not counts:
        raise DataError("The text holds no character to learn pieces from.")
    if not alphabet:
        raise DataError(
            f"A WordPiece vocabulary of {room + len(SPECIALS)} has no room for the most frequent characters of the "
            "text. Raise tokenizer.size."
        )
    return alphabet


def groups_of_equal_count(counts: Counter[str]) -> list[list[str]]:
    groups: dict[int, list[str]] = {}
    for character, count in counts.items():
        groups.setdefault(count, []).append(character)
    return [groups[count] for count in sorted(groups, reverse=True)]


def inner_forms(character: str, normalizer: normalizers.Normalizer, splitter: pre_tokenizers.PreTokenizer) -> list[str]:
    inside = splitter.pre_tokenize_str(normalizer.normalize_str(f"a{character}a"))
    return [f"##{character}"] if len(inside) == 1 else []
