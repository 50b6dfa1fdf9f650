"""Claim 7: more unlabelled text gives better encoders, with the same number of steps."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from headstart.atomic import write_text
from headstart.claims.base import Claim, ClaimEvent, Part, PartBegan, Setting
from headstart.claims.costs import fit_minutes, pretraining_minutes
from headstart.claims.encoders import Encoder
from headstart.claims.fits import FitRow, Fits, fits_of, part_title
from headstart.claims.perplexity import NOTICE, HeldOut, measure_run
from headstart.claims.pretrainings import ONE_PER_LINE, Pretraining, pretrained_once
from headstart.claims.results import ClaimTable, Finding, Outcome, Picture, TableCell, found, point
from headstart.report.lines import Line, line_plot

ELMO_SIZE = "tiny"
KINDS = {"static": "word vectors", "elmo": "ELMo"}
SHAPES = {"static": (1, 100), "elmo": (3, 256)}
STEP_WORDS = 10_000
PASSES = 3
"""Over all of the text, for word vectors; parts of it are read as many times as that many words take."""
EQUAL = (
    "Every encoder of a kind took the same number of steps of the same size, so that a part of the text was read more "
    "often than the whole. All ELMos have the vocabulary of the whole text, and each starts from the word vectors of "
    "its own part."
)


class MoreText(Claim):
    number = 7
    name = "more-text"
    title = "More unlabelled text gives better encoders"
    source = "Devlin et al. 2019 (BERT) and Liu et al. 2019 (RoBERTa), among many"
    needs = ("text",)

    def plan(self, setting: Setting) -> list[Part]:
        scale = setting.scale
        steps = {"static": static_steps(setting), "elmo": scale.steps}
        parts = [
            Part(pretraining_title(kind, cut), pretraining_minutes(kind, steps[kind]))
            for cut in scale.cuts
            for kind in KINDS
        ]
        for task in setting.tasks(["sentiment"]):
            for kind in KINDS:
                minutes = fit_minutes(scale.fits, scale.seeds, task, "frozen", [(kind, SHAPES[kind])])
                parts += [Part(part_title(task, row_of(kind, cut)), minutes) for cut in scale.cuts]
        return parts

    def run(self, setting: Setting) -> Generator[ClaimEvent, None, Outcome]:
        cuts = setting.scale.cuts
        encoders = yield from pretrained_on(setting)
        measured: dict[int, HeldOut] = {}
        for cut in cuts:
            measured[cut] = yield from measure_run(encoders["elmo", cut].folder, setting.text.valid, setting.cache)
        done: list[Fits] = []
        for task in setting.tasks(["sentiment"]):
            rows = [row_of(kind, cut, encoders[kind, cut]) for kind in KINDS for cut in cuts]
            done.append((yield from fits_of(setting, task, rows)))
        return Outcome(
            tables=[text_table(measured, done)],
            findings=[*perplexity_findings(measured), *(one for fits in done for one in transfer_findings(fits, cuts))],
            pictures=[perplexity_picture(measured), *(transfer_picture(fits, cuts) for fits in done)],
            notices=[EQUAL, NOTICE, *(sentence for fits in done for sentence in fits.collapsed())],
        )


def static_steps(setting: Setting) -> int:
    return max(1, PASSES * setting.scale.text_words // STEP_WORDS)


def part_name(cut: int) -> str:
    return "all of the text" if cut == 1 else f"1/{cut} of the text"


def pretraining_title(kind: str, cut: int) -> str:
    return f"pretraining: {KINDS[kind]} on {part_name(cut)}"


def row_of(kind: str, cut: int, encoder: Encoder | None = None) -> FitRow:
    return FitRow(f"{kind}-{cut}", f"{KINDS[kind]} of {part_name(cut)}", () if encoder is None else (encoder,))


def pretrained_on(setting: Setting) -> Generator[ClaimEvent, None, dict[tuple[str, int], Encoder]]:
    """(kind, cut) -> its encoder; all of the text first, as its words are the vocabulary of every ELMo."""
    encoders: dict[tuple[str, int], Encoder] = {}
    for cut in setting.scale.cuts:
        train, valid = text_cut(setting, cut), setting.text.valid
        yield PartBegan(pretraining_title("static", cut))
        static = Pretraining(
            name=f"static-text-{cut}",
            kind="skipgram",
            text=train,
            valid=valid,
            settings={**ONE_PER_LINE, "objective.step_words": STEP_WORDS, "tokenizer.min_count": 2},
            steps=static_steps(setting),
        )
        encoders["static", cut] = yield from pretrained_once(setting, static)
        yield PartBegan(pretraining_title("elmo", cut))
        elmo = Pretraining(
            name=f"elmo-text-{cut}",
            kind="elmo",
            text=train,
            valid=valid,
            size=ELMO_SIZE,
            settings=ONE_PER_LINE,
            steps=setting.scale.steps,
            encoders={"vectors": encoders["static", cut]},
            words=encoders.get(("elmo", 1)),
        )
        encoders["elmo", cut] = yield from pretrained_once(setting, elmo)
    return encoders


def text_cut(setting: Setting, cut: int) -> Path:
    """A file with every so-many-th document; each smaller cut is a part of the larger ones."""
    whole = setting.text.train
    if cut == 1:
        return whole
    path = whole.with_name(f"{whole.stem}-{cut}.txt")
    if not path.is_file():
        lines = whole.read_text(encoding="utf-8").splitlines()
        write_text(path, "\n".join(lines[::cut]) + "\n")
    return path


def text_table(measured: Mapping[int, HeldOut], done: Sequence[Fits]) -> ClaimTable:
    rows: list[list[TableCell]] = []
    for cut in sorted(measured, reverse=True):
        scores = [fits.score(f"{kind}-{cut}", fits.labels[-1]) for fits in done for kind in KINDS]
        rows.append([part_name(cut), measured[cut].perplexity, *scores])
    of_tasks = [f"{title}: {fits.metric}, {fits.labels[-1]:,} labelled" for fits in done for title in KINDS.values()]
    title = "Held-out perplexity of ELMo, and what a task makes of the frozen encoders"
    return ClaimTable(title, ["", "perplexity", *of_tasks], rows)


def compared_cuts(cuts: Sequence[int]) -> list[int]:
    """All of the text is compared with the smallest part and with the largest."""
    return list(dict.fromkeys((cuts[-1], cuts[1]))) if len(cuts) > 1 else []


def perplexity_findings(measured: Mapping[int, HeldOut]) -> list[Finding]:
    findings = []
    for cut in compared_cuts(sorted(measured)):
        difference, p = measured[1].more_than(measured[cut])
        findings.append(found(f"held-out perplexity of ELMo: all of the text below 1/{cut}", difference, "below", p=p))
    return findings


def transfer_findings(fits: Fits, cuts: Sequence[int]) -> list[Finding]:
    findings = []
    labels = fits.labels[-1]
    for kind, title in KINDS.items():
        for cut in compared_cuts(cuts):
            difference, p = fits.difference(f"{kind}-{cut}", f"{kind}-1", labels)
            sentence = f"{fits.task.title}, {labels:,} labelled: {title} of all of the text above {title} of 1/{cut}"
            findings.append(found(sentence, difference, p=p))
    return findings


def perplexity_picture(measured: Mapping[int, HeldOut]) -> Picture:
    points = [point(1 / cut, held_out.perplexity) for cut, held_out in measured.items()]
    drawn = line_plot([Line("ELMo", points)], "share of the text", "held-out perplexity", "text", log_x=True)
    return Picture("more-text-perplexity", "held-out perplexity by the share of the text", drawn)


def transfer_picture(fits: Fits, cuts: Sequence[int]) -> Picture:
    labels = fits.labels[-1]
    lines = [
        Line(title, [point(1 / cut, fits.score(f"{kind}-{cut}", labels)) for cut in cuts])
        for kind, title in KINDS.items()
    ]
    y_title = f"{fits.metric}, {labels:,} labelled"
    drawn = line_plot(lines, "share of the text", y_title, "text-transfer", log_x=True)
    return Picture(f"more-text-{fits.task.name}", f"{fits.task.title} by the share of the text", drawn)
