"""Learns a WordPiece vocabulary with the tokenizers library, reproducibly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

import tokenizers  # type: ignore[import-untyped]
from tokenizers import models, normalizers, pre_tokenizers, trainers

from headstart.errors import DataError
from headstart.text.wordpiece import SPECIALS, WordPieceTokenizer, build_wordpiece

# Of more characters than this, the most frequent that cover this share of the text are kept.
CHARACTERS_KEPT = 1000
CHARACTER_COVERAGE = 0.9999
# What stands between blanks is remembered with its words. Both bound memory: scripts without blanks repeat little.
REMEMBERED = 200_000
LONGEST_REMEMBERED = 30
WORDS_AT_ONCE = 10_000


def learn_wordpiece(
    texts: Iterable[str], *, size: int, lowercase: bool, min_count: int = 2, exact: bool = False
) -> WordPieceTokenizer:
    """Learn at most `size` pieces, specials included. The same texts give the same pieces and ids.

    exact: fewer pieces than `size` are an error.
    """
    counts = PieceWords(lowercase).count(texts)
    return learn_from_words(counts, size=size, lowercase=lowercase, min_count=min_count, exact=exact)


class PieceWords:
    """Counts the words of BERT's tokenizer, whose pieces are to be learned."""

    def __init__(self, lowercase: bool) -> None:
        self._normalizer = normalizers.BertNormalizer(lowercase=lowercase)
        self._splitter = pre_tokenizers.BertPreTokenizer()
        self._known: dict[str, list[str]] = {}

    def count(self, texts: Iterable[str]) -> Counter[str]:
        """Words and their counts. Every blank ends a word, so what stands between blanks is split once for all times
        that it occurs: a third of the time of splitting all of the text.
        """
        chunks: Counter[str] = Counter()
        for text in texts:
            chunks.update(text.replace("\n", " ").split(" "))
        counts: Counter[str] = Counter()
        for chunk, n in chunks.items():
            for word in self._words_of(chunk):
                counts[word] += n
        return counts

    def _words_of(self, chunk: str) -> list[str]:
        words = self._known.get(chunk)
        if words is None:
            split = self._splitter.pre_tokenize_str(self._normalizer.normalize_str(chunk))
            words = [word for word, _ in split]
            if len(chunk) <= LONGEST_REMEMBERED:
                if len(self._known) >= REMEMBERED:
                    self._known.clear()
                self._known[chunk] = words
        return words


def learn_from_words(
    counts: Counter[str],
    *,
    size: int,
    lowercase: bool,
    min_count: int = 2,
    exact: bool = False,
    stopped: Callable[[], bool] = lambda: False,
) -> WordPieceTokenizer:
    """Learn from the counts of `PieceWords`, which are used up. Their order does not matter."""
    alphabet = choose_alphabet(count_characters(counts), lowercase, size - len(SPECIALS))
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
    backend = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.train_from_iterator(repeated(counts, stopped), trainer)
    vocabulary = backend.get_vocab()
    if exact and len(vocabulary) < size:
        raise DataError(
            f"The text gives {len(vocabulary):,} pieces that occur at least {min_count} times, so a vocabulary "
            f"of {size:,} cannot be filled. Lower tokenizer.size to at most {len(vocabulary):,} or lower "
            "tokenizer.min_count."
        )
    return build_wordpiece(sorted(vocabulary, key=vocabulary.__getitem__), lowercase)


def repeated(counts: Counter[str], stopped: Callable[[], bool]) -> Iterator[str]:
    """Texts in which each word occurs as often as it was counted: the library counts again, and takes no counts."""
    words: list[str] = []
    while counts:
        word, n = counts.popitem()
        while n:
            if stopped():
                raise DataError("Learning WordPiece was stopped.")
            some = min(n, WORDS_AT_ONCE - len(words))
            words += [word] * some
            n -= some
            if len(words) == WORDS_AT_ONCE:
                yield " ".join(words)
                words = []
    yield " ".join(words)


def count_characters(counts: Mapping[str, int]) -> Counter[str]:
    characters: Counter[str] = Counter()
    for word, n in counts.items():
        for character in word:
            characters[character] += n
    return characters


def choose_alphabet(counts: Counter[str], lowercase: bool, room: int) -> dict[str, list[str]]:
    """The characters of the vocabulary, each with its ## form (none if BERT always splits at it).

    Characters with equal counts are kept or dropped together, so that ties are not broken by chance.
    """
    normalizer, splitter = normalizers.BertNormalizer(lowercase=lowercase), pre_tokenizers.BertPreTokenizer()
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
