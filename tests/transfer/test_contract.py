"""One contract for every registered encoder x every registered task x frozen and fine-tuned."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headstart.encoders.kernels.dropout import Dropout
from headstart.encoders.registry import ENCODERS
from headstart.progress import result_of
from headstart.tasks import TASKS, task_class
from headstart.tasks.conll import TaggedSentence
from headstart.transfer import fitting
from headstart.transfer.fit import Fitted, transfer_once, untrained
from headstart.transfer.loading import load_task_model
from headstart.transfer.start import Start, open_start, settings_for
from headstart.transfer.task_files import save_task_model
from headstart.transfer.task_model import TaskModel

HOWS = ["frozen", "finetune"]
EVERY = [(kind, task, how) for kind in ENCODERS for task in TASKS for how in HOWS]
# Encoders as small as these need large steps; what depends on chance (dropout) is off where bits are compared.
BY_HEART: dict[str, Any] = {
    "network": {"dropout": 0.0},
    "mix": {"norm": True},
    "fitting": {"min_steps": 250, "epochs": 0.1, "batch": 8, "learning_rate": 0.02, "encoder_rate": 0.005},
}
FEW: dict[str, Any] = {"fitting": {"min_steps": 4, "epochs": 0.1, "batch": 4}}


@pytest.fixture(scope="module")
def starts(pretrained_runs: dict[str, Path]) -> dict[str, Start]:
    assert set(pretrained_runs) == set(ENCODERS), "every registered encoder needs a tiny run in tests/conftest.py"
    return {kind: open_start(path) for kind, path in pretrained_runs.items()}


def fitted(start: Start, task: str, how: str, examples: Sequence[Any], given: dict[str, Any], seed: int = 0) -> Fitted:
    kind = task_class(task)
    config = settings_for(kind, start, how, given)
    return result_of(transfer_once(start, config, kind.learn(examples), examples, examples, seed=seed))


def row_scores(model: TaskModel[Any, Any], examples: Sequence[Any], batch: Sequence[int]) -> dict[int, np.ndarray]:
    """The scores of some examples' rows by number, run in one batch on the inference path, without padding."""
    data, _ = model.prepare(examples)
    rows = data.rows_of(batch)
    model.model.eval()
    with torch.no_grad():
        scores, mask = data.scores(rows)
    lengths = mask.sum(dim=1).tolist()
    kept = [found[:n] if model.task.scores_words else found for found, n in zip(scores.numpy(), lengths, strict=True)]
    return dict(zip(rows, kept, strict=True))


@pytest.mark.parametrize(("kind", "task", "how"), EVERY)
def test_an_answer_depends_on_its_example_alone_and_survives_saving(
    kind: str, task: str, how: str, starts: dict[str, Start], tiny_examples: dict[str, list[Any]], tmp_path: Path
) -> None:
    examples = tiny_examples[task]
    model = fitted(starts[kind], task, how, examples, FEW).model
    assert not any(parameter.requires_grad for parameter in model.model.parameters())
    together = row_scores(model, examples, range(len(examples)))
    backward = row_scores(model, examples, range(len(examples))[::-1])
    alone = {row: found for i in range(len(examples)) for row, found in row_scores(model, examples, [i]).items()}
    assert set(together) == set(alone) == set(backward)
    for row, reference in together.items():
        np.testing.assert_allclose(alone[row], reference, atol=1e-5)
        np.testing.assert_allclose(backward[row], reference, atol=1e-5)
    save_task_model(model, tmp_path / "run", {})
    loaded = load_task_model(tmp_path / "run")
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())
    for row, found in row_scores(loaded, examples, range(len(examples))).items():
        assert np.array_equal(found, together[row])
    before, after = model.answers(examples).answers, loaded.answers(examples).answers
    assert [loaded.task.as_json(*pair) for pair in zip(examples, after, strict=True)] == [
        model.task.as_json(*pair) for pair in zip(examples, before, strict=True)
    ]


