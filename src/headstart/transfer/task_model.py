"""A model of a task: encoders, mixes and head with the tokenizers and the labels, kept in a run directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.batches.rows import AnyText, Joined, TextRow, collate, text_row
from headstart.config import Table, resolve, settings_of
from headstart.encoders.base import Encoder
from headstart.encoders.registry import build_encoder
from headstart.encoders.representations import Representations
from headstart.errors import CheckpointError, ConfigError
from headstart.model import Model, build_reader, check_fit, widths_for_head
from headstart.pretrained import load_strictly
from headstart.tasks import task_class
from headstart.tasks.base import Passage, Task
from headstart.text.tokenizer import Tokenizer, load_tokenizer
from headstart.text.words import split_words
from headstart.training.run import RunDirectory
from headstart.training.seeding import freshly_initialised
from headstart.training.tensors import read_tensors
from headstart.transfer.config import TransferConfig, config_for
from headstart.transfer.features import FeatureTable
from headstart.transfer.fitting import ModelInput, RowScores, answers_of

KIND = "task"
ONLY_READER, HEAD = "readers.0.", "head."
"""What the names of a model's tensors begin with. In the file of a model with one encoder the first is left out."""
TASK_KEYS: dict[str, type] = {"labels": list, "trained": bool}
SOURCE_KEYS: dict[str, type] = {"encoder_kind": str, "vocabulary": int, "encoder": dict}
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
    """A task with its model and the tokenizer of each encoder. An example's answer depends on that example alone."""

    task: Task[ExampleT, AnswerT]
    tokenizers: tuple[Tokenizer, ...]
    model: Model
    config: TransferConfig
    trained: bool = False

    @property
    def encoder(self) -> Encoder:
        """Of a model that has only one."""
        return self.model.only_reader.encoder

    @property
    def tokenizer(self) -> Tokenizer:
        """Of a model that has only one."""
        return self.tokenizers[self.model.each_reader.index(self.model.only_reader)]

    @property
    def longest(self) -> int:
        """Tokens in one sequence without its special tokens: as many as are asked for, or as fit into every encoder."""
        rooms = (encoder.room for encoder in self.model.encoders)
        return min([self.config.longest, *(room for room in rooms if room is not None)])

    def tokens_per_word(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Of several encoders, in the one that needs the most for each word."""
        counts = [np.bincount(each.encode_words(words).words, minlength=len(words)) for each in self.tokenizers]
        most: NDArray[np.int64] = np.stack(counts).max(axis=0).astype(np.int64)
        return most

    def given_to_encoders(self, passage: Passage) -> tuple[AnyText, bool]:
        """The text that every encoder reads, and whether part of it was left out.

        Several encoders meet at the words: the text is split into words for all of them, and cut before they read it,
        because each would cut it elsewhere. A single encoder splits and cuts the text itself.
        """
        if len(self.tokenizers) == 1:
            return passage.text, False
        if isinstance(passage.text, Joined):
            raise ConfigError("Encoders side by side read one text at a time, and this task joins two in one row.")
        words = split_words(passage.text) if isinstance(passage.text, str) else passage.text
        kept = kept_words(self.tokens_per_word(words), self.longest)
        return tuple([words[i] for i in kept]), len(kept) < len(words)

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
        self, examples: Sequence[ExampleT], *, labelled: bool = False, features: Sequence[FeatureTable] | None = None
    ) -> tuple[ModelInput, int]:
        """Examples as the model reads them, and how many are truncated.

        features: each encoder's features of all their passages, computed before; no encoder is then run.
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
            for encoder in self.model.encoders:
                encoder.clear_cache()  # the same examples get the same bits, whatever was read before
            scores, lengths, cut = self._from_texts(flat)
        else:
            scores, lengths, cut = self._from_features(flat, features)
        truncated = sum(any(cut[row] for row in own) for own in rows)
        return ModelInput(scores, lengths, list(examples), passages, rows, targets), truncated

    def _from_texts(self, passages: Sequence[Passage]) -> tuple[RowScores, list[int], list[bool]]:
        rows = [self.rows(passage) for passage in passages]
        device = next(self.model.parameters()).device

        def scores(numbers: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
            of_encoders = zip(*(rows[i] for i in numbers), strict=True)
            batches = [collate(of_encoder).to(device) for of_encoder in of_encoders]
            found: torch.Tensor = self.model(batches)
            return found, batches[0].word_starts >= 0

        return scores, [max(len(row.ids) for row in own) for own in rows], [own[0].cut for own in rows]

    def rows(self, passage: Passage) -> list[TextRow]:
        """The passage as each encoder reads it; all have the same words."""
        text, cut = self.given_to_encoders(passage)
        first = self.config.network.reads_first_position
        pairs = zip(self.model.encoders, self.tokenizers, strict=True)
        rows = [text_row(encoder, tokenizer, text, self.longest, with_first=first) for encoder, tokenizer in pairs]
        return [replace(row, cut=row.cut or cut) for row in rows]

    def _from_features(
        self, passages: Sequence[Passage], features: Sequence[FeatureTable]
    ) -> tuple[RowScores, list[int], list[bool]]:
        given = [self.given_to_encoders(passage) for passage in passages]
        rows = [features[0].rows[text] for text, _ in given]  # the same in every table
        model, device = self.model, next(self.model.parameters()).device
        means = [table.means(rows).to(device) for table in features] if model.reads_mean_of_words() else None

        def scores(numbers: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
            if means is not None:
                found = [Representations(mean.layers[:, numbers], mean.mask[numbers]) for mean in means]
            else:
                found = [table.batch([rows[i] for i in numbers]).to(device) for table in features]
            return model.read(found), found[0].mask

        cut = [bool(features[0].cut[row]) or cut for row, (_, cut) in zip(rows, given, strict=True)]
        return scores, [features[0].length(row) for row in rows], cut

    def save(self, path: Path, record: Mapping[str, Any]) -> None:
        """Into a run directory: tokenizers, weights, then config.toml, which makes them count. record: [result]."""
        run, weights = RunDirectory(path), self.model.state_dict()
        path.mkdir(parents=True, exist_ok=True)
        sources = [
            {"encoder_kind": encoder.kind, "vocabulary": len(tokenizer), "encoder": settings_of(encoder.config)}
            for encoder, tokenizer in zip(self.model.encoders, self.tokenizers, strict=True)
        ]
        table: Table = {"kind": KIND, "task": self.task.name}
        if len(sources) == 1:
            self.tokenizers[0].save(path)
            weights = {name.removeprefix(ONLY_READER): tensor for name, tensor in weights.items()}
            table |= sources[0]
        else:
            for number, tokenizer in enumerate(self.tokenizers):
                folder = path / source_folder(number)
                folder.mkdir(exist_ok=True)
                tokenizer.save(folder)
            table["sources"] = sources
        run.write_weights(weights)
        run.write_config(
            {
                **table,
                **self.task.to_table(),
                "trained": self.trained,
                "transfer": settings_of(self.config),
                "result": dict(record),
            }
        )

    def frozen(self) -> TaskModel[ExampleT, AnswerT]:
        """Ready for inference: nothing is trained any more, and dropout is off."""
        self.model.requires_grad_(False)
        self.model.eval()
        return replace(self, trained=True)


def build_model(encoders: Sequence[Encoder], task: Task[Any, Any], config: TransferConfig) -> Model:
    """Encoders, mixes and head, the last two with their random start."""
    if len(encoders) > 1 and config.network.reads_first_position:
        raise ConfigError("network.pool 'first' is for one encoder; encoders side by side have only words in common.")
    readers = [build_reader(encoder, config.mix) for encoder in encoders]
    head = task.head(*widths_for_head(readers), config.network)
    check_fit(config.mix, head)
    return Model(readers, head)


def kept_words(tokens: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """Which words are kept so that they have `longest` tokens at most: all, or as many from both ends, at least one.

    tokens: (W,), of each word.
    """
    if int(tokens.sum()) <= longest:
        return np.arange(len(tokens))
    first = max(1, int(np.searchsorted(np.cumsum(tokens), longest - longest // 2, side="right")))
    last = int(np.searchsorted(np.cumsum(tokens[first:][::-1]), longest // 2, side="right"))
    return np.concatenate([np.arange(first), np.arange(len(tokens) - last, len(tokens))])


def source_folder(number: int) -> str:
    """Where the tokenizer of one of several encoders is kept in a run."""
    return f"source{number}"


def is_task_model(path: Path) -> bool:
    """Whether a folder is a run that `transfer` wrote."""
    return (path / "config.toml").is_file() and RunDirectory(path).read_config().get("kind") in (KIND, BEFORE_TASKS)


def load_own(path: Path) -> TaskModel[Any, Any]:
    """A task model that was saved here, built from its config.toml and loaded strictly."""
    run = RunDirectory.open(path)
    table = run.read_config()
    where = run.path / "config.toml"
    check_table(table, TASK_KEYS, where)
    kind = task_class(table.get("task", "classify"))
    task = kind.from_table(table)
    settings = resolve(config_for(kind), table.get("transfer", {}), str(where))
    several = "sources" in table
    sources: list[Table] = table["sources"] if several else [table]
    folders = [run.path / source_folder(number) if several else run.path for number in range(len(sources))]
    tokenizers = tuple([tokenizer_of(source, folder, where) for source, folder in zip(sources, folders, strict=True)])
    pairs = list(zip(sources, tokenizers, strict=True))
    # The random start is overwritten at once; drawing it must not move anybody else's random numbers.
    model = freshly_initialised(
        0,
        lambda: build_model(
            [build_encoder(s["encoder_kind"], s["encoder"], len(tokenizer)) for s, tokenizer in pairs], task, settings
        ),
    )
    weights = read_tensors(run.weights)
    if not several:
        weights = {name if name.startswith(HEAD) else ONLY_READER + name: value for name, value in weights.items()}
    load_strictly(model, weights, run.weights)
    loaded = TaskModel(task, tokenizers, model, settings).frozen()
    return replace(loaded, trained=bool(table["trained"]))


def tokenizer_of(source: Table, folder: Path, where: Path) -> Tokenizer:
    check_table(source, SOURCE_KEYS, where)
    tokenizer = load_tokenizer(folder)
    if len(tokenizer) != source["vocabulary"]:
        raise CheckpointError(
            f"{folder}: the tokenizer has {len(tokenizer):,} entries, the weights expect {source['vocabulary']:,}."
        )
    return tokenizer


def check_table(table: Table, wanted: Mapping[str, type], where: Path) -> None:
    for key, kind in wanted.items():
        if not isinstance(table.get(key), kind):
            raise CheckpointError(f"{where}: '{key}' is missing or not a {kind.__name__}; it was not written by a run.")
