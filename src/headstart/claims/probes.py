"""Claim 4: the lower layers of an encoder know more about parts of speech, the upper ones more about meaning."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from headstart.atomic import write_text
from headstart.claims.base import Claim, ClaimEvent, Part, PartBegan, Setting, key_of
from headstart.claims.data import TaskFiles
from headstart.claims.encoders import Encoder, EncoderRole
from headstart.claims.layouts import Role
from headstart.claims.results import ClaimTable, Finding, Measured, Outcome, Picture, TableCell, found
from headstart.claims.senses import MINUTES as SENSES_MINUTES
from headstart.claims.senses import senses_of
from headstart.comparison.significance import paired, paired_interval
from headstart.inspection.probe import PROBES
from headstart.inspection.probe_results import LayerProbe, Probed
from headstart.metrics import ACCURACY, Counts
from headstart.report.lines import Line, Point, line_plot
from headstart.report.plots import BASELINE
from headstart.tasks import task_class
from headstart.weights.sources import open_source

TASKS: tuple[Role, ...] = ("pos", "ner", "sentiment")
CLAIMED: dict[Role, str] = {"pos": "lower", "sentiment": "upper"}
"""Which half of the layers is said to know more of a task; of entities nothing is said."""
WORDS_PER_TEXT = 4
"""A probe learns a quarter as many texts as words: texts are longer than one word and cost more to encode."""
MINUTES: dict[EncoderRole, float] = {"static": 0.3, "elmo": 1.2, "bert": 1.2, "published": 2.5}
"""Of the probes of all layers of an encoder for the tags of 20,000 words, with the control task."""
FULL_WORDS = 20_000
NOTICE = (
    "A probe is a logistic regression on the vectors of one layer, of a text on the mean of its words. Control is its "
    "accuracy where each word type has a random tag (Hewitt and Liang 2019); selectivity is the accuracy less that. "
    "The lower and the upper half are those of the layers above layer 0, without the middle one where their number is "
    "odd. Intervals come from a bootstrap over dev sentences."
)
PROBED = TypeAdapter(Probed)


@dataclass(frozen=True, slots=True)
class TaskProbes:
    """The probes of one task: one for each encoder."""

    task: TaskFiles
    encoders: list[Probed]


class Probes(Claim):
    number = 4
    name = "probes"
    title = "Lower layers know more about parts of speech, upper layers more about meaning"
    source = "Peters et al. 2018, section 5.3 (ELMo), and Tenney et al. 2019 (BERT)"
    any_of = ("pos", "sentiment")
    encoders = ("elmo",)

    def plan(self, setting: Setting) -> list[Part]:
        share = setting.scale.probe_words / FULL_WORDS
        parts = [
            Part(probe_title(task, encoder), MINUTES[role] * share)
            for task in setting.tasks(TASKS)
            for role, encoder in setting.encoders.items()
        ]
        return [*parts, *(Part(senses_title(encoder), SENSES_MINUTES) for encoder in contextual(setting))]

    def run(self, setting: Setting) -> Generator[ClaimEvent, None, Outcome]:
        done: list[TaskProbes] = []
        for task in setting.tasks(TASKS):
            probed = []
            for encoder in setting.encoders.values():
                yield PartBegan(probe_title(task, encoder))
                probed.append((yield from probe_once(setting, task, encoder)))
            done.append(TaskProbes(task, probed))
        findings = [finding for probes in done for finding in findings_of(probes)]
        for encoder in contextual(setting):
            yield PartBegan(senses_title(encoder))
            senses = yield from senses_of(setting, encoder)
            sentence = (
                f"{senses.encoder}: the senses of a word, in the upper half of its layers rather than in the lower"
            )
            findings += halves_compared([layer.counts for layer in senses.layers], "upper", sentence)
        return Outcome(
            tables=[table_of(probes) for probes in done],
            findings=findings,
            pictures=[picture_of(probes, self.name) for probes in done],
            notices=[NOTICE],
        )


def contextual(setting: Setting) -> list[Encoder]:
    """Those with layers to compare."""
    return [encoder for role, encoder in setting.encoders.items() if role != "static"]


def probe_title(task: TaskFiles, encoder: Encoder) -> str:
    return f"{task.title}: probes of {encoder.name}"


def senses_title(encoder: Encoder) -> str:
    return f"senses: {encoder.name}"


def probe_once(setting: Setting, task: TaskFiles, encoder: Encoder) -> Generator[ClaimEvent, None, Probed]:
    """The probes of one encoder; those that were fitted before are read."""
    kind = task_class(task.task)
    most = setting.scale.probe_words // (1 if kind.scores_words else WORDS_PER_TEXT)
    key = key_of(task=task.name, data=setting.data.key, encoder=encoder.fingerprint, most=most)
    path = setting.runs / "probes" / f"{task.name}-{encoder.name}-{key}.json"
    before = read_probed(path)
    if before is not None:
        return before
    pretrained = yield from open_source(encoder.path, cache=setting.cache)
    sides = [kind.read(file, kind.Input()) for file in (task.train, task.dev)]
    probed = yield from PROBES[kind.name](pretrained, *sides, most=most)
    write_text(path, PROBED.dump_json(probed).decode())
    return probed


def read_probed(path: Path) -> Probed | None:
    """None if there is none, or one of another version."""
    try:
        return PROBED.validate_json(path.read_text(encoding="utf-8")) if path.is_file() else None
    except ValidationError:
        return None


def findings_of(probes: TaskProbes) -> list[Finding]:
    claimed = CLAIMED.get(probes.task.name)
    if claimed is None:
        return []
    other = "upper" if claimed == "lower" else "lower"
    return [
        finding
        for probed in probes.encoders
        for finding in halves_compared(
            [layer.counts for layer in probed.layers],
            claimed,
            f"{probed.encoder}: {probes.task.title}, in the {claimed} half of its layers rather than in the {other}",
        )
    ]


def halves_compared(layers: Sequence[Counts], claimed: str, sentence: str) -> list[Finding]:
    """How much more the claimed half of the layers above layer 0 has right; nothing where there are no two halves.

    layers: (N, 2) each.
    """
    size = (len(layers) - 1) // 2
    if not size:
        return []
    lower, upper = (np.sum(half, axis=0)[None] for half in (layers[1 : 1 + size], layers[-size:]))
    less, more = (upper, lower) if claimed == "lower" else (lower, upper)
    difference, p = paired(less, more, ACCURACY)
    return [found(sentence, Measured(difference, paired_interval(less, more, ACCURACY), "points"), p=p)]


def table_of(probes: TaskProbes) -> ClaimTable:
    first = probes.encoders[0]
    with_control = first.layers[0].control is not None
    title = (
        f"{probes.task.title}: accuracy of probes in %, {first.train:,} {first.unit} learned and {first.dev:,} scored; "
        f"baseline {100 * first.baseline:.1f}"
    )
    columns = ["", "layer", "accuracy", *(["control", "selectivity"] if with_control else [])]
    rows = [layer_row(probed.encoder, layer) for probed in probes.encoders for layer in probed.layers]
    return ClaimTable(title, columns, rows)


def layer_row(encoder: str, layer: LayerProbe) -> list[TableCell]:
    row: list[TableCell] = [encoder, str(layer.layer), Measured(layer.accuracy, layer.interval, "%")]
    if layer.control is not None and layer.selectivity is not None:
        row += [Measured(layer.control, unit="%"), Measured(layer.selectivity, unit="points")]
    return row


def picture_of(probes: TaskProbes, claim: str) -> Picture:
    """Accuracy over layers: a line per encoder, flat for one with a single layer, and the baseline."""
    top = max(layer.layer for probed in probes.encoders for layer in probed.layers)
    lines = []
    for probed in probes.encoders:
        points = [
            Point(one.layer, 100 * one.accuracy, *(100 * bound for bound in one.interval)) for one in probed.layers
        ]
        lines.append(Line(probed.encoder, across(points, top), dashed=len(points) == 1))
    height = 100 * probes.encoders[0].baseline
    lines.append(Line("baseline", across([Point(0, height)], top), BASELINE, dashed=True))
    title = f"{probes.task.title}: accuracy of probes by layer"
    name = f"{claim}-{probes.task.name}"
    return Picture(name, title, line_plot(lines, "layer", "accuracy of the probe on dev, %", name))


def across(points: list[Point], top: float) -> list[Point]:
    """A single point as a flat line from layer 0 to the top."""
    only = points[0]
    return points if len(points) > 1 else [Point(0, only.y), Point(top, only.y)]
