"""Claim 5: fine-tuned against frozen, and the last four layers side by side."""

from __future__ import annotations

from collections.abc import Generator

from headstart.claims.base import Claim, ClaimEvent, Part, Setting
from headstart.claims.fits import Fits, RowPlan, fit_parts, fits_of, rows_in
from headstart.claims.layouts import Role
from headstart.claims.results import Expected, Finding, Outcome, found

TASKS: tuple[Role, ...] = ("sentiment", "ner")
ROWS = (
    RowPlan("elmo-frozen", "ELMo, frozen", ("elmo",)),
    RowPlan("elmo-finetune", "ELMo, fine-tuned", ("elmo",), "finetune"),
    RowPlan("bert-frozen", "BERT, frozen", ("bert",)),
    RowPlan("bert-frozen-four", "BERT, frozen, last four layers", ("bert",), mix="concat"),
    RowPlan("bert-finetune", "BERT, fine-tuned", ("bert",), "finetune"),
    RowPlan("published-frozen", "published BERT, frozen", ("published",)),
    RowPlan("published-frozen-four", "published BERT, frozen, last four layers", ("published",), mix="concat"),
    RowPlan("published-finetune", "published BERT, fine-tuned", ("published",), "finetune"),
)
CLOSE = 0.02
"""Two points: how far from fine-tuning still counts as close."""
PAIRS: tuple[tuple[str, str, str, Expected], ...] = (
    ("elmo-frozen", "elmo-finetune", "below", "below"),
    ("bert-frozen", "bert-finetune", "above", "above"),
    ("published-frozen", "published-finetune", "above", "above"),
    ("bert-finetune", "bert-frozen-four", "within two points of", "near"),
    ("published-finetune", "published-frozen-four", "within two points of", "near"),
)
"""(row, row that is compared with it, what the claim says of the second, and as a difference)"""


class FineTuning(Claim):
    number = 5
    name = "fine-tuning"
    title = (
        "ELMo is better frozen and BERT is better fine-tuned, but the last four layers of BERT, side by side and "
        "frozen, come close"
    )
    source = "Peters, Ruder and Smith 2019 (To tune or not to tune) and Devlin et al. 2019 (BERT), table 7"
    any_of = TASKS
    encoders = ("elmo", "bert")

    def plan(self, setting: Setting) -> list[Part]:
        return fit_parts(setting, setting.tasks(TASKS), rows_in(setting, ROWS))

    def run(self, setting: Setting) -> Generator[ClaimEvent, None, Outcome]:
        done = []
        for task in setting.tasks(TASKS):
            done.append((yield from fits_of(setting, task, rows_in(setting, ROWS))))
        return Outcome(
            tables=[fits.table() for fits in done],
            findings=[finding for fits in done for finding in pairs_of(fits)],
            notices=[sentence for fits in done for sentence in fits.collapsed()],
        )


def pairs_of(fits: Fits) -> list[Finding]:
    """With the most labelled examples."""
    labels, titles = fits.labels[-1], fits.comparison.titles
    findings = []
    for row, other, words, expected in PAIRS:
        if fits.has(row, other):
            difference, p = fits.difference(row, other, labels)
            sentence = f"{fits.task.title}, {labels:,} labelled: {titles[other]} {words} {titles[row]}"
            findings.append(found(sentence, difference, expected, margin=CLOSE, p=p))
    return findings
