"""A document in a report: the few sentences of it in which the gold chains say most, and the chains that models found
there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headstart.config import Table
from headstart.tasks.coref_documents import Chain, CorefDocument, Mention
from headstart.tasks.shown import AnswerText, Segment, Shown, ShownText, shortened

MOST_SENTENCES, MOST_WORDS = 4, 80
LONGEST_MENTION = 40
NO_CHAIN = "no chain"


def show_document(document: CorefDocument, answers: Sequence[Table]) -> Shown:
    first, last = best_sentences(document)
    part = document.sentences[first][0], document.sentences[last - 1][1]
    gold = chains_within(document.chains or (), part)
    number = f"sentence {first + 1:,}" if last == first + 1 else f"sentences {first + 1:,} to {last:,}"
    title = f"{document.name}, {number} of {len(document.sentences):,}"
    texts = [ShownText(title, marked_mentions(document, [mention for chain in gold for mention in chain], part))]
    found = [[[(start, end) for start, end in chain] for chain in answer["chains"]] for answer in answers]
    shown = [AnswerText([Segment(chains_text(document, chains_within(chains, part)))]) for chains in found]
    return Shown(texts, chains_text(document, gold), shown)


def best_sentences(document: CorefDocument) -> tuple[int, int]:
    """(first, end): consecutive sentences, MOST_WORDS or one, in which the most mentions are linked to another."""
    best, most = (0, 1), -1
    for first, (start, _) in enumerate(document.sentences):
        end = first + 1
        while end < len(document.sentences) and end - first < MOST_SENTENCES:
            if document.sentences[end][1] - start > MOST_WORDS:
                break
            end += 1
        linked = sum(map(len, chains_within(document.chains or (), (start, document.sentences[end - 1][1]))))
        if linked > most:
            best, most = (first, end), linked
    return best


def chains_within(chains: Iterable[Sequence[Mention]], part: tuple[int, int]) -> list[Chain]:
    """The mentions of each chain among these words, where there are two or more."""
    inside = (
        tuple(mention for mention in chain if part[0] <= mention[0] and mention[1] <= part[1]) for chain in chains
    )
    return [chain for chain in inside if len(chain) > 1]


def marked_mentions(document: CorefDocument, mentions: Sequence[Mention], part: tuple[int, int]) -> list[Segment]:
    """The text of some words; of mentions inside one another, the outer is marked."""
    text, offsets = document.text_and_offsets()
    segments: list[Segment] = []
    done = offsets[part[0]][0]
    for first, end in sorted(mentions, key=lambda mention: (mention[0], -mention[1])):
        start, stop = offsets[first][0], offsets[end - 1][1]
        if start >= done:
            segments += [Segment(text[done:start]), Segment(text[start:stop], marked=True)]
            done = stop
    segments.append(Segment(text[done : offsets[part[1] - 1][1]]))
    return [Segment(" ".join(segment.text.split("\n")), segment.marked) for segment in segments if segment.text]


def chains_text(document: CorefDocument, chains: Sequence[Chain]) -> str:
    """`Anna = she; the red house = it`."""
    text, offsets = document.text_and_offsets()

    def of(mention: Mention) -> str:
        words = text[offsets[mention[0]][0] : offsets[mention[1] - 1][1]]
        return shortened(" ".join(words.split()), LONGEST_MENTION)

    return "; ".join(" = ".join(map(of, chain)) for chain in chains) or NO_CHAIN
