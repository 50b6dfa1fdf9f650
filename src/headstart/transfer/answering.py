"""A set of examples as a model reads it, and its scores and answers, which several processes may compute together."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headstart.batches.rows import sorted_batches
from headstart.errors import DataError
from headstart.model import Model
from headstart.tasks.base import Passage, Scores, Target, Task
from headstart.training.data_parallel import shares_of
from headstart.training.ranks import Alone, Ranks

EVALUATION_TOKENS = 2_048
"""Tokens in a batch that is only predicted."""
HEADER_BYTES = 8

RowScores = Callable[[Sequence[int]], tuple[Tensor, Tensor]]
"""Rows of one set of examples -> the head's scores, (B, C) or (B, W, C), and the mask of their words, (B, W)."""


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A set of examples as the model reads it: each example is one or more rows, one for each of its passages.

    scores: of any rows; lengths: tokens of each row; rows: those of each example; targets: one for each row, or None
    where the examples have no gold answers.
    """

    scores: RowScores
    lengths: Sequence[int]
    examples: Sequence[Any]
    passages: Sequence[Sequence[Passage]]
    rows: Sequence[range]
    targets: Sequence[Target] | None

    def __len__(self) -> int:
        return len(self.examples)

    def example_lengths(self) -> list[int]:
        return [sum(self.lengths[row] for row in rows) for rows in self.rows]

    def rows_of(self, examples: Sequence[int]) -> list[int]:
        return [row for example in examples for row in self.rows[example]]

    def gold(self, rows: Sequence[int]) -> list[Target]:
        if self.targets is None:
            raise DataError("These examples have no gold answers, so there is nothing to learn from or to score.")
        return [self.targets[row] for row in rows]


@dataclass(frozen=True, slots=True)
class Scored:
    """What the head says of some examples. rows: by number, of all their passages.

    loss: summed over `weight` answers.
    """

    examples: Sequence[int]
    rows: dict[int, Scores]
    loss: float
    weight: int

    @property
    def mean_loss(self) -> float:
        return self.loss / self.weight if self.weight else math.nan


def answers_of(
    model: Model, task: Task[Any, Any], data: ModelInput, examples: Sequence[int] | None = None
) -> list[Any]:
    """Answers in the order of `examples` (all by default)."""
    return answers_from(model, task, data, score(model, task, data, all_or(examples, data)))


def answers_from(model: Model, task: Task[Any, Any], data: ModelInput, scored: Scored) -> list[Any]:
    of_examples = [[scored.rows[row] for row in data.rows[example]] for example in scored.examples]
    passages = [data.passages[example] for example in scored.examples]
    return task.decode(model.head, [data.examples[example] for example in scored.examples], passages, of_examples)


def all_or(examples: Sequence[int] | None, data: ModelInput) -> list[int]:
    return list(range(len(data))) if examples is None else list(examples)


def score(
    model: Model, task: Task[Any, Any], data: ModelInput, examples: Sequence[int], *, with_loss: bool = False
) -> Scored:
    """with_loss: add up the loss, too, except for tasks whose loss reads several passages together."""
    rows = data.rows_of(examples)
    model.eval()
    found: dict[int, Scores] = {}
    loss, weight = 0.0, 0
    with torch.no_grad():
        for batch in sorted_batches([data.lengths[row] for row in rows], EVALUATION_TOKENS):
            numbers = [rows[i] for i in batch]
            scores, mask = data.scores(numbers)
            if with_loss and not task.scores_documents:
                gold = data.gold(numbers)
                loss += float(task.loss(model.head, scores, mask, gold))
                weight += sum(task.weight(target) for target in gold)
            values, lengths = scores.cpu().numpy(), mask.sum(dim=1).tolist()
            for place, row in enumerate(numbers):
                found[row] = values[place, : lengths[place]].copy() if task.scores_words else values[place]
    return Scored(examples, found, loss, weight)


def score_together(
    model: Model, task: Task[Any, Any], data: ModelInput, examples: Sequence[int] | None = None, *,
    with_loss: bool = False, ranks: Ranks | None = None,
) -> Scored | None:  # fmt: skip
    """`score` of examples (all by default) that are divided among processes. Only the first one gets all; the others
    get None."""
    launch, chosen = (ranks := ranks or Alone()).launch, all_or(examples, data)
    lengths = [sum(data.lengths[row] for row in data.rows[example]) for example in chosen]
    shares = shares_of(chosen, lengths, launch.world)
    mine = score(model, task, data, shares[launch.rank], with_loss=with_loss)
    if launch.world == 1:
        return mine
    every = ranks.exchange(packed(mine, data), range(launch.world), [0])
    if not launch.is_first:
        return None
    parts = [unpacked(part, share, data) for part, share in zip(every, shares, strict=True)]
    rows = {row: scores for part in parts for row, scores in part.rows.items()}
    return Scored(chosen, rows, math.fsum(part.loss for part in parts), sum(part.weight for part in parts))


def packed(scored: Scored, data: ModelInput) -> bytes:
    """A header as JSON, its length before it, then the scores of each row in order."""
    arrays = [scored.rows[row] for row in data.rows_of(scored.examples)]
    fields = {"shapes": [array.shape for array in arrays], "loss": scored.loss, "weight": scored.weight}
    header = json.dumps(fields).encode()
    return b"".join([len(header).to_bytes(HEADER_BYTES, "little"), header, *(array.tobytes() for array in arrays)])


def unpacked(sent: bytes, examples: Sequence[int], data: ModelInput) -> Scored:
    first = HEADER_BYTES + int.from_bytes(sent[:HEADER_BYTES], "little")
    fields = json.loads(sent[HEADER_BYTES:first])
    values = np.frombuffer(sent[first:], dtype=np.float32).copy()
    ends = np.cumsum([math.prod(shape) for shape in fields["shapes"]]).tolist()
    arrays = [part.reshape(shape) for part, shape in zip(np.split(values, ends), fields["shapes"], strict=False)]
    rows = dict(zip(data.rows_of(examples), arrays, strict=True))
    return Scored(examples, rows, fields["loss"], fields["weight"])
