from __future__ import annotations

from html.parser import HTMLParser

from headstart.tasks.role_inputs import sentences_of_text
from headstart.tasks.role_view import COMMON, html_page, role_colours, terminal_view
from headstart.tasks.roles import Predicate, Roles, RoleSentence
from headstart.tasks.spans import Span
from headstart.tasks.tag_view import COLOURS

WORDS = ("The", "cat", "sat", "on", "the", "mat", ".")
SAT = Predicate(2, arguments=(Span(0, 2, "ARG0"), Span(2, 3, "V"), Span(3, 6, "ARGM-LOC")))


class Reader(HTMLParser):
    """The text of each paragraph without labels, the labels of each, and whether every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[tuple[str | None, str, list[str]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe")
        if tag == "p" and "main" in self.open:
            self.rows.append((dict(attrs).get("class"), "", []))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "main" not in self.open or "p" not in self.open:
            return
        kind, text, labels = self.rows.pop()
        if self.open[-1] == "b":
            labels = [*labels, data.strip()]
        else:
            text += data
        self.rows.append((kind, text, labels))


def test_the_terminal_shows_brackets_below_the_sentence() -> None:
    view = terminal_view(RoleSentence(WORDS, None), Roles((SAT, Predicate(5))))
    assert view.plain == (
        "The cat sat on the mat .\n  [ARG0 The cat] [V sat] [ARGM-LOC on the mat] .\n  The cat sat on the [V mat] ."
    )
    assert terminal_view(RoleSentence(WORDS, ()), Roles(())).plain == "The cat sat on the mat ."
    assert terminal_view(RoleSentence((), None, text="", offsets=()), Roles(())).plain == ""


def test_the_terminal_keeps_the_text_but_no_controls_and_no_other_sentence() -> None:
    _, second = sentences_of_text("Oh!  Cats\x1b[2J  sleep\tnow. Yes.")[:2]
    word = second.words.index("sleep")
    view = terminal_view(second, Roles((Predicate(word, arguments=(Span(word, word + 1, "V"),)),)))
    assert view.plain == "Cats [2J  sleep now.\n  Cats [2J  [V sleep] now."


def test_continuations_and_references_have_the_colour_of_their_role() -> None:
    colours = role_colours(["ARG1", "C-ARG1", "R-ARG1", "ARG0", "ARGM-LOC"])
    assert colours["ARG1"] == colours["C-ARG1"] == colours["R-ARG1"] != colours["ARG0"]


def test_a_role_keeps_its_colour_whatever_else_is_there() -> None:
    together = role_colours([*COMMON, "ARGM-CAU", "A0"])
    assert all(role_colours([role])[role] == number for role, number in together.items())
    assert len({together[role] for role in COMMON}) == len(COMMON) == len(COLOURS)


def test_the_page_is_well_formed_escaped_and_complete() -> None:
    strange = RoleSentence(("<script>alert('x')</script>", "&amp;", '"q"'), None)
    odd = Predicate(1, arguments=(Span(0, 1, "A<b>"), Span(1, 2, "V")))
    pairs = [(RoleSentence(WORDS, None), Roles((SAT, Predicate(5)))), (strange, Roles((odd,))), (strange, Roles(()))]
    page = html_page(pairs, "Roles & <more>")
    reader = Reader(page)
    assert not reader.open
    text, other = " ".join(WORDS), " ".join(strange.words)
    assert reader.rows == [
        (None, text, []),
        ("predicate", text, ["ARG0", "V", "ARGM-LOC"]),
        ("predicate", text, ["V"]),
        (None, other, []),
        ("predicate", other, ["A<b>", "V"]),
        (None, other, []),
    ]
    assert "<title>Roles &amp; &lt;more&gt;</title>" in page
    assert "3 sentences, 3 predicates<" in page
    assert "http" not in page
    assert '<mark class="verb"' in page


def test_the_page_shows_the_text_as_it_was_written() -> None:
    first, second = sentences_of_text("  New\u00a0 York sleeps!  Never. ")
    page = html_page([(first, Roles((Predicate(2),))), (second, Roles(()))], "t")
    assert [text for _, text, _ in Reader(page).rows] == ["New\u00a0 York sleeps!"] * 2 + ["Never."]
