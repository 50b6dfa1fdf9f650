from __future__ import annotations

import copy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier

import pytest
import torch

from headstart.encoders.bert import Bert, BertConfig
from headstart.encoders.elmo import Elmo, ElmoConfig
from headstart.errors import CheckpointError, DataError
from headstart.pretraining.bert.batches import MaskedBatch
from headstart.pretraining.bert.objective import MaskedLanguageModel
from headstart.pretraining.elmo.batches import LanguageModelBatch, WordsToSpell
from headstart.pretraining.elmo.objective import ElmoLanguageModel, LanguageModelConfig
from headstart.pretraining.neural import DivergedError, NeuralLearner, has_fast_bfloat16
from headstart.training.optim import OptimizerConfig
from headstart.training.ranks import Alone

ROOT = Path(__file__).parents[2]
SMALL = {"cell": 64, "projection": 16, "filters": [[1, 8], [2, 8], [3, 16]], "highway": 1}
V = 60


DIVIDE_ONE = """
import weakref
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from tests.pretraining.test_neural import bert, learner, masked_batch
from headstart.pretraining.sharded import sharded

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
whole = learner(bert(), [masked_batch(4, 0)])
parameters = [weakref.ref(parameter) for parameter in whole.model.parameters()]
divided = sharded(whole)
assert all(isinstance(parameter, DTensor) for parameter in divided.model.parameters())
print(sum(parameter() is not None for parameter in parameters))
dist.destroy_process_group()
"""


@dataclass
class Fixed:
    """A list of batches, over and over."""

    batches: list

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, number: int):
        return self.batches[number % len(self.batches)]


def masked_batch(rows: int, seed: int, length: int = 10) -> MaskedBatch:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, V, (rows, length), generator=generator)
    positions = torch.randperm(rows * length, generator=generator)[: rows * 2]
    is_next = torch.rand(rows, generator=generator) < 0.5
    mask = torch.ones(rows, length, dtype=torch.bool)
    return MaskedBatch(ids, mask, torch.zeros_like(ids), positions, ids.flatten()[positions], is_next)


def sentence_batch(rows: int, seed: int) -> LanguageModelBatch:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 9, (rows,), generator=generator)
    mask = torch.arange(9) < lengths[:, None]
    targets = torch.randint(3, V, (rows, 9), generator=generator) * mask
    characters = (torch.randint(1, 262, (V, 50), generator=generator)[targets]) * mask[..., None]
    return LanguageModelBatch(characters, mask, targets)


def bert(dropout: float = 0.0) -> MaskedLanguageModel:
    torch.manual_seed(0)
    config = BertConfig(layers=2, width=16, heads=2, inner=32, dropout=dropout, attention_dropout=dropout)
    return MaskedLanguageModel(Bert(config, V))


def spelled_batch(rows: int, seed: int) -> LanguageModelBatch:
    """For a table of words whose rows are spelled too."""
    batch, words = sentence_batch(rows, seed), torch.arange(5, 12)
    ids = torch.cat([batch.targets[..., None], torch.zeros_like(batch.ids)], dim=2)
    spelled = WordsToSpell(words, words[:, None] + torch.arange(50), words)
    return LanguageModelBatch(ids, batch.mask, batch.targets, spelled)


def elmo(dropout: float = 0.0, softmax: str = "full", tokens: str = "characters") -> ElmoLanguageModel:
    torch.manual_seed(0)
    config = ElmoConfig(**{**SMALL, "dropout": dropout, "tokens": tokens})
    return ElmoLanguageModel(Elmo(config, V), V, LanguageModelConfig(softmax=softmax, samples=20))


def learner(model, batches: list, accumulate: int = 1, valid: list | None = None, **options) -> NeuralLearner:
    optimizer = OptimizerConfig(learning_rate=options.pop("learning_rate", 1e-3), clip=None)
    held_out = Fixed(valid) if valid else None
    options.setdefault("precision", "float32")  # on some machines 'auto' is bfloat16, which rounds too much to compare
    return NeuralLearner(model, Fixed(batches), held_out, optimizer, accumulate=accumulate, seed=0, **options)


def joined(first, second):
    """Two batches of unequal size as one."""
    if isinstance(first, MaskedBatch):
        offset = first.ids.numel()
        rows = {name: torch.cat([getattr(first, name), getattr(second, name)]) for name in ("ids", "mask", "segments")}
        places = torch.cat([first.positions, second.positions + offset])
        gold, is_next = torch.cat([first.gold, second.gold]), torch.cat([first.is_next, second.is_next])
        return MaskedBatch(**rows, positions=places, gold=gold, is_next=is_next)
    names = ("ids", "mask", "targets")
    return LanguageModelBatch(*(torch.cat([getattr(first, name), getattr(second, name)]) for name in names))


