"""Claim 3: all layers mixed beat the last one, and tasks differ in the layers that they read."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from headstart.claims.base import Claim, ClaimEvent, Part, Setting
from headstart.claims.encoders import EncoderRole
from headstart.claims.fits import Fits, RowPlan, fit_parts, fits_of, rows_in
from headstart.claims.layouts import Role
from headstart.claims.results import (
    ClaimTable,
    Finding,
    Outcome,
    Picture,
    TableCell,
    found,
    found_over_seeds,
    over_seeds,
)
from headstart.report.drawing import look
from headstart.report.plots import mix_weights, mixes_of

TASKS: tuple[Role, ...] = ("sentiment", "pos", "ner")
CONTEXTUAL: dict[EncoderRole, str] = {"elmo": "ELMo", "bert": "BERT", "published": "published BERT"}
ROWS = tuple(
    row
    for role, title in CONTEXTUAL.items()
    for row in (
        RowPlan(f"{role}-frozen", f"{title}, all layers", (role,)),
        RowPlan(f"{role}-frozen-last", f"{title}, last layer", (role,), mix="last"),
    )
)
"""The first of each pair is a row of claim 1 too."""


class Layers(Claim):
    number = 3
    name = "layers"
    title = "All layers mixed beat the last layer, and different tasks read different layers"
    source = "Peters et al. 2018 (ELMo), tables 2 and figure 2"
    any_of = TASKS
    encoders = ("elmo",)

    def plan(self, setting: Setting) -> list[Part]:
        return fit_parts(setting, setting.tasks(TASKS), rows_in(setting, ROWS))

    def run(self, setting: Setting) -> Generator[ClaimEvent, None, Outcome]:
        done = []
        for task in setting.tasks(TASKS):
            done.append((yield from fits_of(setting, task, rows_in(setting, ROWS))))
        roles = [role for role in CONTEXTUAL if role in setting.encoders]
        return Outcome(
            tables=[*(fits.table() for fits in done), *(weights_table(role, done) for role in roles)],
            findings=[
                *(finding for fits in done for finding in mixed_against_last(fits, roles)),
                *(finding for role in roles for finding in layers_read(role, done)),
            ],
            pictures=[picture for role in roles for picture in weights_picture(role, done)],
            notices=[sentence for fits in done for sentence in fits.collapsed()],
        )


def mixed_against_last(fits: Fits, roles: Sequence[EncoderRole]) -> list[Finding]:
    labels = fits.labels[-1]
    findings = []
    for role in roles:
        difference, p = fits.difference(f"{role}-frozen-last", f"{role}-frozen", labels)
        sentence = f"{fits.task.title}, {labels:,} labelled: all layers of {CONTEXTUAL[role]} above its last layer"
        findings.append(found(sentence, difference, p=p))
    return findings


def weights_by_seed(role: EncoderRole, fits: Fits) -> list[list[float]]:
    """The learned s_j of each seed, with the most labelled examples."""
    return [cell.mix["input"].weights for cell in fits.of(f"{role}-frozen", fits.labels[-1])]


def weights_table(role: EncoderRole, done: Sequence[Fits]) -> ClaimTable:
    layers = len(weights_by_seed(role, done[0])[0])
    rows: list[list[TableCell]] = []
    for fits in done:
        by_layer = zip(*weights_by_seed(role, fits), strict=True)
        rows.append([fits.task.title, *(over_seeds(weights) for weights in by_layer)])
    title = f"{CONTEXTUAL[role]}: weight of each layer in the mix, with a t interval over the seeds"
    return ClaimTable(title, ["", "words", *(f"layer {number}" for number in range(1, layers))], rows)


def depth(weights: Sequence[float]) -> float:
    """Where on the way from the lowest layer (0) to the highest (1) a mix reads, on average."""
    return sum(layer * weight for layer, weight in enumerate(weights)) / (len(weights) - 1)


def layers_read(role: EncoderRole, done: Sequence[Fits]) -> list[Finding]:
    """Whether sentiment, a question of meaning, reads higher layers than each kind of tagging."""
    by_task = {fits.task.name: fits for fits in done}
    if "sentiment" not in by_task or len(weights_by_seed(role, done[0])[0]) < 2:
        return []
    findings = []
    high = [depth(weights) for weights in weights_by_seed(role, by_task["sentiment"])]
    for name, fits in by_task.items():
        if name != "sentiment":
            low = [depth(weights) for weights in weights_by_seed(role, fits)]
            differences = [above - below for above, below in zip(high, low, strict=True)]
            sentence = f"{CONTEXTUAL[role]}: sentiment reads higher layers than {fits.task.title} (share of the depth)"
            findings.append(found_over_seeds(sentence, differences))
    return findings


def weights_picture(role: EncoderRole, done: Sequence[Fits]) -> list[Picture]:
    groups = []
    for place, fits in enumerate(done):
        mixes = [cell.mix for cell in fits.of(f"{role}-frozen", fits.labels[-1])]
        groups += mixes_of(f"{CONTEXTUAL[role]}, {fits.task.title}", mixes, look(place)[0])
    drawn = mix_weights(groups)
    return [] if drawn is None else [Picture(f"layers-{role}", f"the layers of {CONTEXTUAL[role]} by task", drawn)]
