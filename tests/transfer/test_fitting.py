"""Fitting: enough steps, early stopping, the best step kept, layer-wise rates, gradual unfreezing."""

from __future__ import annotations

import copy
from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from headstart.errors import DataError
from headstart.tasks.base import Passage
from headstart.tasks.classify import Classify, TextExample
from headstart.training.ranks import Alone, Ranks
from headstart.transfer import fitting
from headstart.transfer.answering import ModelInput, answers_of
from headstart.transfer.fitting import (
    CORE_TOKENS,
    FitResult,
    FittingConfig,
    document_passes,
    epoch_batches,
    fit,
    passes_of,
    rates,
)

TASK = Classify(("below", "above"))


class TwoStages(nn.Module):
    """The smallest model with an encoder of two stages and a head."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.low, self.high, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        self.in_parts = False
        self.opened: list[int | None] = []

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.high(torch.tanh(self.low(x)))))

    def groups(self) -> list[list[tuple[str, nn.Parameter]]]:
        return [
            [(name, p) for name, p in self.named_parameters() if name.startswith(part)]
            for part in ("low", "high", "head")
        ]

    def train_only(self, how: str, groups: int | None = None) -> None:
        self.opened.append(groups)
        n_open = {"frozen": 0, "finetune": 2}.get(how, groups or 0)
        for depth, group in enumerate(reversed(self.groups())):
            for _, p in group:
                p.requires_grad_(depth <= n_open)

    def penalty(self) -> Tensor:
        return torch.zeros(())

    def is_data_parallel(self) -> bool:
        return self.in_parts


def examples(model: nn.Module, n: int, seed: int) -> ModelInput:
    x = torch.from_numpy(np.random.default_rng(seed).normal(size=(n, 4)).astype(np.float32))
    gold = (x[:, 0] > 0).long().numpy()

    def scores(rows: Sequence[int]) -> tuple[Tensor, Tensor]:
        return model(x[list(rows)]), torch.ones(len(rows), 1, dtype=torch.bool)

    return ModelInput(
        scores=scores,
        lengths=[1 + i % 5 for i in range(n)],
        examples=[TextExample("a text", TASK.labels[label]) for label in gold],
        passages=[[Passage("a text")] for _ in range(n)],
        rows=[range(i, i + 1) for i in range(n)],
        targets=[np.array(label) for label in gold],
    )


def run(work: Generator[Any, None, FitResult]) -> tuple[list[Any], FitResult]:
    steps = []
    while True:
        try:
            steps.append(next(work))
        except StopIteration as stop:
            return steps, stop.value


def test_few_labels_get_enough_steps() -> None:
    model = TwoStages()
    config = FittingConfig(epochs=2, min_steps=40, batch=4)
    steps, result = run(fit(model, TASK, "finetune", examples(model, 6, 0), None, config, seed=0))
    assert len(steps) == result.steps == 40


def test_it_learns_and_keeps_the_best_look_at_dev() -> None:
    model = TwoStages()
    train, dev = examples(model, 200, 0), examples(model, 100, 1)
    config = FittingConfig(epochs=20, batch=16, learning_rate=0.02, encoder_rate=0.02, patience=100)
    steps, result = run(fit(model, TASK, "finetune", train, dev, config, seed=0))
    looks = {step.number: step.evaluation for step in steps if step.evaluation}
    best = max(looks.values(), key=lambda look: (look["accuracy"], -look["loss"]))
    assert looks[result.best_step] == best
    answers = answers_of(model, TASK, dev)
    assert TASK.metric.of(TASK.all_counts(dev.examples, answers)) == best["accuracy"] > 0.9


def test_it_stops_when_dev_gets_no_better(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Classify, "counts", lambda self, example, answer: (0.5, 1.0))
    model = TwoStages()
    config = FittingConfig(epochs=1_000, min_steps=1, batch=16, evaluations=100, patience=2, learning_rate=1e-9)
    dev = examples(model, 100, 1)
    _, result = run(fit(model, TASK, "frozen", examples(model, 160, 0), dev, config, seed=0))
    assert result.steps < 1_000 * 10
    assert result.best_step < result.steps


def test_the_same_seed_gives_the_same_weights() -> None:
    weights = []
    for _ in range(2):
        model = TwoStages()
        run(fit(model, TASK, "finetune", examples(model, 50, 0), examples(model, 20, 1), FittingConfig(), seed=3))
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.equal(*weights)


def test_frozen_parameters_are_bit_identical() -> None:
    model = TwoStages()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    run(fit(model, TASK, "frozen", examples(model, 50, 0), examples(model, 20, 1), FittingConfig(), seed=0))
    changed = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert changed == {"head.weight", "head.bias"}


def test_gradual_opens_the_encoder_from_its_top() -> None:
    model = TwoStages()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    moved: list[set[str]] = []
    config = FittingConfig(min_steps=12, epochs=0.1, unfreeze=0.5)
    for _ in fit(model, TASK, "gradual", examples(model, 32, 0), None, config, seed=0):
        moved.append({name.split(".")[0] for name, p in model.named_parameters() if not torch.equal(p, before[name])})
    assert [len(parts) for parts in moved] == sorted(len(parts) for parts in moved)
    assert moved[0] == {"head"}
    assert {"head", "high"} in moved
    assert moved[-1] == {"head", "high", "low"}


def test_lower_layers_learn_more_slowly() -> None:
    found = rates(TwoStages(), FittingConfig(learning_rate=0.5, encoder_rate=0.2, layer_decay=0.5))
    assert found["head.weight"] == 0.5
    assert found["high.bias"] == 0.2
    assert found["low.weight"] == 0.1


def test_an_epoch_holds_every_example_once_in_another_order() -> None:
    lengths = list(range(50))
    epochs = [epoch_batches(lengths, 4, epoch, seed=0) for epoch in (0, 1)]
    for batches in epochs:
        assert sorted(row for batch in batches for row in batch) == lengths
    assert epochs[0] != epochs[1]
    assert epochs[0] == epoch_batches(lengths, 4, 0, seed=0)


def test_a_loss_that_is_no_number_is_explained() -> None:
    model = TwoStages()
    train = examples(model, 10, 0)
    broken = replace(train, scores=lambda rows: (train.scores(rows)[0] * float("nan"), train.scores(rows)[1]))
    with pytest.raises(DataError, match="loss is nan at step 1; the learning rate is too high"):
        run(fit(model, TASK, "finetune", broken, None, FittingConfig(), seed=0))


def test_an_example_of_several_rows_weighs_as_the_sum_of_its_answers() -> None:
    """Two rows of one example, or of two: the loss of a step is over all answers, however they are divided."""
    losses = []
    for rows in ([range(2), range(2, 4)], [range(1), range(1, 2), range(2, 3), range(3, 4)]):
        model = TwoStages()
        one = examples(model, 4, 0)
        joined = replace(
            one,
            rows=rows,
            examples=one.examples[: len(rows)],
            passages=[[Passage("a text")] * len(own) for own in rows],
        )
        config = FittingConfig(min_steps=1, epochs=0.01, batch=4)
        steps, _ = run(fit(model, TASK, "finetune", joined, None, config, seed=0))
        losses.append(steps[0].loss)
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def documents(model: nn.Module, sizes: Sequence[int]) -> ModelInput:
    """Examples of so many rows each."""
    ends = np.cumsum([0, *sizes]).tolist()
    rows = [range(first, last) for first, last in pairwise(ends)]
    return replace(
        examples(model, ends[-1], 0),
        rows=rows,
        examples=[TextExample("a document")] * len(sizes),
        passages=[[Passage("a text")] * len(own) for own in rows],
    )


class Pulled(TwoStages):
    """With a penalty, which a step must count once."""

    def penalty(self) -> Tensor:
        return self.head.weight.square().sum()


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_step_in_several_passes_is_the_step_in_one(in_parts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for most in (10_000, 1):
        monkeypatch.setattr(fitting, "CORE_TOKENS" if in_parts else "PASS_TOKENS", most)
        model, sizes = Pulled(), [7, 0, 20, 1, 9, 0]
        model.in_parts = in_parts
        train = documents(model, sizes)
        read: list[int] = []

        def watched(rows: Sequence[int], train: ModelInput = train, read: list[int] = read) -> tuple[Tensor, Tensor]:
            read.append(len(rows) * max(train.lengths[row] for row in rows))
            return train.scores(rows)

        config = FittingConfig(min_steps=3, epochs=0.1, batch=len(sizes))
        steps, _ = run(fit(model, TASK, "finetune", replace(train, scores=watched), None, config, seed=0))
        weights = torch.cat([p.detach().flatten() for p in model.parameters()])
        results.append(([step.loss for step in steps], weights, max(read)))
    (whole_losses, whole, whole_tokens), (losses, split, tokens) = results
    assert losses == pytest.approx(whole_losses, rel=1e-5)
    torch.testing.assert_close(split, whole, rtol=1e-4, atol=1e-6)
    assert tokens <= 5 * 6 < whole_tokens


def test_examples_of_one_passage_are_read_in_one_pass_however_long_they_are() -> None:
    train = replace(documents(TwoStages(), [1] * 40), lengths=[10_000] * 40)
    ((rows,),) = passes_of(train, range(32), in_parts=False)
    assert sorted(rows) == list(range(32))


def test_a_trained_bert_reads_as_many_tokens_at_a_time_as_fit_into_memory() -> None:
    lengths = [300, 20, 400, 256] * 10
    train = replace(documents(TwoStages(), [1] * 40), lengths=lengths)
    passes = passes_of(train, range(32), in_parts=True)
    assert sorted(row for parts in passes for part in parts for row in part) == list(range(32))
    for parts in passes:
        rows = [row for part in parts for row in part]
        assert len(rows) * max(lengths[row] for row in rows) <= CORE_TOKENS * torch.get_num_threads()


def test_a_batch_without_passages_changes_nothing() -> None:
    model = TwoStages()
    before = [p.detach().clone() for p in model.parameters()]
    config = FittingConfig(min_steps=2, epochs=0.1)
    steps, _ = run(fit(model, TASK, "finetune", documents(model, [0, 0]), None, config, seed=0))
    assert [step.loss for step in steps] == [0.0, 0.0]
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))


def test_without_gold_answers_nothing_is_scored() -> None:
    model = TwoStages()
    with pytest.raises(DataError, match="no gold answers"):
        run(fit(model, TASK, "finetune", replace(examples(model, 4, 0), targets=None), None, FittingConfig(), seed=0))


def test_passes_of_documents_have_consecutive_rows_of_one_example(monkeypatch: pytest.MonkeyPatch) -> None:
    data = replace(documents(TwoStages(), [5, 0, 2]), lengths=[10, 10, 8, 10, 3, 10, 10])
    assert document_passes(data, [2, 1, 0]) == [[[5, 6]], [[0, 1, 2, 3, 4]]]
    assert document_passes(data, [0], words_at_once=25) == [[[0, 1]], [[2, 3]], [[4]]]
    assert document_passes(data, [0], words_at_once=1) == [[[0]], [[1]], [[2]], [[3]], [[4]]]
    monkeypatch.setattr(fitting, "PASS_TOKENS", 30)
    assert document_passes(data, [0, 2], words_at_once=1_000) == [[[0, 1, 2]], [[3, 4]], [[5, 6]]]


@pytest.mark.parametrize("sizes", [[3, 1, 2, 1, 1], [0, 4, 0, 0], [0, 0]])
def test_processes_with_few_rows_or_none_take_the_steps_of_one(sizes: list[int], in_threads: Any) -> None:
    """The penalty counts once, and the optimiser does nothing where no process has a row."""

    untrained = Pulled()

    def work(ranks: Ranks) -> tuple[list[float], Tensor]:
        model = copy.deepcopy(untrained)
        config = FittingConfig(min_steps=4, epochs=0.1, batch=len(sizes))
        steps, _ = run(fit(model, TASK, "finetune", documents(model, sizes), None, config, 0, ranks))
        return [step.loss for step in steps], torch.cat([p.detach().flatten() for p in model.parameters()])

    losses, weights = work(Alone())
    for world in (2, 4):
        for found, theirs in in_threads(world, work):
            assert found == pytest.approx(losses, rel=1e-5)
            torch.testing.assert_close(theirs, weights, rtol=1e-4, atol=1e-6)