MODELS = [(bert, masked_batch), (elmo, sentence_batch)]


@pytest.mark.parametrize(("model", "batch"), MODELS)
def test_accumulation_equals_the_same_big_batch(model, batch) -> None:
    small, large = batch(2, seed=1), batch(7, seed=2)
    parts = learner(model(), [small, large], accumulate=2)
    whole = learner(model(), [joined(small, large)])
    gradients = []
    for one in (parts, whole):
        one.optimizer.step = lambda rate: 0.0  # keep the gradients to compare
        result = one.step(0, 1.0)
        gradients.append((result, {name: p.grad.clone() for name, p in one.model.named_parameters()}))
    assert gradients[0][0].loss == pytest.approx(gradients[1][0].loss, rel=1e-6)
    for name, gradient in gradients[0][1].items():
        torch.testing.assert_close(gradient, gradients[1][1][name], atol=1e-6, rtol=1e-5)


DIVIDED = [
    (bert, masked_batch, "full"),
    (elmo, sentence_batch, "full"),
    (lambda: elmo(softmax="sampled"), sentence_batch, "sampled"),
    (lambda: elmo(softmax="sampled", tokens="both"), spelled_batch, "spelled"),
]


@pytest.mark.parametrize(("model", "batch", "name"), DIVIDED, ids=[name for *_, name in DIVIDED])
@pytest.mark.parametrize("world", [2, 3])
def test_processes_that_divide_a_batch_have_the_losses_of_one(model, batch, name, world, in_threads) -> None:
    """Twenty steps; every third batch has too few rows for the last process, and a step has two batches."""
    batches = [batch(rows, seed=rows) for rows in (7, 5, world - 1)]

    def run(ranks) -> tuple[list[float], dict[str, torch.Tensor], dict[str, float]]:
        one = learner(copy.deepcopy(start), batches, accumulate=2, valid=batches, ranks=ranks)
        losses = [one.step(i, 1.0).loss for i in range(20)]
        return losses, one.state(), one.evaluate(None)

    start = model()
    alone, *others = run(Alone()), *in_threads(world, run)
    for losses, state, scores in others:
        assert losses == pytest.approx(alone[0], abs=1e-5)
        assert scores == pytest.approx(alone[2], rel=1e-4)
        assert state.keys() == alone[1].keys()
        assert all(torch.equal(state[key], others[0][1][key]) for key in state)  # nothing drifts apart


def test_a_divided_loss_that_is_not_finite_ends_every_process(in_threads) -> None:
    def run(ranks) -> None:
        one = learner(bert(), [masked_batch(4, 0)], ranks=ranks)
        if ranks.launch.rank == 1:  # only its own rows are bad
            with torch.no_grad():
                next(one.model.parameters()).fill_(float("inf"))
        with pytest.raises(DivergedError):
            one.step(0, 1.0)

    in_threads(2, run)


@pytest.mark.parametrize(("model", "batch"), MODELS)
def test_same_seed_same_losses_with_dropout(model, batch) -> None:
    batches = [batch(4, seed=i) for i in range(3)]
    losses = []
    for _ in range(2):
        one = learner(model(dropout=0.3), batches)
        torch.rand(7)  # what the caller draws from torch's generator must not matter
        losses.append([one.step(i, 1.0).loss for i in range(5)])
    assert losses[0] == losses[1]


def test_the_callers_generator_is_left_alone() -> None:
    one = learner(bert(dropout=0.3), [masked_batch(4, seed=0)])
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    one.step(0, 1.0)
    assert torch.equal(torch.rand(2), expected)


@pytest.mark.parametrize(("model", "batch"), MODELS)
def test_two_runs_in_two_threads_have_the_losses_of_one_alone(model, batch) -> None:
    batches = [batch(4, seed=i) for i in range(3)]
    learners = [learner(model(dropout=0.3), batches) for _ in range(3)]
    ready = Barrier(2)

    def losses(one: NeuralLearner) -> list[float]:
        ready.wait()
        return [one.step(i, 1.0).loss for i in range(8)]

    alone = [learners[0].step(i, 1.0).loss for i in range(8)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(losses, learners[1:])) == [alone, alone]


