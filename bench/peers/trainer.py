"""A task as transformers' Trainer learns it, the way its documentation shows: an AutoModel, padding by batch, defaults.

Rows hold what the model takes and nothing else. The model is our export, opened with a new head.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch.utils.data import DataLoader, Sampler
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    EvalPrediction,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

from headstart.tasks.base import Passage, Task
from headstart.tasks.classify import TextExample
from headstart.tasks.conll import TaggedSentence
from headstart.tasks.pair_reading import PairExample
from headstart.tasks.spans import OUTSIDE
from headstart.tasks.tag import Tag, Tags
from headstart.transfer.fitting import epoch_batches

ExampleT = TypeVar("ExampleT")
Row = dict[str, Any]
"""One example as the Trainer reads it."""
NO_LABEL = -100
"""What the loss leaves out: special tokens, padding, and all pieces of a word but the first."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What both sides share."""

    epochs: int
    batch: int
    rate: float
    warmup: float | None = None
    weight_decay: float | None = None
    """None: each side's own default. The Trainer has neither; ours warms up for a tenth of the steps, and decays."""
    head_rate: float | None = None
    """Of our new head; None: our own default. The Trainer has one rate for everything."""


@dataclass(frozen=True, slots=True)
class Outcome:
    score: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Run:
    """A model trained once and scored once on dev, after its last step. Seconds: with tokenising, without reading."""

    scores: dict[str, float]
    training: float
    evaluation: float

    @property
    def seconds(self) -> float:
        return self.training + self.evaluation


class StepClock(TrainerCallback):
    """Seconds from the first step's beginning to the last one's end."""

    seconds = 0.0
    began = 0.0

    def on_train_begin(self, *state: object, **more: object) -> None:
        self.began = time.perf_counter()

    def on_step_end(self, *state: object, **more: object) -> None:
        self.seconds = time.perf_counter() - self.began


class OurOrder(Sampler[list[int]]):
    """The batches of `headstart.transfer.fitting.fit`, epoch by epoch."""

    def __init__(self, lengths: Sequence[int], batch: int, seed: int) -> None:
        self.lengths, self.batch, self.seed = lengths, batch, seed
        self.epoch = 0

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.batch)

    def __iter__(self) -> Iterator[list[int]]:
        yield from epoch_batches(self.lengths, self.batch, self.epoch, self.seed)
        self.epoch += 1


class OurOrderTrainer(Trainer):
    """A Trainer with our batches instead of random ones, which shows what they alone are worth."""

    def get_train_dataloader(self) -> DataLoader[Any]:
        lengths = [len(row["input_ids"]) for row in self.train_dataset]
        order = OurOrder(lengths, self.args.per_device_train_batch_size, self.args.seed)
        return DataLoader(self.train_dataset, batch_sampler=order, collate_fn=self.data_collator)


class TrainerSide(ABC, Generic[ExampleT]):
    """files: a folder that transformers opens. dev examples are scored by the task's own metric."""

    auto_model: ClassVar[Any]
    collator: ClassVar[Any]
    kind: type[Trainer] = Trainer

    def __init__(self, files: Path, task: Task[ExampleT, Any]) -> None:
        self.files, self.task = files, task
        self.tokenizer: Any = AutoTokenizer.from_pretrained(files)

    @abstractmethod
    def rows(self, examples: Sequence[ExampleT]) -> list[Row]: ...

    def dev_rows(self, examples: Sequence[ExampleT]) -> list[Row]:
        return self.rows(examples)

    def model(self) -> Any:
        return self.auto_model.from_pretrained(self.files, num_labels=len(self.task.class_names))

    def scores(self, found: EvalPrediction, dev: Sequence[ExampleT]) -> dict[str, float]:
        """All that are reported, the primary metric's first."""
        return {self.task.metric.name: self.score(found, dev)}

    @abstractmethod
    def score(self, found: EvalPrediction, dev: Sequence[ExampleT]) -> float:
        """found: of the rows of these examples, in their order."""

    def trainer(
        self, train: list[Row], settings: Settings, seed: int, dev: Sequence[ExampleT] | None = None
    ) -> tuple[Trainer, StepClock]:
        set_seed(seed)
        clock = StepClock()
        arguments = TrainingArguments(
            output_dir=str(self.files.parent / "trainer"),
            num_train_epochs=settings.epochs,
            per_device_train_batch_size=settings.batch,
            per_device_eval_batch_size=64,
            learning_rate=settings.rate,
            warmup_ratio=settings.warmup or 0.0,
            weight_decay=settings.weight_decay or 0.0,
            eval_strategy="no" if dev is None else "epoch",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=not torch.cuda.is_available(),
            seed=seed,
        )
        trainer = self.kind(
            model=self.model(),
            args=arguments,
            train_dataset=train,
            eval_dataset=None if dev is None else self.rows(dev),
            data_collator=self.collator(self.tokenizer),
            compute_metrics=lambda found: {"score": self.score(found, dev or [])},
            callbacks=[clock],
        )
        return trainer, clock

    def step_seconds(self, train: list[Row], settings: Settings) -> float:
        """Seconds that the steps take, without looks at dev."""
        trainer, clock = self.trainer(train, settings, seed=0)
        trainer.train()
        return clock.seconds

    def run(self, train: Sequence[ExampleT], dev: Sequence[ExampleT], settings: Settings, seed: int) -> Run:
        began = time.monotonic()
        trainer, _ = self.trainer(self.rows(train), settings, seed)
        trainer.train()
        trained = time.monotonic()
        found = trainer.predict(self.dev_rows(dev))
        scores = self.scores(EvalPrediction(found.predictions, found.label_ids), dev)
        return Run(scores, trained - began, time.monotonic() - trained)

    def whole_run(self, train: Sequence[ExampleT], dev: Sequence[ExampleT], settings: Settings, seed: int) -> Outcome:
        """The best of its looks at dev, and the time with tokenising and the looks."""
        began = time.monotonic()
        trainer, _ = self.trainer(self.rows(train), settings, seed, dev)
        trainer.train()
        seconds = time.monotonic() - began
        looks = [entry["eval_score"] for entry in trainer.state.log_history if "eval_score" in entry]
        return Outcome(max(looks), seconds)


