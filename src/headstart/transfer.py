"""The second verb: what an encoder learned from text, carried over to a labelled task."""

from __future__ import annotations

import copy
import json
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.atomic import write_text
from headstart.batches.order import seed_of
from headstart.card import task_card
from headstart.classifier import Classifier, TransferConfig, encoder_of, new_model, text_examples
from headstart.config import Table, cache_home, overlay, pick, resolve
from headstart.encoders.memory import keep_freed_memory
from headstart.encoders.static import Static, StaticConfig
from headstart.errors import CheckpointError, ConfigError
from headstart.features import FeatureTable, gather
from headstart.forgetting import Forgetting, forgetting
from headstart.generations import freshly_initialised
from headstart.metrics import accuracy, macro_f1, mean
from headstart.pretrained import Pretrained, load
from headstart.report.plots import mix_weights
from headstart.tasks.examples import Examples, ExamplesConfig, check_dev, draw, hold_out, label_names, read_examples
from headstart.text.tokenise import Reading
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import WordCounter
from headstart.text.words import split_words
from headstart.training.events import Notice
from headstart.training.fitting import FitStep, Labelled, fit, probabilities_of
from headstart.training.run import RunDirectory

SCRATCH = "scratch"
SCRATCH_WIDTH = 100
SCRATCH_DEVIATION = 0.1
TASKS = ("sentiment",)
WAYS = ("frozen", "finetune", "gradual")
DEV_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Start:
    """Where a task starts from: nothing, or a pretrained encoder."""

    name: str
    kind: str
    path: Path | None
    pretrained: Pretrained | None


def open_start(source: str | Path) -> Start:
    """`scratch`, or the folder of a pretrained run."""
    if str(source) == SCRATCH:
        return Start(SCRATCH, SCRATCH, None, None)
    path = Path(source)
    if not path.is_dir():
        raise CheckpointError(f"{source}: is neither '{SCRATCH}' nor the folder of a pretrained run. Check the path.")
    pretrained = load(path)
    return Start(path.resolve().name, pretrained.kind, path, pretrained)


def settings_for(start: Start, how: str, given: Mapping[str, Any] | None = None) -> TransferConfig:
    """Defaults that suit the start and the way it is carried over, under what was asked for."""
    pick(dict.fromkeys(WAYS), how, "way to carry an encoder over")
    if start.pretrained is None:
        defaults: Table = {"how": SCRATCH, "mix": {"kind": "last"}, "fitting": {"encoder_rate": 3e-3}}
    elif how == "frozen":
        defaults = {"how": how}
    else:
        encoder: Any = start.pretrained.encoder
        # Wide encoders take small steps: 3.4e-5 at BERT base's width, 1.4e-4 at half of it.
        rate = min(1e-3, 20 / encoder.shape[1] ** 2)
        defaults = {
            "how": how,
            "mix": {"kind": "last"},
            "network": {"cell": "none", "pool": "mean", "dropout": 0.1},
            "fitting": {"encoder_rate": rate, "layer_decay": 0.4 if how == "gradual" else 1.0, "epochs": 4.0},
        }
    table = overlay(defaults, given or {})
    if start.pretrained is None:
        table["how"] = SCRATCH
    return resolve(TransferConfig, table)


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
) -> Generator[Reading, None, FeatureTable]:
    """A frozen encoder's features of these texts, computed at most once."""
    if start.pretrained is None or config.how != "frozen":
        raise ConfigError(f"Features are those of a frozen encoder; got {start.name}, {config.how}.")
    return (
        yield from gather(
            start.pretrained,
            texts,
            longest=longest_row(start.pretrained, config),
            cache=cache or cache_home(),
            with_first=config.network.pool == "first",
            precision=config.precision,
        )
    )


def longest_row(pretrained: Pretrained, config: TransferConfig) -> int:
    return min(config.longest, pretrained.room or config.longest)


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
) -> Generator[Reading | FitStep, None, Fitted]:
    """Fit a classifier for the labels `names`. Without dev the last step is kept, and there are no scores."""
    keep_freed_memory()
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

    def logits(numbers: Sequence[int]) -> torch.Tensor:
        return model.read(features.batch([rows[i] for i in numbers]).to(device))

    return Labelled(logits, [features.length(row) for row in rows], gold), int(features.cut[rows].sum())


@dataclass(frozen=True, slots=True)
class SeedDone:
    """One of the seeds is through."""

    seed: int
    fitted: Fitted
    left: int


@dataclass(frozen=True, slots=True)
class Transferred:
    """All seeds are through, and the best one is in the run directory."""

    out: Path
    results: Table


TransferEvent = Reading | FitStep | Notice | SeedDone | Transferred


def transfer(
    task: str = "sentiment",
    *,
    source: str | Path = SCRATCH,
    how: str = "frozen",
    train: str | Path,
    dev: str | Path | None = None,
    out: str | Path,
    labels: int | None = None,
    seeds: int = 3,
    examples: ExamplesConfig | None = None,
    settings: Mapping[str, Any] | None = None,
    held_out: Sequence[str] | None = None,
    cache: str | Path | None = None,
) -> Generator[TransferEvent, None, None]:
    """Carry `source` over to labelled examples, once per seed; the best seed's classifier is left in the folder `out`.

    `settings` is a table such as {"network": {"cell": "gru"}}. Without `dev` a tenth of the examples is held out.
    Fine-tuning is followed by a look at what the encoder forgot, on its own held-out text or on `held_out`.
    """
    pick(dict.fromkeys(TASKS), task, "task")
    if seeds < 1:
        raise ConfigError(f"--seeds is a count of one or more; got {seeds}.")
    start = open_start(source)
    config = settings_for(start, how, settings)
    data = read_task(train, dev, examples or ExamplesConfig())
    draws = [draw(data.train, labels, seed) for seed in range(seeds)]
    RunDirectory.create(Path(out))
    request = Request(start, config, data, draws, Path(out), held_out, Path(cache) if cache else cache_home())
    return run_transfer(request)


