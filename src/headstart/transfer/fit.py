"""One fit: an encoder carried over to labelled examples, once, with one seed."""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.batches.order import seed_of
from headstart.config import cache_home
from headstart.encoders.representations import Representations
from headstart.encoders.static import Static, StaticConfig
from headstart.errors import ConfigError, HeadstartError
from headstart.metrics import accuracy, macro_f1
from headstart.pretraining.generations import freshly_initialised
from headstart.progress import Notice, Progress
from headstart.tasks.examples import Examples
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import WordCounter
from headstart.text.words import split_words
from headstart.transfer.features import FeatureTable, gather
from headstart.transfer.fitting import FitStep, Labelled, fit, probabilities_of
from headstart.transfer.forgetting import Forgetting, forgetting
from headstart.transfer.start import SCRATCH, Start
from headstart.transfer.task_model import Classifier, TransferConfig, encoder_of, longest_row, new_model, text_examples

SCRATCH_WIDTH = 100
SCRATCH_DEVIATION = 0.1


@dataclass(frozen=True, slots=True)
class Fitted:
    """One fit: the classifier, and how it did on dev."""

    classifier: Classifier
    probabilities: NDArray[np.float32]  # (dev examples, labels)
    scores: dict[str, float]
    steps: int
    best_step: int
    seconds: float
    collapsed: bool
    """Every dev example got the same label."""
    mix: dict[str, dict[str, Any]]
    truncated: int
    parameters: int
    """Numbers that were trained."""


def gather_features(
    start: Start, texts: Sequence[str], config: TransferConfig, cache: Path | None = None
) -> Generator[Progress, None, FeatureTable]:
    """A frozen encoder's features of these texts, computed at most once."""
    if start.pretrained is None or config.how != "frozen":
        raise ConfigError(f"Features are those of a frozen encoder; got {start.name}, {config.how}.")
    return (
        yield from gather(
            start.pretrained,
            texts,
            longest=longest_row(start.pretrained.encoder, config),
            cache=cache or cache_home(),
            with_first=config.network.pool == "first",
            precision=config.precision,
        )
    )


def transfer_once(
    start: Start,
    config: TransferConfig,
    train: Examples,
    dev: Examples | None,
    names: list[str],
    *,
    seed: int,
    features: FeatureTable | None = None,
    cache: Path | None = None,
) -> Generator[Progress | FitStep, None, Fitted]:
    """Fit a classifier for the labels `names`. Without dev the last step is kept, and there are no scores."""
    texts = train.texts + (dev.texts if dev else [])
    if config.how == "frozen" and features is None:
        features = yield from gather_features(start, texts, config, cache)
    began = time.monotonic()
    classifier = freshly_initialised(seed_of(seed, "task"), lambda: untrained(start, config, train, names))
    model = classifier.model.to("cuda" if torch.cuda.is_available() else "cpu")
    index = {name: number for number, name in enumerate(names)}
    usable = features if config.how == "frozen" else None
    if usable is not None and config.mix.standardise:
        model.standardise(*usable.moments([usable.rows[text] for text in train.texts]))
    fit_set, cut = labelled(classifier, train, index, usable)
    dev_set, dev_cut = (None, 0) if dev is None else labelled(classifier, dev, index, usable)
    how = "finetune" if config.how == SCRATCH else config.how
    result = yield from fit(model, how, fit_set, dev_set, config.fitting, seed)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    model.train_only("frozen")
    found = np.empty((0, len(names)), np.float32) if dev_set is None else probabilities_of(model, dev_set)
    predicted = found.argmax(1) if len(found) else np.empty(0, np.int64)
    return Fitted(
        classifier=Classifier(classifier.kind, classifier.tokenizer, model, names, config, trained=True),
        probabilities=found,
        scores={} if dev_set is None else task_scores(dev_set.gold, predicted, len(names)),
        steps=result.steps,
        best_step=result.best_step,
        seconds=time.monotonic() - began,
        collapsed=len(predicted) > 1 and len(np.unique(predicted)) == 1,
        mix=model.mix_weights(),
        truncated=cut + dev_cut,
        parameters=trained,
    )


def measure_forgetting(
    start: Start, fitted: Fitted, *, held_out: Sequence[str] | None = None, cache: Path | None = None
) -> Generator[Progress | Notice, None, Forgetting | None]:
    """What an encoder's own language model lost; None where nothing was trained on, or it cannot be measured."""
    classifier = fitted.classifier
    if start.pretrained is None or classifier.config.how not in ("finetune", "gradual"):
        return None
    why = "it was pretrained elsewhere, and its held-out text did not come along"
    if start.run is not None:
        why = "its held-out text is gone; name some with --held-out"
        try:
            with closing(
                forgetting(start.run, encoder_of(classifier.model), held_out=held_out, cache=cache)
            ) as measuring:
                found = yield from measuring
        except HeadstartError as error:
            found, why = None, str(error)
        if found is not None:
            return found
    yield Notice(f"What {start.name} forgot is not measured: {why.rstrip('.')}.")
    return None


def task_scores(gold: NDArray[np.int64], predicted: NDArray[np.int64], classes: int) -> dict[str, float]:
    return {"accuracy": accuracy(gold, predicted), "macro_f1": macro_f1(gold, predicted, range(classes))}


def untrained(start: Start, config: TransferConfig, train: Examples, names: list[str]) -> Classifier:
    """Encoder, mix and head before the first step. The start's own encoder is never written to."""
    if start.pretrained is None:
        tokenizer = task_words(train)
        encoder: Any = Static(StaticConfig(dim=SCRATCH_WIDTH), len(tokenizer))
        with torch.no_grad():
            encoder.vectors.normal_(0.0, SCRATCH_DEVIATION)
            # A word never seen says nothing, rather than something random.
            encoder.vectors[tokenizer.vocabulary.unknown] = 0.0
        model = new_model(encoder, len(names), config)
        return Classifier("static", tokenizer, model, names, config)
    pretrained = start.pretrained
    encoder = pretrained.encoder if config.how == "frozen" else copy.deepcopy(pretrained.encoder)
    model = new_model(encoder, len(names), config)
    return Classifier(start.kind, pretrained.tokenizer, model, names, config)


def task_words(train: Examples) -> WordTokenizer:
    """Every word of the labelled texts, without capitals."""
    counter = WordCounter(lowercase=True)
    for text in train.texts:
        counter.add(Counter(word.lower() for word in split_words(text)))
    return WordTokenizer(counter.vocabulary(None, 1))


def labelled(
    classifier: Classifier, examples: Examples, index: Mapping[str, int], features: FeatureTable | None
) -> tuple[Labelled, int]:
    """Examples as the model reads them, through its encoder or from the features computed before; and how many are cut.

    The features stand in for the encoder, which then does no work at all.
    """
    model = classifier.model
    gold = np.array([index[label] for label in examples.labels], dtype=np.int64)
    if features is None:
        read = [classifier.row(text) for text in examples.texts]
        return text_examples(model, read, gold), sum(row.cut for row in read)
    rows = [features.rows[text] for text in examples.texts]
    device = next(model.parameters()).device

    lengths = [features.length(row) for row in rows]
    means = features.means(rows).to(device) if model.reads_means() else None

    def logits(numbers: Sequence[int]) -> torch.Tensor:
        if means is not None:
            return model.read(Representations(means.layers[:, numbers], means.mask[numbers]))
        return model.read(features.batch([rows[i] for i in numbers]).to(device))

    return Labelled(logits, lengths, gold), int(features.cut[rows].sum())
