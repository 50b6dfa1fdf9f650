"""What each layer knows: linear probes of words and of texts, with a control task (Hewitt and Liang 2019).

A probe reads the label of a word off one layer's vector by logistic regression. A wide layer lets the probe learn words
by heart, so the same probe is fitted to a control task too, in which every word type has a random tag. Accuracy in the
task less that in the control task is the probe's selectivity: what the vectors know beyond what the probe memorises.

Letters: K layers, D width, N sentences or texts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headstart.batches.order import seed_of
from headstart.batches.rows import Text, text_row
from headstart.comparison.significance import interval
from headstart.errors import ConfigError, DataError
from headstart.inspection.layer_files import LayerFiles
from headstart.inspection.logistic import fit_logistic
from headstart.inspection.probe_results import LayerProbe, Probed
from headstart.inspection.stretches import Pool, every_word, mean_of_words
from headstart.metrics import ACCURACY, Counts
from headstart.pretrained import Pretrained
from headstart.progress import Progress
from headstart.tasks.classify import TextExample
from headstart.tasks.conll import TaggedSentence

WORDS, TEXTS = 20_000, 5_000
HELD_OUT = 0.1
"""Share of the training sentences that choose the probe's penalty and are not learned."""
Classes = NDArray[np.int64]
"""The number of the label of each word or text; -1: a label that training does not show."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A sentence with a label for each word, or a text with one label. types: what each label is a label of."""

    text: Text
    labels: tuple[str, ...]
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """What is probed: words, each by its own vector, or texts, by the mean of their words."""

    unit: str
    pool: Pool
    has_types: bool


OF_WORDS = Level("words", every_word, has_types=True)
OF_TEXTS = Level("texts", mean_of_words, has_types=False)


def probe(
    pretrained: Pretrained,
    train: Sequence[TaggedSentence],
    dev: Sequence[TaggedSentence],
    *,
    most: int | None = WORDS,
    seed: int = 0,
) -> Generator[Progress, None, Probed]:
    """Probe every layer for the tags of words.

    most: sentences are drawn until so many words are there, in train and in dev; None: all. seed: of the draws, of
    the control task's tags and of the bootstrap.
    """
    sides = [[labelled_words(sentence) for sentence in side] for side in (train, dev)]
    return (yield from probe_layers(pretrained, OF_WORDS, *sides, most=most, seed=seed))


def probe_texts(
    pretrained: Pretrained,
    train: Sequence[TextExample],
    dev: Sequence[TextExample],
    *,
    most: int | None = TEXTS,
    seed: int = 0,
) -> Generator[Progress, None, Probed]:
    """Probe the mean of every layer for the label of a text. most: so many are drawn from train and from dev."""
    sides = [[labelled_text(example) for example in side] for side in (train, dev)]
    return (yield from probe_layers(pretrained, OF_TEXTS, *sides, most=most, seed=seed))


def labelled_words(sentence: TaggedSentence) -> Labelled:
    if sentence.tags is None:
        raise DataError(f"{sentence.where}: this sentence has no tags, and a probe needs one for each word.")
    return Labelled(sentence.words, sentence.tags, sentence.words)


def labelled_text(example: TextExample) -> Labelled:
    if example.label is None:
        raise DataError(f"A probe needs labelled texts; this one has no label: '{example.text:.60}'.")
    return Labelled(example.text, (example.label,), ("",))


def probe_layers(
    pretrained: Pretrained, level: Level, train: list[Labelled], dev: list[Labelled], *, most: int | None, seed: int
) -> Generator[Progress, None, Probed]:
    train, dev = draw(train, most, seed, "train"), draw(dev, most, seed, "dev")
    K, D = pretrained.encoder.shape
    with LayerFiles(K, D) as train_layers, LayerFiles(K, D) as dev_layers:
        learned = yield from encode_layers(pretrained, level, train, train_layers)
        scored = yield from encode_layers(pretrained, level, dev, dev_layers)
        if not dev_layers.rows:
            raise DataError(f"A probe needs dev {level.unit} that fit into the encoder, and there are none.")
        train_part, dev_part = part_of(train, learned), part_of(dev, scored)
        tasks = [Targets.of_task(train_part, dev_part)]
        if level.has_types:
            tasks.append(Targets.of_control(train_part, dev_part, seed))
        held = held_out(train_part, seed)
        found: list[LayerProbe] = []
        for layer in range(K):
            X, X_dev = train_layers.layer(layer), dev_layers.layer(layer)
            counts: list[Counts] = []
            for number, task in enumerate(tasks):
                answers = fit_logistic(X, task.train, task.classes, held).predict(X_dev)
                counts.append(counts_by_sentence(answers == task.dev, dev, scored))
                yield Progress("probing", layer * len(tasks) + number + 1, K * len(tasks), "probes")
            found.append(layer_probe(layer, *counts, seed=seed))
    return Probed(
        encoder=pretrained.name or pretrained.kind,
        unit=level.unit,
        train=train_layers.rows,
        dev=dev_layers.rows,
        labels=tasks[0].classes,
        left_out=len(train) + len(dev) - len(train_part) - len(dev_part),
        baseline=lookup_accuracy(train_part, dev_part),
        layers=tuple(found),
    )


def layer_probe(layer: int, counts: Counts, control: Counts | None = None, *, seed: int) -> LayerProbe:
    """counts, control: (N, 2), of the task and of the control task."""
    right, scored = counts.astype(np.int64).T.tolist()
    return LayerProbe(
        layer=layer,
        accuracy=ACCURACY.of(counts),
        interval=interval(counts[None], ACCURACY, seed),
        control=None if control is None else ACCURACY.of(control),
        right=tuple(right),
        scored=tuple(scored),
    )


