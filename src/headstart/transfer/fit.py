"""One fit: an encoder carried over to labelled examples, once, with one seed."""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headstart.batches.order import seed_of
from headstart.batches.rows import AnyText
from headstart.config import cache_home
from headstart.encoders.static import Static, StaticConfig
from headstart.errors import ConfigError, HeadstartError
from headstart.metrics import Counts
from headstart.model import Model
from headstart.progress import Notice, Progress
from headstart.report.results import Forgetting
from headstart.tasks.base import Task
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import WordCounter
from headstart.training.coordination import meet_at, told
from headstart.training.launch import Launch
from headstart.training.machine import available_cores
from headstart.training.ranks import Alone, Ranks
from headstart.training.seeding import freshly_initialised
from headstart.transfer.answering import ModelInput, answers_from, score_together
from headstart.transfer.config import TransferConfig
from headstart.transfer.features import FeatureTable, gather
from headstart.transfer.fitting import FitStep, fit
from headstart.transfer.forgetting import forgetting
from headstart.transfer.start import SCRATCH, Start
from headstart.transfer.task_model import TaskModel, build_model

SCRATCH_WIDTH = 100
SCRATCH_DEVIATION = 0.1


@dataclass(frozen=True, slots=True)
class Fitted:
    """One fit: the task model, and how it did on dev."""

    model: TaskModel[Any, Any]
    answers: list[Any]
    """To the dev examples; empty without dev, and in any process but the first."""
    counts: Counts
    """What the task's metric counts of each of them, (N, M)."""
    scores: dict[str, float]
    """The primary metric's first; empty where there are no answers."""
    steps: int
    best_step: int
    curve: list[tuple[int, float]]
    """(step, score on dev) of every evaluation on the way."""
    seconds: float
    collapsed: bool
    """Every dev example got the same answer."""
    mix: dict[str, dict[str, Any]]
    truncated: int
    parameters: int
    """Numbers that were trained."""

    @property
    def score(self) -> float:
        """The primary metric's."""
        return self.scores[self.model.task.metric.name]


def gather_features(
    start: Start, task: Task[Any, Any], examples: Sequence[Any], config: TransferConfig, cache: Path | None = None, *,
    ranks: Ranks | None = None,
) -> Generator[Progress, None, list[FeatureTable]]:  # fmt: skip
    """Each frozen encoder's features of all passages of these examples, computed at most once.

    ranks: processes that need them, too. One of each machine computes them with the threads of all; the others wait.
    """
    if not start.pretrained or config.how != "frozen":
        raise ConfigError(f"Features are those of a frozen encoder; got {start.name}, {config.how}.")
    ranks = ranks or Alone()
    launch, key = ranks.launch, f"features/{ranks.launch.machine}"
    if launch.local_rank:
        yield from told(ranks, key)
        return (yield from features_of(start, task, examples, config, cache))
    with all_threads(launch):
        tables = yield from features_of(start, task, examples, config, cache)
    ranks.publish(key, True)
    return tables


