from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from headstart.report.drawing import COLOURS, GRID, INK, STYLE
from headstart.report.html import csv_text, p_text, saved_table, signed, table_rows, write_report
from headstart.report.plots import BASELINE
from headstart.report.results import Comparison, TableEntry

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Checker(HTMLParser):
    """Every opened tag is closed in order; keeps ids, resources and the text outside <style>."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.resources: list[str] = []
        self.tags: set[str] = set()
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href", "action", "data"):
                self.resources.append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)


def render(results: Comparison, folder: Path) -> tuple[str, Checker, str]:
    """The page, its structure, and its text with single spaces."""
    write_report(results, folder / "report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return page, checker, " ".join(" ".join(checker.words).split())


def headings(page: str) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", page)


@pytest.fixture(scope="module")
def rendered(finished: Comparison, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Checker, str]:
    return render(finished, tmp_path_factory.mktemp("page"))


def test_page_is_well_formed_and_alone(rendered: tuple[str, Checker, str]) -> None:
    page, checker, _ = rendered
    assert checker.tags.isdisjoint({"script", "link", "img", "iframe", "object"})
    assert all(resource.startswith("#") for resource in checker.resources)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert len(checker.ids) == len(set(checker.ids))


def test_the_heading_calls_the_task_what_people_call_it(rendered: tuple[str, Checker, str]) -> None:
    for tag in ("title", "h1"):
        assert f"<{tag}>Which head start is worth it for text classification?</{tag}>" in rendered[0]
    assert "classify" not in rendered[2]


def test_page_holds_the_numbers_in_order(rendered: tuple[str, Checker, str], finished: Comparison) -> None:
    page, _, text = rendered
    assert finished.advice is not None
    assert finished.advice.sentence in text
    for entry in finished.table:
        assert f"{100 * entry.mean:.1f}" in text
        assert f"{100 * entry.low:.1f} to {100 * entry.high:.1f}" in text
    for (_, cells), row in zip(saved_table(finished), ("elmo-frozen", "bert-finetune"), strict=True):
        assert " ".join(cells) in text
        own = [saved for saved in finished.labels_saved if saved.row == row]
        assert cells == [
            "more than 1,000" if one.equals is None else "no gain" if one.equals == one.labels else f"{one.equals:,}"
            for one in own
        ]
    assert "12 dev examples also stand in train." in text
    assert "chose when each run stopped" in text
    assert "Always '1' 52.0 52.0 Scratch" in text
    assert "collapsed" not in text.lower()
    assert headings(page) == [
        "Scores", "Learning curve", "Labelled examples saved", "Which layers the task uses", "Time", "Forgetting",
        "Examples", "Data", "Before you trust this",
    ]  # fmt: skip
    assert page.count('class="best"') == 2


def test_examples_show_every_row_and_mark_what_is_right_in_words_too(rendered: tuple[str, Checker, str]) -> None:
    page, _, text = rendered
    assert re.findall(r"<h3>(.*?)</h3>", page) == ["BERT does better: 12 of 200", "Every row is right: 90 of 200"]
    assert page.count('<div class="example">') == 3
    assert page.count("…so <mark>&lt;i&gt;good&lt;/i&gt; &amp; &#34;fun&#34; 🎬</mark>.</p>") == 3
    said = "ELMo, frozen label 0.625 probability 1 % ≈ partly right, accuracy 62 % BERT, fine-tuned label 1.0"
    assert text.count(f"Scratch label 0.0 probability 0 % ✗ wrong {said} probability 2 % ✓ right") == 3
    assert page.count('aria-hidden="true">✓') == 3
    assert "best seed with 1,000 labelled examples" in text


def test_the_ink_of_the_pictures_is_exchanged_on_a_dark_screen(rendered: tuple[str, Checker, str]) -> None:
    """What is drawn for white paper is found again by its colour, so each of these must be in the style sheet."""
    style_sheet = rendered[0].partition("</style>")[0]
    for colour in (INK, GRID, STYLE["axes.edgecolor"], COLOURS[0], BASELINE):
        assert f": {colour.lower()}" in style_sheet


def test_missing_parts_leave_no_empty_box(make: Callable[..., Comparison], tmp_path: Path) -> None:
    results = make((50,), (0,))
    cells = [replace(cell, mix={}, forgetting=None) for cell in results.cells]
    bare = replace(results, cells=cells, labels_saved=[], advice=None, baseline=None, examples=[])
    page, checker, text = render(bare, tmp_path)
    assert headings(page) == ["Scores", "Scores as a picture", "Time", "Data", "Before you trust this"]
    assert "<figure" in page
    assert page.count("<figure") == page.count("<svg")
    assert "ul" in checker.tags
    assert "There is one seed only" in text
    assert "baseline" not in text.lower()


def test_nothing_run_yet(finished: Comparison, tmp_path: Path) -> None:
    results = replace(finished, cells=[], table=[], labels_saved=[], advice=None, examples=[])
    page, _, text = render(results, tmp_path)
    assert headings(page) == ["Data", "Before you trust this"]
    assert "Not finished: 18 runs are still to come." in text
    assert table_rows(results) == (["labelled examples"], [])


def test_strings_of_the_user_are_escaped(finished: Comparison, tmp_path: Path) -> None:
    evil = "<script>alert('x')</script>"
    first, second, *rest = finished.rows
    assert finished.baseline is not None
    results = replace(
        finished,
        task_title=evil,
        train=replace(finished.train, path=evil),
        dev=replace(finished.dev, classes={evil: 3}),
        rows=[first, replace(second, title=evil), *rest],
        baseline=replace(finished.baseline, title=evil),
        notices=[evil],
    )
    page, checker, text = render(results, tmp_path)
    assert "script" not in checker.tags
    assert "<script" not in page
    assert text.count(evil) >= 7


def collapsed_in(results: Comparison, row: str, seeds: int) -> Comparison:
    """The same comparison, in which so many seeds of a row collapsed."""
    return replace(results, table=[replace(e, collapsed=seeds) if e.row == row else e for e in results.table])


def test_collapsed_runs_are_marked(finished: Comparison, tmp_path: Path) -> None:
    results = collapsed_in(finished, "scratch", 1)
    _, _, text = render(results, tmp_path)
    assert "1 of 3 collapsed" in text
    assert "Scratch with 50 labelled examples: 1 of 3 runs collapsed" in text
    assert "Scratch (collapsed)" not in text
    assert [row[1].endswith(", 1 of 3 collapsed") for row in table_rows(results)[1]] == [False, True, False, False]


def test_a_row_that_collapsed_is_not_the_best_and_is_marked_in_the_picture(
    finished: Comparison, tmp_path: Path
) -> None:
    best = max(finished.with_most_labels(), key=lambda entry: entry.mean)
    assert best.row == "bert-finetune"
    page, _, text = render(collapsed_in(finished, best.row, 2), tmp_path)
    assert "BERT, fine-tuned (collapsed)" in text
    assert f'class="best">{100 * best.mean:.1f}<' not in page
    assert page.count('class="best"') == 2


def test_table_rows_are_plain_strings(finished: Comparison) -> None:
    def changed(entry: TableEntry, mean: float, p: float | None) -> TableEntry:
        return replace(entry, mean=mean, low=mean - 0.02, high=mean + 0.031, p=p, difference=p and 0.2)

    figures = [(0.5, None), (0.6, None), (0.7, 0.04), (0.8, 0.3)]
    table = [changed(entry, *one) for entry, one in zip(finished.table, figures, strict=False)]
    header, rows = table_rows(replace(finished, table=table))
    assert header == ["labelled examples", "50", "1,000"]
    assert rows[0] == ["Always '1'", "52.0", "52.0"]
    assert rows[1] == ["Scratch", "50.0 (48.0 to 53.1)", "60.0 (58.0 to 63.1)"]
    assert rows[2] == ["ELMo, frozen", "70.0 (68.0 to 73.1) *", "80.0 (78.0 to 83.1)"]


def test_table_rows_half_way(finished: Comparison) -> None:
    results = replace(finished, table=[e for e in finished.table if e.row != "bert-finetune"][:3])
    header, rows = table_rows(results)
    assert len(header) == 3
    assert [row[0] for row in rows] == ["Always '1'", "Scratch", "ELMo, frozen"]
    assert rows[2][2] == ""


def test_csv_has_a_line_for_each_cell(finished: Comparison) -> None:
    text = csv_text(finished)
    before = "row,labels,seed,accuracy,macro_f1,seconds,steps,collapsed,truncated,kind,how"
    assert text.splitlines()[0] == f"{before},perplexity_before,perplexity_after,metric,baseline"
    lines = list(csv.DictReader(io.StringIO(text)))
    assert len(lines) == len(finished.cells) == 18
    first, last = finished.cells[0], finished.cells[-1]
    assert lines[0]["row"] == first.row
    assert float(lines[0]["accuracy"]) == first.score
    assert lines[0]["perplexity_before"] == ""
    assert {(line["metric"], line["baseline"]) for line in lines} == {("accuracy", "0.52")}
    assert lines[-1]["row"] == last.row == "bert-finetune"
    assert float(lines[-1]["perplexity_after"]) == 260.1


@pytest.mark.parametrize(
    ("p", "text"), [(0.0009995, "p < 0.001"), (0.012, "p 0.012"), (0.25, "p 0.25"), (1.0, "p 1.00")]
)
def test_p_text(p: float, text: str) -> None:
    assert p_text(p) == text


@pytest.mark.parametrize(("points", "text"), [(3.14, "+3.1"), (-0.26, "−0.3"), (0.01, "±0.0"), (-0.01, "±0.0")])
def test_signed(points: float, text: str) -> None:
    assert signed(points) == text