def draw(sentences: list[Labelled], most: int | None, seed: int, side: str) -> list[Labelled]:
    """Whole sentences at random until they have `most` labels, in the order of the file. None: all."""
    if most is None:
        return sentences
    if most < 1:
        raise ConfigError(f"A probe needs one word or text or more; got {most}.")
    order = np.random.default_rng(seed_of(seed, "probe", side)).permutation(len(sentences))
    before = np.cumsum([0, *(len(sentences[i].labels) for i in order)])[:-1]
    return [sentences[i] for i in sorted(order[before < most].tolist())]


def encode_layers(
    pretrained: Pretrained, level: Level, sentences: list[Labelled], layers: LayerFiles
) -> Generator[Progress, None, NDArray[np.bool_]]:
    """Put the vectors of all layers into files. Gives which sentences were encoded: (N,).

    A text that does not fit the encoder is cut in its middle; a sentence of words is left out, so that no word is
    without a vector.
    """
    encoder = pretrained.encoder
    rows = [text_row(encoder, pretrained.tokenizer, sentence.text, encoder.room) for sentence in sentences]
    fits = np.array([not (row.cut and level.has_types) for row in rows], dtype=bool)
    kept = [row for row, fit in zip(rows, fits, strict=True) if fit]
    done = 0
    for encoded, ready in pretrained.stream_rows(kept):
        for vectors in ready:
            layers.add(level.pool(vectors) if vectors.shape[1] else np.zeros((1, *encoder.shape), np.float32))
        done += encoded
        yield Progress("encoding", done, len(kept), "sentences")
    return fits


def part_of(sentences: list[Labelled], chosen: NDArray[np.bool_]) -> list[Labelled]:
    return [sentence for sentence, is_chosen in zip(sentences, chosen, strict=True) if is_chosen]


@dataclass(frozen=True, slots=True)
class Targets:
    """What the probes of one task learn and should answer."""

    train: Classes
    dev: Classes
    classes: int

    @classmethod
    def of_task(cls, train: list[Labelled], dev: list[Labelled]) -> Targets:
        number_of = {label: number for number, label in enumerate(label_counts(train))}
        if len(number_of) < 2:
            raise DataError(
                f"A probe needs at least two different labels; the training sentences drawn have {len(number_of)}. "
                f"Check the column of the labels, or ask for more words."
            )
        return cls(
            numbers(number_of.get(label, -1) for one in train for label in one.labels),
            numbers(number_of.get(label, -1) for one in dev for label in one.labels),
            len(number_of),
        )

    @classmethod
    def of_control(cls, train: list[Labelled], dev: list[Labelled], seed: int) -> Targets:
        """Each word type has a random tag, as frequent as the tags of the task are; the seed and the type decide it.

        Types are folded to lower case, so that an encoder without capitals can know them all.
        """
        counts = np.array(list(label_counts(train).values()))
        bounds = np.cumsum(counts) / counts.sum()

        def tag_of(word: str) -> int:
            uniform = np.random.default_rng(seed_of(seed, "control", word)).random()
            return int(np.searchsorted(bounds, uniform, side="right"))

        words = [[word.lower() for one in side for word in one.types] for side in (train, dev)]
        tags = {word: tag_of(word) for word in {*words[0], *words[1]}}
        return cls(numbers(tags[word] for word in words[0]), numbers(tags[word] for word in words[1]), len(counts))


def numbers(values: Iterable[int]) -> Classes:
    return np.fromiter(values, np.int64)


def label_counts(sentences: list[Labelled]) -> dict[str, int]:
    """How often each label occurs, sorted by label."""
    return dict(sorted(Counter(label for sentence in sentences for label in sentence.labels).items()))


def held_out(sentences: list[Labelled], seed: int) -> NDArray[np.bool_]:
    """Which words or texts choose the penalty: those of a tenth of the sentences, and of at least one."""
    if len(sentences) < 2:
        raise DataError(
            f"A probe needs two training sentences or more, one of them to choose its penalty; got {len(sentences)}."
        )
    chosen = np.zeros(len(sentences), dtype=bool)
    order = np.random.default_rng(seed_of(seed, "held out")).permutation(len(sentences))
    chosen[order[: max(1, round(HELD_OUT * len(sentences)))]] = True
    return np.repeat(chosen, [len(sentence.labels) for sentence in sentences])


def counts_by_sentence(right: NDArray[np.bool_], dev: list[Labelled], scored: NDArray[np.bool_]) -> Counts:
    """(N, 2): right answers and all, of each dev sentence. right: (words of the sentences that were scored,)."""
    lengths = np.array([len(sentence.labels) for sentence in dev]) * scored
    sentence_of = np.repeat(np.arange(len(dev)), lengths)
    return np.stack([np.bincount(sentence_of, right, len(dev)), lengths], axis=1).astype(np.float64)


def lookup_accuracy(train: list[Labelled], dev: list[Labelled]) -> float:
    """Of a table of each type's most frequent label; a type that training does not show gets the most frequent of all.

    Of labels that are equally frequent, the first in the alphabet.
    """
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in train:
        for word, label in zip(sentence.types, sentence.labels, strict=True):
            seen[word][label] += 1
    table = {word: most_frequent(counted) for word, counted in seen.items()}
    otherwise = most_frequent(Counter(label_counts(train)))
    pairs = [pair for sentence in dev for pair in zip(sentence.types, sentence.labels, strict=True)]
    return sum(table.get(word, otherwise) == label for word, label in pairs) / max(1, len(pairs))


def most_frequent(counted: Counter[str]) -> str:
    return min(counted, key=lambda label: (-counted[label], label))


PROBES: dict[str, Callable[..., Generator[Progress, None, Probed]]] = {"tag": probe, "classify": probe_texts}
"""By the name of the task that reads the labelled examples."""
