from __future__ import annotations

import io
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console

from headstart.tasks.spans import Span
from headstart.tasks.tag_view import COLOURS, STYLE, MarkedSentence, colours_of, html_page, terminal_view

WORDS = ["Anna", "Smith", "flew", "to", "Rome", "."]
SPANS = [Span(0, 2, "PER"), Span(4, 5, "LOC")]


class Reader(HTMLParser):
    """The text of a page's paragraphs without labels, its marks with theirs, and whether every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.labels: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe")
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "main" in self.open and self.open[-1] == "b":
            self.labels.append(data.strip())
        elif "main" in self.open and "p" in self.open:
            self.text.append(data)


def test_the_terminal_shows_types_with_and_without_colours() -> None:
    view = terminal_view(MarkedSentence(WORDS, SPANS))
    assert view.plain == "[Anna Smith PER] flew to [Rome LOC] ."
    shown = io.StringIO()
    Console(file=shown, force_terminal=True, color_system="truecolor", width=200).print(view)
    assert "\x1b[" in shown.getvalue()
    assert terminal_view(MarkedSentence(["a"], [Span(0, 1, "")])).plain == "[a]"


def test_the_terminal_keeps_the_text_as_it_was_written_but_no_controls() -> None:
    text = "In  Rome\x1b[2J,\tyes"
    offsets = [(0, 2), (4, 8), (12, 13), (14, 17)]
    view = terminal_view(MarkedSentence(["In", "Rome", ",", "yes"], [Span(1, 2, "LOC")], text, offsets))
    assert view.plain == "In  [Rome LOC] [2J, yes"


def test_a_type_keeps_its_colour() -> None:
    assert colours_of(["PER", "LOC"])["PER"] == colours_of(["PER", "Drug", "Gene"])["PER"]
    assert colours_of(["PERSON", "GPE", "LOC", "ORG"]) == {"GPE": 5, "LOC": 1, "ORG": 2, "PERSON": 0}
    assert colours_of(["Drug"]) == {"Drug": colours_of(["Drug", "LOC"])["Drug"]}
    many = [f"type {number}" for number in range(len(COLOURS))]
    assert sorted(colours_of(many).values()) == list(range(len(COLOURS)))
    assert len(colours_of([*many, "one more"])) == len(COLOURS) + 1


def test_the_page_is_well_formed_escaped_and_complete() -> None:
    words = ["<script>alert('x')</script>", "&amp;", '"q"']
    page = html_page(
        [MarkedSentence(words, [Span(0, 1, "A<b>")]), MarkedSentence(WORDS, SPANS), MarkedSentence([], [])],
        "Answers & <more>",
    )
    reader = Reader(page)
    assert not reader.open
    assert "".join(reader.text) == " ".join(words) + " ".join(WORDS)
    assert reader.labels == ["A<b>", "PER", "LOC"]
    assert "<title>Answers &amp; &lt;more&gt;</title>" in page
    assert "3 sentences, 3 entities" in page
    assert "http" not in page
    assert "url(" not in page
    assert "1 sentence, 0 entities" in html_page([MarkedSentence(["a"], [])], "t")
    assert "1 sentence, 1 entity<" in html_page([MarkedSentence(["a"], [Span(0, 1, "PER")])], "t")


def test_the_page_shows_the_text_as_it_was_written() -> None:
    sentence = MarkedSentence(
        ["New", "York", "!"], [Span(0, 2, "LOC")], "  New\u00a0 York!! ", [(2, 5), (7, 11), (11, 12)]
    )
    assert "".join(Reader(html_page([sentence], "t")).text) == "New\u00a0 York!"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_and_labels_stand_out_from_every_mark(scheme: str) -> None:
    """WCAG's contrast of at least 4.5 for normal text."""
    light, dark = STYLE.split("@media (prefers-color-scheme: dark)")
    rules = light if scheme == "light" else dark
    mark, label = (
        tuple(map(float, re.findall(rf"--{name}: ([\d.]+)% ([\d.]+)%", rules)[0])) for name in ("mark", "label")
    )
    ink = tuple(bytes.fromhex(re.findall(r"--ink: #(\w{6})", rules)[0]))
    for hue, _ in COLOURS:
        behind = rgb_of(hue, *mark)
        assert contrast(rgb_of(hue, *label), behind) >= 4.5
        assert contrast(tuple(part / 255 for part in ink), behind) >= 4.5


def rgb_of(hue: float, saturation: float, lightness: float) -> tuple[float, ...]:
    light = lightness / 100
    amount = saturation / 100 * min(light, 1 - light)
    turns = [(n + hue / 30) % 12 for n in (0, 8, 4)]
    return tuple(light - amount * max(-1, min(k - 3, 9 - k, 1)) for k in turns)


def contrast(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    def luminance(rgb: tuple[float, ...]) -> float:
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted([luminance(a), luminance(b)], reverse=True)
    return (high + 0.05) / (low + 0.05)
