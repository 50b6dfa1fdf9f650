"""Roles to look at: each sentence, and below it one line per predicate with its arguments in labelled brackets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from rich.text import Text

from headstart.tasks.qa_writers import visible
from headstart.tasks.roles import Predicate, Roles, RoleSentence, base_role, is_verb, with_verb, without_overlaps
from headstart.tasks.spans import Span
from headstart.tasks.tag_view import COLOURS, MarkedSentence, colours_of, counted, mark_of, page_of

# Frequent roles of PropBank, as many as there are colours.
COMMON = [f"ARG{number}" for number in range(5)]
COMMON += [f"ARGM-{name}" for name in ("ADV", "DIS", "LOC", "MNR", "MOD", "NEG", "TMP")]
VERB_STYLE = "bold underline"
INDENT = "  "


def marked_predicate(sentence: RoleSentence, predicate: Predicate) -> MarkedSentence:
    """The sentence with the arguments of one predicate, and always with the predicate itself."""
    arguments, _ = without_overlaps(with_verb(predicate.arguments or (), predicate.word))
    return MarkedSentence(sentence.words, arguments, sentence.text, sentence.offsets)


def plain(sentence: RoleSentence) -> MarkedSentence:
    return MarkedSentence(sentence.words, [], sentence.text, sentence.offsets)


def role_colours(roles: Iterable[str]) -> dict[str, int]:
    """A number in COLOURS for each role, the same in every sentence; continuations and references have their role's.

    The common roles differ from each other; a rare one has the colour of one of them.
    """
    colours = colours_of(COMMON)
    bases = {role: base_role(role) for role in roles}
    return {role: (colours if base in colours else colours_of([base]))[base] for role, base in bases.items()}


def terminal_view(sentence: RoleSentence, roles: Roles) -> Text:
    """[ARG0 Cats] [V sleep], a line for each predicate; the brackets stay where a terminal has no colours."""
    lines = [Text("".join(visible(piece) for piece, _ in plain(sentence).pieces()))]
    for predicate in roles.predicates:
        found = marked_predicate(sentence, predicate)
        colours = role_colours(span.type for span in found.spans)
        line = Text(INDENT)
        for piece, role in found.pieces():
            if role is None:
                line.append(visible(piece))
                continue
            style = f"black on color({COLOURS[colours[role]][1]})" if not is_verb_role(role) else VERB_STYLE
            line.append(f"[{visible(role)} ", style=style)
            line.append(f"{visible(piece)}]", style=f"bold {style}")
        lines.append(line)
    return Text("\n").join(lines)


def is_verb_role(role: str) -> bool:
    return is_verb(Span(0, 0, role))


def html_page(pairs: Sequence[tuple[RoleSentence, Roles]], title: str) -> str:
    """The sentences with their predicates, as one HTML file that needs nothing else."""
    with_words = [(sentence, roles) for sentence, roles in pairs if sentence.words]  # a blank line has none
    shown = [(s, [marked_predicate(s, predicate) for predicate in roles.predicates]) for s, roles in with_words]
    counts = Counter(span.type for _, rows in shown for row in rows for span in row.spans)
    colours = role_colours(counts)
    key = [f"<li>{role_mark('', role, colours)} {count:,}</li>" for role, count in sorted(counts.items())]
    predicates = sum(len(rows) for _, rows in shown)
    summary = f"{counted(len(shown), 'sentence', 'sentences')}, {counted(predicates, 'predicate', 'predicates')}"
    body = [section(sentence, rows, colours) for sentence, rows in shown]
    return page_of(title, summary, key, body, ROLE_STYLE)


def section(sentence: RoleSentence, rows: Iterable[MarkedSentence], colours: dict[str, int]) -> str:
    """One sentence, and a row for each predicate."""
    words = "".join(escape(piece) for piece, _ in plain(sentence).pieces())
    lines = [f'<p dir="auto">{words}</p>']
    for row in rows:
        pieces = (escape(text) if role is None else role_mark(text, role, colours) for text, role in row.pieces())
        lines.append(f'<p class="predicate" dir="auto">{"".join(pieces)}</p>')
    return "\n".join(["<section>", *lines, "</section>"])


def role_mark(text: str, role: str, colours: dict[str, int]) -> str:
    mark = mark_of(text, role, colours)
    return mark.replace("<mark ", '<mark class="verb" ', 1) if is_verb_role(role) else mark


ROLE_STYLE = """section { margin: 1.5rem 0; }
main p.predicate { margin: .35rem 0 .35rem .25rem; padding-left: 1rem; border-left: 2px solid var(--line);
  font-size: .95rem; }
mark.verb { background: none; border-color: var(--soft); font-weight: 600; }
mark.verb b { color: var(--soft); }
"""
