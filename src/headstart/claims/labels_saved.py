"""Claim 2: a pretrained encoder saves labelled examples, and steps of training."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from headstart.claims.base import Claim, ClaimEvent, Part, Setting
from headstart.claims.fits import Fits, fits_of
from headstart.claims.generations import TASKS, generation_parts, generation_rows
from headstart.claims.results import (
    ClaimTable,
    Finding,
    Measured,
    Outcome,
    TableCell,
    found,
    found_over_seeds,
    over_seeds,
)
from headstart.report.results import Cell

SCRATCH = "scratch"
STEP_NOTICE = "Steps are counted, not seconds: a step of a fine-tuned encoder takes longer than one of scratch."


class LabelsSaved(Claim):
    number = 2
    name = "labels-saved"
    title = "A pretrained encoder needs fewer labelled examples, and fewer steps of training, for the same score"
    source = "Peters et al. 2018 (ELMo), section 5.4, and Howard and Ruder 2018 (ULMFiT)"
    any_of = TASKS
    encoders = ("static",)

    def plan(self, setting: Setting) -> list[Part]:
        return generation_parts(setting)

    def run(self, setting: Setting) -> Generator[ClaimEvent, None, Outcome]:
        tables: list[ClaimTable] = []
        findings: list[Finding] = []
        for task in setting.tasks(TASKS):
            fits = yield from fits_of(setting, task, generation_rows(setting, task))
            tables += [labels_table(fits), steps_table(fits)]
            findings += [*labels_findings(fits), *steps_findings(fits)]
        return Outcome(tables, findings, notices=[STEP_NOTICE])


def pretrained_rows(fits: Fits) -> dict[str, str]:
    """Name -> title, without scratch."""
    return {name: title for name, title in fits.comparison.titles.items() if name != SCRATCH}


def labels_table(fits: Fits) -> ClaimTable:
    needed = {(saved.row, saved.labels): saved.equals for saved in fits.comparison.labels_saved}
    most = f"more than {fits.labels[-1]:,}"
    rows: list[list[TableCell]] = []
    for name, title in pretrained_rows(fits).items():
        equals = [needed[name, labels] for labels in fits.labels]
        rows.append([title, *(most if one is None else f"{one:,}" for one in equals)])
    return ClaimTable(f"{fits.task.title}: labelled examples that scratch needs for the same score", header(fits), rows)


def labels_findings(fits: Fits) -> list[Finding]:
    """Each row with the fewest labelled examples against scratch with the next larger number of them."""
    if len(fits.labels) < 2:
        return []
    few, more = fits.labels[:2]
    findings = []
    for name, title in pretrained_rows(fits).items():
        difference, p = fits.difference(SCRATCH, name, more, few)
        sentence = f"{fits.task.title}: {title} with {few:,} labelled above scratch with {more:,}"
        findings.append(found(sentence, difference, p=p))
    return findings


def steps_table(fits: Fits) -> ClaimTable:
    rows: list[list[TableCell]] = [["scratch, to its best", *(step_cell(fits, SCRATCH, n) for n in fits.labels)]]
    for name, title in pretrained_rows(fits).items():
        rows.append([title, *(step_cell(fits, name, labels) for labels in fits.labels)])
    title = f"{fits.task.title}: steps until the best score that scratch reaches on dev, mean over the seeds"
    return ClaimTable(title, header(fits), rows)


def step_cell(fits: Fits, row: str, labels: int) -> TableCell:
    reached = [steps for steps in steps_to_scratch(fits, row, labels) if steps is not None]
    seeds = len(fits.of(row, labels))
    if not reached:
        return "never"
    mean = Measured(over_seeds(reached).value)
    return mean if len(reached) == seeds else f"{mean} ({len(reached)} of {seeds} seeds)"


def steps_findings(fits: Fits) -> list[Finding]:
    """Steps of scratch less those of each row, with the most labelled examples. Never there counts as all its steps."""
    labels = fits.labels[-1]
    scratch = [cell.steps if steps is None else steps for steps, cell in with_cells(fits, SCRATCH, labels)]
    findings = []
    for name, title in pretrained_rows(fits).items():
        own = [cell.steps if steps is None else steps for steps, cell in with_cells(fits, name, labels)]
        saved = [float(before - after) for before, after in zip(scratch, own, strict=True)]
        sentence = (
            f"{fits.task.title}, {labels:,} labelled: steps that {title} saves on the way to scratch's best score"
        )
        findings.append(found_over_seeds(sentence, saved))
    return findings


def with_cells(fits: Fits, row: str, labels: int) -> list[tuple[int | None, Cell]]:
    return list(zip(steps_to_scratch(fits, row, labels), fits.of(row, labels), strict=True))


def steps_to_scratch(fits: Fits, row: str, labels: int) -> list[int | None]:
    """For each seed, the steps after which a row is as good on dev as scratch ever was; None if never."""
    pairs = zip(fits.of(SCRATCH, labels), fits.of(row, labels), strict=True)
    return [steps_until(cell.curve, max(score for _, score in scratch.curve)) for scratch, cell in pairs]


def steps_until(curve: Sequence[tuple[int, float]], score: float) -> int | None:
    return next((step for step, reached in curve if reached >= score), None)


def header(fits: Fits) -> list[str]:
    return ["", *(f"{labels:,} labelled" for labels in fits.labels)]
