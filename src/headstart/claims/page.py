"""claims.md: each claim with its verdict, its tables and pictures, and the command that gives them again."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from headstart.atomic import write_text
from headstart.claims.results import ClaimResult, ClaimTable, Finding, Measured, Outcome, TableCell
from headstart.report.wording import duration

TITLE = "What the field claims of these models, tested on one machine"
VERDICTS = (
    "a finding *holds* if the 95 % interval of its difference lies on the side that the claim says, *fails* if it lies "
    "on the other, and is *undecided* if the interval has both. Intervals come from a bootstrap over seeds and dev "
    "examples, unless a table says otherwise; each finding stands alone, so that of forty with no difference at all "
    "two would not be undecided."
)
SMALL = "A claim may fail here and be true elsewhere: these are small models."
HEAD = (
    f"Written by `headstart reproduce`. Each claim has a verdict, which its numbers decide: {VERDICTS} Fits that "
    f"several claims look at are made once, and their time counts for the first. {SMALL}"
)
HEAD_OF_ONE = f"Written by `headstart reproduce`. The numbers decide: {VERDICTS} {SMALL}"
LINE = 120


def write_page(path: Path, results: Sequence[ClaimResult]) -> None:
    """The page, and its pictures in a folder of the page's name beside it."""
    pictures = path.with_suffix("")
    for result in results:
        for picture in result.outcome.pictures:
            write_text(pictures / f"{picture.name}.svg", picture.svg)
    write_text(path, page_text(results, pictures.name))


def page_text(results: Sequence[ClaimResult], pictures: str) -> str:
    """A summary of all claims and a section for each; of one claim alone, a page that is all about it."""
    if len(results) == 1:
        (only,) = results
        return "\n".join([heading(only.title, HEAD_OF_ONE), *body(only, pictures, tables_first=True)])
    parts = [heading(TITLE, HEAD), summary(results)]
    for result in results:
        title = f'\n## <a id="{result.name}"></a>{result.number}. {result.title}\n'
        parts.append("\n".join([title, *body(result, pictures)]))
    return "\n".join(parts)


def heading(title: str, text: str) -> str:
    return f"# {title}\n\n{textwrap.fill(text, LINE)}\n"


def summary(results: Sequence[ClaimResult]) -> str:
    rows: list[list[TableCell]] = [
        [
            str(result.number),
            f"[{result.title}](#{result.name})",
            verdicts_text(result.outcome),
            duration(result.seconds),
        ]
        for result in results
    ]
    return "\n".join(markdown(ClaimTable("", ["", "claim", "here", "took"], rows)))


def body(result: ClaimResult, pictures: str, tables_first: bool = False) -> Iterator[str]:
    """What stands under the heading of a claim. tables_first: before the findings, of which there may be many."""
    outcome = result.outcome
    yield f"Claimed by {result.source}. Here: **{verdicts_text(outcome)}**.\n"
    if failed := [finding.sentence for finding in outcome.findings if finding.verdict == "fails"]:
        yield f"Does not hold here: {'; '.join(failed)}.\n"
    findings = list(markdown(findings_table(outcome.findings)))
    shown = list(tables_and_pictures(outcome, pictures))
    yield from [*shown, "\n## Findings\n", *findings] if tables_first else [*findings, *shown]
    if outcome.notices:
        yield ""
        yield from (f"- {notice}" for notice in outcome.notices)
    yield f"\n```\n{result.command}\n```\n"
    threads = "1 thread" if result.threads == 1 else f"{result.threads} threads"
    yield f"{duration(result.seconds)} on {result.machine} ({threads}), headstart {result.headstart}.\n"


def tables_and_pictures(outcome: Outcome, pictures: str) -> Iterator[str]:
    for table in outcome.tables:
        yield f"\n{table.title}\n"
        yield from markdown(table)
    for picture in outcome.pictures:
        yield f"\n![{picture.title}]({pictures}/{picture.name}.svg)"


def findings_table(findings: Sequence[Finding]) -> ClaimTable:
    rows: list[list[TableCell]] = [
        [
            f"**{finding.verdict}**",
            finding.sentence,
            None if finding.difference is None else difference_text(finding.difference),
            None if finding.p is None else Measured(float(f"{finding.p:.2g}")),
        ]
        for finding in findings
    ]
    return ClaimTable("", ["", "finding", "difference", "p"], rows)


def difference_text(difference: Measured) -> str:
    """ "+3.1 points (+0.9 to +5.2)"."""
    number, bracket, interval = str(difference).partition(" (")
    unit = " points" if difference.unit == "points" else ""
    return f"{number}{unit}{bracket}{interval}"


def finding_text(finding: Finding) -> str:
    """ "holds: ELMo above word vectors with 50 labelled examples: +3.1 points (+0.9 to +5.2), p = 0.004"."""
    text = f"{finding.verdict}: {finding.sentence}"
    if finding.difference is not None:
        text += f": {difference_text(finding.difference)}"
    return text if finding.p is None else f"{text}, p = {finding.p:.2g}"


def verdicts_text(outcome: Outcome) -> str:
    """One word if all findings agree, else how many of each."""
    counts = Counter(finding.verdict for finding in outcome.findings)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{verdict} {counts[verdict]}" for verdict in ("holds", "undecided", "fails") if counts[verdict])


def markdown(table: ClaimTable) -> Iterator[str]:
    """Columns with numbers stand on the right."""
    numbers = [any(isinstance(row[place], Measured) for row in table.rows) for place in range(len(table.columns))]
    yield f"| {' | '.join(table.columns)} |"
    yield f"|{'|'.join('---:' if number else '---' for number in numbers)}|"
    for row in table.rows:
        yield f"| {' | '.join(map(cell_text, row))} |"


def cell_text(cell: TableCell) -> str:
    return "" if cell is None else str(cell).replace("|", "\\|")
