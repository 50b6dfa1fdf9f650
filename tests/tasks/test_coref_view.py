from __future__ import annotations

import random
import re
from html.parser import HTMLParser

import pytest

from headstart.tasks.coref_documents import Chain, CorefDocument, sorted_chains
from headstart.tasks.coref_text import document_of_text
from headstart.tasks.coref_view import Edge, html_page, pieces, terminal_view
from headstart.tasks.tag_view import STYLE

STORY = document_of_text("  The father of Alice said\tshe left.\nHe & she <smiled>. ", "a <story>")
WORDS = ["The", "father", "of", "Alice", "said", "she", "left", ".", "He", "&", "she", "<smiled>", "."]
FATHER: Chain = ((0, 4), (8, 9))
ALICE: Chain = ((3, 4), (5, 6), (10, 11))


def letters(count: int, sentences: tuple[tuple[int, int], ...] | None = None) -> CorefDocument:
    words = tuple(chr(97 + n) for n in range(count))
    return CorefDocument("d", "0", words, sentences or ((0, count),), None)


class Reader(HTMLParser):
    """The text of a page's paragraphs without labels, the text inside each mark, and whether every element closes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.marks: list[tuple[str, list[str]]] = []
        self.inside: list[tuple[str, list[str]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe")
        if tag != "meta":
            self.open.append(tag)
        if tag == "mark":
            self.inside.append((dict(attrs)["class"] or "", []))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "mark":
            self.marks.append(self.inside.pop())

    def handle_data(self, data: str) -> None:
        if "p" in self.open and "main" in self.open and self.open[-1] != "b":
            self.text.append(data)
            for _, found in self.inside:
                found.append(data)


def test_the_terminal_shows_nested_mentions_with_the_number_of_their_chain() -> None:
    assert list(STORY.words) == WORDS
    view = terminal_view(STORY, (FATHER, ALICE))
    assert view.plain == "[1 The father of [2 Alice]] said [2 she] left.\n[1 He] & [2 she] <smiled>."
    assert len({str(span.style) for span in view.spans}) == 4  # two chains, bold and not
    assert terminal_view(STORY, ()).plain == "The father of Alice said she left.\nHe & she <smiled>."
    assert terminal_view(document_of_text("", "x"), ()).plain == ""


def test_the_terminal_shows_words_by_sentences_and_no_controls() -> None:
    assert terminal_view(letters(4, ((0, 2), (2, 4))), (((0, 1), (2, 4)),)).plain == "[1 a] b\n[1 c d]"
    control = CorefDocument("d", "0", ("a\x1b[2J", "b"), ((0, 2),), None)
    assert terminal_view(control, ()).plain == "a [2J b"


def test_mentions_that_cross_say_which_ends() -> None:
    crossing = (((0, 3),), ((1, 5),))
    assert terminal_view(letters(6), crossing).plain == "[1 a [2 b c]1 d e] f"
    assert list(pieces(letters(4), (((0, 2),), ((1, 3),)))) == [
        "", Edge(0, True), "a ", Edge(1, True), "b", Edge(1, False, False), Edge(0, False), Edge(1, True, False), " c",
        Edge(1, False), " d",
    ]  # fmt: skip


def test_mentions_of_the_same_words_are_nested() -> None:
    assert terminal_view(letters(2), (((0, 2),), ((0, 2),))).plain == "[1 [2 a b]]"
    assert terminal_view(letters(2), (((0, 1), (1, 2)),)).plain == "[1 a] [1 b]"


def test_any_chains_are_properly_nested_and_keep_the_text() -> None:
    rng = random.Random(5)
    for _ in range(200):
        document = letters(8, ((0, 3), (3, 8)))
        mentions = {(first, rng.randint(first + 1, 8)) for first in (rng.randrange(8) for _ in range(6))}
        chains = sorted_chains([[mention] for mention in mentions])
        stack: list[int] = []
        covered: dict[int, str] = {}
        text = ""
        for piece in pieces(document, chains):
            if isinstance(piece, str):
                text += piece
                for chain in stack:
                    covered[chain] = covered.get(chain, "") + piece
            elif piece.begins:
                stack.append(piece.chain)
            else:
                assert stack.pop() == piece.chain
        assert not stack
        assert text == document.text_and_offsets()[0]
        for number, ((first, end),) in enumerate(chains):
            assert covered[number].split() == list(document.words[first:end])


def test_the_page_is_well_formed_escaped_and_complete() -> None:
    page = html_page([(STORY, (FATHER, ALICE)), (letters(3), (((0, 1),), ((1, 2),)))], "Chains & <more>")
    reader = Reader(page)
    assert not reader.open
    assert "".join(reader.text) == "The father of Alice said\tshe left.\nHe & she <smiled>." + "a b c"
    shown = [(kind, "".join(text)) for kind, text in reader.marks if text]
    assert shown == [
        ("c2", "Alice"), ("c1", "The father of Alice"), ("c2", "she"), ("c1", "He"), ("c2", "she"), ("c1 alone", "a"),
        ("c2 alone", "b"),
    ]  # fmt: skip
    assert "<title>Chains &amp; &lt;more&gt;</title>" in page
    assert "<h2>a &lt;story&gt;</h2>" in page
    assert "2 documents, 4 chains, 7 mentions" in page
    assert "<li>2 entities are mentioned once</li>" in page
    assert STYLE in page
    assert "http" not in page
    assert "url(" not in page


def test_the_legend_has_each_chains_first_mention() -> None:
    long = document_of_text("x" * 60 + " left. It ran.", "d")
    page = html_page([(STORY, (FATHER, ALICE)), (long, (((0, 1), (3, 4)),))], "t")
    entries = re.findall(r"<li><mark class=\"c(\d)\"[^>]*><b>\d\u00a0</b>(.*?)</mark> (\d)</li>", page)
    assert entries == [("1", "The father of Alice", "2"), ("2", "Alice", "3"), ("1", "x" * 40 + "…", "2")]


def test_the_mouse_over_a_mention_outlines_its_chain_without_scripts() -> None:
    page = html_page([(STORY, (FATHER, ALICE))], "t")
    assert "section:has(.c2:hover) .c2 { outline:" in page
    assert ".c3:hover" not in page


@pytest.mark.parametrize("chains", [(), (FATHER,)])
def test_a_page_without_documents_or_names(chains: tuple[Chain, ...]) -> None:
    assert "0 documents, 0 chains, 0 mentions" in html_page([], "t")
    nameless = CorefDocument("", "0", STORY.words, STORY.sentences, None)
    assert "<h2>" not in html_page([(nameless, chains)], "t")
