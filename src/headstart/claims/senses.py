"""Claim 9: contextual vectors tell the senses of a word apart, and word vectors cannot."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from headstart.claims.base import Claim, ClaimEvent, Part, PartBegan, Setting
from headstart.claims.encoders import Encoder, EncoderRole
from headstart.claims.results import ClaimTable, Finding, Measured, Outcome, Picture, TableCell, found
from headstart.comparison.significance import paired, paired_interval
from headstart.inspection.senses import Senses, compare_senses, own_words
from headstart.metrics import ACCURACY
from headstart.report.lines import Line, Point, line_plot
from headstart.report.plots import BASELINE
from headstart.weights.sources import open_source

MINUTES = 0.1
"""Of one encoder, for the sentences of the package."""
NEAR_ZERO = 0.001
"""Cosines of word vectors are equal but for rounding."""
NOTICE = (
    "Cosines are taken after subtracting each layer's mean vector over all words of all sentences, and never between "
    "two occurrences with the same words on both sides. Intervals come from a bootstrap over sentences; the words are "
    "always these."
)


class SensesOfWords(Claim):
    number = 9
    name = "senses"
    title = "Contextual vectors tell the senses of a word apart; word vectors cannot"
    source = "Peters et al. 2018, section 5.3 (ELMo)"
    uses = ()
    encoders = ("static", "elmo")

    def plan(self, setting: Setting) -> list[Part]:
        return [Part(encoder.name, MINUTES) for encoder in setting.encoders.values()]

    def run(self, setting: Setting) -> Generator[ClaimEvent, None, Outcome]:
        done: dict[EncoderRole, Senses] = {}
        for role, encoder in setting.encoders.items():
            yield PartBegan(encoder.name)
            done[role] = yield from senses_of(setting, encoder)
        every = list(done.values())
        return Outcome(
            tables=[by_layer(every), by_word(every)],
            findings=[finding for senses in every for finding in findings_of(senses, done["static"])],
            pictures=[picture_of(every, self.name)],
            notices=[NOTICE],
        )


def senses_of(setting: Setting, encoder: Encoder) -> Generator[ClaimEvent, None, Senses]:
    pretrained = yield from open_source(encoder.path, cache=setting.cache)
    return (yield from compare_senses(pretrained))


def findings_of(senses: Senses, static: Senses) -> list[Finding]:
    """Of word vectors, that senses make no difference; of others, that they do in the top layer."""
    top = senses.layers[-1]
    difference = Measured(top.difference, top.interval)
    if senses is static:
        return [
            found(f"{senses.encoder}: cosines within a sense as between senses", difference, "near", margin=NEAR_ZERO)
        ]
    a, b = static.layers[-1].counts[None], top.counts[None]
    gained, p = paired(a, b, ACCURACY)
    told = Measured(gained, paired_interval(a, b, ACCURACY), "points")
    return [
        found(f"{senses.encoder}, top layer: cosines within a sense above those between senses", difference),
        found(f"{senses.encoder}, top layer: senses told by the nearest centroid, above {static.encoder}", told, p=p),
    ]


def by_layer(done: Sequence[Senses]) -> ClaimTable:
    first = done[0]
    rows: list[list[TableCell]] = [
        [
            senses.encoder,
            str(layer.layer),
            Measured(layer.within),
            Measured(layer.between),
            Measured(layer.difference, layer.interval),
            Measured(layer.accuracy, layer.accuracy_interval, "%"),
        ]
        for senses in done
        for layer in senses.layers
    ]
    title = (
        f"Mean cosine of two occurrences of a word, and senses told by the nearest centroid in %: {first.sentences} "
        f"sentences, chance {100 * first.chance:.1f}"
    )
    return ClaimTable(title, ["", "layer", "within a sense", "between senses", "difference", "told rightly"], rows)


def by_word(done: Sequence[Senses]) -> ClaimTable:
    tops = [senses.layers[-1].words for senses in done]
    rows: list[list[TableCell]] = []
    for number, word in enumerate(own_words()):
        cells: list[TableCell] = [Measured(words[number].accuracy, unit="%") for words in tops]
        rows.append([f"{word.word} ({', '.join(word.senses)})", *cells])
    return ClaimTable("The same by word, in the top layer", ["", *(senses.encoder for senses in done)], rows)


def picture_of(done: Sequence[Senses], claim: str) -> Picture:
    """Accuracy over layers: a line per encoder, and chance."""
    top = max(layer.layer for senses in done for layer in senses.layers)
    lines = []
    for senses in done:
        if len(senses.layers) > 1:  # the only layer of word vectors is at chance by construction
            points = [
                Point(layer.layer, 100 * layer.accuracy, *(100 * bound for bound in layer.accuracy_interval))
                for layer in senses.layers
            ]
            lines.append(Line(senses.encoder, points))
    height = 100 * done[0].chance
    lines.append(Line("word vectors, chance", [Point(0, height), Point(top, height)], BASELINE, dashed=True))
    title = "Senses told by the nearest centroid, by layer"
    return Picture(claim, title, line_plot(lines, "layer", "senses told rightly, %", claim))
