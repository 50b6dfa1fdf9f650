"""What no model of coreference should fall below: words that are often mentions, a chain for each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from headstart.tasks.coref_documents import Chain, CorefDocument, Mention, sorted_chains


def usual_mentions(
    train: Sequence[CorefDocument], documents: Sequence[CorefDocument], singletons: bool
) -> list[tuple[Chain, ...]]:
    """In every document, all places of a word that is a mention by itself in most of its places in `train`.

    singletons: a word that stands there once is a chain too.
    """
    words: Counter[str] = Counter()
    mentions: Counter[str] = Counter()
    for document in train:
        words.update(word.lower() for word in document.words)
        alone = {first for chain in document.chains or () for first, end in chain if end - first == 1}
        mentions.update(document.words[place].lower() for place in alone)
    usual = {word for word, count in mentions.items() if 2 * count > words[word]}
    found = []
    for document in documents:
        places: dict[str, list[Mention]] = {}
        for place, word in enumerate(document.words):
            if word.lower() in usual:
                places.setdefault(word.lower(), []).append((place, place + 1))
        found.append(sorted_chains(chain for chain in places.values() if len(chain) > 1 or singletons))
    return found
