"""Claim 10: the six tasks on which ELMo was judged, with every generation of encoders: the table of six."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from headstart.claims.base import Claim, ClaimEvent, Part, Setting, key_of
from headstart.claims.encoders import EncoderRole
from headstart.claims.fits import FitRow, Fits, RowPlan, fit_parts, fits_of, rows_in
from headstart.claims.layers import CONTEXTUAL, depth, weights_by_seed, weights_table
from headstart.claims.layouts import Role
from headstart.claims.results import ClaimTable, Finding, Measured, Outcome, Picture, TableCell, found, found_over_seeds
from headstart.metrics import mean
from headstart.report.layer_bars import layer_bars


@dataclass(frozen=True, slots=True)
class PaperScores:
    """What the ELMo paper reports of a task, in %: its baseline, and the baseline with ELMo."""

    baseline: float
    with_elmo: float

    @property
    def error_reduction(self) -> float:
        return (self.with_elmo - self.baseline) / (100 - self.baseline)

    def __str__(self) -> str:
        return f"{self.baseline}, {self.with_elmo}"


PAPER: dict[Role, PaperScores] = {
    "questions": PaperScores(81.1, 85.8),
    "inference": PaperScores(88.0, 88.7),
    "roles": PaperScores(81.4, 84.6),
    "chains": PaperScores(67.2, 70.4),
    "ner": PaperScores(90.15, 92.22),
    "sst5": PaperScores(51.4, 54.7),
}
"""Peters et al. 2018, table 1, in its order."""
TASKS = (*PAPER,)
SYNTAX: tuple[Role, ...] = ("roles", "ner")
"""Tasks whose answers are spans of words of certain kinds. The answers of the others depend on what the text means."""
SCRATCH, WORDS, ELMO = "scratch", "static-frozen", "elmo-frozen"
STEPS = ((SCRATCH, WORDS), (WORDS, ELMO), (WORDS, "bert-finetune"), (WORDS, "published-finetune"))
"""(what is beaten, what beats it)"""
COMPARABLE = (
    "The baselines of the paper had word vectors (GloVe) already, so its figures are to be compared with the column "
    "ELMo over word vectors. They learned from all labelled examples and were scored on the test sets; semantic roles "
    "and coreference were those of OntoNotes."
)
REDUCTION = (
    "Error is 100 less the score. Its reduction has an interval from the bootstrap of the scores, with the same seeds "
    "and dev examples on both sides. The best row is the one with the best mean on dev, which favours it a little."
)


def bert_role(setting: Setting) -> EncoderRole:
    """Who plays BERT: the published one if it is there."""
    return "published" if "published" in setting.encoders else "bert"


def rows_of(setting: Setting) -> list[FitRow]:
    """Named as the rows of the other claims, so that fits of the same size are shared."""
    bert = bert_role(setting)
    plans = (
        RowPlan(SCRATCH, "scratch", how="scratch"),
        RowPlan(WORDS, "word vectors", ("static",)),
        RowPlan(ELMO, "ELMo", ("elmo",)),
        RowPlan(f"{bert}-frozen", "BERT, frozen", (bert,)),
        RowPlan(f"{bert}-finetune", "BERT, fine-tuned", (bert,), "finetune"),
    )
    return rows_in(setting, plans)


class SixTasks(Claim):
    number = 10
    name = "six-tasks"
    title = "On six different tasks, word vectors beat scratch, and contextual encoders beat word vectors"
    source = "Peters et al. 2018 (ELMo), table 1 and figure 2, and Devlin et al. 2019 (BERT)"
    any_of = TASKS
    uses = TASKS
    encoders = ("static", "elmo")

    def key(self, setting: Setting) -> str:
        """Without the sizes and the data of other claims."""
        return key_of(
            claim=self.name,
            seeds=setting.seeds,
            scale={role: asdict(sizes) for role, sizes in setting.scale.six_tasks.items()},
            data={task.name: setting.data.key_of(task.name) for task in setting.tasks(TASKS)},
            encoders={role: one.fingerprint for role, one in setting.encoders.items()},
        )

    def plan(self, setting: Setting) -> list[Part]:
        rows, sizes = rows_of(setting), setting.scale.six_tasks
        return [part for task in setting.tasks(TASKS) for part in fit_parts(setting, [task], rows, sizes[task.name])]

    def run(self, setting: Setting) -> Generator[ClaimEvent, None, Outcome]:
        rows = rows_of(setting)
        done: list[Fits] = []
        for task in setting.tasks(TASKS):
            done.append((yield from fits_of(setting, task, rows, setting.scale.six_tasks[task.name])))
        contextual = [role for role in ("elmo", bert_role(setting)) if role in setting.encoders]
        return Outcome(
            tables=[
                scores_table(rows, done),
                reductions_table(done),
                *(weights_table(role, done) for role in contextual),
            ],
            findings=[
                *(finding for fits in done for finding in findings_of(fits)),
                *(finding for role in contextual for finding in layers_read(role, done)),
            ],
            pictures=[layers_picture(role, done, self.name) for role in contextual],
            notices=[players(setting), COMPARABLE, REDUCTION, *(said for fits in done for said in fits.collapsed())],
        )


def players(setting: Setting) -> str:
    """Which encoders the rows are of."""
    bert = bert_role(setting)
    parts: dict[EncoderRole, str] = {"static": "word vectors", "elmo": "ELMo", bert: "BERT"}
    sources = {title: setting.encoders[role].source for role, title in parts.items() if role in setting.encoders}
    return f"Encoders: {', '.join(f'{title} {Path(source).name}' for title, source in sources.items())}."


# --- scores -----------------------------------------------------------------------------------------------------------


def scores_table(rows: Sequence[FitRow], done: Sequence[Fits]) -> ClaimTable:
    cells: list[list[TableCell]] = [
        [
            fits.task.title,
            fits.comparison.metric_title,
            Measured(float(most(fits))),
            *(fits.score(row.name, most(fits)) for row in rows),
        ]
        for fits in done
    ]
    columns = ["", "metric", "labelled", *(row.title for row in rows)]
    return ClaimTable("The table of six: scores on dev in %", columns, cells)


def most(fits: Fits) -> int:
    return fits.labels[-1]


def best_of(fits: Fits, kind: str | None = None) -> str:
    """The row with the best mean, of those with a pretrained encoder. kind: of its encoder; None for any."""
    rows = [row.name for row in fits.comparison.rows if row.name != SCRATCH and kind in (None, row.kind)]
    return max(rows, key=lambda row: mean([cell.score for cell in fits.of(row, most(fits))]))


def reductions_table(done: Sequence[Fits]) -> ClaimTable:
    cells: list[list[TableCell]] = []
    for fits in done:
        paper = PAPER[fits.task.name]
        pairs = [(SCRATCH, WORDS), (SCRATCH, ELMO), (WORDS, ELMO)]
        reductions = [fits.error_reduction(row, other, most(fits)) for row, other in pairs]
        cells.append(
            [fits.task.title, *reductions, best_bert(fits), str(paper), Measured(paper.error_reduction, unit="%")]
        )
    columns = [
        "",
        "word vectors over scratch",
        "ELMo over scratch",
        "ELMo over word vectors",
        "best BERT over scratch",
        "paper: baseline, with ELMo",
        "paper: reduction",
    ]
    return ClaimTable("Relative error reduction in %", columns, cells)


def best_bert(fits: Fits) -> TableCell:
    if not any(row.kind == "bert" for row in fits.comparison.rows):
        return None
    return fits.error_reduction(SCRATCH, best_of(fits, "bert"), most(fits))


def findings_of(fits: Fits) -> list[Finding]:
    """Each step from a generation to the next, and whether as much of the error is gone as in the paper."""
    titles, labels = fits.comparison.titles, most(fits)
    where = f"{fits.task.title}, {labels:,} labelled"
    findings = []
    for before, after in STEPS:
        if fits.has(before, after):
            difference, p = fits.difference(before, after, labels)
            findings.append(found(f"{where}: {titles[after]} above {titles[before]}", difference, p=p))
    best, share = best_of(fits), PAPER[fits.task.name].error_reduction
    sentence = (
        f"{where}: the best row, {titles[best]}, cuts scratch's error by at least the paper's {100 * share:.1f} %"
    )
    return [*findings, found(sentence, above_share(fits.error_reduction(SCRATCH, best, labels), share))]


def above_share(measured: Measured, share: float) -> Measured:
    """How far a measured share is above one that is taken as exact."""
    low, high = measured.interval or (measured.value, measured.value)
    return replace(measured, value=measured.value - share, interval=(low - share, high - share), unit="points")


# --- layers -----------------------------------------------------------------------------------------------------------


def layers_read(role: EncoderRole, done: Sequence[Fits]) -> list[Finding]:
    """Whether the mixes of tasks of syntax are of lower layers than those of tasks of meaning."""
    low = [depths(role, fits) for fits in done if fits.task.name in SYNTAX]
    high = [depths(role, fits) for fits in done if fits.task.name not in SYNTAX]
    if not low or not high or len(weights_by_seed(role, done[0])[0]) < 2:
        return []
    means = [[mean(list(of_seed)) for of_seed in zip(*side, strict=True)] for side in (low, high)]
    differences = [above - below for below, above in zip(*means, strict=True)]
    titles = " and ".join(fits.task.title for fits in done if fits.task.name in SYNTAX)
    sentence = f"{CONTEXTUAL[role]}: {titles} read lower layers than the other tasks (share of the depth)"
    return [found_over_seeds(sentence, differences)]


def depths(role: EncoderRole, fits: Fits) -> list[float]:
    return [depth(weights) for weights in weights_by_seed(role, fits)]


def layers_picture(role: EncoderRole, done: Sequence[Fits], claim: str) -> Picture:
    """The mixes of all tasks, each averaged over the seeds."""
    mixes = {
        fits.task.title: [mean(list(layer)) for layer in zip(*weights_by_seed(role, fits), strict=True)]
        for fits in done
    }
    name = f"{claim}-{role}"
    return Picture(name, f"the layers of {CONTEXTUAL[role]} by task", layer_bars(mixes, name))