@pytest.mark.parametrize("rate", [1e-4, 1e300])
def test_the_advice_after_divergence_is_a_rate_that_works(rate: float) -> None:
    one = learner(bert(), [masked_batch(2, 0)], learning_rate=rate)
    with torch.no_grad():
        next(one.model.parameters()).fill_(float("inf"))
    with pytest.raises(DataError) as caught:
        one.step(0, 1.0)
    advised = float(str(caught.value).rpartition("=")[2].removesuffix("."))
    assert 0 < advised <= min(rate, 1e-3)


@pytest.mark.parametrize(("model", "batch"), MODELS)
def test_a_state_restored_elsewhere_goes_on_to_the_bit(model, batch) -> None:
    batches = [batch(4, seed=i) for i in range(3)]
    whole = learner(model(dropout=0.2), batches)
    for i in range(6):
        whole.step(i, 1.0)
    first = learner(model(dropout=0.2), batches)
    for i in range(3):
        first.step(i, 1.0)
    state = {name: value.clone() for name, value in first.state().items()}
    second = learner(model(dropout=0.2), batches)
    second.load_state(state)
    for i in range(3, 6):
        second.step(i, 1.0)
    for name, value in whole.weights().items():
        assert torch.equal(value, second.weights()[name]), name


def test_evaluation_gives_each_direction_and_their_mean() -> None:
    one = learner(elmo(), [sentence_batch(2, seed=0)], valid=[sentence_batch(4, seed=1), sentence_batch(4, seed=2)])
    scores = one.evaluate(None)
    mean = (scores["forward_perplexity"] + scores["backward_perplexity"]) / 2
    assert scores["perplexity"] == pytest.approx(mean)
    assert one.evaluate(None) == scores
    assert one.evaluate(1)["units"] < scores["units"]


def test_evaluation_of_bert_and_of_nothing() -> None:
    scores = learner(bert(), [masked_batch(2, 0)], valid=[masked_batch(40, 1)]).evaluate(None)
    assert scores.keys() == {"perplexity", "masked_accuracy", "next_accuracy", "units"}
    assert scores["perplexity"] == pytest.approx(V, rel=0.3)  # an untrained model guesses among all words
    assert learner(bert(), [masked_batch(2, 0)]).evaluate(None) == {}


def test_a_loss_that_is_not_finite_stops_the_run() -> None:
    one = learner(bert(), [masked_batch(2, 0)])
    with torch.no_grad():
        next(one.model.parameters()).fill_(float("nan"))
    with pytest.raises(DataError, match=r"loss is nan at step 1.*optimizer\.learning_rate"):
        one.step(0, 1.0)


def test_weights_of_another_shape_are_refused() -> None:
    one = learner(bert(), [masked_batch(2, 0)])
    weights = one.weights()
    with pytest.raises(CheckpointError):
        one.load_weights({name: value for name, value in weights.items() if "bias" not in name})
    wrong = {name: torch.zeros(3) if name.endswith("words.weight") else value for name, value in weights.items()}
    with pytest.raises(CheckpointError, match=r"words\.weight"):
        one.load_weights(wrong)


@pytest.mark.parametrize(("model", "batch"), MODELS)
def test_bfloat16_trains_too(model, batch) -> None:
    one = learner(model(), [batch(4, seed=0)], precision="bfloat16", learning_rate=1e-2)
    losses = [one.step(i, 1.0).loss for i in range(30)]
    assert losses[-1] < 0.7 * losses[0]


def test_bfloat16_is_chosen_only_where_it_pays() -> None:
    assert learner(bert(), [masked_batch(2, 0)], precision="auto").bfloat16 == has_fast_bfloat16(torch.device("cpu"))


@pytest.mark.parametrize(
    ("model", "batch"),
    [*MODELS, (lambda: elmo(softmax="sampled"), sentence_batch)],
    ids=["bert", "elmo", "elmo sampled"],
)
def test_eight_sentences_are_overfitted(model, batch) -> None:
    one = learner(model(), [batch(8, seed=0)], valid=[batch(8, seed=0)], learning_rate=2e-2)
    for i in range(250):
        one.step(i, 1.0 - i / 250)
    assert one.evaluate(None)["perplexity"] < 2.0


def test_a_divided_learner_leaves_nobody_the_whole_parameters() -> None:
    """Also not whoever still holds the learner that it was made of. In a process of its own: torch has one group."""
    done = subprocess.run([sys.executable, "-c", DIVIDE_ONE], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
