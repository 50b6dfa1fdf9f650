"""Claim 1: each generation of pretrained encoders beats the one before it."""

from __future__ import annotations

from collections.abc import Generator

from headstart.claims.base import Claim, ClaimEvent, Part, Setting
from headstart.claims.data import TaskFiles
from headstart.claims.fits import FitRow, Fits, RowPlan, fit_parts, fits_of, rows_in
from headstart.claims.layouts import Role
from headstart.claims.results import Finding, Outcome, Picture, found
from headstart.report.plots import learning_curve

TASKS: tuple[Role, ...] = ("sentiment", "pos", "ner")
GENERATIONS = (
    RowPlan("scratch", "scratch", how="scratch"),
    RowPlan("static-frozen", "word vectors, frozen", ("static",)),
    RowPlan("elmo-frozen", "ELMo, frozen", ("elmo",)),
    RowPlan("stack-frozen", "word vectors + ELMo, frozen", ("static", "elmo")),
    RowPlan("bert-frozen", "BERT, frozen", ("bert",)),
    RowPlan("bert-finetune", "BERT, fine-tuned", ("bert",), "finetune"),
    RowPlan("published-finetune", "published BERT, fine-tuned", ("published",), "finetune"),
)
STEPS = (
    ("scratch", "static-frozen"),
    ("static-frozen", "elmo-frozen"),
    ("static-frozen", "stack-frozen"),
    ("static-frozen", "bert-frozen"),
    ("static-frozen", "bert-finetune"),
    ("elmo-frozen", "bert-finetune"),
    ("static-frozen", "published-finetune"),
)
"""(what is beaten, what beats it)"""


def generation_rows(setting: Setting, task: TaskFiles) -> list[FitRow]:
    """Without fine-tuning for parts of speech: it takes longest there, and tells least, so near to perfect."""
    rows = rows_in(setting, GENERATIONS)
    return rows if task.name != "pos" else [row for row in rows if row.how != "finetune"]


def generation_parts(setting: Setting) -> list[Part]:
    return [
        part for task in setting.tasks(TASKS) for part in fit_parts(setting, [task], generation_rows(setting, task))
    ]


class Generations(Claim):
    number = 1
    name = "generations"
    title = "Contextual encoders beat word vectors, and word vectors beat training from scratch"
    source = "Peters et al. 2018 (ELMo) and Devlin et al. 2019 (BERT)"
    any_of = TASKS
    encoders = ("static",)

    def plan(self, setting: Setting) -> list[Part]:
        return generation_parts(setting)

    def run(self, setting: Setting) -> Generator[ClaimEvent, None, Outcome]:
        done = []
        for task in setting.tasks(TASKS):
            done.append((yield from fits_of(setting, task, generation_rows(setting, task))))
        return Outcome(
            tables=[fits.table() for fits in done],
            findings=[finding for fits in done for finding in steps_of(fits)],
            pictures=[
                Picture(f"{self.name}-{fits.task.name}", fits.metric, learning_curve(fits.comparison)) for fits in done
            ],
            notices=[sentence for fits in done for sentence in fits.collapsed()],
        )


def steps_of(fits: Fits) -> list[Finding]:
    """Each step from a generation to the next, with the fewest and with the most labelled examples."""
    titles = fits.comparison.titles
    findings = []
    for before, after in STEPS:
        for labels in dict.fromkeys((fits.labels[0], fits.labels[-1])):
            if fits.has(before, after):
                difference, p = fits.difference(before, after, labels)
                sentence = f"{fits.task.title}, {labels:,} labelled: {titles[after]} above {titles[before]}"
                findings.append(found(sentence, difference, p=p))
    return findings
