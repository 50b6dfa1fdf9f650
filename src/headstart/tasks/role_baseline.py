"""What no model of semantic roles should fall below: the span that is most often an argument, for every predicate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from headstart.tasks.roles import RoleSentence, is_verb, known_predicates
from headstart.tasks.spans import Span


class UsualArgument(NamedTuple):
    """A span with its role; start and end are counted from the predicate."""

    start: int
    end: int
    role: str

    def title(self) -> str:
        length = self.end - self.start
        words = "the word" if length == 1 else f"the {length} words"
        if self.end == 0 or self.start == 1:
            return f"{words} {'after' if self.start == 1 else 'before'} each predicate as {self.role}"
        return f"{words} from {self.start:+} on, counted from each predicate, as {self.role}"

    def of(self, word: int, words: int) -> tuple[Span, ...]:
        """The argument of a predicate, if it is inside the sentence, which has so many words."""
        start, end = word + self.start, word + self.end
        return (Span(start, end, self.role),) if start >= 0 and end <= words else ()


def usual_argument(train: Sequence[RoleSentence]) -> UsualArgument | None:
    """None where no predicate has an argument, as may be with few labels."""
    places: Counter[UsualArgument] = Counter()
    for word, arguments in ((p.word, p.arguments or ()) for e in train for p in known_predicates(e)):
        places.update(UsualArgument(a.start - word, a.end - word, a.type) for a in arguments if not is_verb(a))
    return min(places, key=lambda place: (-places[place], place), default=None)