@pytest.mark.parametrize(("kind", "task", "how"), EVERY)
def test_open_parameters_get_a_gradient_and_closed_ones_none(
    kind: str, task: str, how: str, starts: dict[str, Start], tiny_examples: dict[str, list[Any]]
) -> None:
    examples = tiny_examples[task]
    class_ = task_class(task)
    config = settings_for(class_, starts[kind], how, {"network": {"dropout": 0.0}})
    model = untrained(starts[kind], config, class_.learn(examples), examples)
    with torch.no_grad():  # away from the zeros where gradients vanish
        for parameter in model.model.own_parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    model.model.train_only(how)
    data, _ = model.prepare(examples, labelled=True)
    rows = data.rows_of(range(len(examples)))
    scores, mask = data.scores(rows)
    model.task.loss(model.model.head, scores, mask, data.gold(rows)).backward()
    for name, parameter in model.model.named_parameters():
        touched = parameter.grad is not None and bool(parameter.grad.any())
        assert touched == parameter.requires_grad, name
    assert any(p.requires_grad for p in model.encoder.parameters()) == (how == "finetune")


@pytest.mark.parametrize(("kind", "task", "how"), EVERY)
def test_eight_examples_are_learned_by_heart(
    kind: str, task: str, how: str, starts: dict[str, Start], tiny_examples: dict[str, list[Any]]
) -> None:
    examples = tiny_examples[task][:8]
    assert fitted(starts[kind], task, how, examples, BY_HEART).score == 1.0


@pytest.mark.parametrize(("kind", "how"), [(kind, how) for kind in ENCODERS for how in HOWS])
def test_documents_are_learned_in_several_passes_as_in_one(
    kind: str,
    how: str,
    starts: dict[str, Start],
    tiny_examples: dict[str, list[Any]],
    monkeypatch: pytest.MonkeyPatch,
    with_threads: Callable[[int], AbstractContextManager[None]],
) -> None:
    parts = [tiny_examples["tag"][first : first + 5] for first in (0, 5)]
    documents = [
        TaggedSentence(*(tuple(chain(*lists)) for lists in ([e.words for e in part], [e.tags for e in part])), "text")
        for part in parts
    ]
    start = copy.deepcopy(starts[kind])
    for module in start.pretrained[0].encoder.modules():
        if isinstance(module, Dropout):  # each pass draws its own
            module.threshold = 0
    settings = {"longest": 8, "network": {"dropout": 0.0}, "fitting": {"min_steps": 3, "epochs": 0.1}}
    weights = []
    for most in (100_000, 1):
        monkeypatch.setattr(fitting, "PASS_TOKENS", most)
        with with_threads(2 if (kind, how) == ("bert", "finetune") else 1):  # whose batches are divided between cores
            model = fitted(start, "tag", how, documents, settings).model
        data, _ = model.prepare(documents)
        assert (len(fitting.passes_of(data, [0, 1], in_parts=False)) > 3) == (most == 1)
        weights.append(torch.cat([parameter.flatten() for parameter in model.model.parameters()]))
    torch.testing.assert_close(*weights, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("kind", "task", "how"), EVERY)
def test_one_seed_gives_one_run(
    kind: str, task: str, how: str, starts: dict[str, Start], tiny_examples: dict[str, list[Any]]
) -> None:
    state = torch.random.get_rng_state()
    runs = [fitted(starts[kind], task, how, tiny_examples[task], FEW, seed) for seed in (3, 3, 4)]
    weights = [torch.cat([p.detach().flatten() for p in run.model.model.parameters()]) for run in runs]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert torch.equal(torch.random.get_rng_state(), state)


def test_every_task_has_tiny_examples(tiny_examples: dict[str, list[Any]]) -> None:
    assert set(tiny_examples) == set(TASKS), "every registered task needs tiny examples in tests/conftest.py"