class ClassifierTrainer(TrainerSide[TextExample]):
    """One label per text."""

    auto_model = AutoModelForSequenceClassification
    collator = DataCollatorWithPadding

    def rows(self, examples: Sequence[TextExample]) -> list[Row]:
        encoded = self.tokenizer([example.text for example in examples], truncation=True)
        return [
            {**{key: encoded[key][i] for key in encoded}, "labels": int(self.task.targets(example, ())[0])}
            for i, example in enumerate(examples)
        ]

    def score(self, found: EvalPrediction, dev: Sequence[TextExample]) -> float:
        return float((found.predictions.argmax(-1) == found.label_ids).mean())


class PairTrainer(TrainerSide[PairExample]):
    """One label per pair; both texts stand in one sequence."""

    auto_model = AutoModelForSequenceClassification
    collator = DataCollatorWithPadding

    def rows(self, examples: Sequence[PairExample]) -> list[Row]:
        first, second = [example.first for example in examples], [example.second for example in examples]
        encoded = self.tokenizer(first, second, truncation=True)
        return [
            {**{key: encoded[key][i] for key in encoded}, "labels": int(self.task.targets(example, ())[0])}
            for i, example in enumerate(examples)
        ]

    def score(self, found: EvalPrediction, dev: Sequence[PairExample]) -> float:
        return float((found.predictions.argmax(-1) == found.label_ids).mean())


class TaggerTrainer(TrainerSide[TaggedSentence]):
    """One label per word, at its first piece. Each word's tag is the most probable one, whatever stands beside it."""

    auto_model = AutoModelForTokenClassification
    collator = DataCollatorForTokenClassification

    def __init__(self, files: Path, task: Tag) -> None:
        super().__init__(files, task)
        self.names = task.labels

    def encoded(self, examples: Sequence[TaggedSentence]) -> Any:
        words = [list(example.words) for example in examples]
        return self.tokenizer(words, is_split_into_words=True, truncation=True)

    def rows(self, examples: Sequence[TaggedSentence]) -> list[Row]:
        encoded = self.encoded(examples)
        return [
            {**{key: encoded[key][i] for key in encoded}, "labels": self.labels(example, encoded.word_ids(i))}
            for i, example in enumerate(examples)
        ]

    def labels(self, example: TaggedSentence, word_ids: list[int | None]) -> list[int]:
        (tags,) = self.task.targets(example, [Passage(example.words)])
        labels = [NO_LABEL] * len(word_ids)
        for word, place in first_pieces(word_ids).items():
            labels[place] = int(tags[word])
        return labels

    def score(self, found: EvalPrediction, dev: Sequence[TaggedSentence]) -> float:
        encoded = self.encoded(dev)
        answers = [
            self.tags(example, encoded.word_ids(i), found.predictions[i].argmax(-1).tolist())
            for i, example in enumerate(dev)
        ]
        return self.task.scores(dev, answers)[self.task.metric.name]

    def tags(self, example: TaggedSentence, word_ids: list[int | None], best: list[int]) -> Tags:
        """A word that the tokenizer cut off or has no piece for is outside of every entity."""
        places = first_pieces(word_ids)
        words = range(len(example.words))
        return Tags(tuple([self.names[best[places[word]]] if word in places else OUTSIDE for word in words]))


def first_pieces(word_ids: list[int | None]) -> dict[int, int]:
    """word -> the place of its first piece. word_ids: each piece's word, None for special tokens."""
    places: dict[int, int] = {}
    for place, word in enumerate(word_ids):
        if word is not None:
            places.setdefault(word, place)
    return places
