"""A sentence in a report, with its predicates marked, and the arguments that models found, wrong ones marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headstart.config import Table
from headstart.tasks.roles import Predicate, RoleSentence, is_verb, known_predicates
from headstart.tasks.shown import CUT, LONGEST_TEXT, AnswerText, Segment, Shown, ShownText, shortened
from headstart.tasks.spans import Span

LONGEST_ARGUMENT = 50
"""Characters of an argument that are shown."""
MOST_PREDICATES = 6
NO_ARGUMENTS = "no arguments"
ByPredicate = dict[int, list[Span]]
"""The arguments of each predicate, by its word, without the predicate itself."""


def show_roles(example: RoleSentence, answers: Sequence[Table]) -> Shown:
    gold = {predicate.word: arguments_of(predicate) for predicate in known_predicates(example)}
    text = "".join(segment.text for segment in listed(example, gold, gold)) or "no predicates"
    found = [show_answer(example, roles_in(answer), gold) for answer in answers]
    return Shown([ShownText("sentence", marked_words(example.words, gold))], text, found)


def show_answer(example: RoleSentence, found: ByPredicate, gold: ByPredicate) -> AnswerText:
    wrong, missing = count_beside(found, gold), count_beside(gold, found)
    said = [f"{wrong} wrong (marked)"] * bool(wrong) + [f"{missing} missing"] * bool(missing)
    return AnswerText(listed(example, found, gold) or [Segment("no predicates")], ", ".join(said))


def count_beside(some: ByPredicate, others: ByPredicate) -> int:
    """Arguments that only the first has."""
    return sum(argument not in others.get(word, ()) for word, arguments in some.items() for argument in arguments)


def listed(example: RoleSentence, found: ByPredicate, gold: ByPredicate) -> list[Segment]:
    """sold: ARG0 Anna, ARG1 the house; left: ..."""
    segments: list[Segment] = []
    for number, (word, arguments) in enumerate(sorted(found.items())):
        segments.append(Segment(f"{'; ' if number else ''}{words_of(example, word, word + 1)}: "))
        if number == MOST_PREDICATES:
            return [*segments[:-1], Segment(f"; {CUT}")]
        if not arguments:
            segments.append(Segment(NO_ARGUMENTS))
        for place, argument in enumerate(arguments):
            start, end, role = argument
            segments += [Segment(", ")] * bool(place)
            segments.append(Segment(f"{role} {words_of(example, start, end)}", argument not in gold.get(word, ())))
    return segments


def words_of(example: RoleSentence, start: int, end: int) -> str:
    return shortened(" ".join(example.words[start:end]), LONGEST_ARGUMENT)


def marked_words(words: Sequence[str], marked: Iterable[int]) -> list[Segment]:
    """The beginning of a sentence, with some of its words marked."""
    places, length = set(marked), 0
    segments: list[Segment] = []
    for place, word in enumerate(words):
        if length > LONGEST_TEXT:
            return [*segments, Segment(CUT)]
        segments += [Segment(" ")] * bool(place)
        segments.append(Segment(word, place in places))
        length += 1 + len(word)
    return segments


def arguments_of(predicate: Predicate) -> list[Span]:
    return [argument for argument in predicate.arguments or () if not is_verb(argument)]


def roles_in(answer: Table) -> ByPredicate:
    """Of an answer as JSON has it."""
    spans = (
        (one["word"], [Span(a["first_word"], a["end_word"], a["role"]) for a in one.get("arguments", ())])
        for one in answer["predicates"]
    )
    return {word: [span for span in own if not is_verb(span)] for word, own in spans}
