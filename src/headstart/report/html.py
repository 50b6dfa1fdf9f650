"""A comparison as one HTML page that needs nothing else, as a plain table, and as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from headstart.atomic import write_text
from headstart.report import plots
from headstart.report.results import Comparison, TableEntry
from headstart.report.wording import CHANCE, percent, score, score_name, short_duration

CSV_COLUMNS = (
    *("seconds", "steps", "collapsed", "truncated", "kind", "how", "perplexity_before", "perplexity_after"),
    *("metric", "baseline"),
)
DEV_CHOSE = (
    "The dev set also chose when each run stopped, so all scores are a little optimistic. Keep a test set that no run "
    "has seen, and score what you deploy on that."
)
MANY_TESTS = "Each p is for its own comparison; with many comparisons, one in twenty is below 0.05 by chance alone."
ONE_SEED = (
    "There is one seed only: the intervals know how the dev examples vary, not how training does. Use several seeds "
    "before you trust a difference."
)


@dataclass(frozen=True, slots=True)
class Score:
    """One entry of the table, as it is shown."""

    mean: str
    interval: str
    step: str  # the difference to the row above, with its p
    best: bool
    beyond_chance: bool
    collapsed: str  # how many of the seeds, if any

    @property
    def text(self) -> str:
        star, flag = " *" if self.beyond_chance else "", f", {self.collapsed}" if self.collapsed else ""
        return f"{self.mean} ({self.interval}){star}{flag}"


def write_report(results: Comparison, path: Path) -> None:
    """The whole comparison as one HTML file: no script, nothing fetched, the pictures inside."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.globals |= {"percent": percent, "duration": short_duration, "score": score, "score_name": score_name}
    environment.globals["verdict"] = verdict
    template = files("headstart.report").joinpath("template.html.j2").read_text(encoding="utf-8")
    pictures = {
        "curve": plots.learning_curve(results) if results.table else None,
        "mix": plots.mix_weights(plots.mix_groups(results)),
        "times": plots.times(results),
        "forgetting": plots.forgetting(results),
    }
    page = environment.from_string(template).render(
        results=results,
        titles=results.titles,
        budgets=results.budgets,
        scores=score_table(results),
        score_names=score_names(results),
        saved=saved_table(results),
        notices=notices(results),
        pictures={name: Markup(picture) if picture else None for name, picture in pictures.items()},
    )
    write_text(path, page)


def verdict(right: float, metric_title: str) -> tuple[str, str, str]:
    """(class, mark, words) of an answer that is so right, from 0 to 1."""
    if right >= 1:
        return "right", "✓", "right"
    if right <= 0:
        return "wrong", "✗", "wrong"
    return "partly", "≈", f"partly right, {metric_title} {100 * right:.0f} %"


def score_names(results: Comparison) -> list[str]:
    """The scores that every run has, in their order."""
    first = results.cells[0].scores if results.cells else {}
    return [name for name in first if all(name in cell.scores for cell in results.cells)]


def score_table(results: Comparison) -> list[tuple[str, list[Score | None]]]:
    """(row title, a score for each number of labelled examples); None where nothing has run, rows without any left out.

    The best of a column is the best of the rows that did not collapse.
    """
    entries = {(entry.row, entry.labels): entry for entry in results.table}
    budgets = results.budgets
    best = {
        count: max((e.mean for e in results.table if e.labels == count and not e.is_collapsed), default=None)
        for count in budgets
    }
    table = []
    for row in results.rows:
        found = [entries.get((row.name, count)) for count in budgets]
        if any(found):
            table.append((row.title, [shown(entry, best[entry.labels]) if entry else None for entry in found]))
    return table


def saved_table(results: Comparison) -> list[tuple[str, list[str]]]:
    """(row title, what scratch needs for the score at each number of labelled examples), of the rows that have any."""
    budgets, found = results.budgets, {(one.row, one.labels): one for one in results.labels_saved}
    most = max((one.labels for one in results.labels_saved), default=0)

    def text(row: str, count: int) -> str:
        saved = found.get((row, count))
        if saved is None:
            return ""
        if saved.equals is None:
            return f"more than {most:,}"
        return f"{saved.equals:,}" if saved.equals > count else "no gain"

    rows = [row for row in results.rows if any((row.name, count) in found for count in budgets)]
    return [(row.title, [text(row.name, count) for count in budgets]) for row in rows]


def shown(entry: TableEntry, best: float | None) -> Score:
    step = ""
    if entry.p is not None and entry.difference is not None:
        step = f"{signed(100 * entry.difference)}, {p_text(entry.p)}"
    return Score(
        mean=f"{100 * entry.mean:.1f}",
        interval=f"{100 * entry.low:.1f} to {100 * entry.high:.1f}",
        step=step,
        best=entry.mean == best and not entry.is_collapsed,
        beyond_chance=entry.p is not None and entry.p < CHANCE,
        collapsed=f"{entry.collapsed} of {len(entry.scores)} collapsed" if entry.collapsed else "",
    )


def signed(points: float) -> str:
    text = f"{abs(points):.1f}"
    return "±0.0" if text == "0.0" else f"{'+' if points > 0 else '−'}{text}"


def p_text(p: float) -> str:
    if p < 0.001:
        return "p < 0.001"
    return f"p {p:.3f}" if p < 0.1 else f"p {p:.2f}"


def table_rows(results: Comparison) -> tuple[list[str], list[list[str]]]:
    """Header and rows of plain strings, the baseline first. A star: p < 0.05 against the row above."""
    budgets = results.budgets
    header = ["labelled examples", *(f"{count:,}" for count in budgets)]
    rows = [[title, *(one.text if one else "" for one in scores)] for title, scores in score_table(results)]
    if results.baseline is not None and rows:
        rows.insert(0, [results.baseline.title, *(f"{100 * results.baseline.score:.1f}" for _ in budgets)])
    return header, rows


def notices(results: Comparison) -> list[str]:
    """What a reader must know before trusting the numbers."""
    said = list(results.notices)
    for entry in results.table:
        if entry.collapsed:
            said.append(
                f"{results.titles[entry.row]} with {entry.labels:,} labelled examples: {entry.collapsed} of "
                f"{len(entry.scores)} runs collapsed (one answer for every example). The mean includes them."
            )
    if results.table and all(len(entry.scores) == 1 for entry in results.table):
        said.append(ONE_SEED)
    missing = len(results.rows) * len(results.labels) * len(results.seeds) - len(results.cells)
    if missing > 0:
        said.append(f"Not finished: {missing:,} runs are still to come.")
    return [*said, DEV_CHOSE, *([MANY_TESTS] if len(results.rows) > 2 else [])]


def csv_text(results: Comparison) -> str:
    """One line for each run, with a header; the primary metric and the baseline's score of it stand in each line."""
    rows, names = {row.name: row for row in results.rows}, score_names(results)
    baseline = "" if results.baseline is None else results.baseline.score
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["row", "labels", "seed", *names, *CSV_COLUMNS])
    for cell in results.cells:
        row, forgot = rows[cell.row], cell.forgetting
        scores = [cell.scores[name] for name in names]
        perplexities = ("", "") if forgot is None else (forgot.before, forgot.after)
        facts = (cell.seconds, cell.steps, cell.collapsed, cell.truncated, row.kind, row.how)
        writer.writerow([*cell.key, *scores, *facts, *perplexities, cell.metric, baseline])
    return out.getvalue()