@dataclass(frozen=True, slots=True)
class TaskData:
    """The labelled examples of a task, read and checked."""

    train: Examples
    dev: Examples
    names: list[str]
    notices: list[str]


@dataclass(frozen=True, slots=True)
class Request:
    start: Start
    config: TransferConfig
    data: TaskData
    draws: list[Examples]
    out: Path
    held_out: Sequence[str] | None
    cache: Path


def read_task(train: str | Path, dev: str | Path | None, config: ExamplesConfig) -> TaskData:
    given = read_examples(train, config)
    names = label_names(given)
    if dev is None:
        part, held = hold_out(given, DEV_SHARE)
        said = f"No --dev was given: {len(held):,} of the {len(given):,} examples of {train} are held out as dev."
        return TaskData(part, held, names, [said, *check_dev(part, held, names)])
    dev_examples = read_examples(dev, config)
    return TaskData(given, dev_examples, names, check_dev(given, dev_examples, names))


def run_transfer(request: Request) -> Generator[TransferEvent, None, None]:
    run, data = RunDirectory(request.out), request.data
    try:
        for text in data.notices:
            yield Notice(text)
        features = None
        if request.config.how == "frozen":
            wanted = [text for part in (*request.draws, data.dev) for text in part.texts]
            features = yield from gather_features(request.start, wanted, request.config, request.cache)
        runs: list[Fitted] = []
        for seed, part in enumerate(request.draws):
            fitted = yield from transfer_once(
                request.start, request.config, part, data.dev, data.names, seed=seed, features=features
            )
            runs.append(fitted)
            yield SeedDone(seed, fitted, len(request.draws) - seed - 1)
        forgotten = yield from measure_forgetting(request, best_of(runs))
        results = results_of(request, runs, forgotten)
        best_of(runs).classifier.save(request.out, record_of(request, results))
        write_text(request.out / "results.json", json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        run.write_card(task_card(results))
        picture = mix_weights(as_comparison(results))
        if picture is not None:
            write_text(request.out / "mix.svg", picture)
    finally:
        run.remove_if_empty()
    yield Transferred(request.out, results)


def best_of(runs: list[Fitted]) -> Fitted:
    return max(runs, key=lambda fitted: fitted.scores["accuracy"])


def measure_forgetting(request: Request, fitted: Fitted) -> Generator[TransferEvent, None, Forgetting | None]:
    """The language model's held-out perplexity before and after, where its parameters were trained on."""
    start = request.start
    if start.path is None or request.config.how not in ("finetune", "gradual"):
        return None
    encoder = encoder_of(fitted.classifier.model)
    found = yield from forgetting(start.path, encoder, held_out=request.held_out, cache=request.cache)
    if found is None:
        yield Notice(f"What {start.name} forgot is not measured: its held-out text is gone. Name some with --held-out.")
    return found


def results_of(request: Request, runs: list[Fitted], forgotten: Forgetting | None) -> Table:
    scores = [fitted.scores["accuracy"] for fitted in runs]
    best = best_of(runs)
    return {
        "task": "sentiment",
        "source": request.start.name,
        "kind": request.start.kind,
        "how": request.config.how,
        "labels": len(request.draws[0]),
        "classes": request.data.names,
        "dev": len(request.data.dev),
        "accuracy": mean(scores),
        "spread": float(np.std(scores, ddof=1)) if len(scores) > 1 else None,
        "macro_f1": mean([fitted.scores["macro_f1"] for fitted in runs]),
        "best_seed": runs.index(best),
        "truncated": best.truncated,
        "parameters": best.parameters,
        "mix": best.mix,
        "forgetting": None if forgotten is None else {"before": forgotten.before, "after": forgotten.after},
        "runs": [
            {
                "seed": seed,
                **fitted.scores,
                "steps": fitted.steps,
                "best_step": fitted.best_step,
                "seconds": fitted.seconds,
                "collapsed": fitted.collapsed,
                "mix": fitted.mix,
            }
            for seed, fitted in enumerate(runs)
        ],
        "notices": request.data.notices,
    }


def as_comparison(results: Table) -> Table:
    """One row of a comparison, for the pictures that are made of those."""
    row = {"name": results["source"], "title": f"{results['source']}, {results['how']}"}
    cells = [{**run, "row": results["source"], "labels": results["labels"]} for run in results["runs"]]
    return {"rows": [row], "cells": cells}


def record_of(request: Request, results: Table) -> Table:
    """What config.toml says of the run: where it came from and what it reached."""
    return {
        "source": request.start.name,
        "labels": results["labels"],
        "seed": results["best_seed"],
        "accuracy": results["runs"][results["best_seed"]]["accuracy"],
        "headstart": version("headstart"),
        "torch": torch.__version__,
    }
