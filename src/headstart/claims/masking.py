"""Claim 6: how BERT's text is masked, and whether it should also tell the next sentence from a random one."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass

from headstart.claims.base import Claim, ClaimEvent, Part, PartBegan, Setting
from headstart.claims.costs import fit_minutes, pretraining_minutes
from headstart.claims.encoders import Encoder
from headstart.claims.fits import FitRow, Fits, fits_of, part_title
from headstart.claims.perplexity import NOTICE, HeldOut, measure_run
from headstart.claims.pretrainings import ONE_PER_LINE, Pretraining, pretrained_once
from headstart.claims.results import ClaimTable, Finding, Outcome, Picture, TableCell, found, point
from headstart.report.lines import Line, line_plot

SIZE = "tiny"
SHAPE = (3, 128)
RATES = (0.05, 0.15, 0.3, 0.45, 0.6)
USUAL = 0.15
AS_PUBLISHED = (
    "Held-out text is masked as published for every model (15 %; 80/10/10), which favours those that were trained so, "
    "and is read as single texts, which is new to the one that learned from pairs."
)


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to mask. settings: of the objective, where they differ from 15 %, 80/10/10, no next sentence."""

    name: str
    title: str
    settings: Mapping[str, float | str | bool]


ARMS = (
    *(Arm(f"rate-{100 * rate:.0f}", f"{100 * rate:.0f} % masked", {"mask_rate": rate}) for rate in RATES),
    Arm("always-mask", "15 %, always [MASK]", {"corruption": "mask"}),
    Arm("next-sentence", "15 %, with next sentence", {"nsp": True}),
)
USUAL_ARM = "rate-15"
PAIRS = (
    ("rate-5", USUAL_ARM, "15 % masked"),
    ("rate-60", USUAL_ARM, "15 % masked"),
    ("always-mask", USUAL_ARM, "80/10/10"),
    ("next-sentence", USUAL_ARM, "without next sentence"),
)
"""(worse according to the claim, better, what the better one is called)"""


class Masking(Claim):
    number = 6
    name = "masking"
    title = (
        "15 % is a good share to mask, replacing it 80/10/10 is better than always by [MASK], and next-sentence "
        "prediction is not needed"
    )
    source = "Devlin et al. 2019 (BERT), appendix C.2; of the next sentence, Liu et al. 2019 (RoBERTa) say so"
    needs = ("text",)
    encoders = ("static",)

    def plan(self, setting: Setting) -> list[Part]:
        scale = setting.scale
        parts = [Part(pretraining_title(arm), pretraining_minutes("bert", scale.steps)) for arm in ARMS]
        for task in setting.tasks(["sentiment"]):
            minutes = fit_minutes(scale.fits, scale.seeds, task, "frozen", [("bert", SHAPE)])
            parts += [Part(part_title(task, FitRow(arm.name, arm.title)), minutes) for arm in ARMS]
        return parts

    def run(self, setting: Setting) -> Generator[ClaimEvent, None, Outcome]:
        encoders: dict[str, Encoder] = {}
        measured: dict[str, HeldOut] = {}
        for arm in ARMS:
            yield PartBegan(pretraining_title(arm))
            encoders[arm.name], measured[arm.name] = yield from pretrained_arm(setting, arm)
        done: list[Fits] = []
        for task in setting.tasks(["sentiment"]):
            rows = [FitRow(arm.name, arm.title, (encoders[arm.name],)) for arm in ARMS]
            done.append((yield from fits_of(setting, task, rows)))
        return Outcome(
            tables=[masking_table(measured, done)],
            findings=[*perplexity_findings(measured), *(one for fits in done for one in transfer_findings(fits))],
            pictures=[rate_picture(measured), *(transfer_picture(fits) for fits in done)],
            notices=[NOTICE, AS_PUBLISHED, *(sentence for fits in done for sentence in fits.collapsed())],
        )


def pretraining_title(arm: Arm) -> str:
    return f"pretraining: {arm.title}"


def pretrained_arm(setting: Setting, arm: Arm) -> Generator[ClaimEvent, None, tuple[Encoder, HeldOut]]:
    text = setting.text
    objective = {"mask_rate": USUAL, "corruption": "bert", "nsp": False, **arm.settings}
    pieces = {"tokenizer.most": setting.scale.pieces} if setting.scale.pieces is not None else {}
    encoder = yield from pretrained_once(
        setting,
        Pretraining(
            name=f"bert-{arm.name}",
            kind="bert",
            text=text.train,
            valid=text.valid,
            size=SIZE,
            settings={**ONE_PER_LINE, **pieces, **{f"objective.{key}": value for key, value in objective.items()}},
            steps=setting.scale.steps,
            encoders={"vectors": setting.encoders["static"]},
        ),
    )
    return encoder, (yield from measure_run(encoder.folder, text.valid, setting.cache, nsp=False))


def masking_table(measured: Mapping[str, HeldOut], done: list[Fits]) -> ClaimTable:
    rows: list[list[TableCell]] = []
    for arm in ARMS:
        held_out = measured[arm.name]
        scores = [fits.score(arm.name, fits.labels[-1]) for fits in done]
        rows.append([arm.title, held_out.perplexity, held_out.right, *scores])
    columns = ["", "perplexity", "pieces predicted rightly, %", *(transfer_column(fits) for fits in done)]
    return ClaimTable("Held-out text, and what a task makes of the frozen encoder", columns, rows)


def transfer_column(fits: Fits) -> str:
    return f"{fits.metric}, {fits.labels[-1]:,} labelled"


def perplexity_findings(measured: Mapping[str, HeldOut]) -> list[Finding]:
    findings = []
    for worse, better, title in PAIRS:
        difference, p = measured[better].more_than(measured[worse])
        sentence = f"held-out perplexity: {title} below {title_of(worse)}"
        findings.append(found(sentence, difference, "below", p=p))
    return findings


def transfer_findings(fits: Fits) -> list[Finding]:
    findings = []
    for worse, better, title in PAIRS:
        difference, p = fits.difference(worse, better, fits.labels[-1])
        sentence = f"{fits.task.title}, {fits.labels[-1]:,} labelled: {title} above {title_of(worse)}"
        findings.append(found(sentence, difference, p=p))
    return findings


def title_of(name: str) -> str:
    return next(arm.title for arm in ARMS if arm.name == name)


def rate_picture(measured: Mapping[str, HeldOut]) -> Picture:
    points = [point(100 * rate, measured[f"rate-{100 * rate:.0f}"].perplexity) for rate in RATES]
    drawn = line_plot([Line("perplexity", points)], "share masked in pretraining, %", "held-out perplexity", "rates")
    return Picture("masking-perplexity", "held-out perplexity by the share that is masked", drawn)


def transfer_picture(fits: Fits) -> Picture:
    lines = [
        Line(
            f"{labels:,} labelled", [point(100 * rate, fits.score(f"rate-{100 * rate:.0f}", labels)) for rate in RATES]
        )
        for labels in fits.labels
    ]
    drawn = line_plot(lines, "share masked in pretraining, %", fits.metric, "rates-transfer")
    return Picture(f"masking-{fits.task.name}", f"{fits.task.title} by the share that is masked", drawn)
