"""A model of a task: encoder, mix and head with the tokenizer and the labels, kept in a run directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.batches.rows import TextRow, collate, text_row
from headstart.config import Table, resolve, settings_of
from headstart.encoders.base import Encoder
from headstart.encoders.registry import build_encoder
from headstart.encoders.representations import Representations
from headstart.errors import CheckpointError
from headstart.model import Model, build_mixes, check_fit, widths_for_head
from headstart.pretrained import load_strictly
from headstart.tasks import task_class
from headstart.tasks.base import Passage, Task
from headstart.text.tokenizer import Tokenizer, load_tokenizer
from headstart.training.run import RunDirectory
from headstart.training.seeding import freshly_initialised
from headstart.training.tensors import read_tensors
from headstart.transfer.config import TransferConfig, config_for
from headstart.transfer.features import FeatureTable
from headstart.transfer.fitting import ModelInput, RowScores, answers_of

KIND = "task"
BEFORE_TASKS = "classifier"
"""The kind that classifiers had before there were other tasks."""
ExampleT = TypeVar("ExampleT")
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class Answers(Generic[AnswerT]):
    """The answers to some examples. truncated: examples of which only a part was read."""

    answers: list[AnswerT]
    truncated: int


@dataclass(frozen=True, slots=True)
class TaskModel(Generic[ExampleT, AnswerT]):
    """A task with its model and the tokenizer. An example's answer depends on that example alone."""

    task: Task[ExampleT, AnswerT]
    tokenizer: Tokenizer
    model: Model
    config: TransferConfig
    trained: bool = False

    @property
    def encoder(self) -> Encoder:
        return self.model.encoder

    @property
    def longest(self) -> int:
        """Tokens in one sequence without its special tokens: as many as are asked for, or as fit into the encoder."""
        room = self.encoder.room
        return self.config.longest if room is None else min(self.config.longest, room)

    def tokens_per_word(self, words: Sequence[str]) -> NDArray[np.int64]:
        return np.bincount(self.tokenizer.encode_words(words).words, minlength=len(words)).astype(np.int64)

    def answers(self, examples: Sequence[ExampleT]) -> Answers[AnswerT]:
        if not self.trained:
            raise CheckpointError("This model was never trained, so it has no answers. Fit it first.")
        filled = [example for example in examples if not self.task.is_empty(example)]
        answers: list[AnswerT] = []
        truncated = 0
        if filled:
            data, truncated = self.prepare(filled)
            answers = answers_of(self.model, self.task, data)[0]
        found = iter(answers)
        every = [self.task.empty_answer(e) if self.task.is_empty(e) else next(found) for e in examples]
        return Answers(every, truncated)

    def prepare(
        self, examples: Sequence[ExampleT], *, labelled: bool = False, features: FeatureTable | None = None
    ) -> tuple[ModelInput, int]:
        """Examples as the model reads them, and how many are truncated.

        features: the encoder's features of all their passages, computed before; the encoder is then not run at all.
        """
        passages = [self.task.passages(example, self) for example in examples]
        ends = np.cumsum([0, *map(len, passages)]).tolist()
        rows = [range(first, last) for first, last in pairwise(ends)]
        targets = None
        if labelled:
            pairs = zip(examples, passages, strict=True)
            targets = [target for example, own in pairs for target in self.task.targets(example, own)]
        flat = [passage for own in passages for passage in own]
        if features is None:
            self.encoder.clear_cache()  # the same examples get the same bits, whatever was read before
            scores, lengths, cut = self._from_texts(flat)
        else:
            scores, lengths, cut = self._from_features(flat, features)
        truncated = sum(any(cut[row] for row in own) for own in rows)
        return ModelInput(scores, lengths, list(examples), passages, rows, targets), truncated

    def _from_texts(self, passages: Sequence[Passage]) -> tuple[RowScores, list[int], list[bool]]:
        rows = [self.row(passage) for passage in passages]
        device = next(self.model.parameters()).device

        def scores(numbers: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
            batch = collate([rows[i] for i in numbers]).to(device)
            found: torch.Tensor = self.model(batch)
            return found, batch.word_starts >= 0

        return scores, [len(row.ids) for row in rows], [row.cut for row in rows]

    def _from_features(
        self, passages: Sequence[Passage], features: FeatureTable
    ) -> tuple[RowScores, list[int], list[bool]]:
        rows = [features.rows[passage.text] for passage in passages]
        model, device = self.model, next(self.model.parameters()).device
        means = features.means(rows).to(device) if model.reads_mean_of_words() else None

        def scores(numbers: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
            if means is not None:
                R = Representations(means.layers[:, numbers], means.mask[numbers])
            else:
                R = features.batch([rows[i] for i in numbers]).to(device)
            return model.read(R), R.mask

        return scores, [features.length(row) for row in rows], features.cut[rows].tolist()

    def row(self, passage: Passage) -> TextRow:
        return text_row(
            self.encoder,
            self.tokenizer,
            passage.text,
            self.longest,
            with_first=self.config.network.reads_first_position,
        )

    def save(self, path: Path, record: Mapping[str, Any]) -> None:
        """Into a run directory: tokenizer, weights, then config.toml, which makes them count. record: [result]."""
        run, weights = RunDirectory(path), self.model.state_dict()
        path.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(path)
        run.write_weights(weights)
        run.write_config(
            {
                "kind": KIND,
                "task": self.task.name,
                "encoder_kind": self.encoder.kind,
                "vocabulary": len(self.tokenizer),
                **self.task.to_table(),
                "trained": self.trained,
                "encoder": settings_of(self.encoder.config),
                "transfer": settings_of(self.config),
                "result": dict(record),
            }
        )

    def frozen(self) -> TaskModel[ExampleT, AnswerT]:
        """Ready for inference: nothing is trained any more, and dropout is off."""
        self.model.requires_grad_(False)
        self.model.eval()
        return replace(self, trained=True)


def build_model(encoder: Encoder, task: Task[Any, Any], config: TransferConfig) -> Model:
    """Encoder, mix and head, the last two with their random start."""
    mixes = build_mixes(config.mix, encoder.shape)
    head = task.head(*widths_for_head(mixes, encoder.shape[1]), config.network)
    check_fit(config.mix, head)
    return Model(encoder, mixes, head)


def is_task_model(path: Path) -> bool:
    """Whether a folder is a run that `transfer` wrote."""
    return (path / "config.toml").is_file() and RunDirectory(path).read_config().get("kind") in (KIND, BEFORE_TASKS)


def load_own(path: Path) -> TaskModel[Any, Any]:
    """A task model that was saved here, built from its config.toml and loaded strictly."""
    run = RunDirectory.open(path)
    table = run.read_config()
    check_table(table, run.path / "config.toml")
    kind = task_class(table.get("task", "classify"))
    task = kind.from_table(table)
    tokenizer = load_tokenizer(run.path)
    settings = resolve(config_for(kind), table.get("transfer", {}), str(run.path / "config.toml"))
    if len(tokenizer) != table["vocabulary"]:
        raise CheckpointError(
            f"{run.path}: the tokenizer has {len(tokenizer):,} entries, the weights expect {table['vocabulary']:,}."
        )
    # The random start is overwritten at once; drawing it must not move anybody else's random numbers.
    model = freshly_initialised(
        0, lambda: build_model(build_encoder(table["encoder_kind"], table["encoder"], len(tokenizer)), task, settings)
    )
    load_strictly(model, read_tensors(run.weights), run.weights)
    loaded = TaskModel(task, tokenizer, model, settings).frozen()
    return replace(loaded, trained=bool(table["trained"]))


def check_table(table: Table, where: Path) -> None:
    wanted = {"encoder_kind": str, "vocabulary": int, "labels": list, "trained": bool, "encoder": dict}
    for key, kind in wanted.items():
        if not isinstance(table.get(key), kind):
            raise CheckpointError(f"{where}: '{key}' is missing or not a {kind.__name__}; it was not written by a run.")
