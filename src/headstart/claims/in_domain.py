"""Claim 8: one pass over the text of a task brings a language model to it, and what that does to the task."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headstart.claims.base import Claim, ClaimEvent, Part, PartBegan, Setting, key_of
from headstart.claims.costs import fit_minutes, pretraining_minutes
from headstart.claims.data import TaskFiles
from headstart.claims.encoders import Encoder, EncoderRole
from headstart.claims.fits import FitRow, Fits, fits_of, part_title
from headstart.claims.layouts import Role
from headstart.claims.perplexity import NOTICE, HeldOut, held_out_loss, open_measure
from headstart.claims.pretrainings import Pretraining, pretrained_once, write_documents
from headstart.claims.results import ClaimTable, Finding, Outcome, TableCell, found
from headstart.pretraining.held_out import FinishedRun
from headstart.pretraining.starting import begin, open_beginning
from headstart.tasks import task_class

TASKS: tuple[Role, ...] = ("sentiment", "ner")
ROLES: dict[EncoderRole, str] = {"elmo": "ELMo", "bert": "BERT"}
TOKENS_PER_STEP = 800
LINES = {"text.one_per_line": False, "text.lines_are_sentences": True}
OWN_TEXT = (
    "The text is that of the task's training examples without their labels, the held-out text that of its dev "
    "examples. The encoders went on with it for one pass (`headstart pretrain ... --from`)."
)


@dataclass(frozen=True, slots=True)
class Moved:
    """An encoder before and after it read the text of a task, with the loss of its language model on dev."""

    role: EncoderRole
    before: Encoder
    after: Encoder
    loss_before: HeldOut
    loss_after: HeldOut


class InDomain(Claim):
    number = 8
    name = "in-domain"
    title = "One pass over the text of a task lowers perplexity there, and helps the task"
    source = "Peters et al. 2018 (ELMo), appendix A.1, and Gururangan et al. 2020 (Don't stop pretraining)"
    any_of = TASKS
    encoders = ("elmo",)

    def missing(self, setting: Setting) -> str | None:
        why = super().missing(setting)
        if why is None and not language_models(setting):
            return f"{self.name} needs an encoder with its language model: give a run with --elmo SRC or --bert SRC."
        return why

    def plan(self, setting: Setting) -> list[Part]:
        parts = []
        for task in setting.tasks(TASKS):
            models = language_models(setting)
            steps = setting.scale.domain_words / TOKENS_PER_STEP
            parts += [
                Part(pretraining_title(task, role), pretraining_minutes(encoder.kind, steps))
                for role, encoder in models.items()
            ]
            for role, encoder in models.items():
                shapes = [(encoder.kind, encoder.shape)]
                minutes = fit_minutes(setting.scale.fits, setting.scale.seeds, task, "frozen", shapes)
                parts += [Part(part_title(task, row), minutes) for row in rows_of(role, encoder, encoder)]
        return parts

    def run(self, setting: Setting) -> Generator[ClaimEvent, None, Outcome]:
        tables: list[ClaimTable] = []
        findings: list[Finding] = []
        notices: list[str] = []
        for task in setting.tasks(TASKS):
            moved = []
            for role, encoder in language_models(setting).items():
                yield PartBegan(pretraining_title(task, role))
                moved.append((yield from moved_to(setting, task, role, encoder)))
            rows = [row for one in moved for row in rows_of(one.role, one.before, one.after)]
            fits = yield from fits_of(setting, task, rows)
            tables.append(moved_table(fits, moved))
            findings += [finding for one in moved for finding in findings_of(fits, one)]
            notices += fits.collapsed()
        return Outcome(tables, findings, notices=[OWN_TEXT, NOTICE, *notices])


def language_models(setting: Setting) -> dict[EncoderRole, Encoder]:
    """Those of the encoders that came with their language model."""
    there = {role: setting.encoders[role] for role in ROLES if role in setting.encoders}
    return {role: encoder for role, encoder in there.items() if encoder.is_language_model}


def pretraining_title(task: TaskFiles, role: EncoderRole) -> str:
    return f"{ROLES[role]} goes on with the text of {task.title}"


def rows_of(role: EncoderRole, before: Encoder, after: Encoder) -> list[FitRow]:
    """The first is a row of claim 1 too."""
    title = ROLES[role]
    return [
        FitRow(f"{role}-frozen", f"{title}, frozen", (before,)),
        FitRow(f"{role}-in-domain", f"{title} after the text of the task, frozen", (after,)),
    ]


def moved_to(
    setting: Setting, task: TaskFiles, role: EncoderRole, encoder: Encoder
) -> Generator[ClaimEvent, None, Moved]:
    text, valid = domain_text(setting, task)
    after = yield from pretrained_once(
        setting,
        Pretraining(
            name=f"{role}-{task.name}",
            kind=encoder.kind,
            text=text,
            valid=valid,
            settings=LINES,
            encoders={"start": encoder},
        ),
    )
    run = FinishedRun.open(after.folder)
    learner = yield from open_measure(run, valid, setting.cache)
    loss_after = held_out_loss(learner, run.weights)
    beginning = open_beginning(encoder.path, run.pretraining, setting.cache)
    begin(learner, beginning, run.pretraining.untrained_heads(run.config))
    return Moved(role, encoder, after, held_out_loss(learner, learner.weights()), loss_after)


def domain_text(setting: Setting, task: TaskFiles) -> tuple[Path, Path]:
    """The sentences of the task's two files as text."""
    kind, words = task_class(task.task), setting.scale.domain_words
    key = key_of(data=setting.data.key, task=task.name, words=words)
    paths = []
    for source, part in ((task.train, "train"), (task.dev, "valid")):
        path = setting.runs / "domain" / f"{task.name}-{part}-{key}.txt"
        if not path.is_file():
            write_documents(path, [kind.key(example) for example in kind.read(source, kind.Input())], words)
        paths.append(path)
    return paths[0], paths[1]


def moved_table(fits: Fits, moved: Sequence[Moved]) -> ClaimTable:
    rows: list[list[TableCell]] = []
    for one in moved:
        for row, loss in zip(rows_of(one.role, one.before, one.after), (one.loss_before, one.loss_after), strict=True):
            scores = [fits.score(row.name, labels) for labels in fits.labels]
            rows.append([row.title, loss.perplexity, *scores])
    columns = ["", "perplexity of its dev text", *(f"{labels:,} labelled" for labels in fits.labels)]
    return ClaimTable(fits.metric, columns, rows)


def findings_of(fits: Fits, moved: Moved) -> list[Finding]:
    before, after = rows_of(moved.role, moved.before, moved.after)
    title, task = ROLES[moved.role], fits.task.title
    lower, p = moved.loss_after.more_than(moved.loss_before)
    findings = [
        found(f"{title}: perplexity of the text of {task}, lower after that text than before", lower, "below", p=p)
    ]
    for labels in fits.labels:
        better, p = fits.difference(before.name, after.name, labels)
        findings.append(found(f"{title}, {task}, {labels:,} labelled: better after its text than before", better, p=p))
    return findings
