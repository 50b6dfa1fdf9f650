"""results.json as one page that needs nothing else, as a plain table, and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from headstart.atomic import write_text
from headstart.report import plots
from headstart.report.plots import Results, duration_text
from headstart.report.wording import CHANCE, percent, score

CELL_FIELDS = ["row", "labels", "seed", "accuracy", "macro_f1", "seconds", "steps", "collapsed", "truncated"]
DEV_CHOSE = (
    "The dev set also chose when each run stopped, so all scores are a little optimistic. Keep a test set that no run "
    "has seen for the last word."
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
    step: str  # the difference to the row before, with its p
    best: bool
    sure: bool
    collapsed: int


def write_report(results: Results, path: Path) -> None:
    """The whole comparison as one HTML file: no script, nothing fetched, the pictures inside."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.globals |= {"percent": percent, "duration": duration_text, "score": score}
    template = files("headstart.report").joinpath("template.html.j2").read_text(encoding="utf-8")
    pictures = {
        "curve": plots.learning_curve(results) if results["table"] else None,
        "mix": plots.mix_weights(results),
        "times": plots.times(results),
        "forgetting": plots.forgetting(results),
    }
    page = environment.from_string(template).render(
        results=results,
        titles={row["name"]: row["title"] for row in results["rows"]},
        budgets=budgets(results),
        scores=score_table(results),
        notices=notices(results),
        pictures={name: Markup(picture) if picture else None for name, picture in pictures.items()},
    )
    write_text(path, page)


def budgets(results: Results) -> list[int]:
    """The numbers of labels that have a score."""
    return sorted({entry["labels"] for entry in results["table"]})


def score_table(results: Results) -> list[tuple[str, list[Score | None]]]:
    """(row title, a score for each number of labels); None where nothing has run. Rows without any are left out."""
    entries = {(entry["row"], entry["labels"]): entry for entry in results["table"]}
    best = {count: max(e["mean"] for (_, n), e in entries.items() if n == count) for count in budgets(results)}
    table = []
    for row in results["rows"]:
        found = [entries.get((row["name"], count)) for count in best]
        if any(found):
            scores = [shown(entry, entry["mean"] == best[entry["labels"]]) if entry else None for entry in found]
            table.append((row["title"], scores))
    return table


def shown(entry: Mapping[str, Any], best: bool) -> Score:
    p = entry["p"]
    return Score(
        mean=f"{100 * entry['mean']:.1f}",
        interval=f"{100 * entry['low']:.1f} to {100 * entry['high']:.1f}",
        step="" if p is None else f"{signed(100 * entry['difference'])}, {p_text(p)}",
        best=best,
        sure=p is not None and p < CHANCE,
        collapsed=entry["collapsed"],
    )


def signed(points: float) -> str:
    text = f"{abs(points):.1f}"
    return "±0.0" if text == "0.0" else f"{'+' if points > 0 else '−'}{text}"


def p_text(p: float) -> str:
    if p < 0.001:
        return "p < 0.001"
    return f"p {p:.3f}" if p < 0.1 else f"p {p:.2f}"


def table_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """Header and rows of plain strings. A star: differs from the row above by more than chance (p < 0.05)."""
    header = ["accuracy, %", *(f"{count:,} labels" for count in budgets(results))]
    rows = [
        [title, *(f"{one.mean} ({one.interval}){' *' if one.sure else ''}" if one else "" for one in scores)]
        for title, scores in score_table(results)
    ]
    return header, rows


def notices(results: Results) -> list[str]:
    """What a reader must know before trusting the numbers."""
    titles = {row["name"]: row["title"] for row in results["rows"]}
    said = list(results["notices"])
    for entry in results["table"]:
        if entry["collapsed"]:
            said.append(
                f"{titles[entry['row']]} with {entry['labels']:,} labels: {entry['collapsed']} of "
                f"{len(entry['scores'])} runs collapsed (the same label for every text). The mean counts them too."
            )
    if results["table"] and all(len(entry["scores"]) == 1 for entry in results["table"]):
        said.append(ONE_SEED)
    missing = len(results["rows"]) * len(results["labels"]) * len(results["seeds"]) - len(results["cells"])
    if missing > 0:
        said.append(f"Not finished: {missing:,} runs are still to come.")
    return [*said, DEV_CHOSE, *([MANY_TESTS] if len(results["rows"]) > 2 else [])]


def csv_text(results: Results) -> str:
    """One line for each run, with a header."""
    rows = {row["name"]: row for row in results["rows"]}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*CELL_FIELDS, "kind", "how", "perplexity_before", "perplexity_after"])
    for cell in results["cells"]:
        forgotten = cell.get("forgetting") or {"before": "", "after": ""}
        row = rows[cell["row"]]
        values: Sequence[Any] = [cell[field] for field in CELL_FIELDS]
        writer.writerow([*values, row["kind"], row["how"], forgotten["before"], forgotten["after"]])
    return out.getvalue()