@contextmanager
def all_threads(launch: Launch) -> Iterator[None]:
    """torch with the threads of all processes of this machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(max(before, min(before * launch.local_world, available_cores())))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def features_of(
    start: Start, task: Task[Any, Any], examples: Sequence[Any], config: TransferConfig, cache: Path | None
) -> Generator[Progress, None, list[FeatureTable]]:
    reader = freshly_initialised(0, lambda: untrained(start, config, task, []))
    passages = [passage for example in examples for passage in task.passages(example, reader)]
    texts: list[AnyText] = [text for passage in passages for text in reader.given_to_encoders(passage)[0]]
    tables = []
    for pretrained in start.pretrained:
        table = yield from gather(
            pretrained,
            texts,
            longest=reader.longest,
            cache=cache or cache_home(),
            with_first=config.network.reads_first_position,
            every_piece=config.network.reads_every_piece,
            precision=config.precision,
        )
        tables.append(table)
    return tables


def transfer_once(
    start: Start,
    config: TransferConfig,
    task: Task[Any, Any],
    train: Sequence[Any],
    dev: Sequence[Any] | None,
    *,
    seed: int,
    features: Sequence[FeatureTable] | None = None,
    cache: Path | None = None,
    ranks: Ranks | None = None,
) -> Generator[Progress | FitStep, None, Fitted]:
    """Fit a model of the task. Without dev the last step is kept, and there are no scores.

    ranks: the processes that fit it together. Only the first one gets answers and scores.
    """
    ranks = ranks or Alone()
    if config.how == "frozen" and features is None:
        features = yield from gather_features(start, task, [*train, *(dev or ())], config, cache, ranks=ranks)
    began = time.monotonic()
    task_model = freshly_initialised(seed_of(seed, "task"), lambda: untrained(start, config, task, train))
    model = task_model.model.to("cuda" if torch.cuda.is_available() else "cpu")
    usable = features if config.how == "frozen" else None
    train_input, train_cut = task_model.prepare(train, labelled=True, features=usable)
    if usable is not None and config.mix.standardise:
        passages = [passage for own in train_input.passages for passage in own]
        texts = dict.fromkeys(text for passage in passages for text in task_model.given_to_encoders(passage)[0])
        for reader, table in zip(model.each_reader, usable, strict=True):
            reader.standardise(*table.moments([table.rows[text] for text in texts]))
    dev_input, dev_cut = None, list[bool]()
    if dev is not None:
        dev_input, dev_cut = task_model.prepare(dev, labelled=True, features=usable)
    how = "finetune" if config.how == SCRATCH else config.how
    yield from meet_at(ranks, f"fit/{seed}")
    ranks.share_(initial_state(model, config))  # processors may differ in the rounding of random and standard numbers
    result = yield from fit(model, task, how, train_input, dev_input, config.fitting, seed, ranks)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    task, answers = answers_on_dev(model, task, dev_input, ranks)
    judged = dev_input.examples if dev_input is not None and ranks.launch.is_first else []
    return Fitted(
        model=replace(task_model, task=task).frozen(),
        answers=answers,
        counts=task.all_counts(judged, answers),
        scores=task.scores(judged, answers) if judged else {},
        steps=result.steps,
        best_step=result.best_step,
        curve=result.curve,
        seconds=time.monotonic() - began,
        collapsed=task.collapsed(answers),
        mix=named_mixes(model, [one.name for one in start.pretrained]),
        truncated=sum(train_cut) + sum(dev_cut),
        parameters=trained,
    )


def initial_state(model: Model, config: TransferConfig) -> list[Tensor]:
    """What a fit begins with, in memory: the parameters that it may change, and how features are standardised."""
    parameters = model.own_parameters() if config.how == "frozen" else list(model.parameters())
    constants = [tensor for reader in model.each_reader for tensor in (reader.shift, reader.scale)]
    return [tensor.detach() for tensor in (*parameters, *constants)]


def answers_on_dev(
    model: Model, task: Task[Any, Any], dev: ModelInput | None, ranks: Ranks
) -> tuple[Task[Any, Any], list[Any]]:
    """The task, with what it chooses on dev, and the answers. Without dev, and in other processes, there are none."""
    scored = None if dev is None else score_together(model, task, dev, ranks=ranks)
    if dev is None or scored is None:
        return task, []
    answers = answers_from(model, task, dev, scored)
    tuned = task.tuned(dev.examples, answers)
    return (task, answers) if tuned == task else (tuned, answers_from(model, tuned, dev, scored))


def measure_forgetting(
    start: Start,
    fitted: Fitted,
    *,
    held_out: Sequence[str] | None = None,
    cache: Path | None = None,
    advice: str | None = "name some with --held-out",
) -> Generator[Progress | Notice, None, Forgetting | None]:
    """How much worse an encoder's own language model became; None where it was not trained on, or cannot be measured.

    advice: what the user can do where its text is gone, if anything.
    """
    task_model = fitted.model
    if not start.pretrained or task_model.config.how not in ("finetune", "gradual"):
        return None
    why = "it was pretrained elsewhere, and its held-out text did not come along"
    if start.run is not None:
        why = "; ".join(filter(None, ["its held-out text is gone", advice]))
        try:
            with closing(forgetting(start.run, task_model.encoder, held_out=held_out, cache=cache)) as measuring:
                found = yield from measuring
        except HeadstartError as error:
            found, why = None, error.problem  # its remedy is for pretraining, which is over
        if found is not None:
            return found
    yield Notice(f"What {start.name} forgot is not measured: {why.rstrip('.')}.")
    return None


def named_mixes(model: Model, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The learned layer weights by place; of several encoders, by place and name."""
    mixes = model.mix_weights()
    if len(mixes) == 1:
        return mixes[0]
    pairs = zip(names, mixes, strict=True)
    return {f"{place} of {name}": weights for name, mix in pairs for place, weights in mix.items()}


def untrained(start: Start, config: TransferConfig, task: Task[Any, Any], train: Sequence[Any]) -> TaskModel[Any, Any]:
    """Encoders, mixes and head before the first step. The start's own encoders are never written to."""
    if not start.pretrained:
        tokenizer = task_words(task, train)
        encoder = Static(StaticConfig(dim=SCRATCH_WIDTH), len(tokenizer))
        with torch.no_grad():
            encoder.vectors.normal_(0.0, SCRATCH_DEVIATION)
            # A word that training never showed should say nothing, rather than something random.
            encoder.vectors[tokenizer.vocabulary.unknown] = 0.0
        return TaskModel(task, (tokenizer,), build_model([encoder], task, config), config)
    frozen = config.how == "frozen"
    encoders = [one.encoder if frozen else copy.deepcopy(one.encoder) for one in start.pretrained]
    tokenizers = tuple([one.tokenizer for one in start.pretrained])
    return TaskModel(task, tokenizers, build_model(encoders, task, config), config)


def task_words(task: Task[Any, Any], train: Sequence[Any]) -> WordTokenizer:
    """Every word of the labelled texts."""
    counter = WordCounter(lowercase=task.ignores_case)
    for example in train:
        words = task.words(example)
        counter.add(Counter(word.lower() for word in words) if task.ignores_case else Counter(words))
    return WordTokenizer(counter.vocabulary(None, 1))
