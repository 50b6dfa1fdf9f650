"""Processes that fit one task model together, played by threads: the losses of one process, the same weights in all."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from headstart.encoders.kernels.dropout import Dropout
from headstart.errors import DataError, HeadstartError
from headstart.tasks import task_class
from headstart.training.ranks import Alone, Ranks
from headstart.training.tensors import read_tensors
from headstart.transfer.fit import Fitted, transfer_once
from headstart.transfer.fitting import FitStep
from headstart.transfer.start import Start, open_start, settings_for
from headstart.transfer.transfer import Transferred, transfer

InThreads = Callable[..., list[Any]]
RATES = ("learning_rate", "encoder_rate")
SETTINGS: dict[str, Any] = {
    "network": {"dropout": 0.0},
    "mix": {"pull": 0.1},
    # Small steps: Adam makes whole steps of gradients that are nothing but rounding.
    "fitting": {
        "min_steps": 5,
        "epochs": 0.1,
        "batch": 5,
        "evaluations": 2,
        "learning_rate": 1e-4,
        "encoder_rate": 1e-4,
    },
}
FITS = [
    ("bert", "classify", "finetune"),
    ("bert", "tag", "gradual"),
    ("bert", "coref", "finetune"),
    ("static", "pair", "frozen"),
    ("static", "qa", "finetune"),
    ("elmo", "srl", "frozen"),
    ("scratch", "classify", "frozen"),
]


@dataclass(frozen=True)
class Seen:
    """Of one process. steps: the losses, and what came of each evaluation."""

    steps: list[FitStep]
    fitted: Fitted

    @property
    def losses(self) -> list[float]:
        return [step.loss for step in self.steps]

    @property
    def weights(self) -> torch.Tensor:
        return torch.cat([parameter.flatten() for parameter in self.fitted.model.model.parameters()])


def without_dropout(start: Start) -> Start:
    start = copy.deepcopy(start)
    for module in (module for one in start.pretrained for module in one.encoder.modules()):
        if isinstance(module, Dropout):
            module.threshold = 0
    return start


def fit_with(
    ranks: Ranks, start: Start, task: str, how: str, examples: list[Any], settings: dict[str, Any] = SETTINGS
) -> Seen:
    kind = task_class(task)
    config = settings_for(kind, start, how, settings)
    work = transfer_once(copy.deepcopy(start), config, kind.learn(examples), examples, examples, seed=0, ranks=ranks)
    steps: list[FitStep] = []
    while True:
        try:
            event = next(work)
        except StopIteration as end:
            return Seen(steps, end.value)
        steps += [event] if isinstance(event, FitStep) else []


@pytest.mark.parametrize(("kind", "task", "how"), FITS)
def test_several_processes_have_the_losses_of_one_and_the_same_weights(
    kind: str,
    task: str,
    how: str,
    pretrained_runs: dict[str, Path],
    tiny_examples: dict[str, list[Any]],
    in_threads: InThreads,
) -> None:
    start = without_dropout(open_start(pretrained_runs.get(kind, kind)))
    examples = tiny_examples[task]
    alone = fit_with(Alone(), start, task, how, examples)
    for world in (2, 3):
        first, *others = in_threads(world, lambda ranks: fit_with(ranks, start, task, how, examples))
        assert first.losses == pytest.approx(alone.losses, abs=1e-5)
        assert first.fitted.scores == pytest.approx(alone.fitted.scores)
        for other in others:
            assert torch.equal(other.weights, first.weights)
            assert other.losses == first.losses
            # As text, because coreference has no loss on dev: NaN, which differs from itself.
            assert [f"{step.evaluation}" for step in other.steps] == [f"{step.evaluation}" for step in first.steps]
            assert (other.fitted.answers, other.fitted.scores) == ([], {})


def test_a_fit_is_repeatable_to_the_bit_and_each_process_drops_its_own(
    pretrained_runs: dict[str, Path], tiny_examples: dict[str, list[Any]], in_threads: InThreads
) -> None:
    start, settings = open_start(pretrained_runs["static"]), {**SETTINGS, "network": {"dropout": 0.3}}

    def work(ranks: Ranks) -> Seen:
        return fit_with(ranks, start, "tag", "finetune", tiny_examples["tag"], settings)

    alone, once, again = work(Alone()), in_threads(2, work), in_threads(2, work)
    assert once[0].losses == again[0].losses
    assert torch.equal(once[0].weights, again[0].weights)
    assert once[0].losses[0] != pytest.approx(alone.losses[0], abs=1e-6)


@pytest.fixture
def asked(labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], tmp_path: Path) -> dict[str, Any]:
    """Arguments of `transfer`."""
    settings = {"fitting": {"min_steps": 40, "epochs": 0.1, "evaluations": 2}}
    files = {"train": labelled[0], "dev": labelled[1], "out": tmp_path / "run", "cache": tmp_path / "cache"}
    return {"source": pretrained_runs["bert"], "how": "finetune", "seeds": 2, "settings": settings, **files}


@pytest.mark.parametrize("how", ["frozen", "finetune"])
def test_the_first_process_writes_the_run_that_all_have_fitted(
    how: str, asked: dict[str, Any], in_threads: InThreads
) -> None:
    events = in_threads(2, lambda ranks: list(transfer(**{**asked, "how": how}, ranks=ranks)), per_machine=1)
    done = events[0][-1]
    assert isinstance(done, Transferred)
    assert [run.seed for run in done.results.runs] == [0, 1]
    assert not any(isinstance(event, Transferred) for event in events[1])
    assert (asked["out"] / "config.toml").is_file()
    assert not (asked["out"] / "state").exists()


def test_a_stop_between_two_steps_ends_all_processes_and_leaves_nothing(
    asked: dict[str, Any], in_threads: InThreads
) -> None:
    def work(ranks: Ranks) -> int:
        events, number = transfer(**asked, ranks=ranks), 0
        for event in events:
            number = event.number if isinstance(event, FitStep) else number
            if ranks.launch.is_first and number == 20:  # after an evaluation
                events.close()
        return number

    assert in_threads(2, work) == [20, 20]
    assert not asked["out"].exists()


def test_a_loss_that_is_no_number_ends_all_processes(asked: dict[str, Any], in_threads: InThreads) -> None:
    asked["settings"]["fitting"]["learning_rate"] = 1e30
    with pytest.raises(DataError, match="learning rate is too high"):
        in_threads(2, lambda ranks: list(transfer(**asked, ranks=ranks)))
    assert not asked["out"].exists()


@pytest.mark.parametrize(
    ("differs", "what"),
    [("train", "The training examples"), ("source", "The pretrained weights"), ("seeds", "The settings")],
)
def test_a_process_with_other_files_or_settings_is_told_by_the_first_one(
    differs: str, what: str, asked: dict[str, Any], pretrained_runs: dict[str, Path], in_threads: InThreads
) -> None:
    others = {"train": asked["dev"], "source": pretrained_runs["static"], "seeds": 1}

    def work(ranks: Ranks) -> None:
        mine = {} if ranks.launch.is_first else {differs: others[differs]}
        list(transfer(**{**asked, **mine}, ranks=ranks))

    with pytest.raises(HeadstartError, match=f"^Process 1, on machine 0: {what} are not those of the first process"):
        in_threads(2, work)
    assert not asked["out"].exists()


def test_what_a_dead_attempt_of_this_launch_left_is_written_over(asked: dict[str, Any]) -> None:
    class Restarted(Alone):
        def started_here(self, run: str) -> bool:
            return run == str(asked["out"])

    asked["seeds"] = 1
    list(transfer(**{**asked, "out": asked["out"].with_name("whole")}))
    asked["out"].mkdir()
    (asked["out"] / "results.json").write_text("{}")
    with pytest.raises(HeadstartError, match="not empty"):
        list(transfer(**asked))
    list(transfer(**asked, ranks=Restarted()))
    whole, again = (
        read_tensors(folder / "weights.safetensors") for folder in (asked["out"].with_name("whole"), asked["out"])
    )
    assert all(torch.equal(whole[name], again[name]) for name in whole)
